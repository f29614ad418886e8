//! Decides which agent answers in a place.
//!
//! `pattern` reads a binding's `match`, `filter` its filters, `table` files the bindings for a
//! look-up in constant time, `check` finds wrong bindings, `trial` orders rules by strength, and
//! `explain` shows every step of a decision. Pure: no clock, no files, no network.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::domain::{AgentId, Origin, PersonId};

pub(crate) mod aliases;
pub(crate) mod check;
pub(crate) mod delivery_off;
pub(crate) mod doors;
mod explain;
mod filter;
mod glob;
mod judging;
pub(crate) mod names;
pub(crate) mod openings;
mod pattern;
pub mod pins;
pub(crate) mod places;
pub(crate) mod ranked;
mod router;
mod table;
#[cfg(test)]
mod tests;
mod trial;
mod usable;

pub use explain::{Candidate, Explanation, FilterCheck, Outcome, Step, explain};
pub(crate) use judging::{Judgment, Question, judge};
pub(crate) use router::resolve;
pub use router::{Resolved, Router};
pub use table::{BoundGroup, BoundOnDiscord, DiscordPlace, Table};
pub use trial::Rank;
pub(crate) use usable::Visit;

use trial::{Decision, trials};

/// The agent for a message, and the reason. Tries the strongest rules first and stops at the first
/// match.
pub fn route(table: &Table, pin: Option<&Pin>, origin: &Origin) -> Route {
    let decision = trials(table, origin).find_map(|trial| trial.decide(origin));
    Route::new(table, pin, decision.as_ref())
}

/// A place's agent, set from chat; wins over every binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub agent: AgentId,
    /// Holds for a single turn.
    pub once: bool,
    pub set_by: PersonId,
    /// The person's name at the time, if known.
    pub set_by_name: Option<String>,
    /// Unix milliseconds.
    pub set_at: i64,
    /// When the pin ends by itself, in Unix milliseconds.
    pub until: Option<i64>,
}

/// A place opened from chat. The place stays open when its pin is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub by: PersonId,
    /// The person's name at the time, if known.
    pub by_name: Option<String>,
    /// Unix milliseconds.
    pub at: i64,
}

/// Delivery switched off in a place: answers are kept instead of sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOff {
    /// The id of the person who switched delivery off.
    pub by: String,
    /// The person's name at the time, if known.
    pub by_name: Option<String>,
    /// Unix milliseconds.
    pub at: i64,
}

/// The settings of a place made in chat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FromChat {
    pub pin: Option<Pin>,
    pub opened: Option<Opened>,
    pub delivery_off: Option<DeliveryOff>,
}

/// The agent for a message, and the place's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    pub agent: AgentId,
    pub rule: Rule,
    /// `/agent` is refused here, except for owners and admins. Set by the binding, also beneath a
    /// pin.
    pub locked: bool,
    /// Overrides `access.require_mention`. Set by the binding, also beneath a pin.
    pub require_mention: Option<bool>,
    /// Whether a binding is about this very place, or an owner or admin has opened the place from
    /// chat. Such a place is open to the bot with `groups = "bound"`.
    pub opens_place: bool,
}

impl Route {
    fn new(table: &Table, pin: Option<&Pin>, decision: Option<&Decision<'_>>) -> Self {
        let binding = decision.map(|decision| decision.binding);
        let (agent, rule) = match (pin, decision) {
            (Some(pin), _) => (
                &pin.agent,
                Rule::Pin {
                    set_by: pin.set_by.clone(),
                    once: pin.once,
                },
            ),
            (None, Some(decision)) => (&decision.binding.agent, decision.rule()),
            (None, None) => (table.default_agent(), Rule::Default),
        };
        Route {
            agent: agent.clone(),
            locked: binding.is_some_and(|binding| binding.locked),
            require_mention: binding.and_then(|binding| binding.require_mention),
            opens_place: decision.is_some_and(|decision| decision.rank.is_about_a_place()),
            rule,
        }
    }
}

/// The deciding rule. `Display` gives the reason in words: `config.toml line 52: exact
/// topic telegram:topic:-100:7`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Rule {
    Pin {
        set_by: PersonId,
        once: bool,
    },
    Binding {
        /// Counted from 0 in the order of the file.
        index: usize,
        /// The line of its `match` in config.toml.
        line: usize,
        rank: Rank,
        /// The rank in the words of the place: "exact thread", "group".
        kind: &'static str,
        /// The place and the filters.
        #[serde(serialize_with = "serialize_text")]
        matches: Arc<str>,
    },
    Default,
}

impl Rule {
    pub fn rank(&self) -> Rank {
        match self {
            Rule::Pin { .. } => Rank::Pin,
            Rule::Binding { rank, .. } => *rank,
            Rule::Default => Rank::Default,
        }
    }

    /// The reason in two or three words, for logs and metrics: "pin", "exact topic",
    /// "default_agent".
    pub fn short(&self) -> &'static str {
        match self {
            Rule::Pin { .. } => "pin",
            Rule::Binding { kind, .. } => kind,
            Rule::Default => "default_agent",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Pin {
                set_by,
                once: false,
            } => write!(f, "pin set by {set_by}"),
            Rule::Pin { set_by, once: true } => write!(f, "pin for one turn, set by {set_by}"),
            Rule::Binding {
                line,
                kind,
                matches,
                ..
            } => write!(f, "config.toml line {line}: {kind} {matches}"),
            Rule::Default => f.write_str("default_agent"),
        }
    }
}

/// The text of a rule for people, behind the name of an agent: `because Alice chose it`. `called`
/// names the person who set a pin.
pub(crate) fn because(rule: &str, called: &dyn Fn(&str) -> String) -> String {
    let lasting = rule.strip_prefix("pin set by ").map(|by| (by, ""));
    let once = rule.strip_prefix("pin for one turn, set by ");
    let once = once.map(|by| (by, " for one turn"));
    match lasting.or(once) {
        Some((by, how_long)) => format!("because {} chose it{how_long}", called(by)),
        None if rule == Rule::Default.short() => "because it is the default agent".to_owned(),
        None => format!("because of {rule}"),
    }
}

fn serialize_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}
