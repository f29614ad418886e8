//! Whose words have no say in a task that was put aside and is gone on with by another process.

use std::collections::HashSet;

use rusqlite::Connection;

use super::transcript;
use crate::access::{Standing, people};
use crate::config::Access;
use crate::domain::SessionKey;

/// A task that others may have talked into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PutAside {
    pub(crate) begun_at: i64,
    /// How well those who gave it are known.
    pub(crate) standing: Standing,
}

/// The rows of what was said since by whoever may have less done than those who gave the task, to agents or to others, and of what
/// was answered to it: what its tools may do is not for them.
pub(crate) fn since_begun(
    connection: &Connection,
    access: &Access,
    place: &SessionKey,
    task: PutAside,
) -> rusqlite::Result<HashSet<i64>> {
    let since = transcript::since(connection, place, task.begun_at)?;
    let (mut unheard, mut times) = (HashSet::new(), HashSet::new());
    for written in &since {
        let Some(person) = &written.person else { continue };
        let standing = Standing::of(access, person, people::is_paired(connection, person)?);
        if standing < task.standing {
            unheard.insert(written.id);
            times.insert(written.created_at);
        }
    }
    // A question and its answer are written at the same time, or else the answer says whose it is.
    let answers = since.iter().filter(|written| written.person.is_none() && times.contains(&written.created_at));
    unheard.extend(answers.map(|written| written.id));
    Ok(unheard)
}
