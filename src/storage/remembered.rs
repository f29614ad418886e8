//! A copy in memory of rows read before. Only this process writes them, so a copy is true until our
//! next write.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use rusqlite::Connection;

use super::{Db, StoreError};

/// Reads the value of a key.
type Load<K, V> = dyn Fn(&Connection, &K) -> rusqlite::Result<V> + Send + Sync;

/// Reads a key from the database the first time.
pub struct Remembered<K, V> {
    db: Db,
    load: Arc<Load<K, V>>,
    seen: DashMap<K, V>,
    /// Counts changes, so a read begun before a change is not remembered after the change.
    changes: AtomicU64,
}

impl<K, V> Remembered<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Keys remembered before the copy is emptied and filled anew.
    const MOST_SEEN: usize = 50_000;

    pub fn new(
        db: Db,
        load: impl Fn(&Connection, &K) -> rusqlite::Result<V> + Send + Sync + 'static,
    ) -> Self {
        Remembered {
            db,
            load: Arc::new(load),
            seen: DashMap::new(),
            changes: AtomicU64::new(0),
        }
    }

    pub async fn get(&self, key: &K) -> Result<V, StoreError> {
        if let Some(seen) = self.seen.get(key) {
            return Ok(seen.clone());
        }
        let before = self.changes.load(Ordering::SeqCst);
        let (load, own) = (self.load.clone(), key.clone());
        let value = self
            .db
            .read(move |connection| load(connection, &own))
            .await?;
        if self.seen.len() >= Self::MOST_SEEN {
            self.seen.clear();
        }
        self.remember(key, &value, before);
        Ok(value)
    }

    fn remember(&self, key: &K, value: &V, before: u64) {
        // Compared under the lock `changed` needs to forget the key: a change either is seen here
        // or comes after.
        let entry = self.seen.entry(key.clone());
        if self.changes.load(Ordering::SeqCst) == before {
            entry.insert(value.clone());
        }
    }

    /// Call after the commit of a change to the key's row.
    pub fn changed(&self, key: &K) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.seen.remove(key);
    }

    /// Call after the commit of a change to rows of many keys.
    pub fn all_changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.seen.clear();
    }
}
