//! `/stop`: ends the turn of a place, or all waiting messages too.

use super::parse::Which;
use super::{Context, Effect, Outcome};
use crate::lanes::Queue;

pub(super) fn run(which: Which, context: &Context<'_>) -> Outcome {
    let Queue {
        current,
        parked,
        waiting,
        subagents,
    } = context.services.sessions.queue(&context.inbound.origin);
    // Subagents of a turn end with the turn and are not counted; without a turn the reply counts
    // them.
    let under_way = match current.iter().chain(&parked).count() {
        0 => subagents.len(),
        tasks => tasks,
    };
    let tasks = current.into_iter().chain(parked).chain(subagents);
    let (ids, dropped): (Vec<i64>, usize) = match which {
        Which::Current => (tasks.flat_map(|item| item.ids).collect(), 0),
        Which::All => (
            tasks
                .chain(waiting.clone())
                .flat_map(|item| item.ids)
                .collect(),
            waiting.len(),
        ),
    };
    if ids.is_empty() {
        return Outcome::say(NOTHING);
    }
    Outcome::of(told(under_way, dropped), Effect::CallOff(ids))
}

const NOTHING: &str = "Nothing is being done here.";

fn told(under_way: usize, dropped: usize) -> String {
    let stopped = match under_way {
        0 => "Nothing was being done.".to_owned(),
        1 => "Stopped.".to_owned(),
        tasks => format!("Stopped {tasks} tasks."),
    };
    match dropped {
        0 => stopped,
        1 => format!("{stopped} 1 waiting message is dropped."),
        messages => format!("{stopped} {messages} waiting messages are dropped."),
    }
}
