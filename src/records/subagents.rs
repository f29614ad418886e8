//! Subagents and their results: the `subagents` table.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde_json::{Value, json};

use super::inbox;
use super::journal::{self, CallId};
use crate::access::Role;
use crate::domain::{AgentId, AgentUid, Label, Labels, PersonId, SessionKey};
use crate::fail_points::{self, Write};
use crate::models::Usage;
use crate::routing::places;
use crate::tools::{Addresses, OnFinish, Relation};
use crate::turn::Charge;

/// Ended subagents are kept this long, for people looking back.
pub(crate) const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// A parent hears about the end of a subagent within this time, or not at all: later the news would
/// be out of date in a conversation about another subject. The transcript keeps its line.
pub(crate) const TOLD_WITHIN_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Files in an announcement, and the length of a path in characters.
const MOST_ARTIFACTS: usize = 32;
const MAX_PATH_CHARS: usize = 256;

/// A subagent asked for by a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subagent {
    /// Names the subagent. The same call of the same turn always gets the same name.
    pub(crate) run: String,
    pub(crate) relation: Relation,
    pub(crate) session: SessionKey,
    pub(crate) agent: AgentUid,
    /// The place of the parent turn.
    pub(crate) parent: SessionKey,
    /// The message of the parent turn.
    pub(crate) parent_inbox_id: i64,
    pub(crate) parent_agent: AgentUid,
    /// The person behind the parent turn.
    pub(crate) person: PersonId,
    pub(crate) role: Role,
    pub(crate) task: String,
    /// The labels of everything that the parent had read when giving the task; after the end, also
    /// the labels of everything that the subagent has read.
    pub(crate) labels: Labels,
    /// Web addresses of the task from people whom the parent trusts.
    pub(crate) addresses: Addresses,
    /// The tools the subagent is limited to.
    pub(crate) tools: Option<Vec<String>>,
    /// A short name of the task.
    pub(crate) label: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) max_steps: u32,
    pub(crate) then: OnFinish,
    /// The number of agents the work went through.
    pub(crate) hop: u32,
    /// The first message behind the work.
    pub(crate) trace: String,
    pub(crate) started_at: i64,
}

/// The state of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Finished,
    Failed,
    /// Stopped on request.
    Stopped,
}

/// The end of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) state: State,
    /// The agent's answer, or the reason for having none.
    pub(crate) result: String,
    pub(crate) used: Charge,
    /// The labels of everything that the subagent has read.
    pub(crate) read: Labels,
    /// Files written by the subagent, by the subagent's names for them.
    pub(crate) artifacts: Vec<String>,
}

/// A subagent with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubagentRow {
    pub(crate) subagent: Subagent,
    pub(crate) inbox_id: i64,
    pub(crate) agent_id: AgentId,
    pub(crate) parent_id: AgentId,
    pub(crate) end: End,
    pub(crate) ended_at: Option<i64>,
}

impl Subagent {
    pub(crate) fn name_of(call: CallId) -> String {
        format!("{}-{}-{}", call.inbox_id, call.round, call.number)
    }

    /// The labels of the task: everything that the parent had read.
    pub(crate) fn labels_of_task(&self) -> Labels {
        if self.agent == self.parent_agent {
            self.labels
        } else {
            self.labels.with(Label::Agent)
        }
    }
}

impl State {
    const ALL: [State; 4] = [
        State::Running,
        State::Finished,
        State::Failed,
        State::Stopped,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Finished => "finished",
            State::Failed => "failed",
            State::Stopped => "stopped",
        }
    }
}

impl SubagentRow {
    /// The labels of the subagent's words.
    pub(crate) fn labels(&self) -> Labels {
        let label = match self.subagent.relation {
            Relation::Subagent => Label::Subagent,
            Relation::Peer => Label::Agent,
        };
        (self.subagent.labels | self.end.read).with(label)
    }

    /// The line about the subagent in the parent's transcript.
    pub(crate) fn line(&self) -> String {
        format!("[@agent:{}] {}", self.agent_id, self.end.state.as_str())
    }

