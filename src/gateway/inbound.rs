//! The way of a message from the platform to its lane. Start reading here.
//!
//! received → stored, then acknowledged → known? may speak? command? → routed → its place's lane.
//! Messages are handled in order, one after the other; the slow work is done in the lanes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::GatewayState;
use super::grants;
use super::guests::{self, Guests};
use super::person_pace::{Pace, Sent};
use super::reactions;
use super::replies::{self, Closed};
use super::storing::{Taken, store};
use crate::access::{self, Role, Standing, Verdict, people};
use crate::answering::{Question, Told, who_answers};
use crate::channels::{Batch, IntakeReceiver};
use crate::clock::now_ms;
use crate::commands::{self, CommandError, Context, Parsed};
use crate::config::Access;
use crate::delivery::Kind;
use crate::domain::{Addressed, Inbound, Note};
use crate::lanes::{Arrived, LaneFull};
use crate::records::inbox::{self, Accepted, Closing, Stored, Waiting};
use crate::routing::{FromChat, Resolved, Route, Visit, names};
use crate::storage::{Next, Patience, StoreError};

/// Rows of an earlier process are taken up in portions of this many.
const REPLAY_PORTION: u32 = 500;

/// Takes up the rows of an earlier process, then receives batches until every channel has stopped.
pub(super) async fn receive(
    state: Arc<GatewayState>,
    mut received: IntakeReceiver,
    starting: TaskTrackerToken,
) {
    take_up(&state).await;
    answer_kept(&state, guests::settle(&state).await).await;
    drop(starting);
    let mut looks = Guests::looks();
    loop {
        tokio::select! {
            batch = received.recv() => match batch {
                Some((batch, stored)) => take_in(&state, batch, stored).await,
                None => return,
            },
            _ = looks.tick(), if state.guests.is_watched() => {
                answer_kept(&state, guests::settle(&state).await).await;
            }
        }
    }
}

async fn take_in(state: &Arc<GatewayState>, batch: Batch, stored: oneshot::Sender<()>) {
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
    let guarded: Vec<_> = accepted
        .into_iter()
        .map(|accepted| (accepted, state.work.token()))
        .collect();
    // The channel may have stopped listening meanwhile; the rows are ours now either way.
    let _ = stored.send(());
    for (accepted, guard) in guarded {
        look_at(
            state,
            Received {
                accepted,
                is_paired,
                grants,
                arrived: Arrived::Now,
                verdict: None,
                guard: Some(guard),
                pace: None,
            },
        )
        .await;
        answer_kept(state, guests::settle_if_due(state).await).await;
    }
}

/// Has the first messages of people answered who were just let in.
async fn answer_kept(state: &GatewayState, kept: Vec<(Accepted, TaskTrackerToken)>) {
    for (accepted, guard) in kept {
        look_at(
            state,
            Received {
                accepted,
                is_paired: None,
                grants: None,
                arrived: Arrived::Before,
                verdict: None,
                guard: Some(guard),
                pace: None,
            },
        )
        .await;
    }
}

async fn take_up(state: &GatewayState) {
    let resume = || state.delivery.resume();
    if let Read::Stopping = insistently(state, "sending what is left", resume).await {
        return;
    }
    // The end of the replay: resumed turns put newer rows into lanes by themselves.
    let newest = || state.services.db.read(inbox::newest);
    let Read::Done(until) = insistently(state, "looking for messages from before", newest).await
    else {
        return;
    };
    let mut after = 0;
    loop {
        let portion = || {
            let read = move |connection: &Connection| {
                inbox::waiting(connection, after, until, REPLAY_PORTION)
            };
            state.services.db.read(read)
        };
        let Read::Done(waiting) =
            insistently(state, "looking for messages from before", portion).await
        else {
            return;
        };
        let Some(last) = waiting.last() else { return };
        after = last.id;
        tracing::info!("{} messages wait from before", waiting.len());
        for row in waiting {
            take_up_row(state, row).await;
        }
    }
}

/// The end of work that was tried again and again.
enum Read<T> {
    Done(T),
    /// The work cannot be done. The rest of the gateway goes on.
    Hopeless,
    Stopping,
}

/// Tries until the work is done, cannot be done, or the process stops.
async fn insistently<T, F>(
    state: &GatewayState,
    what: &'static str,
    mut work: impl FnMut() -> F,
) -> Read<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut patience = Patience::new(what);
    loop {
        let error = match work().await {
            Ok(done) => return Read::Done(done),
            Err(error) => error,
        };
        match patience.after(&state.stop, &error).await {
            Next::Again => {}
            Next::Hopeless => {
                tracing::error!("{what} was given up: {error}");
                return Read::Hopeless;
            }
            Next::Stopping => return Read::Stopping,
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
                    grants: None,
                    arrived: Arrived::Before,
                    verdict: None,
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
            // A row that cannot be closed either is taken up by the next start.
            let close = || replies::close(state, id, Closing::Failed, "unreadable");
            insistently(state, "closing an unreadable message", close).await;
        }
    }
}

