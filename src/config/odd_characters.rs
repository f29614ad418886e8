//! Characters that look like another or like nothing: web pages, word processors and keyboards for
//! other scripts write them.

use super::{Problem, Spanned};

/// A character that TOML does not take, in words, and the character to type instead.
pub(super) struct Odd {
    pub(super) at: usize,
    pub(super) letter: char,
    pub(super) message: String,
    pub(super) advice: String,
}

/// The first odd character in a line of TOML, outside of texts and comments.
pub(super) fn first_in(line: &str) -> Option<Odd> {
    outside_of_texts(line).find_map(|(at, letter)| {
        let (message, advice) = told(letter)?;
        Some(Odd {
            at,
            letter,
            message,
            advice,
        })
    })
}

/// The problem of an odd character in a text such as a place or an id.
pub(super) fn refused(text: &Spanned<String>) -> Option<Problem> {
    let (message, advice) = text.value.chars().find_map(told)?;
    Some(
        Problem::new(text.span.clone(), message)
            .label("in this text")
            .help(advice),
    )
}

fn told(letter: char) -> Option<(String, String)> {
    let code = format!("U+{:04X}", u32::from(letter));
    Some(match letter {
        '\u{a0}' | '\u{202f}' => (
            format!("an invisible no-break space ({code}) is here"),
            "delete it and type a space".to_owned(),
        ),
        '\u{2000}'..='\u{200a}' | '\u{3000}' => (
            format!("a space of another width ({code}) is here"),
            "delete it and type a space".to_owned(),
        ),
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => (
            format!("an invisible character ({code}) is here"),
            "delete it: put the cursor behind it and press Backspace once".to_owned(),
        ),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => (
            format!("`{letter}` ({code}) is not a hyphen"),
            "type `-` in its place".to_owned(),
        ),
        '\u{ff01}'..='\u{ff5e}' if letter != '\u{ff02}' && letter != '\u{ff07}' => {
            let plain = char::from_u32(u32::from(letter) - 0xfee0)?;
            (
                format!("`{letter}` ({code}) is not `{plain}`"),
                format!("type a plain `{plain}` in its place"),
            )
        }
        _ => return None,
    })
}

/// The characters of a line that are no part of a text in quotes or of a comment.
fn outside_of_texts(line: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut is_escaped, mut is_comment) = (None, false, false);
    line.char_indices().filter(move |(_, letter)| {
        match quote {
            _ if is_comment => return false,
            Some('"') if is_escaped => is_escaped = false,
            Some('"') if *letter == '\\' => is_escaped = true,
            Some(open) => {
                if *letter == open {
                    quote = None;
                }
            }
            None if matches!(letter, '"' | '\'') => quote = Some(*letter),
            None if *letter == '#' => is_comment = true,
            None => return true,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_may_have_any_character() {
        let check = |line: &str, expected: Option<(usize, char)>| {
            let found = first_in(line).map(|odd| (odd.at, odd.letter));
            assert_eq!(found, expected, "{line}");
        };
        check("a\u{a0}= 1", Some((1, '\u{a0}')));
        check("name = \"a\u{a0}b\"", None);
        check("name = \"a\\\"\u{a0}b\" # \u{a0}", None);
        check("n ＝ 1", Some((2, '＝')));
        check("n = −1", Some((4, '−')));
        check("n = 1 # −", None);
        check("n = 1\u{200b}", Some((5, '\u{200b}')));
    }
}
