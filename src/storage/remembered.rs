//! A copy in memory of rows that were looked up. Only this process writes them, so a copy is true until we write.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use rusqlite::Connection;

use super::{Db, StoreError};

/// Reads through to the database the first time a key is asked for.
pub struct Remembered<K, V> {
    db: Db,
    load: fn(&Connection, &K) -> rusqlite::Result<V>,
    seen: DashMap<K, V>,
    /// Counts changes, so that a read that began before one is not remembered after it.
    changes: AtomicU64,
}

impl<K, V> Remembered<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Keys remembered before the memory is emptied and filled anew.
    const MOST_SEEN: usize = 50_000;

    pub fn new(db: Db, load: fn(&Connection, &K) -> rusqlite::Result<V>) -> Self {
        Remembered { db, load, seen: DashMap::new(), changes: AtomicU64::new(0) }
    }

    pub async fn get(&self, key: &K) -> Result<V, StoreError> {
        if let Some(seen) = self.seen.get(key) {
            return Ok(seen.clone());
        }
        let before = self.changes.load(Ordering::SeqCst);
        let (load, own) = (self.load, key.clone());
        let value = self.db.read(move |connection| load(connection, &own)).await?;
        if self.seen.len() >= Self::MOST_SEEN {
            self.seen.clear();
        }
        self.remember(key, &value, before);
        Ok(value)
    }

    fn remember(&self, key: &K, value: &V, before: u64) {
        // Compared under the lock that `changed` needs to forget the key: a change either is seen here or comes after.
        let entry = self.seen.entry(key.clone());
        if self.changes.load(Ordering::SeqCst) == before {
            entry.insert(value.clone());
        }
    }

    /// Call after a transaction that changed the key's row has committed.
    pub fn changed(&self, key: &K) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.seen.remove(key);
    }

    /// Call after a transaction that changed rows of many keys has committed.
    pub fn all_changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.seen.clear();
    }
}
