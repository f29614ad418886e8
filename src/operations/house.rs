//! The facts that every look at sessions needs: config, routing table, and everybody's names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::named::Named;
use super::names::Names;
use crate::access::{Standing, people};
use crate::agents::agent_rows;
use crate::answering::{Question, Silence, who_answers};
use crate::channels::discord::levels::{self, Levels};
use crate::config::Config;
use crate::domain::{AgentId, AgentUid, LocalName, Origin, PersonId, SessionKey};
use crate::records::jobs;
use crate::records::sessions::{self, EndedTurn, Used};
use crate::routing::aliases::{self, Aliases};
use crate::routing::places::PlaceId;
use crate::routing::{FromChat, Resolved, Rule, Table, Visit, names as topic_names, pins};
use crate::storage::{Db, StoreError};

pub(crate) use crate::channels::local::person_of;

/// A home as its operator sees it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) config: Arc<Config>,
    pub(crate) table: Arc<Table>,
    pub(crate) names: Arc<Names>,
    agents: Arc<HashMap<AgentUid, AgentId>>,
    aliases: Arc<Aliases>,
    discord: Arc<Levels>,
    /// Jobs that people and agents made.
    jobs: Arc<HashSet<(AgentUid, LocalName)>>,
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
        let discord = db.read(levels::all).await?;
        let jobs = db.read(jobs::all).await?.into_iter();
        let jobs = jobs.filter(|job| job.definition.is_some());
        let jobs = jobs.map(|job| (job.agent, job.name)).collect();
        let agents = rows.into_iter().map(|(id, row)| (row.uid, id)).collect();
        Ok(House {
            config,
            table,
            names: Arc::new(names),
            agents: Arc::new(agents),
            aliases: Arc::new(aliases),
            discord: Arc::new(discord),
            jobs: Arc::new(jobs),
        })
    }

    /// The same house under another config, which has what was granted in chat.
    pub(crate) fn under(&self, config: Arc<Config>, table: Arc<Table>) -> Self {
        House {
            names: Arc::new(self.names.under(&config)),
            config,
            table,
            ..self.clone()
        }
    }

    /// The same with names of further places.
    pub(crate) fn with_places(self, places: Vec<(SessionKey, String)>) -> Self {
        let names = Arc::unwrap_or_clone(self.names).with_places(places);
        House {
            names: Arc::new(names),
            ..self
        }
    }

    pub(crate) fn agent_of(&self, uid: AgentUid) -> Option<&AgentId> {
        self.agents.get(&uid)
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Named {
        self.names.agent(id)
    }

    /// Replaces the id of a group that became a supergroup, and adds the server and category of a
    /// channel where they are known and no message told them.
    pub(crate) fn follow(&self, origin: &mut Origin) {
        self.aliases.follow(origin);
        self.discord.complete(origin);
    }

    /// Who answers in a place, with the settings made there.
    pub(crate) fn holder(&self, connection: &Connection, place: &Used) -> rusqlite::Result<Holder> {
        self.holder_at(connection, &place.key, Some(place.id))
    }

    /// The same for a place that may have no row.
    pub(crate) fn holder_at(
        &self,
        connection: &Connection,
        key: &SessionKey,
        id: Option<PlaceId>,
    ) -> rusqlite::Result<Holder> {
        let access = &self.config.access;
        let facts = Facts {
            name: topic_names::load(connection, key)?,
            standing: people::standing(connection, access, &person_of(key))?,
            from_chat: pins::from_chat(connection, key)?,
        };
        self.judged(key, facts, || match id {
            Some(id) => sessions::last_turn(connection, id),
            None => Ok(None),
        })
    }

    /// The same without a look into the store, for a look at many places.
    pub(crate) fn holder_among(
        &self,
        settings: &Settings,
        key: &SessionKey,
        row: Option<&Used>,
    ) -> rusqlite::Result<Holder> {
        let (access, person) = (&self.config.access, person_of(key));
        let ids = access.people.ids_of(&person);
        let is_paired = ids.iter().any(|id| settings.paired.contains(id));
        let facts = Facts {
            name: row.and_then(|row| row.name.clone()),
            standing: Standing::of(access, &person, is_paired),
            from_chat: row
                .and_then(|row| settings.from_chat.get(&row.id).cloned())
                .unwrap_or_default(),
        };
        let last = || row.and_then(|row| settings.last_turns.get(&row.id).cloned());
        self.judged(key, facts, || Ok(last()))
    }

    /// `last_turn` is asked where the key of the place does not tell enough.
    fn judged(
        &self,
        key: &SessionKey,
        facts: Facts,
        last_turn: impl FnOnce() -> rusqlite::Result<Option<EndedTurn>>,
    ) -> rusqlite::Result<Holder> {
        let mut origin = Origin::new(key.clone(), person_of(key));
        self.follow(&mut origin);
        origin.name = facts.name;
        let visit = Visit {
            access: &self.config.access,
            origin: &origin,
            standing: &facts.standing,
        };
        let question = Question::said_to_the_bot(&self.table, visit, facts.from_chat);
        let answer = who_answers(question);
        let (resolved, silence) = (answer.resolved, answer.silence);
        if let SessionKey::Cron { agent, job } = key {
            return Ok(Holder {
                agent: agent.clone(),
                by: DecidedBy::Own,
                rule: self.in_words(agent, job),
                resolved,
                is_sure: false,
                silence: None,
            });
        }
        let rule = resolved.route.rule.to_string();
        let is_sure = is_known_by_its_key(&resolved, key);
        let last = match is_sure {
            true => None,
            false => last_turn()?,
        };
        let last = last.and_then(|turn| Some((self.agent_of(turn.agent?)?.clone(), turn.route)));
        let last = last.filter(|(agent, _)| self.table.knows(agent));
        let by = match &last {
            // The turn log has the rule of then in words.
            Some((_, route)) if *route != Rule::Default.to_string() => DecidedBy::Inherited,
            Some(_) => DecidedBy::Default,
            None => self.decided_by(&resolved.route.rule, key),
        };
        let (agent, rule) = last.unwrap_or_else(|| (resolved.route.agent.clone(), rule));
        Ok(Holder {
            agent,
            by,
            rule,
            resolved,
            is_sure,
            silence: silence.filter(|silence| is_sure && is_for_everybody(silence)),
        })
    }

    /// What brings turns to the session of a job: `the job tidy`.
    fn in_words(&self, agent: &AgentId, job: &LocalName) -> String {
        let hooks = self.config.hooks.values();
        let mut hooks = hooks.map(|hook| format!("hook-{}", hook.name));
        if hooks.any(|hook| hook == job.to_string()) {
            return format!("the {}", job.to_string().replacen("hook-", "hook ", 1));
        }
        let specs = self.config.agents.iter();
        let written = specs
            .filter(|spec| spec.id == *agent)
            .any(|spec| spec.jobs.iter().any(|spec| spec.name == *job));
        let mut stored = self.jobs.iter();
        let mut is_stored = || {
            stored
                .any(|(uid, name)| name == job && self.agent_of(*uid).is_some_and(|id| id == agent))
        };
        match written || is_stored() {
            true => format!("the job {job}"),
            false => format!("the job {job}, which was removed"),
        }
    }

    fn decided_by(&self, rule: &Rule, key: &SessionKey) -> DecidedBy {
        match rule {
            Rule::Pin { .. } => DecidedBy::Pin,
            Rule::Binding { index, .. } => {
                let binding = self.config.bindings.get(*index);
                let is_own = binding.is_some_and(|own| own.pattern.value == key.to_string());
                match is_own {
                    true => DecidedBy::Own,
                    false => DecidedBy::Inherited,
                }
            }
            Rule::Default => DecidedBy::Default,
        }
    }
}

