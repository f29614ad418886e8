//! `parlor route explain`: who answers in a place, or why nobody, then every rule that was tried.
//! Then model, tools, skills, memory and limits of a turn there. Asks the functions that a turn
//! asks.

mod abilities;

use std::fmt;
use std::sync::Arc;

use chrono::Local;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::json::{Named, time};
use super::names::Names;
use super::{Failure, Outcome, data, data_json, print};
use crate::access::{Role, Standing, people};
use crate::agents::{AgentModels, Source, agent_rows, shown_name};
use crate::answering::{Answer, Faltering, Question, Silence, over_at, who_answers};
use crate::clock::now_ms;
use crate::commands::texts::place::{self, Reader, Wording};
use crate::commands::texts::words;
use crate::config::settings::Settings;
use crate::config::{Config, ModelRef, Reasoning, Secrets};
use crate::domain::{AgentId, DiscordId, Origin, PersonId, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::operations;
use crate::operations::abilities::{Abilities, Asker, Cause, cause};
use crate::operations::house::person_of;
use crate::records::agent_pauses::{self, Pause};
use crate::records::model_overrides;
use crate::routing::aliases::{self, Aliases};
use crate::routing::{self, Explanation, FromChat, Visit, names, pins};
use crate::storage::Db;
use crate::turn::budget::Over;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Tell who answers in a place, or why nobody does
    Explain(Explain),
}

#[derive(Args)]
pub(super) struct Explain {
    /// A session key, as /whoami prints it
    key: String,
    /// Who writes, such as telegram:12345678
    #[arg(long, value_name = "PERSON")]
    user: Option<String>,
    /// A role to ask for (guest, member, admin or owner), or a person; the person's own role if left
    /// out
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
    let checked = with_grants(&home, CheckedConfig::load(&home, Secrets::WherePresent)?).await?;
    let json = arguments.json;
    let (role, person) = match asked_as(arguments.role.as_deref())? {
        Some(As::Role(role)) => (Some(role), None),
        Some(As::Person(person)) => (None, Some(person)),
        None => (None, None),
    };
    let mut origin = origin(arguments, person)?;
    let stored = stored(&home, &checked.config, &mut origin).await?;
    origin.name = origin.name.or(stored.name);
    let standing = role.map_or(stored.standing, Standing::just);
    let visit = Visit {
        access: &checked.config.access,
        origin: &origin,
        standing: &standing,
    };
    let question = Question::said_to_the_bot(&checked.table, visit, stored.from_chat);
    let answer = who_answers(question);
    let over = over(&home, &checked.config, &answer, visit).await?;
    let faltering = faltering(&home, &checked.config, &answer, stored.model.as_ref()).await?;
    let pause = pause(&home, answer.agent()).await?;
    let answer = answer.unless_paused(pause).within(over);
    let answer = answer.with_models(faltering);
    let person = stored.names.person(&origin.person);
    let told = tell(&checked.config, &answer, visit, &person);
    let pin = answer.resolved.pin.as_ref();
    let mut explanation = routing::explain(&checked.table, pin, &origin);
    explanation.route = answer.resolved.route.clone();
    let settings = super::config::settings(&home)?;
    let model = thinking(
        &checked.config,
        &explanation.route.agent,
        stored.model.as_ref(),
        &settings,
    );
    let asker = Asker {
        person: origin.person.clone(),
        role: standing.with(answer.agent()),
        place: origin.key.clone(),
    };
    let abilities = abilities_of(&home, &checked, &settings, answer.agent(), &asker).await?;
    if json {
        data_json(&Explained::new(
            &explanation,
            Answered::new(&answer, told, &stored.names),
            (!origin.person.is_nobody()).then_some(person),
            asker.role,
            model,
            abilities,
        )?)?;
    } else {
        print::wrapped(&format!("{told}\n{}", asked_for(&person, visit, &answer)));
        data(format_args!(""));
        data(format_args!("{explanation}"));
        data(format_args!(
            "{}",
            model.iter().map(Thinking::to_string).collect::<String>()
        ));
        match &abilities {
            Some(abilities) => print::wrapped(&abilities::told(abilities)),
            None => data(format_args!("{UNKNOWN_YET}")),
        }
    }
    Ok(())
}

