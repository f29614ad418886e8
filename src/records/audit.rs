//! Changes that people have made: the `audit` table. An entry has no words of a conversation.

use rusqlite::{Connection, Row, Transaction, params};

use crate::access::grants::Grantor;
use crate::domain::{AgentId, Inbound, PersonId, SessionKey};
use crate::routing::places;

/// Entries are kept this long.
const KEPT_MS: i64 = 400 * 24 * 60 * 60 * 1000;

/// The origin of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Actor {
    Person {
        id: PersonId,
        name: String,
    },
    /// The command line, with the login name on this machine.
    Cli {
        login: String,
    },
    /// A program with an API token, by the token's name.
    Token {
        name: String,
    },
    /// A browser, with the name of the signed-in person.
    Dashboard {
        name: String,
    },
    /// A saved file of the home.
    Config,
    /// The gateway itself, such as the end of a time-limited switch.
    Gateway,
}

impl Actor {
    pub(crate) fn of(inbound: &Inbound) -> Self {
        Actor::Person {
            id: inbound.origin.person.clone(),
            name: inbound.person_name.clone(),
        }
    }

    /// As grants name the actor: the id, and the name.
    pub(crate) fn grantor(&self, at: i64) -> Grantor {
        let (id, name) = self.columns();
        Grantor {
            id,
            name: name.filter(|name| !name.is_empty()).map(str::to_owned),
            at,
        }
    }

    pub(super) fn columns(&self) -> (String, Option<&str>) {
        match self {
            Actor::Person { id, name } => (id.to_string(), Some(name)),
            Actor::Cli { login } => ("cli".into(), Some(login)),
            Actor::Token { name } => ("token".into(), Some(name)),
            Actor::Dashboard { name } => ("dashboard".into(), Some(name)),
            Actor::Config => ("config".into(), None),
            Actor::Gateway => ("gateway".into(), None),
        }
    }
}

/// A kind of change. The text forms are stored and shown, so they stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Switch,
    Open,
    Close,
    Pair,
    /// A guest was turned away.
    TurnAway,
    Unpair,
    Reload,
    /// A conversation was begun anew by an operator.
    NewConversation,
    /// A conversation was copied to a place of the terminal or the web chat.
    Fork,
    /// A conversation was moved to another place.
    Move,
    Bind,
    Unbind,
    AgentPause,
    AgentResume,
    AgentRestart,
    AgentReset,
    AgentAdd,
    AgentDefault,
    AgentRename,
    AgentRemove,
    AgentRestore,
    AgentPurge,
    AgentImport,
    New,
    Stop,
    Forget,
    Retry,
    Drop,
    /// Delivery switched off or on in a place.
    Deliver,
    /// A person has another role, with all agents or with a single agent.
    Role,
    /// An id was linked to a person.
    Link,
    /// A person was added with ids and a name.
    AddPerson,
    /// Everything granted to a person was taken back.
    RemovePerson,
    /// A limit was raised for a day or a month.
    Allow,
    Pause,
    Resume,
    /// The home was brought back from a backup.
    Restore,
    /// A model or a platform was connected by `parlor setup`.
    Setup,
    /// A key for programs was made.
    TokenCreate,
    /// A token or a sign-in was ended.
    TokenRevoke,
    /// A browser came in by a link.
    SignIn,
    /// Keys of an agent's table in config.toml.
    AgentEdit,
    /// An identity file of an agent.
    AgentFile,
    /// A memory added by an operator.
    Remember,
    /// config.toml as a whole.
    Config,
    JobAdd,
    JobRemove,
    JobPause,
    JobResume,
    /// A job was run by hand.
    JobRun,
    /// A person allowed a call of a tool.
    ApprovalAllow,
    ApprovalRefuse,
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Action::Switch => "switch",
            Action::Open => "open",
            Action::Close => "close",
            Action::Pair => "pair",
            Action::TurnAway => "turn away",
            Action::Unpair => "unpair",
            Action::Reload => "reload",
            Action::NewConversation => "new conversation",
            Action::Fork => "fork",
            Action::Move => "move",
            Action::Bind => "bind",
            Action::Unbind => "unbind",
            Action::AgentPause => "agent pause",
            Action::AgentResume => "agent resume",
            Action::AgentRestart => "agent restart",
            Action::AgentReset => "agent reset",
            Action::AgentAdd => "agent add",
            Action::AgentDefault => "agent default",
            Action::AgentRename => "agent rename",
            Action::AgentRemove => "agent remove",
            Action::AgentRestore => "agent restore",
            Action::AgentPurge => "agent purge",
            Action::AgentImport => "agent import",
            Action::New => "new",
            Action::Stop => "stop",
            Action::Forget => "forget",
            Action::Retry => "retry",
            Action::Drop => "drop",
            Action::Deliver => "deliver",
            Action::Role => "role",
            Action::Link => "link",
            Action::AddPerson => "person add",
            Action::Setup => "setup",
            Action::RemovePerson => "person remove",
            Action::Allow => "allow",
            Action::Pause => "pause",
            Action::Resume => "resume",
            Action::Restore => "restore",
            Action::TokenCreate => "token create",
            Action::TokenRevoke => "token revoke",
            Action::SignIn => "sign in",
            Action::AgentEdit => "agent edit",
            Action::AgentFile => "agent file",
            Action::Remember => "remember",
            Action::Config => "config",
            Action::JobAdd => "job add",
            Action::JobRemove => "job remove",
            Action::JobPause => "job pause",
            Action::JobResume => "job resume",
            Action::JobRun => "job run",
            Action::ApprovalAllow => "approval allow",
            Action::ApprovalRefuse => "approval refuse",
        }
    }
}

