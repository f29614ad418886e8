//! Draws a table with characters, since no platform has tables.

use std::ops::Range;

use pulldown_cmark::{Alignment, Event, Tag, TagEnd};
use unicode_segmentation::UnicodeSegmentation;

use super::links::OpenLink;

/// Cells beyond this width push their line out instead of every other line.
const MAX_COLUMN_WIDTH: usize = 40;

/// A table's cells as plain text. The first row is the head.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The row and cell at hand.
    row: Vec<String>,
    cell: String,
    links: Vec<OpenLink>,
    /// Where the source of the last cell ended.
    cell_end: usize,
}

impl Table {
    /// Reads to the table's end.
    pub(crate) fn read<'a>(
        source: &str,
        events: &mut impl Iterator<Item = (Event<'a>, Range<usize>)>,
    ) -> Table {
        let mut table = Table::default();
        for (event, range) in events {
            match event {
                Event::Start(tag) => table.start(tag),
                Event::End(TagEnd::Table) => break,
                Event::End(tag) => table.end(tag, source, range),
                Event::Text(text)
                | Event::Code(text)
                | Event::Html(text)
                | Event::InlineHtml(text) => table.cell.push_str(&text),
                Event::InlineMath(text) | Event::DisplayMath(text) => table.cell.push_str(&text),
                Event::FootnoteReference(label) => table.cell.push_str(&format!("[^{label}]")),
                Event::SoftBreak | Event::HardBreak => table.cell.push(' '),
                Event::Rule | Event::TaskListMarker(_) => {}
            }
        }
        table
    }

    /// The cells, the head first.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Draws aligned columns and a line below the head.
    pub(crate) fn draw(&self, alignments: &[Alignment]) -> String {
        let widths = self.column_widths();
        let mut lines: Vec<String> = self
            .rows
            .iter()
            .map(|row| draw_row(row, &widths, alignments))
            .collect();
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        lines.insert(lines.len().min(1), rules.join("─┼─"));
        lines.join("\n")
    }

    fn start(&mut self, tag: Tag) {
        if let Tag::Link {
            link_type,
            dest_url,
            title,
            ..
        }
        | Tag::Image {
            link_type,
            dest_url,
            title,
            ..
        } = tag
        {
            let link = OpenLink::new(link_type, &dest_url, &title, self.cell.len());
            // Inside code nothing can be linked.
            self.links.push(link.in_words());
        }
    }

    fn end(&mut self, tag: TagEnd, source: &str, range: Range<usize>) {
        match tag {
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                self.row.push(std::mem::take(&mut self.cell));
                self.cell_end = range.end;
            }
            TagEnd::TableHead | TagEnd::TableRow => self.end_row(source, range.end),
            _ => {}
        }
    }

    fn end_link(&mut self) {
        if let Some(link) = self.links.pop() {
            let remainder = link.remainder(&self.cell[link.start..]);
            self.cell.push_str(&remainder);
        }
    }

    /// Markdown drops cells beyond the head's; they are text all the same.
    fn end_row(&mut self, source: &str, end: usize) {
        let surplus = source
            .get(self.cell_end..end)
            .unwrap_or_default()
            .trim()
            .trim_matches('|')
            .trim();
        if let Some(last) = self.row.last_mut()
            && !surplus.is_empty()
        {
            last.push_str(" | ");
            last.push_str(surplus);
        }
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn column_widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths = vec![1; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = width_of(cell).clamp(*width, MAX_COLUMN_WIDTH);
            }
        }
        widths
    }
}

fn draw_row(row: &[String], widths: &[usize], alignments: &[Alignment]) -> String {
    let alignments = alignments
        .iter()
        .copied()
        .chain(std::iter::repeat(Alignment::None));
    let cells: Vec<String> = row
        .iter()
        .zip(widths)
        .zip(alignments)
        .map(|((cell, &width), at)| pad(cell, width, at))
        .collect();
    cells.join(" │ ").trim_end().to_owned()
}

fn pad(cell: &str, width: usize, alignment: Alignment) -> String {
    let room = width.saturating_sub(width_of(cell));
    let left = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    format!("{}{cell}{}", " ".repeat(left), " ".repeat(room - left))
}

/// The columns of a text, as near as possible without the reader's font.
fn width_of(text: &str) -> usize {
    text.graphemes(true).count()
}
