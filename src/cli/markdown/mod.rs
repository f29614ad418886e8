//! Markdown for a terminal: wrapped by words, with bold, code, lists, quotes and tables drawn.
//!
//! A renderer of our own on the events of the parser that the platforms use too: an answer is drawn
//! block by block while it is written, which the known crates cannot, and they bring a second parser.

mod wrap;

use std::ops::Range;

use comfy_table::{ContentArrangement, ContentLineStyle, LineStyle, TableStyle};
use pulldown_cmark::{Alignment, Event, Parser, Tag, TagEnd};

use super::color::Style;
use crate::channels::markdown::links::OpenLink;
use crate::channels::markdown::table::Table;
use crate::channels::markdown::{options, prepared};
use crate::printable::printable;

pub(super) use wrap::columns;
use wrap::{Cell, Look, cells, cut, wrap};

const BOLD: u8 = 1;
const DIM: u8 = 2;
const ITALIC: u8 = 3;
const UNDERLINED: u8 = 4;
const STRUCK: u8 = 9;
const CYAN: u8 = 36;

/// Columns of a tab in code.
const TAB: &str = "    ";
/// Lists and quotes inside each other leave at least this many columns.
const LEAST_COLUMNS: usize = 10;
/// A line across is no longer than this.
const MOST_RULE: usize = 40;

/// Lines between the columns and below the head.
const TABLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction('│'))
    .header_separator(LineStyle::none().fill('─').junction('┼'))
    .content_lines(ContentLineStyle::none().junction('│'));

/// The paper to write on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    pub(super) style: Style,
    pub(super) width: usize,
}

impl Paper {
    /// The whole text as lines. `lead` stands before the first words, such as the speaker's name.
    pub(super) fn draw(self, markdown: &str, lead: Option<&str>) -> Vec<String> {
        let markdown = printable(markdown);
        let markdown = prepared(&markdown);
        let mut drawing = Drawing::new(self, &markdown, lead);
        let mut events = Parser::new_ext(&markdown, options()).into_offset_iter();
        while let Some((event, range)) = events.next() {
            if let Event::Start(Tag::Table(alignments)) = event {
                let table = Table::read(&markdown, &mut events);
                drawing.table(&table, &alignments);
            } else {
                drawing.event(event, range);
            }
        }
        drawing.finish()
    }

    /// A part of a text, set apart from the part before.
    pub(super) fn block(self, markdown: &str, lead: Option<&str>, is_apart: bool) -> Vec<String> {
        let mut lines = self.draw(markdown, lead);
        if is_apart && !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }

    /// Plain words, wrapped.
    pub(super) fn lines(self, text: &str) -> Vec<String> {
        let words = cells(&printable(text), &[]).collect();
        let text = |line: Vec<Cell>| line.into_iter().map(|cell| cell.text).collect();
        wrap(words, self.width, self.width)
            .into_iter()
            .map(text)
            .collect()
    }
}

/// Where the last block of an unfinished text begins. All blocks before stay as they are.
pub(super) fn unfinished(markdown: &str) -> usize {
    let (mut depth, mut last) = (0_usize, 0);
    let settled = without_begun_row(markdown);
    for (event, range) in Parser::new_ext(settled, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => last = range.start,
            _ => {}
        }
    }
    // The parser takes no part of a line's indent into a block.
    markdown[..last].rfind('\n').map_or(0, |at| at + 1)
}

/// The first character of a row looks like the end of its table.
fn without_begun_row(markdown: &str) -> &str {
    let line = markdown.rfind('\n').map_or(0, |at| at + 1);
    if markdown[line..].trim_start().starts_with('|') {
        &markdown[..line]
    } else {
        markdown
    }
}

/// A list, a quote or a note around the lines.
struct Frame {
    /// Before the first line only, such as a bullet.
    first: Option<String>,
    rest: String,
}

/// The number of the next item; none in a list with bullets.
struct List {
    next: Option<u64>,
}

struct Drawing<'a> {
    paper: Paper,
    source: &'a str,
    lines: Vec<String>,
    frames: Vec<Frame>,
    lists: Vec<List>,
    /// Words of the block at hand.
    words: Vec<Cell>,
    look: Vec<u8>,
    links: Vec<OpenLink>,
    code: Option<String>,
    lead: Option<String>,
    /// The next block is set apart by an empty line.
    is_apart: bool,
}

