//! Events of topics themselves: made with an agent's name, or opened again.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use rusqlite::Transaction;

use super::GatewayState;
use crate::access::{Role, Standing, people};
use crate::config::{Access, Dms, Groups};
use crate::delivery::undelivered::{self, When, Which};
use crate::domain::{Arrival, Origin, PersonId, SessionKey, TelegramUserId};
use crate::home::Snapshot;
use crate::routing::{Visit, names};
use crate::storage::StoreError;

/// Rows to send, by place.
pub(super) type Rows = BTreeMap<SessionKey, usize>;

/// With `auto_bind`, a topic named like an agent counts as the `/agent` command of the topic's
/// maker, and passes through access and locks like any command.
pub(super) fn bind_by_name(snapshot: &Snapshot, arrivals: Vec<Arrival>) -> Vec<Arrival> {
    let config = |place: &SessionKey| snapshot.config.platform(place.platform()?);
    let auto_bind = |place: &SessionKey| config(place).is_some_and(|config| config.auto_bind);
    let bind = |arrival| match arrival {
        Arrival::TopicMade(mut made) if auto_bind(&made.origin.key) => {
            match snapshot.registry.find(&made.text) {
                Some(agent) => {
                    made.text = format!("/agent {}", agent.id);
                    Arrival::Message(made)
                }
                None => Arrival::TopicMade(made),
            }
        }
        other => other,
    };
    arrivals.into_iter().map(bind).collect()
}

/// The places whose names are kept. A closed place leaves no name behind.
pub(super) struct OpenPlaces {
    open: HashSet<SessionKey>,
}

/// Looks only at places that come with a name.
pub(super) async fn open_places(
    state: &GatewayState,
    snapshot: &Snapshot,
    arrivals: &[Arrival],
) -> Result<OpenPlaces, StoreError> {
    let mut open = HashSet::new();
    for origin in arrivals.iter().filter_map(named) {
        if is_open(state, snapshot, &origin).await? {
            open.insert(origin.into_owned().key);
        }
    }
    Ok(OpenPlaces { open })
}

/// The origin of an arrival with a name.
fn named(arrival: &Arrival) -> Option<Cow<'_, Origin>> {
    match arrival {
        Arrival::Message(inbound)
            if inbound.origin.name.is_some() || inbound.origin.group.is_some() =>
        {
            Some(Cow::Borrowed(&inbound.origin))
        }
        Arrival::TopicMade(made) => Some(Cow::Borrowed(&made.origin)),
        Arrival::Named { place, name } => {
            // Nobody: the event does not tell the person in a group.
            let person = person_of(place).unwrap_or(PersonId::Telegram(TelegramUserId(0)));
            let mut origin = Origin::new(place.clone(), person);
            origin.name = Some(name.clone());
            Some(Cow::Owned(origin))
        }
        _ => None,
    }
}

/// The person of a private chat.
fn person_of(place: &SessionKey) -> Option<PersonId> {
    match place {
        SessionKey::TelegramDm { user, .. } => Some(PersonId::Telegram(*user)),
        SessionKey::DiscordDm { user } => Some(PersonId::Discord(*user)),
        _ => None,
    }
}

async fn is_open(
    state: &GatewayState,
    snapshot: &Snapshot,
    origin: &Origin,
) -> Result<bool, StoreError> {
    let access = &snapshot.config.access;
    let standing = Standing::of(access, &origin.person, false);
    if origin.key.is_private() {
        return Ok(access.dms == Dms::Open || standing.highest() > Role::Guest);
    }
    if access.groups == Groups::Open {
        return Ok(true);
    }
    let visit = Visit {
        access,
        origin,
        standing: &standing,
    };
    let resolved = state.router.resolve(&snapshot.table, visit).await?;
    Ok(resolved.route.opens_place)
}

impl OpenPlaces {
    /// Private chats of members are open too. A place with a known name may be renamed: the event
    /// of a new name does not tell all that bindings ask for.
    pub(super) fn may_learn(
        &self,
        tx: &Transaction<'_>,
        access: &Access,
        place: &SessionKey,
    ) -> rusqlite::Result<bool> {
        if self.open.contains(place) {
            return Ok(true);
        }
        match person_of(place) {
            Some(person) => people::is_paired(tx, access.people.ids_of(&person)),
            None => Ok(names::load(tx, place)?.is_some()),
        }
    }
}

/// Puts the failed rows of these topics back into the queue.
pub(super) fn retry(
    tx: &Transaction<'_>,
    reopened: &[SessionKey],
    now: i64,
) -> rusqlite::Result<Rows> {
    let mut retried = Rows::new();
    for place in reopened {
        let rows = undelivered::list(tx, &Which::Place(place.clone()))?;
        undelivered::retry(tx, &rows, When::Now, now)?;
        retried.extend(undelivered::by_place(&rows));
    }
    Ok(retried)
}
