//! The byte order mark and the line endings of a file: removed before an edit, put back afterwards.

use std::borrow::Cow;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The parts of a file's form hidden from edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextForm {
    has_mark: bool,
    /// Every line ends with `\r\n`. A file with mixed line endings is edited with both.
    has_carriage_returns: bool,
}

pub(super) fn remove(text: &str) -> (Cow<'_, str>, TextForm) {
    let plain = text.strip_prefix(BYTE_ORDER_MARK);
    let (has_mark, plain) = (plain.is_some(), plain.unwrap_or(text));
    let has_carriage_returns =
        plain.contains("\r\n") && plain.matches("\r\n").count() == plain.matches('\n').count();
    let plain = if has_carriage_returns {
        Cow::Owned(plain.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(plain)
    };
    (
        plain,
        TextForm {
            has_mark,
            has_carriage_returns,
        },
    )
}

impl TextForm {
    pub(super) fn put_back(self, text: &str) -> String {
        let text = if self.has_carriage_returns {
            Cow::Owned(text.replace('\n', "\r\n"))
        } else {
            Cow::Borrowed(text)
        };
        if self.has_mark {
            format!("{BYTE_ORDER_MARK}{text}")
        } else {
            text.into_owned()
        }
    }
}
