//! Cuts a Markdown file into meaningful pieces. Pure.

/// Paragraphs are put together up to about this size.
const GOOD_BYTES: usize = 600;
/// A longer paragraph is cut.
const MAX_BYTES: usize = 1600;

/// The pieces of a file in their order. A heading begins a piece and stays with the text below.
pub(super) fn chunks(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut current = String::new();
    for paragraph in paragraphs(text) {
        let begins_anew =
            paragraph.starts_with('#') || current.len() + paragraph.len() > GOOD_BYTES;
        if begins_anew && !is_only_heading(&current) {
            keep(&mut pieces, &mut current);
        }
        if !current.is_empty() {
            current.push_str("\n\n");
        }
        current.push_str(&paragraph);
    }
    keep(&mut pieces, &mut current);
    pieces.iter().flat_map(|piece| cut(piece)).collect()
}

fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![Vec::new()];
    for line in text.lines().map(str::trim_end) {
        let heading = line.starts_with('#');
        if (line.is_empty() || heading) && !found.last().is_some_and(Vec::is_empty) {
            found.push(Vec::new());
        }
        if !line.is_empty() {
            found.last_mut().expect("there is always one").push(line);
        }
        if heading {
            found.push(Vec::new());
        }
    }
    found
        .into_iter()
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join("\n"))
        .collect()
}

fn is_only_heading(piece: &str) -> bool {
    !piece.is_empty()
        && piece
            .lines()
            .filter(|line| !line.is_empty())
            .all(|line| line.starts_with('#'))
}

fn keep(pieces: &mut Vec<String>, current: &mut String) {
    // A heading over nothing says nothing.
    if !current.is_empty() && !is_only_heading(current) {
        pieces.push(current.clone());
    }
    current.clear();
}

fn cut(piece: &str) -> Vec<String> {
    let mut rest = piece;
    let mut parts = Vec::new();
    while rest.len() > MAX_BYTES {
        let head = super::super::head(rest, MAX_BYTES);
        let head = match head.rfind(char::is_whitespace) {
            Some(space) if space > MAX_BYTES / 2 => &head[..space],
            _ => head,
        };
        parts.push(head.trim().to_owned());
        rest = &rest[head.len()..];
    }
    parts.push(rest.trim().to_owned());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::agents::memory::tokenizer::words;

    #[test]
    fn a_heading_stays_with_what_follows_it() {
        let text = "# Memory\n\n## Ann\n- likes tea\n- has a dog\n\nTwo of them.\n\n## Bob\nno tea\n\n## Empty\n";
        assert_eq!(
            chunks(text),
            [
                "# Memory\n\n## Ann\n\n- likes tea\n- has a dog\n\nTwo of them.",
                "## Bob\n\nno tea"
            ]
        );
        assert_eq!(chunks(""), [] as [&str; 0]);
        assert_eq!(chunks("\n\n# Only\n\n"), [] as [&str; 0]);
    }

    #[test]
    fn what_is_long_is_cut_between_words() {
        let pieces = chunks(&"word ".repeat(1000));
        assert!(
            pieces.len() > 2
                && pieces
                    .iter()
                    .all(|piece| piece.len() <= MAX_BYTES && piece.ends_with("word"))
        );
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_piece_is_too_long(text in "([a-zé ]{0,30}\n?){0,60}") {
            let pieces = chunks(&text);
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= MAX_BYTES));
            prop_assert_eq!(words(&pieces.join(" ")), words(&text));
        }
    }
}
