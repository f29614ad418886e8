//! Separates code from text, and rewrites Markdown unknown to Discord.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Parser, Tag, TagEnd};

use crate::channels::markdown::table::Table;
use crate::channels::markdown::{options, prepared, split_info};

const RULE: &str = "———";
/// Heading levels known to Discord.
const MOST_HASHES: usize = 3;
/// The fence around code.
pub(super) const FENCE: &str = "```";

/// A stretch of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    Text(String),
    /// Without fences.
    Code {
        language: String,
        text: String,
    },
}

pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let source = prepared(markdown);
    let mut writer = Writer {
        source: &source,
        cursor: 0,
        text: String::new(),
        blocks: Vec::new(),
        links: Vec::new(),
        inner_end: 0,
    };
    let mut events = Parser::new_ext(&source, options()).into_offset_iter();
    while let Some((event, range)) = events.next() {
        match event {
            Event::Start(Tag::Table(alignments)) => {
                let table = Table::read(&source, &mut events).draw(&alignments);
                writer.code(range, "", &table);
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let code = read_code(&mut events);
                writer.code_block(range, &kind, &code);
            }
            event => writer.take(&event, range),
        }
    }
    writer.finish()
}

fn read_code<'a>(events: &mut impl Iterator<Item = (Event<'a>, Range<usize>)>) -> String {
    let inside = events.take_while(|(event, _)| !matches!(event, Event::End(TagEnd::CodeBlock)));
    inside
        .filter_map(|(event, _)| {
            if let Event::Text(text) = event {
                Some(text)
            } else {
                None
            }
        })
        .fold(String::new(), |all, text| all + &text)
}

/// Copies the source with replacements.
struct Writer<'a> {
    source: &'a str,
    /// How far the source is dealt with.
    cursor: usize,
    text: String,
    blocks: Vec<Block>,
    /// The addresses of open reference links; none for unchanged links.
    links: Vec<Option<String>>,
    /// Where the last thing inside a link ended.
    inner_end: usize,
}

