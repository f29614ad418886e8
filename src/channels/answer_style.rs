//! The look of answers, the same on every platform.

use super::{Question, Text};
use crate::config::{Answers, Quote};
use crate::domain::Destination;

/// An answer of too many messages becomes its first message and a file.
pub(super) fn is_too_long(style: Answers, text: &Text<'_>, parts: usize) -> bool {
    !text.is_unfinished && style.max_parts > 0 && parts > style.max_parts as usize
}

/// Whether a text quotes its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    No,
    /// Decided when the text goes out.
    IfOthersWrote,
    Yes,
}

pub(super) fn quoting(quote: Quote, to: &Destination, question: &Question) -> Quoting {
    match quote {
        Quote::Auto if to.place().is_private() => Quoting::No,
        Quote::Auto if !question.others_wrote => Quoting::IfOthersWrote,
        Quote::Auto | Quote::Always => Quoting::Yes,
        Quote::Never => Quoting::No,
    }
}

/// A name is no Markdown.
pub(crate) fn escaped(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            c.is_ascii_punctuation()
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect()
}

pub(super) const WHOLE_ANSWER: &str = "This is long, so here is the whole answer as a file.";
pub(super) const ANSWER_FILE: &str = "answer.md";
pub(super) const ANSWER_TYPE: &str = "text/markdown; charset=utf-8";
