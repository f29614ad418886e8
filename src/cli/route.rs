//! `parlor route explain`: who answers in a place, or why nobody, then every rule that was tried.
//! Then model, tools, skills, memory and limits of a turn there. Asks the functions that a turn
//! asks.

mod abilities;

use std::fmt;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::json::Named;
use super::names::Names;
use super::truth::{self, Answered, Truth, a_role};
use super::{Failure, Outcome, data, data_json, meant_place, print};
use crate::access::Role;
use crate::agents::{AgentModels, Source};
use crate::commands::texts::words;
use crate::config::settings::Settings;
use crate::config::{Config, ModelRef, Reasoning, Secrets};
use crate::domain::{AgentId, DiscordId, Origin, PersonId, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::operations;
use crate::operations::abilities::{Abilities, Asker, Cause, cause};
use crate::operations::house::person_of;
use crate::routing::{self, Explanation};
use crate::storage::Db;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Tell who answers in a place, or why nobody does
    Explain(Explain),
}

#[derive(Args)]
pub(super) struct Explain {
    /// Key of the place, as /whoami prints it, or its name, such as Garden or
    /// Family/Garden
    #[arg(value_name = "PLACE")]
    key: String,
    /// Who writes, by id or name, where --as names a role
    #[arg(long, value_name = "PERSON")]
    user: Option<String>,
    /// Whom to ask for: a role (guest, member, admin or owner), or a person by id
    /// or name [default: guest]
    #[arg(long = "as", value_name = "ROLE|PERSON")]
    role: Option<String>,
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
    let checked =
        truth::with_grants(&home, CheckedConfig::load(&home, Secrets::WherePresent)?).await?;
    let json = arguments.json;
    let known = names(&home, &checked.config).await?;
    let (role, person) = match asked_as(&known, arguments.role.as_deref())? {
        Some(As::Role(role)) => (Some(role), None),
        Some(As::Person(person)) => (None, Some(person)),
        None => (None, None),
    };
    let key = meant_place::place(&home, &arguments.key).await?;
    let truth = truth::truth(
        &home,
        &checked,
        origin(&known, key, arguments, person)?,
        role,
    )
    .await?;
    let Truth { answer, origin, .. } = &truth;
    let mut explanation = routing::explain(&checked.table, answer.resolved.pin.as_ref(), origin);
    explanation.route = answer.resolved.route.clone();
    explanation.is_silent = answer.silence.is_some();
    let settings = super::config::settings(&home)?;
    let model = thinking(
        &checked.config,
        &explanation.route.agent,
        truth.model.as_ref(),
        &settings,
    );
    let asker = Asker {
        person: origin.person.clone(),
        role: truth.standing.with(answer.agent()),
        place: origin.key.clone(),
    };
    let abilities = abilities_of(&home, &checked, &settings, answer.agent(), &asker).await?;
    if json {
        return data_json(&Explained::new(
            &explanation,
            truth.answered(),
            (!origin.person.is_nobody()).then(|| truth.person.clone()),
            asker.role,
            model,
            abilities,
        )?);
    }
    print::wrapped(&format!("{}\n{}", truth.told, asked_for(&truth)));
    data(format_args!(""));
    data(format_args!("{explanation}"));
    if explanation.is_silent {
        data(format_args!("{}", would_have(&truth)));
    }
    data(format_args!(
        "{}",
        model.iter().map(Thinking::to_string).collect::<String>()
    ));
    match &abilities {
        Some(abilities) => print::wrapped(&abilities::told(abilities)),
        None => data(format_args!("{UNKNOWN_YET}")),
    }
    Ok(())
}

/// Whom `--as` means.
enum As {
    Role(Role),
    Person(PersonId),
}

fn asked_as(names: &Names, text: Option<&str>) -> Result<Option<As>, Failure> {
    let parsed = text.map(|text| {
        let role = text.parse().map(As::Role).ok();
        let person = || names.find_person(text).map(As::Person);
        role.map_or_else(person, Ok).map_err(|error| {
            Failure::WrongUse(error.to_string()).hint("a role is guest, member, admin or owner")
        })
    });
    parsed.transpose()
}

/// Names of people, as far as the home knows them.
async fn names(home: &Home, config: &Config) -> Result<Names, Failure> {
    if !home.database().exists() {
        return Ok(Names::default());
    }
    let db = Db::open(&home.database()).await?;
    Ok(Names::load(&db, Some(config)).await?)
}

