//! The figures, as tables for people and as JSON for comparing runs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::growth::Growth;

pub(crate) struct Figure {
    key: &'static str,
    what: &'static str,
    unit: Unit,
    /// What so many percent of the samples should not be above.
    target: Option<(usize, f64)>,
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

    /// Of the median.
    pub(crate) fn target(self, target: f64) -> Self {
        self.target_of(50, target)
    }

    pub(crate) fn target_of(self, percent: usize, target: f64) -> Self {
        Figure {
            target: Some((percent, target)),
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
        self.target
            .map(|(percent, target)| self.percentile(percent) <= target)
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
            .map(|(_, target)| format!("{target}"))
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

    fn json(&self) -> Value {
        json!({
            "key": self.key,
            "what": self.what,
            "unit": self.unit.name(),
            "median": self.median(),
            "p95": self.percentile(95),
            "least": self.samples[0],
            "most": self.percentile(100),
            "samples": self.samples.len(),
            "target": self.target.map(|(_, target)| target),
            "target_percent": self.target.map(|(percent, _)| percent),
            "met": self.is_met(),
        })
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

/// Parlor beside both floors.
pub(crate) struct Comparison {
    key: String,
    what: String,
    unit: Unit,
    parlor: f64,
    /// Durable and bare, where they have such a figure.
    floors: Option<[f64; 2]>,
    goal: Goal,
}

#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// Of the durable floor's figure, at most.
    Times(f64),
    TimesAtLeast(f64),
    /// The figure itself, at most.
    Most(f64),
}

impl Comparison {
    /// Values are those of Parlor, the durable and the bare floor.
    pub(crate) fn new(key: String, what: String, unit: Unit, goal: Goal, values: [f64; 3]) -> Self {
        let [parlor, durable, bare] = values;
        Comparison {
            key,
            what,
            unit,
            parlor,
            floors: Some([durable, bare]),
            goal,
        }
    }

    /// A figure that floors have not.
    pub(crate) fn alone(key: &str, what: &str, unit: Unit, goal: Goal, parlor: f64) -> Self {
        Comparison {
            key: key.to_owned(),
            what: what.to_owned(),
            unit,
            parlor,
            floors: None,
            goal,
        }
    }

    fn ratio(&self) -> Option<f64> {
        self.floors.map(|[durable, _]| self.parlor / durable)
    }

    fn is_met(&self) -> bool {
        match (self.goal, self.ratio()) {
            (Goal::Times(most), Some(ratio)) => ratio <= most,
            (Goal::TimesAtLeast(least), Some(ratio)) => ratio >= least,
            (Goal::Most(most), _) => self.parlor <= most,
            (Goal::Times(_) | Goal::TimesAtLeast(_), None) => {
                panic!("{} has no floor to be compared with", self.what)
            }
        }
    }

    fn goal(&self) -> String {
        match self.goal {
            Goal::Times(most) => format!("≤ {most}×"),
            Goal::TimesAtLeast(least) => format!("≥ {least}×"),
            Goal::Most(most) => format!("≤ {most} {}", self.unit.name()),
        }
    }

    fn row(&self) -> String {
        let shown = |value: Option<f64>, sign: &str| {
            value.map_or(String::new(), |value| format!("{value:.2}{sign}"))
        };
        let [durable, bare] =
            [0, 1].map(|floor| shown(self.floors.map(|floors| floors[floor]), ""));
        let row = format!(
            "{:<42}{:>10.2}{durable:>10}{bare:>10} {:<4}{:>8}{:>11}  {}",
            self.what,
            self.parlor,
            self.unit.name(),
            shown(self.ratio(), "×"),
            self.goal(),
            if self.is_met() { "ok" } else { "over" },
        );
        row.trim_end().to_owned()
    }

    fn json(&self) -> Value {
        json!({
            "key": self.key,
            "what": self.what.trim(),
            "unit": self.unit.name(),
            "parlor": self.parlor,
            "durable_floor": self.floors.map(|[durable, _]| durable),
            "bare_floor": self.floors.map(|[_, bare]| bare),
            "ratio": self.ratio(),
            "goal": self.goal(),
            "met": self.is_met(),
        })
    }
}

pub(crate) fn comparison_table(comparisons: &[Comparison]) -> String {
    let mut lines = vec![
        String::new(),
        format!(
            "{:<42}{:>10}{:>10}{:>10} {:<4}{:>8}{:>11}",
            "", "Parlor", "durable", "bare", "unit", "ratio", "goal"
        ),
    ];
    lines.extend(comparisons.iter().map(Comparison::row));
    lines.join("\n") + "\n"
}

/// Of unsorted samples.
pub(crate) fn median(samples: &[f64]) -> f64 {
    percentile(samples, 50)
}

pub(crate) fn percentile(samples: &[f64], percent: usize) -> f64 {
    let figure = Figure::new("", "a figure", Unit::Count).samples(samples.iter().copied());
    figure.percentile(percent)
}

/// All that was measured in one run.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) figures: Vec<Figure>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) growth: Vec<Growth>,
}

pub(crate) fn write(report: &Report, path: &Path) {
    let list = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "cores": cores(),
        "figures": report.figures.iter().map(Figure::json).collect::<Vec<_>>(),
        "beside_floors": report.comparisons.iter().map(Comparison::json).collect::<Vec<_>>(),
        "growth": report.growth.iter().map(Growth::json).collect::<Vec<_>>(),
    });
    fs::write(path, format!("{list:#}\n"))
        .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
