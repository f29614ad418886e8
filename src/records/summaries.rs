//! Summaries of the older part of long conversations: the `summaries` table.
//!
//! Each view of a conversation has at most a single summary, and a new summary includes the old. If
//! each agent sees only its own part, a summary holds nothing of other agents' parts.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::journal;
use super::transcript::Conversation;
use super::view::View;
use crate::domain::{AgentUid, Labels, SessionKey};
use crate::routing::places::{self, Twin};

/// A summary of the older part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) text: String,
    /// The last message covered.
    pub(crate) upto: i64,
    /// The number of messages covered.
    pub(crate) messages: i64,
    /// The labels of all messages covered.
    pub(crate) labels: Labels,
}

pub(crate) fn of(
    connection: &Connection,
    place: &SessionKey,
    conversation: Conversation,
    view: View,
) -> rusqlite::Result<Option<Summary>> {
    let sql = "SELECT text, upto, messages, labels FROM summaries WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND conversation = ?2 AND part = ?3";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Summary {
            text: row.get(0)?,
            upto: row.get(1)?,
            messages: row.get(2)?,
            labels: journal::labels(row, 3)?,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_row(
            params![place.to_string(), conversation.number(), view.key()],
            read,
        )
        .optional()
}

pub(crate) fn keep(
    tx: &Transaction<'_>,
    place: &SessionKey,
    (conversation, view): (Conversation, View),
    by: AgentUid,
    summary: &Summary,
    now: i64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO summaries (place_id, conversation, part, upto, messages, agent_uid, text, created_at, labels)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
               ON CONFLICT DO UPDATE SET upto = excluded.upto, messages = excluded.messages, agent_uid = excluded.agent_uid,
                                         text = excluded.text, created_at = excluded.created_at, labels = excluded.labels";
    let Summary {
        text,
        upto,
        messages,
        labels,
    } = summary;
    let (place, agent) = (places::ensure(tx, place, now)?, by.to_string());
    tx.execute(
        sql,
        params![
            place,
            conversation.number(),
            view.key(),
            upto,
            messages,
            agent,
            text,
            now,
            labels.bits()
        ],
    )
    .map(drop)
}

/// Copies the summaries of a conversation to a new place. The messages must have been copied
/// before, singly and in order.
pub(crate) fn copy(
    tx: &Transaction<'_>,
    Twin { old, new }: Twin,
    conversation: i64,
) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO summaries (place_id, conversation, part, upto, messages, agent_uid, text, created_at, labels)
         SELECT ?2, (SELECT conversation FROM places WHERE id = ?2), part,
                (SELECT max(id) FROM (SELECT id, row_number() OVER (ORDER BY id) AS number FROM messages WHERE place_id = ?2)
                 WHERE number <= (SELECT count(*) FROM messages AS covered
                                  WHERE covered.place_id = ?1 AND covered.conversation = ?3 AND covered.id <= summaries.upto)),
                messages, agent_uid, text, created_at, labels
         FROM summaries WHERE place_id = ?1 AND conversation = ?3
             AND EXISTS (SELECT 1 FROM messages WHERE place_id = ?1 AND conversation = ?3 AND id <= summaries.upto)",
        params![old, new, conversation],
    )
    .map(drop)
}

/// Moves the summaries of a place together with its messages.
pub(crate) fn move_all(
    tx: &Transaction<'_>,
    Twin { old, new }: Twin,
    offset: i64,
) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM summaries WHERE place_id = ?1", [new])?;
    tx.execute(
        "UPDATE summaries SET place_id = ?2, conversation = conversation + ?3 WHERE place_id = ?1",
        params![old, new, offset],
    )
    .map(drop)
}

/// Deletes summaries of past conversations. No turn reads them, and the messages stay.
pub(crate) fn forget_old(tx: &Transaction<'_>, _now: i64, most: u32) -> rusqlite::Result<usize> {
    let over = "SELECT place_id, summaries.conversation FROM summaries LEFT JOIN places ON places.id = place_id
                WHERE places.id IS NULL OR summaries.conversation < places.conversation LIMIT ?1";
    tx.execute(
        &format!("DELETE FROM summaries WHERE (place_id, conversation) IN ({over})"),
        [most],
    )
}

/// Deletes summaries that cover this message. Turns read the messages themselves again.
pub(crate) fn forget_covering(tx: &Transaction<'_>, message: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM summaries WHERE upto >= ?1
               AND (place_id, conversation) = (SELECT place_id, conversation FROM messages WHERE id = ?1)";
    tx.prepare_cached(sql)?.execute([message]).map(drop)
}

/// Deletes the agent's summaries, and summaries of others with words of the agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    tx.execute(
        "DELETE FROM summaries WHERE agent_uid = ?1 OR EXISTS (
             SELECT 1 FROM messages WHERE messages.place_id = summaries.place_id
                 AND messages.conversation = summaries.conversation AND messages.id <= upto AND messages.agent_uid = ?1)",
        [uid.to_string()],
    )
}
