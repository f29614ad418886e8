//! Rules that hold for every text.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::layout::lay_out;
use super::split::{Limits, split};
use super::{EntityKind, MAX_ENTITIES, MAX_UNITS, Rendered, render};
use crate::channels::markdown::{is_trimmed, is_unseen};

const TELEGRAM: Limits = Limits {
    units: MAX_UNITS,
    entities: MAX_ENTITIES,
};

/// Pieces from which Markdown of every kind comes about, well formed or not.
fn piece() -> impl Strategy<Value = String> {
    let syntax = prop::sample::select(vec![
        "**",
        "*",
        "_",
        "__",
        "~~",
        "~",
        "`",
        "``",
        "||",
        "|",
        "[",
        "](",
        ")",
        "](https://example.com)",
        "](x)",
        "![",
        "<b>",
        "</b>",
        "<",
        "\\",
        "&amp;",
        "&#10;",
        "[^1]",
        "[^1]: ",
        "[a]: b ",
        "[a]",
        "<https://example.com>",
        "\"",
        "(",
        "é",
        "👨‍👩‍👧‍👦",
        "🇩🇪",
        "e\u{301}",
        "漢字",
        "مرحبا",
    ]);
    let line = prop::sample::select(vec![
        "\n",
        "\n\n",
        "  \n",
        "\r\n",
        "\n# ",
        "\n- ",
        "\n  - ",
        "\n    ",
        "\n1. ",
        "\n7) ",
        "\n> ",
        "\n> > ",
        "\n```rust\n",
        "\n```\n",
        "\n> ```\n>   x\n> ```\n",
        "\n```\n    x\n        ",
        "\n---\n",
        "\n===\n",
        "\n- [ ] ",
        "\n- [x] ",
        "\n| a | b |\n|---|:-:|\n| ",
        " | ",
        "\n<div>\n",
        "\n> [!NOTE]\n",
        "\n[a]: https://example.com\n",
        "\t",
    ]);
    prop_oneof![3 => syntax.prop_map(str::to_owned), 2 => line.prop_map(str::to_owned), 3 => "[a-z]{1,8}", 2 => Just(" ".to_owned())]
}

fn markdown() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..60).prop_map(|pieces| pieces.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => markdown(), 1 => any::<String>(), 1 => "\\PC{0,200}"]
}

fn small_limits() -> impl Strategy<Value = Limits> {
    (2..60usize, 2..7usize).prop_map(|(units, entities)| Limits { units, entities })
}

fn check_part(part: &Rendered, limits: Limits) {
    let units: Vec<u16> = part.text.encode_utf16().collect();
    assert!(units.len() <= limits.units, "{} units", units.len());
    assert!(
        part.entities.len() <= limits.entities,
        "{} entities",
        part.entities.len()
    );
    assert!(!part.text.chars().all(is_unseen), "blank");
    assert_eq!(part.text.trim_end_matches(is_trimmed), part.text);
    let begins_with_code = part
        .entities
        .iter()
        .any(|entity| entity.offset == 0 && is_pre(&entity.kind));
    assert!(
        !part.text.starts_with(is_trimmed) || begins_with_code && !part.text.starts_with('\n'),
        "begins with blanks"
    );
    for entity in &part.entities {
        assert!(entity.length > 0, "{entity:?}");
        let covered = units
            .get(entity.offset..entity.offset + entity.length)
            .expect("the entity lies within its part");
        String::from_utf16(covered).expect("surrogate pairs stay together");
    }
    check_nesting(part);
}

fn check_nesting(part: &Rendered) {
    for (index, outer) in part.entities.iter().enumerate() {
        let outer_end = outer.offset + outer.length;
        for inner in &part.entities[index + 1..] {
            let inner_end = inner.offset + inner.length;
            assert!(
                (outer.offset, Reverse(outer_end)) <= (inner.offset, Reverse(inner_end)),
                "unsorted: {outer:?} {inner:?}"
            );
            if inner.offset >= outer_end {
                continue;
            }
            assert!(inner_end <= outer_end, "crossing: {outer:?} {inner:?}");
            assert_ne!(outer.kind, inner.kind, "nested in itself");
            let code = |kind: &EntityKind| *kind == EntityKind::Code || is_pre(kind);
            let allowed =
                outer.kind == EntityKind::Blockquote || !(code(&outer.kind) || code(&inner.kind));
            assert!(allowed, "code overlaps: {outer:?} {inner:?}");
        }
    }
}

fn is_pre(kind: &EntityKind) -> bool {
    matches!(kind, EntityKind::Pre { .. })
}

fn visible(text: &str) -> String {
    text.chars().filter(|&c| !is_unseen(c)).collect()
}

fn check(text: &str, limits: Limits) {
    let whole = lay_out(text);
    let parts = split(&whole, limits);
    parts.iter().for_each(|part| check_part(part, limits));
    let together: String = parts.iter().map(|part| visible(&part.text)).collect();
    assert_eq!(together, visible(&whole.text));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..Default::default() })]

    #[test]
    fn every_message_is_one_that_telegram_takes(text in any_text()) {
        check(&text, TELEGRAM);
    }

    #[test]
    fn splitting_keeps_within_small_limits_and_loses_nothing(text in any_text(), limits in small_limits()) {
        check(&text, limits);
    }

    #[test]
    fn what_can_be_seen_makes_a_message(text in any_text()) {
        prop_assert_eq!(render(&text).is_empty(), text.chars().all(is_unseen));
    }

    #[test]
    fn text_without_syntax_is_unchanged(text in "[a-zäß漢👍]{1,9}([ \n][a-zäß漢👍]{1,9}){0,30}") {
        let parts = render(&text);
        prop_assert_eq!(parts, vec![Rendered { text, entities: vec![] }]);
    }

    #[test]
    fn no_word_gets_lost(pieces in prop::collection::vec(piece(), 0..60)) {
        let words: Vec<String> = (0..pieces.len()).map(|index| format!("Word{index}Q")).collect();
        let text: String = pieces.iter().zip(&words).map(|(piece, word)| format!("{piece}{word}")).collect();
        let whole = lay_out(&text);
        let shown = whole.text.clone() + &format!("{:?}", whole.spans.iter().map(|span| &span.kind).collect::<Vec<_>>());
        for word in words {
            prop_assert!(shown.contains(&word), "{word} of {text:?} is not in {shown:?}");
        }
    }

    #[test]
    fn graphemes_stay_together(text in "(👨‍👩‍👧‍👦|🇩🇪|e\u{301}|क्षि|漢|a){1,40}", units in 11..30usize) {
        let parts = split(&lay_out(&text), Limits { units, entities: 1 });
        let together: Vec<&str> = parts.iter().flat_map(|part| part.text.graphemes(true)).collect();
        prop_assert_eq!(together, text.graphemes(true).collect::<Vec<_>>());
    }
}

#[test]
fn long_texts_take_time_in_proportion() {
    let hard = [
        "**",
        "||",
        "[",
        "> ",
        "- ",
        "`a` ",
        "🇩🇪",
        "a\u{301}\u{301}",
        "*a `b` ",
        "|a",
        "[a]: b\n\n",
        "\n\n",
        "![a](b",
        "<a ",
        "||a|| ",
        "~~*",
        "\n> a\n",
        "1. ",
        "2*3",
        "*",
        "a* *b",
        "||`a`|| ",
    ];
    for piece in hard {
        let text = piece.repeat(200_000 / piece.len());
        let started = Instant::now();
        render(&text);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(5), "{piece:?} took {took:?}");
    }
}
