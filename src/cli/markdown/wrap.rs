//! Breaks words into lines that fit a number of columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The look of a character, as numbers of escape sequences. Empty is plain.
pub(super) type Look = Vec<u8>;

/// A character as people see it, perhaps of several code points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) look: Look,
}

impl Cell {
    pub(super) fn columns(&self) -> usize {
        columns(&self.text)
    }

    fn is_space(&self) -> bool {
        self.text == " "
    }

    /// Chinese, Japanese and Korean have no spaces, so a line may end behind each wide character.
    fn may_end_a_line(&self) -> bool {
        self.is_space() || self.columns() > 1
    }
}

/// The columns of a text without line breaks.
pub(in crate::cli) fn columns(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

pub(super) fn cells(text: &str, look: &[u8]) -> impl Iterator<Item = Cell> {
    text.graphemes(true).map(|text| Cell {
        text: text.to_owned(),
        look: look.to_vec(),
    })
}

/// Breaks at spaces where possible, else anywhere. The first line has `first` columns. A line break
/// among the cells stays one.
pub(super) fn wrap(cells: Vec<Cell>, first: usize, width: usize) -> Vec<Vec<Cell>> {
    let mut lines = Vec::new();
    let mut line: Vec<Cell> = Vec::new();
    let mut used = 0;
    for cell in cells {
        if cell.text == "\n" {
            lines.push(trimmed(std::mem::take(&mut line)));
            used = 0;
            continue;
        }
        let mut room = if lines.is_empty() { first } else { width };
        let columns = cell.columns();
        while used + columns > room.max(1)
            && !cell.is_space()
            && !(line.is_empty() && room == width)
        {
            let rest = if cell.may_end_a_line() && !line.is_empty() {
                // A line may also end before a wide character.
                Vec::new()
            } else {
                split_at_break(&mut line, lines.is_empty() && first < width)
            };
            lines.push(trimmed(std::mem::replace(&mut line, rest)));
            used = line.iter().map(Cell::columns).sum();
            room = width;
        }
        if cell.is_space() && line.is_empty() && !lines.is_empty() {
            continue;
        }
        used += columns;
        line.push(cell);
    }
    lines.push(trimmed(line));
    lines
}

/// Takes the begun word off the line. A word longer than the line is cut instead, unless it can
/// begin on a longer line.
fn split_at_break(line: &mut Vec<Cell>, next_is_longer: bool) -> Vec<Cell> {
    match line.iter().rposition(Cell::may_end_a_line) {
        Some(at) => line.split_off(before_reference(line, at) + 1),
        None if next_is_longer => std::mem::take(line),
        None => Vec::new(),
    }
}

/// The last break of a line, but not that inside `[ref 12]`.
fn before_reference(line: &[Cell], at: usize) -> usize {
    let word: String = line[..at]
        .iter()
        .rev()
        .take(4)
        .map(|cell| cell.text.as_str())
        .collect();
    let earlier = || line[..at].iter().rposition(Cell::may_end_a_line);
    match word.as_str() {
        "fer[" => earlier().unwrap_or(at),
        _ => at,
    }
}

/// Spaces at the end of a line are not seen.
fn trimmed(mut line: Vec<Cell>) -> Vec<Cell> {
    while line.last().is_some_and(Cell::is_space) {
        line.pop();
    }
    line
}

/// Lines cut at the width, and nothing left out: for code, where spaces count.
pub(super) fn cut(cells: Vec<Cell>, width: usize) -> Vec<Vec<Cell>> {
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for cell in cells {
        let columns = cell.columns();
        if used + columns > width && used > 0 {
            lines.push(Vec::new());
            used = 0;
        }
        used += columns;
        lines.last_mut().expect("there is a line").push(cell);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, first: usize, width: usize) -> Vec<String> {
        wrap(cells(text, &[]).collect(), first, width)
            .into_iter()
            .map(|line| line.into_iter().map(|cell| cell.text).collect())
            .collect()
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        let check = |text: &str, first, width, expected: &[&str]| {
            assert_eq!(wrapped(text, first, width), expected, "{text}");
        };
        check("one two three", 7, 7, &["one two", "three"]);
        check("one two  three", 8, 8, &["one two", "three"]);
        check("a\nb", 7, 7, &["a", "b"]);
        check("incomprehensible", 8, 8, &["incompre", "hensible"]);
        check(
            "see incomprehensible",
            8,
            8,
            &["see", "incompre", "hensible"],
        );
        check("behind a name", 3, 13, &["", "behind a name"]);
        check("日本語の文章", 6, 6, &["日本語", "の文章"]);
        check("ab 👩‍👩‍👧 cd", 5, 5, &["ab 👩‍👩‍👧", "cd"]);
        check("aa日", 2, 3, &["aa", "日"]);
        check("", 5, 5, &[""]);
    }

    proptest! {
        #[test]
        fn every_word_is_kept_and_every_line_fits(text in "[a-z日é👍 ]{0,60}", first in 2usize..20, width in 2usize..20) {
            let first = first.min(width);
            let lines = wrapped(&text, first, width);
            let kept: String = lines.concat().replace(' ', "");
            prop_assert_eq!(kept, text.replace(' ', ""));
            for line in &lines {
                prop_assert!(columns(line) <= width, "{:?}", lines);
            }
        }
    }
}
