//! Acknowledges interactions within three seconds, before anything is stored or decided.

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::autocomplete::offer_choices;
use super::callback;
use super::components::{pressed, refusal};
use super::payload::{InteractionKind, kind};
use super::state::Interactions;
use crate::channels::discord::bot::Bot;
use crate::channels::discord::directory::id_in;
use crate::channels::discord::shard::Event;

/// Acknowledges interactions, and passes all events on in their order. Returns when the events end.
pub(crate) async fn acknowledge_all(
    bot: &Bot,
    mut events: mpsc::Receiver<Event>,
    onward: mpsc::Sender<Event>,
) {
    while let Some(event) = events.recv().await {
        if let ("INTERACTION_CREATE", Ok(data)) = (event.kind.as_str(), &event.data) {
            acknowledge(bot, data);
        }
        if onward.send(event).await.is_err() {
            return;
        }
    }
}

fn acknowledge(bot: &Bot, raw: &Value) {
    let (Some(id), Some(token)) = (id_in(raw, "id"), raw["token"].as_str()) else {
        tracing::error!("an interaction on Discord cannot be read, so it is not answered");
        return;
    };
    let path = format!("/interactions/{id}/{token}/callback");
    if kind(raw) == InteractionKind::Autocomplete {
        return offer_choices(bot, id, path, raw);
    }
    let call = (path, first_answer(&bot.interactions, raw));
    let (given, under_way) = watch::channel(());
    bot.interactions.under_way.insert(id, under_way);
    let (api, pending) = (bot.api.clone(), bot.interactions.under_way.clone());
    bot.interactions.tasks.spawn(async move {
        callback::give(&api, id, call).await;
        pending.remove(&id);
        drop(given);
    });
}

fn first_answer(interactions: &Interactions, raw: &Value) -> Value {
    match kind(raw) {
        InteractionKind::Command => callback::deferred(interactions.is_ephemeral(raw)),
        InteractionKind::Component if pressed(&interactions.signer, raw).is_some() => {
            callback::silent()
        }
        InteractionKind::Component | InteractionKind::Autocomplete | InteractionKind::Other => {
            callback::ephemeral_message(refusal(&interactions.signer, raw))
        }
    }
}
