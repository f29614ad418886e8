//! Lays Markdown out as a text with styled spans, before any limit counts.
//!
//! Nothing gets lost: Markdown without a style in Telegram becomes plain text.

use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, Parser, Tag, TagEnd};

use super::blocks::{CodeBlock, RULE};
use super::definitions::Definitions;
use super::entities::EntityKind;
use super::spoilers::Spoilers;
use super::writer::{Styled, Writer};
use crate::channels::markdown::links::OpenLink;
use crate::channels::markdown::table::Table;
use crate::channels::markdown::{options, prepared};

/// Lays out a whole answer.
pub(super) fn lay_out(markdown: &str) -> Styled {
    let source = prepared(markdown);
    let mut events = Parser::new_ext(&source, options()).into_offset_iter();
    let mut layout = Layout::new(&source, Definitions::new(events.reference_definitions()));
    while let Some((event, range)) = events.next() {
        match event {
            Event::Start(Tag::Table(alignments)) => {
                layout.write_table(&Table::read(&source, &mut events), &alignments, &range);
            }
            event => layout.take(event, range),
        }
    }
    layout.finish()
}

/// Follows the parser and remembers open elements.
pub(super) struct Layout<'a> {
    pub(super) source: &'a str,
    /// How far the source is dealt with.
    pub(super) cursor: usize,
    pub(super) writer: Writer,
    pub(super) definitions: Definitions,
    /// For each open list the least number its next item may have, or none for bullets.
    pub(super) lists: Vec<Option<u64>>,
    /// Where each open quote began.
    pub(super) quotes: Vec<usize>,
    pub(super) code_block: Option<CodeBlock>,
    pub(super) heading_start: usize,
    pub(super) spoilers: Spoilers,
    links: Vec<OpenLink>,
    /// How many emphases and links are open.
    depth: usize,
}

impl<'a> Layout<'a> {
    fn new(source: &'a str, definitions: Definitions) -> Self {
        Layout {
            source,
            cursor: 0,
            writer: Writer::with_capacity(source.len()),
            definitions,
            lists: Vec::new(),
            quotes: Vec::new(),
            code_block: None,
            heading_start: 0,
            spoilers: Spoilers::default(),
            links: Vec::new(),
            depth: 0,
        }
    }

    /// Syntax around nothing, like a lone `#`, was meant as text.
    fn finish(mut self) -> Styled {
        self.write_definitions();
        let styled = self.spoilers.erase_marks(self.writer.finish());
        match styled.text.trim().is_empty() {
            true => Styled {
                text: self.source.to_owned(),
                spans: Vec::new(),
            },
            false => styled,
        }
    }

    fn take(&mut self, event: Event<'a>, range: Range<usize>) {
        match event {
            Event::Start(tag) => return self.start(tag, range),
            Event::End(tag) if is_container(tag) => return self.end_container(tag),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) => self.text(&text, range.start),
            Event::Code(code) => self.code(&code),
            Event::Html(text) | Event::InlineHtml(text) => self.writer.write_lines(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.writer.write(&text),
            Event::FootnoteReference(label) => self.writer.write(&format!("[^{label}]")),
            Event::SoftBreak | Event::HardBreak => self.writer.break_line(),
            Event::Rule => self.write_block(RULE, range.start),
            Event::TaskListMarker(done) => self.writer.write_task(self.bullet(), done),
        }
        self.pass(range.end);
    }

    fn start(&mut self, tag: Tag<'a>, range: Range<usize>) {
        match tag {
            Tag::Heading { .. } => self.start_heading(range.start),
            Tag::BlockQuote(kind) => self.start_quote(kind, range.start),
            Tag::CodeBlock(kind) => self.start_code(&kind, range.start),
            Tag::List(first) => self.start_list(first, range.start),
            Tag::Item => self.start_item(range.start),
            Tag::FootnoteDefinition(label) => self.start_footnote(&label, range.start),
            Tag::Emphasis => self.open(EntityKind::Italic),
            Tag::Strong => self.open(EntityKind::Bold),
            Tag::Strikethrough => self.open(EntityKind::Strikethrough),
            Tag::Link {
                link_type,
                dest_url,
                title,
                ..
            } => self.start_link(link_type, &dest_url, &title),
            Tag::Image {
                link_type,
                dest_url,
                title,
                ..
            } => self.start_link(link_type, &dest_url, &title),
            _ => self.begin_block(range.start),
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Emphasis => self.close(EntityKind::Italic),
            TagEnd::Strong => self.close(EntityKind::Bold),
            TagEnd::Strikethrough => self.close(EntityKind::Strikethrough),
            TagEnd::Link | TagEnd::Image => self.end_link(range),
            TagEnd::Heading(_) => self.end_heading(range),
            TagEnd::CodeBlock => self.end_code(range),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, source_start: usize) {
        if self.code_block.is_some() {
            return self.writer.write_raw(text);
        }
        self.writer.write(text);
        let start = self.writer.text().len() - text.len();
        // The backslash itself is not in the text, but makes the next character ordinary.
        let escaped = self.source[..source_start].ends_with('\\');
        self.spoilers
            .scan(&mut self.writer, start + usize::from(escaped), self.depth);
    }

    /// Telegram shows a text as a link or as code, not both. The address is worth more.
    fn code(&mut self, code: &str) {
        match self.links.iter().any(|link| link.linked) {
            true => self.writer.write(code),
            false => self.writer.write_code(code),
        }
    }

    fn open(&mut self, kind: EntityKind) {
        self.depth += 1;
        self.writer.open(kind);
    }

    fn close(&mut self, kind: EntityKind) {
        self.depth -= 1;
        self.spoilers.leave(self.depth);
        self.writer.close(kind);
    }

    fn start_link(&mut self, link_type: LinkType, url: &CowStr, title: &CowStr) {
        self.depth += 1;
        let link = OpenLink::new(link_type, url, title, self.writer.position());
        // An image inside a link: a tap should lead to the outer address.
        let inside_link = self.links.iter().any(|outer| outer.linked);
        self.links
            .push(if inside_link { link.in_words() } else { link });
        self.definitions.use_url(url);
    }

    fn end_link(&mut self, range: &Range<usize>) {
        self.depth -= 1;
        self.spoilers.leave(self.depth);
        let Some(link) = self.links.pop() else { return };
        let start = link.start;
        let shown_end = self.writer.text().len();
        self.writer
            .write(&link.remainder(&self.writer.text()[start..]));
        if self.writer.text().len() == start {
            self.writer.write_lines(&self.source[range.clone()]);
        } else if link.linked {
            let end = if shown_end > start {
                shown_end
            } else {
                start + link.url.len()
            };
            self.writer
                .add(EntityKind::TextLink { url: link.url }, start..end);
        }
    }
}

/// The range of a container may hold link definitions, so its end does not tell how far the source
/// is read.
fn is_container(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::List(_) | TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition
    )
}
