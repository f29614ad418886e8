//! `parlor route explain`: who answers in a place, or why nobody, then every rule that was tried.
//! Asks the function the gateway asks.

use std::fmt;
use std::sync::Arc;

use chrono::Local;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

use super::json::Named;
use super::names::Names;
use super::{Failure, Outcome, data, data_json};
use crate::access::{Role, Standing, people};
use crate::agents::{AgentModels, Source, agent_rows, shown_name};
use crate::answering::{Answer, Question, Silence, over_at, who_answers};
use crate::clock::now_ms;
use crate::commands::texts::place::{self, Reader, Wording};
use crate::commands::texts::words;
use crate::config::{Config, ModelRef, Reasoning, Secrets};
use crate::domain::{AgentId, DiscordId, Origin, PersonId, SessionKey};
use crate::home::{CheckedConfig, Home};
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
    /// The role to ask for: guest, member, admin or owner; the person's own if left out
    #[arg(long = "as", value_name = "ROLE")]
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
    let (json, role) = (arguments.json, role(arguments.role.as_deref())?);
    let mut origin = origin(arguments)?;
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
    let answer = answer.within(over);
    let person = stored.names.person(&origin.person);
    let told = tell(&checked.config, &answer, visit, &person);
    let pin = answer.resolved.pin.as_ref();
    let mut explanation = routing::explain(&checked.table, pin, &origin);
    explanation.route = answer.resolved.route.clone();
    let model = thinking(
        &checked.config,
        &explanation.route.agent,
        stored.model.as_ref(),
    );
    if json {
        data_json(&Explained::new(
            &explanation,
            Answered::new(&answer, told, &stored.names),
            (!origin.person.is_nobody()).then_some(person),
            standing.with(answer.agent()),
            model,
        )?)?;
    } else {
        data(format_args!(
            "{told}\n{}\n",
            asked_for(&person, visit, &answer)
        ));
        data(format_args!("{explanation}"));
        data(format_args!(
            "{}",
            model.iter().map(Thinking::to_string).collect::<String>()
        ));
    }
    Ok(())
}

fn role(text: Option<&str>) -> Result<Option<Role>, Failure> {
    let parsed = text.map(|text| {
        Role::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| {
                Failure::WrongUse(format!(
                    "`{text}` is not a role; the roles are guest, member, admin and owner"
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
}

/// Who answers, or why nobody.
#[derive(Serialize)]
struct Answered {
    /// Absent: nobody answers.
    agent: Option<Named>,
    /// Absent: the agent answers.
    silence: Option<&'static str>,
    needs_mention: bool,
    text: String,
}

impl Answered {
    fn new(answer: &Answer, text: String, names: &Names) -> Self {
        let silence = answer.silence.as_ref().map(|silence| match silence {
            Silence::PlaceClosed => "place_closed",
            Silence::NotLetIn => "not_let_in",
            Silence::PrivateChatsClosed => "private_chats_closed",
            Silence::NotAddressed => "not_addressed",
            Silence::NotForYou(_) => "not_for_you",
            Silence::OverBudget(_) => "over_budget",
        });
        let agent = silence.is_none().then(|| names.agent(answer.agent()));
        Answered {
            agent,
            silence,
            needs_mention: answer.needs_mention,
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
    ) -> Result<Self, serde_json::Error> {
        let mut explanation = serde_json::to_value(explanation)?;
        if person.is_none() {
            explanation["origin"]["person"] = Value::Null;
        }
        Ok(Explained {
            answer,
            person,
            role: role.as_str(),
            explanation,
            model,
        })
    }
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
                "`{text}` is not a person's id, which looks like telegram:12345678"
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
