//! Sends the rows of each place in order; places do not wait for each other.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dashmap::Entry;
use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep};
use tracing::Instrument;

use super::letting_go::{Known, write_failed};
use super::outbox::{self, ClaimedRow, Knows, Next};
use super::verdict::{self, Again, Facts, Pause, Verdict};
use super::{Delivery, Inner, Kind, MovedAway, Outlet, owner_notices, retry_after};
use crate::backoff::Backoff;
use crate::channels::{Health, Pace, Revision, SendError, Text};
use crate::clock::now_ms;
use crate::domain::{Destination, MessageId, Moved, SessionKey};
use crate::storage::{Durability, Remedy, StoreError};

/// Waits while the database cannot be read or written.
const FIRST_STORE_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_STORE_BACKOFF: Duration = Duration::from_secs(15);

/// The error of a row whose call panicked. The row is given up, because the next try would panic
/// too.
const BROKE: &str = "sending it broke inside Parlor";

/// Failures of the store in a row that do not pass, until the row is let go.
const MOST_TRIES: u32 = 3;
/// Sent in the place of replies to commands that waited for longer than a minute.
const REPLIES_DROPPED: &str = "Replies to commands had to wait here for too long, so I dropped them. The commands were carried out; `/status` shows how things stand.";

/// A power cut may undo a claim, at the price of a single duplicate message. A sync per claim would
/// slow down all sends.
const OF_CLAIMS: Durability = Durability::Kill;

pub(super) fn submit(inner: &Arc<Inner>, place: &SessionKey, rows: usize) {
    if rows == 0 || inner.stop.is_cancelled() {
        return;
    }
    match inner.places.entry(place.clone()) {
        Entry::Occupied(mut left) => {
            *left.get_mut() += rows;
            drop(left);
            inner.more_rows.notify_waiters();
        }
        Entry::Vacant(free) => {
            free.insert(rows);
            start(inner, place, None, Allowed::NotYet);
        }
    }
}

/// A claimed row, with its permit for a call.
pub(super) struct Begun {
    pub(super) row: ClaimedRow,
    pub(super) in_flight: OwnedSemaphorePermit,
}

/// Whether the next call has taken its share of the budgets. Kept over a step without a call,
/// because the share is spent.
#[derive(PartialEq)]
pub(super) enum Allowed {
    NotYet,
    Yes,
}

/// Sends the place's rows until none is left, beginning with an already claimed row, if any.
pub(super) fn start(
    inner: &Arc<Inner>,
    place: &SessionKey,
    first: Option<Begun>,
    allowed: Allowed,
) {
    let guard = inner.work.token();
    let (inner, place) = (inner.clone(), place.clone());
    inner.tasks.clone().spawn(async move {
        if let Some(outlet) = inner.outlet_of(&place) {
            let (backoff, store_backoff) = (
                Health::backoff(),
                Backoff::new(FIRST_STORE_BACKOFF, LONGEST_STORE_BACKOFF),
            );
            let worker = Worker {
                inner: &inner,
                place: &place,
                outlet,
                allowed,
                head: None,
                waited_for: None,
                finishing: None,
                backoff,
                store_backoff,
                hopeless: 0,
            };
            worker.run(first).await;
        } else {
            inner.places.remove(&place);
        }
        drop(guard);
    });
}

/// Sends the rows of a single place.
struct Worker<'a> {
    inner: &'a Arc<Inner>,
    place: &'a SessionKey,
    /// As of this step: a platform whose settings change gets a new one.
    outlet: Arc<Outlet>,
    allowed: Allowed,
    head: Option<Head>,
    /// The row whose wait is over.
    waited_for: Option<i64>,
    /// The message that the last row sent answers.
    finishing: Option<i64>,
    /// Between tries of the first row.
    backoff: Backoff,
    store_backoff: Backoff,
    /// Failures of the store in a row that do not pass.
    hopeless: u32,
}

/// The row at the front of the queue, tried until delivered or given up.
struct Head {
    id: i64,
    /// Time of the first call, if made by this process.
    first_call: Option<Instant>,
    /// Time before this moment is already counted in the row's `tried_ms`.
    counted: Instant,
    /// The row failed, and the platform then answered another call.
    is_suspect: bool,
}

