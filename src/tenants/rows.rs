//! The rows of an agent: put aside, taken up again, given another id, destroyed.

use std::time::Duration;

use rusqlite::Transaction;

use super::error::TenantError;
use super::inventory::{Rows, rows_of};
use super::site::Site;
use crate::access::grants;
use crate::agents::{agent_rows, memory};
use crate::channels::web;
use crate::clock::now_ms;
use crate::delivery::outbox;
use crate::domain::{AgentId, AgentUid};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::{
    agent_pauses, approvals, imports, inbox, jobs, journal, ledger, subagents, summaries,
    transcript, turn_log, turn_notes,
};
use crate::routing::pins;

/// How long people may go on using the old id of a renamed agent.
pub(crate) const KEEPS_OLD_ID: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Adds a clone under its own uid, because the database may know an older agent of the same id,
/// with memories. A clone known to the store is left alone.
pub(super) async fn record_clone(
    site: &Site,
    id: &AgentId,
    uid: AgentUid,
) -> Result<(), TenantError> {
    let (id, by) = (id.clone(), site.by.clone());
    let record = move |tx: &Transaction<'_>| {
        if agent_rows::knows(tx, &uid.to_string())? {
            return Ok(());
        }
        note(tx, &by, Action::AgentAdd, &id)?;
        agent_rows::add_new(tx, uid, &id, now_ms())
    };
    Ok(site.db.write(record).await?)
}

/// Gives an agent its new id. An old id unknown to the database needs no change.
pub(super) async fn record_rename(
    site: &Site,
    from: &AgentId,
    to: &AgentId,
) -> Result<(), TenantError> {
    let until = now_ms() + i64::try_from(KEEPS_OLD_ID.as_millis()).unwrap_or(i64::MAX);
    let (from, to, by) = (from.clone(), to.clone(), site.by.clone());
    let record = move |tx: &Transaction<'_>| {
        let change = Change::new(Action::AgentRename).of(&to).from(&from).to(&to);
        audit::note(tx, &by, &change, now_ms())?;
        jobs::rename_agent(tx, &from, &to)?;
        agent_rows::rename(tx, &from, &to, until, now_ms())
    };
    Ok(site.db.write(record).await?)
}

/// Writes an entry about an agent as a whole.
pub(super) fn note(
    tx: &Transaction<'_>,
    by: &Actor,
    action: Action,
    id: &AgentId,
) -> rusqlite::Result<()> {
    audit::note(tx, by, &Change::new(action).of(id), now_ms())
}

/// Hides the rows of a removed agent.
pub(super) fn put_aside(
    tx: &Transaction<'_>,
    uid: AgentUid,
    archive: &str,
    now: i64,
) -> rusqlite::Result<Rows> {
    memory::archive(tx, uid)?;
    agent_rows::archive(tx, uid, archive, now)?;
    rows_of(tx, uid)
}

/// Undoes [`put_aside`], under the old id or a new id.
pub(super) fn take_up(tx: &Transaction<'_>, uid: AgentUid, id: &AgentId) -> rusqlite::Result<Rows> {
    memory::restore(tx, uid)?;
    agent_rows::restore(tx, uid, id, now_ms())?;
    jobs::take_up(tx, uid, now_ms())?;
    rows_of(tx, uid)
}

/// The deleted rows, and copies of outgoing files that no delivery needs any more.
pub(super) struct Destroyed {
    pub(super) rows: Rows,
    pub(super) outgoing: Vec<String>,
}

/// Deletes every row of an agent. Rows are found by other rows, so the order matters: summaries and
/// answers by messages, messages by subagents, waiting words by turns.
pub(super) fn destroy(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<Destroyed> {
    let outgoing = outbox::purge(tx, uid)?;
    inbox::purge(tx, uid)?;
    summaries::purge(tx, uid)?;
    web::purge(tx, uid)?;
    let share = transcript::purge(tx, uid)?;
    subagents::purge(tx, uid)?;
    journal::purge(tx, uid)?;
    ledger::purge(tx, uid)?;
    approvals::purge(tx, uid)?;
    agent_pauses::purge(tx, uid)?;
    grants::purge(tx, uid)?;
    imports::purge(tx, uid)?;
    jobs::purge(tx, uid)?;
    // Other agents have read its words.
    turn_notes::forget_prompts(tx, now_ms())?;
    let (pins, turns) = (pins::purge(tx, uid)?, turn_log::purge(tx, uid)?);
    let memories = memory::purge(tx, uid)?;
    agent_rows::purge(tx, uid)?;
    let rows = Rows {
        memories,
        messages: share.messages,
        sessions: share.sessions,
        pins,
        turns,
    };
    Ok(Destroyed { rows, outgoing })
}
