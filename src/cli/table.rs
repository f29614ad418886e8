//! Tables that fit the terminal: numbers and ids stay whole, and lines end between words. Where the
//! terminal is too narrow for that, each row is a block of lines.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::print;

/// A column's manners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Wrapped where there is no room.
    Words(&'static str),
    /// Never wrapped.
    Whole(&'static str),
    /// Never wrapped, and to the right.
    Number(&'static str),
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Column::Words(title) | Column::Whole(title) | Column::Number(title) => title,
        }
    }
}

/// Between two columns.
const GAP: usize = 2;
/// A row with more lines is hard to read.
const TALLEST: usize = 3;
/// Words up to this length are never broken apart.
const LONGEST_WORD: usize = 30;

/// The table as wide as the terminal; in a pipe, as wide as it likes.
pub(super) fn table<const N: usize>(columns: [Column; N], rows: Vec<[String; N]>) -> String {
    render(columns, rows, print::width().map(usize::from))
}

fn render<const N: usize>(
    columns: [Column; N],
    rows: Vec<[String; N]>,
    width: Option<usize>,
) -> String {
    let header = columns.map(|column| column.title().to_owned());
    let rows: Vec<[String; N]> = std::iter::once(header).chain(rows).collect();
    let natural: [usize; N] = std::array::from_fn(|index| {
        let cells = rows.iter().map(|row| row[index].width());
        cells.max().unwrap_or(0)
    });
    let least: [usize; N] = std::array::from_fn(|index| match columns[index] {
        Column::Words(_) => rows.iter().map(|row| longest_word(&row[index])).max(),
        _ => Some(natural[index]),
    })
    .map(Option::unwrap_or_default);
    let Some(widths) = fit(natural, least, width) else {
        return blocks(&rows, width.unwrap_or(usize::MAX));
    };
    let heights: Vec<Vec<String>> = rows
        .iter()
        .map(|row| lines(&columns, &widths, row))
        .collect();
    if heights.iter().any(|lines| lines.len() > TALLEST) {
        return blocks(&rows, width.unwrap_or(usize::MAX));
    }
    heights.concat().join("\n")
}

/// The widths of all columns. Where there is no room, the widest columns of words give way first.
/// None where a word would have to be broken apart.
fn fit<const N: usize>(
    natural: [usize; N],
    least: [usize; N],
    width: Option<usize>,
) -> Option<[usize; N]> {
    let Some(width) = width else {
        return Some(natural);
    };
    let room = width.checked_sub(GAP * N.saturating_sub(1))?;
    let mut spare = room.checked_sub(least.iter().sum())?;
    let mut widths = least;
    let mut columns: Vec<usize> = (0..N).collect();
    columns.sort_by_key(|&index| natural[index] - least[index]);
    for (done, index) in columns.into_iter().enumerate() {
        let share = (natural[index] - least[index]).min(spare / (N - done));
        widths[index] += share;
        spare -= share;
    }
    Some(widths)
}

/// The width of the longest part that stays in one line.
fn longest_word(cell: &str) -> usize {
    let widths = parts(cell).into_iter().map(|part| part.trim_end().width());
    widths.max().unwrap_or(0).min(LONGEST_WORD)
}

