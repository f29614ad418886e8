//! Keys of callers over HTTP: the `http_keys` table. The table has digests of secrets, and no
//! secret.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

/// Ended keys are listed for so long.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// SHA-256 of a secret.
pub(crate) type Digest = [u8; 32];

/// The rights of a caller. Each scope includes all earlier scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// Look at everything.
    Read,
    /// Run the place like its operator: switch, stop, retry, remember, let people in.
    Operate,
    /// Change agents, config, roles and tokens.
    Admin,
}

impl Scope {
    pub(crate) const ALL: [Scope; 3] = [Scope::Read, Scope::Operate, Scope::Admin];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }

    pub(crate) fn named(word: &str) -> Option<Self> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// The kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// For programs.
    Token,
    /// The cookie of a browser.
    SignIn,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Token => "token",
            Kind::SignIn => "sign-in",
        }
    }
}

/// A key to the HTTP door, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) id: i64,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Set for a sign-in from a platform.
    pub(crate) person: Option<String>,
    pub(crate) scope: Scope,
    /// Unix milliseconds, as all times here.
    pub(crate) created_at: i64,
    pub(crate) created_by: String,
    pub(crate) expires_at: Option<i64>,
    pub(crate) last_used_at: Option<i64>,
}

impl Key {
    pub(crate) fn is_over(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A key to be written.
#[derive(Debug, Clone)]
pub(crate) struct NewKey {
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    pub(crate) name: String,
    pub(crate) person: Option<String>,
    pub(crate) scope: Scope,
    pub(crate) created_by: String,
    pub(crate) expires_at: Option<i64>,
}

pub(crate) fn add(tx: &Transaction<'_>, key: &NewKey, now: i64) -> rusqlite::Result<Key> {
    tx.prepare_cached(
        "INSERT INTO http_keys (kind, digest, name, person, scope, created_at, created_by, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        key.kind.as_str(),
        key.digest,
        key.name,
        key.person,
        key.scope.as_str(),
        now,
        key.created_by,
        key.expires_at
    ])?;
    Ok(Key {
        id: tx.last_insert_rowid(),
        kind: key.kind,
        name: key.name.clone(),
        person: key.person.clone(),
        scope: key.scope,
        created_at: now,
        created_by: key.created_by.clone(),
        expires_at: key.expires_at,
        last_used_at: None,
    })
}

const COLUMNS: &str =
    "id, kind, name, person, scope, created_at, created_by, expires_at, last_used_at, digest";

/// All keys, the newest first.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<(Digest, Key)>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM http_keys ORDER BY id DESC"))?;
    let rows = statement.query_map([], row)?;
    rows.collect()
}

/// The token with this name, or the key with this number.
pub(crate) fn find(connection: &Connection, word: &str) -> rusqlite::Result<Option<Key>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM http_keys
         WHERE (kind = 'token' AND name = ?1) OR CAST(id AS TEXT) = ?1
         ORDER BY kind = 'token' AND name = ?1 DESC LIMIT 1"
    );
    let found = connection.prepare_cached(&sql)?.query_row([word], row);
    Ok(found.optional()?.map(|(_, key)| key))
}

pub(crate) fn remove(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM http_keys WHERE id = ?1", [id])
        .map(drop)
}

/// Keeps the newest keys of a kind.
pub(crate) fn keep_newest(tx: &Transaction<'_>, kind: Kind, most: u32) -> rusqlite::Result<()> {
    let sql = "DELETE FROM http_keys WHERE kind = ?1 AND id NOT IN
               (SELECT id FROM http_keys WHERE kind = ?1 ORDER BY id DESC LIMIT ?2)";
    tx.execute(sql, params![kind.as_str(), most]).map(drop)
}

pub(crate) fn count(connection: &Connection, kind: Kind) -> rusqlite::Result<u32> {
    let sql = "SELECT count(*) FROM http_keys WHERE kind = ?1";
    connection.query_row(sql, [kind.as_str()], |row| row.get(0))
}

pub(crate) fn used(tx: &Transaction<'_>, id: i64, now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE http_keys SET last_used_at = ?2 WHERE id = ?1";
    tx.execute(sql, params![id, now]).map(drop)
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM http_keys WHERE id IN (SELECT id FROM http_keys WHERE expires_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

fn row(row: &Row<'_>) -> rusqlite::Result<(Digest, Key)> {
    let kind = match row.get_ref(1)?.as_str()? {
        "token" => Kind::Token,
        _ => Kind::SignIn,
    };
    let scope: String = row.get(4)?;
    let key = Key {
        id: row.get(0)?,
        kind,
        name: row.get(2)?,
        person: row.get(3)?,
        // A word of a newer version gives the least.
        scope: Scope::named(&scope).unwrap_or(Scope::Read),
        created_at: row.get(5)?,
        created_by: row.get(6)?,
        expires_at: row.get(7)?,
        last_used_at: row.get(8)?,
    };
    Ok((row.get(9)?, key))
}
