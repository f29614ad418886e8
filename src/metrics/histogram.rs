//! Durations, counted by size.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in seconds. The same for every duration: a store answers within the first ones, a
/// model within the last ones.
pub(super) const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
];

#[derive(Debug)]
pub(super) struct Histogram {
    /// By upper bound; the last has no bound.
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The numbers of one moment, or a sum of several histograms.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Seen {
    pub(super) counts: [u64; BOUNDS.len() + 1],
    micros: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    pub(super) const fn new() -> Self {
        Histogram {
            counts: [const { AtomicU64::new(0) }; BOUNDS.len() + 1],
            micros: AtomicU64::new(0),
        }
    }

    pub(super) fn note(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Adds the numbers of another.
    pub(super) fn absorb(&self, other: &Histogram) {
        let Seen { counts, micros } = other.seen();
        for (own, more) in self.counts.iter().zip(counts) {
            own.fetch_add(more, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            counts: std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed)),
            micros: self.micros.load(Ordering::Relaxed),
        }
    }
}

impl Seen {
    pub(super) fn add(&mut self, other: &Seen) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.micros = self.micros.wrapping_add(other.micros);
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn seconds(&self) -> f64 {
        self.micros as f64 / 1e6
    }

    /// Each bound with the number of durations in its own bucket.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        bounds.zip(self.counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_by_their_bound() {
        let histogram = Histogram::new();
        for millis in [0, 1, 2, 250, 251, 500_000] {
            histogram.note(Duration::from_millis(millis));
        }
        let mut seen = histogram.seen();
        assert_eq!(seen.counts, [2, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert!((seen.seconds() - 500.504).abs() < 1e-9);
        seen.add(&histogram.seen());
        assert_eq!(seen.count(), 12);
    }
}