/// Each row as lines of title and cell, with an empty line between two rows.
fn blocks<const N: usize>(rows: &[[String; N]], width: usize) -> String {
    let Some((titles, rows)) = rows.split_first() else {
        return String::new();
    };
    let side = titles.iter().map(|title| title.width()).max().unwrap_or(0) + GAP;
    let block = |row: &[String; N]| {
        let filled = titles.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let lines = filled.flat_map(|(title, cell)| {
            let wrapped = wrap(cell, width.saturating_sub(side).max(LONGEST_WORD));
            let line = |(number, text): (usize, String)| {
                let title = if number == 0 { title.as_str() } else { "" };
                format!("{title}{}{text}", " ".repeat(side - title.width()))
            };
            wrapped
                .into_iter()
                .enumerate()
                .map(line)
                .collect::<Vec<_>>()
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// A row is as many lines as its longest cell.
fn lines<const N: usize>(
    columns: &[Column; N],
    widths: &[usize; N],
    row: &[String; N],
) -> Vec<String> {
    let cells: [Vec<String>; N] = std::array::from_fn(|index| wrap(&row[index], widths[index]));
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let mut line = String::new();
        for (index, column) in columns.iter().enumerate() {
            let text = cells[index].get(number).map_or("", String::as_str);
            let space = " ".repeat(widths[index].saturating_sub(text.width()));
            let gap = if index == 0 { 0 } else { GAP };
            line.push_str(&" ".repeat(gap));
            match column {
                Column::Number(_) => line.extend([space.as_str(), text]),
                _ => line.extend([text, space.as_str()]),
            }
        }
        line.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// The parts of a cell that stay in one line. Ids, dates and times are whole.
fn parts(cell: &str) -> Vec<&str> {
    let (mut parts, mut start, mut before) = (Vec::new(), 0, ' ');
    let mut letters = cell.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map_or(' ', |(_, next)| *next);
        let is_time = before.is_ascii_digit() && next.is_ascii_digit();
        let ends = match letter {
            ' ' | '/' | ',' => true,
            ':' => !is_time,
            _ => false,
        };
        if ends {
            let end = at + letter.len_utf8();
            parts.push(&cell[start..end]);
            start = end;
        }
        before = letter;
    }
    parts.push(&cell[start..]);
    parts
}

/// The lines of a cell. Keys and names of models are broken behind their colons and slashes.
fn wrap(cell: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for part in parts(cell) {
        if !line.is_empty() && line.width() + part.trim_end().width() > width {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        }
        for letter in part.chars() {
            if line.width() + letter.width().unwrap_or(0) > width && letter != ' ' {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            line.push(letter);
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn agents(width: Option<usize>) -> String {
        let row = |id: &str, name: &str, model: &str, count: &str| {
            [id, name, model, count, "archived as rose-20261117"].map(str::to_owned)
        };
        render(
            [
                Column::Whole("ID"),
                Column::Words("NAME"),
                Column::Words("MODEL"),
                Column::Number("MEMORIES"),
                Column::Words("STATE"),
            ],
            vec![
                row("rose", "🌹 Rose", "anthropic/claude-sonnet-5", "3"),
                row("night-desk", "Night Desk", "openai/gpt-5.4", "1204"),
            ],
            width,
        )
    }

    #[test]
    fn tables_fit_sixty_columns() {
        let told = agents(Some(60));
        assert!(told.lines().all(|line| line.width() <= 60), "{told}");
        assert_snapshot!(told, @"
        ID          NAME   MODEL            MEMORIES  STATE
        rose        🌹     anthropic/              3  archived as
                    Rose   claude-sonnet-5            rose-20261117
        night-desk  Night  openai/gpt-5.4       1204  archived as
                    Desk                              rose-20261117
        ");
    }

    #[test]
    fn rows_become_blocks_where_words_would_break() {
        assert_snapshot!(agents(Some(44)), @"
        ID        rose
        NAME      🌹 Rose
        MODEL     anthropic/claude-sonnet-5
        MEMORIES  3
        STATE     archived as rose-20261117

        ID        night-desk
        NAME      Night Desk
        MODEL     openai/gpt-5.4
        MEMORIES  1204
        STATE     archived as rose-20261117
        ");
        let told = agents(Some(50));
        assert!(told.lines().all(|line| line.width() <= 50), "{told}");
    }

    #[test]
    fn tables_in_a_pipe_have_a_line_for_each_row() {
        assert_eq!(agents(None).lines().count(), 3);
        assert_eq!(agents(Some(200)), agents(None));
    }

    #[test]
    fn words_without_a_sign_are_broken_anywhere() {
        let check = |cell, width, expected: &[&str]| assert_eq!(wrap(cell, width), expected);
        check("", 8, &[""]);
        check("one two", 7, &["one two"]);
        check("one two", 6, &["one", "two"]);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("日本語です", 4, &["日本", "語で", "す"]);
        check(
            "telegram:topic:-100:7",
            10,
            &["telegram:", "topic:", "-100:7"],
        );
    }
}