    /// All other facts about the subagent, as JSON.
    pub(crate) fn meta(&self) -> Value {
        let SubagentRow { subagent, end, .. } = self;
        let Usage {
            input_tokens,
            output_tokens,
            cached_tokens,
        } = end.used.usage;
        json!({
            "v": 1,
            "kind": "run",
            "status": end.state.as_str(),
            "label": subagent.label,
            "tags": subagent.tags,
            "task": subagent.task,
            "result": end.result,
            "artifacts": end.artifacts,
            "source": { "agent": self.agent_id.as_str(), "session": subagent.session.to_string() },
            "stats": {
                "steps": end.used.steps, "input_tokens": input_tokens, "output_tokens": output_tokens,
                "cached_tokens": cached_tokens, "ms": self.ended_at.map_or(0, |ended| ended - subagent.started_at),
            },
            "idempotency_key": subagent.run,
            "trace_id": subagent.trace,
            "hop": subagent.hop,
        })
    }
}

/// False if the subagent is known already; then nothing is written.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    subagent: &Subagent,
    inbox_id: i64,
) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO subagents (run, relation, place_id, inbox_id, agent_uid, parent_place_id, parent_inbox_id, parent_uid, person, role,
                                task, tools, max_steps, on_finish, hop, trace, started_at, labels, addresses, label, tags)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21) ON CONFLICT DO NOTHING",
    )?;
    let inserted = statement.execute(params![
        subagent.run,
        relation_text(subagent.relation),
        places::ensure(tx, &subagent.session, subagent.started_at)?,
        inbox_id,
        subagent.agent.to_string(),
        places::ensure(tx, &subagent.parent, subagent.started_at)?,
        subagent.parent_inbox_id,
        subagent.parent_agent.to_string(),
        subagent.person.to_string(),
        subagent.role.as_str(),
        subagent.task,
        subagent
            .tools
            .as_ref()
            .map(|tools| json!(tools).to_string()),
        subagent.max_steps,
        on_finish_text(subagent.then),
        subagent.hop,
        subagent.trace,
        subagent.started_at,
        subagent.labels.bits(),
        json!(subagent.addresses).to_string(),
        subagent.label,
        json!(subagent.tags).to_string(),
    ])?;
    Ok(inserted == 1)
}

/// Writes the end of a subagent. False for an ended subagent; then nothing is written.
pub(crate) fn finish(
    tx: &Transaction<'_>,
    run: &str,
    end: &End,
    now: i64,
) -> rusqlite::Result<bool> {
    fail_points::writes(Write::SubagentEnd);
    let mut statement = tx.prepare_cached(
        "UPDATE subagents SET state = ?2, result = ?3, steps = ?4, input_tokens = ?5, output_tokens = ?6, cached_tokens = ?7, ended_at = ?8,
                              labels = coalesce(labels, 0) | ?9, artifacts = ?10
         WHERE run = ?1 AND state = 'running'",
    )?;
    let Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    } = end.used.usage;
    let changed = statement.execute(params![
        run,
        end.state.as_str(),
        end.result,
        end.used.steps,
        input_tokens.cast_signed(),
        output_tokens.cast_signed(),
        cached_tokens.cast_signed(),
        now,
        end.read.bits(),
        json!(bounded(&end.artifacts)).to_string()
    ])?;
    Ok(changed == 1)
}

/// Keeps an announcement small, also for a subagent with many or long paths.
fn bounded(paths: &[String]) -> Vec<String> {
    let paths = paths.iter().take(MOST_ARTIFACTS);
    paths
        .map(|path| path.chars().take(MAX_PATH_CHARS).collect())
        .collect()
}

const COLUMNS: &str =
    "subagents.run, relation, own.key, inbox_id, agent_uid, origin.key, parent_inbox_id, parent_uid, person, role,
    task, tools, max_steps, on_finish, hop, trace, state, result, steps, input_tokens, output_tokens, cached_tokens, started_at,
    ended_at, coalesce('former-' || its.archived_id, its.slug),
    coalesce('former-' || parents.archived_id, parents.slug), subagents.labels, subagents.addresses,
    subagents.label, tags, artifacts";
