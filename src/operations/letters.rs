//! Messages that could not be delivered: sent again, or dropped.

use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::{Operations, Refusal};
use crate::clock::now_ms;
use crate::delivery::undelivered::{self, When, Which};
use crate::records::audit::{self, Action, Actor, Change};

/// Messages that are sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retried {
    pub(crate) count: usize,
    /// False: at the next start of the gateway.
    pub(crate) at_once: bool,
}

pub(super) async fn retry(
    operations: &Operations,
    actor: &Actor,
    which: Which,
) -> Result<Retried, Refusal> {
    let (by, when) = (
        actor.clone(),
        match operations.live {
            Some(_) => When::Now,
            None => When::AtNextStart,
        },
    );
    let write = move |tx: &Transaction<'_>| {
        let rows = undelivered::list(tx, &which)?;
        undelivered::retry(tx, &rows, when, now_ms())?;
        if !rows.is_empty() {
            let change = Change::new(Action::Retry).about(counted(rows.len()));
            audit::note(tx, &by, &change, now_ms())?;
        }
        Ok(rows)
    };
    let rows = operations.db.write(write).await?;
    if rows.is_empty() {
        return Err(nothing_like_that());
    }
    if let Some(live) = &operations.live {
        undelivered::by_place(&rows)
            .iter()
            .for_each(|(place, rows)| live.delivery.submit(place, *rows));
    }
    Ok(Retried {
        count: rows.len(),
        at_once: operations.live.is_some(),
    })
}

/// Deletes messages for good, and tells how many.
pub(super) async fn drop_for_good(
    operations: &Operations,
    actor: &Actor,
    which: Which,
) -> Result<usize, Refusal> {
    let by = actor.clone();
    let write = move |tx: &Transaction<'_>| {
        let rows = undelivered::list(tx, &which)?;
        undelivered::forget(tx, &rows)?;
        if !rows.is_empty() {
            let change = Change::new(Action::Drop).about(counted(rows.len()));
            audit::note(tx, &by, &change, now_ms())?;
        }
        Ok(rows.len())
    };
    match operations.db.write(write).await? {
        0 => Err(nothing_like_that()),
        count => Ok(count),
    }
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

fn nothing_like_that() -> Refusal {
    Refusal::failed("no undelivered message is meant by this")
        .hint("`parlor failed` lists undelivered messages")
}
