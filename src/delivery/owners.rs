//! Tells the owners about a topic that takes no answers any more: once, until what lies there is sent again.

use rusqlite::Transaction;

use super::{Delivery, Kind, outbox, undelivered};
use crate::channels::Text;
use crate::clock::now_ms;
use crate::domain::{Destination, SessionKey};
use crate::routing::names;

/// Rows that were written for the owners, by place.
pub(super) type Told = Vec<(SessionKey, usize)>;

impl Delivery {
    /// The text for each owner who can be reached, ready for [`outbox::insert`].
    pub fn draft_for_owners(&self, text: &str) -> Vec<outbox::Draft> {
        let reached = self.inner.owners.iter().filter(|owner| self.reaches(owner.place()));
        reached.flat_map(|owner| self.draft(owner, Kind::Notice, &Text::plain(text))).collect()
    }

    /// Sends what was drafted for owners, once it is committed.
    pub fn submit_drafted(&self, rows: &[outbox::Draft]) {
        rows.iter().for_each(|row| self.submit(row.to.place(), 1));
    }
}

/// Gives up a row whose topic is lost. An owner is told in a private chat without topics, so that this never leads to itself.
pub(super) fn give_up(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    to: &Destination,
    id: i64,
    reason: &str,
) -> rusqlite::Result<Told> {
    outbox::failed(tx, id, reason)?;
    if !undelivered::is_first(tx, id, to.place(), reason)? {
        return Ok(Vec::new());
    }
    let name = names::load(tx, to.place())?;
    let rows = delivery.draft_for_owners(&lost(to.place(), name.as_deref(), reason));
    outbox::insert(tx, &rows, None, now_ms())?;
    Ok(rows.into_iter().map(|row| (row.to.place().clone(), 1)).collect())
}

fn lost(place: &SessionKey, name: Option<&str>, reason: &str) -> String {
    let called = name.map_or_else(String::new, |name| format!(" (“{name}”)"));
    format!(
        "I could not answer in `{place}`{called}: {reason}. The answer is kept, and so are those that follow. \
         `/retry` there or here sends them again; `parlor failed` lists them."
    )
}
