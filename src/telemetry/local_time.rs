//! The local time before each line, for comparison with people's clocks.

use chrono::Local;

/// How the time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalTime {
    /// For a person at a terminal: `16 Nov 09:12:03`.
    Short,
    /// For files, with the distance from UTC: `2026-11-16T09:12:03+01:00`.
    Whole,
    /// For programs, with thousandths of a second.
    Exact,
}

impl LocalTime {
    pub(super) fn now(self) -> String {
        let now = Local::now();
        match self {
            LocalTime::Short => now.format("%e %b %H:%M:%S").to_string(),
            LocalTime::Whole => now.format("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            LocalTime::Exact => now.format("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string(),
        }
    }

    /// The distance of local time from UTC: `+01:00`.
    pub(super) fn zone() -> String {
        Local::now().format("%:z").to_string()
    }
}
