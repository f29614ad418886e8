//! Finds `||spoilers||` while text is written, because Markdown does not know them.

use super::entities::EntityKind;
use super::writer::{Span, Styled, Writer};

const MARK: &str = "||";

/// The marks seen so far. They stay in the text until the end, because only their second half makes
/// them marks.
#[derive(Debug, Default)]
pub(super) struct Spoilers {
    opener: Option<Opener>,
    /// Where marks of complete spoilers stand, ascending.
    marks: Vec<usize>,
}

/// A mark without counterpart so far.
#[derive(Debug)]
struct Opener {
    position: usize,
    /// Emphases and links around the mark; its counterpart has the same around.
    depth: usize,
    /// The first span that may lie within the spoiler.
    first_span: usize,
}

impl Spoilers {
    /// Looks for marks in the text written since `start`.
    pub(super) fn scan(&mut self, writer: &mut Writer, start: usize, depth: usize) {
        let mut from = start;
        while let Some(found) = writer.text().get(from..).and_then(|text| text.find(MARK)) {
            let position = from + found;
            from = position + MARK.len();
            self.meet(writer, position, depth);
        }
    }

    /// An emphasis or a link ended: a spoiler does not reach beyond.
    pub(super) fn leave(&mut self, depth: usize) {
        self.opener.take_if(|opener| opener.depth > depth);
    }

    pub(super) fn end_block(&mut self) {
        self.opener = None;
    }

    /// Takes the marks out of the text.
    pub(super) fn erase_marks(self, styled: Styled) -> Styled {
        if self.marks.is_empty() {
            return styled;
        }
        let moved = |position: usize| {
            position - MARK.len() * self.marks.partition_point(|&mark| mark < position)
        };
        let spans = styled.spans.into_iter().map(|span| Span {
            range: moved(span.range.start)..moved(span.range.end),
            ..span
        });
        Styled {
            text: without_marks(&styled.text, &self.marks),
            spans: spans.collect(),
        }
    }

    /// `a || b` is no spoiler: marks touch the hidden text.
    fn meet(&mut self, writer: &mut Writer, position: usize, depth: usize) {
        let (before, after) = (
            &writer.text()[..position],
            &writer.text()[position + MARK.len()..],
        );
        let closes = !before.ends_with(char::is_whitespace);
        let opens = !after.starts_with(char::is_whitespace);
        let counterpart = self.opener.take_if(|opener| {
            closes && opener.depth == depth && opener.position + MARK.len() < position
        });
        match counterpart {
            Some(opener) => {
                self.marks.extend([opener.position, position]);
                hide(writer, &opener, position);
            }
            None if opens => {
                self.opener = Some(Opener {
                    position,
                    depth,
                    first_span: writer.spans().len(),
                });
            }
            None => {}
        }
    }
}

/// Adds the spoiler. Telegram allows no style around code, so code within is hidden rather than
/// shown as code.
fn hide(writer: &mut Writer, opener: &Opener, end: usize) {
    writer.drop_code_since(opener.first_span);
    writer.add(EntityKind::Spoiler, opener.position + MARK.len()..end);
}

fn without_marks(text: &str, marks: &[usize]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for &mark in marks {
        kept.push_str(&text[from..mark]);
        from = mark + MARK.len();
    }
    kept + &text[from..]
}
