//! Messages deleted by people: their waiting rows are closed, and stored words are blanked.
//!
//! A transaction changes the rows first, and then the lanes follow. A turn ending in between finds
//! its rows closed, and writes no words of deleted messages.

use rusqlite::Transaction;

use super::{inbox, journal, transcript, turn_notes};
use crate::access::people;
use crate::domain::{Inbound, MessageId, Platform};

/// Deleted messages.
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
        .try_for_each(|(id, _)| journal::blank(tx, *id))?;
    let blanked = transcript::blank(tx, platform, messages, now)?;
    let dropped = drop_kept(tx, platform, messages)?;
    let had_words = blanked > 0 || dropped > 0 || !deleted.is_empty();
    if had_words {
        turn_notes::not_before(tx, now)?;
    }
    Ok(Gone {
        had_words,
        rows: deleted.into_iter().map(|(id, _)| id).collect(),
    })
}

/// Drops kept first messages of guests. Returns how many.
fn drop_kept(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
) -> rusqlite::Result<usize> {
    let mut dropped = 0;
    for (person, kept) in people::first_messages(tx)? {
        let kept = serde_json::from_str::<Inbound>(&kept).ok();
        let is_deleted = kept.is_some_and(|kept| {
            kept.origin.key.platform() == Some(platform) && messages.contains(&kept.message)
        });
        if is_deleted {
            people::drop_first(tx, &person)?;
            dropped += 1;
        }
    }
    Ok(dropped)
}
