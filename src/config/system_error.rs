//! Errors of the operating system in words.

use std::io;

/// The system's reason without its number.
pub(crate) fn in_words(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error ").next().unwrap_or_default();
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => error.kind().to_string(),
    }
}
