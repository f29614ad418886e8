//! `/queue`: shows the turns and waiting messages of a place.

use unicode_segmentation::UnicodeSegmentation;

use super::parse::QueueWish;
use super::reach::{self, Reach};
use super::{Context, Effect, Outcome, stop};
use crate::clock::now_ms;
use crate::lanes::{Item, Queue};

/// Length of a shown message, in characters as people see them.
const MAX_QUOTE_CHARS: usize = 60;
/// Waiting messages in a list.
const MOST_LISTED: usize = 10;

pub(super) fn run(wish: QueueWish, context: &Context<'_>) -> Outcome {
    let queue = context.services.sessions.queue(&context.inbound.origin);
    match wish {
        QueueWish::Show => Outcome::say(show(&queue, now_ms())),
        QueueWish::Clear => clear(reach::split(context, queue.waiting)),
    }
}

fn clear(Reach { within, beyond }: Reach) -> Outcome {
    let stays = stop::stays(&beyond);
    let told = match (within.len(), &stays) {
        (0, None) => return Outcome::say("Nothing waits here."),
        (0, Some(stays)) => return Outcome::say(stays.clone()),
        (1, _) => "1 waiting message is dropped.".to_owned(),
        (messages, _) => format!("{messages} waiting messages are dropped."),
    };
    let told = stays.map_or_else(|| told.clone(), |stays| format!("{told} {stays}"));
    Outcome::of(
        told,
        Effect::CallOff(within.into_iter().flat_map(|item| item.ids).collect()),
    )
}

/// The running and waiting work, for `/queue` and `/status`.
pub(super) fn show(queue: &Queue, now: i64) -> String {
    if queue.current.is_none() && queue.subagents.is_empty() && queue.waiting.is_empty() {
        return IDLE.to_owned();
    }
    let working = queue.current.iter().map(|current| {
        format!(
            "Working for {} on {}.",
            duration(now - current.since),
            describe(current)
        )
    });
    let mut lines: Vec<String> = working.collect();
    let run = |item: &Item| {
        format!(
            "A subagent has worked for {} on {}.",
            duration(now - item.since),
            describe(item)
        )
    };
    lines.extend(queue.subagents.iter().map(run));
    lines.extend(
        queue
            .parked
            .iter()
            .map(|item| format!("Put aside meanwhile: {}.", describe(item))),
    );
    match queue.waiting.len() {
        0 => lines.push("Nothing waits.".into()),
        1 => lines.push("1 message waits:".into()),
        messages => lines.push(format!("{messages} messages wait:")),
    }
    lines.extend(
        queue
            .waiting
            .iter()
            .take(MOST_LISTED)
            .map(|item| format!("- {}", describe(item))),
    );
    if queue.waiting.len() > MOST_LISTED {
        lines.push(format!("- and {} more", queue.waiting.len() - MOST_LISTED));
    }
    lines.push(format!("\n{HOW}"));
    lines.join("\n")
}

fn describe(item: &Item) -> String {
    format!("“{}” ({})", head(&item.asks), item.by)
}

fn head(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.grapheme_indices(true).nth(MAX_QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn duration(ms: i64) -> String {
    match ms.max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

const IDLE: &str = "Nothing is being done here, and nothing waits.";
const HOW: &str = "What waits is answered between two rounds of tools or while subagents work, or else after this. `/stop` ends it, `/queue clear` drops what waits.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    fn item(asks: &str) -> Item {
        Item {
            ids: vec![1],
            by: "Alice".into(),
            person: "telegram:1".parse().unwrap(),
            role: Role::Owner,
            asks: asks.into(),
            since: 0,
        }
    }

    /// S2.36
    #[test]
    fn a_queue_reads_well() {
        assert_eq!(show(&Queue::default(), 0), IDLE);
        let waiting = (0..12)
            .map(|number| item(&format!("question {number}")))
            .collect();
        let queue = Queue {
            current: Some(item(&"long ".repeat(30))),
            parked: vec![item("the report")],
            waiting,
            subagents: vec![item("the sources")],
        };
        insta::assert_snapshot!(show(&queue, 75_000), @"
        Working for 1 min 15 s on “long long long long long long long long long long long long …” (Alice).
        A subagent has worked for 1 min 15 s on “the sources” (Alice).
        Put aside meanwhile: “the report” (Alice).
        12 messages wait:
        - “question 0” (Alice)
        - “question 1” (Alice)
        - “question 2” (Alice)
        - “question 3” (Alice)
        - “question 4” (Alice)
        - “question 5” (Alice)
        - “question 6” (Alice)
        - “question 7” (Alice)
        - “question 8” (Alice)
        - “question 9” (Alice)
        - and 2 more

        What waits is answered between two rounds of tools or while subagents work, or else after this. `/stop` ends it, `/queue clear` drops what waits.
        ");
    }
}
