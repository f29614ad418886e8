//! The state of the house: platforms, agents, work, money, config, errors.

use std::sync::Arc;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::budgets::{self, Account, Holder};
use super::work::{self, Listed, ListedStage};
use super::{ConfigText, Live, Operations, Overview, Refusal};
use crate::agents::Agent;
use crate::channels::Hearing;
use crate::clock::now_ms;
use crate::config::Money;
use crate::delivery::held::{self, Held};
use crate::domain::{AgentId, Platform, SessionKey};
use crate::records::approvals;
use crate::records::ledger::{self, Spender};
use crate::records::pauses::{self, Work};
use crate::records::turn_log;
use crate::tenants::health::{Health, State};
use crate::turn::budget::Span;

/// How many of the newest errors are shown.
const ERRORS_SHOWN: u32 = 5;
/// Older errors are no news.
const ERRORS_SINCE_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) at: i64,
    /// None where no gateway runs.
    pub(crate) gateway: Option<GatewayState>,
    pub(crate) agents: Vec<AgentState>,
    /// The limits of the house and of agents.
    pub(crate) limits: Vec<Account>,
    /// Since when and by whom background work is paused.
    pub(crate) paused: Option<(i64, String)>,
    /// Turns under way and waiting messages.
    pub(crate) work: Vec<Listed>,
    /// Calls of tools that wait for a person's yes or no.
    #[serde(default)]
    pub(crate) approvals: u64,
    pub(crate) letters: Letters,
    /// What has not arrived, by place.
    pub(crate) held: Vec<(SessionKey, Held)>,
    /// The newest first.
    pub(crate) errors: Vec<ErrorSeen>,
    /// Errors of the last day, also those that are not shown.
    #[serde(default)]
    pub(crate) all_errors: i64,
}