const TABLES: &str = "subagents JOIN agents AS its ON its.uid = agent_uid JOIN agents AS parents ON parents.uid = parent_uid
    JOIN places AS own ON own.id = place_id JOIN places AS origin ON origin.id = parent_place_id";

pub(crate) fn get(connection: &Connection, run: &str) -> rusqlite::Result<Option<SubagentRow>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM {TABLES} WHERE run = ?1"))?;
    Ok(statement.query_row([run], known).optional()?.flatten())
}

/// The subagents of a turn, in any state.
pub(crate) fn of_turn(
    connection: &Connection,
    parent_inbox_id: i64,
) -> rusqlite::Result<Vec<SubagentRow>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE parent_inbox_id = ?1"
    ))?;
    all(statement.query_map([parent_inbox_id], known)?)
}

/// Ended subagents of a place not yet told to this agent, oldest first, without subagents of long
/// ago.
pub(crate) fn unseen(
    connection: &Connection,
    place: &SessionKey,
    agent: AgentUid,
    now: i64,
) -> rusqlite::Result<Vec<SubagentRow>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE parent_place_id = (SELECT id FROM places WHERE key = ?1) AND seen = 0 AND parent_uid = ?2 AND on_finish <> 'wait'
             AND state IN ('finished', 'failed') AND ended_at > ?3 ORDER BY ended_at"
    ))?;
    let since = now - TOLD_WITHIN_MS;
    all(statement.query_map(params![place.to_string(), agent.to_string(), since], known)?)
}

/// The session of an earlier question from this agent, in this place, to the other agent, on behalf
/// of the same person in the same role. Words of other people stay out of the session.
pub(crate) fn peer_session(
    connection: &Connection,
    place: &SessionKey,
    from: AgentUid,
    to: AgentUid,
    (ids, role): (&[PersonId], Role),
) -> rusqlite::Result<Option<SessionKey>> {
    let mut statement = connection.prepare_cached(
        "SELECT key FROM subagents JOIN places ON id = place_id
         WHERE parent_place_id = (SELECT id FROM places WHERE key = ?1) AND parent_uid = ?2 AND agent_uid = ?3 AND relation = 'peer'
             AND person IN (SELECT value FROM json_each(?4)) AND role = ?5
         ORDER BY started_at DESC LIMIT 1",
    )?;
    let people: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let found = statement.query_row(
        params![
            place.to_string(),
            from.to_string(),
            to.to_string(),
            json!(people).to_string(),
            role.as_str()
        ],
        |row| row.get::<_, String>(0),
    );
    Ok(found.optional()?.and_then(|key| key.parse().ok()))
}

/// The labels of a task, in its row.
pub(crate) fn labels_of_task(connection: &Connection, run: &str) -> rusqlite::Result<Labels> {
    let known = get(connection, run)?;
    Ok(known.map_or(Labels::of(Role::Guest), |known| {
        known.subagent.labels_of_task()
    }))
}

/// Marks subagents as told, with the end of the turn that told them.
pub(crate) fn seen(tx: &Transaction<'_>, runs: &[String]) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached("UPDATE subagents SET seen = 1 WHERE run = ?1")?;
    runs.iter()
        .try_for_each(|run| statement.execute([run]).map(drop))
}

