//! `/status`: tells the state of a place, and to admins and owners the state of the gateway.

use chrono::Local;
use rusqlite::Connection;

use super::texts::{agent as agent_texts, steering, words, work as texts};
use super::{CommandError, Context, model, truth};
use crate::access::Role;
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::lanes::Stage;
use crate::records::ledger::{self, Spender};
use crate::records::pauses::{self, Work};
use crate::records::turn_log::LastTurn;
use crate::records::view::View;
use crate::records::{approvals, decisions, journal, summaries, transcript, turn_log};
use crate::storage::StoreError;
use crate::tenants::health::Health;

/// How many decisions about waiting messages are told.
const DECISIONS_SHOWN: u32 = 3;

pub(super) async fn run(context: &Context<'_>) -> Result<String, CommandError> {
    let services = context.services;
    let answer = truth::now(context).await?;
    let mut lines = vec![truth::tell(context, &answer)];
    let (agent, chosen) = model::here(context).await?;
    if answer.silence.is_none() {
        lines.push(agent_texts::model_here(
            &agent.label(),
            &words::model_used(&chosen.model),
            truth::may_open(context).then(|| words::source(&chosen)),
        ));
    }
    lines.push(conversation(context, agent).await?);
    lines.push(used_today(context).await?);
    if truth::may_open(context) {
        lines.extend(based_on(context).await?);
    }
    let queue = services.sessions.queue(&context.inbound.origin);
    let mut parts = vec![lines.join("\n"), texts::work(&queue, now_ms())];
    if context.standing.role() >= Role::Admin {
        parts.push(house(context).await?);
    }
    Ok(parts.join("\n\n"))
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
async fn based_on(context: &Context<'_>) -> Result<Option<String>, StoreError> {
    let key = &context.inbound.origin.key;
    let (place, is_private) = (key.clone(), key.is_private());
    let read = move |connection: &Connection| {
        let running = journal::read_by_running(connection, &place)?;
        let last = turn_log::last_of(connection, &place)?;
        Ok((running, last.and_then(|last| last.read)))
    };
    let (running, last) = context.services.db.read(read).await?;
    let alone = is_private.then_some(context.role);
    Ok(texts::based_on(running, last, alone))
}

async fn house(context: &Context<'_>) -> Result<String, StoreError> {
    let services = context.services;
    let overview = services.operations.overview(context.snapshot).await?;
    let place = context.inbound.origin.key.clone();
    let read = move |connection: &Connection| {
        Ok((
            turn_log::last_of(connection, &place)?,
            decisions::latest(connection, &place, DECISIONS_SHOWN)?,
            pauses::get(connection, Work::Background)?,
            approvals::open(connection)?,
        ))
    };
    let (last, decided, paused, open) = services.db.read(read).await?;
    let (now, troubles) = (now_ms(), overview.troubles);
    let config = overview.config.filter(|config| config.problem.is_some());
    let config = config.map(|config| {
        let read = words::since(&Local, config.read_at, now);
        texts::broken_config(config.line(), &read)
    });
    let label = |health: &Health| truth::label(context, &health.agent);
    let agents = overview.health.iter();
    Ok(texts::house(&texts::House {
        config,
        is_chat: services.operations.is_chat(),
        up_ms: now - services.started_at,
        busy: working_places(context),
        turns: unsigned(overview.turns.all),
        failed: unsigned(overview.turns.failed),
        stopped: unsigned(overview.turns.stopped),
        over_limit: unsigned(overview.over_limit),
        approvals: open,
        undelivered: unsigned(troubles.failed),
        kept: unsigned(troubles.kept),
        slow: unsigned(troubles.waiting),
        on_the_way: unsigned(troubles.on_the_way),
        repeated: unsigned(troubles.repeated),
        unreadable: unsigned(overview.unreadable),
        paused: paused.map(|by| {
            let name = by.name.unwrap_or(by.id);
            format!("{}, by {name}", words::day(&Local, by.at))
        }),
        last: last.map(last_turn),
        lately: decided.into_iter().map(|(what, _)| what).collect(),
        agents: agents
            .map(|health| steering::health(&label(health), health))
            .collect(),
    }))
}

/// Places with a turn under way. Messages for a paused agent are no work.
fn working_places(context: &Context<'_>) -> u64 {
    let work = context.services.sessions.work();
    let mut places: Vec<_> = work
        .iter()
        .filter(|work| work.stage != Stage::Waits)
        .map(|work| &work.place)
        .collect();
    places.sort();
    places.dedup();
    u64::try_from(places.len()).unwrap_or(u64::MAX)
}

fn last_turn(last: LastTurn) -> (crate::models::Usage, String, bool) {
    (last.usage, last.model, last.answered)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
