//! The way of a message from the platform to its lane. Start reading here.
//!
//! received → stored, then acknowledged → known? may speak? command? → routed → its place's lane.
//! Messages are handled in order, one after the other; the slow work is done in the lanes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::GatewayState;
use super::deletions::{self, Deleted};
use super::group_migration::{self, Move};
use super::person_pace::{Pace, Sent};
use super::reactions;
use super::replies::{self, Closed};
use super::topics::{self, Rows};
use crate::access::{self, Asking, Role, Standing, Verdict, people};
use crate::channels::{Batch, IntakeReceiver};
use crate::clock::now_ms;
use crate::commands::{self, CommandError, Context, Parsed};
use crate::config::Access;
use crate::delivery::Kind;
use crate::domain::{Addressed, Inbound, Note};
use crate::lanes::{Arrived, LaneFull};
use crate::records::group_migration::Followed;
use crate::records::inbox::{self, Accepted, Closing, Stored, Waiting};
use crate::routing::{Resolved, Route, names};
use crate::storage::{self, StoreError};

/// Rows of an earlier process are taken up in portions of this many.
const REPLAY_PORTION: u32 = 500;

/// Takes up the rows of an earlier process, then receives batches until every channel has stopped.
pub(super) async fn receive(
    state: Arc<GatewayState>,
    mut received: IntakeReceiver,
    starting: TaskTrackerToken,
) {
    take_up(&state).await;
    drop(starting);
    while let Some((batch, stored)) = received.recv().await {
        match store(&state, batch).await {
            Ok(Taken {
                stored: Stored {
                    accepted, renamed, ..
                },
                is_paired,
                retried,
                moves,
                deleted,
            }) => {
                deleted.go_on(&state);
                moves
                    .iter()
                    .for_each(|(known, followed)| known.go_on(&state, followed));
                renamed.iter().for_each(|place| state.names.changed(place));
                retried
                    .iter()
                    .for_each(|(place, rows)| state.delivery.submit(place, *rows));
                let guarded: Vec<_> = accepted
                    .into_iter()
                    .map(|accepted| (accepted, state.work.token()))
                    .collect();
                // The channel may have stopped listening meanwhile; the rows are ours now either
                // way.
                let _ = stored.send(());
                for (accepted, guard) in guarded {
                    look_at(
                        &state,
                        Received {
                            accepted,
                            is_paired,
                            arrived: Arrived::Now,
                            guard: Some(guard),
                            pace: None,
                        },
                    )
                    .await;
                }
            }
            // Dropping `stored` tells the channel to leave the batch with the platform.
            Err(error) => tracing::error!("messages could not be stored: {error}"),
        }
    }
}

/// A stored batch, with its effects on places.
struct Taken {
    stored: Stored,
    /// Whether the writer of a lone message is a member. In a larger batch an earlier message may
    /// change this for a later message.
    is_paired: Option<bool>,
    /// Outbox rows of topics open for messages again.
    retried: Rows,
    moves: Vec<(Move, Followed)>,
    deleted: Deleted,
}

async fn store(state: &GatewayState, batch: Batch) -> Result<Taken, StoreError> {
    let moves = group_migration::among(state, &batch.arrivals).await;
    let deletions = deletions::among(&batch.arrivals);
    let snapshot = state.services.snapshots.current();
    let arrivals = topics::bind_by_name(&snapshot, batch.arrivals);
    let write = move |tx: &Transaction<'_>| {
        let mut stored = inbox::insert(tx, batch.platform, arrivals, now_ms())?;
        let deleted = deletions.write(tx, batch.platform, now_ms())?;
        stored
            .accepted
            .retain(|accepted| !deleted.rows.contains(&accepted.id));
        let is_paired = match stored.accepted.as_slice() {
            [only] => {
                let person = &only.inbound.origin.person;
                Some(people::is_paired(
                    tx,
                    snapshot.config.access.people.ids_of(person),
                )?)
            }
            _ => None,
        };
        let retried = topics::retry(tx, &stored.reopened, now_ms())?;
        // After the messages, because they may be older than the move of their group.
        let follow = |known: Move| known.write(tx).map(|followed| (known, followed));
        let moves = moves
            .into_iter()
            .map(follow)
            .collect::<rusqlite::Result<_>>()?;
        Ok(Taken {
            stored,
            is_paired,
            retried,
            moves,
            deleted,
        })
    };
    state.services.db.write(write).await
}

