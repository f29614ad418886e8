//! Handles inbox rows that wait from before: those of an earlier process, and failed messages asked
//! for again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Notify;

use super::decide::Received;
use super::inbound::{give_up, look_at};
use super::replies;
use super::terminals;
use super::{GatewayState, or_go_on};
use crate::answering::Told;
use crate::delivery::Delivery;
use crate::domain::SessionKey;
use crate::lanes::Arrived;
use crate::records::inbox::{self, Accepted, Closing, Waiting};
use crate::storage::{Db, Next, Patience, StoreError};

/// Rows of an earlier process are taken up in portions of this many.
const PORTION: u16 = 500;

/// Work that an earlier process left, looked up before this process has work of its own. A job that is
/// due at the start would else be taken for a message from before, and be answered twice.
#[derive(Default)]
pub(super) struct Left {
    /// Places with rows to send.
    open: Vec<(SessionKey, usize)>,
    /// The last message from before. Resumed turns put newer rows into lanes by themselves.
    newest: i64,
}

impl Left {
    pub(super) async fn look_up(db: &Db, delivery: &Delivery) -> Result<Self, StoreError> {
        let (open, newest) = tokio::join!(delivery.reopen(), db.read(inbox::newest));
        Ok(Left {
            open: or_go_on("messages that were not sent", open)?,
            newest: or_go_on("messages from before", newest)?,
        })
    }
}

/// Rows that were left alone because their platform is not connected, with their places.
///
/// A config that is saved while the gateway starts may be read without its platforms. Its next reading
/// connects them, and nothing but a new start would come to these rows.
#[derive(Default)]
pub(super) struct PassedOver {
    rows: Mutex<BTreeMap<i64, SessionKey>>,
    connected: Notify,
}

impl PassedOver {
    fn add(&self, id: i64, place: &SessionKey) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.insert(id, place.clone());
    }

    /// A platform was connected. Whoever waits for `changed` looks at the rows again.
    pub(super) fn platform_connected(&self) {
        self.connected.notify_one();
    }

    pub(super) async fn changed(&self) {
        self.connected.notified().await;
    }

    /// The next rows whose platform is connected now, oldest first.
    fn next(&self, delivery: &Delivery) -> Vec<i64> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let is_reached = |(_, place): &(&i64, &SessionKey)| delivery.reaches(place);
        let reached = rows.iter().filter(is_reached).take(PORTION.into());
        let ids: Vec<i64> = reached.map(|(id, _)| *id).collect();
        for id in &ids {
            rows.remove(id);
        }
        ids
    }
}

/// Handles the rows whose platform is connected by now.
pub(super) async fn take_up_passed_over(state: &GatewayState) {
    loop {
        let ids = state.passed_over.next(&state.delivery);
        if ids.is_empty() {
            return;
        }
        tracing::info!(
            "messages that waited for their platform are taken up: {}",
            ids.len()
        );
        again(state, ids).await;
    }
}

/// Resumes sending, then handles the rows of an earlier process, oldest first.
pub(super) async fn take_up(state: &GatewayState, left: Left) {
    let Left { open, newest } = left;
    for (place, rows) in open {
        if state.delivery.reaches(&place) {
            state.delivery.submit(&place, rows);
        }
    }
    let mut after = 0;
    loop {
        let portion = || {
            let read = move |connection: &Connection| {
                inbox::waiting(connection, after, newest, PORTION.into())
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
        match waiting.len() {
            1 => tracing::info!("1 message waits from before"),
            count => tracing::info!("{count} messages wait from before"),
        }
        for row in waiting {
            take_up_row(state, row).await;
        }
    }
}

/// Handles messages once more whose rows wait again. Rows that cannot be read now are taken up by
/// the next start.
pub(super) async fn again(state: &GatewayState, ids: Vec<i64>) {
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

async fn take_up_row(state: &GatewayState, Waiting { id, inbound }: Waiting) {
    match inbound {
        Ok(inbound) if inbound.extras.internal.is_some() => {
            take_up_internal(state, Accepted::new(id, inbound)).await;
        }
        Ok(inbound) if terminals::is_question(&inbound) => {
            let close = || replies::close(state, id, Closing::Done, "nobody waits for the answer");
            insistently(state, "closing a question of before", close).await;
        }
        Ok(inbound) if state.delivery.reaches(&inbound.origin.key) => {
            state.terminals.take_up(&inbound).await;
            let (accepted, guard) = (Accepted::new(id, inbound), state.work.token());
            look_at(state, Received::new(accepted, Arrived::Before, guard)).await;
        }
        Ok(inbound) => state.passed_over.add(id, &inbound.origin.key),
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
        return state.passed_over.add(accepted.id, place);
    }
    let mut patience = Patience::new("a subagent");
    loop {
        let taken = match state.services.sessions.take_up(accepted.clone()).await {
            Ok(Ok(())) => return,
            Ok(Err(_)) => {
                let outcome = "nobody knows what it is about";
                replies::close(state, accepted.id, Closing::Failed, outcome).await
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