enum Step {
    /// A row left the queue, delivered or given up.
    Done,
    /// The next try may begin at once.
    Next,
    /// The platform asked for a wait.
    Wait { id: i64, wait: Duration },
    /// The current row is tried again later.
    BackOff,
    /// Nothing is known about the rows of the place. The next start looks again.
    Leave,
}

impl Worker<'_> {
    async fn run(mut self, mut first: Option<Begun>) {
        while first.is_some() || !self.inner.stop.is_cancelled() {
            match self.inner.outlet_of(self.place) {
                Some(outlet) => self.outlet = outlet,
                // The rows wait until the platform is back.
                None if first.is_none() => break,
                None => {}
            }
            let step = match first.take() {
                Some(begun) => self.send(begun).await,
                None => self.step().await,
            };
            let step = self.or_let_go(step).await;
            if step.is_ok() {
                self.store_backoff.reset();
            }
            if matches!(step, Ok(Step::Leave)) {
                break;
            }
            if matches!(step, Ok(Step::Done)) {
                (self.head, self.waited_for) = (None, None);
                self.backoff.reset();
                if finish_one(self.inner, self.place) {
                    return;
                }
            } else {
                let stop = self.inner.stop.clone();
                tokio::select! {
                    () = self.pause(step) => {}
                    () = stop.cancelled() => {}
                }
            }
        }
        self.inner.places.remove(self.place);
    }

    /// After some failures that do not pass, the place goes on with its next row.
    async fn or_let_go(&mut self, step: Result<Step, StoreError>) -> Result<Step, StoreError> {
        match step {
            Err(error) if error.is_permanent() => {
                self.hopeless += 1;
                if self.hopeless < MOST_TRIES {
                    return Ok(Step::Next);
                }
                self.hopeless = 0;
                Ok(self.let_go_of_next(&error).await)
            }
            step => {
                self.hopeless = 0;
                step
            }
        }
    }

    /// Lets go of the row at the front of the queue.
    async fn let_go_of_next(&self, error: &StoreError) -> Step {
        let (place, left_alone) = (self.place.clone(), self.inner.left_alone.clone());
        let finishing = self.finishing;
        let next = self
            .inner
            .db
            .read(move |connection| outbox::next_id(connection, &place, &left_alone, finishing))
            .await;
        match next {
            Ok(Some(id)) => {
                self.let_go(id, Known::NotSent, error).await;
                Step::Done
            }
            Ok(None) => Step::Done,
            Err(unread) => {
                tracing::error!(session = %self.place, "nothing more is sent here until the next start: {unread}");
                Step::Leave
            }
        }
    }

    /// Marks a row as failed, with the trouble of the store as its reason. A row that cannot even be
    /// marked is left alone until the next start.
    async fn let_go(&self, id: i64, known: Known, error: &StoreError) {
        tracing::error!(session = %self.place, outbox.id = id, "{}: {error}", known.told());
        // Before the write, so the row is not sent while the store is full.
        self.inner.left_alone.insert(id);
        // A damaged file is no fault of the row.
        if error.remedy() == Remedy::Mend {
            return;
        }
        let delivery = Delivery {
            inner: self.inner.clone(),
        };
        let all = Arc::new((
            delivery.clone(),
            self.place.clone(),
            format!("{}: {error}", known.told()),
        ));
        let write = || {
            let all = all.clone();
            move |tx: &Transaction<'_>| write_failed(tx, &all.0, &all.1, (id, known), &all.2)
        };
        let stop = &self.inner.stop;
        match self.inner.db.write_patiently(stop, OF_CLAIMS, write).await {
            Ok(told) => {
                self.inner.left_alone.remove(&id);
                told.iter()
                    .for_each(|(owner, rows)| delivery.submit(owner, *rows));
            }
            Err(error) => {
                tracing::error!(session = %self.place, outbox.id = id, "the row is left alone until the next start: {error}");
            }
        }
    }

    async fn pause(&mut self, step: Result<Step, StoreError>) {
        match step {
            Ok(Step::Done | Step::Next | Step::Leave) => {}
            Ok(Step::Wait { id, wait }) => {
                sleep(wait).await;
                self.waited_for = Some(id);
            }
            Ok(Step::BackOff) => match self.outlet.channel.health() {
                Some(health) => health.pause(&mut self.backoff).await,
                None => sleep(self.backoff.next().at_most).await,
            },
            Err(error) => {
                tracing::error!(session = %self.place, "sending waits for the store: {error}");
                sleep(self.store_backoff.next().at_most).await;
            }
        }
    }

    async fn step(&mut self) -> Result<Step, StoreError> {
        let pace = self
            .outlet
            .channel
            .abilities()
            .pace(&Destination::stored(self.place.clone()));
        let stop = self.inner.stop.clone();
        let in_flight = tokio::select! {
            may = self.may_send(pace) => may?,
            // Only waits end with the process; a call in progress is never cut.
            () = stop.cancelled() => return Ok(Step::Next),
        };
        let health = self.outlet.channel.health();
        let knows = Knows {
            waited_for: self.waited_for,
            platform_answers: health.is_none_or(Health::answers),
            finishing: self.finishing,
            keeps_stale: false,
        };
        let (key, left_alone) = (self.place.clone(), self.inner.left_alone.clone());
        let mut next = self
            .inner
            .db
            .write_as(OF_CLAIMS, move |tx| {
                outbox::claim(tx, &key, &left_alone, knows, now_ms())
            })
            .await?;
        if matches!(next, Next::Stale) {
            next = self.merge_stale(knows).await?;
        }
        if let Next::Claimed(row) = next {
            return self.send(Begun { row, in_flight }).await;
        }
        // Other places may send while this place waits.
        drop(in_flight);
        Ok(match next {
            Next::Wait { id, wait } => Step::Wait { id, wait },
            Next::LastTry if !self.platform_answers().await => Step::BackOff,
            Next::Claimed(_) | Next::LastTry | Next::Stale => Step::Next,
            Next::Nothing => Step::Done,
        })
    }

    /// Sends one line in the place of replies to commands that waited for too long.
    async fn merge_stale(&self, knows: Knows) -> Result<Next, StoreError> {
        let delivery = Delivery {
            inner: self.inner.clone(),
        };
        let to = Destination::stored(self.place.clone());
        let drafts = delivery.draft(&to, Kind::Notice, &Text::plain(REPLIES_DROPPED));
        let line = drafts.into_iter().next().map(|draft| draft.part);
        let (key, left_alone) = (self.place.clone(), self.inner.left_alone.clone());
        let merge = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let gone = match &line {
                Some(line) => outbox::merge_stale(tx, &key, line, knows.finishing, now)?,
                None => 0,
            };
            let knows = Knows {
                keeps_stale: true,
                ..knows
            };
            Ok((gone, outbox::claim(tx, &key, &left_alone, knows, now)?))
        };
        let (gone, next) = self.inner.db.write_as(OF_CLAIMS, merge).await?;
        tracing::warn!(session = %self.place, "{gone} replies to commands were dropped: they waited for too long");
        // The claimed row is still counted.
        self.inner
            .places
            .entry(self.place.clone())
            .and_modify(|left| *left = left.saturating_sub(gone).max(1));
        Ok(next)
    }

    async fn may_send(&mut self, pace: Option<Pace>) -> Result<OwnedSemaphorePermit, StoreError> {
        if let Some(pace) = pace {
            let pacing = &self.outlet.pacing;
            if self.allowed == Allowed::NotYet {
                if !pacing.take_at_once(pace) {
                    self.wait_in_line(pace).await?;
                }
                self.allowed = Allowed::Yes;
            }
            pacing.quiet_over(pace.chat).await;
        }
        Ok(self
            .outlet
            .in_flight
            .clone()
            .acquire_owned()
            .await
            .expect("the semaphore is never closed"))
    }

    /// Waits for the budgets as long as the next row's kind has to. A row of a more important kind
    /// that comes meanwhile goes forward in the line.
    async fn wait_in_line(&self, pace: Pace) -> Result<(), StoreError> {
        let mut known = self.rows();
        let mut kind = self.next_kind().await?;
        loop {
            tokio::select! {
                biased;
                () = self.outlet.pacing.ready(pace, kind) => return Ok(()),
                better = self.better_kind(kind, &mut known) => kind = better?,
            }
        }
    }

    /// `known` is the number of rows at the last look.
    async fn better_kind(&self, than: Kind, known: &mut Option<usize>) -> Result<Kind, StoreError> {
        loop {
            let mut more = std::pin::pin!(self.inner.more_rows.notified());
            more.as_mut().enable();
            let rows = self.rows();
            if than != Kind::Final && rows != *known {
                *known = rows;
                let kind = self.next_kind().await?;
                if kind < than {
                    return Ok(kind);
                }
            }
            more.await;
        }
    }

    fn rows(&self) -> Option<usize> {
        self.inner.places.get(self.place).map(|left| *left)
    }

    async fn next_kind(&self) -> Result<Kind, StoreError> {
        let (key, finishing) = (self.place.clone(), self.finishing);
        let kind = self
            .inner
            .db
            .read(move |connection| outbox::next_kind(connection, &key, finishing))
            .await?;
        Ok(kind.unwrap_or(Kind::Error))
    }

    /// Asks the platform, unless another place has just found out. A single worker asks at a time,
    /// and the others wait for its answer.
    async fn platform_answers(&self) -> bool {
        let Some(health) = self.outlet.channel.health() else {
            return true;
        };
        let asking = &self.outlet.asking;
        let ask = async {
            match asking.try_acquire() {
                Ok(_asking) => health.answers() || self.outlet.channel.is_reachable().await,
                Err(_) => asking.acquire().await.is_ok() && health.answers(),
            }
        };
        tokio::select! {
            answers = ask => answers,
            () = self.inner.stop.cancelled() => false,
        }
    }

    async fn send(&mut self, Begun { row, in_flight }: Begun) -> Result<Step, StoreError> {
        self.allowed = Allowed::NotYet;
        self.begin(&row);
        // A panic would end the worker but keep the place's entry, so no new worker would ever
        // start.
        let called = AssertUnwindSafe(call(self.inner, &self.outlet, &row))
            .catch_unwind()
            .await;
        let outcome = called.unwrap_or_else(|_| Err(SendError::Refused(BROKE.into())));
        if let Err(SendError::RetryAfter(wait)) = &outcome {
            self.outlet.quiet_for(&row.to, *wait);
        }
        let (moved, facts) = (moved(self.place, &outcome), self.facts(&row));
        let verdict = verdict::judge(outcome, &facts);
        self.report(&row, &verdict).await;
        let step = step_after(&row, &verdict);
        let is_stuck = match &verdict {
            Verdict::Again(again) => again.may_be_stuck(&facts).then(|| again.error.clone()),
            _ => None,
        };
        let (id, inbox_id, known) = (row.id, row.inbox_id, Known::from(&verdict));
        if matches!(step, Step::Done) {
            self.finishing = row.inbox_id;
        }
        let settled = self.settle(row, verdict, facts.tried).await;
        drop(in_flight);
        match settled {
            // The call was made, and another try would make it again.
            Err(error) if error.is_permanent() => {
                self.let_go(id, known, &error).await;
                return Ok(Step::Done);
            }
            settled => settled?,
        }
        if let Some(moved) = moved {
            tell_moved(self.inner, moved).await;
        }
        match is_stuck {
            Some(error) if self.is_to_blame().await => {
                self.inner.was_given_up(inbox_id);
                let span = self.span(inbox_id).await;
                self.set_aside(id, error).instrument(span).await
            }
            _ => Ok(step),
        }
    }

    /// Whether this row alone fails. An outage may have ended right after the failure, so the row
    /// is tried once more before being blamed.
    async fn is_to_blame(&mut self) -> bool {
        let platform_answers = self.platform_answers().await;
        let was_suspect = self
            .head
            .as_mut()
            .map(|head| std::mem::replace(&mut head.is_suspect, platform_answers));
        platform_answers && was_suspect == Some(true)
    }

    fn begin(&mut self, row: &ClaimedRow) {
        if self.head.as_ref().is_none_or(|head| head.id != row.id) {
            let now = Instant::now();
            self.head = Some(Head {
                id: row.id,
                first_call: (row.attempts == 0).then_some(now),
                counted: now,
                is_suspect: false,
            });
        }
    }

    fn facts(&self, row: &ClaimedRow) -> Facts {
        let head = self.head.as_ref();
        // Rows of an earlier process have no `first_call`, so the clock tells their age. A row from
        // the future counts as too old for the platform to detect a repetition.
        let by_the_clock = || {
            u64::try_from(now_ms() - row.created_at).map_or(Duration::MAX, Duration::from_millis)
        };
        let since_first_call = head
            .and_then(|head| head.first_call)
            .map_or_else(by_the_clock, |at| at.elapsed());
        Facts {
            is_change: row.target.is_some(),
            is_told_apart: since_first_call < self.outlet.channel.tells_repeats_for(&row.part),
            was_repeated: row.repeated,
            is_first_call: row.attempts == 0,
            tried: row.tried + head.map(|head| head.counted.elapsed()).unwrap_or_default(),
        }
    }

    /// Lines about an agent's answer carry the agent.
    async fn report(&self, row: &ClaimedRow, verdict: &Verdict) {
        match verdict {
            Verdict::Sent(_) => return self.inner.was_sent(row.inbox_id),
            Verdict::SendInstead => return,
            Verdict::PlaceLost(_) | Verdict::GivenUp { .. } => {
                self.inner.was_given_up(row.inbox_id);
            }
            Verdict::Again(_) => {}
        }
        let span = self.span(row.inbox_id).await;
        span.in_scope(|| self.log(row, verdict));
    }

    /// What the log says about the answer to a message.
    async fn span(&self, inbox_id: Option<i64>) -> tracing::Span {
        let Some(id) = inbox_id else {
            return tracing::Span::none();
        };
        let read = move |connection: &rusqlite::Connection| outbox::agent_behind(connection, id);
        let agent = self.inner.db.read(read).await.ok().flatten();
        tracing::error_span!("send", agent.id = agent, inbox.id = id)
    }

    fn log(&self, row: &ClaimedRow, verdict: &Verdict) {
        let (place, id) = (self.place, row.id);
        match verdict {
            Verdict::Sent(_) | Verdict::SendInstead => {}
            Verdict::Again(Again {
                pause: Pause::Asked(wait),
                ..
            }) => {
                tracing::warn!(session = %place, "the platform asks to wait {} s", wait.as_secs());
            }
            Verdict::Again(Again {
                error,
                repeated: true,
                ..
            }) if !row.repeated => {
                tracing::warn!(session = %place, outbox.id = id, "no answer to a send, repeating it once: {error}");
            }
            Verdict::Again(Again { error, .. }) => {
                let wait = self.backoff.peek().as_secs();
                tracing::warn!(session = %place, outbox.id = id, "not sent, trying again in {wait} s: {error}");
            }
            Verdict::PlaceLost(reason) => {
                tracing::warn!(session = %place, outbox.id = id, "undelivered: {reason}");
            }
            Verdict::GivenUp { error, .. } => {
                tracing::error!(session = %place, outbox.id = id, "undelivered: {error}");
            }
        }
    }

    /// Stores the verdict, however long the write takes: a row left marked as being sent would go
    /// out again.
    async fn settle(
        &mut self,
        row: ClaimedRow,
        verdict: Verdict,
        tried: Duration,
    ) -> Result<(), StoreError> {
        let (inner, outlet, id) = (self.inner, &self.outlet, row.id);
        let (verdict, delivery) = (
            Arc::new(verdict),
            Delivery {
                inner: inner.clone(),
            },
        );
        let (platform, chat) = (
            outlet.channel.abilities().platform,
            outlet
                .channel
                .abilities()
                .pace(&row.to)
                .map(|pace| pace.chat),
        );
        let write = || {
            let (verdict, delivery, to) = (verdict.clone(), delivery.clone(), row.to.clone());
            move |tx: &Transaction<'_>| {
                let now = now_ms();
                match verdict.as_ref() {
                    Verdict::Sent(message) => outbox::sent(tx, id, message, now)?,
                    Verdict::Again(again) => {
                        outbox::again(tx, id, again, tried, now)?;
                        if let (Pause::Asked(wait), Some(chat)) = (again.pause, chat) {
                            retry_after::note(tx, platform, chat, wait, now)?;
                        }
                    }
                    Verdict::SendInstead => outbox::send_instead(tx, id)?,
                    Verdict::GivenUp { error, rest } => outbox::given_up(tx, id, error, *rest)?,
                    Verdict::PlaceLost(error) => {
                        return owner_notices::give_up(tx, &delivery, &to, id, error);
                    }
                }
                Ok(Vec::new())
            }
        };
        let told = inner.db.write_urgently(&inner.stop, write).await?;
        if let Some(head) = &mut self.head {
            head.counted = Instant::now();
        }
        told.iter()
            .for_each(|(owner, rows)| delivery.submit(owner, *rows));
        if let (Verdict::Sent(_), Some(stored)) = (verdict.as_ref(), &row.file) {
            remove_copy(&inner.outgoing.join(stored)).await;
        }
        Ok(())
    }

    /// Sets aside a row with failures of its own, so later rows go on.
    async fn set_aside(&self, id: i64, error: String) -> Result<Step, StoreError> {
        tracing::error!(session = %self.place, outbox.id = id, "set aside, because it alone cannot be sent: {error}");
        let (delivery, place) = (
            Delivery {
                inner: self.inner.clone(),
            },
            self.place.clone(),
        );
        let give_up = move |tx: &Transaction<'_>| {
            Ok((
                owner_notices::set_aside(tx, &delivery, &place, id, &error)?,
                delivery,
            ))
        };
        let (told, delivery) = self.inner.db.write_as(OF_CLAIMS, give_up).await?;
        told.iter()
            .for_each(|(owner, rows)| delivery.submit(owner, *rows));
        Ok(Step::Done)
    }
}

