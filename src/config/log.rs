//! Reads `[log]`: the form of the log's lines, and the file they are kept in.

use super::reader::Section;
use super::{Problem, address};

/// The log of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    pub format: LogFormat,
    pub level: LogLevel,
    /// Absent: the lines go to stderr only.
    pub file: Option<LogFile>,
}

/// A file of log lines, with the limits on its size and on earlier files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// A relative path begins in the home folder.
    pub path: String,
    pub rotate: Rotate,
    /// A larger file makes room for a new file, with any `rotate`. 0: no limit.
    pub max_mb: u32,
    /// Earlier files kept.
    pub keep: u32,
}

/// The form of log lines without a watching person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    #[default]
    Text,
    /// An object in each line.
    Json,
}

/// The least important level in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// When a new file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotate {
    /// A new file begins with each day, in local time.
    #[default]
    Daily,
    /// A new file begins by size alone.
    Size,
}

/// The most earlier files, so that a look for them stays short.
const MOST_KEPT: u32 = 1000;

pub(super) fn read(section: &Section<'_>) -> Log {
    Log {
        format: section.choice("format").unwrap_or_default(),
        level: section.choice("level").unwrap_or_default(),
        file: file(section),
    }
}

/// The keys about the file are checked also where no file is named.
fn file(section: &Section<'_>) -> Option<LogFile> {
    let (rotate, max_mb, keep) = (
        section.choice("rotate").unwrap_or_default(),
        section.count("max_mb").unwrap_or(50),
        section.count("keep").unwrap_or(7).min(MOST_KEPT),
    );
    let path = section.text("file")?;
    if path.value.trim().is_empty() || path.value.ends_with('/') {
        section.problems.note(
            Problem::new(path.span, "`file` is not the name of a file")
                .label("expected a path")
                .help(format!("write it like `{}`", section.usage("file"))),
        );
        return None;
    }
    if let Some(problem) = address::tilde(&path) {
        section.problems.note(problem);
        return None;
    }
    Some(LogFile {
        path: path.value,
        rotate,
        max_mb,
        keep,
    })
}
