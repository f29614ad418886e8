//! Quotes that look like quotes but are none in TOML: word processors, chats and phones write them.

/// A name for the kind of quotes, if the character is a quote.
pub(super) fn kind_of(c: char) -> Option<&'static str> {
    match c {
        '\u{201c}'..='\u{201f}' | '\u{2018}'..='\u{201b}' => Some("curly"),
        '\u{ab}' | '\u{bb}' | '\u{2039}' | '\u{203a}' => Some("angle"),
        '\u{300c}'..='\u{300f}' | '\u{301d}'..='\u{301f}' => Some("corner"),
        '\u{ff02}' | '\u{ff07}' => Some("full-width"),
        '\u{2032}' | '\u{2033}' | '\u{2035}' | '\u{2036}' => Some("prime"),
        '`' | '\u{b4}' => Some("slanted"),
        _ => None,
    }
}

/// The first of them in a text, with its place and kind.
pub(super) fn first_in(text: &str) -> Option<(usize, char, &'static str)> {
    text.char_indices()
        .find_map(|(at, c)| kind_of(c).map(|kind| (at, c, kind)))
}

/// The text between quotes of any kind.
pub(super) fn unquoted(text: &str) -> &str {
    text.trim()
        .trim_matches(|c: char| kind_of(c).is_some() || matches!(c, '"' | '\''))
}

/// The text without any such quote.
pub(super) fn without(text: &str) -> String {
    text.chars().filter(|c| kind_of(*c).is_none()).collect()
}
