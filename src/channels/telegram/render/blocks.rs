//! The layout of blocks: headings, lists, quotes, code and tables.

use std::ops::Range;

use pulldown_cmark::{Alignment, BlockQuoteKind, CodeBlockKind, TagEnd};

use super::entities::EntityKind;
use super::layout::Layout;
use crate::channels::markdown::split_info;
use crate::channels::markdown::table::Table;

pub(super) const RULE: &str = "———";
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
const ITEM_INDENT: &str = "  ";
/// Telegram does not nest quotes.
const INNER_QUOTE: &str = "> ";

/// Line breaks for a blank line.
const BLANK_LINE: usize = 2;

/// An open code block.
pub(super) struct CodeBlock {
    start: usize,
    language: Option<String>,
}

impl Layout<'_> {
    /// Blocks are as far apart as their author put them: with a blank line between or without.
    pub(super) fn begin_block(&mut self, source_start: usize) {
        let skipped = self.cursor.min(source_start)..source_start;
        let breaks = self.source[skipped.clone()]
            .matches('\n')
            .take(BLANK_LINE)
            .count()
            .max(1);
        self.definitions.skip(self.source, skipped);
        self.cursor = self.cursor.max(source_start);
        self.spoilers.end_block();
        self.writer.separate(breaks);
    }

    pub(super) fn write_block(&mut self, text: &str, source_start: usize) {
        self.begin_block(source_start);
        self.writer.write(text);
    }

    /// The source is dealt with up to here.
    pub(super) fn pass(&mut self, source_end: usize) {
        let end = self.source.floor_char_boundary(source_end);
        self.cursor = self.cursor.max(self.source[..end].trim_end().len());
    }

    pub(super) fn start_heading(&mut self, source_start: usize) {
        self.begin_block(source_start);
        self.writer.separate(BLANK_LINE);
        self.heading_start = self.writer.position();
        self.writer.open(EntityKind::Bold);
    }

    pub(super) fn end_heading(&mut self, source: &Range<usize>) {
        if self.writer.text().len() == self.heading_start {
            self.writer.write_lines(self.source[source.clone()].trim());
        }
        self.writer.close(EntityKind::Bold);
        self.writer.separate(BLANK_LINE);
    }

    pub(super) fn start_list(&mut self, first_number: Option<u64>, source_start: usize) {
        self.begin_block(source_start);
        self.lists.push(first_number);
    }

    pub(super) fn start_item(&mut self, source_start: usize) {
        self.begin_block(source_start);
        self.writer.leave_marker();
        let source = self.source[source_start..].trim_start();
        let digits = source.bytes().take_while(u8::is_ascii_digit).count();
        match self.lists.last_mut() {
            Some(Some(least)) => {
                // Authors count 3, 5, 8 or leave all at 1, 1, 1: the author's number is kept while
                // numbers ascend.
                let number = source[..digits].parse().unwrap_or(*least).max(*least);
                *least = number + 1;
                let delimiter = source[digits..].chars().next().unwrap_or('.');
                self.writer.write_marker(&format!("{number}{delimiter} "));
            }
            _ => self.writer.write_marker(self.bullet()),
        }
        self.pass(self.source.len() - source.len() + digits + 1);
        self.writer.push_prefix(ITEM_INDENT);
    }

    /// The bullet of the innermost list.
    pub(super) fn bullet(&self) -> &'static str {
        BULLETS[self.lists.len().clamp(1, BULLETS.len()) - 1]
    }

    pub(super) fn start_footnote(&mut self, label: &str, source_start: usize) {
        self.begin_block(source_start);
        let marker = format!("[^{label}]: ");
        self.writer.write_marker(&marker);
        self.pass(source_start + marker.trim_end().len());
    }

    pub(super) fn start_quote(&mut self, kind: Option<BlockQuoteKind>, source_start: usize) {
        self.begin_block(source_start);
        self.writer.leave_marker();
        if !self.quotes.is_empty() {
            self.writer.push_prefix(INNER_QUOTE);
        }
        let start = self.writer.line_start();
        self.quotes.push(start);
        if let Some(kind) = kind {
            self.write_alert(kind);
        }
    }

    fn write_alert(&mut self, kind: BlockQuoteKind) {
        self.writer.open(EntityKind::Bold);
        self.writer.write(alert_title(kind));
        self.writer.close(EntityKind::Bold);
        let rest = &self.source[self.cursor..];
        self.pass(self.cursor + rest.find('\n').unwrap_or(rest.len()));
    }

    pub(super) fn start_code(&mut self, kind: &CodeBlockKind, source_start: usize) {
        self.begin_block(source_start);
        self.writer.leave_marker();
        let (language, remainder) = match kind {
            CodeBlockKind::Fenced(info) => split_info(info),
            CodeBlockKind::Indented => (None, ""),
        };
        self.writer.write(remainder);
        self.writer.separate(1);
        let start = self.writer.line_start();
        self.code_block = Some(CodeBlock { start, language });
    }

    /// Empty code is shown as its fences.
    pub(super) fn end_code(&mut self, source: &Range<usize>) {
        let Some(CodeBlock { start, language }) = self.code_block.take() else {
            return;
        };
        let code_end = self.writer.text().trim_end().len();
        if code_end > start {
            self.writer.truncate(code_end);
            self.writer
                .add(EntityKind::Pre { language }, start..code_end);
        } else {
            self.writer.truncate(start);
            self.writer.write_lines(self.source[source.clone()].trim());
        }
    }

    pub(super) fn write_table(
        &mut self,
        table: &Table,
        alignments: &[Alignment],
        source: &Range<usize>,
    ) {
        self.begin_block(source.start);
        self.writer.leave_marker();
        let start = self.writer.line_start();
        self.writer.write_raw(&table.draw(alignments));
        self.writer.add(
            EntityKind::Pre { language: None },
            start..self.writer.text().len(),
        );
        self.pass(source.end);
    }

    pub(super) fn end_container(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::List(_) => _ = self.lists.pop(),
            TagEnd::Item => {
                self.writer.pop_prefix();
                self.writer.forget_marker();
            }
            TagEnd::BlockQuote(_) => self.end_quote(),
            _ => self.writer.forget_marker(),
        }
    }

    fn end_quote(&mut self) {
        let Some(start) = self.quotes.pop() else {
            return;
        };
        match self.quotes.is_empty() {
            true => self
                .writer
                .add(EntityKind::Blockquote, start..self.writer.text().len()),
            false => self.writer.pop_prefix(),
        }
    }

    /// Definitions without a visible link are text too.
    pub(super) fn write_definitions(&mut self) {
        self.definitions
            .skip(self.source, self.cursor..self.source.len());
        self.writer.separate(BLANK_LINE);
        for line in self.definitions.unused(self.source) {
            self.writer.separate(1);
            self.writer.write(line);
        }
    }
}

fn alert_title(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => "Note",
        BlockQuoteKind::Tip => "Tip",
        BlockQuoteKind::Important => "Important",
        BlockQuoteKind::Warning => "Warning",
        BlockQuoteKind::Caution => "Caution",
    }
}
