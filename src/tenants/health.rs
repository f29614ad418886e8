//! The state of each agent: whether it answers, what waits for it, and how its last turns ended.

use std::collections::HashMap;

use chrono::{DateTime, Local, SecondsFormat};
use rusqlite::Connection;
use serde::Serialize;

use crate::domain::{AgentId, AgentUid};
use crate::records::agent_pauses::{self, Pause};
use crate::records::inbox::{self, Waiting};
use crate::records::turn_log::{self, Failure};
use crate::routing::{Table, pins, route};

/// Waiting messages that are looked at; more are not counted.
const MOST_WAITING: u32 = 1_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The health of an agent. As JSON it always has the same fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Form")]
pub(crate) struct Health {
    pub(crate) agent: AgentId,
    pub(crate) state: State,
    /// When it last answered.
    pub(crate) last_success: Option<i64>,
    pub(crate) last_error: Option<LastError>,
    /// Turns under way. Zero where no gateway runs.
    pub(crate) running: usize,
    /// Messages that wait for the agent.
    pub(crate) waiting: usize,
    /// Turns that ended in the last 24 hours.
    pub(crate) turns_of_day: u64,
    /// Those of them without an answer.
    pub(crate) failed_of_day: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Busy,
    /// Messages wait until somebody resumes it.
    Paused {
        by: String,
        since: i64,
    },
    /// The last turn had no answer.
    Failing {
        why: String,
    },
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
        let (name, paused, failing_because) = match health.state {
            State::Ready => ("ready", None, None),
            State::Busy => ("busy", None, None),
            State::Paused { by, since } => ("paused", Some((by, since)), None),
            State::Failing { why } => ("failing", None, Some(why)),
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

fn state(paused: Option<&Pause>, failing: Option<Failure>, running: usize) -> State {
    match (paused, failing) {
        (Some(pause), _) => State::Paused {
            by: pause.who().to_owned(),
            since: pause.at,
        },
        (None, Some(Failure(why))) => State::Failing { why },
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
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}
