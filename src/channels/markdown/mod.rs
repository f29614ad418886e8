//! Shared by the platforms' renderers: tables, links in words, and cuts.

pub(crate) mod cut;
pub(crate) mod links;
mod sums;
pub(crate) mod table;

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// Alerts like `[!NOTE]` need `GFM`. Syntax that is left out stays in the text as written.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

/// An unfinished text with a note below. Open code is ended first, because the note would become
/// code.
pub fn followed_by(markdown: &str, note: &str) -> String {
    let end = open_fence(markdown)
        .map(|fence| format!("\n{fence}"))
        .unwrap_or_default();
    format!("{markdown}{end}\n\n{note}")
}

/// The missing fence of code at the end. Code inside a list or a quote ends with the list or quote.
fn open_fence(markdown: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut last = None;
    for (event, range) in Parser::new_ext(markdown, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let is_fenced = matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)));
                last = Some(range).filter(|_| is_fenced && depth == 0).or(last);
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    let code = markdown[last?].trim_start();
    let mark = code.chars().next()?;
    let fence = &code[..code.len() - code.trim_start_matches(mark).len()];
    let closing = code
        .trim_end()
        .lines()
        .skip(1)
        .last()
        .unwrap_or_default()
        .trim();
    let is_closed = closing.len() >= fence.len() && closing.chars().all(|c| c == mark);
    (!is_closed).then_some(fence)
}

/// The text for the renderers: with a single kind of line end, and without emphasis in sums.
pub(crate) fn prepared(markdown: &str) -> Cow<'_, str> {
    sums::with_sums_kept(with_plain_line_ends(markdown))
}

fn with_plain_line_ends(markdown: &str) -> Cow<'_, str> {
    match markdown.contains('\r') {
        true => markdown.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => markdown.into(),
    }
}

/// Takes a fence's first word for the language; some write more, such as a file name.
pub(crate) fn split_info(info: &str) -> (Option<String>, &str) {
    let word_end = info
        .find(|c: char| c.is_whitespace() || c == ',')
        .unwrap_or(info.len());
    match word_end {
        1..=MAX_LANGUAGE_BYTES => (
            Some(info[..word_end].to_owned()),
            info[word_end..].trim_start_matches(',').trim(),
        ),
        _ => (None, info.trim()),
    }
}

/// A longer first word than this is no language.
const MAX_LANGUAGE_BYTES: usize = 32;

/// Characters removed by the platforms at the ends of a message; Telegram makes spaces of control
/// characters.
pub(crate) fn is_trimmed(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Invisible characters: a text of only these is empty to the platforms.
pub(crate) fn is_unseen(c: char) -> bool {
    let formats = matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    is_trimmed(c)
        || formats
        || matches!(
            c,
            '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fffc}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stands_below_code_that_was_cut() {
        let check = |markdown: &str, expected: &str| {
            assert_eq!(followed_by(markdown, "note"), expected, "{markdown}");
        };
        check("words", "words\n\nnote");
        check("```rust\nfn a(", "```rust\nfn a(\n```\n\nnote");
        check("```", "```\n```\n\nnote");
        check("~~~~\na\n~~~", "~~~~\na\n~~~\n~~~~\n\nnote");
        check("```\na\n```", "```\na\n```\n\nnote");
        check("```\na\n```\nmore", "```\na\n```\nmore\n\nnote");
        check("- item\n\n  ```\n  a", "- item\n\n  ```\n  a\n\nnote");
        check("> ```\n> a", "> ```\n> a\n\nnote");
        check("    indented", "    indented\n\nnote");
    }
}
