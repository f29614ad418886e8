//! A part of the day, such as `22:00-07:00`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::Zone;

const DAY_MINUTES: u32 = 24 * 60;

/// From a minute of the day to another, perhaps over midnight. The last minute does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hours {
    from: u32,
    to: u32,
}

impl Hours {
    /// All other hours of the day.
    pub fn inverse(self) -> Self {
        Hours {
            from: self.to,
            to: self.from,
        }
    }

    /// The first full minute after a moment at which clocks in the zone show a time outside of
    /// these hours.
    pub(super) fn end_after(&self, zone: &Zone, millis: i64) -> i64 {
        const MINUTE_MS: i64 = 60_000;
        let first = (millis.div_euclid(MINUTE_MS) + 1) * MINUTE_MS;
        // A change of the clock makes a day longer by hours, never by a day.
        let minutes = (0..2 * i64::from(DAY_MINUTES)).map(|minute| first + minute * MINUTE_MS);
        let mut outside = minutes.filter(|at| !self.has(zone, *at));
        outside.next().unwrap_or(first)
    }

    /// Whether clocks in the zone show a time within these hours.
    pub fn has(&self, zone: &Zone, millis: i64) -> bool {
        use chrono::Timelike;
        let time = zone.at(millis);
        let minute = time.hour() * 60 + time.minute();
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

impl FromStr for Hours {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (from, to) = text.split_once(['-', '–']).ok_or(())?;
        let (from, to) = (minute(from.trim())?, minute(to.trim())? % DAY_MINUTES);
        let fits = from < DAY_MINUTES && from != to;
        fits.then_some(Hours { from, to }).ok_or(())
    }
}

/// Minutes since midnight. `24:00` is the end of the day.
fn minute(text: &str) -> Result<u32, ()> {
    let (hour, minute) = text.split_once(':').unwrap_or((text, "0"));
    let number = |text: &str| -> Result<u32, ()> {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
        is_number.then_some(()).ok_or(())?;
        text.parse().map_err(|_| ())
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    let total = hour * 60 + minute;
    (minute < 60 && total <= DAY_MINUTES)
        .then_some(total)
        .ok_or(())
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hours { from, to } = self;
        let [from_minute, to_minute] = [from % 60, to % 60];
        let [from, to] = [from / 60, to / 60];
        write!(f, "{from:02}:{from_minute:02}-{to:02}:{to_minute:02}")
    }
}

impl TryFrom<String> for Hours {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map_err(|()| format!("`{text}` is no part of a day"))
    }
}

impl From<Hours> for String {
    fn from(hours: Hours) -> String {
        hours.to_string()
    }
}
