//! Step 3: places, as they are seen, each with its agent.

use std::collections::BTreeMap;

use super::plan::Change;
use super::questions::{Answer, Stop};
use super::telegram::{Watch, survey_of};
use super::{Facts, Setup, texts};
use crate::agents::shown_name;
use crate::channels::telegram::Sighting;
use crate::config::{AgentSpec, Config};
use crate::domain::{AgentId, SessionKey};
use crate::printable::printable_line;
use crate::routing::places;
use crate::storage::Db;

/// Places of a running gateway that are offered.
const MOST_KNOWN: u32 = 20;

/// A place with its name.
pub(super) struct Seen {
    pub(super) place: SessionKey,
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
        // From here on keys are read one by one.
        self.asker.pressed()?;
        self.asker.say(&texts::add_to_group(&account.username));
        let mut found = BTreeMap::<SessionKey, String>::new();
        let mut watch = Watch::new(survey);
        while let Some(seen) = self.watch(&mut watch).await? {
            for seen in seen {
                let is_place = !seen.place.is_private() && !is_bound(config, &seen.place);
                let label = label(&seen);
                if is_place && found.get(&seen.place).is_none_or(|known| *known != label) {
                    self.asker.say(&format!("  {label}"));
                    found.insert(seen.place, label);
                }
            }
        }
        let seen = found.into_iter();
        Ok(seen.map(|(place, label)| Seen { place, label }).collect())
    }

    /// Places that the running gateway has heard of.
    async fn known_places(&mut self, config: &Config) -> Answer<Vec<Seen>> {
        let db = Db::open(&self.home.database())
            .await
            .map_err(Stop::failed)?;
        let latest = db.read(|connection| places::latest(connection, MOST_KNOWN));
        let latest = latest.await.map_err(Stop::failed)?;
        let known = latest.into_iter().filter_map(|(key, name)| {
            let place: SessionKey = key.parse().ok()?;
            let is_local = key.starts_with("local:");
            let is_place = !place.is_private() && !is_local && !is_bound(config, &place);
            let name = name.map(|name| printable_line(&name));
            let label = name.map_or_else(|| key.clone(), |name| format!("{name} ({key})"));
            is_place.then_some(Seen { place, label })
        });
        Ok(known.collect())
    }

    /// Asks for the agent of each place, shows the lines, and writes them.
    pub(super) async fn assign(&mut self, seen: Vec<Seen>) -> Answer<()> {
        let mut changes = Vec::new();
        for Seen { place, label } in seen {
            let question = format!("Who answers in {label}?");
            if let Some(agent) = self.choose_agent(&question, changes.len()).await? {
                changes.push(Change::Binding { place, agent });
            }
        }
        if changes.is_empty() {
            self.asker.say(NO_PLACES);
            return Ok(());
        }
        let lines: Vec<String> = changes.iter().map(Change::lines).collect();
        self.asker.say(&lines.join("\n"));
        match self
            .asker
            .confirm("Write these lines to config.toml?", true)?
        {
            true => self.commit(changes, Vec::new()).await,
            false => Ok(()),
        }
    }

    /// One of the agents, or a new one. None leaves the place alone.
    pub(super) async fn choose_agent(
        &mut self,
        question: &str,
        default: usize,
    ) -> Answer<Option<AgentId>> {
        let agents = self.facts()?.config.agents;
        let mut options: Vec<String> = agents.iter().map(agent_label).collect();
        options.push("a new agent".to_owned());
        options.push("nobody: leave it as it is".to_owned());
        let chosen = self.asker.choose(
            question,
            &options,
            default.min(agents.len().saturating_sub(1)),
        )?;
        match agents.get(chosen) {
            Some(agent) => Ok(Some(agent.id.clone())),
            None if chosen == agents.len() => self.new_agent().await,
            None => Ok(None),
        }
    }
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

fn label(seen: &Sighting) -> String {
    let title = seen.title.as_deref().map(printable_line);
    let topic = seen.topic.as_deref().map(printable_line);
    match (title, topic) {
        (Some(title), Some(topic)) => format!("{topic}, in {title} ({})", seen.place),
        (Some(title), None) => format!("{title} ({})", seen.place),
        _ => seen.place.to_string(),
    }
}

const NO_PLACES: &str = "No place has an agent yet. In a group, an owner writes `/bind rose` to give the topic to Rose, or runs `parlor setup --add places`.";
