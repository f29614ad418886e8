//! Explains a routing decision: every rule for a message, strongest first, with its outcome.

use std::fmt;

use serde::Serialize;

use super::filter::{Filter, Filters, comma_separated, topic_name};
use super::table::Bound;
use super::trial::{Decision, Trial, trials};
use super::{Pin, Rank, Route, Table, because};
use crate::domain::{AgentId, Origin, PersonId};

/// The decision of [`super::route`], with every step on the way.
pub fn explain(table: &Table, pin: Option<&Pin>, origin: &Origin) -> Explanation {
    let trials: Vec<Trial<'_>> = trials(table, origin).collect();
    let decision = trials.iter().find_map(|trial| trial.decide(origin));
    let route = Route::new(table, pin, decision.as_ref());
    let judge = Judge {
        origin,
        pin,
        decision: decision.as_ref(),
    };
    let mut steps = vec![pin_step(pin, origin)];
    // Without a person, rules for a single person are left out.
    let is_shown = |trial: &&Trial<'_>| {
        !(origin.person.is_nobody() && matches!(trial.slot.rank, Rank::Member | Rank::Person))
    };
    steps.extend(
        trials
            .iter()
            .filter(is_shown)
            .map(|trial| judge.step(trial)),
    );
    steps.push(default_step(table, &route));
    Explanation {
        origin: origin.clone(),
        reason: route.rule.to_string(),
        setter: pin.map(|pin| match (&pin.set_by, &pin.set_by_name) {
            (PersonId::Local(_), None) => format!("the person at the terminal ({})", pin.set_by),
            _ => setter(pin),
        }),
        route,
        steps,
        unbound: Vec::new(),
        is_silent: false,
    }
}

/// `Display` is the listing for a terminal, `Serialize` the same for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub origin: Origin,
    pub route: Route,
    /// The deciding rule in words.
    pub reason: String,
    /// Strongest first, from the pin to `default_agent`.
    pub steps: Vec<Step>,
    /// The place gets no answer, for a reason besides the rules; the route names the agent of the
    /// rules.
    #[serde(skip)]
    pub is_silent: bool,
    /// The person who set the pin, for people.
    #[serde(skip)]
    setter: Option<String>,
    /// The kinds of steps that [`Explanation::in_short`] has left out.
    #[serde(skip)]
    unbound: Vec<&'static str>,
}

/// A place in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub rank: Rank,
    /// The rank in the words of the place: "exact thread", "group".
    pub kind: &'static str,
    /// The `match` of bindings in this place.
    pub looked_for: String,
    /// Strongest first.
    pub bindings: Vec<Candidate>,
    pub result: String,
}

/// A binding in this place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Counted from 0 in the order of the file.
    pub index: usize,
    /// The line of its `match` in config.toml.
    pub line: usize,
    pub agent: AgentId,
    pub outcome: Outcome,
    pub filters: Vec<FilterCheck>,
}

/// A filter of a binding, held against the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterCheck {
    pub filter: String,
    pub holds: bool,
    /// The property of the message that was compared.
    pub finding: String,
}

/// The outcome of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Decides,
    /// Would decide, were there no pin.
    UnderPin,
    /// A filter does not hold.
    Misses,
    /// Matches, but a stronger rule did before.
    Weaker,
    /// Matches and is as strong as the deciding binding, but stands later in the file.
    Later,
}

impl Outcome {
    fn in_words(self) -> &'static str {
        match self {
            Outcome::Decides => "decides",
            Outcome::UnderPin => "would decide without the pin",
            Outcome::Misses => "does not match",
            Outcome::Weaker => "matches, but is weaker",
            Outcome::Later => "matches and is as strong, but stands later in the file",
        }
    }
}

/// The facts for judging a step.
struct Judge<'a> {
    origin: &'a Origin,
    pin: Option<&'a Pin>,
    decision: Option<&'a Decision<'a>>,
}

