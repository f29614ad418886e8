//! Who answers in a place, or why nobody, for verbs that tell it: `route explain` and `sessions
//! show`. Asks the functions that the gateway asks.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::Failure;
use super::database;
use super::json::{Named, time};
use super::names::Names;
use super::operator::{Called, Line};
use crate::access::{Role, Standing, people};
use crate::agents::{AgentModels, agent_rows};
use crate::answering::{Answer, Faltering, Obstacle, Question, Silence, over_at, who_answers};
use crate::channels::discord::levels;
use crate::clock::now_ms;
use crate::commands::tell_operator;
use crate::config::{Config, ModelRef};
use crate::domain::{Origin, Platform};
use crate::home::{CheckedConfig, Home, LockError};
use crate::operations::present::{Asked, Present};
use crate::operations::{Reply, Request};
use crate::records::agent_pauses;
use crate::records::model_overrides;
use crate::routing::aliases::{self, Aliases};
use crate::routing::{FromChat, Visit, names, pins};

/// A gateway that works tells at once what it knows.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

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
    let told = tell_operator((config, &checked.table), &answer, visit, &stored.names);
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
    let db = database::open(&home.database()).await?;
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
    let asked = Asked {
        place: visit.origin.key.clone(),
        person: (!person.is_nobody()).then(|| person.clone()),
        role,
        agent: agent.clone(),
        lineup: lineup.clone(),
        needs_mention: answer.needs_mention,
    };
    let (db, config) = (database::open(&home.database()).await?, config.clone());
    let place = visit.origin.key.clone();
    let read = move |connection: &Connection| {
        let now = now_ms();
        let uid = agent_rows::uid_of(connection, &agent)?;
        let (pause, over) = match uid {
            Some(uid) => (
                agent_pauses::of(connection, uid)?,
                over_at(connection, &config, (uid, limits), &person, role, now)?,
            ),
            None => (None, None),
        };
        let stored = Present {
            over,
            faltering: Faltering::as_told(connection, &lineup)?,
            obstacles: Obstacle::stored(connection, &place)?,
        };
        let door = people::at_the_door(connection, &person, now)?;
        Ok((pause, door, stored))
    };
    let (pause, door, mut present) = db.read(read).await?;
    match Live::of(home, asked).await {
        Live::Gateway(live) => {
            let Present {
                over,
                faltering,
                obstacles,
            } = *live;
            present.obstacles.extend(obstacles);
            (present.over, present.faltering) = (over, faltering);
        }
        Live::NoGateway => present.obstacles.push(Obstacle::NoGateway),
        Live::Frozen(pid) => present.obstacles.push(Obstacle::Frozen { pid }),
        Live::Unknown => {}
    }
    let answer = answer.at_the_door(door).unless_paused(pause);
    let answer = answer.within(present.over).with_models(present.faltering);
    Ok(answer.behind(present.obstacles))
}

/// What a running gateway says about a place.
enum Live {
    Gateway(Box<Present>),
    NoGateway,
    /// It runs as this process and does not answer.
    Frozen(String),
    /// It is another Parlor, or the place needs none.
    Unknown,
}

impl Live {
    async fn of(home: &Home, asked: Asked) -> Self {
        // `parlor chat` answers at the terminal by itself.
        if asked
            .place
            .platform()
            .is_none_or(|it| it == Platform::Local)
        {
            return Live::Unknown;
        }
        let mut line = match Live::call(home).await {
            Ok(Called::Line(line)) => line,
            Ok(Called::Nobody) if !home.is_running() => return Live::NoGateway,
            Ok(Called::Nobody | Called::Silence) => return Live::silent(home),
            Err(_) => return Live::Unknown,
        };
        let asked = line.ask(Request::Present(Box::new(asked)));
        match timeout(PATIENCE, asked).await {
            Ok(Ok(Ok(Reply::Present(Some(present))))) => Live::Gateway(present),
            Ok(_) => Live::Unknown,
            Err(_) => Live::silent(home),
        }
    }

    /// A gateway that has just begun is waited for.
    async fn call(home: &Home) -> Result<Called, Failure> {
        let patience = Instant::now() + PATIENCE;
        loop {
            match Line::call(home).await? {
                Called::Nobody if home.is_running() && Instant::now() < patience => {
                    sleep(LOOK_AGAIN).await;
                }
                called => return Ok(called),
            }
        }
    }

    fn silent(home: &Home) -> Self {
        match home.held() {
            LockError::Held { pid, .. } => Live::Frozen(pid),
            _ => Live::Unknown,
        }
    }
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
    /// What keeps answers from the place at present, the strongest first.
    obstacles: Vec<&'static str>,
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
        let silence = answer.silence.as_ref().map(Silence::as_str);
        let agent = silence.is_none().then(|| self.names.agent(answer.agent()));
        Answered {
            agent,
            silence,
            needs_mention: answer.needs_mention,
            model_trouble: answer.faltering.as_ref().map(ModelTrouble::of),
            obstacles: answer.obstacles.iter().map(kind).collect(),
            text: self.told.clone(),
        }
    }
}

fn kind(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::NoGateway => "no_gateway",
        Obstacle::Frozen { .. } => "frozen",
        Obstacle::NotStored { .. } => "not_stored",
        Obstacle::Disconnected { .. } => "disconnected",
        Obstacle::Barred { .. } => "barred",
        Obstacle::TooFast { .. } => "too_fast",
        Obstacle::AskedToWait { .. } => "asked_to_wait",
        Obstacle::NotSent { .. } => "not_sent",
        Obstacle::Undelivered { .. } => "undelivered",
        Obstacle::PrivacyMode => "privacy_mode",
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
    let db = database::open(&home.database()).await?;
    Aliases::new(db.read(aliases::load).await?).follow(origin);
    db.read(levels::all).await?.complete(origin);
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
