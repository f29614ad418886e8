//! The state of each agent: its readiness, its waiting messages, and the outcomes of its last
//! turns.

use std::collections::HashMap;

use chrono::{DateTime, Local, SecondsFormat};
use rusqlite::Connection;
use serde::Serialize;

use crate::agents::Agent;
use crate::answering::Faltering;
use crate::config::ModelRef;
use crate::domain::{AgentId, AgentUid};
use crate::models::{ModelError, Models};
use crate::records::agent_pauses::{self, Pause};
use crate::records::inbox::{self, Waiting};
use crate::records::turn_log::{self, Failure};
use crate::routing::{Table, pins, route};

/// The most waiting messages to look at; more are not counted.
const MOST_WAITING: u32 = 1_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The health of an agent. The JSON form always has the same fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Form")]
pub(crate) struct Health {
    pub(crate) agent: AgentId,
    pub(crate) state: State,
    /// The time of the last answer.
    pub(crate) last_success: Option<i64>,
    pub(crate) last_error: Option<LastError>,
    /// Turns under way. Zero where no gateway runs.
    pub(crate) running: usize,
    /// Messages waiting for the agent.
    pub(crate) waiting: usize,
    /// Ended turns of the last 24 hours.
    pub(crate) turns_of_day: u64,
    /// Turns of the last 24 hours without an answer.
    pub(crate) failed_of_day: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Busy,
    /// Messages wait until a person resumes the agent.
    Paused {
        by: String,
        since: i64,
    },
    /// The next turn cannot be expected to have an answer: the last turn had none for a reason that
    /// lasts, or no model of the agent answers.
    Failing {
        why: String,
    },
}

impl State {
    /// The word in JSON.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Busy => "busy",
            State::Paused { .. } => "paused",
            State::Failing { .. } => "failing",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastError {
    pub(crate) at: i64,
    pub(crate) reason: String,
}

/// The written form.
#[derive(Serialize)]
struct Form {
    state: &'static str,
    paused_by: Option<String>,
    paused_since: Option<String>,
    failing_because: Option<String>,
    last_success: Option<String>,
    last_error: Option<String>,
    last_error_at: Option<String>,
    running: usize,
    waiting: usize,
    turns_24h: u64,
    failed_24h: u64,
}

impl From<Health> for Form {
    fn from(health: Health) -> Self {
        let name = health.state.as_str();
        let (paused, failing_because) = match health.state {
            State::Ready | State::Busy => (None, None),
            State::Paused { by, since } => (Some((by, since)), None),
            State::Failing { why } => (None, Some(why)),
        };
        let (paused_by, since) = paused.unzip();
        let (error_at, last_error) = health
            .last_error
            .map(|error| (error.at, error.reason))
            .unzip();
        Form {
            state: name,
            paused_by,
            paused_since: since.map(time),
            failing_because,
            last_success: health.last_success.map(time),
            last_error,
            last_error_at: error_at.map(time),
            running: health.running,
            waiting: health.waiting,
            turns_24h: health.turns_of_day,
            failed_24h: health.failed_of_day,
        }
    }
}

/// An agent to look at.
#[derive(Debug, Clone)]
pub(crate) struct Patient {
    pub(crate) uid: AgentUid,
    pub(crate) id: AgentId,
    pub(crate) models: Seen,
}

/// The state of an agent's models.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    /// As the gateway finds it.
    Live(Option<Faltering>),
    /// As owners were told last. The models are in the order in which they are asked.
    Told(Vec<ModelRef>),
}

impl Patient {
    /// `live` has the models of a running gateway.
    pub(crate) fn of(agent: &Agent, live: Option<&Models>) -> Self {
        let lineup = agent.models.lineup(&agent.models.choose(None));
        Patient {
            uid: agent.uid,
            id: agent.id.clone(),
            models: match live {
                Some(models) => Seen::Live(Faltering::now(models, &lineup)),
                None => Seen::Told(lineup),
            },
        }
    }

    /// Why no model of the agent answers.
    fn mute(&self, connection: &Connection) -> rusqlite::Result<Option<String>> {
        let faltering = match &self.models {
            Seen::Live(faltering) => faltering.clone(),
            Seen::Told(lineup) => Faltering::as_told(connection, lineup)?,
        };
        let lasting = faltering.filter(Faltering::is_lasting);
        Ok(lasting.map(|falters| falters.trouble.cause))
    }
}