impl<'a> Drawing<'a> {
    fn new(paper: Paper, source: &'a str, lead: Option<&str>) -> Self {
        Drawing {
            paper,
            source,
            lines: Vec::new(),
            frames: Vec::new(),
            lists: Vec::new(),
            words: Vec::new(),
            look: Look::new(),
            links: Vec::new(),
            code: None,
            lead: lead.map(str::to_owned),
            is_apart: false,
        }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.inline_code(&text),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(label) => self.text(&format!("[^{label}]")),
            // A single line break is meant by people who write in a chat.
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => self.rule(),
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
        }
        debug_assert!(range.end <= self.source.len());
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.set_apart(),
            Tag::Heading { .. } => {
                self.set_apart();
                self.look.push(BOLD);
            }
            Tag::BlockQuote(kind) => {
                self.set_apart();
                self.frame(None, "│ ".to_owned());
                if let Some(kind) = kind {
                    self.look.push(BOLD);
                    self.text(&format!("{kind:?}"));
                    self.look.pop();
                    self.end_block();
                }
            }
            // The frame shows that it is code; the name of its language would look like a line of it.
            Tag::CodeBlock(_) => self.begin_code(),
            Tag::List(first) => {
                self.end_block();
                if self.lists.is_empty() {
                    self.set_apart();
                }
                self.lists.push(List { next: first });
            }
            Tag::Item => self.begin_item(),
            Tag::FootnoteDefinition(label) => {
                self.set_apart();
                self.frame(Some(format!("[^{label}]: ")), "    ".to_owned());
            }
            Tag::Emphasis => self.look.push(ITALIC),
            Tag::Strong => self.look.push(BOLD),
            Tag::Strikethrough => {
                self.strike();
                self.look.push(STRUCK);
            }
            Tag::Link {
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
            } => {
                let link = OpenLink::new(link_type, &dest_url, &title, self.words.len());
                self.links.push(link.in_words());
                self.look.push(UNDERLINED);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.end_block();
                self.look.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition => {
                self.end_block();
                self.frames.pop();
                self.is_apart = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_apart = self.lists.is_empty();
            }
            TagEnd::Item => self.end_item(),
            TagEnd::Emphasis | TagEnd::Strong => drop(self.look.pop()),
            TagEnd::Strikethrough => {
                self.look.pop();
                self.strike();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => {
                let text = text.replace('\t', " ");
                self.words.extend(cells(&text, &self.look));
            }
        }
    }

    /// Words that are struck out mean the opposite, so a mark tells where no line can be drawn
    /// through them. Everything else reads well without its marks.
    fn strike(&mut self) {
        if !self.paper.style.is_coloured() {
            self.words.extend(cells("~~", &self.look));
        }
    }

    fn inline_code(&mut self, text: &str) {
        self.look.push(CYAN);
        self.text(text);
        self.look.pop();
    }

    fn end_link(&mut self) {
        self.look.pop();
        let Some(link) = self.links.pop() else { return };
        let shown = self.words.get(link.start..).unwrap_or_default();
        let shown: String = shown.iter().map(|cell| cell.text.as_str()).collect();
        self.look.push(DIM);
        self.text(&link.remainder(&shown));
        self.look.pop();
    }

    fn frame(&mut self, first: Option<String>, rest: String) {
        self.frames.push(Frame { first, rest });
    }

