//! The one way to the terminal: everything that a verb prints passes through here and is made
//! printable.
//!
//! Clippy refuses every other use of stdout and stderr; the log has a way of its own.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use serde::Serialize;

use super::Failure;
use super::color::Style;
use super::fitting;
use crate::config::system_error::in_words;
use crate::console::{self, quoted};
use crate::home::Home;
use crate::printable::{escape_json, printable, printable_in_colour};

/// How the whole program prints, as the command line asked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    /// Results and errors as JSON. Stdout then has one document and nothing else.
    pub(super) json: bool,
    /// No lines beside the data.
    pub(super) quiet: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// Chooses once, before the first line.
pub(super) fn choose(manner: Manner) {
    // A second choice in the same process, as in tests, keeps the first.
    let _ = MANNER.set(manner);
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// The home folder as the command line named it.
static HOME: OnceLock<String> = OnceLock::new();

/// Commands in texts name this folder, so that people can type them as they are.
pub(super) fn name_home(home: &str) {
    // A second name in the same process, as in tests, keeps the first.
    let _ = HOME.set(quoted(home));
}

/// A text whose commands reach the home of this one.
pub(super) fn to_type(text: &str) -> Cow<'_, str> {
    match HOME.get() {
        Some(home) => with_home(text, home),
        None => text.into(),
    }
}

/// A text whose commands reach this home from any other terminal.
pub(super) fn to_type_on(home: &Home, text: &str) -> String {
    match console::named_home(home.path()) {
        Some(home) => with_home(text, &home).into_owned(),
        None => text.to_owned(),
    }
}

/// The same for a line of ours that is a command, or has one without marks around it.
pub(super) fn command_to_type(text: &str) -> Cow<'_, str> {
    match HOME.get() {
        Some(home) => command_with_home(text, home),
        None => text.into(),
    }
}

fn command_with_home<'a>(text: &'a str, home: &str) -> Cow<'a, str> {
    const PROGRAM: &str = "parlor ";
    let mut told = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(PROGRAM) {
        let (before, behind) = rest.split_at(at);
        let behind = &behind[PROGRAM.len()..];
        let verb = behind.split([' ', '`', ',', '.', ';']).next();
        let is_word = before
            .chars()
            .next_back()
            .is_none_or(|c| c == ' ' || c == '`');
        told.push_str(before);
        told.push_str(PROGRAM);
        if is_word && verb.is_some_and(|verb| super::command().find_subcommand(verb).is_some()) {
            told.push_str(&format!("--home {home} "));
        }
        rest = behind;
    }
    match told.is_empty() {
        true => text.into(),
        false => (told + rest).into(),
    }
}

fn with_home<'a>(text: &'a str, home: &str) -> Cow<'a, str> {
    const COMMAND: &str = "`parlor ";
    if !text.contains(COMMAND) {
        return text.into();
    }
    let mut parts = text.split(COMMAND);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        told.push_str(COMMAND);
        // A text may come here twice.
        if !part.starts_with("--home") {
            told.push_str(&format!("--home {home} "));
        }
        told.push_str(part);
    }
    told.into()
}

/// The result of a verb in the form that was asked for: an object for programs, or words.
pub(super) fn result(
    json: bool,
    value: &(impl Serialize + ?Sized),
    words: Arguments<'_>,
) -> Result<(), Failure> {
    if json {
        return data_json(value);
    }
    told(words);
    Ok(())
}

/// The last words of a verb that failed: on stderr, or on stdout if JSON was asked for.
pub(super) fn failure(text: &str, exit_code: u8) {
    if text.is_empty() {
        return crate::telemetry::flush();
    }
    let text = &*to_type(text);
    if !manner().json {
        return crate::telemetry::say_as(&fitted(text, note_width()), text);
    }
    crate::telemetry::flush();
    let error = serde_json::json!({ "error": error_json(text, exit_code) });
    line_of_data(&escape_json(&format!("{error:#}")));
}

/// An error for programs. The book promises these keys.
pub(super) fn error_json(text: &str, exit_code: u8) -> serde_json::Value {
    let (message, hint) = match text.split_once(HINT) {
        Some((message, hint)) => (message, Some(hint)),
        None => (text, None),
    };
    let message = message
        .strip_prefix("error: ")
        .unwrap_or(message)
        .trim_end();
    serde_json::json!({ "message": message, "hint": hint, "exit_code": exit_code })
}

/// Stands between an error and what can be done about it.
pub(super) const HINT: &str = "\nhint: ";

/// Prints data. A reader may go away early, as in `parlor agent list | head`, and this is no
/// failure.
pub(super) fn data(line: Arguments<'_>) {
    line_of_data(&printable(&line.to_string()));
}

/// Prints a result in words of ours, wrapped between words. Commands in it can be typed as they are.
pub(super) fn told(line: Arguments<'_>) {
    line_of_data(&fitted(&printable(&to_type(&line.to_string())), width()));
}

