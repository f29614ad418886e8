//! Calls of tools that wait for a person's yes or no, and those that have got one: the `approvals`
//! table.

use ring::digest::{SHA256, digest};
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::audit::Actor;
use super::journal::CallId;
use crate::domain::{AgentUid, Labels, MessageId, PersonId, Role, SessionKey};
use crate::fail_points::{self, Write};
use crate::models::ToolCall;
use crate::routing::places;

/// Decided approvals are kept this long.
const KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Where an approval stands. The text forms are stored and shown, so they stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Waiting,
    Allowed,
    Refused,
    /// Nobody decided in time.
    Expired,
    /// The turn ended, or its question was taken back.
    Cancelled,
}

impl State {
    pub(crate) const ALL: [State; 5] = [
        State::Waiting,
        State::Allowed,
        State::Refused,
        State::Expired,
        State::Cancelled,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Allowed => "allowed",
            State::Refused => "refused",
            State::Expired => "expired",
            State::Cancelled => "cancelled",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        State::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A person's yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Allow,
    Refuse,
}

impl Verdict {
    fn state(self) -> State {
        match self {
            Verdict::Allow => State::Allowed,
            Verdict::Refuse => State::Refused,
        }
    }
}

/// A question about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) call: CallId,
    /// Where the people of the turn are.
    pub(crate) place: SessionKey,
    pub(crate) agent: AgentUid,
    pub(crate) tool: String,
    /// As people are shown them.
    pub(crate) arguments: String,
    pub(crate) hash: String,
    /// The rule that asks.
    pub(crate) why: String,
    /// What the turn had read.
    pub(crate) read: Labels,
    /// For whom the turn is.
    pub(crate) person: PersonId,
    pub(crate) person_name: String,
    pub(crate) role: Role,
    /// The lowest role that decides.
    pub(crate) least: Role,
    /// Unix milliseconds, as all times here.
    pub(crate) asked_at: i64,
    pub(crate) expires_at: i64,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approval {
    pub(crate) id: i64,
    pub(crate) wanted: Wanted,
    pub(crate) state: State,
    pub(crate) decided_by: Option<String>,
    pub(crate) decided_by_name: Option<String>,
    pub(crate) decided_at: Option<i64>,
    /// The allowed call has begun.
    pub(crate) began_at: Option<i64>,
}

impl Approval {
    /// A question that was just asked.
    pub(crate) fn new(id: i64, wanted: Wanted) -> Self {
        Approval {
            id,
            wanted,
            state: State::Waiting,
            decided_by: None,
            decided_by_name: None,
            decided_at: None,
            began_at: None,
        }
    }

