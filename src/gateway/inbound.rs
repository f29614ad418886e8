//! The way of a message from the platform to its lane. Start reading here.
//!
//! received → stored, then acknowledged → known? may speak? command? → routed → its place's lane.
//! Messages are handled in order, one after the other; the slow work is done in the lanes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::GatewayState;
use super::decide::{Received, decide};
use super::grants;
use super::guests::{self, Guests};
use super::person_pace::{Pace, Sent};
use super::reactions;
use super::replay::{self, Left};
use super::replies;
use super::storing::{Taken, store};
use crate::access::Standing;
use crate::answering::Told;
use crate::channels::{Batch, IntakeReceiver};
use crate::clock::now_ms;
use crate::commands::{self, Parsed};
use crate::domain::{Inbound, Note};
use crate::lanes::Arrived;
use crate::metrics;
use crate::records::inbox::{self, Accepted, Closing, Seen, Stored};
use crate::routing::names;
use crate::storage::{Next, Patience, StoreError};

/// Takes up the rows of an earlier process, then receives batches until every channel has stopped.
pub(super) async fn receive(
    state: Arc<GatewayState>,
    mut received: IntakeReceiver,
    left: Left,
    starting: TaskTrackerToken,
) {
    Box::pin(replay::take_up(&state, left)).await;
    answer_kept(&state, guests::settle(&state).await).await;
    drop(starting);
    let mut looks = Guests::looks();
    loop {
        tokio::select! {
            batch = received.recv() => match batch {
                Some((batch, stored)) => take_in(&state, batch, stored).await,
                None => return,
            },
            () = state.passed_over.changed() => Box::pin(replay::take_up_passed_over(&state)).await,
            _ = looks.tick(), if state.guests.is_watched() => {
                answer_kept(&state, guests::settle(&state).await).await;
            }
        }
    }
}

async fn take_in(state: &Arc<GatewayState>, batch: Batch, stored: oneshot::Sender<()>) {
    state.pulse.received(batch.platform);
    let began = Instant::now();
    let taken = match store(state, batch).await {
        Ok(taken) => taken,
        // Dropping `stored` tells the channel to leave the batch with the platform.
        Err(error) => return tracing::error!("messages could not be stored: {error}"),
    };
    let Taken {
        stored: Stored {
            accepted, renamed, ..
        },
        is_paired,
        grants,
        to_send,
        moves,
        deleted,
    } = taken;
    deleted.go_on(state);
    moves
        .iter()
        .for_each(|(known, followed)| known.go_on(state, followed));
    renamed.iter().for_each(|place| state.names.changed(place));
    to_send
        .iter()
        .for_each(|(place, rows)| state.delivery.submit(place, *rows));
    let seen = Some(Seen {
        received: began,
        stored: Instant::now(),
    });
    let guarded: Vec<_> = accepted
        .into_iter()
        .map(|accepted| (Accepted { seen, ..accepted }, state.work.token()))
        .collect();
    for (accepted, _) in &guarded {
        if let Some(platform) = accepted.inbound.origin.key.platform() {
            metrics::received(platform);
        }
    }
    // The channel may have stopped listening meanwhile; the rows are ours now either way.
    let _ = stored.send(());
    for (accepted, guard) in guarded {
        let mut in_hand = Received::new(accepted, Arrived::Now, guard);
        in_hand.is_paired = is_paired;
        in_hand.grants = grants;
        look_at(state, in_hand).await;
        answer_kept(state, guests::settle_if_due(state).await).await;
    }
}

/// Has the first messages of people answered who were just let in.
async fn answer_kept(state: &GatewayState, kept: Vec<(Accepted, TaskTrackerToken)>) {
    for (accepted, guard) in kept {
        look_at(state, Received::new(accepted, Arrived::Before, guard)).await;
    }
}