/// Prints lines of ours and of the data, each wrapped between words where the terminal is narrow.
/// Commands in it can be typed as they are.
pub(super) fn wrapped(text: &str) {
    const HANG: usize = 2;
    let width = width().map_or(usize::MAX, usize::from);
    let text = to_type(text);
    let lines = text.lines();
    let lines: Vec<String> = lines
        .map(|line| fitting::hanging(line, HANG, width))
        .collect();
    data(format_args!("{}", lines.join("\n")));
}

/// A text as wide as the terminal that shows it, if any does.
fn fitted(text: &str, width: Option<u16>) -> String {
    match width {
        Some(width) => fitting::fit(text, width.into()),
        None => text.to_owned(),
    }
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
    if let Err(error) = writeln!(stdout(), "{line}") {
        end_without_stdout(&error);
    }
}

/// A reader who went away wants no more and no complaint. Anything else, such as a full disk, means
/// that the data is not where it was to be.
fn end_without_stdout(error: &io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    let text = unwritten(error);
    crate::telemetry::say(&format!("error: {text}"));
    std::process::exit(1);
}

fn unwritten(error: &io::Error) -> String {
    format!("cannot write to stdout: {}", in_words(error))
}

/// The first piece of a chat that could not be written.
static LOST: OnceLock<String> = OnceLock::new();

/// Why something of a chat is not on stdout, told once the chat is over.
pub(super) fn lost() -> Option<String> {
    LOST.get().cloned()
}

/// Whether remarks and warnings are unwanted.
pub(super) fn is_quiet() -> bool {
    manner().quiet
}

/// Prints a line beside the data.
pub(super) fn note(line: Arguments<'_>) {
    if manner().quiet || manner().json {
        return;
    }
    let line = printable(&to_type(&line.to_string()));
    // Without a reader there is nobody to miss the line.
    drop(writeln!(stderr(), "{}", fitted(&line, note_width())));
}

/// Prints text beside the data that may be in colour. Words of others inside must be printable
/// already.
pub(super) fn in_colour(text: &str) {
    let text = fitted(&printable_in_colour(text), note_width());
    drop(writeln!(stderr(), "{text}"));
}

/// Prints a question. The answer is typed behind it.
pub(super) fn question(text: Arguments<'_>) {
    drop(write!(stderr(), "{}", printable(&text.to_string())));
}

/// Prints a piece of a chat at once, with the chat's own colours. Words of others inside must be
/// printable already.
pub(super) fn piece(text: &str) {
    let mut out = stdout().lock();
    let written = out
        .write_all(printable_in_colour(text).as_bytes())
        .and_then(|()| out.flush());
    // Answers are stored even if the reader went away, as in `parlor chat | head`.
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // The first failure says it all.
        let _ = LOST.set(unwritten(&error));
    }
}

/// Takes back a prompt that nobody answers any more.
pub(super) fn erase_prompt() {
    let mut out = stdout().lock();
    // A terminal that went away shows nothing anyway.
    drop(out.write_all(b"\r\x1b[J").and_then(|()| out.flush()));
}

/// Lines for the screen of a chat, from `up` rows above the cursor on. All below is cleared.
pub(super) fn picture(up: usize, lines: &[String]) -> String {
    let begin = match up {
        0 => String::new(),
        _ => format!("\x1b[{up}A\r\x1b[J"),
    };
    // The line editor wants a line break at the end, so a picture without lines goes back first.
    if lines.is_empty() {
        return format!("{begin}\x1b[A\n");
    }
    let lines: Vec<String> = lines.iter().map(|line| printable_in_colour(line)).collect();
    format!("{begin}{}\n", lines.join("\n"))
}

