//! Messages that could not be delivered: sent again, or dropped.

use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::{Operations, Refusal};
use crate::clock::now_ms;
use crate::delivery::undelivered::{self, Undelivered, When, Which};
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
    let is_any = matches!(which, Which::All);
    let (by, when) = (
        actor.clone(),
        match operations.live {
            Some(_) => When::Now,
            None => When::AtNextStart,
        },
    );
    let write = move |tx: &Transaction<'_>| {
        let rows = undelivered::list(tx, &which)?;
        // Where delivery is off, messages are kept until it is switched on again.
        let (kept, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_kept);
        resend(tx, &by, &rows, when, now_ms())?;
        Ok((rows, kept.len()))
    };
    let (rows, kept) = operations.db.write(write).await?;
    if rows.is_empty() && kept > 0 {
        return Err(all_kept(kept));
    }
    if rows.is_empty() {
        return Err(nothing_like_that(is_any));
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

/// Puts messages back into the outbox.
pub(crate) fn resend(
    tx: &Transaction<'_>,
    by: &Actor,
    rows: &[Undelivered],
    when: When,
    now: i64,
) -> rusqlite::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    undelivered::retry(tx, rows, when, now)?;
    let change = Change::new(Action::Retry).about(counted(rows.len()));
    audit::note(tx, by, &change, now)
}

/// Deletes messages for good, and tells how many.
pub(super) async fn drop_for_good(
    operations: &Operations,
    actor: &Actor,
    which: Which,
) -> Result<usize, Refusal> {
    let (by, is_any) = (actor.clone(), matches!(which, Which::All));
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
        0 => Err(nothing_like_that(is_any)),
        count => Ok(count),
    }
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

/// Messages of places where delivery is off.
fn all_kept(kept: usize) -> Refusal {
    let are = if kept == 1 { "is" } else { "are" };
    let messages = counted(kept);
    Refusal::failed(format!(
        "{messages} {are} kept, because delivery is off in their place"
    ))
    .hint("`/deliver on` there sends what is kept")
}

/// `is_any`: all messages were meant.
fn nothing_like_that(is_any: bool) -> Refusal {
    if is_any {
        return Refusal::failed("there are no undelivered messages");
    }
    Refusal::failed("no undelivered message has this number or place")
        .hint("`parlor failed` lists undelivered messages")
}
