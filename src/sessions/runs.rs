//! Runs that belong to a turn: how they are begun, waited for, told about and stopped.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Transaction;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::children::{self, Child, End, Known, State};
use super::inbox::{self, Accepted};
use super::lane::{self, Waiting};
use super::{Arrived, Inner, Item, Purpose, transcript};
use crate::access::{Standing, people};
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::domain::{Addressed, AgentUid, Besides, Inbound, Internal, MessageId, Origin, SessionKey};
use crate::storage::{Durability, StoreError};
use crate::tools::{Kin, Parent, Then};
use crate::turn::Charge;
use crate::turn::history::own_words;
use crate::work::WorkGuard;

/// The pause before the store is asked again when it could not be read.
const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// A run that is under way, as people ask about it. By its inbox row.
#[derive(Debug, Clone)]
pub(super) struct UnderWay {
    pub(super) run: String,
    /// Where its parent was asked.
    pub(super) parent: SessionKey,
    pub(super) parent_inbox_id: i64,
    /// The agent that asked for it.
    pub(super) parent_agent: AgentUid,
    /// Whether the parent waits for it.
    pub(super) then: Then,
    pub(super) session: SessionKey,
    pub(super) item: Item,
}

/// Whether something is sent to the platform of a place: if it was wanted, and if people are there at all.
pub(super) fn is_delivered(wanted: bool, place: &SessionKey) -> bool {
    wanted && !place.is_internal()
}