/// Whom `--as` means.
enum As {
    Role(Role),
    Person(PersonId),
}

fn asked_as(text: Option<&str>) -> Result<Option<As>, Failure> {
    let parsed = text.map(|text| {
        let role = text.parse().map(As::Role).ok();
        let person = || text.parse().map(As::Person).ok();
        role.or_else(person).ok_or_else(|| {
            Failure::WrongUse(format!(
                "`{text}` is neither a role (guest, member, admin or owner) nor a person's id, which looks like telegram:12345678"
            ))
        })
    });
    parsed.transpose()
}

/// The truth about the place, in a sentence or two.
fn tell(config: &Config, answer: &Answer, visit: Visit<'_>, person: &Named) -> String {
    let origin = visit.origin;
    let name = |id: &AgentId| {
        let spec = config.agents.iter().find(|spec| spec.id == *id);
        spec.map_or_else(|| id.to_string(), shown_name)
    };
    let about = if origin.person.is_nobody() {
        a_role(visit.standing.role())
    } else {
        person.text()
    };
    let place = Named::new(&origin.key, words::name(origin));
    let wording = Wording {
        here: format!("in {}", place.text()),
        this: format!("this {}", words::kind(&origin.key)),
        reader: Reader::Operator { about: &about },
        label: &name,
        name: &name,
    };
    place::tell(answer, &wording, &Local)
}

/// A home without a database has granted nothing.
async fn with_grants(home: &Home, checked: CheckedConfig) -> Result<CheckedConfig, Failure> {
    if !home.database().exists() {
        return Ok(checked);
    }
    let db = Db::open(&home.database()).await?;
    Ok(checked.with_grants(&db).await?)
}

/// The person and role that the answer is for.
fn asked_for(person: &Named, visit: Visit<'_>, answer: &Answer) -> String {
    let role = visit.standing.with(answer.agent());
    if visit.origin.person.is_nobody() {
        format!(
            "Asked for {}; --user names a person, --as a role.",
            a_role(role)
        )
    } else {
        format!("Asked for {}, {}.", person.text(), a_role(role))
    }
}

fn a_role(role: Role) -> String {
    let article = if role >= Role::Admin { "an" } else { "a" };
    format!("{article} {role}")
}

/// Who paused the agent, if it is paused.
async fn pause(home: &Home, agent: &AgentId) -> Result<Option<Pause>, Failure> {
    if !home.database().exists() {
        return Ok(None);
    }
    let (db, agent) = (Db::open(&home.database()).await?, agent.clone());
    let read = move |connection: &rusqlite::Connection| {
        let uid = agent_rows::uid_of(connection, &agent)?;
        uid.map_or(Ok(None), |uid| agent_pauses::of(connection, uid))
    };
    Ok(db.read(read).await?)
}

/// The limit of the day that is reached.
async fn over(
    home: &Home,
    config: &Arc<Config>,
    answer: &Answer,
    visit: Visit<'_>,
) -> Result<Option<Over>, Failure> {
    let agent = answer.agent().clone();
    let Some(spec) = config.agents.iter().find(|spec| spec.id == agent) else {
        return Ok(None);
    };
    if !home.database().exists() {
        return Ok(None);
    }
    let (limits, person, role) = (
        spec.limits.budget,
        visit.origin.person.clone(),
        visit.standing.with(&agent),
    );
    let config = config.clone();
    let db = Db::open(&home.database()).await?;
    let read = move |connection: &rusqlite::Connection| {
        let Some(uid) = agent_rows::uid_of(connection, &agent)? else {
            return Ok(None);
        };
        over_at(connection, &config, (uid, limits), &person, role, now_ms())
    };
    Ok(db.read(read).await?)
}

