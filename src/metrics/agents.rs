//! The numbers of each agent.
//!
//! An agent that was taken out of the config counts on as `other`, so the labels are as many as the
//! agents of the config, and one.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Counter;
use super::histogram::Histogram;
use crate::domain::{AgentId, AgentUid};

/// The parts of the time from a message to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// From the arrival to the commit of its row.
    Stored,
    /// In the lane of its place.
    Queued,
    /// Waiting for one of the turns that may run at once.
    Slot,
    Model,
    Tools,
    /// The transaction at the end of the turn.
    Written,
    /// From that transaction to the platform's answer to the first part.
    Sent,
}

impl Stage {
    pub(crate) const ALL: [Stage; 7] = [
        Stage::Stored,
        Stage::Queued,
        Stage::Slot,
        Stage::Model,
        Stage::Tools,
        Stage::Written,
        Stage::Sent,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Stage::Stored => "stored",
            Stage::Queued => "queued",
            Stage::Slot => "slot",
            Stage::Model => "model",
            Stage::Tools => "tools",
            Stage::Written => "written",
            Stage::Sent => "sent",
        }
    }
}

/// How long a message took in each stage it went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stages([Option<Duration>; Stage::ALL.len()]);

impl Stages {
    /// Adds time in a stage. A turn asks its model more than once.
    pub(crate) fn spend(&mut self, stage: Stage, time: Duration) {
        let spent = &mut self.0[stage as usize];
        *spent = Some(spent.unwrap_or_default() + time);
    }

    pub(crate) fn get(&self, stage: Stage) -> Option<Duration> {
        self.0[stage as usize]
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    Answered,
    Stopped,
    Failed,
    /// A limit forbade the turn.
    Refused,
}

impl TurnOutcome {
    pub(super) const ALL: [TurnOutcome; 4] = [
        TurnOutcome::Answered,
        TurnOutcome::Stopped,
        TurnOutcome::Failed,
        TurnOutcome::Refused,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            TurnOutcome::Answered => "answered",
            TurnOutcome::Stopped => "stopped",
            TurnOutcome::Failed => "failed",
            TurnOutcome::Refused => "refused",
        }
    }
}

/// The kinds of rules, in the order of their strength. A test has the router count with each of its own.
pub(super) const RULES: [&str; 14] = [
    "pin",
    "exact_topic",
    "member",
    "name_or_tag",
    "every_topic",
    "place",
    "parent_channel",
    "category",
    "server_role",
    "server",
    "person",
    "private_chats",
    "platform",
    "default_agent",
];

/// The numbers of an agent.
#[derive(Debug, Default)]
pub(crate) struct AgentCounts {
    pub(super) routed: [Counter; RULES.len()],
    pub(super) turns: [Counter; TurnOutcome::ALL.len()],
    pub(super) stages: [Histogram; Stage::ALL.len()],
    pub(crate) input_tokens: Counter,
    pub(crate) output_tokens: Counter,
    /// In millionths.
    pub(crate) cost: Counter,
    pub(crate) tool_calls: Counter,
    pub(crate) subagents: Counter,
}

impl AgentCounts {
    /// A message was given to the agent by a rule of this kind.
    pub(crate) fn routed(&self, rule: &str) {
        let at = RULES.iter().position(|known| *known == rule);
        debug_assert!(at.is_some(), "`{rule}` is not among the kinds of rules");
        if let Some(at) = at {
            self.routed[at].add(1);
        }
    }

    pub(crate) fn turn(&self, outcome: TurnOutcome) {
        self.turns[outcome as usize].add(1);
    }

    /// Adds the numbers of another.
    fn absorb(&self, other: &AgentCounts) {
        let add = |own: &[Counter], others: &[Counter]| {
            for (own, other) in own.iter().zip(others) {
                own.add(other.get());
            }
        };
        add(&self.routed, &other.routed);
        add(&self.turns, &other.turns);
        for (own, other) in self.stages.iter().zip(&other.stages) {
            own.absorb(other);
        }
        self.input_tokens.add(other.input_tokens.get());
        self.output_tokens.add(other.output_tokens.get());
        self.cost.add(other.cost.get());
        self.tool_calls.add(other.tool_calls.get());
        self.subagents.add(other.subagents.get());
    }

