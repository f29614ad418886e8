//! The time before each line: local, because people compare it with their clock.

use std::fmt;

use chrono::Local;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// How the time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalTime {
    /// For a person at a terminal: `16 Nov 09:12:03`.
    Short,
    /// For files, with the distance from UTC: `2026-11-16T09:12:03+01:00`.
    Whole,
}

impl LocalTime {
    pub(super) fn now(self) -> String {
        let now = Local::now();
        match self {
            LocalTime::Short => now.format("%e %b %H:%M:%S").to_string(),
            LocalTime::Whole => now.format("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        }
    }

    /// The distance of local time from UTC: `+01:00`.
    pub(super) fn zone() -> String {
        Local::now().format("%:z").to_string()
    }
}

impl FormatTime for LocalTime {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        w.write_str(&self.now())
    }
}
