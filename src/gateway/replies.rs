//! Replies of the gateway itself, written in a transaction with their cause: the closed inbox row,
//! a pin, a code.

use rusqlite::Transaction;

use super::GatewayState;
use crate::answering::broken;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::commands::Outcome;
use crate::console::{self, Person};
use crate::delivery::outbox::Source;
use crate::delivery::{Kind, outbox};
use crate::domain::{Destination, Inbound, MessageId, SessionKey};
use crate::records::inbox::{self, Accepted, Closing};
use crate::routing::{Pin, pins};
use crate::storage::StoreError;

/// The end of a message without an agent's answer.
pub(super) struct Closed {
    pub(super) kind: Kind,
    pub(super) closing: Closing,
    /// For the inbox row.
    pub(super) outcome: &'static str,
}

/// Ends a message without a reply.
pub(super) async fn close(
    state: &GatewayState,
    id: i64,
    closing: Closing,
    outcome: &'static str,
) -> Result<(), StoreError> {
    state
        .services
        .db
        .write(move |tx| inbox::close(tx, id, closing, outcome, now_ms()))
        .await
}

pub(super) async fn reply(
    state: &GatewayState,
    accepted: &Accepted,
    text: &str,
    closed: Closed,
) -> Result<(), StoreError> {
    let id = accepted.id;
    let close =
        move |tx: &Transaction<'_>, now| inbox::close(tx, id, closed.closing, closed.outcome, now);
    let text = Text {
        // Nobody else needs to know what a press was refused for.
        is_for_asker_alone: accepted.inbound.extras.pressed.is_some(),
        ..Text::plain(text)
    };
    say(
        state,
        &accepted.inbound,
        closed.kind,
        &text,
        Some(id),
        close,
    )
    .await
}

/// The command's effect, its reply and the closed row are a single transaction.
pub(super) async fn carry_out(
    state: &GatewayState,
    accepted: &Accepted,
    outcome: Outcome,
) -> Result<(), StoreError> {
    let (id, inbound, effect) = (accepted.id, accepted.inbound.clone(), outcome.effect);
    let (changes_pin, changes_model) = (effect.changes_pin(), effect.changes_model());
    let (retried, called_off) = (effect.retried(), effect.called_off());
    let (forgets, decides, releases) = (effect.forgets(), effect.decides(), effect.releases());
    let put_out = effect
        .put_out()
        .map(|(person, name)| Person::new(name, person));
    let (steered, is_timed) = (effect.steered(), effect.ends_by_itself());
    let write = move |tx: &Transaction<'_>, now| {
        effect.write(tx, &inbound, now)?;
        inbox::close(tx, id, Closing::Done, "command", now)
    };
    let text = Text {
        choices: &outcome.choices,
        ..Text::plain(&outcome.reply)
    };
    match &accepted.inbound.extras.pressed {
        Some(pressed) if outcome.is_in_place => {
            say_in_place(state, &accepted.inbound, pressed, &text, write).await?;
        }
        _ => {
            say(
                state,
                &accepted.inbound,
                Kind::Command,
                &text,
                Some(id),
                write,
            )
            .await?;
        }
    }
    if accepted.inbound.extras.pressed.is_some() {
        state.delivery.taken(&accepted.inbound).await;
    }
    if let Some(put_out) = put_out {
        let by = Person::of(&accepted.inbound);
        console::decided(&put_out, console::Decision::TakenBack, Some(&by));
    }
    if decides {
        state.guests.decided(state.work.token());
    }
    if changes_pin {
        state.pins.changed(&accepted.inbound.origin.key);
        state.services.sessions.agent_changed();
    }
    if is_timed {
        state.pin_ends.look_again();
    }
    if let Some((steering, agent)) = steered {
        state.steered(steering, agent, &accepted.inbound);
    }
    state
        .services
        .sessions
        .halt(&accepted.inbound.origin, &called_off);
    if changes_model {
        state
            .services
            .sessions
            .model_changed(&accepted.inbound.origin.key);
    }
    retried
        .iter()
        .for_each(|(place, rows)| state.delivery.submit(place, *rows));
    if releases {
        let place = &accepted.inbound.origin.key;
        state.delivery.send_waiting(place).await;
    }
    if forgets {
        state.removals.note();
    }
    Ok(())
}

