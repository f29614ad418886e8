//! From nothing to an agent that answers in a topic: the steps of `parlor setup`.
//!
//! Each step looks at what is there, asks, shows its lines, and writes them after a yes. A step
//! that is done is passed over, so an interrupted setup goes on where it was left.

mod agents;
mod discord;
mod environment;
mod existing;
mod model;
mod moving_in;
mod places;
mod plan;
mod questions;
mod service;
mod telegram;
mod texts;
mod write;

use crate::agents::shipped_config;
use crate::config::{self, Config, Secrets, Source, store};
use crate::domain::{AgentId, PersonId, Platform, SessionKey};
use crate::home::{Home, check};

pub(crate) use agents::AgentWish;
pub(crate) use moving_in::ImportWish;
pub(crate) use plan::{Change, Keeper};
pub(crate) use questions::{Answer, Asker, Nobody, Stop};
pub(crate) use service::ServiceWish;
use write::NewSecret;

/// Answers given as flags. No step asks for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// `demo`, `openai/gpt-5.4`.
    pub(crate) model: Option<String>,
    /// The base URL of the server with this model.
    pub(crate) model_url: Option<String>,
    /// The keeper of that server's API key: a variable or a file.
    pub(crate) model_key: Option<Keeper>,
    pub(crate) telegram: PlatformWish,
    pub(crate) discord: PlatformWish,
    pub(crate) owners: Vec<PersonId>,
    /// New agents.
    pub(crate) agents: Vec<AgentWish>,
    pub(crate) bindings: Vec<(SessionKey, AgentId)>,
    pub(crate) import: Option<ImportWish>,
    pub(crate) service: Option<ServiceWish>,
    /// Only this part.
    pub(crate) part: Option<Part>,
}

impl Wishes {
    fn are_none(&self) -> bool {
        self.model.is_none()
            && self.telegram.token.is_none()
            && self.discord.token.is_none()
            && self.owners.is_empty()
            && self.bindings.is_empty()
            && self.agents.is_empty()
            && self.import.is_none()
            && self.service.is_none()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PlatformWish {
    pub(crate) token: Option<Keeper>,
    pub(crate) api_url: Option<String>,
}

/// A part of the setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Agents,
    Model,
    Telegram,
    Discord,
    Places,
    Service,
    Import,
}

/// How a setup ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Everything that was written, or would be.
    pub(crate) changes: Vec<Change>,
    /// The gateway is to run in this terminal now.
    pub(crate) runs_here: bool,
    /// The closing line: the next step of the person.
    pub(crate) next: String,
}

/// The mode of writing.
enum Mode {
    Write,
    /// No file is written and no server is called. Holds the text that config.toml would have.
    Plan(Option<String>),
}

/// A setup under way.
struct Setup<'a> {
    home: &'a Home,
    wishes: Wishes,
    asker: &'a mut dyn Asker,
    mode: Mode,
    /// Names of places that a running gateway has in mind, because nobody answers there.
    heard: Vec<(SessionKey, String)>,
    changes: Vec<Change>,
    /// Offers that were declined before the home folder existed.
    declined: Vec<String>,
}

/// The present home and its config.
struct Facts {
    is_new: bool,
    text: String,
    config: Config,
}

/// Takes all steps, or the wished part. `heard`: names of places that only a running gateway knows.
pub(crate) async fn run(
    home: &Home,
    wishes: Wishes,
    heard: Vec<(SessionKey, String)>,
    asker: &mut dyn Asker,
) -> Answer<Ending> {
    let setup = Setup {
        heard,
        ..Setup::new(home, wishes, asker, Mode::Write)
    };
    setup.steps().await
}

/// The changes that [`run`] would make without a person.
pub(crate) async fn plan(home: &Home, wishes: Wishes) -> Answer<Vec<Change>> {
    let mut nobody = Nobody { tell: |_: &str| {} };
    let setup = Setup::new(home, wishes, &mut nobody, Mode::Plan(None));
    Ok(setup.steps().await?.changes)
}

impl<'a> Setup<'a> {
    fn new(home: &'a Home, wishes: Wishes, asker: &'a mut dyn Asker, mode: Mode) -> Self {
        Setup {
            home,
            wishes,
            asker,
            mode,
            heard: Vec::new(),
            changes: Vec::new(),
            declined: Vec::new(),
        }
    }

    async fn steps(mut self) -> Answer<Ending> {
        let runs_here = match self.wishes.part {
            Some(part) => self.one(part).await?,
            None if self.has_all_steps()? => self.change_existing().await?,
            None => self.all().await?,
        };
        let facts = self.facts()?;
        let next = texts::next(&facts.config, self.home.is_running(), runs_here);
        Ok(Ending {
            changes: self.changes,
            runs_here,
            next,
        })
    }

