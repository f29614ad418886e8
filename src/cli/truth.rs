//! Who answers in a place, or why nobody, for verbs that tell it: `route explain` and `sessions
//! show`. Asks the functions that the gateway asks.

use std::sync::Arc;

use chrono::Local;
use rusqlite::Connection;
use serde::Serialize;

use super::Failure;
use super::json::{Named, time};
use super::names::Names;
use crate::access::{Role, Standing, people};
use crate::agents::{AgentModels, agent_rows, shown_name};
use crate::answering::{Answer, Faltering, Question, Silence, over_at, who_answers};
use crate::clock::now_ms;
use crate::commands::texts::place::{self, Reader, Wording};
use crate::commands::texts::words;
use crate::config::{Config, ModelRef};
use crate::domain::{AgentId, Origin};
use crate::home::{CheckedConfig, Home};
use crate::records::agent_pauses;
use crate::records::model_overrides;
use crate::routing::aliases::{self, Aliases};
use crate::routing::{FromChat, Visit, names, pins};
use crate::storage::Db;

/// Who answers a person in a place.
pub(super) struct Truth {
    pub(super) answer: Answer,
    /// One or two sentences.
    pub(super) told: String,
    pub(super) origin: Origin,
    pub(super) person: Named,
    pub(super) standing: Standing,
    pub(super) names: Names,
    /// Chosen with /model.
    pub(super) model: Option<ModelRef>,
}

/// `role`: asked for, instead of the person's own.
pub(super) async fn truth(
    home: &Home,
    checked: &CheckedConfig,
    mut origin: Origin,
    role: Option<Role>,
) -> Result<Truth, Failure> {
    let config = &checked.config;
    let stored = stored(home, config, &mut origin).await?;
    origin.name = origin.name.or(stored.name);
    let standing = role.map_or(stored.standing, Standing::just);
    let visit = Visit {
        access: &config.access,
        origin: &origin,
        standing: &standing,
    };
    let question = Question::said_to_the_bot(&checked.table, visit, stored.from_chat);
    let answer = who_answers(question);
    let answer = at_present(home, config, answer, visit, stored.model.as_ref()).await?;
    let person = stored.names.person(&origin.person);
    let told = tell(config, &answer, visit, &person);
    Ok(Truth {
        answer,
        told,
        person,
        standing,
        names: stored.names,
        model: stored.model,
        origin,
    })
}

/// A home without a database has granted nothing.
pub(super) async fn with_grants(
    home: &Home,
    checked: CheckedConfig,
) -> Result<CheckedConfig, Failure> {
    if !home.database().exists() {
        return Ok(checked);
    }
    let db = Db::open(&home.database()).await?;
    Ok(checked.with_grants(&db).await?)
}

/// The answer with what only the store knows: a pause, limits that are reached, models that do not
/// answer.
async fn at_present(
    home: &Home,
    config: &Arc<Config>,
    answer: Answer,
    visit: Visit<'_>,
    wanted: Option<&ModelRef>,
) -> Result<Answer, Failure> {
    let agent = answer.agent().clone();
    let spec = config.agents.iter().find(|spec| spec.id == agent);
    let (Some(spec), true) = (spec, home.database().exists()) else {
        return Ok(answer);
    };
    let models = AgentModels::of(config, spec);
    let lineup = models.lineup(&models.choose(wanted));
    let (limits, person, role) = (
        spec.limits.budget,
        visit.origin.person.clone(),
        visit.standing.with(&agent),
    );
    let (db, config) = (Db::open(&home.database()).await?, config.clone());
    let read = move |connection: &Connection| {
        let faltering = Faltering::as_told(connection, &lineup)?;
        let Some(uid) = agent_rows::uid_of(connection, &agent)? else {
            return Ok((None, None, faltering));
        };
        let over = over_at(connection, &config, (uid, limits), &person, role, now_ms())?;
        Ok((agent_pauses::of(connection, uid)?, over, faltering))
    };
    let (pause, over, faltering) = db.read(read).await?;
    let answer = answer.unless_paused(pause).within(over);
    Ok(answer.with_models(faltering))
}

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

/// `an owner`.
pub(super) fn a_role(role: Role) -> String {
    let article = if role >= Role::Admin { "an" } else { "a" };
    format!("{article} {role}")
}

/// Who answers, or why nobody, for programs.
#[derive(Serialize)]
pub(super) struct Answered {
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

impl Truth {
    pub(super) fn answered(&self) -> Answered {
        let answer = &self.answer;
        let silence = answer.silence.as_ref().map(|silence| match silence {
            Silence::PlaceClosed => "place_closed",
            Silence::NotLetIn => "not_let_in",
            Silence::PrivateChatsClosed => "private_chats_closed",
            Silence::NotAddressed => "not_addressed",
            Silence::NotForYou(_) => "not_for_you",
            Silence::Paused(_) => "paused",
            Silence::OverBudget(_) => "over_budget",
        });
        let agent = silence.is_none().then(|| self.names.agent(answer.agent()));
        Answered {
            agent,
            silence,
            needs_mention: answer.needs_mention,
            model_trouble: answer.faltering.as_ref().map(ModelTrouble::of),
            text: self.told.clone(),
        }
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