/// Handles a message until a row about the message is written or its lane has the message. A message
/// that the store cannot carry through is closed, because all others wait behind it.
pub(super) async fn look_at(state: &GatewayState, mut in_hand: Received) {
    let mut patience = Patience::new("intake");
    loop {
        let handled = match AssertUnwindSafe(handle(state, &mut in_hand))
            .catch_unwind()
            .await
        {
            Ok(handled) => handled,
            // A panic over a single message must not end intake for all.
            Err(_) => {
                tracing::error!(
                    inbox.id = in_hand.accepted.id,
                    "looking at a message panicked"
                );
                Box::pin(replies::tell_broken(state, &in_hand.accepted)).await
            }
        };
        let Err(error) = handled else { break };
        match patience.after(&state.stop, &error).await {
            Next::Again => {}
            Next::Hopeless => {
                let told = in_hand.told(state);
                return Box::pin(give_up(state, &in_hand.accepted, &error, told)).await;
            }
            Next::Stopping => return,
        }
    }
    if !in_hand.again.is_empty() {
        Box::pin(replay::again(state, in_hand.again)).await;
    }
}

pub(super) async fn give_up(
    state: &GatewayState,
    accepted: &Accepted,
    error: &StoreError,
    told: Told,
) {
    let giving_up = state.services.sessions.giving_up();
    giving_up.close(accepted, error, told, &state.stop).await;
}

async fn handle(state: &GatewayState, in_hand: &mut Received) -> Result<(), StoreError> {
    if grants::follow(state, in_hand.grants).await? {
        // Another id of the person may be a member.
        in_hand.is_paired = None;
    }
    if reacts_too_fast(state, in_hand) {
        return replies::refuse_pace(state, &in_hand.accepted, None).await;
    }
    if !complete(state, &mut in_hand.accepted.inbound).await? {
        let outcome = "a reaction to nothing an agent said";
        return replies::close(state, in_hand.accepted.id, Closing::Done, outcome).await;
    }
    let inbound = &in_hand.accepted.inbound;
    let parsed = commands::parse(&inbound.text);
    let edits_talk = inbound.extras.note == Some(Note::Edit) && parsed == Parsed::Talk;
    if edits_talk && revise(state, &in_hand.accepted).await? {
        return Ok(());
    }
    decide(state, in_hand, parsed).await
}

/// Reactions are counted before the look-up of the message they are for.
fn reacts_too_fast(state: &GatewayState, in_hand: &mut Received) -> bool {
    let inbound = &in_hand.accepted.inbound;
    if inbound.extras.note != Some(Note::Reaction) {
        return false;
    }
    let snapshot = state.services.snapshots.current();
    let access = &snapshot.config.access;
    let is_paired = in_hand.is_paired.unwrap_or(false);
    let role = Standing::of(access, &inbound.origin.person, is_paired).highest();
    in_hand.pace(state, access, role, Sent::Talk) != Pace::Fine
}

/// Adds the place and names missing from the update. False for a reaction to none of our messages.
async fn complete(state: &GatewayState, inbound: &mut Inbound) -> Result<bool, StoreError> {
    let is_reaction = inbound.extras.note == Some(Note::Reaction);
    if is_reaction && !reactions::resolve(state, inbound).await? {
        return Ok(false);
    }
    state.aliases.follow(&mut inbound.origin);
    names::complete(&state.names, &mut inbound.origin).await?;
    if let Some(addressed) = state.services.sessions.continues(inbound) {
        // Only one message of an album has the caption with the mention.
        inbound.addressed = addressed;
    }
    Ok(true)
}

/// Gives a waiting message its edited form. False when its turn has begun, or the message never had
/// a turn.
async fn revise(state: &GatewayState, edit: &Accepted) -> Result<bool, StoreError> {
    let Some(revised) = state.services.sessions.revise(&edit.inbound) else {
        return Ok(false);
    };
    let id = edit.id;
    let write = move |tx: &Transaction<'_>| {
        inbox::replace(tx, revised.id, &revised.inbound)?;
        inbox::close(
            tx,
            id,
            Closing::Done,
            "replaced a waiting message",
            now_ms(),
        )
    };
    state.services.db.write(write).await?;
    Ok(true)
}