async fn take_up(state: &GatewayState) {
    while let Err(error) = state.delivery.resume().await {
        if storage::pause(&state.stop, "intake", &error)
            .await
            .is_break()
        {
            return;
        }
    }
    // The end of the replay: resumed turns put newer rows into lanes by themselves.
    let until = loop {
        match state.services.db.read(inbox::newest).await {
            Ok(newest) => break newest,
            Err(error) => {
                if storage::pause(&state.stop, "intake", &error)
                    .await
                    .is_break()
                {
                    return;
                }
            }
        }
    };
    let mut after = 0;
    loop {
        match state
            .services
            .db
            .read(move |connection| inbox::waiting(connection, after, until, REPLAY_PORTION))
            .await
        {
            Ok(waiting) => {
                let Some(last) = waiting.last() else { return };
                after = last.id;
                tracing::info!("{} messages wait from before", waiting.len());
                for row in waiting {
                    take_up_row(state, row).await;
                }
            }
            Err(error) => {
                if storage::pause(&state.stop, "intake", &error)
                    .await
                    .is_break()
                {
                    return;
                }
            }
        }
    }
}

async fn take_up_row(state: &GatewayState, Waiting { id, inbound }: Waiting) {
    match inbound {
        Ok(inbound) if inbound.extras.internal.is_some() => {
            take_up_internal(state, Accepted::new(id, inbound)).await;
        }
        Ok(inbound) if state.delivery.reaches(&inbound.origin.key) => {
            let (accepted, guard) = (Accepted::new(id, inbound), Some(state.work.token()));
            look_at(
                state,
                Received {
                    accepted,
                    is_paired: None,
                    arrived: Arrived::Before,
                    guard,
                    pace: None,
                },
            )
            .await;
        }
        // Messages of a platform not connected in this process wait in the inbox.
        Ok(_) => {}
        Err(reason) => {
            tracing::error!(
                inbox.id = id,
                "a waiting message cannot be read any more: {reason}"
            );
            while let Err(error) = replies::close(state, id, Closing::Failed, "unreadable").await {
                if storage::pause(&state.stop, "intake", &error)
                    .await
                    .is_break()
                {
                    return;
                }
            }
        }
    }
}

/// Resumes a message written by no person. Messages for a platform that is off wait in the inbox.
async fn take_up_internal(state: &GatewayState, accepted: Accepted) {
    let place = &accepted.inbound.origin.key;
    if !place.is_internal() && !state.delivery.reaches(place) {
        return;
    }
    loop {
        let taken = match state.services.sessions.take_up(accepted.clone()).await {
            Ok(Ok(())) => return,
            Ok(Err(_)) => {
                replies::close(
                    state,
                    accepted.id,
                    Closing::Failed,
                    "nobody knows what it is about",
                )
                .await
            }
            Err(error) => Err(error),
        };
        let Err(error) = taken else { return };
        if storage::pause(&state.stop, "intake", &error)
            .await
            .is_break()
        {
            return;
        }
    }
}

/// A message on its way to a lane or to its end.
struct Received {
    accepted: Accepted,
    /// Whether the writer is a member, if seen when the message was stored.
    is_paired: Option<bool>,
    arrived: Arrived,
    /// Passed to the lane with the message.
    guard: Option<TaskTrackerToken>,
    /// Set once the message is counted, because a failing store makes the message be looked at
    /// again.
    pace: Option<Pace>,
}

impl Received {
    /// Counts the message against its writer's pace. Messages of an earlier process were counted
    /// there.
    fn pace(&mut self, state: &GatewayState, access: &Access, role: Role, sent: Sent) -> Pace {
        if let Some(pace) = self.pace {
            return pace;
        }
        let origin = &self.accepted.inbound.origin;
        let pace = match self.arrived {
            Arrived::Before => Pace::Fine,
            Arrived::Now => {
                let person = access.people.main_id(&origin.person);
                state.paces.check(person, role, sent, &origin.key)
            }
        };
        self.pace = Some(pace);
        pace
    }
}

