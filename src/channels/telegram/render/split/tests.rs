//! Where long answers are cut.

use insta::assert_snapshot;

use super::super::layout::lay_out;
use super::super::tests::show_parts;
use super::super::{MAX_ENTITIES, MAX_UNITS, render};
use super::{Limits, split};

fn cut(markdown: &str, units: usize) -> String {
    show_parts(&split(
        &lay_out(markdown),
        Limits {
            units,
            entities: MAX_ENTITIES,
        },
    ))
}

#[test]
fn blocks_stay_whole_when_they_can() {
    assert_snapshot!(cut("First block\nof two lines.\n\nSecond one.\n\nThird block here.", 45), @"
    First block
    of two lines.

    Second one.
    =====
    Third block here.
    ");
}

#[test]
fn lines_stay_whole_when_blocks_can_not() {
    assert_snapshot!(cut("- first item\n- second **bold** item\n- third item", 36), @r#"
    • first item
    • second bold item
    - bold 22..26 "bold"
    =====
    • third item
    "#);
}

#[test]
fn words_stay_whole_when_lines_can_not() {
    assert_snapshot!(cut("one two **three four five** six seven", 16), @r#"
    one two three
    - bold 8..13 "three"
    =====
    four five six
    - bold 0..9 "four five"
    =====
    seven
    "#);
}

#[test]
fn long_words_are_cut_between_graphemes() {
    assert_snapshot!(cut("👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦🇩🇪🇩🇪", 24), @"
    👨‍👩‍👧‍👦👨‍👩‍👧‍👦
    =====
    👨‍👩‍👧‍👦🇩🇪🇩🇪
    ");
    assert_snapshot!(cut("漢字漢字漢字漢字漢字", 6), @"
    漢字漢字漢字
    =====
    漢字漢字
    ");
}

#[test]
fn a_grapheme_longer_than_a_message_is_cut_all_the_same() {
    let monster = format!("a{}", "\u{301}".repeat(MAX_UNITS + 10));
    let units: Vec<usize> = render(&monster)
        .iter()
        .map(|part| part.text.encode_utf16().count())
        .collect();
    assert_eq!(units, [MAX_UNITS, 11]);
}

#[test]
fn code_goes_on_in_the_next_part_with_its_language_and_indentation() {
    assert_snapshot!(cut("Look:\n```python\ndef f():\n    if x:\n        return 1\n\n    return 2\n```\nDone.", 30), @r#"
    Look:
    def f():
        if x:
    - pre(python) 6..24 "def f():\n    if x:"
    =====
            return 1
    - pre(python) 0..16 "        return 1"
    =====
        return 2
    Done.
    - pre(python) 0..12 "    return 2"
    "#);
}

#[test]
fn a_blank_line_in_code_is_not_a_border_of_blocks() {
    assert_snapshot!(cut("Some text before.\n\n```\na = 1\n\nb = 2\n```", 28), @r#"
    Some text before.
    =====
    a = 1

    b = 2
    - pre 0..12 "a = 1\n\nb = 2"
    "#);
}

#[test]
fn quotes_go_on_with_what_is_in_them() {
    assert_snapshot!(cut("> one two three\n> **four five** six\n> `seven` eight", 22), @r#"
    one two three
    - blockquote 0..13 "one two three"
    =====
    four five six
    - blockquote 0..13 "four five six"
    - bold 0..9 "four five"
    =====
    seven eight
    - blockquote 0..11 "seven eight"
    - code 0..5 "seven"
    "#);
}

#[test]
fn a_long_fence_fills_messages() {
    let code: String = (0..1000).map(|line| format!("    line {line}\n")).collect();
    let parts = render(&format!("```rust\n{code}```\n\n**End.**"));
    let lines: Vec<String> = parts
        .iter()
        .map(|part| {
            let lines: Vec<&str> = part.text.lines().collect();
            format!(
                "{:?} to {:?}, {:?}",
                lines[0],
                lines[lines.len() - 1],
                part.entities
            )
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    "    line 0" to "    line 322", [Entity { kind: Pre { language: Some("rust") }, offset: 0, length: 4088 }]
    "    line 323" to "    line 637", [Entity { kind: Pre { language: Some("rust") }, offset: 0, length: 4094 }]
    "    line 638" to "    line 952", [Entity { kind: Pre { language: Some("rust") }, offset: 0, length: 4094 }]
    "    line 953" to "End.", [Entity { kind: Pre { language: Some("rust") }, offset: 0, length: 610 }, Entity { kind: Bold, offset: 612, length: 4 }]
    "#);
}

#[test]
fn more_entities_than_a_message_takes_make_another() {
    let words: String = (0..250).map(|word| format!("**w{word}** and ")).collect();
    let counts: Vec<usize> = render(&words)
        .iter()
        .map(|part| part.entities.len())
        .collect();
    assert_eq!(counts, [100, 100, 50]);
}

#[test]
fn a_full_message_is_not_cut() {
    let full = "👍".repeat(MAX_UNITS / 2);
    assert_eq!(render(&full).len(), 1);
    assert_eq!(render(&format!("{full}a")).len(), 2);
}