/// A change to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change<'a> {
    pub(crate) action: Action,
    pub(crate) place: Option<&'a SessionKey>,
    pub(crate) agent: Option<&'a AgentId>,
    /// The changed thing, if neither the place nor the agent, such as a person's id.
    pub(crate) subject: Option<String>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

impl<'a> Change<'a> {
    pub(crate) fn new(action: Action) -> Self {
        Change {
            action,
            place: None,
            agent: None,
            subject: None,
            before: None,
            after: None,
        }
    }

    pub(crate) fn at(self, place: &'a SessionKey) -> Self {
        Change {
            place: Some(place),
            ..self
        }
    }

    pub(crate) fn of(self, agent: &'a AgentId) -> Self {
        Change {
            agent: Some(agent),
            ..self
        }
    }

    pub(crate) fn about(self, subject: impl ToString) -> Self {
        Change {
            subject: Some(subject.to_string()),
            ..self
        }
    }

    pub(crate) fn from(self, before: impl ToString) -> Self {
        Change {
            before: Some(before.to_string()),
            ..self
        }
    }

    pub(crate) fn to(self, after: impl ToString) -> Self {
        Change {
            after: Some(after.to_string()),
            ..self
        }
    }
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) at: i64,
    /// A person's id, `cli`, `token`, `dashboard`, `config` or `gateway`.
    pub(crate) actor: String,
    pub(crate) name: Option<String>,
    /// The key of the place today.
    pub(crate) place: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) action: String,
    pub(crate) subject: Option<String>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// Written in the transaction of the change itself.
pub(crate) fn note(
    tx: &Transaction<'_>,
    actor: &Actor,
    change: &Change<'_>,
    now: i64,
) -> rusqlite::Result<()> {
    let (id, name) = actor.columns();
    let place = change.place.map(|place| places::ensure(tx, place, now));
    tx.prepare_cached(
        "INSERT INTO audit (at, actor, name, place_id, agent, action, subject, before, after)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        now,
        id,
        name,
        place.transpose()?,
        change.agent.map(ToString::to_string),
        change.action.name(),
        change.subject,
        change.before,
        change.after,
    ])
    .map(drop)
}

/// The filter for entries. Absent: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Changes of this agent, and switches from or to the agent.
    pub(crate) agent: Option<String>,
    /// The key of a place.
    pub(crate) place: Option<String>,
    /// A person's id, `cli`, `token`, `dashboard`, `config` or `gateway`.
    pub(crate) by: Option<String>,
    /// Unix milliseconds.
    pub(crate) since: Option<i64>,
    /// Only entries older than the entry with this id.
    pub(crate) before: Option<i64>,
}

/// The newest entries, newest first.
pub(crate) fn latest(
    connection: &Connection,
    wanted: &Wanted,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection.prepare_cached(
        "SELECT audit.id, at, actor, audit.name, key, agent, action, subject, before, after
         FROM audit LEFT JOIN places ON places.id = place_id
         WHERE audit.id < ?1 AND at >= ?2 AND (?3 IS NULL OR actor = ?3) AND (?4 IS NULL OR key = ?4)
           AND (?5 IS NULL OR agent = ?5 OR (action IN ('switch', 'bind', 'unbind', 'rename') AND ?5 IN (before, after)))
         ORDER BY audit.id DESC LIMIT ?6",
    )?;
    let bound = params![
        wanted.before.unwrap_or(i64::MAX),
        wanted.since.unwrap_or(0),
        wanted.by,
        wanted.place,
        wanted.agent,
        limit
    ];
    let rows = statement.query_map(bound, entry)?;
    rows.collect()
}

/// Entries behind the entry `id`, oldest first.
pub(crate) fn after(connection: &Connection, id: i64, limit: u32) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection.prepare_cached(
        "SELECT audit.id, at, actor, audit.name, key, agent, action, subject, before, after
         FROM audit LEFT JOIN places ON places.id = place_id WHERE audit.id > ?1 ORDER BY audit.id LIMIT ?2",
    )?;
    let rows = statement.query_map(params![id, limit], entry)?;
    rows.collect()
}

/// Zero without entries.
pub(crate) fn newest_id(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(id), 0) FROM audit";
    connection.query_row(sql, [], |row| row.get(0))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get(0)?,
        at: row.get(1)?,
        actor: row.get(2)?,
        name: row.get(3)?,
        place: row.get(4)?,
        agent: row.get(5)?,
        action: row.get(6)?,
        subject: row.get(7)?,
        before: row.get(8)?,
        after: row.get(9)?,
    })
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}
