//! The database: opening, a single writer with group commit, a few readers. Knows no table.
//!
//! SQLite never runs on an async worker. Writes go to a single thread; writes waiting together are
//! committed together, so a burst costs a single sync of the disk. Urgent notes about outside
//! actions do not wait behind other writes. Reads go to a small pool of threads.
//!
//! The files are checked before they are opened and watched while they are open, so no row is
//! stored in a file about to be lost.

mod commits;
mod copying;
mod error;
mod fresh;
mod handle;
mod migrations;
mod open;
mod part;
mod pause;
mod readers;
mod remembered;
mod rescue;
mod scrub;
mod stamp;
mod upgrade_copy;
mod wal;
mod watch;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, Transaction};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use writer::Place;

pub(crate) use commits::Count as CommitCount;
pub(crate) use error::Remedy;
pub use error::StoreError;
pub(crate) use part::part;
pub(crate) use pause::{Next, Patience};
pub use remembered::Remembered;
pub use rescue::{Harmed, Saved};
pub(crate) use scrub::Scrub;
pub use stamp::begin_anew;
pub(crate) use stamp::check as check_presence;
pub use watch::Harm;

/// The losses a commit must survive before its caller goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The system has the commit: a killed process loses nothing, a power cut may lose the newest
    /// commits.
    Kill,
    /// The disk has the commit.
    PowerCut,
}

/// The waits between tries of a patient write.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// The same for urgent writes. A kill in this time repeats the action to be noted.
const LONGEST_URGENT_BACKOFF: Duration = Duration::from_secs(2);

/// A handle to the open database. Cheap to clone; the last handle closes the file.
#[derive(Debug, Clone)]
pub struct Db {
    // The order matters: the threads end when the last sender in here is gone, and are waited for
    // after this.
    writer: writer::Writer,
    readers: readers::Readers,
    path: Arc<Path>,
    _ending: Arc<Ending>,
}

/// The newest schema that this program knows.
pub(crate) fn schema() -> u32 {
    migrations::known()
}

/// A look at a database that changes nothing and waits for nothing. None where there is none, or
/// where the look fails.
pub(crate) fn peek<T>(
    path: &Path,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Option<T> {
    if !path.is_file() {
        return None;
    }
    read(&open::read_only(path).ok()?).ok()
}

/// Copies a database as of now into a new file, while others write to it or not. Returns the schema.
/// The copy is checked, and whole without further files. Blocks.
pub(crate) fn copy_of(database: &Path, target: &Path) -> Result<u32, StoreError> {
    copying::copy(&open::read_only(database)?, target)?;
    check_alone(target)
}

/// Checks a database that nobody uses, and returns its schema. Blocks.
pub(crate) fn check_alone(path: &Path) -> Result<u32, StoreError> {
    copying::check(path)
}

/// Waits for all threads when the last handle goes, so a process leaves a whole file behind, and a
/// process opening the file again finds the file closed.
#[derive(Debug)]
struct Ending {
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // A panicked thread has already ended. A thread dropping the last handle itself would wait
        // for ever.
        let others = self
            .threads
            .drain(..)
            .filter(|thread| thread.thread().id() != std::thread::current().id());
        others.for_each(|thread| drop(thread.join()));
    }
}

impl Db {
    /// Opens or creates the file and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let own = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open::writable(&own)).await;
        let (connection, watch) =
            opened.map_err(|error| StoreError::Failed(error.to_string()))??;
        let (readers, reading) = readers::Readers::start(path, watch.file());
        let (writer, writing) = writer::Writer::start(connection, watch);
        let ending = Ending {
            threads: reading.into_iter().chain([writing]).collect(),
        };
        Ok(Db {
            writer,
            readers,
            path: path.into(),
            _ending: Arc::new(ending),
        })
    }

    /// Checks whether the files are still there. Every write does so too, even without a change;
    /// this is for times without writes. [`Db::harmed`] reports the result.
    pub async fn look(&self) {
        drop(self.write_as(Durability::Kill, |_| Ok(())).await);
    }

    /// Returns when the files were taken away or overwritten. From then on nothing can be stored.
    pub async fn harmed(&self) -> StoreError {
        self.writer.harmed().await
    }

    /// The failure of the latest commit, where the disk takes nothing for a while.
    pub(crate) fn trouble(&self) -> Option<StoreError> {
        self.writer.trouble()
    }

    pub fn is_harmed(&self) -> bool {
        self.writer.is_harmed()
    }

    /// Runs `work` inside a transaction and returns once the commit is on disk. An error rolls back
    /// this work only.
    pub fn write<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + use<'_, T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.write_as(Durability::PowerCut, work)
    }

    /// As [`Db::write`], with a choice of durability.
    pub fn write_as<T, F>(
        &self,
        durability: Durability,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + use<'_, T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.writer.run(Place::InTurn, durability, work)
    }

    /// As [`Db::write_as`], but tries until the write works: for rows not to be lost over a disk
    /// full for a while. Fails once `stop` is cancelled, and after a few tries of a write that
    /// cannot work (`StoreError::is_permanent`).
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
        let patience = Patience::with("a write", backoff);
        patiently(stop, patience, || {
            self.writer.run(Place::InTurn, durability, work())
        })
        .await
    }

    /// As [`Db::write_patiently`], ahead of all other writes, and safe from a kill. Meant for notes
    /// about outside actions: the next process would repeat an action without its note.
    pub async fn write_urgently<T, W, F>(
        &self,
        stop: &CancellationToken,
        mut work: W,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut() -> F,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let backoff = Backoff::new(FIRST_BACKOFF, LONGEST_URGENT_BACKOFF);
        let patience = Patience::with("a note about a send", backoff);
        patiently(stop, patience, || {
            self.writer.run(Place::First, Durability::Kill, work())
        })
        .await
    }

    /// Runs `work` on a read-only connection with a view of the last commit.
    pub fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + use<'_, T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.readers.run(work)
    }

    /// The number of writes waiting for the writer thread.
    #[cfg(test)]
    fn writer_backlog(&self) -> usize {
        self.writer.backlog()
    }
}

/// Tries until the write works, cannot work, or the process stops.
async fn patiently<T, F>(
    stop: &CancellationToken,
    mut patience: Patience,
    mut write: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        let error = match write().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if patience.after(stop, &error).await != Next::Again {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests;
