//! Finds the messages that a turn of an earlier process leaves out when it goes on.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::transcript;
use crate::access::{Role, people};
use crate::config::Access;
use crate::domain::{AgentId, SessionKey};
use crate::routing::places;

/// A turn that an earlier process began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BegunTurn {
    pub(crate) inbox_id: i64,
    /// The newest row of the transcript when the turn began.
    pub(crate) read_upto: i64,
    pub(crate) role: Role,
}

/// Ids of messages written since the turn began by people of lower role, and of the answers to
/// them. The turn's tools run with its owner's rights, so these messages must not influence them.
pub(crate) fn outranked(
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

/// Ids of the questions written since the turn began whose own turns are still open. They are answered
/// there.
pub(crate) fn questions_of_others(
    connection: &Connection,
    place: &SessionKey,
    turn: BegunTurn,
) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection
        .prepare_cached("SELECT inbox_id FROM open_turns WHERE place_id = ?1 AND inbox_id <> ?2")?;
    let bound = params![places::id(connection, place)?, turn.inbox_id];
    let others = statement.query_map(bound, |row| row.get(0))?;
    let others = others.collect::<rusqlite::Result<HashSet<i64>>>()?;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let since = transcript::since(connection, place, turn.read_upto)?;
    let of_others = since
        .into_iter()
        .filter(|written| written.inbox_id.is_some_and(|id| others.contains(&id)));
    Ok(of_others.map(|written| written.id).collect())
}
