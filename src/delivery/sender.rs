//! Sends a place's rows one after the other; places do not wait for each other.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dashmap::Entry;
use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::oneshot;

use super::outbox::{self, ClaimedRow, Next};
use super::{Delivery, Inner, Kind, MovedAway, Outlet, owners};
use crate::channels::{Pace, Revision, SendError};
use crate::clock::now_ms;
use crate::domain::{Destination, MessageId, Moved, SessionKey};
use crate::storage::{Durability, StoreError};

/// The wait after a first call that surely failed; doubles with each.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// A row this old is given up: an answer from yesterday helps nobody.
pub(super) const GIVE_UP_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// Why a row is given up whose call panicked: the next try would end the same way.
const BROKE: &str = "sending it broke inside Parlor";

/// A mark that a power cut takes back costs at most one message that comes twice; syncing each would slow down them all.
const OF_MARKS: Durability = Durability::Kill;

pub(super) fn submit(inner: &Arc<Inner>, place: &SessionKey, rows: usize) {
    if rows == 0 || inner.stop.is_cancelled() {
        return;
    }
    match inner.places.entry(place.clone()) {
        Entry::Occupied(mut left) => *left.get_mut() += rows,
        Entry::Vacant(free) => {
            free.insert(rows);
            start(inner, place, None, Allowed::NotYet);
        }
    }
}

/// Sends the place's rows until none is left, beginning with the one that was claimed already, if any.
pub(super) fn start(inner: &Arc<Inner>, place: &SessionKey, first: Option<ClaimedRow>, allowed: Allowed) {
    let guard = inner.work.begin();
    let (inner, place) = (inner.clone(), place.clone());
    inner.tasks.clone().spawn(async move {
        work_through(&inner, &place, first, allowed).await;
        drop(guard);
    });
}