/// Resumes a message written by no person. Messages for a platform that is off wait in the inbox.
async fn take_up_internal(state: &GatewayState, accepted: Accepted) {
    let place = &accepted.inbound.origin.key;
    if !place.is_internal() && !state.delivery.reaches(place) {
        return;
    }
    let mut patience = Patience::new("a subagent");
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
        match patience.after(&state.stop, &error).await {
            Next::Again => {}
            Next::Hopeless => return give_up(state, &accepted, &error, Told::InLogOnly).await,
            Next::Stopping => return,
        }
    }
}

/// A message on its way to a lane or to its end.
struct Received {
    accepted: Accepted,
    /// Whether the writer is a member, if seen when the message was stored.
    is_paired: Option<bool>,
    /// The number of the grants to people, if seen when the message was stored.
    grants: Option<i64>,
    arrived: Arrived,
    /// Whether the person may speak, once decided.
    verdict: Option<Verdict>,
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
                state.paces.borrow().check(person, role, sent, &origin.key)
            }
        };
        self.pace = Some(pace);
        pace
    }
}

/// Handles a message until a row about the message is written or its lane has the message. A message
/// that the store cannot carry through is closed, because all others wait behind it.
async fn look_at(state: &GatewayState, mut in_hand: Received) {
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
                replies::tell_broken(state, &in_hand.accepted).await
            }
        };
        let Err(error) = handled else { return };
        match patience.after(&state.stop, &error).await {
            Next::Again => {}
            Next::Hopeless => {
                let told = told(state, &in_hand);
                return give_up(state, &in_hand.accepted, &error, told).await;
            }
            Next::Stopping => return,
        }
    }
}

async fn give_up(state: &GatewayState, accepted: &Accepted, error: &StoreError, told: Told) {
    let giving_up = state.services.sessions.giving_up();
    giving_up.close(accepted, error, told, &state.stop).await;
}

/// People who would get an answer are told about a message that was given up.
fn told(state: &GatewayState, in_hand: &Received) -> Told {
    let inbound = &in_hand.accepted.inbound;
    let is_told = match in_hand.verdict {
        _ if inbound.extras.reply.is_some() => true,
        _ if inbound.extras.note.is_some() => false,
        Some(verdict) => is_answered(verdict),
        None => state.is_told(inbound),
    };
    if is_told {
        Told::InPlace
    } else {
        Told::InLogOnly
    }
}

fn is_answered(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Admit | Verdict::Hint | Verdict::TellUnbound
    )
}

