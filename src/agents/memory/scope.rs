//! Decides about the visibility of memories. Every read takes a [`Scope`] and goes through its
//! [`Clause`].

use rusqlite::{Connection, params};

use crate::agents::Agent;
use crate::domain::AgentUid;

/// The reader of memories.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// No agent: global rows only.
    Global,
    /// An agent: its own rows, global rows, and the rows of agents in `read_memory_from`.
    Of(&'a Agent),
    /// The same without global rows.
    PrivateOf(&'a Agent),
}

/// The rows visible to a scope. No other code decides this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause {
    /// Agents whose private rows are visible; the first is the reader.
    owners: Vec<AgentUid>,
    has_global: bool,
}

/// The number of global rows in the index.
pub(super) const GLOBAL: i64 = 0;

impl Clause {
    pub(super) fn of(scope: Scope<'_>) -> Self {
        match scope {
            Scope::Global => Clause {
                owners: Vec::new(),
                has_global: true,
            },
            Scope::Of(agent) => Clause {
                owners: owners(agent),
                has_global: true,
            },
            Scope::PrivateOf(agent) => Clause {
                owners: owners(agent),
                has_global: false,
            },
        }
    }

    /// A condition on `memories AS m`. `?1` is [`Clause::owners`]. Archived rows fit neither side.
    pub(super) fn sql(&self) -> &'static str {
        match self.has_global {
            true => {
                "(m.visibility = 'global' OR (m.visibility = 'private' AND m.agent_uid IN (SELECT value FROM json_each(?1))))"
            }
            false => {
                "(m.visibility = 'private' AND m.agent_uid IN (SELECT value FROM json_each(?1)))"
            }
        }
    }

    /// The value of `?1`: a JSON list of uids.
    pub(super) fn owners(&self) -> String {
        let uids: Vec<String> = self.owners.iter().map(|uid| format!("\"{uid}\"")).collect();
        format!("[{}]", uids.join(","))
    }

    /// The numbers before visible words in the index. Scopes without any memory have no number.
    pub(super) fn numbers(&self, connection: &Connection) -> rusqlite::Result<Vec<i64>> {
        let mut find = connection.prepare_cached(
            "SELECT number FROM memory_scopes WHERE slots > 0 \
             AND ((number = ?2 AND ?3) OR agent_uid IN (SELECT value FROM json_each(?1))) ORDER BY number DESC",
        )?;
        let numbers = find.query_map(params![self.owners(), GLOBAL, self.has_global], |row| {
            row.get(0)
        })?;
        numbers.collect()
    }

    /// The clause with its values, for people.
    pub(super) fn shown(&self) -> String {
        let uids: Vec<String> = self.owners.iter().map(|uid| format!("'{uid}'")).collect();
        let private = format!(
            "visibility = 'private' AND agent_uid IN ({})",
            uids.join(", ")
        );
        match (self.has_global, uids.is_empty()) {
            (_, true) => "visibility = 'global'".to_owned(),
            (true, false) => format!("visibility = 'global' OR ({private})"),
            (false, false) => private,
        }
    }
}

/// The agents whose private rows an agent sees.
fn owners(agent: &Agent) -> Vec<AgentUid> {
    [agent.uid]
        .into_iter()
        .chain(agent.memory.read_from.iter().map(|peer| peer.uid))
        .collect()
}
