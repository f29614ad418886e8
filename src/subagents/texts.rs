//! Texts for agents about subagents: the introduction, the end, and the result of a call.

use crate::domain::{AgentId, Said, Source};
use crate::records::subagents::{State, SubagentRow};
use crate::tools::{Outcome, Relation};

/// The longest result in a note to the parent, in bytes.
const MAX_TOLD_BYTES: usize = 8 * 1024;
/// The longest task in a note to the parent, in bytes.
const MAX_TASK_BYTES: usize = 512;

/// A task for an agent that answers nobody now.
pub(super) fn is_paused(agent: &AgentId, by: &str) -> String {
    format!(
        "`{agent}` is paused by {by} and answers nobody until an owner resumes it. Do it yourself, or tell the person."
    )
}

/// The note before a subagent's task.
pub(crate) fn introduction(known: &SubagentRow) -> Said {
    Said::gateway(match known.subagent.relation {
        Relation::Subagent => format!(
            "You work for @{} now. Nobody else reads this: your answer goes to that agent as the result of the task that follows. Do it \
             completely, and answer with what came of it.",
            known.parent_id
        ),
        Relation::Peer => {
            format!(
                "@{} writes to you, for {}. Nobody else reads this: your answer goes to that agent.",
                known.parent_id,
                known.subagent.role.with_article()
            )
        }
    })
}

/// The task of a subagent, or the words of a peer.
pub(crate) fn asked(known: &SubagentRow, text: String) -> Said {
    let by = match known.subagent.relation {
        Relation::Subagent => Source::Task(known.parent_id.clone()),
        Relation::Peer => Source::Agent(known.parent_id.clone()),
    };
    Said::new(by, text)
}

/// The note about an end in the parent's next turn.
pub(crate) fn summary(known: &SubagentRow) -> Vec<Said> {
    told(known, "Nobody here has seen it yet.")
}

/// The question to a woken parent.
pub(crate) fn to_report(known: &SubagentRow) -> Vec<Said> {
    told(known, "Tell the people here what came of it.")
}

fn told(known: &SubagentRow, wish: &str) -> Vec<Said> {
    vec![
        Said::gateway(format!("{} {wish} The task:", heading(known))),
        Said::new(Source::You, task(known)),
        Said::new(Source::Report(known.agent_id.clone()), result_head(known)),
    ]
}

fn heading(known: &SubagentRow) -> String {
    let how = match known.end.state {
        State::Finished => "is done",
        _ => "came to nothing",
    };
    format!("A task that you gave to @{} {how}.", known.agent_id)
}

fn task(known: &SubagentRow) -> &str {
    let task = &known.subagent.task;
    &task[..task.floor_char_boundary(MAX_TASK_BYTES)]
}

fn result_head(known: &SubagentRow) -> &str {
    let result = &known.end.result;
    &result[..result.floor_char_boundary(MAX_TOLD_BYTES)]
}

/// The result of a call that waited for a subagent.
pub(crate) fn result(known: Option<&SubagentRow>) -> Outcome {
    let Some(SubagentRow {
        subagent,
        end,
        agent_id,
        ..
    }) = known
    else {
        return Outcome::say("Nothing is known about it any more.");
    };
    match (end.state, subagent.relation) {
        (State::Finished, Relation::Subagent) => {
            Outcome::of(Source::Report(agent_id.clone()), end.result.clone())
        }
        (State::Finished, Relation::Peer) => {
            Outcome::of(Source::Agent(agent_id.clone()), end.result.clone())
        }
        (State::Stopped, _) => Outcome::say(format!("@{agent_id} was stopped before it was done.")),
        _ => Outcome::say(format!("@{agent_id} came to no result: {}", end.result)),
    }
}
