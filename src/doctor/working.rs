//! Agents without answers in spite of working models: paused agents with waiting messages, and
//! agents whose limit is used up.

use std::collections::HashMap;

use rusqlite::Connection;

use super::Patient;
use crate::clock::now_ms;
use crate::operations::budgets::{self, Account, Holder};
use crate::operations::diagnosis::Finding;
use crate::tenants::health::{self, Health, State};
use crate::turn::budget::{self, Limit, Span, Verdict};

pub(super) async fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let (Some(db), Some(snapshot)) = (patient.db(), patient.snapshot.as_ref()) else {
        return Vec::new();
    };
    let agents = snapshot.registry.all().iter();
    let agents: Vec<health::Patient> = agents
        .map(|agent| health::Patient::of(agent, None))
        .collect();
    let (config, table) = (snapshot.config.clone(), snapshot.table.clone());
    let read = move |connection: &Connection| {
        let now = now_ms();
        let health = health::of(connection, &agents, &table, &HashMap::new(), now)?;
        Ok((health, budgets::of_house(connection, &config, now)?))
    };
    let Ok((health, limits)) = db.read(read).await else {
        return Vec::new();
    };
    let paused = health.iter().filter_map(paused);
    paused.chain(limits.iter().filter_map(used_up)).collect()
}

fn paused(health: &Health) -> Option<Finding> {
    let State::Paused { by, .. } = &health.state else {
        return None;
    };
    let (agent, waiting) = (&health.agent, health.waiting);
    let messages = match waiting {
        0 => return None,
        1 => "1 message waits".to_owned(),
        count => format!("{count} messages wait"),
    };
    let text = format!("{agent} is paused by {by}, and {messages} for it.");
    Some(Finding::note("agents.paused", text).fix(format!("parlor agent resume {agent}")))
}

fn used_up(limit: &Account) -> Option<Finding> {
    let (who, word) = match &limit.holder {
        _ if !limit.is_over() => return None,
        Holder::Agent(agent) => (agent.to_string(), agent.to_string()),
        Holder::House => ("The house".to_owned(), "house".to_owned()),
        Holder::Person { .. } => return None,
    };
    let when = match limit.span {
        Span::Day => "today",
        Span::Month => "this month",
    };
    let text = format!("{who} has used up its limit of {when}, and answers nobody.");
    // A limit of tokens is raised in tokens.
    let unit = match budget::verdict(limit.span, &limit.caps, limit.spent) {
        Verdict::Over(Limit::Tokens(_)) => "tokens ",
        _ => "",
    };
    let fix = format!("Wait, or raise it: parlor allow {word} AMOUNT {unit}{when}.");
    Some(Finding::note("agents.budget", text).fix(fix))
}
