//! Conversations of an agent, exported to another home folder or imported from one.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction, params};
use serde::{Deserialize, Serialize};

use super::super::view::View;
use crate::domain::AgentUid;

/// A message outside the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportedMessage {
    pub(crate) place: String,
    pub(crate) conversation: i64,
    pub(crate) kind: ExportedKind,
    /// The message belongs to the agent's part.
    #[serde(default)]
    pub(crate) own: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) person_name: Option<String>,
    pub(crate) text: String,
    pub(crate) created_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExportedKind {
    Person,
    /// The exported agent.
    Agent,
    Handoff,
}

/// Exports the conversations with messages of an agent, as far as the agent's view goes. Messages
/// of other agents and talk among people are left out.
pub(crate) fn export(
    connection: &Connection,
    uid: AgentUid,
    view: View,
) -> rusqlite::Result<Vec<ExportedMessage>> {
    let mut statement = connection.prepare(&format!(
        "SELECT key, messages.conversation, kind, person, person_name, text, messages.created_at, part_uid IS ?2
         FROM messages JOIN places ON places.id = place_id
         WHERE (place_id, messages.conversation) IN (SELECT place_id, conversation FROM messages WHERE agent_uid = ?2)
           AND observed = 0 AND (agent_uid IS NULL OR agent_uid = ?2) AND {} ORDER BY messages.id",
        view.clause()
    ))?;
    let rows = statement.query_map([view.key(), uid.to_string()], |row| {
        let kind = match row.get::<_, String>(2)?.as_str() {
            "person" => ExportedKind::Person,
            "agent" => ExportedKind::Agent,
            _ => ExportedKind::Handoff,
        };
        Ok(ExportedMessage {
            place: row.get(0)?,
            conversation: row.get(1)?,
            kind,
            own: row.get(7)?,
            person: row.get(3)?,
            person_name: row.get(4)?,
            text: row.get(5)?,
            created_at: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// Imports conversations of an agent. If a place has a conversation already, that conversation goes
/// on, and the imported messages are kept as a past conversation.
pub(crate) fn import(
    tx: &Transaction<'_>,
    uid: AgentUid,
    carried: &[ExportedMessage],
) -> rusqlite::Result<()> {
    let mut known = tx.prepare("SELECT 1 FROM places WHERE key = ?1 AND active_at IS NOT NULL")?;
    let places: BTreeSet<&str> = carried
        .iter()
        .map(|message| message.place.as_str())
        .collect();
    let mut begun = BTreeSet::new();
    for place in places {
        if known.exists([place])? {
            begun.insert(place);
        }
    }
    let mut insert = tx.prepare(
        "INSERT INTO messages (place_id, conversation, kind, agent_uid, part_uid, person, person_name, text, created_at)
         VALUES ((SELECT id FROM places WHERE key = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut touch = tx.prepare(
        "INSERT INTO places (key, conversation, created_at, active_at) VALUES (?1, ?2, ?3, ?3)
         ON CONFLICT (key) DO UPDATE SET conversation = max(conversation, excluded.conversation),
             active_at = max(coalesce(active_at, 0), excluded.active_at)",
    )?;
    for message in carried {
        let is_new = !begun.contains(message.place.as_str());
        let conversation = if is_new {
            message.conversation.max(1)
        } else {
            0
        };
        let (kind, speaker) = match message.kind {
            ExportedKind::Person => ("person", None),
            ExportedKind::Agent => ("agent", Some(uid.to_string())),
            ExportedKind::Handoff => ("handoff", None),
        };
        let part = (message.own || speaker.is_some()).then(|| uid.to_string());
        let (person, name, at) = (&message.person, &message.person_name, message.created_at);
        if is_new {
            touch.execute(params![message.place, conversation, message.created_at])?;
        }
        insert.execute(params![
            message.place,
            conversation,
            kind,
            speaker,
            part,
            person,
            name,
            message.text,
            at
        ])?;
    }
    Ok(())
}
