//! Places where messages were ignored, and why.

use rusqlite::Connection;
use serde::Serialize;

use super::house::House;
use super::named::{Moment, Named};
use crate::access::{NOT_ADDRESSED, NOT_ADDRESSED_TOLD, PLACE_CLOSED, Role, people};
use crate::domain::Platform;
use crate::records::{inbox, sessions};

/// Messages of a place that were ignored for one reason.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ignored {
    pub(crate) place: Named,
    /// Why, at the time.
    pub(crate) reason: String,
    pub(crate) messages: i64,
    pub(crate) last_at: Moment,
    /// How the place is today.
    pub(crate) now: Now,
    /// The agent of an open place.
    pub(crate) agent: Option<Named>,
}

/// Whether an agent answers in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Now {
    Open,
    Closed,
    /// Rules about a server, a category or a tag need a message to decide.
    Depends,
}

/// The latest first. People who were let in since are left out: their first message was answered
/// then.
pub(crate) fn list(
    connection: &Connection,
    house: &House,
    platform: Option<Platform>,
    since: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Ignored>> {
    let mut listed: Vec<Ignored> = Vec::new();
    for row in inbox::ignored(connection, since)? {
        let is_wanted = platform.is_none_or(|platform| row.place.platform() == Some(platform));
        if !is_wanted || was_let_in(connection, house, &row)? {
            continue;
        }
        let (place, reason) = (house.names.place(&row.place), in_words(&row.reason));
        let is_same = |known: &&mut Ignored| known.place.id == place.id && known.reason == reason;
        if let Some(known) = listed.iter_mut().find(is_same) {
            known.messages += row.messages;
        } else if listed.len() < limit {
            let (now, agent) = today(connection, house, &row)?;
            listed.push(Ignored {
                place,
                reason: reason.to_owned(),
                messages: row.messages,
                last_at: Moment(row.last_at),
                now,
                agent,
            });
        }
    }
    Ok(listed)
}

fn was_let_in(
    connection: &Connection,
    house: &House,
    row: &inbox::Ignored,
) -> rusqlite::Result<bool> {
    let is_guests = matches!(
        row.reason.as_str(),
        inbox::NEW_GUEST | inbox::WAITING_GUEST | inbox::GUEST_TURNED_AWAY
    );
    let Some(person) = row.place.only_person().filter(|_| is_guests) else {
        return Ok(false);
    };
    let standing = people::standing(connection, &house.config.access, &person)?;
    Ok(standing.role() > Role::Guest)
}

fn today(
    connection: &Connection,
    house: &House,
    row: &inbox::Ignored,
) -> rusqlite::Result<(Now, Option<Named>)> {
    let id = sessions::of(connection, &row.place)?.map(|place| place.id);
    let holder = house.holder_at(connection, &row.place, id)?;
    Ok(match (holder.is_sure, holder.silence) {
        (false, _) => (Now::Depends, None),
        (true, Some(_)) => (Now::Closed, None),
        (true, None) => (Now::Open, Some(house.agent(&holder.agent))),
    })
}

/// The reason in the words of the console. Several outcomes have the same cause.
fn in_words(outcome: &str) -> &str {
    match outcome {
        inbox::OBSERVED | NOT_ADDRESSED => NOT_ADDRESSED_TOLD,
        inbox::UNBOUND => PLACE_CLOSED,
        inbox::NEW_GUEST | inbox::WAITING_GUEST => "waits to be let in",
        inbox::GUEST_TURNED_AWAY => "was turned away",
        other => other,
    }
}
