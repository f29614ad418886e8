//! `/usage`: tells the spending. Owners see all spending, others their own.

use rusqlite::Connection;

use super::texts::usage as texts;
use super::{Context, truth};
use crate::access::Role;
use crate::clock::now_ms;
use crate::domain::AgentId;
use crate::operations::budgets::{self, Account, Holder};
use crate::operations::named::Named;
use crate::operations::names::Names;
use crate::records::ledger::{self, By, Period, UsageLine};
use crate::storage::StoreError;

pub(super) async fn run(period: Period, context: &Context<'_>) -> Result<String, StoreError> {
    let config = &context.snapshot.config;
    let is_owner = context.standing.role() == Role::Owner;
    let person = (!is_owner).then(|| {
        let ids = config.access.people.ids_of(&context.inbound.origin.person);
        ids.to_vec()
    });
    // Others read along in a group, and a person's use elsewhere is private.
    let in_private = context.inbound.origin.key.is_private();
    let kinds: &[By] = match (is_owner, in_private) {
        (true, true) => &By::ALL,
        (true, false) => &[By::Agent, By::Model],
        (false, _) => &[By::Agent],
    };
    let names = Names::load(&context.services.db, Some(config)).await?;
    let read = move |connection: &Connection| {
        let lines = |by| {
            let lines = ledger::report(connection, by, period, person.as_deref(), now_ms())?;
            let named = lines.into_iter().map(|line| with_name(&names, by, line));
            Ok((by, named.collect::<Vec<_>>()))
        };
        kinds
            .iter()
            .copied()
            .map(lines)
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    let mut lists = context.services.db.read(read).await?;
    let total = lists
        .first()
        .map(|(_, lines)| ledger::total(lines))
        .unwrap_or_default();
    let of_agents = lists.iter_mut().filter(|(by, _)| *by == By::Agent);
    for line in of_agents.flat_map(|(_, lines)| lines) {
        line.name = agent_name(context, &line.name);
    }
    let limits = limits(context, is_owner).await?;
    let mut text = texts::usage(period, &total, &lists, &limits, &config.currency);
    if is_owner && !in_private {
        text.push_str(texts::MORE_IN_PRIVATE);
    }
    Ok(text)
}

/// The limits of the house and of agents for owners, and the person's own for others.
async fn limits(
    context: &Context<'_>,
    is_owner: bool,
) -> Result<Vec<(String, Account)>, StoreError> {
    let config = context.snapshot.config.clone();
    let (person, role) = (context.inbound.origin.person.clone(), context.role);
    let read = move |connection: &Connection| match is_owner {
        true => budgets::of_house(connection, &config, now_ms()),
        false => budgets::of_person(connection, &config, (&person, role), now_ms()),
    };
    let accounts = context.services.db.read(read).await?;
    let named = accounts.into_iter().map(|account| {
        let name = match &account.holder {
            Holder::Agent(agent) => truth::label(context, agent),
            Holder::Person { .. } => "you".to_owned(),
            Holder::House => "the house".to_owned(),
        };
        (name, account)
    });
    Ok(named.collect())
}

/// Gives people and places their names, with the id behind.
fn with_name(names: &Names, by: By, mut line: UsageLine) -> UsageLine {
    let named = match by {
        By::Agent | By::Model => return line,
        By::Person => line.name.parse().ok().map(|id| names.person(&id)),
        By::Place => line.name.parse().ok().map(|key| names.place(&key)),
    };
    line.name = match named.as_ref().and_then(Named::words) {
        Some(words) => format!("{words} (`{}`)", line.name),
        None => format!("`{}`", line.name),
    };
    line
}

/// The label of an agent; a removed agent has none.
fn agent_name(context: &Context<'_>, id: &str) -> String {
    match AgentId::parse(id) {
        Ok(agent) => truth::label(context, &agent),
        Err(_) => format!("`{id}`"),
    }
}
