//! `/stop`: ends the turn of a place, or all waiting messages too.

use super::parse::Which;
use super::reach::{self, Reach};
use super::{Context, Effect, Outcome};
use crate::lanes::{Item, Queue};

pub(super) fn run(which: Which, context: &Context<'_>) -> Outcome {
    let Queue {
        current,
        parked,
        waiting,
        subagents,
    } = context.services.sessions.queue(&context.inbound.origin);
    let turns = reach::split(context, current.into_iter().chain(parked));
    let subagents = reach::split(context, subagents);
    let waiting = match which {
        Which::Current => Reach::default(),
        Which::All => reach::split(context, waiting),
    };
    // Subagents of a turn end with the turn and are not counted; without a turn the reply counts
    // them.
    let under_way = match turns.within.len() {
        0 => subagents.within.len(),
        tasks => tasks,
    };
    let kept = match turns.beyond.as_slice() {
        [] => subagents.beyond,
        _ => turns.beyond,
    };
    let dropped = waiting.within.len();
    let ended = turns.within.into_iter().chain(subagents.within);
    let ids: Vec<i64> = ended
        .chain(waiting.within)
        .flat_map(|item| item.ids)
        .collect();
    let told = told(under_way, dropped, &kept, &waiting.beyond);
    match ids.is_empty() {
        true => Outcome::say(told),
        false => Outcome::of(told, Effect::CallOff(ids)),
    }
}

const NOTHING: &str = "Nothing is being done here.";

/// `kept` and `left` are tasks and waiting messages of people with a higher role.
fn told(under_way: usize, dropped: usize, kept: &[Item], left: &[Item]) -> String {
    let mut sentences = Vec::new();
    match (under_way, dropped) {
        (0, 0) if kept.is_empty() && left.is_empty() => return NOTHING.to_owned(),
        (0, 0) => {}
        (0, _) if kept.is_empty() => sentences.push("Nothing was being done.".to_owned()),
        (0, _) => {}
        (1, _) => sentences.push("Stopped.".to_owned()),
        (tasks, _) => sentences.push(format!("Stopped {tasks} tasks.")),
    }
    match dropped {
        0 => {}
        1 => sentences.push("1 waiting message is dropped.".to_owned()),
        messages => sentences.push(format!("{messages} waiting messages are dropped.")),
    }
    if !kept.is_empty() {
        sentences.push(format!(
            "The running task is {}. Only people of that role or a higher one can stop it.",
            reach::whose(kept)
        ));
    }
    sentences.extend(stays(left));
    sentences.join(" ")
}

/// Tells of waiting messages that are not dropped.
pub(super) fn stays(left: &[Item]) -> Option<String> {
    match left.len() {
        0 => None,
        1 => Some(format!("1 waiting message stays: {}.", reach::whose(left))),
        messages => Some(format!(
            "{messages} waiting messages stay: {}.",
            reach::whose(left)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    #[test]
    fn the_reply_tells_what_ended_and_what_goes_on() {
        let item = |by: &str, role| Item {
            ids: vec![1],
            by: by.into(),
            person: "telegram:1".parse().unwrap(),
            role,
            asks: "something".into(),
            since: 0,
        };
        let (alice, dan) = (item("Alice", Role::Owner), item("Dan", Role::Member));
        let check = |counts: (usize, usize), kept: &[Item], left: &[Item], expected: &str| {
            assert_eq!(told(counts.0, counts.1, kept, left), expected);
        };
        check((0, 0), &[], &[], NOTHING);
        check((1, 0), &[], &[], "Stopped.");
        check(
            (2, 1),
            &[],
            &[],
            "Stopped 2 tasks. 1 waiting message is dropped.",
        );
        check(
            (0, 2),
            &[],
            &[],
            "Nothing was being done. 2 waiting messages are dropped.",
        );
        let alices = "The running task is Alice's (owner). Only people of that role or a higher one can stop it.";
        check((0, 0), std::slice::from_ref(&alice), &[], alices);
        check(
            (1, 1),
            std::slice::from_ref(&alice),
            &[],
            &format!("Stopped. 1 waiting message is dropped. {alices}"),
        );
        check(
            (0, 0),
            &[],
            &[alice, dan],
            "2 waiting messages stay: Alice's (owner) and Dan's (member).",
        );
    }
}
