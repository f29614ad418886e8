//! The database: opening it, one writer with group commit, a few readers. Knows no table.
//!
//! SQLite never runs on an async worker. Writes go to one thread; those that wait together are committed together, so
//! a burst costs one sync of the disk. Notes of what was done outside do not wait behind them. Reads go to a small pool of threads.

mod error;
mod open;
mod pause;
mod readers;
mod remembered;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use writer::Place;

pub use error::StoreError;
pub(crate) use pause::pause;
pub use remembered::Remembered;

/// What a commit must survive before the one who asked for it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The system has it: a killed process loses nothing, a power cut may lose the newest.
    Kill,
    /// The disk has it.
    PowerCut,
}

/// The waits between tries of a patient write.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// The same for urgent ones: a kill in this time does again what they would have noted.
const LONGEST_URGENT_BACKOFF: Duration = Duration::from_secs(2);

/// A handle to the open database. Cheap to clone; the last one to go closes the file.
#[derive(Debug, Clone)]
pub struct Db {
    // The order matters: the writer ends when the last sender in here is gone, and is waited for after that.
    writer: writer::Writer,
    readers: readers::Readers,
    _ending: Arc<writer::Ending>,
}

impl Db {
    /// Opens or creates the file and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let own = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open::writable(&own)).await;
        let connection = opened.map_err(|error| StoreError::Failed(error.to_string()))??;
        let (writer, ending) = writer::Writer::start(connection);
        Ok(Db { writer, readers: readers::Readers::start(path), _ending: Arc::new(ending) })
    }

    /// Runs `work` inside a transaction and returns once it is on disk. An error rolls back this work only.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.write_as(Durability::PowerCut, work).await
    }

    /// As [`Db::write`], with a say in how much the commit must survive.
    pub async fn write_as<T, F>(&self, durability: Durability, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.writer.run(Place::InTurn, durability, work).await
    }

    /// As [`Db::write_as`], but tries until it works: for what must not be thrown away because the disk is full for a while.
    /// Fails only once `stop` is cancelled.
    pub async fn write_patiently<T, W, F>(
        &self,
        stop: &CancellationToken,
        durability: Durability,
        mut work: W,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut() -> F,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let backoff = Backoff::new(FIRST_BACKOFF, LONGEST_BACKOFF);
        patiently(stop, backoff, || self.writer.run(Place::InTurn, durability, work())).await
    }

    /// As [`Db::write_patiently`], before every other write that waits, and safe from a kill: notes what was done outside, and would
    /// be done again by the next process if the note came too late.
    pub async fn write_urgently<T, W, F>(&self, stop: &CancellationToken, mut work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut() -> F,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let backoff = Backoff::new(FIRST_BACKOFF, LONGEST_URGENT_BACKOFF);
        patiently(stop, backoff, || self.writer.run(Place::First, Durability::Kill, work())).await
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

/// Tries until it works or the process stops.
async fn patiently<T, F>(stop: &CancellationToken, mut backoff: Backoff, mut write: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        let error = match write().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        tracing::error!("a write waits and is tried again: {error}");
        tokio::select! {
            () = tokio::time::sleep(backoff.next().at_most) => {}
            () = stop.cancelled() => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