impl Writer<'_> {
    fn take(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Rule => {
                let end = range.start + self.source[range.clone()].trim_end().len();
                self.replace(range.start..end, RULE);
            }
            Event::Start(Tag::Heading { level, .. }) => self.heading(range.clone(), *level),
            // An image becomes a link: Discord previews the address.
            Event::Start(Tag::Image { .. }) if self.source[range.start..].starts_with('!') => {
                self.replace(range.start..range.start + 1, "");
                self.links.push(None);
            }
            Event::Start(
                Tag::Link {
                    link_type,
                    dest_url,
                    ..
                }
                | Tag::Image {
                    link_type,
                    dest_url,
                    ..
                },
            ) => {
                let by_reference = matches!(
                    link_type,
                    LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut
                );
                self.links.push(by_reference.then(|| dest_url.to_string()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(&range),
            Event::Text(_) => self.plain(range.clone()),
            Event::Code(code) if self.source[range.clone()].starts_with(FENCE) => {
                self.replace(range.clone(), &span(code));
            }
            _ => {}
        }
        let ends_inside = !matches!(event, Event::Start(_));
        if ends_inside {
            self.inner_end = self.inner_end.max(range.end);
        }
    }

    /// Discord finds emphasis where Markdown has none, as in `f(*a) + g(*b)`, so plain characters
    /// are escaped.
    fn plain(&mut self, range: Range<usize>) {
        let is_apart = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
        for (at, _) in self.source[range.clone()]
            .match_indices('*')
            .map(|(at, star)| (range.start + at, star))
        {
            let bytes = self.source.as_bytes();
            let (before, after) = (
                at.checked_sub(1).and_then(|before| bytes.get(before)),
                bytes.get(at + 1),
            );
            if before != Some(&b'\\') && !(is_apart(before) && is_apart(after)) {
                self.replace(at..at + 1, "\\*");
            }
        }
    }

    fn heading(&mut self, range: Range<usize>, level: HeadingLevel) {
        let written = &self.source[range.clone()];
        let hashes = written.bytes().take_while(|byte| *byte == b'#').count();
        let level = level as usize;
        if hashes > MOST_HASHES {
            self.replace(range.start..range.start + hashes - MOST_HASHES, "");
        } else if hashes == 0
            && let Some((title, _underline)) = written.trim_end().rsplit_once('\n')
        {
            let title_end = range.start + title.len();
            self.replace(range.start..range.start, &format!("{} ", "#".repeat(level)));
            self.copy(title_end);
            self.cursor = range.start + written.trim_end().len();
        }
    }

    /// `[text][label]` becomes `[text](address)`; the definitions stay where they are.
    fn end_link(&mut self, range: &Range<usize>) {
        let Some(Some(url)) = self.links.pop() else {
            return;
        };
        let inside = self.inner_end.clamp(range.start, range.end);
        let is_whole = inside >= self.cursor && !url.is_empty() && !url.contains([' ', ')', '\n']);
        let Some(close) = self.source[inside..range.end]
            .find(']')
            .filter(|_| is_whole)
        else {
            return;
        };
        self.copy(inside + close + 1);
        self.text.push_str(&format!("({url})"));
        self.cursor = range.end;
    }

    fn code_block(&mut self, range: Range<usize>, kind: &CodeBlockKind<'_>, code: &str) {
        let (language, remainder) = match kind {
            CodeBlockKind::Fenced(info) => split_info(info),
            CodeBlockKind::Indented => (None, ""),
        };
        let language = language.unwrap_or_default();
        let is_plain = language
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+#.-_".contains(&byte));
        self.copy(range.start);
        self.leave_line();
        let before = if is_plain {
            remainder.to_owned()
        } else {
            format!("{language} {remainder}")
        };
        self.text.push_str(&without_fences(&before, ESCAPED));
        if code.trim().is_empty() {
            // Of empty code the fences are shown as text, because nothing else would be visible.
            self.text
                .push_str(&without_fences(&self.source[range.clone()], ESCAPED));
            self.cursor = self.cursor.max(range.end);
            return;
        }
        self.code(range, if is_plain { &language } else { "" }, code);
    }

    fn code(&mut self, range: Range<usize>, language: &str, code: &str) {
        self.copy(range.start);
        self.leave_line();
        self.end_text();
        let text = without_fences(code.trim_end(), APART);
        self.blocks.push(Block::Code {
            language: language.to_owned(),
            text,
        });
        self.cursor = self.cursor.max(range.end);
    }

    /// Removes the marks of a quote or list before code, because a fence stands at the beginning of
    /// its line.
    fn leave_line(&mut self) {
        let line = self.text.rfind('\n').map_or(0, |at| at + 1);
        if self.text[line..]
            .chars()
            .all(|c| c.is_whitespace() || c == '>')
        {
            self.text.truncate(line);
        }
    }

    fn replace(&mut self, range: Range<usize>, with: &str) {
        if range.start >= self.cursor {
            self.copy(range.start);
            self.text.push_str(with);
            self.cursor = range.end;
        }
    }

    fn copy(&mut self, end: usize) {
        if end > self.cursor {
            self.text
                .push_str(&without_fences(&self.source[self.cursor..end], ESCAPED));
            self.cursor = end;
        }
    }

    fn end_text(&mut self) {
        // Joining two texts can make a fence that neither had.
        let text = with_whole_addresses(&without_fences(&std::mem::take(&mut self.text), ESCAPED));
        if !text.trim().is_empty() {
            self.blocks
                .push(Block::Text(text.trim_matches('\n').to_owned()));
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.copy(self.source.len());
        self.end_text();
        self.blocks
    }
}

/// Discord links a bare address with every character, so an escape would become part of the
/// address.
fn with_whole_addresses(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let end = rest[start..]
            .find(|c: char| c.is_whitespace() || c == '<')
            .map_or(rest.len(), |length| start + length);
        written.push_str(&rest[..start]);
        written.push_str(&rest[start..end].replace("\\*", "*"));
        rest = &rest[end..];
    }
    written + rest
}

/// Code within a line, in fewer backticks.
fn span(code: &str) -> String {
    let code = without_fences(code, APART);
    if code.contains('`') {
        format!("`` {code} ``")
    } else {
        format!("`{code}`")
    }
}

/// Separates the backticks of a fence inside code, invisibly.
const APART: &str = "\u{200b}";
const ESCAPED: &str = "\\";

fn without_fences(text: &str, before_each: &str) -> String {
    if !text.contains(FENCE) {
        return text.to_owned();
    }
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(FENCE) {
        let run = rest[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        written.push_str(&rest[..start]);
        (0..run).for_each(|_| written.extend([before_each, "`"]));
        rest = &rest[start + run..];
    }
    written + rest
}