/// Writes a run and its message. None when it is known already.
pub(super) fn write(tx: &Transaction<'_>, child: &Child, by: &str, now: i64) -> rusqlite::Result<Option<Accepted>> {
    let inbound = Inbound {
        update_id: child.run.clone(),
        origin: Origin::new(child.session.clone(), child.person.clone()),
        person_name: format!("@{by}"),
        text: child.task.clone(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        besides: Besides { internal: Some(Internal::Child { run: child.run.clone() }), ..Besides::default() },
    };
    let Some(id) = inbox::insert_internal(tx, &inbound, now)? else { return Ok(None) };
    children::insert(tx, child, id)?;
    Ok(Some(Accepted { standing: child.standing, ..Accepted::new(id, inbound) }))
}

/// Puts a run that is written down into its lane.
pub(super) fn launch(inner: &Arc<Inner>, child: &Child, accepted: Accepted, arrived: Arrived) {
    note(inner, child, &accepted);
    submit(inner, accepted, arrived);
}

fn note(inner: &Inner, child: &Child, accepted: &Accepted) {
    let under_way = UnderWay {
        run: child.run.clone(),
        parent: child.parent.clone(),
        parent_inbox_id: child.parent_inbox_id,
        parent_agent: child.parent_agent,
        then: child.then,
        session: child.session.clone(),
        item: lane::item(accepted),
    };
    inner.runs.insert(accepted.id, under_way);
}

fn submit(inner: &Arc<Inner>, accepted: Accepted, arrived: Arrived) {
    let guard = inner.parts.work.begin();
    let waiting = Waiting { accepted, purpose: Purpose::Answer, guard, since: Instant::now(), arrived };
    if lane::submit(inner, waiting, arrived).is_err() {
        tracing::warn!("a run found its lane full; the next start goes on with it");
    }
}

/// Takes up what an earlier process put into a lane by itself. Err when nobody knows the run any more.
pub(super) async fn take_up(inner: &Arc<Inner>, accepted: Accepted) -> Result<Result<(), Unknown>, StoreError> {
    let Some(Internal::Child { run } | Internal::Report { run }) = accepted.inbound.besides.internal.clone() else {
        return Ok(Err(Unknown));
    };
    let read = inner.parts.db.read(move |connection| {
        let Some(known) = children::get(connection, &run)? else { return Ok(None) };
        let is_paired = people::is_paired(connection, &known.child.person)?;
        Ok(Some((known, is_paired)))
    });
    let Some((known, is_paired)) = read.await? else { return Ok(Err(Unknown)) };
    // Who asked may be known less well by now.
    let now = Standing::of(&inner.parts.access, &known.child.person, is_paired);
    let accepted = Accepted { standing: known.child.standing.min(now), ..accepted };
    match accepted.inbound.besides.internal {
        Some(Internal::Child { .. }) => launch(inner, &known.child, accepted, Arrived::Before),
        _ => submit(inner, accepted, Arrived::Before),
    }
    Ok(Ok(()))
}

/// No row says what this is about.
#[derive(Debug)]
pub struct Unknown;

/// Returns what came of a run once it has ended. Fails only when the process stops.
pub(super) async fn ended(inner: &Inner, run: &str) -> Result<Option<Known>, StoreError> {
    let signal = inner.endings.entry(run.to_owned()).or_insert_with(|| Arc::new(Notify::new())).clone();
    loop {
        let mut told = std::pin::pin!(signal.notified());
        // Counts from here on, so that an end between the look and the wait is not missed.
        told.as_mut().enable();
        let name = run.to_owned();
        match inner.parts.db.read(move |connection| children::get(connection, &name)).await {
            Ok(Some(known)) if known.end.state == State::Running => told.await,
            Ok(known) => {
                // It may have been over before anybody waited, and then nobody else takes this away.
                wake(inner, run);
                return Ok(known);
            }
            Err(error) if inner.stop.is_cancelled() => return Err(error),
            Err(error) => {
                tracing::error!("a turn waits for the store: {error}");
                tokio::time::sleep(STORE_BACKOFF).await;
            }
        }
    }
}

/// All runs that a turn asked for. Fails only when the process stops.
pub(super) async fn of_turn(inner: &Inner, inbox_id: i64) -> Result<Vec<Known>, StoreError> {
    loop {
        match inner.parts.db.read(move |connection| children::of_turn(connection, inbox_id)).await {
            Err(error) if !inner.stop.is_cancelled() => {
                tracing::error!("a turn waits for the store: {error}");
                tokio::time::sleep(STORE_BACKOFF).await;
            }
            read => return read,
        }
    }
}

/// What is written with the end of a run's turn. What wakes its parent has no more rights than that turn had.
pub(super) fn write_end(
    tx: &Transaction<'_>,
    run: &str,
    standing: Standing,
    end: &End,
    now: i64,
) -> rusqlite::Result<Option<Accepted>> {
    if !children::finish(tx, run, end, now)? || end.state == State::Stopped {
        return Ok(None);
    }
    let Some(known) = children::get(tx, run)?.filter(|known| known.child.then != Then::Wait) else { return Ok(None) };
    let child = &known.child;
    transcript::append_event(tx, &child.parent, child.parent_agent, &known.line(), &known.meta(), now)?;
    if child.then != Then::Report {
        return Ok(None);
    }
    Ok(insert_report(tx, &known, now)?.map(|report| Accepted { standing: report.standing.min(standing), ..report }))
}

fn insert_report(tx: &Transaction<'_>, known: &Known, now: i64) -> rusqlite::Result<Option<Accepted>> {
    let child = &known.child;
    let inbound = Inbound {
        update_id: format!("report-{}", child.run),
        origin: Origin::new(child.parent.clone(), child.person.clone()),
        person_name: format!("@{}", known.agent_id),
        text: known.line(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        besides: Besides { internal: Some(Internal::Report { run: child.run.clone() }), ..Besides::default() },
    };
    let id = inbox::insert_internal(tx, &inbound, now)?;
    Ok(id.map(|id| Accepted { standing: child.standing, ..Accepted::new(id, inbound) }))
}

/// The end of a run is committed: whoever waits for it goes on, and its parent is woken if that was asked for.
pub(super) fn over(inner: &Arc<Inner>, inbox_id: i64, run: &str, report: Option<Accepted>) {
    inner.runs.remove(&inbox_id);
    wake(inner, run);
    if let Some(report) = report {
        submit(inner, report, Arrived::Before);
    }
}

fn wake(inner: &Inner, run: &str) {
    if let Some((_, signal)) = inner.endings.remove(run) {
        signal.notify_waiters();
    }
}

/// Ends runs, whether they have begun or not. What they have said so far is not told to anybody.
pub(super) fn stop(inner: &Arc<Inner>, which: impl Fn(i64, &UnderWay) -> bool) {
    let found = inner.runs.iter().filter(|entry| which(*entry.key(), entry.value()));
    let found: Vec<(i64, UnderWay)> = found.map(|entry| (*entry.key(), entry.value().clone())).collect();
    for (id, under_way) in found {
        lane::halt_in(inner, &under_way.session, &[id]);
        let guard = inner.parts.work.begin();
        inner.tasks.spawn(write_stop(inner.clone(), id, under_way.run, guard));
    }
}

async fn write_stop(inner: Arc<Inner>, id: i64, run: String, _guard: WorkGuard) {
    let name = Arc::new(run);
    let write = || {
        let run = name.clone();
        move |tx: &Transaction<'_>| {
            let now = now_ms();
            inbox::call_off(tx, &[id], now)?;
            children::finish(tx, &run, &End { state: State::Stopped, result: String::new(), used: Charge::default() }, now)
        }
    };
    if let Err(error) = inner.parts.db.write_patiently(&inner.stop, Durability::Kill, write).await {
        tracing::warn!("a stopped run is closed by the next start: {error}");
    }
    over(&inner, id, &name, None);
}

/// Runs of a place that are under way.
pub(super) fn of_place(inner: &Inner, place: &SessionKey) -> Vec<Item> {
    let own = inner.runs.iter().filter(|entry| inner.parts.aliases.current(&entry.parent) == *place);
    let mut items: Vec<Item> = own.map(|entry| entry.item.clone()).collect();
    items.sort_by(|one, other| one.ids.cmp(&other.ids));
    items
}

/// What the tools of a run know about its parent. An agent that is gone leaves the run with nothing but the default's rights.
pub(super) fn parent(inner: &Inner, known: &Known) -> Arc<Parent> {
    let registry = &inner.parts.registry;
    let agent: &Arc<Agent> = registry.by_uid(known.child.parent_agent).unwrap_or_else(|| registry.default_agent());
    let Child { parent, run, kin, tools, .. } = &known.child;
    Arc::new(Parent { agent: agent.clone(), place: parent.clone(), run: run.clone(), kin: *kin, tools: tools.clone() })
}

/// The most of a result that somebody is told besides the call that waited for it.
const MAX_TOLD_BYTES: usize = 8 * 1024;
/// The most of a task that its parent is reminded of.
const MAX_TASK_BYTES: usize = 512;

/// What a run is told before its task.
pub(super) fn introduction(known: &Known) -> String {
    match known.child.kin {
        Kin::Child => format!(
            "[You work for @{} now. Nobody else reads this: your answer goes to that agent as the result of the task that follows. Do it \
             completely, and answer with what came of it.]",
            known.parent_id
        ),
        Kin::Peer => format!("[@{} writes to you. Nobody else reads this: your answer goes to that agent.]", known.parent_id),
    }
}

/// What a parent is told in its next turn.
pub(super) fn summary(known: &Known) -> String {
    let (task, told) = (own_words(task(known)), own_words(told(known)));
    format!("[{} Nobody here has seen it yet. The task: {task}]\n{told}", heading(known))
}

/// What a parent that was woken is asked.
pub(super) fn to_report(known: &Known) -> String {
    let (task, told) = (own_words(task(known)), own_words(told(known)));
    format!("[{} Tell the people here what came of it. The task: {task}]\n{told}", heading(known))
}

fn heading(known: &Known) -> String {
    let how = match known.end.state {
        State::Finished => "is done",
        _ => "came to nothing",
    };
    format!("A task that you gave to @{} {how}.", known.agent_id)
}

fn task(known: &Known) -> &str {
    let task = &known.child.task;
    &task[..task.floor_char_boundary(MAX_TASK_BYTES)]
}

fn told(known: &Known) -> &str {
    let result = &known.end.result;
    &result[..result.floor_char_boundary(MAX_TOLD_BYTES)]
}

/// What the call that waited gets as its result.
pub(super) fn result(known: Option<&Known>) -> String {
    let Some(Known { child, end, agent_id, .. }) = known else { return "Nothing is known about it any more.".into() };
    match (end.state, child.kin) {
        (State::Finished, Kin::Child) => end.result.clone(),
        (State::Finished, Kin::Peer) => format!("[@{agent_id}] {}", end.result),
        (State::Stopped, _) => format!("@{agent_id} was stopped before it was done."),
        _ => format!("@{agent_id} came to no result: {}", end.result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2.16, S2.17
    #[test]
    fn only_what_is_wanted_reaches_a_place_with_people_in_it() {
        let check = |wanted: bool, place: &str, expected: bool| {
            assert_eq!(is_delivered(wanted, &place.parse().unwrap()), expected, "{wanted} {place}");
        };
        check(true, "telegram:dm:111", true);
        check(false, "telegram:dm:111", false);
        check(true, "child:1-0-0", false);
        check(false, "child:1-0-0", false);
        check(true, "cron:rose:daily", false);
    }
}
