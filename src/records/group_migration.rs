//! A group that became a supergroup takes everything along: what was said, its pins, what waits and what is to be sent.

use rusqlite::Transaction;

use super::{decisions, inbox, journal, model_overrides, subagents, summaries, transcript};
use crate::delivery::outbox;
use crate::domain::{Moved, SessionKey};
use crate::routing::aliases::{self, Renaming};
use crate::routing::pins;

/// What came of a move.
#[derive(Debug)]
pub(crate) struct Followed {
    /// Nobody had told us before.
    pub(crate) is_news: bool,
    /// Rows that are now to be sent to the new places.
    pub(crate) open: Vec<(SessionKey, usize)>,
}

/// Moves whatever still has the old keys; doing it again does no harm.
pub(crate) fn follow(tx: &Transaction<'_>, moved: Moved) -> rusqlite::Result<Followed> {
    let renaming = Renaming::of(moved);
    let is_news = aliases::insert(tx, moved)?;
    transcript::follow(tx, &renaming)?;
    pins::follow(tx, &renaming)?;
    model_overrides::follow(tx, &renaming)?;
    inbox::follow(tx, &renaming)?;
    summaries::follow(tx, &renaming)?;
    journal::follow(tx, &renaming)?;
    decisions::follow(tx, &renaming)?;
    subagents::follow(tx, &renaming)?;
    let open = outbox::follow(tx, moved, &renaming)?;
    Ok(Followed { is_news, open })
}
