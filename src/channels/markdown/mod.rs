//! What the platforms' renderers have in common: tables, links in words, and where a text may be cut.

pub(crate) mod cut;
pub(crate) mod links;
mod sums;
pub(crate) mod table;

use std::borrow::Cow;

use pulldown_cmark::Options;

/// Alerts like `[!NOTE]` need `GFM`. Everything left out stays in the text as it is written.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

/// What the renderers read: with one kind of line end, and without emphasis in sums.
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
    let word_end = info.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(info.len());
    match word_end {
        1..=MAX_LANGUAGE_BYTES => (Some(info[..word_end].to_owned()), info[word_end..].trim_start_matches(',').trim()),
        _ => (None, info.trim()),
    }
}

/// A longer first word than this is no language.
const MAX_LANGUAGE_BYTES: usize = 32;

/// What platforms take away at the ends of a message; Telegram makes spaces of control characters.
pub(crate) fn is_trimmed(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// What does not make a message: platforms call a text of only these empty.
pub(crate) fn is_unseen(c: char) -> bool {
    let formats =
        matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    is_trimmed(c) || formats || matches!(c, '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fffc}')
}
