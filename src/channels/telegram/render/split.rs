//! Cuts a laid out text into messages.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::ops::Range;

use super::entities::{Entity, EntityKind, Rendered};
use super::writer::{Span, Styled};
use crate::channels::markdown::cut::{Rest, count_units};
use crate::channels::markdown::{is_trimmed, is_unseen};

/// Limits of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// UTF-16 units; at least 2, because some characters need two.
    pub(super) units: usize,
    pub(super) entities: usize,
}

/// Cuts at the nicest places within the limits. Styles across a cut go on in the next message.
pub(super) fn split(styled: &Styled, limits: Limits) -> Vec<Rendered> {
    let mut splitter = Splitter {
        text: &styled.text,
        spans: &styled.spans,
        limits,
        start: 0,
        next: 0,
        carried: Vec::new(),
    };
    let mut parts = Vec::new();
    while splitter.start < splitter.text.len() {
        parts.extend(splitter.cut());
    }
    parts
}

/// The rest of a text.
struct Splitter<'a> {
    text: &'a str,
    spans: &'a [Span],
    limits: Limits,
    /// Where the next part starts.
    start: usize,
    /// The first span of the rest.
    next: usize,
    /// Spans of the part before that go on.
    carried: Vec<&'a Span>,
}

impl<'a> Splitter<'a> {
    /// Cuts off the next part. A blank part is dropped, because Telegram refuses blank messages.
    fn cut(&mut self) -> Option<Rendered> {
        self.start = self.part_start();
        let end = self.part_end();
        let started = self.spans[self.next..].partition_point(|span| span.range.start < end);
        let mut spans = std::mem::take(&mut self.carried);
        spans.extend(&self.spans[self.next..self.next + started]);
        let part = make_part(self.text, self.start..end, &spans, self.limits.entities);
        spans.retain(|span| span.range.end > end);
        (self.start, self.next, self.carried) = (end, self.next + started, spans);
        part
    }

    /// Skips blanks, but not the indentation of code: Telegram keeps the latter too.
    fn part_start(&self) -> usize {
        let first = self.text.len() - self.text[self.start..].trim_start_matches(is_trimmed).len();
        let line = self.text[self.start..first]
            .rfind('\n')
            .map_or(self.start, |index| self.start + index + 1);
        if self.cuts_code(first) { line } else { first }
    }

    fn part_end(&self) -> usize {
        let rest = Rest {
            text: self.text,
            start: self.start,
        };
        let end = self.entities_end(rest.units_end(self.limits.units));
        if end == self.text.len() {
            end
        } else {
            rest.nicest_cut(end, |cut| self.cuts_code(cut))
        }
    }

    /// The place of the first entity above the limit.
    fn entities_end(&self, end: usize) -> usize {
        let room = self.limits.entities.saturating_sub(self.carried.len());
        match self.spans.get(self.next + room) {
            Some(span) if span.range.start > self.start => end.min(span.range.start),
            _ => end,
        }
    }

    fn cuts_code(&self, cut: usize) -> bool {
        let near = self.spans[self.next..]
            .iter()
            .take_while(|span| span.range.start < cut);
        let mut spans = self.carried.iter().copied().chain(near);
        spans.any(|span| matches!(span.kind, EntityKind::Pre { .. }) && cut < span.range.end)
    }
}

fn make_part(
    text: &str,
    range: Range<usize>,
    spans: &[&Span],
    max_entities: usize,
) -> Option<Rendered> {
    let part = text[range.clone()].trim_end_matches(is_trimmed);
    if part.chars().all(is_unseen) {
        return None;
    }
    let kept = range.start..range.start + part.len();
    let mut clipped: Vec<_> = spans.iter().filter_map(|span| clip(span, &kept)).collect();
    clipped.retain(|(range, _)| !part[range.clone()].trim_matches(is_trimmed).is_empty());
    clipped.sort_by_key(|(range, kind)| {
        (
            range.start,
            Reverse(range.end),
            **kind != EntityKind::Blockquote,
        )
    });
    clipped.truncate(max_entities);
    Some(Rendered {
        text: part.to_owned(),
        entities: in_units(part, clipped),
    })
}

/// The piece of a span inside a part, counted from the part's start.
fn clip<'a>(span: &'a Span, part: &Range<usize>) -> Option<(Range<usize>, &'a EntityKind)> {
    let (start, end) = (
        span.range.start.max(part.start),
        span.range.end.min(part.end),
    );
    (start < end).then(|| (start - part.start..end - part.start, &span.kind))
}

fn in_units(text: &str, clipped: Vec<(Range<usize>, &EntityKind)>) -> Vec<Entity> {
    let (mut bytes, mut offset) = (0, 0);
    let to_entity = |(range, kind): (Range<usize>, &EntityKind)| {
        offset += count_units(&text[bytes..range.start]);
        bytes = range.start;
        Entity {
            kind: kind.clone(),
            offset,
            length: count_units(&text[range]),
        }
    };
    clipped.into_iter().map(to_entity).collect()
}
