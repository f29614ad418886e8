//! Collects text and styled spans, and keeps line breaks, indentation and code in order.

use std::ops::Range;

use super::entities::EntityKind;

/// Deeper levels are not indented further: a phone has no room, and short input could grow long.
const MAX_PREFIXES: usize = 8;

/// Text of any length with its spans.
#[derive(Debug, Default)]
pub(super) struct Styled {
    pub(super) text: String,
    /// By start.
    pub(super) spans: Vec<Span>,
}

/// A styled stretch, in bytes of the text.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) kind: EntityKind,
    pub(super) range: Range<usize>,
}

/// The text so far.
#[derive(Debug)]
pub(super) struct Writer {
    text: String,
    spans: Vec<Span>,
    open: Vec<OpenStyle>,
    /// The beginning of each line: a piece for every list item and inner quote around the line.
    prefixes: Vec<&'static str>,
    /// Line breaks that become text when more text follows.
    breaks: usize,
    at_line_start: bool,
    /// The next block stands beside the marker, not below.
    after_marker: bool,
}

/// A style from `start` on.
#[derive(Debug)]
struct OpenStyle {
    kind: EntityKind,
    start: usize,
    /// How often the same style is opened again inside.
    nested: usize,
}

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Writer {
            text: String::with_capacity(bytes),
            spans: Vec::new(),
            open: Vec::new(),
            prefixes: Vec::new(),
            breaks: 0,
            at_line_start: true,
            after_marker: false,
        }
    }

    /// The text without line breaks at the end.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(super) fn finish(mut self) -> Styled {
        self.spans.sort_by_key(|span| span.range.start);
        Styled {
            text: self.text,
            spans: self.spans,
        }
    }

    /// Writes text in the line at hand.
    pub(super) fn write(&mut self, text: &str) {
        if !text.is_empty() {
            self.position();
            self.text.push_str(text);
            self.after_marker = false;
        }
    }

    /// Writes text with or without line breaks.
    pub(super) fn write_lines(&mut self, text: &str) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            self.write(line);
        }
    }

    /// Writes text with its own lines, as code has.
    pub(super) fn write_raw(&mut self, text: &str) {
        self.text.push_str(text);
        self.at_line_start = false;
    }

    /// Writes code in a line. Telegram allows no style around code, so open styles make way.
    pub(super) fn write_code(&mut self, code: &str) {
        let start = self.position();
        for index in 0..self.open.len() {
            let style = &self.open[index];
            self.add(style.kind.clone(), style.start..start);
        }
        self.write(code);
        let end = self.text.len();
        self.add(EntityKind::Code, start..end);
        self.open.iter_mut().for_each(|style| style.start = end);
    }

    /// Writes the marker of a list item or footnote.
    pub(super) fn write_marker(&mut self, marker: &str) {
        self.write(marker);
        self.after_marker = true;
    }

    /// Writes a box, in place of the bullet if there is any.
    pub(super) fn write_task(&mut self, bullet: &str, done: bool) {
        if self.after_marker && self.text.ends_with(bullet) {
            self.text.truncate(self.text.len() - bullet.len());
        }
        self.write(if done { "☑ " } else { "☐ " });
    }

    pub(super) fn break_line(&mut self) {
        self.breaks += 1;
    }

    /// Begins a block, at least this many line breaks below the last.
    pub(super) fn separate(&mut self, breaks: usize) {
        if !self.after_marker && !self.at_line_start {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// Begins a block on a line of its own, also after a marker.
    pub(super) fn leave_marker(&mut self) {
        if self.after_marker {
            self.after_marker = false;
            self.separate(1);
        }
    }

    /// An item without text ends.
    pub(super) fn forget_marker(&mut self) {
        self.after_marker = false;
    }

    /// Where the next block's first line begins, before its indentation.
    pub(super) fn line_start(&mut self) -> usize {
        if self.breaks > 0 {
            self.text.extend(std::iter::repeat_n('\n', self.breaks));
            self.breaks = 0;
            self.at_line_start = true;
        }
        self.text.len()
    }

    /// Where the next written character will be.
    pub(super) fn position(&mut self) -> usize {
        self.line_start();
        if self.at_line_start {
            self.text
                .extend(self.prefixes.iter().take(MAX_PREFIXES).copied());
            self.at_line_start = false;
        }
        self.text.len()
    }

    pub(super) fn push_prefix(&mut self, prefix: &'static str) {
        self.prefixes.push(prefix);
    }

    pub(super) fn pop_prefix(&mut self) {
        self.prefixes.pop();
    }

    pub(super) fn open(&mut self, kind: EntityKind) {
        match self.open.iter_mut().find(|style| style.kind == kind) {
            Some(style) => style.nested += 1,
            None => {
                let start = self.position();
                self.open.push(OpenStyle {
                    kind,
                    start,
                    nested: 0,
                });
            }
        }
    }

    pub(super) fn close(&mut self, kind: EntityKind) {
        let Some(index) = self.open.iter().position(|style| style.kind == kind) else {
            return;
        };
        if self.open[index].nested > 0 {
            self.open[index].nested -= 1;
        } else {
            let style = self.open.remove(index);
            self.add(style.kind, style.start..self.text.len());
        }
    }

    pub(super) fn add(&mut self, kind: EntityKind, range: Range<usize>) {
        if range.start < range.end {
            self.spans.push(Span { kind, range });
        }
    }

    /// Makes plain text of code since the span of this number.
    pub(super) fn drop_code_since(&mut self, first_span: usize) {
        let since = self.spans.split_off(first_span);
        self.spans.extend(
            since
                .into_iter()
                .filter(|span| span.kind != EntityKind::Code),
        );
    }

    /// Takes back the text since `start`. No span may cover that text.
    pub(super) fn truncate(&mut self, start: usize) {
        self.text.truncate(start);
    }
}