    /// The name of the person who decided, else the id.
    pub(crate) fn decider(&self) -> Option<&str> {
        let name = self.decided_by_name.as_deref();
        name.filter(|name| !name.is_empty())
            .or(self.decided_by.as_deref())
    }
}

/// Names a call with exactly these arguments.
pub(crate) fn hash(call: &ToolCall) -> String {
    let whole = format!("{}\n{}", call.name, call.arguments);
    let digest = digest(&SHA256, whole.as_bytes());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes a question. Returns its number.
pub(crate) fn ask(tx: &Transaction<'_>, wanted: &Wanted) -> rusqlite::Result<i64> {
    fail_points::writes(Write::ApprovalAsked);
    let place = places::ensure(tx, &wanted.place, wanted.asked_at)?;
    tx.prepare_cached(
        "INSERT INTO approvals (inbox_id, round, number, place_id, agent_uid, tool, arguments, hash, why, labels,
                                person, person_name, role, least, asked_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?
    .execute(params![
        wanted.call.inbox_id,
        wanted.call.round,
        i64::try_from(wanted.call.number).unwrap_or(i64::MAX),
        place,
        wanted.agent.to_string(),
        wanted.tool,
        wanted.arguments,
        wanted.hash,
        wanted.why,
        wanted.read.bits(),
        wanted.person.to_string(),
        wanted.person_name,
        wanted.role.as_str(),
        wanted.least.as_str(),
        wanted.asked_at,
        wanted.expires_at,
    ])?;
    Ok(tx.last_insert_rowid())
}

/// Notes the messages that show a question.
pub(crate) fn shown_in(tx: &Transaction<'_>, id: i64, outbox: &[i64]) -> rusqlite::Result<()> {
    let notices = serde_json::json!(outbox).to_string();
    tx.prepare_cached("UPDATE approvals SET notices = ?2 WHERE id = ?1")?
        .execute(params![id, notices])
        .map(drop)
}

/// What a decision came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    Now(Approval),
    /// It did not wait any more.
    Before(Approval),
    Unknown,
}

/// Decides a waiting approval, once.
pub(crate) fn decide(
    tx: &Transaction<'_>,
    id: i64,
    verdict: Verdict,
    by: &Actor,
    now: i64,
) -> rusqlite::Result<Decided> {
    fail_points::writes(Write::ApprovalDecided);
    let (who, name) = by.columns();
    let changed = tx
        .prepare_cached(
            "UPDATE approvals SET state = ?2, decided_by = ?3, decided_by_name = ?4, decided_at = ?5
             WHERE id = ?1 AND state = 'waiting' AND expires_at > ?5",
        )?
        .execute(params![id, verdict.state().as_str(), who, name, now])?;
    Ok(match get(tx, id)? {
        None => Decided::Unknown,
        Some(approval) if changed == 1 => Decided::Now(approval),
        Some(approval) => Decided::Before(approval),
    })
}

/// Forgets the message with the pressed button, because the reply to the press takes its place.
pub(crate) fn forget_pressed(
    tx: &Transaction<'_>,
    id: i64,
    place: &SessionKey,
    message: &MessageId,
) -> rusqlite::Result<()> {
    let shown = notices(tx, id)?;
    let is_pressed =
        |notice: &Notice| notice.message.as_ref() == Some(message) && notice.place == *place;
    let left: Vec<i64> = shown
        .iter()
        .filter(|notice| !is_pressed(notice))
        .map(|notice| notice.outbox_id)
        .collect();
    shown_in(tx, id, &left)
}

/// Notes that an allowed call begins. False if it has begun before, or is not allowed.
pub(crate) fn begin(tx: &Transaction<'_>, id: i64, now: i64) -> rusqlite::Result<bool> {
    fail_points::writes(Write::ApprovalBegun);
    let sql = "UPDATE approvals SET began_at = ?2 WHERE id = ?1 AND state = 'allowed' AND began_at IS NULL";
    Ok(tx.prepare_cached(sql)?.execute(params![id, now])? == 1)
}

/// Ends approvals without a decision in time. Returns their turns.
pub(crate) fn expire(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = "UPDATE approvals SET state = 'expired', decided_at = ?1 WHERE state = 'waiting' AND expires_at <= ?1
               RETURNING inbox_id";
    let mut statement = tx.prepare_cached(sql)?;
    statement.query_map([now], |row| row.get(0))?.collect()
}

/// Takes back the open questions of a turn.
pub(crate) fn cancel(tx: &Transaction<'_>, inbox_id: i64, now: i64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE approvals SET state = 'cancelled', decided_at = ?2 WHERE state = 'waiting' AND inbox_id = ?1",
    )?
    .execute(params![inbox_id, now])
    .map(drop)
}

/// Takes back the open questions in a place. Returns their turns.
pub(crate) fn cancel_in(
    tx: &Transaction<'_>,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "UPDATE approvals SET state = 'cancelled', decided_at = ?2
               WHERE state = 'waiting' AND place_id = (SELECT id FROM places WHERE key = ?1) RETURNING inbox_id";
    let mut statement = tx.prepare_cached(sql)?;
    let turns = statement.query_map(params![place.to_string(), now], |row| row.get(0))?;
    turns.collect()
}

/// Takes back the questions of turns whose record is gone.
pub(crate) fn cancel_orphans(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE approvals SET state = 'cancelled', decided_at = ?1
         WHERE state = 'waiting' AND inbox_id NOT IN (SELECT inbox_id FROM open_turns)",
        [now],
    )
    .map(drop)
}

/// A message that shows an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) outbox_id: i64,
    pub(crate) place: SessionKey,
    /// Absent before the message is sent.
    pub(crate) message: Option<MessageId>,
}

