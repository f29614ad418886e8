//! A home where every step is done: add, edit, rebind and remove.

use super::places::{Offer, agent_label};
use super::plan::Change;
use super::questions::Answer;
use super::{Part, Setup};
use crate::config::{Binding, Config};
use crate::domain::{AgentId, SessionKey};

const ADD: &str = "add agents";
const EDIT: &str = "edit an agent";
const REBIND: &str = "give a place to another agent";
const REMOVE: &str = "remove an agent";
const PLACES: &str = "add places";
const MODEL: &str = "use another model";
const DISCORD: &str = "connect Discord";
const TELEGRAM: &str = "connect Telegram";
const IMPORT: &str = "bring agents from another system";
const SERVICE: &str = "keep it running";
const NOTHING: &str = "nothing more";

impl Setup<'_> {
    /// Returns whether the gateway is to run here.
    pub(super) async fn change_existing(&mut self) -> Answer<bool> {
        loop {
            let facts = self.facts()?;
            let config = &facts.config;
            let agents: Vec<String> = config.agents.iter().map(agent_label).collect();
            self.asker.say(&format!(
                "{} has {}, model {}.",
                self.home.path().display(),
                agents.join(", "),
                config.default_model
            ));
            let mut options = vec![NOTHING, ADD, EDIT, REBIND, REMOVE, PLACES, MODEL];
            options.extend(config.telegram.is_none().then_some(TELEGRAM));
            options.extend(config.discord.is_none().then_some(DISCORD));
            options.extend([IMPORT, SERVICE]);
            let words: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
            let chosen = self.asker.choose("What would you like to do?", &words, 0)?;
            let part = match options.get(chosen).copied() {
                Some(ADD) => Part::Agents,
                Some(MODEL) => Part::Model,
                Some(PLACES) => Part::Places,
                Some(TELEGRAM) => Part::Telegram,
                Some(DISCORD) => Part::Discord,
                Some(IMPORT) => Part::Import,
                Some(SERVICE) => return self.one(Part::Service).await,
                Some(EDIT) => {
                    self.edit_agent(config).await?;
                    continue;
                }
                Some(REBIND) => {
                    self.rebind(config).await?;
                    continue;
                }
                Some(REMOVE) => {
                    self.remove_agent(config).await?;
                    continue;
                }
                _ => return Ok(false),
            };
            self.wishes.part = Some(part);
            self.one(part).await?;
            self.wishes.part = None;
        }
    }

    fn pick(&mut self, question: &str, config: &Config) -> Answer<Option<AgentId>> {
        let mut options: Vec<String> = config.agents.iter().map(agent_label).collect();
        options.push("none of them".to_owned());
        let chosen = self.asker.choose(question, &options, 0)?;
        Ok(config.agents.get(chosen).map(|agent| agent.id.clone()))
    }

    async fn edit_agent(&mut self, config: &Config) -> Answer<()> {
        let Some(id) = self.pick("Which agent?", config)? else {
            return Ok(());
        };
        let agent = config.agents.iter().find(|agent| agent.id == id);
        let name = agent
            .and_then(|agent| agent.name.clone())
            .unwrap_or_default();
        let new = self.asker.text("Its name:", &name)?;
        let new = new.trim();
        if !new.is_empty() && new != name {
            let change = Change::Name {
                agent: id.clone(),
                name: new.to_owned(),
            };
            self.commit(vec![change], Vec::new()).await?;
        }
        let folder = self.home.path().join("agents").join(id.as_str());
        self.asker.say(&format!(
            "Its manner is in {0}/SOUL.md, its work in {0}/IDENTITY.md. Saved files count from the next message on.",
            folder.display()
        ));
        Ok(())
    }

    async fn rebind(&mut self, config: &Config) -> Answer<()> {
        let bound: Vec<(&Binding, SessionKey)> = config
            .bindings
            .iter()
            .filter_map(|binding| Some((binding, binding.pattern.value.parse().ok()?)))
            .collect();
        let label = |(binding, place): &(&Binding, SessionKey)| {
            format!("{place}, now {}", binding.agent.value)
        };
        let mut options: Vec<String> = bound.iter().map(label).collect();
        options.push("none of them".to_owned());
        let chosen = self.asker.choose("Which place?", &options, 0)?;
        let Some((binding, place)) = bound.into_iter().nth(chosen) else {
            return Ok(());
        };
        let offer = Offer {
            agent: binding.agent.value.clone(),
            answers_now: false,
        };
        let change = match self.choose_agent(&place.to_string(), &offer).await? {
            Some(agent) => Change::Binding { place, agent },
            None if self
                .asker
                .confirm("Take its line out of config.toml?", false)? =>
            {
                Change::Unbinding { place }
            }
            None => return Ok(()),
        };
        self.commit(vec![change], Vec::new()).await
    }

    async fn remove_agent(&mut self, config: &Config) -> Answer<()> {
        let Some(agent) = self.pick("Which agent?", config)? else {
            return Ok(());
        };
        self.asker.say(&format!(
            "`parlor agent restore {agent}` brings an agent back that was put aside."
        ));
        let question = format!("Put {agent} aside, with its files and conversations?");
        match self.asker.confirm(&question, false)? {
            true => {
                self.commit(vec![Change::Removal { agent }], Vec::new())
                    .await
            }
            false => Ok(()),
        }
    }
}
