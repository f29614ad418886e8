//! Finds messages of people with fewer rights than the owner of a turn that an earlier process began.
//! The turn leaves these messages out when resumed after a restart.

use std::collections::HashSet;

use rusqlite::Connection;

use super::transcript;
use crate::access::{Role, people};
use crate::config::Access;
use crate::domain::{AgentId, SessionKey};

/// A turn that an earlier process began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BegunTurn {
    /// The newest row of the transcript when the turn began.
    pub(crate) read_upto: i64,
    pub(crate) role: Role,
}

/// Ids of messages written since the turn began by people of lower role, and of the answers to
/// them. The turn's tools run with its owner's rights, so these messages must not influence them.
pub(crate) fn since_begun(
    connection: &Connection,
    access: &Access,
    place: &SessionKey,
    agent: &AgentId,
    turn: BegunTurn,
) -> rusqlite::Result<HashSet<i64>> {
    let since = transcript::since(connection, place, turn.read_upto)?;
    let (mut unheard, mut turns) = (HashSet::new(), HashSet::new());
    for written in &since {
        let Some(person) = &written.person else {
            continue;
        };
        let role = people::standing(connection, access, person)?.with(agent);
        if role < turn.role {
            unheard.insert(written.id);
            turns.extend(written.inbox_id);
        }
    }
    // An answer to several people is left out if any of them has a lower role.
    let answers = since
        .iter()
        .filter(|written| written.inbox_id.is_some_and(|id| turns.contains(&id)));
    unheard.extend(answers.map(|written| written.id));
    Ok(unheard)
}
