//! What an edit must not see and a file must keep: a byte order mark, and line ends of another system.

use std::borrow::Cow;

const MARK: char = '\u{feff}';

/// What was taken off a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dress {
    mark: bool,
    /// Every line ends with `\r\n`. A file with both kinds keeps them as they are.
    carriage_returns: bool,
}

pub(super) fn take_off(text: &str) -> (Cow<'_, str>, Dress) {
    let plain = text.strip_prefix(MARK);
    let (mark, plain) = (plain.is_some(), plain.unwrap_or(text));
    let carriage_returns = plain.contains("\r\n") && plain.matches("\r\n").count() == plain.matches('\n').count();
    let plain = if carriage_returns { Cow::Owned(plain.replace("\r\n", "\n")) } else { Cow::Borrowed(plain) };
    (plain, Dress { mark, carriage_returns })
}

impl Dress {
    pub(super) fn put_on(self, text: &str) -> String {
        let text = if self.carriage_returns { Cow::Owned(text.replace('\n', "\r\n")) } else { Cow::Borrowed(text) };
        if self.mark { format!("{MARK}{text}") } else { text.into_owned() }
    }
}
