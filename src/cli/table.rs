//! Tables that fit the terminal: numbers and ids stay whole, words are wrapped.

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
/// Words get at least this much room, also where the table then is too wide.
const LEAST: usize = 8;

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
    let widths = fit(&columns, natural, width);
    let lines = rows.iter().flat_map(|row| lines(&columns, &widths, row));
    lines.collect::<Vec<_>>().join("\n")
}

/// The widths of all columns. Where there is no room, the widest columns of words give way first.
fn fit<const N: usize>(
    columns: &[Column; N],
    natural: [usize; N],
    width: Option<usize>,
) -> [usize; N] {
    let Some(width) = width else { return natural };
    let mut widths = natural;
    let mut room = width.saturating_sub(GAP * N.saturating_sub(1));
    let mut words = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        match column {
            Column::Words(_) => words.push(index),
            _ => room = room.saturating_sub(natural[index]),
        }
    }
    words.sort_by_key(|index| natural[*index]);
    let mut left = words.len();
    for index in words {
        let share = (room / left).max(LEAST);
        widths[index] = natural[index].min(share);
        room = room.saturating_sub(widths[index]);
        left -= 1;
    }
    widths
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

/// The lines of a cell. Keys and names of models are broken behind their signs.
fn wrap(cell: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for part in cell.split_inclusive([' ', '/', ':', '-', ',']) {
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
        ID          NAME        MODEL         MEMORIES  STATE
        rose        🌹 Rose     anthropic/           3  archived as
                                claude-                 rose-
                                sonnet-5                20261117
        night-desk  Night Desk  openai/gpt-       1204  archived as
                                5.4                     rose-
                                                        20261117
        ");
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
            &["telegram:", "topic:-", "100:7"],
        );
    }
}
