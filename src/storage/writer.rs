//! The one thread that writes. Jobs that wait together share one commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{Durability, StoreError};

/// Writes that may wait. When full, callers wait their turn; none is dropped.
const QUEUE: usize = 1024;
/// The most that one commit carries, so that the first of a flood is not kept waiting for the last.
const MOST_PER_COMMIT: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

/// Waits for the writer when the last handle goes, so that a process that ends leaves a whole file behind.
#[derive(Debug)]
pub(super) struct Ending {
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // A writer that panicked has nothing left to wait for.
        drop(self.thread.take().map(thread::JoinHandle::join));
    }
}

impl Writer {
    pub(super) fn start(connection: Connection) -> (Self, Ending) {
        let (jobs, receiver) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || serve(connection, receiver))
            .expect("the process can start a thread");
        (Writer { jobs }, Ending { thread: Some(thread) })
    }

    pub(super) async fn run<T, F>(&self, durability: Durability, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        let job = WriteJob { durability, work: Some(work), result: None, reply };
        self.jobs.send(Box::new(job)).await.map_err(|_| StoreError::Closed)?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    #[cfg(test)]
    pub(super) fn backlog(&self) -> usize {
        self.jobs.max_capacity() - self.jobs.capacity()
    }
}

fn serve(mut connection: Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    let mut current = None;
    while let Some(first) = jobs.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < MOST_PER_COMMIT
            && let Ok(next) = jobs.try_recv()
        {
            batch.push(next);
        }
        let needed = batch.iter().map(|job| job.durability()).max();
        let committed = match needed == current {
            true => Ok(()),
            false => set_durability(&connection, needed),
        };
        current = committed.is_ok().then_some(needed).flatten();
        let committed = committed.and_then(|()| commit(&mut connection, &mut batch));
        for job in batch {
            job.finish(committed.clone());
        }
    }
    // Everything into the one file, so that a copy of it is a copy of everything. Failing costs nothing: the log is kept.
    let folded = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    drop(folded);
}

/// The strictest job of a batch decides for all of it: a synced commit also syncs everything before it.
fn set_durability(connection: &Connection, needed: Option<Durability>) -> Result<(), StoreError> {
    let synchronous = match needed {
        Some(Durability::Kill) => "normal",
        Some(Durability::PowerCut) | None => "full",
    };
    connection.pragma_update(None, "synchronous", synchronous).map_err(StoreError::from)
}

fn commit(connection: &mut Connection, batch: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let [only] = batch {
        // Undone with the whole transaction.
        return match only.run(&transaction) {
            Outcome::Keep => Ok(transaction.commit()?),
            Outcome::Undo => Ok(transaction.rollback()?),
        };
    }
    for job in batch {
        run_alone(&transaction, job.as_mut())?;
    }
    transaction.commit()?;
    Ok(())
}

/// A savepoint keeps one job's failure from undoing its neighbours.
fn run_alone(transaction: &Transaction<'_>, job: &mut dyn Job) -> rusqlite::Result<()> {
    transaction.execute_batch("SAVEPOINT job")?;
    match job.run(transaction) {
        Outcome::Keep => transaction.execute_batch("RELEASE job"),
        Outcome::Undo => transaction.execute_batch("ROLLBACK TO job; RELEASE job"),
    }
}

enum Outcome {
    Keep,
    Undo,
}

trait Job: Send {
    fn durability(&self) -> Durability;
    fn run(&mut self, transaction: &Transaction<'_>) -> Outcome;
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

struct WriteJob<F, T> {
    durability: Durability,
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Job for WriteJob<F, T>
where
    T: Send,
    F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn run(&mut self, transaction: &Transaction<'_>) -> Outcome {
        let work = self.work.take().expect("a job runs once");
        // A panic in one caller's closure must not take the writer, and with it every tenant, down.
        let result = catch_unwind(AssertUnwindSafe(|| work(transaction)))
            .map_err(|_| StoreError::Failed("a write panicked".into()))
            .and_then(|result| result.map_err(StoreError::from));
        let outcome = if result.is_ok() { Outcome::Keep } else { Outcome::Undo };
        self.result = Some(result);
        outcome
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(_)) | None, Err(shared)) => Err(shared),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // The caller may have been cancelled; then nobody wants the answer.
        drop(self.reply.send(result));
    }
}