pub(super) async fn tell_unbound(
    state: &GatewayState,
    accepted: &Accepted,
) -> Result<(), StoreError> {
    let closed = Closed {
        kind: Kind::Notice,
        closing: Closing::Refused,
        outcome: "place is not bound",
    };
    reply(
        state,
        accepted,
        &unbound(&accepted.inbound.origin.key),
        closed,
    )
    .await
}

/// Ends a message not meant for the bot without a reply. Where the platform waits for a reply, the
/// asker alone gets a sentence.
pub(super) async fn ignore(
    state: &GatewayState,
    accepted: &Accepted,
    reason: &'static str,
) -> Result<(), StoreError> {
    let Accepted { id, inbound, .. } = accepted;
    if inbound.extras.reply.is_none() {
        return close(state, *id, Closing::Refused, reason).await;
    }
    let told = if inbound.origin.key.is_private() {
        NOT_WITH_YOU
    } else {
        NOT_HERE
    };
    let text = Text {
        is_for_asker_alone: true,
        ..Text::plain(told)
    };
    let id = *id;
    let close =
        move |tx: &Transaction<'_>, now| inbox::close(tx, id, Closing::Refused, reason, now);
    say(state, inbound, Kind::Notice, &text, Some(id), close).await
}

/// Ends a message whose handling panicked. A reply is sent only where the platform would show an
/// error instead.
pub(super) async fn tell_broken(
    state: &GatewayState,
    accepted: &Accepted,
) -> Result<(), StoreError> {
    let closed = Closed {
        kind: Kind::Error,
        closing: Closing::Failed,
        outcome: "panicked",
    };
    match accepted.inbound.extras.reply {
        None => close(state, accepted.id, closed.closing, closed.outcome).await,
        Some(_) => reply(state, accepted, &broken(accepted.id), closed).await,
    }
}

/// Ends a message of a person who sends too fast. With `told`, the person is told to wait so many
/// seconds.
pub(super) async fn refuse_pace(
    state: &GatewayState,
    accepted: &Accepted,
    told: Option<u64>,
) -> Result<(), StoreError> {
    let Accepted { id, inbound, .. } = accepted;
    state.ignored.tell(inbound, TOO_FAST);
    let Some(seconds) = told else {
        return close(state, *id, Closing::Refused, TOO_FAST).await;
    };
    let told = too_fast(seconds);
    let text = Text {
        is_for_asker_alone: inbound.extras.reply.is_some(),
        ..Text::plain(&told)
    };
    let id = *id;
    let close =
        move |tx: &Transaction<'_>, now| inbox::close(tx, id, Closing::Refused, TOO_FAST, now);
    say(state, inbound, Kind::Notice, &text, Some(id), close).await
}

/// Tells the person if the full lane is `news`; the row records each refusal.
pub(super) async fn refuse_in_full_lane(
    state: &GatewayState,
    accepted: &Accepted,
    news: bool,
) -> Result<(), StoreError> {
    tracing::warn!(session = %accepted.inbound.origin.key, "refused: too many messages wait here");
    if !news {
        return close(
            state,
            accepted.id,
            Closing::Refused,
            "too many messages wait here",
        )
        .await;
    }
    let closed = Closed {
        kind: Kind::Error,
        closing: Closing::Refused,
        outcome: "too many messages wait here",
    };
    reply(state, accepted, LANE_FULL, closed).await
}

