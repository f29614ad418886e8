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
use super::truth::{self, Answered, Truth};
use super::{Failure, Outcome, data, data_json, database, meant_place, print, running_config};
use crate::access::Role;
use crate::commands::texts::words;
use crate::config::settings::Settings;
use crate::config::{Config, ModelRef};
use crate::domain::{AgentId, DiscordId, Origin, PersonId, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::operations;
use crate::operations::abilities::{Abilities, Asker};
use crate::operations::house::person_of;
use crate::operations::opening;
use crate::operations::thinking::{Thinking, thinking};
use crate::routing::{self, Explanation};

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Tell who answers in a place, or why nobody does
    Explain(Explain),
}

#[derive(Args)]
pub(super) struct Explain {
    /// Name or key of the place, such as Garden, Family/Garden or the key that
    /// /whoami prints
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
    /// Show rules without a binding too, and tools, skills, memory and limits of
    /// a turn
    #[arg(long)]
    all: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Verb::Explain(arguments): Verb) -> Outcome {
    let checked = truth::with_grants(&home, running_config::checked(&home).await?).await?;
    let (json, all) = (arguments.json, arguments.all);
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
        origin(&checked.config, &known, key, arguments, person)?,
        role,
    )
    .await?;
    let Truth { answer, origin, .. } = &truth;
    let mut explanation = routing::explain(&checked.table, answer.resolved.pin.as_ref(), origin);
    explanation.route = answer.resolved.route.clone();
    explanation.is_silent = answer.silence.is_some();
    let settings = running_config::settings(&home).await?;
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
    let explanation = match all {
        true => explanation,
        false => explanation.in_short(),
    };
    let columns = print::width().map_or(usize::MAX, usize::from);
    print::wrapped(&explanation.within(columns));
    data(format_args!(""));
    if explanation.is_silent {
        data(format_args!("{}", would_have(&truth)));
    }
    data(format_args!(
        "{}",
        model
            .iter()
            .map(|model| InWords(model).to_string())
            .collect::<String>()
    ));
    match &abilities {
        _ if !all => print::wrapped(MORE),
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
    let db = database::open(&home.database()).await?;
    Ok(Names::load(&db, Some(config)).await?)
}

/// The person and role that the answer is for.
fn asked_for(truth: &Truth) -> String {
    let role = truth.standing.with(truth.answer.agent());
    if truth.origin.person.is_nobody() {
        format!(
            "Asked for {}; --as names a role or a person.",
            role.with_article()
        )
    } else {
        format!(
            "Asked for {}, {}.",
            truth.person.text(),
            role.with_article()
        )
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

/// The rest would push the answer off the screen.
const MORE: &str =
    "--all adds every rule that was looked for, and tools, skills, memory and limits.";

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
    let db = database::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    let Some(agent) = registry.get(agent) else {
        return Ok(None);
    };
    let config = &checked.config;
    let found = operations::abilities::abilities(&db, config, settings, agent, asker).await?;
    Ok(Some(found))
}

/// The model for people.
struct InWords<'a>(&'a Thinking);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thinking = self.0;
        let is_demo = thinking.model == ModelRef::Demo.to_string();
        let origin = match &thinking.because {
            Some(cause) if !is_demo => abilities::origin(cause),
            _ => words::source_of(thinking.source, is_demo).to_owned(),
        };
        write!(f, "model: {} ({origin})", thinking.model)?;
        let settings = [
            (
                "not used",
                thinking
                    .ignored
                    .as_ref()
                    .map(|model| format!("{model}, chosen with /model but not there any more")),
            ),
            (
                "fallback",
                (!thinking.fallback.is_empty()).then(|| thinking.fallback.join(", ")),
            ),
            (
                "temperature",
                thinking
                    .temperature
                    .map(|temperature| temperature.to_string()),
            ),
            (
                "max_tokens",
                thinking.max_tokens.map(|tokens| tokens.to_string()),
            ),
            ("reasoning", thinking.reasoning.map(str::to_owned)),
        ];
        settings
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .try_for_each(|(name, value)| write!(f, "\n{name}: {value}"))
    }
}

fn origin(
    config: &Config,
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
    // A person's messages in such a group are in a conversation of their own.
    let has_own = !person.is_nobody() && opening::is_of_members(config, &key);
    let own = has_own.then(|| key.of_member(&person));
    let key = own.flatten().unwrap_or(key);
    Ok(Origin {
        roles: arguments.roles.into_iter().map(DiscordId).collect(),
        server: arguments.server.map(DiscordId),
        category: arguments.category.map(DiscordId),
        name: arguments.name,
        tags: arguments.tags,
        ..Origin::new(key, person)
    })
}