/// What a judgement about one place needs.
struct Facts {
    /// The topic's or thread's name.
    name: Option<String>,
    /// Of the only person there, else of nobody in particular.
    standing: Standing,
    from_chat: FromChat,
}

/// The settings of all places and everybody who was let in: a few statements, however many places
/// there are.
pub(crate) struct Settings {
    from_chat: HashMap<PlaceId, FromChat>,
    paired: HashSet<PersonId>,
    last_turns: HashMap<PlaceId, EndedTurn>,
}

impl Settings {
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Settings {
            from_chat: pins::from_chat_everywhere(connection)?,
            paired: people::all_paired(connection)?,
            last_turns: sessions::last_turns_on_discord(connection)?,
        })
    }
}

/// What gives a place its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecidedBy {
    /// Set in chat, on the command line, by a program or on the dashboard.
    Pin,
    /// A binding of this very place.
    Own,
    /// A binding of the group, server, category, person or platform around the place.
    Inherited,
    /// No rule: the default agent answers.
    Default,
}

/// Whether the whole place gets no answer, and not one person among several.
fn is_for_everybody(silence: &Silence) -> bool {
    matches!(
        silence,
        Silence::PlaceClosed | Silence::NotLetIn(_) | Silence::PrivateChatsClosed
    )
}

/// The agent of a place, and why.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) agent: AgentId,
    pub(crate) by: DecidedBy,
    /// The deciding rule in words.
    pub(crate) rule: String,
    pub(crate) resolved: Resolved,
    /// The agent follows from the key alone. False where a rule needs facts of a message.
    pub(crate) is_sure: bool,
    /// Set where no agent answers; `agent` is then the one that would.
    pub(crate) silence: Option<Silence>,
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
