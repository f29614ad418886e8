//! Texts for agents about subagents: the introduction, the end, and the result of a call.

use crate::records::subagents::{State, SubagentRow};
use crate::tools::Relation;
use crate::turn::history::own_words;

/// The longest result in a note to the parent, in bytes.
const MAX_TOLD_BYTES: usize = 8 * 1024;
/// The longest task in a note to the parent, in bytes.
const MAX_TASK_BYTES: usize = 512;

/// The note before a subagent's task.
pub(crate) fn introduction(known: &SubagentRow) -> String {
    match known.subagent.relation {
        Relation::Subagent => format!(
            "[You work for @{} now. Nobody else reads this: your answer goes to that agent as the result of the task that follows. Do it \
             completely, and answer with what came of it.]",
            known.parent_id
        ),
        Relation::Peer => {
            format!(
                "[@{} writes to you, for {}. Nobody else reads this: your answer goes to that agent.]",
                known.parent_id,
                known.subagent.role.with_article()
            )
        }
    }
}

/// The note about an end in the parent's next turn.
pub(crate) fn summary(known: &SubagentRow) -> String {
    let (task, told) = (own_words(task(known)), own_words(told(known)));
    format!(
        "[{} Nobody here has seen it yet. The task: {task}]\n{told}",
        heading(known)
    )
}

/// The question to a woken parent.
pub(crate) fn to_report(known: &SubagentRow) -> String {
    let (task, told) = (own_words(task(known)), own_words(told(known)));
    format!(
        "[{} Tell the people here what came of it. The task: {task}]\n{told}",
        heading(known)
    )
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

fn told(known: &SubagentRow) -> &str {
    let result = &known.end.result;
    &result[..result.floor_char_boundary(MAX_TOLD_BYTES)]
}

/// The result of a call that waited for a subagent.
pub(crate) fn result(known: Option<&SubagentRow>) -> String {
    let Some(SubagentRow {
        subagent,
        end,
        agent_id,
        ..
    }) = known
    else {
        return "Nothing is known about it any more.".into();
    };
    match (end.state, subagent.relation) {
        (State::Finished, Relation::Subagent) => end.result.clone(),
        (State::Finished, Relation::Peer) => format!("[@{agent_id}] {}", end.result),
        (State::Stopped, _) => format!("@{agent_id} was stopped before it was done."),
        _ => format!("@{agent_id} came to no result: {}", end.result),
    }
}
