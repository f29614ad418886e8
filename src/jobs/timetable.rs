//! Finds the due slot of a moment.

use serde::{Deserialize, Serialize};

use super::{Hours, Missed, When};
use crate::domain::Zone;

/// A slot found later than this counts as missed. Shorter delays come from a restart or a busy
/// machine.
const GRACE_MS: i64 = 60_000;
/// Missed slots are counted up to this many.
pub const MOST_COUNTED: usize = 1_000;

/// The times of a job, and its quiet hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    pub when: When,
    /// Slots within these hours of the day are skipped.
    pub quiet: Option<Hours>,
    pub missed: Missed,
    /// A job begins up to this much later than its slot, always by the same time, because jobs of
    /// the same minute should not begin together.
    pub jitter_ms: i64,
}

/// The result of a look at a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub due: Option<Slot>,
    /// When to look again. None: the schedule has no more slots.
    pub next: Option<i64>,
}

/// A due slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub at: i64,
    pub verdict: Verdict,
    /// Missed slots before this slot, up to [`MOST_COUNTED`].
    pub missed_before: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Run,
    /// A late run in place of missed slots.
    RunLate,
    Skip(SkipReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// The time of the slot went by while the gateway was off.
    Missed,
    /// Within quiet hours.
    Quiet,
}

impl Timetable {
    pub fn new(when: When) -> Self {
        Timetable {
            when,
            quiet: None,
            missed: Missed::default(),
            jitter_ms: 0,
        }
    }

    /// Looks at the schedule at `now`. All slots up to `handled` are done. `zone` is the zone of
    /// the quiet hours, `seed` tells jobs apart.
    ///
    /// After a jump of the clock to the past, finished slots come up again. The row of each slot
    /// keeps them from a second run.
    pub fn look(&self, zone: &Zone, seed: &str, handled: i64, now: i64) -> Look {
        let delay = self.delay(seed);
        let upto = now.saturating_sub(delay);
        let handled = handled.min(upto);
        if let Some(quiet) = self.quiet
            && self.is_owed(quiet, zone, handled, upto, now)
        {
            return Look {
                due: None,
                next: Some(quiet.end_after(zone, now)),
            };
        }
        let due = self.when.latest(handled, upto).map(|at| Slot {
            at,
            verdict: self.verdict(zone, at.saturating_add(delay), now),
            missed_before: self.count(handled, at),
        });
        let next = self.when.next_after(upto);
        Look {
            due,
            next: next.map(|slot| slot.saturating_add(delay)),
        }
    }

    /// Whether a missed run is to be made up for, and has to wait for the end of the quiet hours.
    fn is_owed(&self, quiet: Hours, zone: &Zone, handled: i64, upto: i64, now: i64) -> bool {
        if self.missed == Missed::Skip || !quiet.has(zone, now) {
            return false;
        }
        let delay = now.saturating_sub(upto);
        let slots = self.when.slots_after(handled).take(MOST_COUNTED);
        slots
            .take_while(|slot| *slot <= upto)
            .any(|slot| !quiet.has(zone, slot.saturating_add(delay)))
    }

    /// The next moments at which the job begins, outside its quiet hours.
    pub fn upcoming(&self, zone: &Zone, seed: &str, now: i64, most: usize) -> Vec<i64> {
        const LOOKED_AT: usize = 2_000;
        let delay = self.delay(seed);
        let slots = self.when.slots_after(now.saturating_sub(delay));
        let begins = slots.take(LOOKED_AT).map(|slot| slot.saturating_add(delay));
        begins
            .filter(|at| !self.quiet.is_some_and(|quiet| quiet.has(zone, *at)))
            .take(most)
            .collect()
    }

    fn verdict(&self, zone: &Zone, due: i64, now: i64) -> Verdict {
        let is_quiet = |at| self.quiet.is_some_and(|quiet| quiet.has(zone, at));
        let is_late = now.saturating_sub(due) > GRACE_MS;
        match self.missed {
            _ if is_quiet(now) => Verdict::Skip(SkipReason::Quiet),
            Missed::Once if is_late => Verdict::RunLate,
            Missed::Skip if is_late => Verdict::Skip(SkipReason::Missed),
            _ => Verdict::Run,
        }
    }

    fn count(&self, after: i64, before: i64) -> usize {
        if let When::Every { ms, .. } = self.when {
            let steps = before.saturating_sub(after).saturating_sub(1) / ms;
            return usize::try_from(steps)
                .unwrap_or(MOST_COUNTED)
                .min(MOST_COUNTED);
        }
        let slots = self.when.slots_after(after);
        slots
            .take_while(|slot| *slot < before)
            .take(MOST_COUNTED)
            .count()
    }

    /// The delay of a job within its jitter. The same job has the same delay on every day and after
    /// every start.
    fn delay(&self, seed: &str) -> i64 {
        if self.jitter_ms <= 0 {
            return 0;
        }
        // FNV-1a, because the hashes of the standard library may change with its version.
        let hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let span = u64::try_from(self.jitter_ms).unwrap_or(0).saturating_add(1);
        i64::try_from(hash % span).unwrap_or(0)
    }
}
