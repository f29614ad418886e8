//! The facts that every look at sessions needs: config, routing table, and everybody's names.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use super::named::Named;
use super::names::Names;
use crate::access::people;
use crate::agents::agent_rows;
use crate::config::Config;
use crate::domain::{AgentId, AgentUid, DiscordId, Origin, PersonId, SessionKey, TelegramUserId};
use crate::records::sessions::{self, Used};
use crate::routing::aliases::{self, Aliases};
use crate::routing::{self, Resolved, Table, Visit, names as topic_names, pins};
use crate::storage::{Db, StoreError};

/// A home as its operator sees it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) config: Arc<Config>,
    pub(crate) table: Arc<Table>,
    pub(crate) names: Arc<Names>,
    agents: Arc<HashMap<AgentUid, AgentId>>,
    aliases: Arc<Aliases>,
}

impl House {
    pub(crate) async fn load(
        db: &Db,
        config: Arc<Config>,
        table: Arc<Table>,
    ) -> Result<Self, StoreError> {
        let names = Names::load(db, Some(&config)).await?;
        let rows = db.read(agent_rows::load).await?;
        let aliases = Aliases::new(db.read(aliases::load).await?);
        let agents = rows.into_iter().map(|(id, row)| (row.uid, id)).collect();
        Ok(House {
            config,
            table,
            names: Arc::new(names),
            agents: Arc::new(agents),
            aliases: Arc::new(aliases),
        })
    }

    pub(crate) fn agent_of(&self, uid: AgentUid) -> Option<&AgentId> {
        self.agents.get(&uid)
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Named {
        self.names.agent(id)
    }

    /// Who answers in a place, with the settings made there.
    pub(crate) fn holder(&self, connection: &Connection, place: &Used) -> rusqlite::Result<Holder> {
        let mut origin = Origin::new(place.key.clone(), person_of(&place.key));
        self.aliases.follow(&mut origin);
        origin.name = topic_names::load(connection, &place.key)?;
        let standing = people::standing(connection, &self.config.access, &origin.person)?;
        let visit = Visit {
            access: &self.config.access,
            origin: &origin,
            standing: &standing,
        };
        let resolved =
            routing::resolve(&self.table, pins::from_chat(connection, &place.key)?, visit);
        let rule = resolved.route.rule.to_string();
        let is_sure = is_known_by_its_key(&resolved, &place.key);
        let last = match is_sure {
            true => None,
            false => sessions::last_turn(connection, place.id)?,
        };
        let last = last.and_then(|turn| Some((self.agent_of(turn.agent?)?.clone(), turn.route)));
        let last = last.filter(|(agent, _)| self.table.knows(agent));
        let (agent, rule) = last.unwrap_or_else(|| (resolved.route.agent.clone(), rule));
        Ok(Holder {
            agent,
            rule,
            resolved,
            is_sure,
        })
    }
}

/// The agent of a place, and why.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) agent: AgentId,
    /// The deciding rule in words.
    pub(crate) rule: String,
    pub(crate) resolved: Resolved,
    /// The key of the place tells all that the rules ask for.
    pub(crate) is_sure: bool,
}

/// Bindings for a server, a category or a tag need facts that come with each message. Where no
/// stronger rule decides, the last turn tells what they said.
fn is_known_by_its_key(resolved: &Resolved, key: &SessionKey) -> bool {
    let is_in_server = matches!(
        key,
        SessionKey::DiscordChannel { .. } | SessionKey::DiscordThread { .. }
    );
    resolved.pin.is_some() || resolved.route.opens_place || !is_in_server
}

/// The person in the key, else a person without an id, so that no rule for a person matches by
/// chance.
pub(crate) fn person_of(key: &SessionKey) -> PersonId {
    key.only_person().unwrap_or_else(|| match key {
        SessionKey::DiscordThread { .. } | SessionKey::DiscordChannel { .. } => {
            PersonId::Discord(DiscordId(0))
        }
        SessionKey::Local { .. } => crate::channels::local::person(),
        _ => PersonId::Telegram(TelegramUserId(0)),
    })
}