impl GatewayState {
    /// Whether the writer of a message would get an answer, as far as the config alone can tell: for
    /// messages about which the store tells nothing.
    pub(super) fn is_told(&self, inbound: &Inbound) -> bool {
        let snapshot = self.services.snapshots.current();
        let (access, origin) = (&snapshot.config.access, &inbound.origin);
        let standing = Standing::of(access, &origin.person, false);
        let answer = who_answers(Question {
            table: &snapshot.table,
            visit: Visit {
                access,
                origin,
                standing: &standing,
            },
            from_chat: FromChat::default(),
            addressed: inbound.addressed,
            is_command: matches!(commands::parse(&inbound.text), Parsed::Command(_)),
        });
        inbound.extras.note.is_none() && is_answered(answer.verdict)
    }
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
    let access = &snapshot.config.access;
    let mut standing = standing(state, access, in_hand).await?;
    let visit = Visit {
        access,
        origin: &inbound.origin,
        standing: &standing,
    };
    let from_chat = state.router.settings(visit).await?;
    let ask = |standing: &Standing| {
        who_answers(Question {
            table: &snapshot.table,
            visit: Visit {
                access,
                origin: &inbound.origin,
                standing,
            },
            from_chat: from_chat.clone(),
            addressed: inbound.addressed,
            is_command: matches!(parsed, Parsed::Command(_)),
        })
    };
    let mut answer = ask(&standing);
    let verdict = answer.verdict;
    in_hand.verdict = Some(verdict);
    let accepted = &in_hand.accepted;
    // In a group the notice goes out for any writer, because the pin belonged to the place. In a
    // private chat the person must be allowed to speak.
    let is_told = verdict == Verdict::Admit || !inbound.origin.key.is_private();
    if let Some(stale_pin) = answer.resolved.stale_pin.as_ref().filter(|_| is_told) {
        let is_gone = !snapshot.table.knows(&stale_pin.agent);
        match replies::drop_pin(state, &inbound, stale_pin, is_gone).await {
            // Another pin may lie beneath the dropped pin.
            Ok(()) => return Box::pin(decide(state, in_hand, parsed)).await,
            // The route is without the pin already, and the place must be answered.
            Err(error) if error.is_permanent() => {
                tracing::error!(session = %inbound.origin.key, "a pin could not be dropped: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    match verdict {
        Verdict::Admit => {
            if standing.role() == Role::Guest && inbound.origin.key.is_shared() {
                standing = known_as(state, access, in_hand).await?;
                answer = ask(&standing);
            }
            let role = standing.with(answer.agent());
            let sent = sent(state, &inbound);
            if let Pace::TooFast { wait, is_news } = in_hand.pace(state, access, role, sent) {
                let told = is_news.then_some(wait);
                return replies::refuse_pace(state, &in_hand.accepted, told).await;
            }
            let Resolved {
                route, pin, opened, ..
            } = &answer.resolved;
            let context = Context {
                closed: answer.not_for_you(),
                services: &state.services,
                snapshot: &snapshot,
                inbound: &inbound,
                role,
                standing: &standing,
                route,
                pin: pin.as_ref(),
                opened: opened.as_ref(),
                is_open: answer.is_open,
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
        Verdict::Hint => match in_hand.pace(state, access, Role::Guest, Sent::Ask) {
            Pace::Fine => {
                let kept = (parsed == Parsed::Talk).then_some(&inbound);
                guests::hint(state, &in_hand.accepted, kept).await
            }
            Pace::TooFast { wait, .. } => {
                // Where the platform waits for a reply, silence would show as an error.
                let told = inbound.extras.reply.as_ref().map(|_| wait);
                replies::refuse_pace(state, &in_hand.accepted, told).await
            }
        },
        Verdict::TellUnbound => replies::tell_unbound(state, accepted).await,
        Verdict::Observe => {
            state.ignored.tell(&inbound, access::NOT_ADDRESSED);
            let role = standing.with(answer.agent());
            match in_hand.pace(state, access, role, Sent::Talk) {
                Pace::Fine => {
                    if standing.role() == Role::Guest {
                        standing = known_as(state, access, in_hand).await?;
                    }
                    // The words count for as much as their writer.
                    in_hand.accepted.role = standing.with(answer.agent());
                    in_hand.accepted.standing = standing;
                    observe(state, in_hand, &parsed).await
                }
                Pace::TooFast { .. } => replies::refuse_pace(state, &in_hand.accepted, None).await,
            }
        }
        Verdict::Ignore(reason) => {
            state.ignored.tell(&inbound, reason);
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

/// Handles messages once more whose rows wait again. Rows that cannot be read now are taken up by
/// the next start.
async fn answer_again(state: &GatewayState, ids: Vec<i64>) {
    if ids.is_empty() {
        return;
    }
    let read = || {
        let ids = ids.clone();
        let messages = move |connection: &Connection| inbox::messages_of(connection, &ids);
        state.services.db.read(messages)
    };
    if let Read::Done(rows) = insistently(state, "looking for a failed message", read).await {
        for (id, inbound) in rows {
            let inbound = Ok(inbound);
            Box::pin(take_up_row(state, Waiting { id, inbound })).await;
        }
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
        Parsed::Talk if context.closed.is_some() && context.inbound.extras.note.is_some() => {
            replies::close(
                state,
                in_hand.accepted.id,
                Closing::Refused,
                "a note to an agent that is closed to its writer",
            )
            .await
        }
        Parsed::Talk if let Some(closed) = context.closed => {
            let closing = Closed {
                kind: Kind::Notice,
                closing: Closing::Refused,
                outcome: "the agent is closed to the writer",
            };
            let told = commands::not_for_you(context, closed).to_string();
            replies::reply(state, &in_hand.accepted, &told, closing).await
        }
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
            Ok(outcome) => {
                let again = outcome.effect.again();
                replies::carry_out(state, &in_hand.accepted, outcome).await?;
                answer_again(state, again).await;
                Ok(())
            }
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

/// The standing known before access is decided. In a shared place members are not looked up yet,
/// because membership opens nothing there.
async fn standing(
    state: &GatewayState,
    access: &Access,
    in_hand: &Received,
) -> Result<Standing, StoreError> {
    let inbound = &in_hand.accepted.inbound;
    let known = Standing::of(access, &inbound.origin.person, false);
    if known.role() == Role::Owner || inbound.origin.key.is_shared() {
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
