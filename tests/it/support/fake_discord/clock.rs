//! Time and the ids made of it.
//!
//! <https://discord.com/developers/docs/reference#snowflakes>

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// The first second of 2015.
const DISCORD_EPOCH_MILLIS: u64 = 1_420_070_400_000;

/// Ids and timestamps go by the real time; deadlines only by [`Clock::advance`], so that a slow
/// machine breaks none.
#[derive(Default)]
pub(super) struct Clock {
    last_id: u64,
    advanced: Duration,
    behind: Duration,
}

impl Clock {
    pub(super) fn advance(&mut self, by: Duration) {
        self.advanced += by;
    }

    /// From here on Discord's time is behind the machine's: whose clock is wrong, nobody else can
    /// tell.
    pub(super) fn set_back(&mut self, by: Duration) {
        self.behind = by;
    }

    /// What Discord says that the time is, in the form of a header.
    pub(super) fn date(&self) -> String {
        (Utc::now() - self.behind)
            .format("%a, %d %b %Y %H:%M:%S GMT")
            .to_string()
    }

    /// For deadlines: how far the test has moved the clock.
    pub(super) fn advanced(&self) -> Duration {
        self.advanced
    }

    /// A new id, greater than all before.
    pub(super) fn next_id(&mut self) -> u64 {
        let advanced =
            u64::try_from(self.advanced.as_millis()).expect("a test advances by minutes");
        let millis = (Utc::now() - self.behind).timestamp_millis().unsigned_abs() + advanced
            - DISCORD_EPOCH_MILLIS;
        self.last_id = (millis << 22).max(self.last_id + 1);
        self.last_id
    }
}

/// When an id was made, in the form that Discord writes.
pub(super) fn time_of(id: u64) -> String {
    iso((id >> 22) + DISCORD_EPOCH_MILLIS)
}

fn iso(millis: u64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(millis.cast_signed())
        .expect("within chrono's range");
    time.to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// A moment before every test.
pub(super) const LONG_AGO: &str = "2024-01-01T00:00:00.000000+00:00";