    pub(crate) fn took(&self, stages: &Stages) {
        for stage in Stage::ALL {
            if let Some(time) = stages.get(stage) {
                self.stages[stage as usize].note(time);
            }
        }
    }
}

/// A handle to an agent's numbers, part of the agent. All handles are alike in comparisons of
/// agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(Arc<AgentCounts>);

impl Deref for Counts {
    type Target = AgentCounts;

    fn deref(&self) -> &AgentCounts {
        &self.0
    }
}

impl PartialEq for Counts {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

struct Known {
    uid: AgentUid,
    id: AgentId,
    counts: Arc<AgentCounts>,
}

/// Locked when agents are made from a config and when the numbers are read, never to count.
static AGENTS: Mutex<Table> = Mutex::new(Table {
    known: Vec::new(),
    retired: Vec::new(),
});

struct Table {
    known: Vec<Known>,
    /// Agents taken out of the config. Turns under way may still count there.
    retired: Vec<Arc<AgentCounts>>,
}

fn table() -> MutexGuard<'static, Table> {
    AGENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers of an agent of the config. A renamed agent keeps its numbers.
pub(crate) fn of_agent(uid: AgentUid, id: &AgentId) -> Counts {
    let mut table = table();
    if let Some(known) = table.known.iter_mut().find(|known| known.uid == uid) {
        known.id = id.clone();
        return Counts(known.counts.clone());
    }
    let counts = Arc::<AgentCounts>::default();
    table.known.push(Known {
        uid,
        id: id.clone(),
        counts: counts.clone(),
    });
    Counts(counts)
}

/// Agents besides these are no longer in the config. An agent that comes back begins at zero,
/// because a number that shrank would be taken for growth by programs that read it.
pub(crate) fn retire_others(agents: &[AgentUid]) {
    let mut table = table();
    let Table { known, retired } = &mut *table;
    let gone = known.extract_if(.., |known| !agents.contains(&known.uid));
    retired.extend(gone.map(|known| known.counts));
    // Nobody else counts there any more.
    let ended: Vec<_> = retired
        .extract_if(.., |counts| Arc::strong_count(counts) == 1)
        .collect();
    let mut ended = ended.into_iter();
    if let Some(sum) = ended.next() {
        ended.for_each(|counts| sum.absorb(&counts));
        retired.push(sum);
    }
}

/// The label of agents that are no longer in the config.
const OTHER: &str = "other";

/// The numbers by label, in the order of the agents' ids.
pub(super) fn by_label() -> Vec<(String, Vec<Arc<AgentCounts>>)> {
    let table = table();
    let mut labels: Vec<(String, Vec<Arc<AgentCounts>>)> = Vec::new();
    let named = table
        .known
        .iter()
        .map(|known| (known.id.as_str(), &known.counts));
    let retired = table.retired.iter().map(|counts| (OTHER, counts));
    for (label, counts) in named.chain(retired) {
        match labels.iter_mut().find(|(known, _)| known == label) {
            Some((_, all)) => all.push(counts.clone()),
            None => labels.push((label.to_owned(), vec![counts.clone()])),
        }
    }
    labels.sort_by(|(one, _), (other, _)| one.cmp(other));
    labels
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// The table is shared by all tests of this process, so only agents of this test are looked at.
    #[test]
    fn a_removed_agent_counts_on_as_other() {
        let (uid, id) = (
            AgentUid(Uuid::new_v4()),
            AgentId::parse("a-removed-agent").unwrap(),
        );
        let turns = |label: &str| {
            let all = by_label();
            let found = all.iter().find(|(known, _)| known == label);
            found.map(|(_, all)| all.iter().map(|counts| counts.turns[0].get()).sum::<u64>())
        };
        let counts = of_agent(uid, &id);
        counts.turn(TurnOutcome::Answered);
        assert_eq!(turns(id.as_str()), Some(1));
        let others: Vec<_> = table()
            .known
            .iter()
            .map(|known| known.uid)
            .filter(|known| *known != uid)
            .collect();
        retire_others(&others);
        counts.turn(TurnOutcome::Answered);
        assert_eq!(turns(id.as_str()), None);
        assert!(turns(OTHER).is_some_and(|turns| turns >= 2));
        let again = of_agent(uid, &id);
        again.turn(TurnOutcome::Answered);
        assert_eq!(turns(id.as_str()), Some(1), "from zero");
        retire_others(&others);
    }
}