/// Closes subagents whose message no longer waits: they were stopped when the process ended.
pub(crate) fn close_orphans(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<usize> {
    let sql = format!(
        "UPDATE subagents SET state = 'stopped', result = '', ended_at = ?1 WHERE state = 'running' AND inbox_id NOT IN ({})",
        inbox::WAITING_IDS
    );
    tx.execute(&sql, [now])
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM subagents WHERE run IN (SELECT run FROM subagents WHERE ended_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

/// Deletes the subagents run by an agent, and the subagents started by the agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    tx.execute(
        "DELETE FROM subagents WHERE agent_uid = ?1 OR parent_uid = ?1",
        [uid.to_string()],
    )
}

/// Rows unreadable to this version are left out.
fn all(
    rows: impl Iterator<Item = rusqlite::Result<Option<SubagentRow>>>,
) -> rusqlite::Result<Vec<SubagentRow>> {
    rows.filter_map(Result::transpose).collect()
}

fn known(row: &Row<'_>) -> rusqlite::Result<Option<SubagentRow>> {
    let text = |index| row.get::<_, String>(index);
    let tokens = |index| {
        row.get::<_, i64>(index)
            .map(|count| u64::try_from(count).unwrap_or(0))
    };
    let used = Charge {
        steps: row.get(18)?,
        usage: Usage {
            input_tokens: tokens(19)?,
            output_tokens: tokens(20)?,
            cached_tokens: tokens(21)?,
        },
    };
    let state = text(16)?;
    let state = State::ALL.into_iter().find(|known| known.as_str() == state);
    let tools = row
        .get::<_, Option<String>>(11)?
        .map(|tools| serde_json::from_str(&tools).unwrap_or_default());
    let labels = journal::labels(row, 26)?;
    let addresses = row
        .get::<_, Option<String>>(27)?
        .and_then(|addresses| serde_json::from_str(&addresses).ok())
        .unwrap_or_default();
    let texts = |index| -> rusqlite::Result<Vec<String>> {
        let list = row.get::<_, Option<String>>(index)?;
        let list = list.and_then(|list| serde_json::from_str::<Vec<String>>(&list).ok());
        Ok(list.unwrap_or_default())
    };
    let (label, tags, artifacts) = (row.get(28)?, texts(29)?, texts(30)?);
    let parsed = || {
        Some(SubagentRow {
            subagent: Subagent {
                run: text(0).ok()?,
                relation: if text(1).ok()? == relation_text(Relation::Peer) {
                    Relation::Peer
                } else {
                    Relation::Subagent
                },
                session: text(2).ok()?.parse().ok()?,
                agent: text(4).ok()?.parse().ok()?,
                parent: text(5).ok()?.parse().ok()?,
                parent_inbox_id: row.get(6).ok()?,
                parent_agent: text(7).ok()?.parse().ok()?,
                person: text(8).ok()?.parse().ok()?,
                role: role(&text(9).ok()?),
                task: text(10).ok()?,
                labels,
                addresses,
                tools,
                label,
                tags,
                max_steps: row.get(12).ok()?,
                then: then(&text(13).ok()?)?,
                hop: row.get(14).ok()?,
                trace: text(15).ok()?,
                started_at: row.get(22).ok()?,
            },
            inbox_id: row.get(3).ok()?,
            agent_id: AgentId::parse(&text(24).ok()?).ok()?,
            parent_id: AgentId::parse(&text(25).ok()?).ok()?,
            end: End {
                state: state?,
                result: row.get::<_, Option<String>>(17).ok()?.unwrap_or_default(),
                used,
                read: labels,
                artifacts,
            },
            ended_at: row.get(23).ok()?,
        })
    };
    Ok(parsed())
}

fn relation_text(relation: Relation) -> &'static str {
    match relation {
        Relation::Subagent => "subagent",
        Relation::Peer => "peer",
    }
}

fn on_finish_text(then: OnFinish) -> &'static str {
    match then {
        OnFinish::Wait => "wait",
        OnFinish::Announce => "announce",
        OnFinish::Report => "report",
    }
}

fn then(text: &str) -> Option<OnFinish> {
    [OnFinish::Wait, OnFinish::Announce, OnFinish::Report]
        .into_iter()
        .find(|then| on_finish_text(*then) == text)
}

/// An unknown role counts as the lowest.
fn role(text: &str) -> Role {
    text.parse().unwrap_or(Role::Guest)
}

#[cfg(test)]
mod tests;
