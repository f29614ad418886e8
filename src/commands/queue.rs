//! `/queue`: shows the turns and waiting messages of a place.

use super::parse::QueueWish;
use super::reach::{self, Reach};
use super::texts::work as texts;
use super::{Context, Effect, Outcome};
use crate::clock::now_ms;

pub(super) fn run(wish: QueueWish, context: &Context<'_>) -> Outcome {
    let queue = context.services.sessions.queue(&context.inbound.origin);
    match wish {
        QueueWish::Show => Outcome::say(texts::queue(&queue, now_ms())),
        QueueWish::Clear => clear(reach::split(context, queue.waiting)),
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
