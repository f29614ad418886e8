//! The slots of a schedule.

use jiff::civil::DateTime;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::{Cron, in_words};
use crate::domain::Zone;

/// The rule that makes slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum When {
    /// A cron expression in a time zone.
    Cron { cron: Cron, zone: Zone },
    /// Slots in equal steps, counted from a moment.
    Every { ms: i64, from: i64 },
    /// Once.
    At(i64),
}

/// The stored form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Written {
    Cron { cron: String, zone: Option<String> },
    Every { ms: i64, from: i64 },
    At(i64),
}

impl From<When> for Written {
    fn from(when: When) -> Self {
        match when {
            When::Cron { cron, zone } => Written::Cron {
                cron: cron.as_str().to_owned(),
                zone: zone.name().map(str::to_owned),
            },
            When::Every { ms, from } => Written::Every { ms, from },
            When::At(at) => Written::At(at),
        }
    }
}

impl TryFrom<Written> for When {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        Ok(match written {
            Written::Cron { cron, zone } => When::Cron {
                cron: Cron::parse(&cron).map_err(|error| error.to_string())?,
                zone: match zone {
                    Some(name) => {
                        Zone::named(&name).ok_or(format!("no time zone is called {name}"))?
                    }
                    None => Zone::default(),
                },
            },
            Written::Every { ms, from } if ms > 0 => When::Every { ms, from },
            Written::Every { .. } => return Err("a step has no length".to_owned()),
            Written::At(at) => When::At(at),
        })
    }
}

/// Windows for the search of the latest slot, to keep a search over a long time short.
const WINDOWS_MS: [i64; 4] = [
    3_600_000,
    24 * 3_600_000,
    32 * 24 * 3_600_000,
    400 * 24 * 3_600_000,
];

impl When {
    /// The first slot after a moment.
    pub fn next_after(&self, after: i64) -> Option<i64> {
        self.slots_after(after).next()
    }

    /// All slots after a moment, in order.
    pub fn slots_after(&self, after: i64) -> Box<dyn Iterator<Item = i64>> {
        match self {
            When::Cron { cron, zone } => Box::new(cron.after(&zone.rules(), after)),
            When::Every { ms, from } => {
                let steps = after.saturating_sub(*from).div_euclid(*ms);
                let first = steps
                    .checked_add(1)
                    .and_then(|steps| steps.checked_mul(*ms));
                let (first, ms) = (first.and_then(|first| first.checked_add(*from)), *ms);
                Box::new(std::iter::successors(first, move |slot| {
                    slot.checked_add(ms)
                }))
            }
            When::At(at) => Box::new(Some(*at).filter(|at| *at > after).into_iter()),
        }
    }

    /// The latest slot after `after`, up to `upto`.
    pub(super) fn latest(&self, after: i64, upto: i64) -> Option<i64> {
        if let When::Every { ms, from } = self {
            let slot = upto.saturating_sub(*from).div_euclid(*ms) * ms + from;
            return Some(slot).filter(|slot| *slot > after);
        }
        let starts = WINDOWS_MS.map(|window| upto.saturating_sub(window).max(after));
        let starts = starts.into_iter().chain([after]);
        let latest = |start| {
            self.slots_after(start)
                .take_while(|slot| *slot <= upto)
                .last()
        };
        starts.filter(|start| *start < upto).find_map(latest)
    }

    /// Whether the schedule has a single slot.
    pub fn is_once(&self) -> bool {
        matches!(self, When::At(_))
    }

    /// The shortest time between two slots of the next ones; none for a single slot.
    pub fn shortest_step(&self, after: i64) -> Option<i64> {
        const LOOKED_AT: usize = 60;
        match self {
            When::Every { ms, .. } => Some(*ms),
            When::At(_) => None,
            When::Cron { .. } => {
                let slots: Vec<i64> = self.slots_after(after).take(LOOKED_AT).collect();
                slots.windows(2).map(|pair| pair[1] - pair[0]).min()
            }
        }
    }

    /// The rule for people. Times of a single slot are told in `zone`.
    pub fn in_words(&self, zone: &Zone) -> String {
        match self {
            When::Cron { cron, zone } => match zone.name() {
                Some(name) => format!("{} ({name})", cron.as_str()),
                None => cron.as_str().to_owned(),
            },
            When::Every { ms, .. } => format!("every {}", in_words(*ms)),
            When::At(at) => zone.at(*at).format("%Y-%m-%d %H:%M").to_string(),
        }
    }
}

/// A moment in people's notation: `2026-12-24 18:00` in the zone, or with an offset or `Z`.
pub fn parse_moment(text: &str, zone: &Zone) -> Option<i64> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment.as_millisecond());
    }
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Some(zoned.timestamp().as_millisecond());
    }
    let local: DateTime = text.parse().ok()?;
    let zoned = local.to_zoned(zone.rules()).ok()?;
    Some(zoned.timestamp().as_millisecond())
}
