//! Messages that people deleted, and places that are gone: what waits of them is let go of, what is stored loses its words.
//!
//! The rows come first, in one transaction, and then the lanes. A turn whose end is written in between finds its rows closed, and
//! writes no words of deleted messages.

use rusqlite::Transaction;

use super::{Sessions, inbox, journal, lane, runs, transcript};
use crate::domain::{MessageId, Platform, SessionKey};

/// Returns the inbox rows that were closed, for [`Sessions::withdraw`].
pub fn delete_messages(tx: &Transaction<'_>, platform: Platform, messages: &[MessageId], now: i64) -> rusqlite::Result<Vec<i64>> {
    let deleted = inbox::delete(tx, platform, messages, now)?;
    deleted.iter().try_for_each(|(id, inbound)| journal::blank(tx, *id, &inbound.text))?;
    transcript::blank(tx, platform, messages, now)?;
    Ok(deleted.into_iter().map(|(id, _)| id).collect())
}

/// Closes everything that waits in a place and its parts.
pub fn close_place(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    inbox::close_place(tx, place, now)
}

impl Sessions {
    /// Lets go of messages whose rows are closed because they were deleted. A turn that answers nothing else is stopped.
    pub fn withdraw(&self, ids: &[i64]) {
        let stopped = lane::withdraw(&self.inner, ids);
        runs::stop(&self.inner, |_, run| stopped.contains(&run.parent_inbox_id));
    }

    /// Ends everything in a place that is gone, whose rows are closed.
    pub fn close_place(&self, place: &SessionKey) {
        lane::close_place(&self.inner, place);
        runs::stop(&self.inner, |_, run| run.parent.is_in(place));
    }
}