    fn begin_item(&mut self) {
        self.end_block();
        let bullet = match self.lists.last_mut() {
            Some(List { next: Some(number) }) => {
                let bullet = format!("{number}. ");
                *number += 1;
                bullet
            }
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(columns(&bullet));
        self.frame(Some(bullet), rest);
        self.is_apart = self.is_apart && self.lists.len() == 1;
    }

    fn end_item(&mut self) {
        self.end_block();
        // An item without words is seen too.
        if self
            .frames
            .last()
            .is_some_and(|frame| frame.first.is_some())
        {
            self.line("");
        }
        self.frames.pop();
        self.is_apart = false;
    }

    fn begin_code(&mut self) {
        self.end_block();
        self.set_apart();
        self.code = Some(String::new());
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        self.frame(None, "  ".to_owned());
        let width = self.room();
        for line in code.trim_end_matches('\n').split('\n') {
            let line = cells(&line.replace('\t', TAB), &[CYAN]).collect();
            for line in cut(line, width) {
                self.draw_line(&line);
            }
        }
        self.frames.pop();
        self.is_apart = true;
    }

    fn table(&mut self, table: &Table, alignments: &[Alignment]) {
        self.end_block();
        self.set_apart();
        self.own_lead();
        let mut drawn = comfy_table::Table::new();
        drawn
            .load_style(TABLE)
            .set_content_arrangement(ContentArrangement::Dynamic);
        drawn.set_width(u16::try_from(self.room()).unwrap_or(u16::MAX));
        let mut rows = table.rows().iter();
        if let Some(head) = rows.next() {
            drawn.set_header(head);
        }
        drawn.add_rows(rows);
        for (column, alignment) in drawn.column_iter_mut().zip(alignments) {
            column.set_cell_alignment(match alignment {
                Alignment::None | Alignment::Left => comfy_table::CellAlignment::Left,
                Alignment::Center => comfy_table::CellAlignment::Center,
                Alignment::Right => comfy_table::CellAlignment::Right,
            });
        }
        for line in drawn.to_string().lines() {
            self.line(line.trim_end());
        }
        self.is_apart = true;
    }

    fn rule(&mut self) {
        self.end_block();
        self.set_apart();
        let rule = Cell {
            text: "─".repeat(self.room().min(MOST_RULE)),
            look: vec![DIM],
        };
        self.draw_line(&[rule]);
        self.is_apart = true;
    }

    /// Ends the block before, and leaves an empty line where one is due.
    fn set_apart(&mut self) {
        self.end_block();
        if self.is_apart && !self.lines.is_empty() {
            let empty = self.before_line();
            self.lines.push(empty.trim_end().to_owned());
        }
        self.is_apart = false;
    }

    /// Draws the words of a block.
    fn end_block(&mut self) {
        if self.words.is_empty() {
            return;
        }
        let words = std::mem::take(&mut self.words);
        let room = self.room();
        let lead = self.lead.take();
        let taken = lead
            .as_deref()
            .map_or(0, |lead| columns(&without_escapes(lead)) + 1);
        let fits = self.frames.is_empty() && taken < room;
        let mut lead = match lead {
            Some(lead) if fits => format!("{lead} "),
            Some(lead) => {
                self.lines.push(lead);
                String::new()
            }
            None => String::new(),
        };
        let first = if lead.is_empty() { room } else { room - taken };
        for line in wrap(words, first, room) {
            let before = self.before_line();
            let drawn = self.styled(&line);
            let lead = std::mem::take(&mut lead);
            self.lines
                .push(format!("{before}{lead}{drawn}").trim_end().to_owned());
        }
        self.is_apart = true;
    }

    fn line(&mut self, text: &str) {
        let before = self.before_line();
        self.lines.push(format!("{before}{text}"));
    }

    fn draw_line(&mut self, cells: &[Cell]) {
        self.own_lead();
        let drawn = self.styled(cells);
        self.line(&drawn);
    }

    /// The name of the speaker has a line of its own above code and tables.
    fn own_lead(&mut self) {
        if let Some(lead) = self.lead.take() {
            self.lines.push(lead);
        }
    }

    /// Bars and bullets at the beginning of the next line.
    fn before_line(&mut self) -> String {
        let mut before = String::new();
        for frame in &mut self.frames {
            before += &frame.first.take().unwrap_or_else(|| frame.rest.clone());
        }
        before
    }

    /// Columns for words inside the frames.
    fn room(&self) -> usize {
        let frames: usize = self.frames.iter().map(|frame| columns(&frame.rest)).sum();
        self.paper.width.saturating_sub(frames).max(LEAST_COLUMNS)
    }

    fn styled(&self, line: &[Cell]) -> String {
        let mut drawn = String::new();
        let mut look: &[u8] = &[];
        for cell in line {
            if cell.look != look && self.paper.style.is_coloured() {
                if !look.is_empty() {
                    drawn += "\u{1b}[0m";
                }
                if !cell.look.is_empty() {
                    let codes: Vec<String> = cell.look.iter().map(u8::to_string).collect();
                    drawn += &format!("\u{1b}[{}m", codes.join(";"));
                }
                look = &cell.look;
            }
            drawn += &cell.text;
        }
        if !look.is_empty() {
            drawn += "\u{1b}[0m";
        }
        drawn
    }

    fn finish(mut self) -> Vec<String> {
        self.end_block();
        self.own_lead();
        self.lines
    }
}

/// The words of a coloured text.
pub(super) fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once("\u{1b}[") {
        plain += before;
        rest = escape.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests;