fn step_after(row: &ClaimedRow, verdict: &Verdict) -> Step {
    match verdict {
        Verdict::Sent(_) | Verdict::GivenUp { .. } | Verdict::PlaceLost(_) => Step::Done,
        Verdict::SendInstead
        | Verdict::Again(Again {
            pause: Pause::None, ..
        }) => Step::Next,
        Verdict::Again(Again {
            pause: Pause::Asked(wait),
            ..
        }) => Step::Wait {
            id: row.id,
            wait: *wait,
        },
        Verdict::Again(Again {
            pause: Pause::BackOff,
            ..
        }) => Step::BackOff,
    }
}

fn moved(place: &SessionKey, outcome: &Result<MessageId, SendError>) -> Option<Moved> {
    match (place.telegram_group(), outcome) {
        (Some(old), Err(SendError::Moved(new))) => Some(Moved { old, new: *new }),
        _ => None,
    }
}

/// Returns once the group's rows have followed and this place has none left, or when the process
/// stops.
async fn tell_moved(inner: &Inner, moved: Moved) {
    let (done, followed) = oneshot::channel();
    if inner.moves.send(MovedAway { moved, done }).await.is_ok() {
        // Errors are logged by the receiver; the next try asks again.
        let _ = followed.await;
    }
}

async fn call(inner: &Inner, outlet: &Outlet, row: &ClaimedRow) -> Result<MessageId, SendError> {
    if let Some(stored) = &row.file {
        let file = serde_json::from_str(&row.part.0)
            .map_err(|error| SendError::Refused(error.to_string()))?;
        return outlet
            .channel
            .send_file(&row.to, &file, &inner.outgoing.join(stored), &row.ticket())
            .await;
    }
    let Some(message) = &row.target else {
        return outlet.channel.send(&row.to, &row.part, &row.ticket()).await;
    };
    let is_removal = row.part.0.is_empty();
    let revision = if is_removal {
        Revision::Remove { message }
    } else {
        Revision::Edit {
            message,
            part: &row.part,
        }
    };
    match outlet.channel.revise(&row.to, revision).await {
        Err(SendError::Gone) if is_removal => Ok(message.clone()),
        revised => revised.map(|()| message.clone()),
    }
}

/// A copy left behind is removed by the next cleaning.
async fn remove_copy(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::debug!("the copy of a file that was sent stays behind: {error}");
    }
}

/// Subtracts a row from the place's count. True when no row is left and the worker must end.
fn finish_one(inner: &Inner, place: &SessionKey) -> bool {
    let Entry::Occupied(mut left) = inner.places.entry(place.clone()) else {
        return true;
    };
    *left.get_mut() = left.get().saturating_sub(1);
    if *left.get() == 0 {
        // Removed under the same lock as in `submit`, so no row is left without a worker.
        left.remove();
        return true;
    }
    false
}