/// Handles a message until a row about the message is written or its lane has the message.
async fn look_at(state: &GatewayState, mut in_hand: Received) {
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
                replies::tell_broken(state, &in_hand.accepted).await
            }
        };
        let Err(error) = handled else { return };
        if storage::pause(&state.stop, "intake", &error)
            .await
            .is_break()
        {
            return;
        }
    }
}

async fn handle(state: &GatewayState, in_hand: &mut Received) -> Result<(), StoreError> {
    if reacts_too_fast(state, in_hand) {
        return replies::refuse_pace(state, &in_hand.accepted, None).await;
    }
    if !complete(state, &mut in_hand.accepted.inbound).await? {
        return replies::close(
            state,
            in_hand.accepted.id,
            Closing::Done,
            "a reaction to nothing an agent said",
        )
        .await;
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

/// Decides which agent answers and whether this person may ask, and acts on both.
async fn decide(
    state: &GatewayState,
    in_hand: &mut Received,
    parsed: Parsed,
) -> Result<(), StoreError> {
    let inbound = in_hand.accepted.inbound.clone();
    let snapshot = state.services.snapshots.current();
    let Resolved {
        route,
        pin,
        stale_pin,
    } = state
        .router
        .resolve(&snapshot.table, &inbound.origin)
        .await?;
    let access = &snapshot.config.access;
    let mut standing = standing(state, access, in_hand).await?;
    let asking = Asking {
        key: &inbound.origin.key,
        role: standing.highest(),
        addressed: inbound.addressed,
        is_command: matches!(parsed, Parsed::Command(_)),
        place_is_bound: route.opens_place,
        require_mention: route.require_mention,
    };
    let accepted = &in_hand.accepted;
    let verdict = access::decide(access, &asking);
    // In a group the notice goes out for any writer, because the pin belonged to the place. In a
    // private chat the person must be allowed to speak.
    if let Some(stale_pin) =
        stale_pin.filter(|_| verdict == Verdict::Admit || !inbound.origin.key.is_private())
    {
        replies::drop_pin(state, &inbound, &stale_pin).await?;
        // Another pin may lie beneath the dropped pin.
        return Box::pin(decide(state, in_hand, parsed)).await;
    }
    match verdict {
        Verdict::Admit => {
            if standing.role() == Role::Guest && !inbound.origin.key.is_private() {
                standing = known_as(state, access, in_hand).await?;
            }
            let role = standing.with(&route.agent);
            let sent = sent(state, &inbound);
            if let Pace::TooFast { wait, is_news } = in_hand.pace(state, access, role, sent) {
                let told = is_news.then_some(wait);
                return replies::refuse_pace(state, &in_hand.accepted, told).await;
            }
            let context = Context {
                services: &state.services,
                snapshot: &snapshot,
                inbound: &inbound,
                role,
                standing: &standing,
                route: &route,
                pin: pin.as_ref(),
            };
            admit(state, in_hand, parsed, &context).await
        }
        // An edit is no reason to repeat a notice.
        Verdict::Hint | Verdict::TellUnbound if inbound.extras.note.is_some() => {
            replies::close(
                state,
                accepted.id,
                Closing::Refused,
                "a note where nobody may speak",
            )
            .await
        }
        Verdict::Hint => replies::hint(state, accepted).await,
        Verdict::TellUnbound => replies::tell_unbound(state, accepted).await,
        Verdict::Observe => {
            let role = standing.with(&route.agent);
            match in_hand.pace(state, access, role, Sent::Talk) {
                Pace::Fine => observe(state, in_hand, &parsed).await,
                Pace::TooFast { .. } => replies::refuse_pace(state, &in_hand.accepted, None).await,
            }
        }
        Verdict::Ignore(reason) => {
            tracing::debug!(session = %inbound.origin.key, "ignored: {reason}");
            replies::ignore(state, accepted, reason).await
        }
    }
}

/// A further file of a message that waits is no question of its own.
fn sent(state: &GatewayState, inbound: &Inbound) -> Sent {
    let is_file = inbound.extras.attachment.is_some();
    if is_file && state.services.sessions.continues(inbound).is_some() {
        Sent::Part
    } else {
        Sent::Ask
    }
}

async fn admit(
    state: &GatewayState,
    in_hand: &mut Received,
    parsed: Parsed,
    context: &Context<'_>,
) -> Result<(), StoreError> {
    in_hand.accepted.role = context.role;
    in_hand.accepted.standing = context.standing.clone();
    let refused = |outcome| Closed {
        kind: Kind::Command,
        closing: Closing::Done,
        outcome,
    };
    match parsed {
        Parsed::Talk => submit(state, in_hand, context.route).await,
        Parsed::Command(_) | Parsed::Mistaken(_) if context.inbound.extras.note.is_some() => {
            replies::close(
                state,
                in_hand.accepted.id,
                Closing::Done,
                "an edited command",
            )
            .await
        }
        Parsed::Command(command) => match commands::run(command, context).await {
            Ok(outcome) => replies::carry_out(state, &in_hand.accepted, outcome).await,
            // The command comes from the topic's name, so there is no writer to tell about the
            // failure.
            Err(CommandError::User(_)) if context.inbound.addressed == Addressed::ByTopicName => {
                replies::close(
                    state,
                    in_hand.accepted.id,
                    Closing::Refused,
                    "its maker may not switch here",
                )
                .await
            }
            Err(CommandError::User(error)) => {
                replies::reply(
                    state,
                    &in_hand.accepted,
                    &error.to_string(),
                    refused("command refused"),
                )
                .await
            }
            Err(CommandError::Store(error)) => Err(error),
        },
        Parsed::Mistaken(error) => {
            replies::reply(
                state,
                &in_hand.accepted,
                &error.to_string(),
                refused("no such command"),
            )
            .await
        }
    }
}

async fn submit(
    state: &GatewayState,
    in_hand: &mut Received,
    route: &Route,
) -> Result<(), StoreError> {
    let accepted = &in_hand.accepted;
    tracing::debug!(agent.id = %route.agent, session = %accepted.inbound.origin.key, route.rule = %route.rule, "queued");
    let guard = in_hand.guard.take().expect("a message is submitted once");
    match state
        .services
        .sessions
        .submit(accepted.clone(), in_hand.arrived, guard)
    {
        Ok(()) => Ok(()),
        Err(LaneFull { guard, news }) => {
            // Kept, because the refusal may have to be written again.
            in_hand.guard = Some(guard);
            replies::refuse_in_full_lane(state, accepted, news).await
        }
    }
}

/// Queues talk to be kept without an answer. An unknown command was for another bot.
async fn observe(
    state: &GatewayState,
    in_hand: &mut Received,
    parsed: &Parsed,
) -> Result<(), StoreError> {
    let accepted = &in_hand.accepted;
    if *parsed == Parsed::Talk {
        let guard = in_hand.guard.take().expect("a message is submitted once");
        match state
            .services
            .sessions
            .observe(accepted.clone(), in_hand.arrived, guard)
        {
            Ok(()) => return Ok(()),
            Err(LaneFull { guard, .. }) => in_hand.guard = Some(guard),
        }
    }
    replies::close(state, accepted.id, Closing::Refused, access::NOT_ADDRESSED).await
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

/// The standing known before access is decided. Members are looked up only in private chats,
/// because membership opens nothing else.
async fn standing(
    state: &GatewayState,
    access: &Access,
    in_hand: &Received,
) -> Result<Standing, StoreError> {
    let inbound = &in_hand.accepted.inbound;
    let known = Standing::of(access, &inbound.origin.person, false);
    if known.role() == Role::Owner || !inbound.origin.key.is_private() {
        return Ok(known);
    }
    known_as(state, access, in_hand).await
}

async fn known_as(
    state: &GatewayState,
    access: &Access,
    in_hand: &Received,
) -> Result<Standing, StoreError> {
    let person = &in_hand.accepted.inbound.origin.person;
    let is_paired = if let Some(is_paired) = in_hand.is_paired {
        is_paired
    } else {
        let ids = access.people.ids_of(person).to_vec();
        let read = move |connection: &rusqlite::Connection| people::is_paired(connection, &ids);
        state.services.db.read(read).await?
    };
    Ok(Standing::of(access, person, is_paired))
}
