//! Replies of the gateway itself, written in a transaction with their cause: the closed inbox row,
//! a pin, a code.

use rusqlite::Transaction;

use super::GatewayState;
use crate::access::people;
use crate::answering::broken;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::commands::Outcome;
use crate::delivery::outbox::Source;
use crate::delivery::{Kind, outbox};
use crate::domain::{Destination, Inbound, SessionKey};
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
    say(
        state,
        &accepted.inbound,
        closed.kind,
        &Text::plain(text),
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
    let forgets = effect.forgets();
    let write = move |tx: &Transaction<'_>, now| {
        effect.write(tx, &inbound, now)?;
        inbox::close(tx, id, Closing::Done, "command", now)
    };
    let text = Text {
        choices: &outcome.choices,
        ..Text::plain(&outcome.reply)
    };
    say(
        state,
        &accepted.inbound,
        Kind::Command,
        &text,
        Some(id),
        write,
    )
    .await?;
    if changes_pin {
        state.pins.changed(&accepted.inbound.origin.key);
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
    if forgets {
        state.removals.note();
    }
    Ok(())
}

/// Tells a guest once per code how to become a member, and nothing else.
pub(super) async fn hint(state: &GatewayState, accepted: &Accepted) -> Result<(), StoreError> {
    let destination = Destination::of(&accepted.inbound);
    let (id, inbound, delivery, to) = (
        accepted.id,
        accepted.inbound.clone(),
        state.delivery.clone(),
        destination.clone(),
    );
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        let code = people::new_code(tx, &inbound.origin.person, &inbound.person_name, now)?;
        let told = code.map(|code| pairing(&code));
        // Where the platform waits for a reply, silence would show as an error.
        let told = told.or_else(|| to.reply().map(|_| CODE_WAS_TOLD.to_owned()));
        let rows = told.map_or_else(Vec::new, |told| {
            delivery.draft(&to, Kind::Notice, &Text::plain(&told))
        });
        inbox::close(tx, id, Closing::Refused, "a guest", now)?;
        outbox::insert(tx, &rows, Source::of(Some(id)), now)?;
        Ok(rows.len())
    };
    let count = state.services.db.write(write).await?;
    state.delivery.submit(destination.place(), count);
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
    tracing::debug!(session = %inbound.origin.key, inbox.id = id, "refused: {TOO_FAST}");
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
        (
            closed_here(pin),
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

/// The outcome of messages beyond a person's pace.
const TOO_FAST: &str = "sent too fast";

fn too_fast(seconds: u64) -> String {
    let unit = if seconds == 1 { "second" } else { "seconds" };
    format!(
        "You send more than I take in a minute. Please wait {seconds} {unit}; what comes earlier is dropped."
    )
}

const LANE_FULL: &str =
    "Too many messages are waiting here, so I take no more for now. Please send it again later.";

const NOT_HERE: &str =
    "I do not answer here. An owner can open this place with `/agent`, or bind it in config.toml.";
const NOT_WITH_YOU: &str = "I only talk to people my owner has let in.";
const CODE_WAS_TOLD: &str = "I do not know you yet. You were given a code; if my owner wants us to talk, they can let you in with it.";

fn unbound(place: &SessionKey) -> String {
    match place.whole_group().filter(|_| !place.is_shared()) {
        Some(group) => format!(
            "I do not answer here yet. Bind `{group}` to an agent in config.toml to open this group; `/agent <id>` opens it for you alone."
        ),
        None => {
            format!(
                "I do not answer here yet. `/agent <id>` opens this place, or bind `{place}` to an agent in config.toml."
            )
        }
    }
}

fn pairing(code: &str) -> String {
    format!(
        "I do not know you yet. If my owner wants us to talk, they can send me `/pair {code}` or run `parlor pair {code}` within the hour."
    )
}

fn closed_here(pin: &Pin) -> String {
    format!(
        "{} is not open to everybody who can write here, so this place goes back to its usual agent.",
        pin.agent
    )
}

fn gone(pin: &Pin) -> String {
    format!(
        "{} is no longer here, so this place goes back to its usual agent.",
        pin.agent
    )
}
