use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn shown(markdown: &str) -> String {
    render(markdown).join("\n=====\n")
}

#[test]
fn what_discord_knows_stays_as_it_is() {
    let known = "# Title\n\nSome **bold**, *italic*, ~~gone~~, `code`, ||secret|| and [a link](https://example.org).\n\n- one\n  - two\n1. three\n\n> quoted\n> more";
    assert_eq!(shown(known), known);
}

#[test]
fn a_table_becomes_code() {
    assert_snapshot!(shown("Look:\n\n| a | b |\n|---|--:|\n| one | 2 |\n\nDone."), @"
    Look:
    ```
    a   │ b
    ────┼──
    one │ 2
    ```
    Done.
    ");
}

#[test]
fn other_code_gets_fences_that_discord_knows() {
    assert_snapshot!(shown("~~~rust\nfn a() {}\n~~~\n\nand\n\n    indented\n\n- item\n\n  ```sh main.sh\n  ls\n  ```\n"), @"
    ```rust
    fn a() {}
    ```
    and
    ```
    indented
    ```
    - item

    main.sh
    ```sh
    ls
    ```
    ");
    assert_eq!(
        shown("````\na\n```\nb\n````"),
        "```\na\n\u{200b}`\u{200b}`\u{200b}`\nb\n```"
    );
    assert_eq!(
        shown("> quoted\n> ```\n> code\n> ```\n> more"),
        "> quoted\n```\ncode\n```\n> more"
    );
    assert_eq!(shown("a ``` b"), "a \\`\\`\\` b");
    assert_eq!(shown("```x```"), "`x`");
}

#[test]
fn what_discord_does_not_know_is_put_another_way() {
    assert_eq!(shown("##### Deep\n\ntext"), "### Deep\n\ntext");
    assert_eq!(shown("Title\n=====\n\ntext"), "# Title\n\ntext");
    assert_eq!(shown("a\n\n---\n\nb"), "a\n\n———\n\nb");
    assert_eq!(
        shown("![a cat](https://example.org/cat.png)"),
        "[a cat](https://example.org/cat.png)"
    );
    assert_eq!(
        shown("see [docs][1].\n\n[1]: https://example.org"),
        "see [docs](https://example.org).\n\n[1]: https://example.org"
    );
}

/// Discord takes a `*` for a mark where CommonMark does not.
#[test]
fn stars_that_are_no_marks_are_escaped() {
    assert_eq!(shown("2*3*4 = 24"), r"2\*3\*4 = 24");
    assert_eq!(
        shown("n*(n+1)*2 and (a+b)**2 - (c+d)**2"),
        r"n\*(n+1)\*2 and (a+b)\*\*2 - (c+d)\*\*2"
    );
    assert_eq!(shown("f(*args) and g(*more)"), r"f(\*args) and g(\*more)");
    assert_eq!(
        shown("2 * 3 * 4, **bold**, *it* and `2*3*4`"),
        "2 * 3 * 4, **bold**, *it* and `2*3*4`"
    );
    assert_eq!(shown("**H**yper**T**ext"), "**H**yper**T**ext");
    assert_eq!(shown(r"2\*3\*4"), r"2\*3\*4");
    assert_eq!(
        shown("https://example.com/a*b*c?*d 2*3*4"),
        r"https://example.com/a*b*c?*d 2\*3\*4"
    );
}

#[test]
fn long_code_goes_on_in_fences() {
    let lines: Vec<String> = (0..400)
        .map(|number| format!("    line {number:03}"))
        .collect();
    let parts = render(&format!("```python\n{}\n```", lines.join("\n")));
    assert_eq!(parts.len(), 3);
    assert!(
        parts
            .iter()
            .all(|part| part.starts_with("```python\n    line ") && part.ends_with("\n```")),
        "{parts:?}"
    );
    let back: Vec<&str> = parts
        .iter()
        .flat_map(|part| part.lines())
        .filter(|line| line.contains("line"))
        .collect();
    assert_eq!(back, lines);
}

#[test]
fn a_long_text_is_cut_between_paragraphs() {
    let paragraph = "word ".repeat(150);
    let parts = render(&[paragraph.trim(); 5].join("\n\n"));
    assert_eq!(
        parts
            .iter()
            .map(|part| part.matches("\n\n").count() + 1)
            .collect::<Vec<_>>(),
        [2, 2, 1]
    );
}

#[test]
fn nothing_to_see_is_no_message() {
    assert!(render("").is_empty());
    assert!(render(" \n\u{200b}\n").is_empty());
}

fn letters(text: &str) -> std::collections::BTreeMap<char, usize> {
    let mut counts = std::collections::BTreeMap::new();
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .for_each(|c| *counts.entry(c).or_default() += 1);
    counts
}

/// Markdown with a lot of syntax in it. Without `&`, because entities may be written out, and
/// without letters in labels, which links by reference lose.
fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("```".to_owned()),
        Just("~~~rust\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\n".to_owned()),
        Just("    ".to_owned()),
        Just("> ".to_owned()),
        Just("- ".to_owned()),
        Just("| a | b |\n|---|---|\n| c | d |\n".to_owned()),
        Just("#### ".to_owned()),
        Just("\n===\n".to_owned()),
        Just("![x][-]".to_owned()),
        Just("[-]: https://e.org\n".to_owned()),
        Just("`".to_owned()),
        Just("**".to_owned()),
        Just("---\n".to_owned()),
        "[^&\\r]{0,12}",
        "[a-z]{1,9}( [a-z]{1,9}){0,40}",
        "[äß😀👩‍👧]{1,30}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_parts(markdown: &str, units: usize) -> Result<(), TestCaseError> {
    let parts = split(&blocks(markdown), units);
    for part in &parts {
        prop_assert!(
            part.encode_utf16().count() <= units,
            "{} units in {part:?}",
            part.encode_utf16().count()
        );
        prop_assert_eq!(part.matches("```").count() % 2, 0, "{:?}", part);
        prop_assert!(!part.trim().is_empty());
    }
    let (before, after) = (letters(markdown), letters(&parts.concat()));
    for (letter, count) in before {
        prop_assert!(
            after.get(&letter).copied().unwrap_or_default() >= count,
            "{letter} is lost of {markdown:?} in {parts:?}"
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn parts_are_within_the_limit_closed_and_complete(markdown in any_markdown(), units in 80usize..400) {
        check_parts(&markdown, units)?;
        check_parts(&markdown, MAX_UNITS)?;
    }

    #[test]
    fn no_text_can_make_it_panic(text in any::<String>()) {
        render(&text);
    }
}