/// Facts of a running gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GatewayState {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) started_at: i64,
    pub(crate) platforms: Vec<PlatformState>,
    pub(crate) config: ConfigState,
    /// Why nothing can be stored now.
    pub(crate) store: Option<String>,
    /// Why the dashboard and the web chat cannot be reached.
    #[serde(default)]
    pub(crate) listener: Option<String>,
    /// The process is a `parlor chat` or `parlor ask`.
    #[serde(default)]
    pub(crate) is_chat: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlatformState {
    pub(crate) platform: Platform,
    pub(crate) state: Link,
    /// The beginning of the state.
    pub(crate) since: Option<i64>,
    pub(crate) last_update_at: Option<i64>,
    /// Why it is down.
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Link {
    Connecting,
    Connected,
    Down,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfigState {
    /// When the running config was read.
    pub(crate) read_at: i64,
    /// The file on disk is another.
    pub(crate) differs: bool,
    /// Why the file on disk does not count.
    pub(crate) problem: Option<String>,
}

impl ConfigState {
    /// The line of the first problem, as the report points at it.
    pub(crate) fn line(&self) -> Option<u32> {
        let (_, place) = self.problem.as_ref()?.split_once("config.toml:")?;
        let digits: String = place.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }
}

/// Whether an agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    Well,
    Paused,
    /// The next turn cannot be expected to have an answer.
    Failing,
}

impl Condition {
    fn of(health: &[Health], agent: &AgentId) -> Self {
        let own = health.iter().find(|health| health.agent == *agent);
        match own.map(|health| &health.state) {
            Some(State::Paused { .. }) => Condition::Paused,
            Some(State::Failing { .. }) => Condition::Failing,
            Some(State::Ready | State::Busy) | None => Condition::Well,
        }
    }
}

fn failing(health: &[Health], agent: &AgentId) -> Option<String> {
    let own = health.iter().find(|health| health.agent == *agent)?;
    match &own.state {
        State::Failing { why } => Some(why.clone()),
        State::Ready | State::Busy | State::Paused { .. } => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentState {
    pub(crate) id: AgentId,
    pub(crate) running: usize,
    pub(crate) condition: Condition,
    /// Why the next turn cannot be expected to have an answer.
    pub(crate) failing: Option<String>,
    pub(crate) tokens_today: u64,
    pub(crate) cost_today: Money,
    /// A model without a price was used, so the cost is not all.
    pub(crate) unpriced_today: bool,
    pub(crate) tokens_per_day: Option<u64>,
    pub(crate) cost_per_day: Option<Money>,
    /// A limit of the day or the month has nothing left.
    pub(crate) is_over: bool,
    /// The last turn without an answer.
    pub(crate) last_error: Option<(i64, String)>,
}

/// Messages on their way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Letters {
    /// Waiting for more than a minute.
    pub(crate) slow: i64,
    pub(crate) failed: i64,
    /// Where delivery is off.
    pub(crate) kept: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ErrorSeen {
    pub(crate) at: i64,
    pub(crate) agent: Option<AgentId>,
    pub(crate) place: Option<SessionKey>,
    pub(crate) reason: String,
}

impl Status {
    /// Errors of the last day that are not shown.
    pub(crate) fn more_errors(&self) -> i64 {
        let shown = i64::try_from(self.errors.len()).unwrap_or(i64::MAX);
        self.all_errors.saturating_sub(shown).max(0)
    }

    /// Whether something is down.
    pub(crate) fn is_down(&self) -> bool {
        match &self.gateway {
            None => true,
            Some(gateway) => {
                let mut platforms = gateway.platforms.iter();
                platforms.any(|platform| platform.state == Link::Down)
                    || gateway.config.problem.is_some()
                    || gateway.store.is_some()
                    || gateway.listener.is_some()
            }
        }
    }
}

pub(crate) async fn status(operations: &Operations) -> Result<Status, Refusal> {
    let now = now_ms();
    let gateway = operations
        .live
        .as_ref()
        .map(|live| gateway(operations, live));
    let work = work::queue(operations, None).await?;
    let snapshot = operations.snapshot().await?;
    let agents: Vec<_> = snapshot.registry.all().to_vec();
    let running = work.clone();
    let Overview {
        troubles,
        health,
        turns,
        ..
    } = operations.overview(&snapshot).await?;
    let config = snapshot.config.clone();
    let read = move |connection: &Connection| {
        let limits = budgets::of_house(connection, &config, now)?;
        let paused = pauses::get(connection, Work::Background)?;
        let state = |agent: &Arc<Agent>| {
            let spent = ledger::today(connection, &Spender::Agent(agent.uid), now)?;
            let own = || {
                let is_own = |limit: &&Account| limit.holder == Holder::Agent(agent.id.clone());
                limits.iter().filter(is_own)
            };
            let today = own().find(|limit| limit.span == Span::Day);
            let turns = running.iter().filter(|work| {
                work.stage == ListedStage::Running && work.agent.as_ref() == Some(&agent.id)
            });
            Ok(AgentState {
                id: agent.id.clone(),
                running: turns.count(),
                condition: Condition::of(&health, &agent.id),
                failing: failing(&health, &agent.id),
                tokens_today: spent.tokens,
                cost_today: spent.cost,
                unpriced_today: ledger::has_unpriced(connection, agent.uid, now)?,
                tokens_per_day: today.and_then(|today| today.caps.tokens),
                cost_per_day: today.and_then(|today| today.caps.cost),
                is_over: own().any(Account::is_over),
                last_error: turn_log::last_error(connection, agent.uid)?,
            })
        };
        let states = agents
            .iter()
            .map(state)
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let errors = errors(connection, &agents, now)?;
        let held = held::everywhere(connection, now)?;
        let open = approvals::open(connection)?;
        Ok((states, limits, paused, errors, held, open))
    };
    let (agents, limits, paused, errors, held, open) = operations.db.read(read).await?;
    Ok(Status {
        at: now,
        gateway,
        agents,
        limits,
        paused: paused.map(|by| (by.at, by.name.unwrap_or(by.id))),
        work,
        approvals: open,
        letters: Letters {
            slow: troubles.waiting,
            failed: troubles.failed,
            kept: troubles.kept,
        },
        held: held.into_iter().collect(),
        errors,
        all_errors: turns.failed,
    })
}

fn errors(
    connection: &Connection,
    agents: &[Arc<Agent>],
    now: i64,
) -> rusqlite::Result<Vec<ErrorSeen>> {
    let errors = turn_log::errors(connection, now - ERRORS_SINCE_MS, ERRORS_SHOWN)?;
    let errors = errors.into_iter().map(|error| ErrorSeen {
        at: error.at,
        agent: agents
            .iter()
            .find(|agent| agent.uid.to_string() == error.agent)
            .map(|agent| agent.id.clone()),
        place: error.place.parse().ok(),
        reason: error.reason,
    });
    Ok(errors.collect())
}

pub(super) fn gateway(operations: &Operations, live: &Live) -> GatewayState {
    let channels = live.delivery.channels();
    let listener = live.entrance.trouble();
    let platforms = channels.iter().map(|channel| {
        let platform = channel.abilities().platform;
        let hearing = channel.health().map(crate::channels::Health::hearing);
        let refusal = match platform {
            Platform::Web => listener.clone(),
            _ => live.pulse.refusal(platform),
        };
        let (state, since, reason) = match (refusal, hearing) {
            (Some(reason), _) => (Link::Down, None, Some(reason)),
            (None, Some(Hearing::NotYet)) => (Link::Connecting, None, None),
            (None, Some(Hearing::Deaf { since, reason })) => {
                (Link::Down, Some(since), Some(reason))
            }
            (None, Some(Hearing::Since(since))) => (Link::Connected, Some(since), None),
            // The terminal has no connection that could break.
            (None, None) => (Link::Connected, Some(live.started_at), None),
        };
        PlatformState {
            platform,
            state,
            since,
            last_update_at: live.pulse.last_update(platform),
            reason,
        }
    });
    GatewayState {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: live.started_at,
        platforms: platforms.collect(),
        listener,
        config: config(operations, live),
        store: operations.db.trouble().map(|trouble| trouble.to_string()),
        is_chat: live.is_chat,
    }
}

/// The running config beside the file.
pub(super) fn config(operations: &Operations, live: &Live) -> ConfigState {
    let seen = live.pulse.config();
    let on_disk = ConfigText::read(&operations.home);
    let table = |text: Option<ConfigText>| text.map(|text| text.table);
    ConfigState {
        read_at: seen.read_at,
        differs: table(on_disk) != table(seen.text),
        problem: seen.problem,
    }
}
