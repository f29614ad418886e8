//! Groups that became supergroups with another id: the `chat_aliases` table, with a copy in memory.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use rusqlite::{Connection, Transaction, params};

use crate::domain::{ChatId, Moved, Origin, SessionKey};

/// All known moves.
#[derive(Debug, Default)]
pub struct Aliases {
    // A plain lock: every section is a single look-up without await.
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    new_of: HashMap<ChatId, ChatId>,
    old_of: HashMap<ChatId, ChatId>,
}

impl Aliases {
    pub fn new(moves: Vec<Moved>) -> Self {
        let aliases = Aliases::default();
        moves.into_iter().for_each(|moved| aliases.learn(moved));
        aliases
    }

    /// Call after the move is committed.
    pub fn learn(&self, Moved { old, new }: Moved) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.new_of.insert(old, new);
        known.old_of.insert(new, old);
    }

    /// The present key of a place.
    pub fn current(&self, place: &SessionKey) -> SessionKey {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let new = place.telegram_group().and_then(|chat| known.new_of.get(&chat));
        new.map_or_else(|| place.clone(), |new| place.in_telegram_group(*new))
    }

    /// Gives an origin the present id of its chat, and remembers the former id for bindings with that id.
    pub fn follow(&self, origin: &mut Origin) {
        let Some(chat) = origin.key.telegram_group() else { return };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(new) = known.new_of.get(&chat) {
            origin.key = origin.key.in_telegram_group(*new);
            origin.formerly = Some(chat);
        } else if let Some(old) = known.old_of.get(&chat) {
            origin.formerly = Some(*old);
        }
    }
}

pub fn load(connection: &Connection) -> rusqlite::Result<Vec<Moved>> {
    let mut statement = connection.prepare("SELECT old, new FROM chat_aliases")?;
    let moves = statement.query_map([], |row| Ok(Moved { old: ChatId(row.get(0)?), new: ChatId(row.get(1)?) }))?;
    moves.collect()
}

/// Stores the move; true for a new move.
pub fn insert(tx: &Transaction<'_>, moved: Moved) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached("INSERT INTO chat_aliases (old, new) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    Ok(statement.execute(params![moved.old.0, moved.new.0])? == 1)
}

/// The old and the new key of a group, for renaming keys in a column of any table.
pub struct Renaming {
    pub old: String,
    pub new: String,
}

impl Renaming {
    /// Keys of topics need no renaming, because only supergroups have topics.
    pub fn of(moved: Moved) -> Self {
        Renaming { old: format!("telegram:group:{}", moved.old), new: format!("telegram:group:{}", moved.new) }
    }

    /// An SQL condition for the group's key and its members' keys, where `?1` is the old key.
    pub fn is_old(column: &str) -> String {
        format!("({column} = ?1 OR ({column} > ?1 || ':' AND {column} < ?1 || ';'))")
    }

    /// Renames where `condition` holds too. A row under the new key wins over the renamed row.
    pub fn rename(&self, tx: &Transaction<'_>, table: &str, column: &str, condition: &str) -> rusqlite::Result<()> {
        let (rest, is_old) = (self.old.len() + 1, Self::is_old(column));
        let sql =
            format!("UPDATE OR IGNORE {table} SET {column} = ?2 || substr({column}, {rest}) WHERE {is_old} AND {condition}");
        tx.execute(&sql, params![self.old, self.new]).map(drop)
    }
}
