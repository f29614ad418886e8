//! Replies of the gateway itself, written in a transaction with their cause: the closed inbox row,
//! a pin, a code.

use std::sync::Arc;

use rusqlite::Transaction;

use super::GatewayState;
use crate::answering::broken;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::commands::{Effect, Outcome};
use crate::console::{self, Person};
use crate::delivery::outbox::Source;
use crate::delivery::{Kind, outbox};
use crate::domain::{Destination, Inbound, MessageId, SessionKey};
use crate::fail_points::{self, Write};
use crate::records::guest_notices;
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::speakers;
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
        .write(move |tx| {
            fail_points::writes(Write::InboxClosed);
            inbox::close(tx, id, closing, outcome, now_ms())
        })
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
    let (id, inbound) = (accepted.id, accepted.inbound.clone());
    let effect = Arc::new(outcome.effect);
    let written = effect.clone();
    let write = move |tx: &Transaction<'_>, now| {
        fail_points::writes(Write::CommandEffect);
        // People who only ever write commands are known by name too.
        let person = inbound.origin.person.to_string();
        speakers::heard(tx, &person, &inbound.person_name, now)?;
        written.write(tx, &inbound, now)?;
        inbox::close(tx, id, Closing::Done, "command", now)
    };
    let text = Text {
        choices: &outcome.choices,
        app: outcome.app.as_ref(),
        ..Text::plain(&outcome.reply)
    };
    match &accepted.inbound.extras.pressed {
        Some(pressed) if outcome.is_in_place => {
            say_in_place(state, &accepted.inbound, pressed, &text, write).await?;
        }
        _ => {
            let saying = Saying {
                kind: Kind::Command,
                text: &text,
                id: Some(id),
                about_guest: outcome.code,
            };
            say_about(state, &accepted.inbound, saying, write).await?;
        }
    }
    if accepted.inbound.extras.pressed.is_some() {
        state.delivery.taken(&accepted.inbound).await;
    }
    spread(state, &accepted.inbound, &effect).await;
    Ok(())
}

/// Everybody who has to know hears of an effect that is on disk.
async fn spread(state: &GatewayState, inbound: &Inbound, effect: &Effect) {
    let (sessions, place) = (&state.services.sessions, &inbound.origin.key);
    if let Some((person, name)) = effect.put_out() {
        let (who, by) = (Person::new(name, person), Person::of(inbound));
        console::decided(&who, console::Decision::TakenBack, Some(&by));
    }
    if effect.decides() {
        state.guests.decided(state.work.token());
    }
    if effect.changes_pin() {
        state.pins.changed(place);
        sessions.agent_changed();
    }
    if effect.changes_jobs() {
        sessions.alarm().changed();
    }
    if effect.ends_by_itself() {
        state.pin_ends.look_again();
    }
    if let Some((steering, agent)) = effect.steered() {
        state.steered(steering, agent, inbound);
    }
    sessions.halt(&inbound.origin, &effect.called_off());
    if effect.takes_questions_back() {
        sessions.approvals().look_again();
    }
    if effect.changes_model() {
        sessions.model_changed(place);
    }
    for (place, rows) in effect.retried() {
        state.delivery.submit(&place, rows);
    }
    if effect.releases() {
        state.delivery.send_waiting(place).await;
    }
    if effect.forgets() {
        state.removals.note();
    }
}

pub(super) async fn tell_unbound(
    state: &GatewayState,
    accepted: &Accepted,
    is_owner: bool,
) -> Result<(), StoreError> {
    let closed = Closed {
        kind: Kind::Notice,
        closing: Closing::Refused,
        outcome: inbox::UNBOUND,
    };
    let text = unbound(&accepted.inbound.origin.key, is_owner);
    reply(state, accepted, &text, closed).await
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
    let saying = Saying {
        kind,
        text,
        id,
        about_guest: None,
    };
    say_about(state, inbound, saying, write).await
}

/// A text with its circumstances.
struct Saying<'a> {
    kind: Kind,
    text: &'a Text<'a>,
    /// The inbox row of the answered message.
    id: Option<i64>,
    /// The code of the guest that the text is about. The text is changed once somebody decides.
    about_guest: Option<String>,
}

async fn say_about<W>(
    state: &GatewayState,
    inbound: &Inbound,
    saying: Saying<'_>,
    write: W,
) -> Result<(), StoreError>
where
    W: FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()> + Send + 'static,
{
    let Saying {
        kind,
        text,
        id,
        about_guest,
    } = saying;
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
        let rows = outbox::insert_numbered(tx, &rows, Source::of(id), now)?;
        match &about_guest {
            Some(code) => guest_notices::note(tx, Some(code.as_str()), &rows, 0, now),
            None => Ok(()),
        }
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
    "I don't answer here. An owner can open this place with `/bind` and an agent's name.";
const NOT_WITH_YOU: &str = "I only talk to people my owner has let in.";

/// Only owners can bind a place; admins can open it with `/agent`.
fn unbound(place: &SessionKey, is_owner: bool) -> String {
    match place.whole_group().filter(|_| !place.is_shared()) {
        Some(_) if !is_owner => "Nobody answers in this group yet. `/agent` with an agent's name opens it for you alone; an owner can open it for everybody with `/bind`.".to_owned(),
        None if !is_owner => "Nobody answers here yet. `/agent` with an agent's name opens this place; an owner can open it for good with `/bind`.".to_owned(),
        Some(group) => format!(
            "Nobody answers in this group yet. `/bind` with an agent's name opens it for everybody (`{group}` in config.toml), `/agent` with one for you alone."
        ),
        None => {
            format!(
                "Nobody answers here yet. `/agent` with an agent's name opens this place; `/bind` with one does it for good (`{place}` in config.toml)."
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