/// What the gateway found when it last asked the agent's models.
async fn faltering(
    home: &Home,
    config: &Config,
    answer: &Answer,
    wanted: Option<&ModelRef>,
) -> Result<Option<Faltering>, Failure> {
    let spec = config.agents.iter().find(|spec| spec.id == *answer.agent());
    let (Some(spec), true) = (spec, home.database().exists()) else {
        return Ok(None);
    };
    let models = AgentModels::of(config, spec);
    let lineup = models.lineup(&models.choose(wanted));
    let db = Db::open(&home.database()).await?;
    let read = move |connection: &rusqlite::Connection| Faltering::as_told(connection, &lineup);
    Ok(db.read(read).await?)
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

/// Who answers, or why nobody.
#[derive(Serialize)]
struct Answered {
    /// Absent: nobody answers.
    agent: Option<Named>,
    /// Absent: the agent answers.
    silence: Option<&'static str>,
    needs_mention: bool,
    /// Absent: the model answered when it was last asked.
    model_trouble: Option<ModelTrouble>,
    text: String,
}

/// A model that refuses, or is out of reach.
#[derive(Serialize)]
struct ModelTrouble {
    model: String,
    since: String,
    cause: String,
    /// A fallback that answers meanwhile.
    instead: Option<String>,
}

impl ModelTrouble {
    fn of(falters: &Faltering) -> Self {
        ModelTrouble {
            model: falters.model.to_string(),
            since: time(falters.trouble.since),
            cause: falters.trouble.cause.clone(),
            instead: falters.instead.as_ref().map(ModelRef::to_string),
        }
    }
}

impl Answered {
    fn new(answer: &Answer, text: String, names: &Names) -> Self {
        let silence = answer.silence.as_ref().map(|silence| match silence {
            Silence::PlaceClosed => "place_closed",
            Silence::NotLetIn => "not_let_in",
            Silence::PrivateChatsClosed => "private_chats_closed",
            Silence::NotAddressed => "not_addressed",
            Silence::NotForYou(_) => "not_for_you",
            Silence::Paused(_) => "paused",
            Silence::OverBudget(_) => "over_budget",
        });
        let agent = silence.is_none().then(|| names.agent(answer.agent()));
        Answered {
            agent,
            silence,
            needs_mention: answer.needs_mention,
            model_trouble: answer.faltering.as_ref().map(ModelTrouble::of),
            text,
        }
    }
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

fn origin(arguments: Explain, asked_as: Option<PersonId>) -> Result<Origin, Failure> {
    let key: SessionKey = arguments
        .key
        .parse()
        .map_err(|error| Failure::WrongUse(format!("{error}")))?;
    let person = match &arguments.user {
        Some(text) => text.parse().map_err(|()| {
            Failure::WrongUse(format!(
                "`{text}` is not a person's id, which looks like telegram:12345678"
            ))
        })?,
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

/// The settings, name and model of a place in the store.
struct Stored {
    standing: Standing,
    from_chat: FromChat,
    names: Names,
    name: Option<String>,
    model: Option<ModelRef>,
}

/// A home without a database knows nothing.
async fn stored(home: &Home, config: &Arc<Config>, origin: &mut Origin) -> Result<Stored, Failure> {
    if !home.database().exists() {
        return Ok(Stored {
            standing: Standing::of(&config.access, &origin.person, false),
            from_chat: FromChat::default(),
            names: Names::default(),
            name: None,
            model: None,
        });
    }
    let db = Db::open(&home.database()).await?;
    Aliases::new(db.read(aliases::load).await?).follow(origin);
    let names = Names::load(&db, Some(config)).await?;
    let (key, person, config) = (origin.key.clone(), origin.person.clone(), config.clone());
    let read = db.read(move |connection| {
        Ok(Stored {
            standing: people::standing(connection, &config.access, &person)?,
            from_chat: pins::from_chat(connection, &key)?,
            names,
            name: names::load(connection, &key)?,
            model: model_overrides::load(connection, &key)?,
        })
    });
    Ok(read.await?)
}