/// The person and role that the answer is for.
fn asked_for(truth: &Truth) -> String {
    let role = truth.standing.with(truth.answer.agent());
    if truth.origin.person.is_nobody() {
        format!("Asked for {}; --as names a role or a person.", a_role(role))
    } else {
        format!("Asked for {}, {}.", truth.person.text(), a_role(role))
    }
}

/// The line before what an answer would be made with.
fn would_have(truth: &Truth) -> String {
    let agent = truth.names.agent(truth.answer.agent());
    format!("If it answered, {} would have:\n", agent.text())
}

/// The same for programs.
#[derive(Serialize)]
struct Explained {
    answer: Answered,
    /// Absent: no person was named.
    person: Option<Named>,
    role: &'static str,
    #[serde(flatten)]
    explanation: Value,
    model: Option<Thinking>,
    /// Absent in a home without a database.
    abilities: Option<Abilities>,
}

impl Explained {
    fn new(
        explanation: &Explanation,
        answer: Answered,
        person: Option<Named>,
        role: Role,
        model: Option<Thinking>,
        abilities: Option<Abilities>,
    ) -> Result<Self, serde_json::Error> {
        let mut explanation = serde_json::to_value(explanation)?;
        let origin = &mut explanation["origin"];
        if person.is_none() {
            origin["person"] = Value::Null;
        }
        // Where a message is stored, facts that it lacks are left out.
        for (fact, unknown) in [
            ("server", Value::Null),
            ("category", Value::Null),
            ("name", Value::Null),
            ("formerly", Value::Null),
            ("roles", json!([])),
            ("tags", json!([])),
        ] {
            if origin.get(fact).is_none() {
                origin[fact] = unknown;
            }
        }
        Ok(Explained {
            answer,
            person,
            role: role.as_str(),
            explanation,
            model,
            abilities,
        })
    }
}

/// The model of the agent in this place.
#[derive(Serialize)]
struct Thinking {
    model: String,
    source: Source,
    #[serde(skip)]
    source_in_words: &'static str,
    /// Chosen with /model, but not usable any more.
    ignored: Option<String>,
    fallback: Vec<String>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    reasoning: Option<&'static str>,
    /// The setting behind the model; absent where it was chosen with /model.
    because: Option<Cause>,
}

/// Said where nothing but the config is there.
const UNKNOWN_YET: &str =
    "tools, skills, memory and limits: told once the gateway or a chat has run in this home";

/// What the turn would get. A home without a database has no agents yet.
async fn abilities_of(
    home: &Home,
    checked: &CheckedConfig,
    settings: &Settings,
    agent: &AgentId,
    asker: &Asker,
) -> Result<Option<Abilities>, Failure> {
    if !home.database().exists() {
        return Ok(None);
    }
    let db = Db::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    let Some(agent) = registry.get(agent) else {
        return Ok(None);
    };
    let config = &checked.config;
    let found = operations::abilities::abilities(&db, config, settings, agent, asker).await?;
    Ok(Some(found))
}

fn thinking(
    config: &Config,
    agent: &AgentId,
    wanted: Option<&ModelRef>,
    settings: &Settings,
) -> Option<Thinking> {
    let spec = config.agents.iter().find(|spec| spec.id == *agent)?;
    let models = AgentModels::of(config, spec);
    let chosen = models.choose(wanted);
    let behind = models.lineup(&chosen).split_off(1);
    let because = match chosen.source {
        Source::Override => None,
        Source::Agent => cause(settings, &format!("agents.{agent}.model")),
        Source::Default => cause(settings, "default_model"),
    };
    Some(Thinking {
        because,
        model: chosen.model.to_string(),
        source: chosen.source,
        source_in_words: words::source(&chosen),
        ignored: chosen.ignored.map(|model| model.to_string()),
        fallback: behind.iter().map(ModelRef::to_string).collect(),
        temperature: models.settings.temperature,
        max_tokens: models.settings.max_tokens,
        reasoning: models.settings.reasoning.map(Reasoning::as_str),
    })
}

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match &self.because {
            Some(cause) if self.model != ModelRef::Demo.to_string() => abilities::origin(cause),
            _ => self.source_in_words.to_owned(),
        };
        write!(f, "model: {} ({origin})", self.model)?;
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

fn origin(
    names: &Names,
    key: SessionKey,
    arguments: Explain,
    asked_as: Option<PersonId>,
) -> Result<Origin, Failure> {
    let person = match &arguments.user {
        Some(text) => names
            .find_person(text)
            .map_err(|error| Failure::WrongUse(error.to_string()))?,
        None => asked_as.unwrap_or_else(|| person_of(&key)),
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
