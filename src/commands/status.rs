//! `/status`: tells the state of a place, and to admins and owners the state of the gateway.

use chrono::Local;
use rusqlite::Connection;

use super::texts::{agent as agent_texts, steering, words, work as texts};
use super::{CommandError, Context, model, truth};
use crate::access::Role;
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Troubles};
use crate::records::ledger::{self, Spender};
use crate::records::pauses::{self, Work};
use crate::records::turn_log::LastTurn;
use crate::records::view::View;
use crate::records::{decisions, inbox, journal, summaries, transcript, turn_log};
use crate::storage::StoreError;
use crate::tenants::health::{self, Patient};

/// How many decisions about waiting messages are told.
const DECISIONS_SHOWN: u32 = 3;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub(super) async fn run(context: &Context<'_>) -> Result<String, CommandError> {
    let services = context.services;
    let answer = truth::now(context).await?;
    let mut lines = vec![truth::tell(context, &answer)];
    let (agent, chosen) = model::here(context).await?;
    if answer.silence.is_none() {
        lines.push(agent_texts::model_here(
            &agent.label(),
            &words::model_used(&chosen.model),
            words::source(&chosen),
        ));
    }
    lines.push(conversation(context, agent).await?);
    let queue = services.sessions.queue(&context.inbound.origin);
    lines.push(texts::work(&queue, now_ms()));
    lines.push(used_today(context).await?);
    lines.extend(has_read(context).await?);
    if context.standing.role() >= Role::Admin {
        lines.push(format!("\n{}", house(context).await?));
    }
    Ok(lines.join("\n"))
}

async fn conversation(context: &Context<'_>, agent: &Agent) -> Result<String, StoreError> {
    let (place, view) = (
        context.inbound.origin.key.clone(),
        View::of(context.snapshot.config.switch, agent.uid),
    );
    let read = move |connection: &Connection| {
        let conversation = transcript::conversation(connection, &place)?;
        let summary = summaries::of(connection, &place, conversation, view)?;
        Ok((transcript::length(connection, &place, view)?, summary))
    };
    let (messages, summary) = context.services.db.read(read).await?;
    let summed_up = summary.map(|summary| unsigned(summary.messages));
    Ok(texts::conversation(
        unsigned(messages),
        summed_up,
        &agent.label(),
    ))
}

async fn used_today(context: &Context<'_>) -> Result<String, StoreError> {
    let config = &context.snapshot.config;
    let person = config
        .access
        .people
        .main_id(&context.inbound.origin.person)
        .clone();
    let read = move |connection: &Connection| {
        ledger::today(connection, &Spender::Person(person), now_ms())
    };
    let spent = context.services.db.read(read).await?;
    Ok(texts::used_today(spent, &config.currency))
}

/// Where the words in the prompt of the running or the last turn come from.
async fn has_read(context: &Context<'_>) -> Result<Option<String>, StoreError> {
    let key = &context.inbound.origin.key;
    let (place, is_private) = (key.clone(), key.is_private());
    let read = move |connection: &Connection| {
        let running = journal::read_by_running(connection, &place)?;
        let last = turn_log::last_of(connection, &place)?;
        Ok((running, last.and_then(|last| last.read)))
    };
    let (running, last) = context.services.db.read(read).await?;
    let alone = is_private.then_some(context.role);
    Ok(texts::has_read(running, last, alone))
}

async fn house(context: &Context<'_>) -> Result<String, StoreError> {
    let services = context.services;
    let (now, place) = (now_ms(), context.inbound.origin.key.clone());
    let known = context.snapshot.registry.all().iter();
    let agents: Vec<Patient> = known
        .map(|agent| Patient {
            uid: agent.uid,
            id: agent.id.clone(),
        })
        .collect();
    let (table, running) = (
        context.snapshot.table.clone(),
        services.sessions.under_way(),
    );
    let read = move |connection: &Connection| {
        Ok((
            turn_log::count_since(connection, now - DAY_MS)?,
            inbox::count_over_budget(connection, now - DAY_MS)?,
            outbox::troubles(connection, now)?,
            inbox::count_broken(connection)?,
            turn_log::last_of(connection, &place)?,
            decisions::latest(connection, &place, DECISIONS_SHOWN)?,
            health::of(connection, &agents, &table, &running, now)?,
            pauses::get(connection, Work::Background)?,
        ))
    };
    let ((turns, failed), refused, troubles, unreadable, last, decided, agents, paused) =
        services.db.read(read).await?;
    let Troubles {
        failed: undelivered,
        kept,
        waiting,
        repeated,
        ..
    } = troubles;
    Ok(texts::house(&texts::House {
        up_ms: now - services.started_at,
        busy: u64::try_from(services.sessions.busy()).unwrap_or(u64::MAX),
        turns: unsigned(turns),
        failed: unsigned(failed),
        over_limit: unsigned(refused),
        undelivered: unsigned(undelivered),
        kept: unsigned(kept),
        slow: unsigned(waiting),
        repeated: unsigned(repeated),
        unreadable: unsigned(unreadable),
        paused: paused.map(|by| {
            let name = by.name.unwrap_or(by.id);
            format!("{}, by {name}", words::day(&Local, by.at))
        }),
        last: last.map(last_turn),
        lately: decided.into_iter().map(|(what, _)| what).collect(),
        agents: agents
            .iter()
            .map(|health| steering::health(&truth::label(context, &health.agent), health))
            .collect(),
    }))
}

fn last_turn(last: LastTurn) -> (crate::models::Usage, String, bool) {
    (last.usage, last.model, last.answered)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
