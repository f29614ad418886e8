//! Takes deleted rows out of the files themselves, not only out of the tables.
//!
//! `secure_delete` overwrites a deleted row where it stood. Copies of the row may still stand in
//! pages that SQLite had moved it out of, and in the log; writing the file anew and emptying the log
//! ends those. <https://www.sqlite.org/pragma.html#pragma_secure_delete>

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::{Db, StoreError, open};

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrub {
    /// The whole file is written anew.
    Rewrite,
    /// The same for a file up to this many bytes; of a larger file only the log is emptied.
    RewriteUpTo(u64),
}

/// How long to wait for other connections. A write that people wait for is held up for as long.
const PATIENCE: Duration = Duration::from_secs(2);
/// A copy of a smaller file is made in memory, and of a larger one in the system's folder for
/// temporary files, without a name.
const MOST_IN_MEMORY: u64 = 256 * 1024 * 1024;

impl Db {
    /// Removes what is left of deleted rows. False if readers kept the log from being emptied.
    pub(crate) async fn scrub(&self, how: Scrub) -> Result<bool, StoreError> {
        if self.is_harmed() {
            return Err(StoreError::Closed);
        }
        let path = self.path.clone();
        let done = tokio::task::spawn_blocking(move || {
            scrub(&path, how).map_err(|error| StoreError::at(&path, &error))
        });
        done.await
            .map_err(|error| StoreError::Failed(error.to_string()))?
    }
}

/// On a connection of its own, because the writer is always inside a transaction.
fn scrub(path: &Path, how: Scrub) -> rusqlite::Result<bool> {
    let connection = open::prepare(path)?;
    connection.busy_timeout(PATIENCE)?;
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let is_rewritten = match how {
        Scrub::Rewrite => true,
        Scrub::RewriteUpTo(most) => bytes <= most,
    };
    if is_rewritten {
        if bytes <= MOST_IN_MEMORY {
            connection.pragma_update(None, "temp_store", "memory")?;
        }
        connection.execute_batch("VACUUM")?;
    }
    empty_log(&connection)
}

fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0).map(|busy| busy == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_with(folder: &Path, word: &str) -> usize {
        let files = std::fs::read_dir(folder).unwrap().flatten();
        let count = files.map(|file| {
            let bytes = std::fs::read(file.path()).unwrap();
            let windows = bytes.windows(word.len());
            windows.filter(|window| *window == word.as_bytes()).count()
        });
        count.sum()
    }

    /// Rows that grow and shrink around the deleted ones make SQLite move them between pages.
    #[tokio::test]
    async fn nothing_is_left_of_deleted_rows() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let fill = |tx: &rusqlite::Transaction<'_>| {
            tx.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")?;
            for id in 0..2_000_i64 {
                let word = if id % 10 == 0 { "zanzibar" } else { "harmless" };
                let size = usize::try_from(id * 7 % 60).unwrap();
                tx.execute(
                    "INSERT INTO notes VALUES (?1, ?2)",
                    rusqlite::params![id * 7919 % 2_000, format!("{word} ").repeat(size + 1)],
                )?;
            }
            tx.execute_batch(
                "UPDATE notes SET text = text || text WHERE id % 3 = 0; UPDATE notes SET text = 'x' WHERE id % 5 = 0 AND text LIKE 'h%'",
            )
        };
        db.write(fill).await.unwrap();
        db.write(|tx| tx.execute("DELETE FROM notes WHERE text LIKE 'zanzibar%'", []))
            .await
            .unwrap();
        assert!(db.scrub(Scrub::Rewrite).await.unwrap());
        assert_eq!(bytes_with(folder.path(), "zanzibar"), 0);
        // The writer goes on with the new file.
        db.write(|tx| tx.execute("INSERT INTO notes VALUES (-1, 'new')", []))
            .await
            .unwrap();
        let count: i64 = db
            .read(|connection| {
                connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))
            })
            .await
            .unwrap();
        assert_eq!(count, 1_801);
        assert!(!db.is_harmed());
    }

    /// A row that was never moved is overwritten where it stands, without a new file.
    #[tokio::test]
    async fn a_deleted_row_is_overwritten_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let fill = |tx: &rusqlite::Transaction<'_>| {
            tx.execute_batch(
                "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);
                 INSERT INTO notes VALUES (1, 'a zanzibar'), (2, 'harmless')",
            )
        };
        db.write(fill).await.unwrap();
        db.write(|tx| tx.execute("DELETE FROM notes WHERE id = 1", []))
            .await
            .unwrap();
        assert!(db.scrub(Scrub::RewriteUpTo(1)).await.unwrap());
        assert_eq!(bytes_with(folder.path(), "zanzibar"), 0);
        assert_eq!(bytes_with(folder.path(), "harmless"), 1);
    }
}
