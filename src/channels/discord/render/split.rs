//! Packs blocks into messages. Code across two messages is closed at the end of the first and
//! opened again in the second.

use super::blocks::{Block, FENCE};
use crate::channels::markdown::cut::{Rest, count_units};
use crate::channels::markdown::{is_trimmed, is_unseen};

/// `units` has room for fences and more.
pub(super) fn split(blocks: &[Block], units: usize) -> Vec<String> {
    let mut packer = Packer {
        units,
        part: String::new(),
        parts: Vec::new(),
    };
    for block in blocks {
        match block {
            Block::Text(text) => packer.text(text),
            Block::Code { language, text } => packer.code(language, text),
        }
    }
    packer.finish()
}

struct Packer {
    units: usize,
    /// The message under construction.
    part: String,
    parts: Vec<String>,
}

impl Packer {
    fn text(&mut self, text: &str) {
        let mut start = 0;
        while start < text.len() {
            let rest = Rest { text, start };
            let room = self.room();
            let end = rest.units_end(room);
            if end == text.len() {
                return self.push(&text[start..]);
            }
            if self.is_more_than_half_full() {
                self.end_part();
                continue;
            }
            let cut = rest.nicest_cut(end, |_| false);
            self.push(&text[start..cut]);
            self.end_part();
            start = text.len() - text[cut..].trim_start_matches(is_trimmed).len();
        }
    }

    fn code(&mut self, language: &str, text: &str) {
        let fences = count_units(language) + 2 * FENCE.len() + 2;
        let mut start = 0;
        while start < text.len() {
            let rest = Rest { text, start };
            let room = self.room().saturating_sub(fences);
            let end = rest.units_end(room);
            let is_whole = end == text.len();
            if !is_whole && self.is_more_than_half_full() {
                self.end_part();
                continue;
            }
            let cut = if is_whole {
                end
            } else {
                rest.cuts("\n", end)
                    .next()
                    .filter(|cut| *cut > start)
                    .unwrap_or_else(|| rest.grapheme_cut(end))
            };
            let piece = text[start..cut].trim_end();
            if !piece.is_empty() {
                self.push(&format!("{FENCE}{language}\n{piece}\n{FENCE}"));
            }
            if !is_whole {
                self.end_part();
            }
            // The message ends at the line break; the indentation of the next line stays.
            start = if text[cut..].starts_with('\n') {
                cut + 1
            } else {
                cut
            };
        }
    }

    /// The room left in the message after a line break.
    fn room(&self) -> usize {
        let used = if self.part.is_empty() {
            0
        } else {
            count_units(&self.part) + 1
        };
        self.units.saturating_sub(used)
    }

    /// Whether a long block should begin in a new message. An empty message always takes a piece,
    /// so that the splitting ends.
    fn is_more_than_half_full(&self) -> bool {
        !self.part.is_empty() && self.room() < self.units / 2
    }

    fn push(&mut self, piece: &str) {
        if !self.part.is_empty() {
            self.part.push('\n');
        }
        self.part.push_str(piece);
    }

    /// Drops invisible messages, because Discord refuses them.
    fn end_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        let part = part.trim_end_matches(is_trimmed);
        if !part.chars().all(is_unseen) {
            self.parts.push(part.to_owned());
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.end_part();
        self.parts
    }
}
