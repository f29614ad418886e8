//! Messages deleted by people: their waiting rows are closed, and stored words are blanked.
//!
//! A transaction changes the rows first, and then the lanes follow. A turn ending in between finds
//! its rows closed, and writes no words of deleted messages.

use rusqlite::Transaction;

use super::{inbox, journal, transcript};
use crate::domain::{MessageId, Platform};

/// Returns the closed inbox rows, for `Sessions::withdraw`.
pub(crate) fn delete_messages(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
    now: i64,
) -> rusqlite::Result<Vec<i64>> {
    let deleted = inbox::delete(tx, platform, messages, now)?;
    deleted
        .iter()
        .try_for_each(|(id, inbound)| journal::blank(tx, *id, &inbound.text))?;
    transcript::blank(tx, platform, messages, now)?;
    Ok(deleted.into_iter().map(|(id, _)| id).collect())
}
