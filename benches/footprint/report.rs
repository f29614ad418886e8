//! The figures, as a table for people and as JSON for comparing runs.

use std::fs;
use std::path::Path;

use serde_json::json;

pub(crate) struct Figure {
    key: &'static str,
    what: &'static str,
    unit: Unit,
    /// What the median should not be above.
    target: Option<f64>,
    /// In ascending order, never empty once reported.
    samples: Vec<f64>,
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Milliseconds,
    Seconds,
    Kibibytes,
    Mebibytes,
    Count,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
            Unit::Kibibytes => "KiB",
            Unit::Mebibytes => "MiB",
            Unit::Count => "",
        }
    }
}

impl Figure {
    pub(crate) fn new(key: &'static str, what: &'static str, unit: Unit) -> Self {
        Figure {
            key,
            what,
            unit,
            target: None,
            samples: Vec::new(),
        }
    }

    pub(crate) fn target(self, target: f64) -> Self {
        Figure {
            target: Some(target),
            ..self
        }
    }

    pub(crate) fn samples(self, samples: impl IntoIterator<Item = f64>) -> Self {
        let mut samples: Vec<f64> = samples.into_iter().collect();
        samples.sort_by(f64::total_cmp);
        assert!(!samples.is_empty(), "{} was not measured", self.what);
        Figure { samples, ..self }
    }

    fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// The smallest sample that so many percent are not above.
    fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.samples.len() * percent).div_ceil(100).max(1);
        self.samples[rank - 1]
    }

    fn is_met(&self) -> Option<bool> {
        self.target.map(|target| self.median() <= target)
    }

    fn verdict(&self) -> &'static str {
        match self.is_met() {
            Some(true) => "ok",
            Some(false) => "over",
            None => "",
        }
    }

    fn row(&self) -> String {
        let target = self
            .target
            .map(|target| format!("{target}"))
            .unwrap_or_default();
        let [median, p95, most] = [self.median(), self.percentile(95), self.percentile(100)];
        let (what, unit, samples, verdict) = (
            self.what,
            self.unit.name(),
            self.samples.len(),
            self.verdict(),
        );
        let row = format!(
            "{what:<42}{median:>9.2}{p95:>9.2}{most:>9.2} {unit:<5}{samples:>5}{target:>9}  {verdict}"
        );
        row.trim_end().to_owned()
    }
}

pub(crate) fn table(figures: &[Figure]) -> String {
    let mut lines = vec![
        String::new(),
        format!(
            "{:<42}{:>9}{:>9}{:>9} {:<5}{:>5}{:>9}",
            "", "median", "p95", "most", "unit", "runs", "target"
        ),
    ];
    lines.extend(figures.iter().map(Figure::row));
    let missed = figures
        .iter()
        .filter(|figure| figure.is_met() == Some(false))
        .count();
    if missed > 0 {
        lines.push(format!(
            "\n{missed} over target on this machine ({} cores)",
            cores()
        ));
    }
    lines.join("\n") + "\n"
}

pub(crate) fn write(figures: &[Figure], path: &Path) {
    let figures: Vec<_> = figures
        .iter()
        .map(|figure| {
            json!({
                "key": figure.key,
                "what": figure.what,
                "unit": figure.unit.name(),
                "median": figure.median(),
                "p95": figure.percentile(95),
                "least": figure.samples[0],
                "most": figure.percentile(100),
                "samples": figure.samples.len(),
                "target": figure.target,
                "met": figure.is_met(),
            })
        })
        .collect();
    let report =
        json!({ "version": env!("CARGO_PKG_VERSION"), "cores": cores(), "figures": figures });
    fs::write(path, format!("{report:#}\n"))
        .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
