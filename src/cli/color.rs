//! `--color`, `NO_COLOR` and `TERM=dumb`: whether a verb writes escapes at all.

use std::sync::OnceLock;

use clap::ValueEnum;

use super::print;

/// The flag `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    Always,
    Never,
}

/// The person's choice, which holds for the whole process.
static CHOSEN: OnceLock<Color> = OnceLock::new();

impl Color {
    /// Takes the flag of the command line. The first call decides.
    pub(super) fn choose(self) {
        // A second call, as in tests, keeps the first choice.
        let _ = CHOSEN.set(self);
    }

    /// The flag of a command line that could not be read, for the colours of its error.
    pub(super) fn among(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut arguments = arguments.into_iter();
        let mut found = Color::Auto;
        while let Some(argument) = arguments.next() {
            let value = match argument.strip_prefix("--color") {
                Some("") => arguments.next(),
                Some(rest) => rest.strip_prefix('=').map(str::to_owned),
                None => None,
            };
            let named = value.and_then(|value| Color::from_str(&value, false).ok());
            found = named.unwrap_or(found);
        }
        found
    }
}

/// The look of words: escapes around them, or nothing at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    is_on: bool,
}

impl Style {
    pub(super) fn for_stdout() -> Self {
        Self::on(print::is_seen())
    }

    pub(super) fn for_stderr() -> Self {
        Self::on(print::is_note_seen())
    }

    /// No escapes at all.
    pub(super) const PLAIN: Self = Style { is_on: false };
    #[cfg(test)]
    pub(super) const COLOURED: Self = Style { is_on: true };

    fn on(is_terminal: bool) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let chosen = CHOSEN.get().copied().unwrap_or_default();
        Style {
            is_on: decide(chosen, is_terminal, no_color, is_dumb()),
        }
    }

    pub(super) fn is_coloured(self) -> bool {
        self.is_on
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.is_on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A terminal that knows no escapes: neither colours nor moves of the cursor.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// See <https://no-color.org>: an empty variable does not count, and a flag wins.
fn decide(chosen: Color, is_terminal: bool, no_color: bool, is_dumb: bool) -> bool {
    match chosen {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && !no_color && !is_dumb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let check = |chosen, (terminal, no_color, dumb), expected| {
            assert_eq!(
                decide(chosen, terminal, no_color, dumb),
                expected,
                "{chosen:?} {terminal} {no_color} {dumb}"
            );
        };
        check(Color::Auto, (true, false, false), true);
        check(Color::Auto, (false, false, false), false);
        check(Color::Auto, (true, true, false), false);
        check(Color::Auto, (true, false, true), false);
        check(Color::Never, (true, false, false), false);
        check(Color::Always, (false, true, true), true);
    }

    #[test]
    fn the_flag_is_found_in_a_command_line_with_errors() {
        let among = |line: &str| Color::among(line.split(' ').map(str::to_owned));
        assert_eq!(among("parlor --color never agnet"), Color::Never);
        assert_eq!(among("parlor agnet --color=always"), Color::Always);
        assert_eq!(among("parlor agnet --color pink"), Color::Auto);
        assert_eq!(among("parlor --colors never"), Color::Auto);
    }

    #[test]
    fn plain_words_have_no_escapes() {
        assert_eq!(Style::PLAIN.bold("Rose"), "Rose");
        assert_eq!(Style::COLOURED.dim("a note"), "\u{1b}[2ma note\u{1b}[0m");
        assert_eq!(Style::COLOURED.bold(""), "");
    }
}
