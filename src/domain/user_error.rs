//! An error whose text is meant for the person who caused it.

use std::fmt;

/// One or two plain sentences that say what is wrong and what to do next. Shown as it is.
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

/// The known word a person most likely meant, if one is near enough to be worth suggesting.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR_ENOUGH: f64 = 0.7;
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= NEAR_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
