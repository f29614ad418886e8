//! New agents: how many, then name, personality, skills and a place for each.

use super::plan::Change;
use super::questions::{Answer, Stop};
use super::{Part, Setup, texts};
use crate::domain::{AgentId, SessionKey};

/// More agents at a time are a mistype.
const MOST: usize = 20;

/// A new agent by flags. Its places are bindings like others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentWish {
    pub(crate) name: String,
    pub(crate) personality: Option<String>,
    pub(crate) skills: Option<Vec<String>>,
}

impl Setup<'_> {
    pub(super) async fn add_agents(&mut self) -> Answer<()> {
        if !self.wishes.agents.is_empty() {
            self.add_wished_agents().await?;
            return match self.wishes.part {
                Some(Part::Agents) if !self.wishes.bindings.is_empty() => self.places().await,
                _ => Ok(()),
            };
        }
        if !self.asker.is_person() {
            return Err(Stop::Failed(texts::AGENTS_BY_FLAGS.to_owned()));
        }
        let count = self.asker.text("How many agents?", "1")?;
        let count = count.trim().parse().unwrap_or(1).min(MOST);
        for _ in 0..count {
            self.new_agent_with_place().await?;
        }
        while self.asker.confirm("Another agent?", false)? {
            self.new_agent_with_place().await?;
        }
        Ok(())
    }

    /// Existing agents are left as they are, so that the same flags twice change nothing.
    async fn add_wished_agents(&mut self) -> Answer<()> {
        for wish in self.wishes.agents.clone() {
            let id = id_of(&wish.name).map_err(Stop::failed)?;
            if self.is_taken(&id)? {
                self.asker.say(&format!("{id} is there already."));
                continue;
            }
            let has_own_name = wish.name != id.as_str();
            let change = Change::Agent {
                id,
                name: has_own_name.then_some(wish.name),
                personality: wish.personality,
                skills: wish.skills,
            };
            self.commit(vec![change], Vec::new()).await?;
        }
        Ok(())
    }

    async fn new_agent_with_place(&mut self) -> Answer<()> {
        let Some(agent) = self.new_agent().await? else {
            return Ok(());
        };
        loop {
            let key = self.asker.text(
                "A place of its own, as /whoami in a chat shows it (Enter for none):",
                "",
            )?;
            match key.trim() {
                "" => return Ok(()),
                key => match key.parse::<SessionKey>() {
                    Ok(place) => {
                        let change = Change::Binding { place, agent };
                        return self.commit(vec![change], Vec::new()).await;
                    }
                    Err(error) => self.asker.say(&error.to_string()),
                },
            }
        }
    }

    /// Asks for an agent, and adds the agent. None if the person gives up.
    pub(super) async fn new_agent(&mut self) -> Answer<Option<AgentId>> {
        let (id, name) = loop {
            let name = self.asker.text("The agent's name:", "")?;
            let name = name.trim().to_owned();
            if name.is_empty() {
                return Ok(None);
            }
            match self.free_id(&name)? {
                Ok(id) => break (id, name),
                Err(problem) => self.asker.say(&problem),
            }
        };
        let like = format!("What is {name} like, in a sentence? (Enter for the usual manner)");
        let personality = Some(self.asker.text(&like, "")?);
        let personality = personality.filter(|text| !text.trim().is_empty());
        let skills = self
            .asker
            .text("Skills, with commas between them (Enter for all):", "")?;
        let skills = (!skills.trim().is_empty()).then(|| {
            let names = skills.split(',').map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        });
        let has_own_name = name != id.as_str();
        if !self.asker.confirm(&format!("Add {name}?"), true)? {
            return Ok(None);
        }
        let change = Change::Agent {
            id: id.clone(),
            name: has_own_name.then_some(name),
            personality,
            skills,
        };
        self.commit(vec![change], Vec::new()).await?;
        Ok(Some(id))
    }

    /// The id of a name, if the id is free. Inside: the reason for a refusal.
    fn free_id(&self, name: &str) -> Answer<Result<AgentId, String>> {
        let id = match id_of(name) {
            Ok(id) => id,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(match self.is_taken(&id)? {
            true => Err(format!("There is an agent called {id} already.")),
            false => Ok(id),
        })
    }

    fn is_taken(&self, id: &AgentId) -> Answer<bool> {
        let config = self.facts()?.config;
        Ok(config.agents.iter().any(|agent| agent.id == *id))
    }
}

/// `Night Desk` is `night-desk`.
pub(super) fn id_of(name: &str) -> Result<AgentId, String> {
    let words = name.split(|c: char| c.is_whitespace() || c == '_');
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    AgentId::parse(&words.join("-"))
        .map_err(|_| "Use a-z, 0-9 and hyphens, such as Night Desk.".to_owned())
}