impl Judge<'_> {
    fn step(&self, trial: &Trial<'_>) -> Step {
        let bindings: Vec<Candidate> = trial
            .bindings()
            .map(|binding| self.candidate(trial, binding))
            .collect();
        Step {
            rank: trial.slot.rank,
            kind: trial.slot.kind(),
            looked_for: trial.slot.target.to_string(),
            result: summary(&bindings).to_owned(),
            bindings,
        }
    }

    fn candidate(&self, trial: &Trial<'_>, binding: &Bound) -> Candidate {
        Candidate {
            index: binding.index,
            line: binding.line,
            agent: binding.agent.clone(),
            outcome: self.outcome(trial, binding),
            filters: checks(&binding.filters, self.origin),
        }
    }

    fn outcome(&self, trial: &Trial<'_>, binding: &Bound) -> Outcome {
        match self.decision {
            _ if !binding.filters.hold(self.origin) => Outcome::Misses,
            Some(decision) if decision.binding.index != binding.index => {
                weaker_or_later(decision, trial, binding)
            }
            _ if self.pin.is_some() => Outcome::UnderPin,
            _ => Outcome::Decides,
        }
    }
}

fn weaker_or_later(decision: &Decision<'_>, trial: &Trial<'_>, binding: &Bound) -> Outcome {
    let same_slot = decision.rank == trial.slot.rank && decision.binding.target == binding.target;
    let same_strength = same_slot && decision.binding.filters.count() == binding.filters.count();
    if same_strength {
        Outcome::Later
    } else {
        Outcome::Weaker
    }
}

fn checks(filters: &Filters, origin: &Origin) -> Vec<FilterCheck> {
    let check = |filter: &Filter| FilterCheck {
        filter: filter.to_string(),
        holds: filter.holds(origin),
        finding: filter.finding(origin),
    };
    filters.iter().map(check).collect()
}

const NO_BINDING: &str = "no binding";

fn summary(bindings: &[Candidate]) -> &'static str {
    let strongest = bindings
        .iter()
        .map(|binding| binding.outcome)
        .find(|outcome| *outcome != Outcome::Misses);
    match (bindings, strongest) {
        ([], _) => NO_BINDING,
        (_, None) => Outcome::Misses.in_words(),
        (_, Some(outcome)) => outcome.in_words(),
    }
}

fn pin_step(pin: Option<&Pin>, origin: &Origin) -> Step {
    let result = match pin {
        None => "no pin".to_owned(),
        Some(pin) if pin.once => {
            format!(
                "{}, set by {} for one turn: decides",
                pin.agent,
                setter(pin)
            )
        }
        Some(pin) => format!("{}, set by {}: decides", pin.agent, setter(pin)),
    };
    Step {
        rank: Rank::Pin,
        kind: "pin",
        looked_for: origin.key.to_string(),
        bindings: Vec::new(),
        result,
    }
}

/// `Alice (telegram:11)`.
fn setter(pin: &Pin) -> String {
    match &pin.set_by_name {
        Some(name) => format!("{name} ({})", pin.set_by),
        None => pin.set_by.to_string(),
    }
}

fn default_step(table: &Table, route: &Route) -> Step {
    let decides = if route.rule.rank() == Rank::Default {
        "decides"
    } else {
        "not needed"
    };
    let result = format!("{}: {decides}", table.default_agent());
    Step {
        rank: Rank::Default,
        kind: "default",
        looked_for: "default_agent".to_owned(),
        bindings: Vec::new(),
        result,
    }
}

impl Explanation {
    /// The listing in columns if they fit, else with the finding of each step on a line below the
    /// step.
    pub fn within(&self, columns: usize) -> String {
        let wide = self.to_string();
        match wide.lines().all(|line| line.chars().count() <= columns) {
            true => wide,
            false => Narrow(self).to_string(),
        }
    }

    /// The same with a single line for all kinds of rules that have no binding.
    #[must_use]
    pub fn in_short(mut self) -> Self {
        let is_unbound = |step: &Step| step.bindings.is_empty() && step.result == NO_BINDING;
        let (unbound, steps): (Vec<Step>, Vec<Step>) = self.steps.into_iter().partition(is_unbound);
        self.steps = steps;
        for step in unbound {
            if !self.unbound.contains(&step.kind) {
                self.unbound.push(step.kind);
            }
        }
        self
    }

