//! Messages deleted by people: their waiting rows are closed, and stored words are blanked.
//!
//! A transaction changes the rows first, and then the lanes follow. A turn ending in between finds
//! its rows closed, and writes no words of deleted messages.

use rusqlite::Transaction;

use super::{inbox, journal, transcript};
use crate::domain::{MessageId, Platform};

/// Messages that are gone.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// The closed inbox rows, for `Sessions::withdraw`.
    pub(crate) rows: Vec<i64>,
    /// Whether words left the database.
    pub(crate) had_words: bool,
}

pub(crate) fn delete_messages(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
    now: i64,
) -> rusqlite::Result<Gone> {
    let deleted = inbox::delete(tx, platform, messages, now)?;
    deleted
        .iter()
        .try_for_each(|(id, inbound)| journal::blank(tx, *id, &inbound.text))?;
    let blanked = transcript::blank(tx, platform, messages, now)?;
    Ok(Gone {
        had_words: blanked > 0 || !deleted.is_empty(),
        rows: deleted.into_iter().map(|(id, _)| id).collect(),
    })
}
