//! Closes a message that the store cannot carry through: the row says why, and people and the log
//! get the same reference. All other messages go on.

use std::sync::Arc;

use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use super::job_turns::{destination, tells_failures};
use super::question;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Source};
use crate::delivery::{Delivery, Kind};
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::journal;
use crate::storage::{Db, Durability, Remedy, StoreError, part};

/// Gives up messages. Cheap to clone.
#[derive(Clone)]
pub(crate) struct GivingUp {
    pub(super) db: Db,
    pub(super) delivery: Delivery,
}

/// Whether people read about a message that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    InPlace,
    /// The message was not for the bot, or its writer gets no answer anyway.
    InLogOnly,
}

/// The result of closing a message.
struct Closed {
    /// Rows to send.
    count: usize,
    /// Why a row stays open, or why people were not told.
    troubles: Vec<StoreError>,
}

impl GivingUp {
    /// Returns whether or not the rows could be closed: a row that stays open is taken up by the
    /// next start, and costs only itself again.
    pub(crate) async fn close(
        &self,
        accepted: &Accepted,
        error: &StoreError,
        told: Told,
        stop: &CancellationToken,
    ) {
        let (reference, place) = (accepted.id, &accepted.inbound.origin.key);
        if error.remedy() == Remedy::Mend {
            tracing::error!(session = %place, inbox.id = reference, "a message is left to the next start (ref {reference}): {error}");
            return;
        }
        tracing::error!(session = %place, inbox.id = reference, "a message was given up (ref {reference}): {error}");
        let rows = match told {
            Told::InPlace => self.draft(accepted),
            Told::InLogOnly => Vec::new(),
        };
        let all = Arc::new((accepted.clone(), outcome(reference, error), rows));
        let write = || {
            let all = all.clone();
            move |tx: &Transaction<'_>| write(tx, &all.0, &all.1, &all.2, now_ms())
        };
        let written = self
            .db
            .write_patiently(stop, Durability::PowerCut, write)
            .await;
        let Closed { count, troubles } = written.unwrap_or_else(|error| Closed {
            count: 0,
            troubles: vec![error],
        });
        for trouble in troubles {
            tracing::error!(session = %place, inbox.id = reference, "not all of that could be written (ref {reference}): {trouble}");
        }
        self.delivery.submit(place, count);
    }

    fn draft(&self, accepted: &Accepted) -> Vec<outbox::Draft> {
        let to = destination(accepted);
        if to.place().is_internal() || !tells_failures(accepted) {
            return Vec::new();
        }
        let (text, question) = (broken(accepted.id), question::to_quote(accepted, false));
        let text = Text {
            answers: question.as_ref(),
            ..Text::plain(&text)
        };
        self.delivery.draft(&to, Kind::Error, &text)
    }
}

/// Each part by itself, because the statement that fails may be among them.
fn write(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    outcome: &str,
    rows: &[outbox::Draft],
    now: i64,
) -> rusqlite::Result<Closed> {
    let mut troubles = Vec::new();
    let ids: Vec<i64> = accepted.all().map(|accepted| accepted.id).collect();
    let all = part(tx, || journal::with_members(tx, &ids))?.unwrap_or_else(|_| ids.clone());
    for id in all {
        let closed = part(tx, || inbox::close(tx, id, Closing::Failed, outcome, now))?;
        troubles.extend(closed.err());
    }
    troubles.extend(part(tx, || journal::forget(tx, accepted.id, now))?.err());
    let count = match part(tx, || {
        outbox::insert_answer(tx, rows, accepted.id, None, now)
    })? {
        Ok(count) => count,
        // Without the preview, whose message is then left behind.
        Err(_) => {
            let source = Source::of(Some(accepted.id));
            let told = part(tx, || outbox::insert(tx, rows, source, now))?;
            let count = if told.is_ok() { rows.len() } else { 0 };
            troubles.extend(told.err());
            count
        }
    };
    Ok(Closed { count, troubles })
}

/// The outcome of a row that was given up, for the operator.
pub(crate) fn outcome(reference: i64, error: &StoreError) -> String {
    format!("ref {reference}: {error}")
}

/// Tells people that a message was given up.
pub(crate) fn broken(reference: impl std::fmt::Display) -> String {
    format!(
        "Something broke with this message (ref {reference}), so it gets no answer. \
         Please send it again; if that breaks too, tell the operator the reference."
    )
}
