//! People who may have written to the bot in private while the gateway was off.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::access::people;
use crate::channels::discord::KnownPeople;
use crate::config::{Access, Dms};
use crate::domain::{DiscordId, PersonId, SessionKey};
use crate::home::Snapshots;
use crate::records::transcript;
use crate::storage::{Db, StoreError};

/// Limit for each kind of people.
const MOST: u32 = 20;

/// Owners, members, and where private chats are open to all, people known from a server.
pub(super) fn on_discord(snapshots: &Snapshots, db: &Db) -> KnownPeople {
    let (snapshots, db) = (snapshots.clone(), db.clone());
    Arc::new(move || {
        let (snapshot, db) = (snapshots.current(), db.clone());
        async move {
            let found = find(&snapshot.config.access, &db).await;
            found
                .inspect_err(|error| {
                    tracing::warn!("private chats on Discord are not looked up: {error}");
                })
                .unwrap_or_default()
        }
        .boxed()
    })
}

async fn find(access: &Access, db: &Db) -> Result<Vec<DiscordId>, StoreError> {
    let (owners, dms) = (access.owners.clone(), access.dms);
    let look = move |connection: &rusqlite::Connection| {
        let paired = people::paired(connection, "discord", MOST)?;
        let members = if dms == Dms::Open {
            transcript::members(connection, "discord:channel", MOST)?
        } else {
            Vec::new()
        };
        let people = owners
            .into_iter()
            .chain(paired)
            .filter_map(on_their_own)
            .chain(members.into_iter().filter_map(member));
        let mut known = HashSet::new();
        Ok(people.filter(|person| known.insert(*person)).collect())
    };
    db.read(look).await
}

fn on_their_own(person: PersonId) -> Option<DiscordId> {
    if let PersonId::Discord(person) = person {
        Some(person)
    } else {
        None
    }
}

fn member(place: SessionKey) -> Option<DiscordId> {
    if let SessionKey::DiscordChannel { member, .. } = place {
        member
    } else {
        None
    }
}
