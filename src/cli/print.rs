//! The one way to the terminal: everything that a verb prints passes through here and is made
//! printable.
//!
//! Clippy refuses every other use of stdout and stderr; the log has a way of its own.

use std::fmt::Arguments;
use std::io::{IsTerminal, Write};

use serde::Serialize;

use super::Failure;
use crate::printable::{escape_json, printable, printable_in_colour};

/// Prints data. A reader may go away early, as in `parlor agent list | head`, and this is no
/// failure.
pub(super) fn data(line: Arguments<'_>) {
    line_of_data(&printable(&line.to_string()));
}

/// Prints data as JSON, whole: escaped where [`data`] leaves out.
pub(super) fn data_json(value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
    data_json_text(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints text that is JSON already.
pub(super) fn data_json_text(json: &str) {
    line_of_data(&escape_json(json));
}

fn line_of_data(line: &str) {
    if writeln!(stdout(), "{line}").is_err() {
        std::process::exit(0);
    }
}

/// Prints a line beside the data.
pub(super) fn note(line: Arguments<'_>) {
    // Without a reader there is nobody to miss the line.
    drop(writeln!(stderr(), "{}", printable(&line.to_string())));
}

/// Prints a question. The answer is typed behind it.
pub(super) fn question(text: Arguments<'_>) {
    drop(write!(stderr(), "{}", printable(&text.to_string())));
}

/// Prints a piece of a chat at once, with the chat's own colours. Words of others inside must be
/// printable already.
pub(super) fn piece(text: &str) {
    let mut out = stdout().lock();
    // Answers are stored even if the reader went away, as in `parlor chat | head`.
    drop(
        out.write_all(printable_in_colour(text).as_bytes())
            .and_then(|()| out.flush()),
    );
}

/// Whether a person sees the data.
pub(super) fn is_seen() -> bool {
    stdout().is_terminal()
}

/// Prints the help or an error of the command line's reader.
pub(super) fn usage(told: &clap::Error) {
    let is_error = told.use_stderr();
    let in_colour = if is_error {
        stderr().is_terminal()
    } else {
        is_seen()
    };
    let text = told.render();
    let text = if in_colour {
        printable_in_colour(&text.ansi().to_string())
    } else {
        printable(&text.to_string())
    };
    if is_error {
        drop(write!(stderr(), "{text}"));
    } else {
        drop(write!(stdout(), "{text}"));
    }
}

#[expect(clippy::disallowed_methods, reason = "the one way to stdout")]
fn stdout() -> std::io::Stdout {
    std::io::stdout()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one way to stderr, besides the log"
)]
fn stderr() -> std::io::Stderr {
    std::io::stderr()
}
