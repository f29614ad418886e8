//! The way to ask: a person at a terminal and flags without a person answer alike.

/// Asks, and tells between questions.
pub(crate) trait Asker {
    /// Tells a line. Words of others inside are made printable.
    fn say(&mut self, line: &str);
    /// Enter alone is the default.
    fn confirm(&mut self, question: &str, default: bool) -> Answer<bool>;
    /// The position of the chosen option.
    fn choose(&mut self, question: &str, options: &[String], default: usize) -> Answer<usize>;
    /// Enter alone is the default.
    fn text(&mut self, question: &str, default: &str) -> Answer<String>;
    /// Typed or pasted, and shown nowhere. Enter alone is empty.
    fn secret(&mut self, question: &str) -> Answer<String>;
    /// Whether Enter was pressed meanwhile. Does not wait.
    fn pressed(&mut self) -> Answer<bool>;
    /// Whether a person can be waited for.
    fn is_person(&self) -> bool;
}

pub(crate) type Answer<T> = Result<T, Stop>;

/// Why the steps end early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C or Esc.
    Interrupted,
    /// The text is for the person.
    Failed(String),
}

impl Stop {
    pub(crate) fn failed(error: impl ToString) -> Self {
        Stop::Failed(error.to_string())
    }
}

/// A setup without a person: every answer is the default, and lines go to `tell`.
pub(crate) struct Nobody<F: FnMut(&str)> {
    pub(crate) tell: F,
}

impl<F: FnMut(&str)> Asker for Nobody<F> {
    fn say(&mut self, line: &str) {
        (self.tell)(line);
    }

    fn confirm(&mut self, _question: &str, default: bool) -> Answer<bool> {
        Ok(default)
    }

    fn choose(&mut self, _question: &str, _options: &[String], default: usize) -> Answer<usize> {
        Ok(default)
    }

    fn text(&mut self, _question: &str, default: &str) -> Answer<String> {
        Ok(default.to_owned())
    }

    fn secret(&mut self, _question: &str) -> Answer<String> {
        Ok(String::new())
    }

    fn pressed(&mut self) -> Answer<bool> {
        Ok(true)
    }

    fn is_person(&self) -> bool {
        false
    }
}
