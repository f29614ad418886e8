//! Describes pictures, files and replies in words, the same on every platform.

/// Names and titles of people, files and places.
pub(super) const MAX_NAME_CHARS: usize = 64;
/// Characters of a quoted message.
pub(super) const MAX_QUOTE_CHARS: usize = 300;
/// Options shown of a poll.
pub(super) const MAX_OPTIONS: usize = 12;

/// A person's name: bounded and on a single line, because names stand before messages. Only names
/// of agents begin with an @.
pub(crate) fn name_line(name: &str) -> String {
    let plain: String = name
        .chars()
        .filter(|c| !turns_text(*c))
        .map(|c| {
            if c.is_control() || c == '[' || c == ']' {
                ' '
            } else {
                c
            }
        })
        .take(MAX_NAME_CHARS)
        .collect();
    let plain = plain
        .trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c) || AT_SIGNS.contains(&c))
        .trim_end();
    if plain.is_empty() {
        "somebody".to_owned()
    } else {
        plain.to_owned()
    }
}

/// Reverses the direction of the text behind.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The @ and its look-alikes.
const AT_SIGNS: [char; 3] = ['@', '＠', '﹫'];

/// Shows nothing: Unicode's Default_Ignorable_Code_Point, and blanks that are no white space. Some
/// of them join letters or emoji, so they are nothing odd inside a name.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// `1:02:05`.
pub(super) fn duration(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

pub(super) fn titled(what: &str, name: Option<String>) -> String {
    join(" ", [Some(what.to_owned()), name]).unwrap_or_default()
}

/// `120 KB`.
pub(super) fn in_words(bytes: u64) -> String {
    const KILO: u64 = 1000;
    const MEGA: u64 = 1_000_000;
    match bytes {
        0..KILO => format!("{bytes} B"),
        KILO..MEGA => format!("{} KB", bytes / KILO),
        _ => format!("{}.{} MB", bytes / MEGA, bytes % MEGA / (MEGA / 10)),
    }
}

pub(super) fn quoted(text: String) -> String {
    format!("“{text}”")
}

pub(super) fn join(
    separator: &str,
    parts: impl IntoIterator<Item = Option<String>>,
) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(separator))
}

/// Bounded, and without brackets, which lists of people's messages use. None when nothing is left.
pub(super) fn one_line(text: &str, max_chars: usize) -> Option<String> {
    let plain: String = text
        .chars()
        .map(|c| {
            if c.is_control() || c == '[' || c == ']' {
                ' '
            } else {
                c
            }
        })
        .collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_cut = line.chars().count() > max_chars;
    let kept: String = line.chars().take(max_chars).collect();
    (!kept.is_empty()).then(|| {
        if is_cut {
            format!("{}…", kept.trim_end())
        } else {
            kept
        }
    })
}
