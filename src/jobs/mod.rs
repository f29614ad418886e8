//! The schedules of jobs: the moments at which a turn is due. Pure.
//!
//! A moment of a schedule is a slot, named by its Unix milliseconds. [`Timetable::look`] finds at a
//! moment the due slot, the missed slots, and the moment of the next look.

mod alarm;
mod cron;
mod hours;
mod span;
mod timetable;
mod when;

pub use alarm::Alarm;
pub use cron::{Cron, InvalidCron};
pub use hours::Hours;
pub use span::{in_words, parse_span};
pub use timetable::{Look, MOST_COUNTED, SkipReason, Slot, Timetable, Verdict};
pub use when::{When, parse_moment};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The consequence of a missed slot: the gateway was off, or the clock jumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// The slot is skipped.
    #[default]
    Skip,
    /// A single run stands for all missed slots.
    Once,
}

/// The conversation of a job's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobContext {
    /// The job's own, `cron:<agent>:<job>`.
    #[default]
    Own,
    /// The conversation of the job's place, so that a reply there makes sense.
    Place,
}

impl Missed {
    pub const ALL: &'static [Missed] = &[Missed::Skip, Missed::Once];

    pub fn as_str(self) -> &'static str {
        match self {
            Missed::Skip => "skip",
            Missed::Once => "once",
        }
    }
}

impl JobContext {
    pub const ALL: &'static [JobContext] = &[JobContext::Own, JobContext::Place];

    pub fn as_str(self) -> &'static str {
        match self {
            JobContext::Own => "own",
            JobContext::Place => "place",
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Missed {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut all = Missed::ALL.iter().copied();
        all.find(|missed| missed.as_str() == text).ok_or(())
    }
}

impl FromStr for JobContext {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut all = JobContext::ALL.iter().copied();
        all.find(|context| context.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests;
