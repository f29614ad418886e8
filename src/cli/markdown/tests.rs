use insta::assert_snapshot;

use super::*;

const PAGE: &str = "# Bees\n\nThey are **busy**, *small* and `Apis mellifera`, and they say ~~moo~~ buzz in a line that goes on.\n\n- one\n- two, which is longer than the line can be at thirty columns\n  1. inner\n  2. second\n- [x] done\n\n> A quote\n> of two lines\n\n```rust\nfn main() {\n\tprintln!(\"a line of code that is long\");\n}\n```\n\n| name | kind |\n|---|--:|\n| Rose | a writer of long things |\n| 日本 | 2 |\n\nSee [the book](https://parlor.example/book) or <https://example.com>.\n\n---\nEnd.";

fn drawn(style: Style, width: usize, lead: Option<&str>) -> String {
    let shown = Paper { style, width }.draw(PAGE, lead).join("\n");
    shown.replace('\u{1b}', "␛")
}

#[test]
fn markdown_is_drawn_for_a_narrow_terminal() {
    assert_snapshot!(drawn(Style::PLAIN, 30, Some("🌹 Rose:")), @r#"
    🌹 Rose: Bees

    They are busy, small and Apis
    mellifera, and they say
    ~~moo~~ buzz in a line that
    goes on.

    • one
    • two, which is longer than
      the line can be at thirty
      columns
      1. inner
      2. second
    • ☑ done

    │ A quote
    │ of two lines

      fn main() {
          println!("a line of code
       that is long");
      }

     name │             kind
    ──────┼──────────────────
     Rose │ a writer of long
          │           things
     日本 │                2

    See the book
    (https://parlor.example/book)
    or https://example.com.

    ──────────────────────────────

    End.
    "#);
}

#[test]
fn markdown_is_drawn_in_colour() {
    assert_snapshot!(drawn(Style::COLOURED, 60, None), @r#"
    ␛[1mBees␛[0m

    They are ␛[1mbusy␛[0m, ␛[3msmall␛[0m and ␛[36mApis mellifera␛[0m, and they say ␛[9mmoo␛[0m
    buzz in a line that goes on.

    • one
    • two, which is longer than the line can be at thirty
      columns
      1. inner
      2. second
    • ☑ done

    │ A quote
    │ of two lines

      ␛[36mfn main() {␛[0m
      ␛[36m    println!("a line of code that is long");␛[0m
      ␛[36m}␛[0m

     name │                    kind
    ──────┼─────────────────────────
     Rose │ a writer of long things
     日本 │                       2

    See ␛[4mthe book␛[0m␛[2m (https://parlor.example/book)␛[0m or
    ␛[4mhttps://example.com␛[0m.

    ␛[2m────────────────────────────────────────␛[0m

    End.
    "#);
}

#[test]
fn the_name_stands_before_the_first_words() {
    let draw = |text| {
        let paper = Paper {
            style: Style::PLAIN,
            width: 20,
        };
        paper.draw(text, Some("Rose:")).join("\n")
    };
    assert_eq!(draw("Good morning to you"), "Rose: Good morning\nto you");
    assert_eq!(draw("```\ncode\n```"), "Rose:\n  code");
    assert_eq!(draw("- a\n- b"), "Rose:\n• a\n• b");
    assert_eq!(draw(""), "Rose:");
}

#[test]
fn nothing_in_an_answer_drives_the_terminal() {
    let hostile = "a\u{1b}]52;c;AAAA\u{7}b\u{1b}[2J `c\u{9b}31m` \u{202e}d";
    let shown = Paper {
        style: Style::PLAIN,
        width: 80,
    };
    assert_eq!(shown.draw(hostile, None), ["a]52;c;AAAAb[2J c31m d"]);
}

#[test]
fn finished_blocks_are_told_from_the_last() {
    let check = |text: &str, finished: &str| {
        assert_eq!(&text[..unfinished(text)], finished, "{text}");
    };
    check("", "");
    check("one", "");
    check("one\n\ntw", "one\n\n");
    check("one\n\n- a\n- b\n", "one\n\n");
    check("- a\n\n```\ncode\n\nmore", "- a\n\n");
    check("# Title\ntext", "# Title\n");
    check("one\n\n---\n", "one\n\n");
    check("one\n\n| a |\n|---|\n|", "one\n\n");
    check("| a |\n|---|\n| 1 |\n\nend", "| a |\n|---|\n| 1 |\n\n");
}

/// Block by block, a text is drawn as it is drawn at once.
#[test]
fn blocks_joined_are_the_whole() {
    let paper = Paper {
        style: Style::PLAIN,
        width: 40,
    };
    let (mut drawn, mut lines) = (0, Vec::new());
    for (at, _) in PAGE.char_indices() {
        let rest = &PAGE[drawn..at];
        let finished = unfinished(rest);
        if finished > 0 {
            lines.extend(paper.block(&rest[..finished], None, drawn > 0));
            drawn += finished;
        }
    }
    lines.extend(paper.block(&PAGE[drawn..], None, drawn > 0));
    assert_eq!(lines, paper.draw(PAGE, None));
}
