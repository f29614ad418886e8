//! An error with a text for the person.

use std::fmt;

/// A plain sentence or two about the problem and the next step. Shown unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserError(String);

impl UserError {
    pub fn new(text: impl Into<String>) -> Self {
        UserError(text.into())
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UserError {}

/// The nearest known word, if near enough for a suggestion.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR_ENOUGH: f64 = 0.7;
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(score, _)| *score >= NEAR_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
