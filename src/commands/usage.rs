//! `/usage`: tells the spending. Owners see all of it, others their own.

use std::collections::HashMap;

use rusqlite::Connection;

use super::texts::usage as texts;
use super::{Context, truth};
use crate::access::{Role, people};
use crate::clock::now_ms;
use crate::domain::{AgentId, PersonId};
use crate::operations::budgets::{self, Account, Holder};
use crate::records::ledger::{self, By, Period, UsageLine};
use crate::records::transcript;
use crate::routing::names;
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
    let read = move |connection: &Connection| {
        let known = people_of(connection)?;
        let lines = |by| {
            let lines = ledger::report(connection, by, period, person.as_deref(), now_ms())?;
            let named = lines
                .into_iter()
                .map(|line| with_name(connection, &known, by, line));
            Ok((by, named.collect::<rusqlite::Result<Vec<_>>>()?))
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

/// The names of people; the name under a message is newer than that of the day of the pairing.
fn people_of(connection: &Connection) -> rusqlite::Result<HashMap<PersonId, String>> {
    let mut known: HashMap<PersonId, String> = people::names(connection)?.into_iter().collect();
    known.extend(transcript::names_of_people(connection)?);
    Ok(known)
}

/// Gives people and places their names, with the id behind.
fn with_name(
    connection: &Connection,
    people: &HashMap<PersonId, String>,
    by: By,
    mut line: UsageLine,
) -> rusqlite::Result<UsageLine> {
    let name = match by {
        By::Agent | By::Model => return Ok(line),
        By::Person => match line.name.parse::<PersonId>() {
            Ok(person) => people.get(&person).cloned(),
            Err(()) => None,
        },
        By::Place => match line.name.parse() {
            Ok(place) => names::load(connection, &place)?,
            Err(_) => None,
        },
    };
    line.name = match name {
        Some(name) => format!("{name} (`{}`)", line.name),
        None => format!("`{}`", line.name),
    };
    Ok(line)
}

/// The label of an agent; a removed agent has none.
fn agent_name(context: &Context<'_>, id: &str) -> String {
    match AgentId::parse(id) {
        Ok(agent) => truth::label(context, &agent),
        Err(_) => format!("`{id}`"),
    }
}
