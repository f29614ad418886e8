//! The database: opening it, one writer with group commit, a few readers. Knows no table.
//!
//! SQLite never runs on an async worker. Writes go to one thread; those that wait together are committed together, so
//! a burst costs one sync of the disk. Reads go to a small pool of threads.

mod error;
mod open;
mod readers;
mod writer;

use std::path::Path;

use rusqlite::{Connection, Transaction};

pub use error::StoreError;

/// A handle to the open database. Cheap to clone; the last one to go closes the file.
#[derive(Debug, Clone)]
pub struct Db {
    writer: writer::Writer,
    readers: readers::Readers,
}

impl Db {
    /// Opens or creates the file and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::writable(path)?;
        Ok(Db { writer: writer::Writer::start(connection), readers: readers::Readers::start(path) })
    }

    /// Runs `work` inside a transaction and returns once it is on disk. An error rolls back this work only.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.writer.run(work).await
    }

    /// Runs `work` on a read-only connection that sees the last commit.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.readers.run(work).await
    }

    /// Writes that wait for the writer thread.
    #[cfg(test)]
    fn writer_backlog(&self) -> usize {
        self.writer.backlog()
    }
}

#[cfg(test)]
mod tests;
