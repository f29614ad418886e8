//! Rows whose state can never be written: they are marked as failed, so others go on.

use rusqlite::Transaction;

use super::verdict::Verdict;
use super::{Delivery, outbox, owner_notices};
use crate::domain::SessionKey;
use crate::storage::part;

/// The fate of a row whose state cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Sent,
    NotSent,
}

impl From<&Verdict> for Known {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Sent(_) => Known::Sent,
            _ => Known::NotSent,
        }
    }
}

impl Known {
    pub(super) fn told(self) -> &'static str {
        match self {
            Known::Sent => "it was sent, and that could not be stored",
            Known::NotSent => "it was not sent, because its state could not be stored",
        }
    }
}

/// Marks a row as failed, and tells the owners about a message that did not arrive.
pub(super) fn write_failed(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    place: &SessionKey,
    (id, known): (i64, Known),
    reason: &str,
) -> rusqlite::Result<owner_notices::Told> {
    let set_aside = || owner_notices::set_aside(tx, delivery, place, id, reason);
    let told = match known {
        Known::NotSent => part(tx, set_aside)?.ok(),
        Known::Sent => None,
    };
    match told {
        Some(told) => Ok(told),
        None => outbox::failed(tx, id, reason).map(|()| Vec::new()),
    }
}