    /// Returns whether the gateway is to run here.
    async fn all(&mut self) -> Answer<bool> {
        let welcome = texts::welcome(self.home.path(), self.facts()?.is_new);
        self.asker.say(&welcome);
        self.one(Part::Import).await?;
        for part in [Part::Model, Part::Telegram, Part::Discord] {
            self.one(part).await?;
        }
        if !self.wishes.agents.is_empty() {
            self.one(Part::Agents).await?;
        }
        self.one(Part::Places).await?;
        self.one(Part::Service).await
    }

    /// Returns whether the gateway is to run here.
    async fn one(&mut self, part: Part) -> Answer<bool> {
        match part {
            Part::Agents => self.add_agents().await?,
            Part::Model => self.model().await?,
            Part::Telegram => self.telegram().await?,
            Part::Discord => self.discord().await?,
            Part::Places => self.places().await?,
            Part::Import => self.move_in().await?,
            Part::Service => return self.service().await,
        }
        Ok(false)
    }

    fn is_planning(&self) -> bool {
        matches!(self.mode, Mode::Plan(_))
    }

    fn facts(&self) -> Answer<Facts> {
        let folder = self.home.path();
        let is_new = std::fs::symlink_metadata(folder.join("config.toml")).is_err();
        let text = match &self.mode {
            Mode::Plan(Some(text)) => text.clone(),
            _ if is_new => shipped_config().to_owned(),
            _ => store::read(folder).map_err(Stop::failed)?,
        };
        let source = Source {
            path: folder.join("config.toml"),
            text: text.clone(),
        };
        let draft = config::draft(source, folder, Secrets::WherePresent);
        // A planned home has no files yet that skills could be looked for in.
        let checked = match is_new && self.is_planning() {
            true => draft.finish(),
            false => check(draft, folder).map(|(config, _)| config),
        };
        let config = checked.map_err(|report| Stop::Failed(report.render_problems(false)))?;
        Ok(Facts {
            is_new,
            text,
            config,
        })
    }

    /// Whether every step was done once: a model, a bot, its owner, and a place. A person without
    /// flags then chooses what to change.
    fn has_all_steps(&self) -> Answer<bool> {
        let facts = self.facts()?;
        let config = &facts.config;
        Ok(self.asker.is_person()
            && self.wishes.are_none()
            && !facts.is_new
            && facts.has_model()
            && (config.telegram.is_some() || config.discord.is_some())
            && !config.access.owners.is_empty()
            && facts.has_places())
    }

    /// Writes the changes of a step that was confirmed. A change that is there already is left out.
    async fn commit(&mut self, changes: Vec<Change>, secrets: Vec<NewSecret>) -> Answer<()> {
        let facts = self.facts()?;
        let mut fresh = Vec::new();
        let mut text = facts.text;
        let is_begun = self
            .changes
            .iter()
            .any(|change| matches!(change, Change::Home { .. }));
        if facts.is_new && !is_begun {
            let folder = self.home.path().display().to_string();
            fresh.push(Change::Home { folder });
        }
        for change in changes {
            let edited = change.edit(&text).map_err(Stop::failed)?;
            if edited != text || change.is_outside() {
                text = edited;
                fresh.push(change);
            }
        }
        if fresh.is_empty() && secrets.is_empty() {
            return Ok(());
        }
        match &mut self.mode {
            Mode::Plan(planned) => *planned = Some(text),
            Mode::Write => {
                write::write(self.home, &fresh, &secrets).await?;
                self.remember_declined().await?;
            }
        }
        self.changes.extend(fresh);
        Ok(())
    }

    /// The secret behind a keeper, as far as it can be read here.
    fn secret(&self, keeper: &Keeper) -> Option<config::Secret> {
        let text = match keeper {
            Keeper::Env(name) => std::env::var(name).ok(),
            Keeper::File(path) => std::fs::read_to_string(self.home.path().join(path)).ok(),
        };
        let text = text.map(|text| text.trim().to_owned());
        text.filter(|text| !text.is_empty())
            .map(config::Secret::new)
    }
}

impl Facts {
    /// Whether the config sets `default_model`, also to `demo`.
    fn has_model(&self) -> bool {
        let table = self.text.parse::<toml::Table>().unwrap_or_default();
        table.contains_key("default_model")
    }

    /// Whether a place of a platform has an agent.
    fn has_places(&self) -> bool {
        let platforms = [Platform::Telegram, Platform::Discord];
        let is_of_platform = |pattern: &str| {
            let mut names = platforms.iter().map(|platform| platform.as_str());
            names.any(|name| pattern.starts_with(&format!("{name}:")))
        };
        let mut bindings = self.config.bindings.iter();
        bindings.any(|binding| is_of_platform(&binding.pattern.value))
    }
}
