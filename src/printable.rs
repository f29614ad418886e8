//! Text that can be printed: words of people, models and servers must not drive a terminal.

/// The text without characters that drive a terminal. Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !drives_a_terminal(*c) || matches!(c, '\n' | '\t'))
        .collect()
}

/// The same in a single line, for names.
pub(crate) fn printable_line(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let spaced = |c| {
        if is_line_break(c) || c == '\t' {
            ' '
        } else {
            c
        }
    };
    printable(&text.chars().map(spaced).collect::<String>())
}

/// For text of ours that is in colour. Colours stay, and nothing else of what drives a terminal.
/// Foreign words inside must be printable already.
pub(crate) fn printable_in_colour(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        shown += &printable(&rest[..at]);
        let colour = colour_bytes(&rest[at..]).unwrap_or(0);
        shown += &rest[at..at + colour];
        rest = &rest[at + colour.max(1)..];
    }
    shown + &printable(rest)
}

/// JSON in which everything that drives a terminal is escaped. Such characters stand inside strings
/// only, so the value stays the same.
pub(crate) fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if drives_a_terminal(c) && !matches!(c, '\n' | '\t') {
            escaped += &format!("\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Control characters, among them escape and those above ASCII, and characters that reverse the
/// text behind or break the line.
fn drives_a_terminal(c: char) -> bool {
    let turns_text = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns_text || is_line_break(c)
}

fn is_line_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The length of a sequence like `ESC[1;31m` at the beginning of a text.
fn colour_bytes(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ESCAPE: char = '\u{1b}';
    const HOSTILE: &str =
        "\u{1b}]52;c;AAAA\u{7}x\u{1b}[2J\u{9b}31m\r\u{8}\u{7f}\u{202e}\u{2066}\u{2028}\0é\n\tü";

    #[test]
    fn what_drives_a_terminal_is_taken_out() {
        assert_eq!(printable(HOSTILE), "]52;c;AAAAx[2J31mé\n\tü");
        assert_eq!(printable_line("a\nb\r\nc\td\u{2028}e\u{1b}"), "a b  c d e");
        assert_eq!(printable("👩‍👩‍👧 שלום\u{200f} naïve"), "👩‍👩‍👧 שלום\u{200f} naïve");
    }

    #[test]
    fn of_colours_only_colours_stay() {
        let styled =
            "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: x\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[1;31\u{1b}";
        assert_eq!(
            printable_in_colour(styled),
            "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: x[2J]0;title[1;31"
        );
    }

    proptest! {
        #[test]
        fn nothing_printed_drives_a_terminal(text in any::<String>()) {
            let is_fine = |text: &str| text.chars().all(|c| matches!(c, '\n' | '\t') || !drives_a_terminal(c));
            prop_assert!(is_fine(&printable(&text)));
            prop_assert!(!printable_line(&text).contains(drives_a_terminal));
            let rest = printable_in_colour(&text);
            prop_assert!(is_fine(&rest.replace(ESCAPE, "")), "{:?}", rest);
            prop_assert_eq!(printable_in_colour(&rest), rest);
        }

        #[test]
        fn escaped_json_has_the_same_value(text in any::<String>(), hostile in "[\\x00-\\x1f\\x7f-\\xa0\u{202a}-\u{202e}\u{2066}-\u{2069}a]*") {
            let value = serde_json::json!({ "text": text, &hostile: [hostile] });
            let escaped = escape_json(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(escaped.chars().all(|c| c == '\n' || !drives_a_terminal(c)), "{:?}", escaped);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }
}
