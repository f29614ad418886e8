//! Step 3: places, as they are seen, each with its agent.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Connection;

use super::plan::Change;
use super::questions::{Answer, Stop};
use super::telegram::{Watch, survey_of};
use super::{Facts, Setup, texts};
use crate::agents::shown_name;
use crate::channels::telegram::Sighting;
use crate::config::{AgentSpec, Config};
use crate::console::group_of;
use crate::domain::{AgentId, SessionKey, TopicId};
use crate::operations::house::{DecidedBy, House};
use crate::operations::names::Names;
use crate::printable::printable_line;
use crate::records::sessions::{self, Used};
use crate::routing::Table;
use crate::storage::Db;

/// Offered places of a running gateway.
const MOST_KNOWN: usize = 20;

/// A place with its name.
pub(super) struct Seen {
    pub(super) place: SessionKey,
    /// Of the topic, channel or group itself.
    pub(super) name: Option<String>,
    pub(super) label: String,
}

impl Setup<'_> {
    pub(super) async fn places(&mut self) -> Answer<()> {
        let facts = self.facts()?;
        if !self.wishes.bindings.is_empty() {
            return self.bind_wished(&facts).await;
        }
        let has_bot = facts.config.telegram.is_some() || facts.config.discord.is_some();
        let is_asked = self.asker.is_person() && !self.is_planning();
        let is_done = facts.has_places() && self.wishes.part.is_none();
        if !has_bot || !is_asked || is_done {
            return Ok(());
        }
        self.asker.say(texts::THREE);
        let mut seen = match self.home.is_running() {
            true => self.known_places(&facts.config).await?,
            false => self.seen_places(&facts.config).await?,
        };
        seen.extend(self.discord_places(&facts.config).await?);
        self.assign(seen).await
    }

    async fn bind_wished(&mut self, facts: &Facts) -> Answer<()> {
        let known: Vec<&AgentId> = facts.config.agents.iter().map(|agent| &agent.id).collect();
        let mut changes = Vec::new();
        for (place, agent) in self.wishes.bindings.clone() {
            if !known.contains(&&agent) {
                return Err(Stop::Failed(format!(
                    "there is no agent called {agent}. `parlor agent add {agent}` makes one"
                )));
            }
            changes.push(Change::Binding { place, agent });
        }
        self.commit(changes, Vec::new()).await
    }

    /// Watches until Enter; every new place is told.
    async fn seen_places(&mut self, config: &Config) -> Answer<Vec<Seen>> {
        let Some(survey) = survey_of(config) else {
            return Ok(Vec::new());
        };
        let Ok(account) = survey.account().await else {
            return Ok(Vec::new());
        };
        // Keys are read singly from here on, so that Enter ends the watch.
        self.asker.pressed()?;
        self.asker.say(&texts::add_to_group(&account.username));
        let mut found = BTreeMap::<SessionKey, Seen>::new();
        let mut watch = Watch::new(survey);
        while let Some(seen) = self.watch(&mut watch).await? {
            for seen in seen.into_iter().map(Seen::of) {
                let is_place = !seen.place.is_private() && !is_bound(config, &seen.place);
                let known = found.get(&seen.place);
                if is_place && known.is_none_or(|known| known.label != seen.label) {
                    self.asker.say(&format!("  {}", seen.label));
                    found.insert(seen.place.clone(), seen);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Places known to the running gateway, the latest first.
    async fn known_places(&mut self, config: &Config) -> Answer<Vec<Seen>> {
        let db = self.database().await?;
        let names = Names::load(&db, Some(config)).await.map_err(Stop::failed)?;
        let names = names.with_places(self.heard.clone());
        let mut rows = db.read(sessions::with_rows).await.map_err(Stop::failed)?;
        rows.sort_by_key(|row| Reverse((row.active_at, row.created_at)));
        let mut known: Vec<Seen> = Vec::new();
        for row in rows.iter().filter(|row| !is_title(row)) {
            // People with conversations of their own in a group share the group's rule.
            let place = group_of(&row.key);
            let is_place = place.platform().is_some() && !place.is_private();
            let is_known = known.iter().any(|seen| seen.place == place);
            if is_place && !is_known && !is_bound(config, &place) {
                let group = place.whole_group().and_then(|group| names.topic(&group));
                known.push(Seen::new(place.clone(), names.topic(&place), group));
            }
        }
        known.truncate(MOST_KNOWN);
        Ok(known)
    }

    async fn database(&self) -> Answer<Db> {
        let opened = Db::open(&self.home.database()).await;
        opened.map_err(Stop::failed)
    }

    /// Asks for the agent of each place, shows the lines, and writes them.
    pub(super) async fn assign(&mut self, seen: Vec<Seen>) -> Answer<()> {
        loop {
            let changes = self.choose_agents(&seen).await?;
            if changes.is_empty() {
                let has_places = self.facts()?.has_places();
                self.asker.say(texts::no_places(has_places));
                return Ok(());
            }
            let lines: Vec<String> = changes.iter().map(Change::lines).collect();
            self.asker.say(&lines.join("\n"));
            let question = "Write these lines to config.toml?";
            if self.asker.confirm(question, true)? {
                return self.commit(changes, Vec::new()).await;
            }
            if !self.asker.confirm(texts::CHOOSE_AGAIN, true)? {
                self.asker.say(texts::NOTHING_WRITTEN);
                return Ok(());
            }
        }
    }

    async fn choose_agents(&mut self, seen: &[Seen]) -> Answer<Vec<Change>> {
        let config = self.facts()?.config;
        let now = self.answering_now(&config, seen).await?;
        let mut changes = Vec::new();
        for seen in seen {
            let offer = Offer::of(&config, seen, &now);
            if let Some(agent) = self.choose_agent(&seen.label, &offer).await? {
                let place = seen.place.clone();
                changes.push(Change::Binding { place, agent });
            }
        }
        Ok(changes)
    }

    /// The agents that a rule or a command gave to places.
    async fn answering_now(&self, config: &Config, seen: &[Seen]) -> Answer<Vec<Holding>> {
        if !self.home.database().exists() {
            return Ok(Vec::new());
        }
        let db = self.database().await?;
        let (table, _) = Table::build(config);
        let house = House::load(&db, Arc::new(config.clone()), Arc::new(table));
        let house = house.await.map_err(Stop::failed)?;
        let places: Vec<SessionKey> = seen.iter().map(|seen| seen.place.clone()).collect();
        let read = move |connection: &Connection| {
            let mut now = Vec::new();
            for place in places {
                let id = sessions::of(connection, &place)?.map(|row| row.id);
                let holder = house.holder_at(connection, &place, id)?;
                let is_given = holder.is_sure && holder.by != DecidedBy::Default;
                if is_given && holder.silence.is_none() {
                    now.push((place, holder.agent));
                }
            }
            Ok(now)
        };
        db.read(read).await.map_err(Stop::failed)
    }

    /// The chosen agent of a place, existing or new. None leaves the place alone.
    pub(super) async fn choose_agent(
        &mut self,
        label: &str,
        offer: &Offer,
    ) -> Answer<Option<AgentId>> {
        let agents = self.facts()?.config.agents;
        let offered = agents.iter().position(|agent| agent.id == offer.agent);
        let mut options: Vec<String> = agents.iter().map(agent_label).collect();
        let mut leave = "nobody: leave it as it is";
        if offer.answers_now {
            leave = "leave it as it is";
            let own = offered.and_then(|at| options.get_mut(at));
            if let Some(label) = own {
                label.push_str(" (answers there now)");
            }
        }
        options.push("a new agent".to_owned());
        options.push(leave.to_owned());
        let question = format!("Who answers in {label}?");
        let chosen = self
            .asker
            .choose(&question, &options, offered.unwrap_or(0))?;
        match agents.get(chosen) {
            Some(agent) => Ok(Some(agent.id.clone())),
            None if chosen == agents.len() => {
                let made = self.new_agent().await?;
                if made.is_none() {
                    self.asker.say(&texts::no_agent_made(label));
                }
                Ok(made)
            }
            None => Ok(None),
        }
    }
}

/// A place with the agent that answers there.
type Holding = (SessionKey, AgentId);

/// The agent that Enter takes.
pub(super) struct Offer {
    pub(super) agent: AgentId,
    pub(super) answers_now: bool,
}

impl Offer {
    /// The agent of the place, else the agent of a topic with the same name elsewhere, else the
    /// default agent.
    fn of(config: &Config, seen: &Seen, now: &[Holding]) -> Self {
        let holding = now.iter().find(|(place, _)| *place == seen.place);
        let agent = holding.map(|(_, agent)| agent.clone());
        let namesake = || namesake(config, seen.name.as_deref()?);
        Offer {
            answers_now: agent.is_some(),
            agent: agent
                .or_else(namesake)
                .unwrap_or_else(|| config.default_agent.clone()),
        }
    }
}

/// The agent of a topic of the terminal or the web chat with this name, or the agent of this name.
fn namesake(config: &Config, name: &str) -> Option<AgentId> {
    let wanted = name.trim().to_lowercase();
    let mut bindings = config.bindings.iter();
    let bound = bindings.find(|binding| match binding.pattern.value.parse() {
        Ok(
            SessionKey::Local {
                topic: Some(topic), ..
            }
            | SessionKey::Web {
                topic: Some(topic), ..
            },
        ) => topic.as_str().to_lowercase() == wanted,
        _ => false,
    });
    let bound = bound.map(|binding| binding.agent.value.clone());
    let mut agents = config.agents.iter();
    let is_called = |agent: &&AgentSpec| {
        agent.id.as_str() == wanted || shown_name(agent).to_lowercase() == wanted
    };
    bound.or_else(|| Some(agents.find(is_called)?.id.clone()))
}

/// Whether a row only keeps the name of the group around topics or threads.
fn is_title(row: &Used) -> bool {
    row.active_at.is_none()
        && row.name.is_some()
        && row.key.is_shared()
        && row.key.whole_group().is_none()
}

pub(super) fn agent_label(agent: &AgentSpec) -> String {
    let name = shown_name(agent);
    let emoji = agent.emoji.as_ref().map(|emoji| format!("{emoji} "));
    printable_line(&format!("{}{name}", emoji.unwrap_or_default()))
}

/// Whether a binding names exactly this place.
fn is_bound(config: &Config, place: &SessionKey) -> bool {
    let key = place.to_string();
    config
        .bindings
        .iter()
        .any(|binding| binding.pattern.value == key)
}

impl Seen {
    /// `group` is the name of the group around a topic.
    fn new(place: SessionKey, name: Option<String>, group: Option<String>) -> Self {
        let is_general =
            matches!(&place, SessionKey::TelegramTopic { topic, .. } if *topic == TopicId::GENERAL);
        let name = name.or_else(|| is_general.then(|| "General".to_owned()));
        let name = name.map(|name| printable_line(&name));
        let group = group.map(|group| printable_line(&group));
        let label = match (&name, group) {
            (Some(name), Some(group)) => format!("{name}, in {group} ({place})"),
            (Some(name), None) => format!("{name} ({place})"),
            (None, Some(group)) => format!("a topic of {group} ({place})"),
            (None, None) => place.to_string(),
        };
        Seen { place, name, label }
    }

    fn of(sighting: Sighting) -> Self {
        let Sighting {
            place,
            title,
            topic,
            ..
        } = sighting;
        match place.whole_group() {
            Some(_) => Seen::new(place, topic, title),
            None => Seen::new(place, title, None),
        }
    }
}