async fn work_through(inner: &Arc<Inner>, place: &SessionKey, mut first: Option<ClaimedRow>, mut allowed: Allowed) {
    let Some(outlet) = inner.outlet_of(place) else {
        inner.places.remove(place);
        return;
    };
    while first.is_some() || !inner.stop.is_cancelled() {
        let step = match first.take() {
            Some(row) => {
                allowed = Allowed::NotYet;
                send(inner, place, outlet, row).await
            }
            None => step(inner, place, outlet, &mut allowed).await,
        };
        let wait = match step {
            Ok(Step::Sent) => {
                if finish_one(inner, place) {
                    return;
                }
                continue;
            }
            Ok(Step::Wait(wait)) => wait,
            Err(error) => {
                tracing::error!(session = %place, "sending waits for the store: {error}");
                FIRST_BACKOFF
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = inner.stop.cancelled() => {}
        }
    }
    inner.places.remove(place);
}

enum Step {
    /// A row is out of the queue, whether it arrived or was given up.
    Sent,
    Wait(Duration),
}

/// Whether the next call is within its budgets. Kept over a step that made no call, because being allowed costs.
#[derive(PartialEq)]
pub(super) enum Allowed {
    NotYet,
    Yes,
}

async fn step(inner: &Arc<Inner>, place: &SessionKey, outlet: &Outlet, allowed: &mut Allowed) -> Result<Step, StoreError> {
    let pace = outlet.channel.pace(&Destination::stored(place.clone()));
    if let Some(pace) = pace {
        tokio::select! {
            may = may_send(inner, place, outlet, pace, allowed) => may?,
            // Only waits end with the process; a call that is being made is never cut.
            () = inner.stop.cancelled() => return Ok(Step::Wait(Duration::ZERO)),
        }
    }
    let key = place.clone();
    match inner.db.write_as(OF_MARKS, move |tx| outbox::claim(tx, &key, now_ms())).await? {
        Next::Claimed(row) => {
            *allowed = Allowed::NotYet;
            send(inner, place, outlet, row).await
        }
        Next::NotBefore(then) => Ok(Step::Wait(Duration::from_millis(u64::try_from(then - now_ms()).unwrap_or(0).max(1)))),
        Next::Nothing => Ok(Step::Sent),
    }
}

async fn send(inner: &Arc<Inner>, place: &SessionKey, outlet: &Outlet, row: ClaimedRow) -> Result<Step, StoreError> {
    // A worker that panicked would leave its place without one for ever.
    let called = AssertUnwindSafe(call(inner, outlet, &row)).catch_unwind().await;
    let outcome = called.unwrap_or_else(|_| Err(SendError::Refused(BROKE.into())));
    if let Err(SendError::RetryAfter(wait)) = &outcome {
        inner.asked_to_wait(outlet, &row.to, *wait).await;
    }
    let moved = moved(place, &outcome);
    let step = settle(inner, outlet, row, outcome).await;
    if let Some(moved) = moved {
        tell_moved(inner, moved).await;
    }
    step
}

fn moved(place: &SessionKey, outcome: &Result<MessageId, SendError>) -> Option<Moved> {
    match (place.telegram_group(), outcome) {
        (Some(old), Err(SendError::Moved(new))) => Some(Moved { old, new: *new }),
        _ => None,
    }
}

/// Returns once everything has followed, and this place has no rows any more; or when the process stops.
async fn tell_moved(inner: &Inner, moved: Moved) {
    let (done, followed) = oneshot::channel();
    if inner.moves.send(MovedAway { moved, done }).await.is_ok() {
        // An error is logged where it happened; the next try asks again.
        let _ = followed.await;
    }
}

async fn may_send(
    inner: &Inner,
    place: &SessionKey,
    outlet: &Outlet,
    pace: Pace,
    allowed: &mut Allowed,
) -> Result<(), StoreError> {
    if *allowed == Allowed::NotYet {
        if !outlet.pacing.take_at_once(pace) {
            let key = place.clone();
            let kind = inner.db.read(move |connection| outbox::next_kind(connection, &key)).await?;
            outlet.pacing.ready(pace, kind.unwrap_or(Kind::Error)).await;
        }
        *allowed = Allowed::Yes;
    }
    outlet.pacing.quiet_over(pace.chat).await;
    Ok(())
}

async fn call(inner: &Inner, outlet: &Outlet, row: &ClaimedRow) -> Result<MessageId, SendError> {
    if let Some(stored) = &row.file {
        let file = serde_json::from_str(&row.part.0).map_err(|error| SendError::Refused(error.to_string()))?;
        return outlet.channel.send_file(&row.to, &file, &inner.outgoing.join(stored), &row.ticket()).await;
    }
    let Some(message) = &row.target else { return outlet.channel.send(&row.to, &row.part, &row.ticket()).await };
    let is_removal = row.part.0.is_empty();
    let revision = if is_removal { Revision::Remove { message } } else { Revision::Edit { message, part: &row.part } };
    match outlet.channel.revise(&row.to, revision).await {
        Err(SendError::Gone) if is_removal => Ok(message.clone()),
        revised => revised.map(|()| message.clone()),
    }
}

/// Writes down what became of a call, however long that takes: a row that stays marked as being sent would go out again.
async fn settle(
    inner: &Arc<Inner>,
    outlet: &Outlet,
    row: ClaimedRow,
    outcome: Result<MessageId, SendError>,
) -> Result<Step, StoreError> {
    let (id, verdict) = (row.id, judge(&row, outcome, outlet.channel.tells_repeats_for(&row.part)));
    let step = match &verdict {
        Verdict::Sent(_) | Verdict::GivenUp(_) | Verdict::PlaceLost(_) => Step::Sent,
        Verdict::SendInstead => Step::Wait(Duration::ZERO),
        Verdict::Again { wait, .. } => Step::Wait(*wait),
    };
    let (verdict, delivery) = (Arc::new(verdict), Delivery { inner: inner.clone() });
    let write = || {
        let (verdict, delivery, to) = (verdict.clone(), delivery.clone(), row.to.clone());
        move |tx: &Transaction<'_>| {
            match verdict.as_ref() {
                Verdict::Sent(message) => outbox::sent(tx, id, message, now_ms())?,
                Verdict::Again { wait, error, repeated } => outbox::again(tx, id, after(*wait), error, *repeated)?,
                Verdict::SendInstead => outbox::send_instead(tx, id)?,
                Verdict::GivenUp(error) => outbox::failed(tx, id, error)?,
                Verdict::PlaceLost(error) => return owners::give_up(tx, &delivery, &to, id, error),
            }
            Ok(Vec::new())
        }
    };
    let told = inner.db.write_patiently(&inner.stop, OF_MARKS, write).await?;
    told.iter().for_each(|(owner, rows)| delivery.submit(owner, *rows));
    if let (Verdict::Sent(_), Some(stored)) = (verdict.as_ref(), &row.file) {
        remove_copy(&inner.outgoing.join(stored)).await;
    }
    Ok(step)
}

