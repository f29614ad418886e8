//! The targets of lines: stderr, and the file of the config, if any.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tracing::Level;

use super::fields::Fields;
use super::line::{Line, Look};
use super::lines::{self, Lines};
use super::local_time::LocalTime;
use super::log_file::LogFile;
use crate::config::{self, LogFormat, LogLevel};

/// Bytes waiting for the file. A disk with a slow moment loses no line.
const MOST_WAITING: usize = 1024 * 1024;

/// All places of lines.
#[derive(Default)]
pub(super) struct Sinks {
    in_colour: OnceLock<bool>,
    /// Lines for programs, where no person watches.
    is_json: AtomicBool,
    /// A person watches, and has the console's lines instead of the log's.
    has_console: AtomicBool,
    /// A person wants to see more than usual.
    has_details: AtomicBool,
    file: RwLock<Option<Kept>>,
    /// The level in the last config.
    level: Mutex<Option<LogLevel>>,
}

/// The file in use.
struct Kept {
    lines: Lines,
    settings: config::LogFile,
}

/// The events with a line of the console beside them are all made there.
const CONSOLE: &str = "parlor::console";

/// Events for the log that mean little to a person at the console.
pub(crate) const DETAIL: &str = "parlor::detail";

pub(super) fn sinks() -> &'static Sinks {
    static SINKS: OnceLock<Sinks> = OnceLock::new();
    SINKS.get_or_init(Sinks::default)
}

impl Sinks {
    pub(super) fn set_colour(&self, in_colour: bool) {
        // A second start in the same process, as in tests, keeps the first.
        let _ = self.in_colour.set(in_colour);
    }

    /// Whether the level is a change. A change makes the library evaluate every log statement anew,
    /// so the level is set only on a change.
    pub(super) fn is_new_level(&self, level: LogLevel) -> bool {
        let mut known = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        known.replace(level) != Some(level)
    }

    pub(super) fn set_details(&self, are_wanted: bool) {
        self.has_details.store(are_wanted, Ordering::Relaxed);
    }

    pub(super) fn set_console(&self, is_open: bool) {
        self.has_console.store(is_open, Ordering::Relaxed);
    }

    /// Follows the config. The file is opened at once, to report its trouble early.
    pub(super) fn follow(&self, home: &Path, log: &config::Log) -> Result<(), String> {
        let is_json = log.format == LogFormat::Json;
        self.is_json.store(is_json, Ordering::Relaxed);
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if file.as_ref().map(|kept| &kept.settings) == log.file.as_ref() {
            return Ok(());
        }
        // The old file's waiting lines are written before its end.
        if let Some(old) = file.take() {
            old.lines.close();
        }
        let Some(settings) = log.file.clone() else {
            return Ok(());
        };
        let (opened, trouble) = LogFile::open(home, &settings);
        let lines = Lines::to(opened, MOST_WAITING, dropped_of_file);
        *file = Some(Kept { lines, settings });
        trouble.map_or(Ok(()), Err)
    }

    pub(super) fn put(&self, line: &Line<'_>, target: &str) {
        let has_console = self.has_console.load(Ordering::Relaxed);
        let is_told_already = has_console && target == CONSOLE;
        let is_too_much =
            has_console && target == DETAIL && !self.has_details.load(Ordering::Relaxed);
        if !is_told_already && !is_too_much {
            lines::stderr().push(self.for_stderr(line).into_bytes());
        }
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = file.as_ref() {
            kept.lines.push(self.for_file(line).into_bytes());
        }
    }

    /// The reason of the program's end. On stderr the reason has words of its own.
    pub(super) fn put_last(&self, line: &Line<'_>) {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = file.as_ref() {
            kept.lines.push_last(self.for_file(line).into_bytes());
        }
    }

    pub(super) fn flush_within(&self, most: Duration) {
        lines::stderr().flush_within(most);
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = file.as_ref() {
            kept.lines.flush_within(most);
        }
    }

    fn for_stderr(&self, line: &Line<'_>) -> String {
        if lines::is_seen() {
            return line.text(Look {
                time: LocalTime::Short,
                in_colour: self.in_colour(),
            });
        }
        if self.is_json.load(Ordering::Relaxed) {
            return line.json();
        }
        line.text(Look {
            time: LocalTime::Whole,
            in_colour: self.in_colour(),
        })
    }

    fn for_file(&self, line: &Line<'_>) -> String {
        if self.is_json.load(Ordering::Relaxed) {
            return line.json();
        }
        line.text(Look {
            time: LocalTime::Whole,
            in_colour: false,
        })
    }

    fn in_colour(&self) -> bool {
        self.in_colour.get().copied().unwrap_or_default()
    }
}

/// Stands on stderr where lines had no room.
pub(super) fn dropped(count: u64) -> Vec<u8> {
    told_dropped(count, |line| sinks().for_stderr(line))
}

/// Stands in the log file where lines had no room.
fn dropped_of_file(count: u64) -> Vec<u8> {
    told_dropped(count, |line| sinks().for_file(line))
}

fn told_dropped(count: u64, form: impl Fn(&Line<'_>) -> String) -> Vec<u8> {
    let fields = Fields {
        message: format!("{count} lines of the log were dropped here, because nobody read them"),
        ..Fields::default()
    };
    let line = Line {
        level: Level::WARN,
        fields: &fields,
    };
    form(&line).into_bytes()
}