/// Drops a pin to an agent that is gone, or closed to the people of the place.
pub(super) async fn drop_pin(
    state: &GatewayState,
    inbound: &Inbound,
    pin: &Pin,
    is_gone: bool,
) -> Result<(), StoreError> {
    let place = inbound.origin.key.clone();
    let (told, why) = if is_gone {
        (gone(pin), "no such agent any more")
    } else {
        let registry = &state.services.snapshots.current().registry;
        let label = registry.get(&pin.agent).map(|agent| agent.label());
        (
            closed_here(&label.unwrap_or_else(|| pin.agent.to_string())),
            "the agent is not open to the people there",
        )
    };
    tracing::warn!(session = %place, "the pin to {} is dropped: {why}", pin.agent);
    let pin = pin.clone();
    say(
        state,
        inbound,
        Kind::Notice,
        &Text::plain(&told),
        None,
        move |tx, _| pins::remove(tx, &place, &pin),
    )
    .await?;
    state.pins.changed(&inbound.origin.key);
    Ok(())
}

/// Writes the text for the message's place in a transaction with `write`, then sends the text.
async fn say<W>(
    state: &GatewayState,
    inbound: &Inbound,
    kind: Kind,
    text: &Text<'_>,
    id: Option<i64>,
    write: W,
) -> Result<(), StoreError>
where
    W: FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()> + Send + 'static,
{
    // A text without an inbox row is not the answer, so the reply handle is left for the answer.
    let destination = if id.is_some() {
        Destination::of(inbound)
    } else {
        Destination::besides(inbound)
    };
    let rows = state.delivery.draft(&destination, kind, text);
    let count = rows.len();
    let all = move |tx: &Transaction<'_>| {
        let now = now_ms();
        write(tx, now)?;
        outbox::insert(tx, &rows, Source::of(id), now)
    };
    state.services.db.write(all).await?;
    state.delivery.submit(destination.place(), count);
    Ok(())
}

/// Writes the text in place of the message whose button was pressed, in a transaction with `write`.
async fn say_in_place<W>(
    state: &GatewayState,
    inbound: &Inbound,
    pressed: &MessageId,
    text: &Text<'_>,
    write: W,
) -> Result<(), StoreError>
where
    W: FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()> + Send + 'static,
{
    let destination = Destination::besides(inbound);
    let rows = state.delivery.draft(&destination, Kind::Command, text);
    let (count, pressed) = (rows.len(), pressed.clone());
    let all = move |tx: &Transaction<'_>| {
        let now = now_ms();
        write(tx, now)?;
        outbox::insert_change(tx, &rows, &pressed, Source::default(), now)
    };
    state.services.db.write(all).await?;
    state.delivery.submit(destination.place(), count);
    Ok(())
}

/// The outcome of messages beyond a person's pace.
const TOO_FAST: &str = "sent too fast";

fn too_fast(seconds: u64) -> String {
    let unit = if seconds == 1 { "second" } else { "seconds" };
    format!(
        "You've sent too many messages in a minute. Try again in {seconds} {unit}; messages before that are dropped."
    )
}

const LANE_FULL: &str =
    "Too many messages are waiting here already. Please send yours again later.";

const NOT_HERE: &str =
    "I don't answer here. An owner can open this place with `/agent`, or bind it in config.toml.";
const NOT_WITH_YOU: &str = "I only talk to people my owner has let in.";

fn unbound(place: &SessionKey) -> String {
    match place.whole_group().filter(|_| !place.is_shared()) {
        Some(group) => format!(
            "Nobody answers in this group yet. A binding for `{group}` in config.toml opens it for everybody; `/agent` with an agent's name opens it for you alone."
        ),
        None => {
            format!(
                "Nobody answers here yet. `/agent` with an agent's name opens this place; a binding for `{place}` in config.toml does it too."
            )
        }
    }
}

fn closed_here(label: &str) -> String {
    format!(
        "{label} is not open to everybody who can write here, so the switch is undone. /agent tells who answers now."
    )
}

fn gone(pin: &Pin) -> String {
    format!(
        "{} is no longer here, so the switch is undone. /agent tells who answers now.",
        pin.agent
    )
}