/// The messages that show an approval.
pub(crate) fn notices(connection: &Connection, id: i64) -> rusqlite::Result<Vec<Notice>> {
    let mut statement = connection.prepare_cached(
        "SELECT outbox.id, places.key, outbox.message_id FROM approvals, json_each(approvals.notices) AS each
         JOIN outbox ON outbox.id = each.value JOIN places ON places.id = outbox.place_id
         WHERE approvals.id = ?1 ORDER BY outbox.id",
    )?;
    let rows = statement.query_map([id], |row| {
        let (outbox_id, message) = (row.get(0)?, row.get::<_, Option<String>>(2)?);
        Ok(row.get::<_, String>(1)?.parse().ok().map(|place| Notice {
            outbox_id,
            place,
            message: message.map(MessageId),
        }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Approvals whose end is not shown yet.
pub(crate) fn untold(connection: &Connection, most: u32) -> rusqlite::Result<Vec<Approval>> {
    rows(
        connection,
        "WHERE told = 0 AND state <> 'waiting' ORDER BY approvals.id LIMIT ?1",
        params![most],
    )
}

/// Notes that all messages show the end. False if that was noted before.
pub(crate) fn told(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<bool> {
    let sql = "UPDATE approvals SET told = 1, notices = '[]' WHERE id = ?1 AND told = 0";
    Ok(tx.prepare_cached(sql)?.execute([id])? == 1)
}

/// The number of open approvals, and whether one of them is over at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub(crate) open: u64,
    pub(crate) is_due: bool,
    pub(crate) is_untold: bool,
}

pub(crate) fn outlook(connection: &Connection, now: i64) -> rusqlite::Result<Outlook> {
    connection
        .prepare_cached(
            "SELECT count(*), coalesce(min(expires_at) <= ?1, 0),
                    EXISTS (SELECT 1 FROM approvals WHERE told = 0 AND state <> 'waiting')
             FROM approvals WHERE state = 'waiting'",
        )?
        .query_row([now], |row| {
            Ok(Outlook {
                open: row.get::<_, i64>(0)?.unsigned_abs(),
                is_due: row.get(1)?,
                is_untold: row.get(2)?,
            })
        })
}

/// The number of open approvals.
pub(crate) fn open(connection: &Connection) -> rusqlite::Result<u64> {
    outlook(connection, 0).map(|outlook| outlook.open)
}

/// The number of open approvals of a place.
pub(crate) fn open_in(connection: &Connection, place: &SessionKey) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM approvals WHERE state = 'waiting' AND place_id = (SELECT id FROM places WHERE key = ?1)";
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row([place.to_string()], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// The approvals of a turn, oldest first.
pub(crate) fn of_turn(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Vec<Approval>> {
    rows(
        connection,
        "WHERE inbox_id = ?1 ORDER BY approvals.id",
        params![inbox_id],
    )
}

pub(crate) fn get(connection: &Connection, id: i64) -> rusqlite::Result<Option<Approval>> {
    let found = rows(connection, "WHERE approvals.id = ?1", params![id])?;
    Ok(found.into_iter().next())
}

/// A page of approvals, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) state: Option<State>,
    /// Only older ones.
    pub(crate) before: Option<i64>,
    pub(crate) most: u32,
}

pub(crate) fn list(connection: &Connection, page: Page) -> rusqlite::Result<Vec<Approval>> {
    rows(
        connection,
        "WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR approvals.id < ?2) ORDER BY approvals.id DESC LIMIT ?3",
        params![page.state.map(State::as_str), page.before, page.most],
    )
}

/// Approvals above this number, oldest first.
pub(crate) fn after(
    connection: &Connection,
    id: i64,
    most: u32,
) -> rusqlite::Result<Vec<Approval>> {
    rows(
        connection,
        "WHERE approvals.id > ?1 ORDER BY approvals.id LIMIT ?2",
        params![id, most],
    )
}

pub(crate) fn newest_id(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(id), 0) FROM approvals";
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}

fn rows(
    connection: &Connection,
    which: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<Approval>> {
    let sql = format!(
        "SELECT approvals.id, inbox_id, round, number, key, agent_uid, tool, arguments, hash, why, labels, person, person_name,
                role, least, asked_at, expires_at, state, decided_by, decided_by_name, decided_at, began_at
         FROM approvals JOIN places ON places.id = place_id {which}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map(values, approval)?;
    found.filter_map(Result::transpose).collect()
}

/// None for a row that no version of ours has written.
fn approval(row: &Row<'_>) -> rusqlite::Result<Option<Approval>> {
    let text = |column: usize| row.get::<_, String>(column);
    let parsed = (
        text(4)?.parse(),
        text(5)?.parse(),
        text(11)?.parse(),
        text(13)?.parse::<Role>(),
        text(14)?.parse::<Role>(),
        State::parse(&text(17)?),
    );
    let (Ok(place), Ok(agent), Ok(person), Ok(role), Ok(least), Some(state)) = parsed else {
        return Ok(None);
    };
    Ok(Some(Approval {
        id: row.get(0)?,
        wanted: Wanted {
            call: CallId {
                inbox_id: row.get(1)?,
                round: row.get(2)?,
                number: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(usize::MAX),
            },
            place,
            agent,
            tool: text(6)?,
            arguments: text(7)?,
            hash: text(8)?,
            why: text(9)?,
            read: Labels::from_bits(row.get(10)?),
            person,
            person_name: text(12)?,
            role,
            least,
            asked_at: row.get(15)?,
            expires_at: row.get(16)?,
        },
        state,
        decided_by: row.get(18)?,
        decided_by_name: row.get(19)?,
        decided_at: row.get(20)?,
        began_at: row.get(21)?,
    }))
}

/// Deletes the approvals of a purged agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    tx.execute(
        "DELETE FROM approvals WHERE agent_uid = ?1",
        [uid.to_string()],
    )
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    cancel_orphans(tx, now)?;
    let sql = "DELETE FROM approvals WHERE id IN
               (SELECT id FROM approvals WHERE state <> 'waiting' AND asked_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}