/// The health of these agents, in their order. `running` has the turns under way of a running
/// gateway.
pub(crate) fn of(
    connection: &Connection,
    agents: &[Patient],
    table: &Table,
    running: &HashMap<AgentUid, usize>,
    now: i64,
) -> rusqlite::Result<Vec<Health>> {
    let (paused, waiting) = (agent_pauses::all(connection)?, waiting(connection, table)?);
    let day = turn_log::since(connection, now - DAY_MS)?;
    let look = |agent: &Patient| {
        let running = running.get(&agent.uid).copied().unwrap_or(0);
        let failing = turn_log::failing(connection, agent.uid, now - DAY_MS)?;
        let failing = match failing {
            Some(failure) => still_failing(connection, failure, now)?,
            None => None,
        };
        let failing = match failing {
            None => agent.mute(connection)?,
            failing => failing,
        };
        let (turns_of_day, failed_of_day) = day.get(&agent.uid).copied().unwrap_or_default();
        let error = turn_log::last_error(connection, agent.uid)?;
        Ok(Health {
            agent: agent.id.clone(),
            state: state(paused.get(&agent.uid), failing, running),
            last_success: turn_log::last_success(connection, agent.uid)?,
            last_error: error.map(|(at, reason)| LastError { at, reason }),
            running,
            // A row waits in the inbox until its turn is over.
            waiting: waiting
                .get(&agent.id)
                .map_or(0, |rows| rows.saturating_sub(running)),
            turns_of_day,
            failed_of_day,
        })
    };
    agents.iter().map(look).collect()
}

/// Failures that say nothing about the next turn.
const ABOUT_ONE_ANSWER: [&str; 3] = [
    "gave an empty answer",
    "the model's answer was cut off",
    "the conversation is longer than the model can read",
];

/// The outcome of the last turn, if the next turn would fail too: not after a limit has passed, nor
/// after the provider has answered another turn.
fn still_failing(
    connection: &Connection,
    failure: Failure,
    now: i64,
) -> rusqlite::Result<Option<String>> {
    let Failure { outcome, at, model } = failure;
    if ABOUT_ONE_ANSWER.iter().any(|about| outcome.contains(about)) {
        return Ok(None);
    }
    if let Some(passes) = ModelError::passes_after(&outcome) {
        let until = at.saturating_add(i64::try_from(passes.as_millis()).unwrap_or(i64::MAX));
        let what = ModelError::without_time(&outcome);
        return Ok((now < until).then(|| format!("{what} until {}", clock_time(until))));
    }
    // A refusal of a model says nothing about the other models of its provider.
    let is_of_model = outcome.contains("no such model") || outcome.contains("may not do this");
    let asked = match model.split_once('/') {
        Some((provider, _)) if !is_of_model => format!("{provider}/"),
        _ => model,
    };
    let answers_again = turn_log::has_answered(connection, &asked, at)?;
    Ok((!answers_again).then_some(outcome))
}

fn clock_time(at: i64) -> String {
    let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
    at.with_timezone(&Local).format("%H:%M:%S").to_string()
}

fn state(paused: Option<&Pause>, failing: Option<String>, running: usize) -> State {
    match (paused, failing) {
        (Some(pause), _) => State::Paused {
            by: pause.who().to_owned(),
            since: pause.at,
        },
        (None, Some(why)) => State::Failing { why },
        (None, None) if running > 0 => State::Busy,
        (None, None) => State::Ready,
    }
}

/// The number of waiting messages by agent, as they would be routed now.
fn waiting(connection: &Connection, table: &Table) -> rusqlite::Result<HashMap<AgentId, usize>> {
    let mut counts = HashMap::new();
    for Waiting { inbound, .. } in inbox::waiting(connection, 0, i64::MAX, MOST_WAITING)? {
        let Ok(inbound) = inbound else { continue };
        // Commands are not for the agent.
        let is_command = inbound.text.trim_start().starts_with('/');
        if is_command || inbound.extras.internal.is_some() || inbound.extras.note.is_some() {
            continue;
        }
        let settings = pins::from_chat(connection, &inbound.origin.key)?;
        let pin = settings.pin.filter(|pin| table.knows(&pin.agent));
        let agent = route(table, pin.as_ref(), &inbound.origin).agent;
        *counts.entry(agent).or_default() += 1;
    }
    Ok(counts)
}

fn time(at: i64) -> String {
    let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
    at.with_timezone(&Local)
        .to_rfc3339_opts(SecondsFormat::Secs, false)
}
