//! `/stop`: ends the turn of a place, or all waiting messages too.

use super::parse::Which;
use super::reach::{self, Reach};
use super::texts::work::{self as texts, Stopped};
use super::{Context, Effect, Outcome};
use crate::lanes::{Item, Queue};

pub(super) fn run(which: Which, context: &Context<'_>) -> Outcome {
    let Queue {
        current,
        parked,
        waiting,
        subagents,
    } = context.services.sessions.queue(&context.inbound.origin);
    let (parked, subagents) = match which {
        Which::Running if current.is_some() => (Vec::new(), Vec::new()),
        _ => (parked, subagents),
    };
    let turns = reach::split(context, current.into_iter().chain(parked));
    let subagents = reach::split(context, subagents);
    let waiting = match which {
        Which::Running | Which::Current => Reach::default(),
        Which::All => reach::split(context, waiting),
    };
    // Subagents of a turn end with the turn and are not counted; without a turn the reply counts
    // them.
    let ended = match turns.within.len() {
        0 => subagents.within.len(),
        turns => turns,
    };
    let others = others(context, &turns.within);
    let kept = match turns.beyond.as_slice() {
        [] => subagents.beyond,
        _ => turns.beyond,
    };
    let told = texts::stopped(&Stopped {
        by: &context.inbound.person_name,
        ended,
        others,
        dropped: waiting.within.len(),
        kept: &kept,
        left: &waiting.beyond,
    });
    let all = turns.within.into_iter().chain(subagents.within);
    let ids: Vec<i64> = all
        .chain(waiting.within)
        .flat_map(|item| item.ids)
        .collect();
    match ids.is_empty() {
        true => Outcome::say(told),
        false => Outcome::of(told, Effect::CallOff(ids)),
    }
}

/// The names of other people whose answers end, for a notice about the author of the command.
fn others(context: &Context<'_>, ended: &[Item]) -> Vec<String> {
    let (people, asker) = (
        &context.snapshot.config.access.people,
        &context.inbound.origin.person,
    );
    let of_others = ended
        .iter()
        .filter(|item| !people.is_same(&item.person, asker));
    let mut names: Vec<String> = of_others.map(|item| item.by.clone()).collect();
    names.dedup();
    names
}