/// A copy that stays behind is found by the next tidying.
async fn remove_copy(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::debug!("the copy of a file that was sent stays behind: {error}");
    }
}

/// What a call came to.
enum Verdict {
    Sent(MessageId),
    Again {
        wait: Duration,
        error: String,
        repeated: bool,
    },
    /// What was to be changed is gone.
    SendInstead,
    GivenUp(String),
    /// Given up, and the owners must know.
    PlaceLost(String),
}

fn judge(row: &ClaimedRow, outcome: Result<MessageId, SendError>, tells_repeats_for: Duration) -> Verdict {
    let place = row.to.place();
    let age = now_ms() - row.created_at;
    let too_old = age > GIVE_UP_AFTER_MS;
    let is_told_apart = u128::try_from(age).is_ok_and(|age| age < tells_repeats_for.as_millis());
    let repeated = row.repeated;
    match outcome {
        Ok(message) => Verdict::Sent(message),
        Err(SendError::RetryAfter(wait)) if !too_old => {
            tracing::warn!(session = %place, "the platform asks to wait {} s", wait.as_secs());
            Verdict::Again { wait, error: "asked to wait".into(), repeated }
        }
        Err(SendError::Moved(_)) if !too_old => {
            let wait = if row.attempts == 0 { Duration::ZERO } else { backoff(row.attempts) };
            Verdict::Again { wait, error: "the group has moved".into(), repeated }
        }
        Err(SendError::Gone) => Verdict::SendInstead,
        Err(SendError::NotSent(error)) if !too_old => {
            let wait = backoff(row.attempts);
            tracing::warn!(session = %place, "not sent, trying again in {} s: {error}", wait.as_secs());
            Verdict::Again { wait, error, repeated }
        }
        // Harmless when made twice, so it is not counted as repeated and not given up early.
        Err(SendError::Unknown(error)) if (row.target.is_some() || is_told_apart) && !too_old => {
            let wait = backoff(row.attempts);
            tracing::warn!(session = %place, "no answer to a call, trying again in {} s: {error}", wait.as_secs());
            Verdict::Again { wait, error, repeated }
        }
        Err(SendError::Unknown(error)) if !row.repeated => {
            tracing::warn!(session = %place, outbox.id = row.id, "no answer to a send, repeating it once: {error}");
            Verdict::Again { wait: FIRST_BACKOFF, error, repeated: true }
        }
        Err(SendError::PlaceLost(loss)) => {
            tracing::warn!(session = %place, outbox.id = row.id, "undelivered: {loss}");
            Verdict::PlaceLost(loss.to_string())
        }
        Err(error) => {
            let reason = match error {
                SendError::Unknown(_) => outbox::NEVER_CONFIRMED.to_owned(),
                other => other.to_string(),
            };
            tracing::error!(session = %place, outbox.id = row.id, "undelivered: {reason}");
            Verdict::GivenUp(reason)
        }
    }
}

pub(super) fn after(wait: Duration) -> i64 {
    now_ms().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

fn backoff(attempts: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << attempts.min(6)).min(LONGEST_BACKOFF)
}

/// Counts one row as out; true when the place has none left and its worker must end.
fn finish_one(inner: &Inner, place: &SessionKey) -> bool {
    let Entry::Occupied(mut left) = inner.places.entry(place.clone()) else { return true };
    *left.get_mut() = left.get().saturating_sub(1);
    if *left.get() == 0 {
        // Removed under the same lock that submit takes, so no row is left without a worker.
        left.remove();
        return true;
    }
    false
}
