//! Where a text may be cut: between blocks, else between lines, else between words, and never
//! inside a character.

use unicode_segmentation::GraphemeCursor;

/// The rest of a text, from `start` on. A stretch is to be cut off.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl<'a> Rest<'a> {
    /// How far so many UTF-16 units reach.
    pub(crate) fn units_end(self, units: usize) -> usize {
        let rest = &self.text[self.start..];
        // No character has more units than bytes.
        if rest.len() <= units {
            return self.text.len();
        }
        let mut used = 0;
        let too_far = rest.char_indices().find(|(_, c)| {
            used += c.len_utf16();
            used > units
        });
        too_far.map_or(self.text.len(), |(index, _)| self.start + index)
    }

    /// The nicest cut up to `end`. Not in the first half, because many small parts would come out.
    pub(crate) fn nicest_cut(self, end: usize, is_bad: impl Fn(usize) -> bool) -> usize {
        let least = self.start + (end - self.start) / 2;
        self.cuts("\n\n", end)
            .take_while(|&cut| cut > least)
            .find(|cut| !is_bad(*cut))
            .or_else(|| self.cuts("\n\n", end).next().filter(|&cut| cut > least))
            .or_else(|| self.cuts("\n", end).next().filter(|&cut| cut > least))
            .or_else(|| self.word_cut(end).filter(|&cut| cut > least))
            .unwrap_or_else(|| self.grapheme_cut(end))
    }

    /// Where the separator begins, from the end backwards.
    pub(crate) fn cuts(self, separator: &'a str, end: usize) -> impl Iterator<Item = usize> {
        let at_end = self.text[end..].starts_with(separator).then_some(end);
        at_end.into_iter().chain(
            self.text[self.start..end]
                .rmatch_indices(separator)
                .map(move |(index, _)| self.start + index),
        )
    }

    fn word_cut(self, end: usize) -> Option<usize> {
        if self.text[end..].starts_with(char::is_whitespace) {
            return Some(end);
        }
        self.text[self.start..end]
            .rfind(char::is_whitespace)
            .map(|index| self.start + index)
    }

    /// A cluster longer than a whole part is cut between its characters.
    pub(crate) fn grapheme_cut(self, end: usize) -> usize {
        let rest = &self.text[self.start..];
        let offset = end - self.start;
        let mut cursor = GraphemeCursor::new(offset, rest.len(), true);
        match cursor.is_boundary(rest, 0) {
            Ok(false) => cursor
                .prev_boundary(rest, 0)
                .ok()
                .flatten()
                .filter(|&index| index > 0)
                .map_or(end, |index| self.start + index),
            _ => end,
        }
    }
}

pub(crate) fn count_units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
