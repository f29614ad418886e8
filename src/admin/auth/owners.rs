//! Sign-ins of people from a platform count while the person owns the house.

use rusqlite::Connection;

use crate::access::{Role, people};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::domain::PersonId;
use crate::records::http_keys::Key;

/// Whether a person owns the house now.
pub(in crate::admin) async fn is_owner(
    state: &AdminState,
    person: &PersonId,
) -> Result<bool, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let (config, person) = (snapshot.config.clone(), person.clone());
    let read = move |connection: &Connection| {
        people::standing(connection, &config.access, &person).map(|standing| standing.role())
    };
    Ok(state.operations.db().read(read).await? == Role::Owner)
}

/// Refuses the key of a person who owns the house no longer.
pub(super) async fn still_counts(state: &AdminState, key: &Key) -> Result<(), Problem> {
    let Some(person) = &key.person else {
        return Ok(());
    };
    let is_owner = match person.parse() {
        Ok(person) => is_owner(state, &person).await?,
        Err(_) => false,
    };
    match is_owner {
        true => Ok(()),
        false => Err(Problem::wrong_key()),
    }
}
