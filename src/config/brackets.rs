//! Finds a bracket that is opened and never closed.

/// The first bracket left open at the end of the text, outside of texts and comments. A text of a
/// single line ends with its line, also where its closing quote is missing.
pub(super) fn first_open(text: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut resume = 0;
    for (at, letter) in text.char_indices() {
        if at < resume {
            continue;
        }
        match letter {
            '#' => resume = at + text[at..].find('\n').unwrap_or(text.len() - at),
            '"' | '\'' => resume = at + length_of_text(&text[at..], letter),
            '{' | '[' => open.push((at, letter)),
            '}' => close(&mut open, '{'),
            ']' => close(&mut open, '['),
            _ => {}
        }
    }
    open.first().copied()
}

/// A bracket without its opening one closes nothing.
fn close(open: &mut Vec<(usize, char)>, opening: char) {
    if open.last().is_some_and(|(_, letter)| *letter == opening) {
        open.pop();
    }
}

/// The bytes of a text with its quotes.
fn length_of_text(text: &str, quote: char) -> usize {
    let triple = quote.to_string().repeat(3);
    if let Some(inside) = text.strip_prefix(&triple) {
        let end = inside.find(&triple);
        return end.map_or(text.len(), |end| end + 2 * triple.len());
    }
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '\n' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            letter if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracket_without_its_end_is_found() {
        let check = |text: &str, expected: Option<char>| {
            assert_eq!(first_open(text).map(|(_, open)| open), expected, "{text}");
        };
        check("a = { b = 1 }\n[c]\nd = [\"}\", '{']", None);
        check("a = { b = 1\n[c]\nd = [1, { e = 2 }]", Some('{'));
        check("a = \"{ # }\" # {", None);
        check("a = \"\\\"{\"\nb = {", Some('{'));
        check("a = '''\n{ '''\nb = [ 1", Some('['));
        check("a = \"open {\nb = 1", None);
    }
}
