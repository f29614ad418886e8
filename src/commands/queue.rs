//! `/queue`: shows the turns and waiting messages of a place.

use super::parse::QueueWish;
use super::reach::{self, Reach};
use super::texts::work::{self as texts, Hints};
use super::{Context, Effect, Outcome};
use crate::clock::now_ms;
use crate::lanes::{Item, Queue};

pub(super) fn run(wish: QueueWish, context: &Context<'_>) -> Outcome {
    let queue = context.services.sessions.queue(&context.inbound.origin);
    match wish {
        QueueWish::Show => {
            let hints = hints(context, &queue);
            Outcome::say(texts::queue(&queue, now_ms(), &hints))
        }
        QueueWish::Clear => clear(reach::split(context, queue.waiting)),
    }
}

fn hints(context: &Context<'_>, queue: &Queue) -> Hints {
    let is_within = |items: Vec<Item>| !reach::split(context, items).within.is_empty();
    let agent = context.snapshot.agent_of(context.route);
    let is_paused = context.services.sessions.pause_of(agent.uid).is_some();
    Hints {
        paused: is_paused.then(|| agent.label()),
        may_stop: is_within(queue.current.iter().cloned().collect()),
        may_clear: is_within(queue.waiting.clone()),
    }
}

fn clear(Reach { within, beyond }: Reach) -> Outcome {
    let told: Vec<String> = texts::dropped(within.len())
        .into_iter()
        .chain(texts::stays(&beyond))
        .collect();
    if told.is_empty() {
        return Outcome::say(texts::NOTHING_WAITS);
    }
    let ids: Vec<i64> = within.into_iter().flat_map(|item| item.ids).collect();
    match ids.is_empty() {
        true => Outcome::say(told.join(" ")),
        false => Outcome::of(told.join(" "), Effect::CallOff(ids)),
    }
}
