//! `parlor route explain`: every rule tried for a place, the winner, and why. Asks the function the
//! gateway asks.

use std::fmt;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Failure, Outcome, data, data_json};
use crate::access::{Standing, people};
use crate::agents::{AgentModels, Source};
use crate::config::{Config, ModelRef, Reasoning, Secrets};
use crate::domain::{AgentId, DiscordId, Origin, PersonId, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::records::model_overrides;
use crate::routing::aliases::{self, Aliases};
use crate::routing::{self, Explanation, Pin, Visit, names, pins};
use crate::storage::Db;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Tell which agent answers in a place, and why
    Explain(Explain),
}

#[derive(Args)]
pub(super) struct Explain {
    /// A session key, as /whoami prints it
    key: String,
    /// Who writes, such as telegram:12345678
    #[arg(long, value_name = "PERSON")]
    user: Option<String>,
    /// A Discord role the person has; may be given several times
    #[arg(long = "role", value_name = "ID")]
    roles: Vec<u64>,
    /// The topic's or thread's name
    #[arg(long)]
    name: Option<String>,
    /// A tag of the forum post; may be given several times
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// The Discord server
    #[arg(long, value_name = "ID")]
    server: Option<u64>,
    /// The Discord category
    #[arg(long, value_name = "ID")]
    category: Option<u64>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Verb::Explain(arguments): Verb) -> Outcome {
    let checked = CheckedConfig::load(&home, Secrets::WherePresent)?;
    let json = arguments.json;
    let mut origin = origin(arguments)?;
    let stored = stored(&home, &checked.config, &mut origin).await?;
    origin.name = origin.name.or(stored.name);
    let visit = Visit {
        access: &checked.config.access,
        origin: &origin,
        standing: &stored.standing,
    };
    let pin = routing::resolve(&checked.table, stored.pin, visit).pin;
    let explanation = routing::explain(&checked.table, pin.as_ref(), &origin);
    let model = thinking(
        &checked.config,
        &explanation.route.agent,
        stored.model.as_ref(),
    );
    if json {
        data_json(&Explained { explanation, model })?;
    } else {
        data(format_args!("{explanation}"));
        data(format_args!(
            "{}",
            model.iter().map(Thinking::to_string).collect::<String>()
        ));
    }
    Ok(())
}

/// The same for programs.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    model: Option<Thinking>,
}

/// The model of the agent in this place.
#[derive(Serialize)]
struct Thinking {
    model: String,
    source: Source,
    /// Chosen with /model, but not usable any more.
    ignored: Option<String>,
    fallback: Vec<String>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    reasoning: Option<&'static str>,
}

fn thinking(config: &Config, agent: &AgentId, wanted: Option<&ModelRef>) -> Option<Thinking> {
    let spec = config.agents.iter().find(|spec| spec.id == *agent)?;
    let models = AgentModels::of(config, spec);
    let chosen = models.choose(wanted);
    let behind = models.lineup(&chosen).split_off(1);
    Some(Thinking {
        model: chosen.model.to_string(),
        source: chosen.source,
        ignored: chosen.ignored.map(|model| model.to_string()),
        fallback: behind.iter().map(ModelRef::to_string).collect(),
        temperature: models.settings.temperature,
        max_tokens: models.settings.max_tokens,
        reasoning: models.settings.reasoning.map(Reasoning::as_str),
    })
}

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model: {} ({})", self.model, self.source)?;
        let settings = [
            (
                "not used",
                self.ignored
                    .as_ref()
                    .map(|model| format!("{model}, chosen with /model but not there any more")),
            ),
            (
                "fallback",
                (!self.fallback.is_empty()).then(|| self.fallback.join(", ")),
            ),
            (
                "temperature",
                self.temperature.map(|temperature| temperature.to_string()),
            ),
            (
                "max_tokens",
                self.max_tokens.map(|tokens| tokens.to_string()),
            ),
            ("reasoning", self.reasoning.map(str::to_owned)),
        ];
        settings
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .try_for_each(|(name, value)| write!(f, "\n{name}: {value}"))
    }
}

fn origin(arguments: Explain) -> Result<Origin, Failure> {
    let key: SessionKey = arguments
        .key
        .parse()
        .map_err(|error| Failure::WrongUse(format!("{error}")))?;
    let person = match &arguments.user {
        Some(text) => text.parse().map_err(|()| {
            Failure::WrongUse(format!(
                "`{text}` is no person; one looks like telegram:12345678"
            ))
        })?,
        None => person_of(&key),
    };
    Ok(Origin {
        roles: arguments.roles.into_iter().map(DiscordId).collect(),
        server: arguments.server.map(DiscordId),
        category: arguments.category.map(DiscordId),
        name: arguments.name,
        tags: arguments.tags,
        ..Origin::new(key, person)
    })
}

/// The person in the key, else a person without an id, so that no rule for a person matches by
/// chance.
fn person_of(key: &SessionKey) -> PersonId {
    match key {
        SessionKey::TelegramDm { user, .. }
        | SessionKey::TelegramGroup {
            member: Some(user), ..
        } => PersonId::Telegram(*user),
        SessionKey::DiscordDm { user }
        | SessionKey::DiscordChannel {
            member: Some(user), ..
        } => PersonId::Discord(*user),
        SessionKey::DiscordThread { .. } | SessionKey::DiscordChannel { member: None, .. } => {
            PersonId::Discord(DiscordId(0))
        }
        SessionKey::Local { .. } => crate::channels::local::person(),
        _ => PersonId::Telegram(crate::domain::TelegramUserId(0)),
    }
}

/// The pin, name and model of a place in the store.
struct Stored {
    standing: Standing,
    pin: Option<Pin>,
    name: Option<String>,
    model: Option<ModelRef>,
}

/// A home without a database knows nothing.
async fn stored(home: &Home, config: &Arc<Config>, origin: &mut Origin) -> Result<Stored, Failure> {
    if !home.database().exists() {
        return Ok(Stored {
            standing: Standing::of(&config.access, &origin.person, false),
            pin: None,
            name: None,
            model: None,
        });
    }
    let db = Db::open(&home.database()).await?;
    Aliases::new(db.read(aliases::load).await?).follow(origin);
    let (key, person, config) = (origin.key.clone(), origin.person.clone(), config.clone());
    let read = db.read(move |connection| {
        let (pin, name) = (
            pins::load(connection, &key)?,
            names::load(connection, &key)?,
        );
        Ok(Stored {
            standing: people::standing(connection, &config.access, &person)?,
            pin,
            name,
            model: model_overrides::load(connection, &key)?,
        })
    });
    Ok(read.await?)
}
