//! The report of an import: a list of items found, carried or left, for people and for programs.

use serde::{Deserialize, Serialize};

/// Items in a report; more are counted.
pub(super) const MOST_ITEMS: usize = 20_000;
/// The longest name or reason from a source.
const MAX_CHARS: usize = 300;

/// A system with agents to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum System {
    OpenClaw,
    Hermes,
    ZeroClaw,
    Moltis,
    Signet,
}

impl System {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            System::OpenClaw => "openclaw",
            System::Hermes => "hermes",
            System::ZeroClaw => "zeroclaw",
            System::Moltis => "moltis",
            System::Signet => "signet",
        }
    }

    /// The name as its makers write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            System::OpenClaw => "OpenClaw",
            System::Hermes => "Hermes",
            System::ZeroClaw => "ZeroClaw",
            System::Moltis => "Moltis",
            System::Signet => "Signet",
        }
    }
}

/// The plan of an import, or its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) system: System,
    /// The folder of the other system.
    pub(crate) source: String,
    /// Programs with open files of the source.
    pub(crate) running: Vec<Running>,
    /// Whether the plan was carried out.
    pub(crate) carried_out: bool,
    pub(crate) items: Vec<Item>,
    /// Items beyond the longest list.
    pub(crate) more: usize,
}

impl Report {
    pub(crate) fn count(&self, state: State) -> usize {
        self.items.iter().filter(|item| item.state == state).count()
    }
}

/// A program at work in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// The item in the words of the source.
    pub(crate) source: String,
    /// The counterpart here, present or planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

impl Item {
    pub(super) fn new(kind: Kind, source: impl AsRef<str>, state: State) -> Self {
        Item {
            kind,
            source: bounded(source.as_ref()),
            target: None,
            state,
            why: None,
        }
    }

    /// An item left behind.
    pub(super) fn left(kind: Kind, source: impl AsRef<str>, why: impl AsRef<str>) -> Self {
        Item::new(kind, source, State::Skipped).because(why)
    }

    pub(super) fn to(self, target: impl ToString) -> Self {
        Item {
            target: Some(bounded(&target.to_string())),
            ..self
        }
    }

    pub(super) fn because(self, why: impl AsRef<str>) -> Self {
        Item {
            why: Some(bounded(why.as_ref())),
            ..self
        }
    }
}

/// Names and values of a source are strangers' words.
fn bounded(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Agent,
    File,
    Skill,
    Memory,
    Conversation,
    Binding,
    Person,
    Secret,
    Schedule,
    Setting,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Agent => "agent",
            Kind::File => "file",
            Kind::Skill => "skill",
            Kind::Memory => "memory",
            Kind::Conversation => "conversation",
            Kind::Binding => "binding",
            Kind::Person => "person",
            Kind::Secret => "secret",
            Kind::Schedule => "schedule",
            Kind::Setting => "setting",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// To be carried.
    New,
    /// Was carried just now.
    Done,
    /// Is here already.
    Same,
    /// A different thing is in its place here, and stays.
    Conflict,
    /// Cannot be carried, or is not wanted.
    Skipped,
    /// Left for a person to do.
    Manual,
    /// Could not be carried.
    Failed,
}