/// A screen in the place of the last one. Only for a terminal.
pub(super) fn screen(text: &str) {
    let mut out = stdout().lock();
    let text = top(text, rows(), columns());
    let text = format!("\x1b[H\x1b[J{}\n", printable_in_colour(&text));
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// The lines that fit, from the first on: a terminal scrolls what is above away. The last row is for the
/// cursor.
fn top(text: &str, rows: usize, columns: usize) -> String {
    let height = |line: &str| line.chars().count().div_ceil(columns.max(1)).max(1);
    let most = rows.saturating_sub(1).max(1);
    let all: Vec<&str> = text.trim_end().lines().collect();
    if all.iter().map(|line| height(line)).sum::<usize>() <= most {
        return all.join("\n");
    }
    let mut left = most.saturating_sub(1);
    let fits = all.iter().take_while(|line| {
        let needed = height(line);
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    let shown: Vec<&str> = fits.copied().collect();
    let more = all.len() - shown.len();
    let more = console::counted(more, "more line");
    let lines = shown.into_iter().map(str::to_owned);
    lines
        .chain([format!("… {more}")])
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether a person sees the data.
pub(super) fn is_seen() -> bool {
    stdout().is_terminal()
}

/// Columns of the terminal, now: people change them.
pub(super) fn columns() -> usize {
    let size = terminal_size::terminal_size();
    size.map_or(USUAL_COLUMNS, |(columns, _)| usize::from(columns.0))
        .max(LEAST_COLUMNS)
}

/// Rows of the terminal, now.
pub(super) fn rows() -> usize {
    terminal_size::terminal_size().map_or(USUAL_ROWS, |(_, rows)| usize::from(rows.0))
}

/// The size of a terminal that does not tell.
const USUAL_COLUMNS: usize = 80;
const USUAL_ROWS: usize = 24;
const LEAST_COLUMNS: usize = 20;

/// Whether a person sees the notes.
pub(super) fn is_note_seen() -> bool {
    stderr().is_terminal()
}

/// Prints a script or a page of ours as it is, up to its last line break.
pub(super) fn document(text: &str) {
    line_of_data(&printable(text.trim_end_matches('\n')));
}

/// Columns of the terminal. None where nobody sees the data, unless `COLUMNS` says how wide it is
/// to be.
pub(super) fn width() -> Option<u16> {
    let told = std::env::var("COLUMNS").ok();
    let told = told.and_then(|columns| columns.parse().ok());
    told.or_else(|| {
        let size = is_seen().then(|| rustix::termios::tcgetwinsize(stdout()));
        size?.ok().map(|size| size.ws_col)
    })
    .filter(|columns| *columns > 0)
}

/// Columns of the terminal that shows the notes. None where nobody sees them.
fn note_width() -> Option<u16> {
    let size = is_note_seen().then(|| rustix::termios::tcgetwinsize(stderr()));
    size?
        .ok()
        .map(|size| size.ws_col)
        .filter(|columns| *columns > 0)
}

/// Prints the help or an error of the command line's reader.
pub(super) fn usage(told: &clap::Error) {
    let is_error = told.use_stderr();
    let text = told.render();
    if is_error && manner().json {
        return failure(&in_two_parts(&text.to_string()), 2);
    }
    let style = if is_error {
        Style::for_stderr()
    } else {
        Style::for_stdout()
    };
    let text = if style.is_coloured() {
        printable_in_colour(&text.ansi().to_string())
    } else {
        printable(&text.to_string())
    };
    if is_error {
        drop(write!(stderr(), "{text}"));
    } else if let Err(error) = write!(stdout(), "{text}").and_then(|()| stdout().flush()) {
        end_without_stdout(&error);
    }
}

/// The error of the command line's reader as a message with its tip, without the usage.
fn in_two_parts(text: &str) -> String {
    let parts = text.split("\n\n").map(str::trim);
    let mut message = String::new();
    for part in parts.take_while(|part| !part.starts_with("Usage:")) {
        match part.strip_prefix("tip: ") {
            Some(tip) => return format!("{message}{HINT}{tip}"),
            None if message.is_empty() => message = part.to_owned(),
            None => {}
        }
    }
    message
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

/// A size for people, in decimal units as file managers show it.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "KB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = bytes / (unit / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::{command_with_home, top, with_home};

    #[test]
    fn a_small_terminal_shows_the_top() {
        assert_eq!(top("one\ntwo\nthree\n", 24, 80), "one\ntwo\nthree");
        assert_eq!(
            top("one\ntwo\nthree\nfour", 4, 80),
            "one\ntwo\n… 2 more lines"
        );
        // A wrapped line counts for its rows.
        assert_eq!(
            top("a long one\ntwo\nthree", 4, 5),
            "a long one\n… 2 more lines"
        );
        assert_eq!(top("one\ntwo\nthree", 3, 80), "one\n… 2 more lines");
    }

    #[test]
    fn fixes_name_the_home_that_was_named() {
        let check = |text, expected: &str| assert_eq!(command_with_home(text, "/srv/p"), expected);
        check("parlor run", "parlor --home /srv/p run");
        check(
            "Put it there, then parlor reload",
            "Put it there, then parlor --home /srv/p reload",
        );
        check(
            "parlor failed list, then parlor failed retry",
            "parlor --home /srv/p failed list, then parlor --home /srv/p failed retry",
        );
        check(
            "`parlor setup` does it",
            "`parlor --home /srv/p setup` does it",
        );
        check("the parlor is closed", "the parlor is closed");
        check("chmod 600 x", "chmod 600 x");
    }

    #[test]
    fn commands_name_the_home_that_was_named() {
        let told = with_home(
            "`parlor run` starts it, and `parlor chat` too; parlor.db",
            "/srv/p",
        );
        assert_eq!(
            told,
            "`parlor --home /srv/p run` starts it, and `parlor --home /srv/p chat` too; parlor.db"
        );
    }
}
