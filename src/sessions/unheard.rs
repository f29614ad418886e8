//! Whose words have no say in a task that was put aside and is gone on with by another process.

use std::collections::HashSet;

use rusqlite::Connection;

use super::transcript::{self, Message};
use crate::access::{Standing, people};
use crate::config::Access;
use crate::domain::SessionKey;

/// A task that others may have talked into.
#[derive(Debug, Clone, Copy)]
pub(super) struct PutAside {
    pub(super) begun_at: i64,
    /// How well those who gave it are known.
    pub(super) standing: Standing,
}

/// Takes out what was said to whoever may have less done than those who gave the task, and what was answered to it: what its tools
/// may do is not for them.
pub(super) fn leave_out(
    connection: &Connection,
    access: &Access,
    place: &SessionKey,
    task: PutAside,
    messages: &mut Vec<Message>,
) -> rusqlite::Result<()> {
    let since = transcript::since(connection, place, task.begun_at)?;
    // A question and its answer are written at the same time.
    let mut times = HashSet::new();
    for written in &since {
        let Some(person) = &written.person else { continue };
        let standing = Standing::of(access, person, people::is_paired(connection, person)?);
        if standing < task.standing {
            times.insert(written.created_at);
        }
    }
    let unheard: HashSet<i64> =
        since.iter().filter(|written| times.contains(&written.created_at)).map(|written| written.id).collect();
    messages.retain(|message| !unheard.contains(&message.id));
    Ok(())
}