    fn write_unbound(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unbound.is_empty() {
            true => Ok(()),
            false => writeln!(f, "no binding for: {}", self.unbound.join(", ")),
        }
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, agent) = (&self.origin.key, &self.route.agent);
        match self.is_silent {
            true => writeln!(f, "Otherwise {agent} would answer in {key}")?,
            false => writeln!(f, "{key} belongs to {agent}")?,
        }
        let setter = |id: &str| self.setter.clone().unwrap_or_else(|| id.to_owned());
        writeln!(f, "{}", because(&self.reason, &setter))?;
        write_facts(f, settings(&self.route))?;
        write_facts(f, facts(&self.origin))?;
        writeln!(f)
    }
}

/// The listing for a narrow terminal.
struct Narrow<'a>(&'a Explanation);

impl fmt::Display for Narrow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_head(f)?;
        for step in &self.0.steps {
            writeln!(f, "{}: {}", step.kind, step.looked_for)?;
            write!(f, "  ")?;
            write_findings(f, step, "  ")?;
        }
        self.0.write_unbound(f)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        let kind_width = self
            .steps
            .iter()
            .map(|step| step.kind.chars().count())
            .max()
            .unwrap_or(0);
        let target_width = self
            .steps
            .iter()
            .map(|step| step.looked_for.chars().count())
            .max()
            .unwrap_or(0);
        for step in &self.steps {
            write_step(f, step, kind_width, target_width)?;
        }
        self.write_unbound(f)
    }
}

/// The place's settings besides its agent.
fn settings(route: &Route) -> impl Iterator<Item = (&'static str, String)> {
    let settings = [
        (
            "locked",
            route
                .locked
                .then(|| "only owners and admins may use /agent here".to_owned()),
        ),
        (
            "require_mention",
            route.require_mention.map(|required| required.to_string()),
        ),
    ];
    settings
        .into_iter()
        .filter_map(|(setting, value)| Some((setting, value?)))
}

/// Facts about the message beyond its place.
fn facts(origin: &Origin) -> impl Iterator<Item = (&'static str, String)> {
    let list = |items: String| Some(items).filter(|items| !items.is_empty());
    let facts = [
        ("name", topic_name(origin).map(str::to_owned)),
        (
            "formerly",
            origin.formerly.map(|chat| format!("telegram:group:{chat}")),
        ),
        ("tags", list(comma_separated(&origin.tags))),
        (
            "category",
            origin.category.map(|category| category.to_string()),
        ),
        ("server", origin.server.map(|server| server.to_string())),
        ("roles", list(comma_separated(&origin.roles))),
    ];
    facts
        .into_iter()
        .filter_map(|(fact, value)| Some((fact, value?)))
}

fn write_facts(
    f: &mut fmt::Formatter<'_>,
    facts: impl Iterator<Item = (&'static str, String)>,
) -> fmt::Result {
    for (position, (fact, value)) in facts.enumerate() {
        let gap = if position == 0 { "\n" } else { "" };
        writeln!(f, "{gap}{fact}: {value}")?;
    }
    Ok(())
}

fn write_step(
    f: &mut fmt::Formatter<'_>,
    step: &Step,
    kind_width: usize,
    target_width: usize,
) -> fmt::Result {
    let (kind, target) = (step.kind, &step.looked_for);
    write!(f, "{kind:kind_width$}  {target:target_width$}  ")?;
    write_findings(f, step, &" ".repeat(kind_width + target_width + 4))
}

/// The outcome of each binding, or the result where there is none. The first line is begun already.
fn write_findings(f: &mut fmt::Formatter<'_>, step: &Step, indent: &str) -> fmt::Result {
    if step.bindings.is_empty() {
        return writeln!(f, "{}", step.result);
    }
    for (position, binding) in step.bindings.iter().enumerate() {
        let lead = if position == 0 { "" } else { indent };
        writeln!(
            f,
            "{lead}config.toml line {}, {}: {}",
            binding.line,
            binding.agent,
            binding.outcome.in_words()
        )?;
        for check in &binding.filters {
            let verdict = if check.holds { "yes" } else { "no" };
            writeln!(
                f,
                "{indent}  {}: {verdict}, {}",
                check.filter, check.finding
            )?;
        }
    }
    Ok(())
}
