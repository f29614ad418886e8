//! The origins of imported things: the `imports` table. A second import looks here for
//! the things carried before.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, params};

use crate::domain::AgentUid;

/// An installation of another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// `openclaw`
    pub(crate) system: &'static str,
    /// The folder of the installation.
    pub(crate) folder: String,
}

/// The kind of a carried thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Carried {
    Agent,
    File,
    Memory,
    Conversation,
    Rule,
    Person,
}

impl Carried {
    const ALL: [Carried; 6] = [
        Carried::Agent,
        Carried::File,
        Carried::Memory,
        Carried::Conversation,
        Carried::Rule,
        Carried::Person,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Carried::Agent => "agent",
            Carried::File => "file",
            Carried::Memory => "memory",
            Carried::Conversation => "conversation",
            Carried::Rule => "rule",
            Carried::Person => "person",
        }
    }
}

/// A carried thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) agent: Option<AgentUid>,
    pub(crate) target: String,
    pub(crate) stamp: String,
}

/// Carried things by kind and by the id in the other system.
pub(crate) type Rows = HashMap<(Carried, String), Row>;

pub(crate) fn load(connection: &Connection, origin: &Origin) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, source_id, agent_uid, target, stamp FROM imports WHERE system = ?1 AND source = ?2",
    )?;
    let rows = statement.query_map(params![origin.system, origin.folder], |row| {
        let kind: String = row.get(0)?;
        let kind = Carried::ALL
            .into_iter()
            .find(|known| known.as_str() == kind);
        let uid: Option<String> = row.get(2)?;
        let carried = Row {
            agent: uid.and_then(|uid| uid.parse().ok()),
            target: row.get(3)?,
            stamp: row.get(4)?,
        };
        let id: String = row.get(1)?;
        Ok(kind.map(|kind| ((kind, id), carried)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Whether anything was carried from there.
pub(crate) fn is_any(connection: &Connection, origin: &Origin) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM imports WHERE system = ?1 AND source = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.exists(params![origin.system, origin.folder])
}

/// Notes a carried thing. If the thing is a row, the transaction of the row writes the note too.
pub(crate) fn keep(
    tx: &Transaction<'_>,
    origin: &Origin,
    (kind, id): (Carried, &str),
    row: &Row,
    now: i64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO imports (system, source, kind, source_id, agent_uid, target, stamp, at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT DO UPDATE SET agent_uid = excluded.agent_uid, target = excluded.target,
                                         stamp = excluded.stamp, at = excluded.at";
    let uid = row.agent.map(|uid| uid.to_string());
    tx.prepare_cached(sql)?
        .execute(params![
            origin.system,
            origin.folder,
            kind.as_str(),
            id,
            uid,
            row.target,
            row.stamp,
            now
        ])
        .map(drop)
}

/// Forgets the things imported with a destroyed agent, so that they can be imported again.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<()> {
    tx.execute(
        "DELETE FROM imports WHERE agent_uid = ?1",
        [uid.to_string()],
    )
    .map(drop)
}
