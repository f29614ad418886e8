//! Groups that became supergroups with another id: the `chat_aliases` table, with a copy in memory.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use rusqlite::{Connection, Transaction, params};

use crate::domain::{ChatId, Moved, Origin, SessionKey};

/// All known moves.
#[derive(Debug, Default)]
pub struct Aliases {
    // A plain lock: every section is a single look-up without await.
    known: RwLock<KnownMoves>,
}

#[derive(Debug, Default)]
struct KnownMoves {
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
        let new = place
            .telegram_group()
            .and_then(|chat| known.new_of.get(&chat));
        new.map_or_else(|| place.clone(), |new| place.in_telegram_group(*new))
    }

    /// The key of a place before its group became a supergroup.
    pub fn former(&self, place: &SessionKey) -> Option<SessionKey> {
        let chat = place.telegram_group()?;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let old = known.old_of.get(&chat)?;
        Some(place.in_telegram_group(*old))
    }

    /// Gives an origin the present id of its chat, and remembers the former id for bindings with
    /// the former id.
    pub fn follow(&self, origin: &mut Origin) {
        let Some(chat) = origin.key.telegram_group() else {
            return;
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(new) = known.new_of.get(&chat) {
            origin.key = origin.key.in_telegram_group(*new);
            origin.formerly = Some(chat);
        } else if let Some(old) = known.old_of.get(&chat) {
            origin.formerly = Some(*old);
        }
    }
}

pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Vec<Moved>> {
    let mut statement = connection.prepare("SELECT old, new FROM chat_aliases")?;
    let moves = statement.query_map([], |row| {
        Ok(Moved {
            old: ChatId(row.get(0)?),
            new: ChatId(row.get(1)?),
        })
    })?;
    moves.collect()
}

/// Stores the move; true for a new move.
pub(crate) fn insert(tx: &Transaction<'_>, moved: Moved) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO chat_aliases (old, new) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    Ok(statement.execute(params![moved.old.0, moved.new.0])? == 1)
}
