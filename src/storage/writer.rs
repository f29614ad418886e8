//! The only thread with write access. Jobs waiting together share a commit.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

use super::watch::Watch;
use super::{Durability, StoreError, commits, rescue};
use crate::fail_points;
use crate::metrics::{self, StoreCall};

/// Writes waiting in each queue. When full, callers wait their turn; none is dropped.
const QUEUE: usize = 1024;
/// Jobs in a commit, so the first job of a flood does not wait for the last.
const MOST_PER_COMMIT: usize = 256;
/// After this time a commit takes no more jobs if an urgent job waits. An urgent write waits at
/// most this long, plus the sync of the commit.
pub(super) const LONGEST_RUN: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Queued>,
    urgent: mpsc::Sender<Box<dyn Job>>,
    /// Set once nothing can be stored any more.
    harmed: watch::Receiver<Option<StoreError>>,
    /// Set while commits fail in a way that passes, such as on a full disk.
    trouble: watch::Receiver<Option<StoreError>>,
}

/// The position of a write in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    InTurn,
    /// Ahead of all writes in turn, in a separate commit, without a wait for the sync of the
    /// others.
    First,
}

enum Queued {
    Job(Box<dyn Job>),
    /// An urgent job waits, and the thread may be asleep.
    Look,
}

impl Writer {
    pub(super) fn start(connection: Connection, files: Watch) -> (Self, JoinHandle<()>) {
        let (jobs, in_turn) = mpsc::channel(QUEUE);
        let (urgent, first) = mpsc::channel(QUEUE);
        let line = Line {
            in_turn,
            first,
            waiting: VecDeque::new(),
        };
        let (told, harmed) = watch::channel(None);
        let (troubled, trouble) = watch::channel(None);
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || {
                serve(
                    Committer {
                        connection,
                        durability: None,
                        files,
                        told,
                        troubled,
                    },
                    line,
                );
            })
            .expect("the process can start a thread");
        (
            Writer {
                jobs,
                urgent,
                harmed,
                trouble,
            },
            thread,
        )
    }

    /// Returns once nothing can be stored any more, with the reason.
    pub(super) async fn harmed(&self) -> StoreError {
        let mut harmed = self.harmed.clone();
        match harmed.wait_for(Option::is_some).await {
            Ok(harm) => harm.clone().unwrap_or(StoreError::Closed),
            // The writer has ended without harm.
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn trouble(&self) -> Option<StoreError> {
        self.trouble.borrow().clone()
    }

    pub(super) fn is_harmed(&self) -> bool {
        self.harmed.borrow().is_some()
    }

    /// The work is put into its box before anything is awaited: a future with the work in it would
    /// be as large, once for each layer around it.
    pub(super) fn run<T, F>(
        &self,
        place: Place,
        durability: Durability,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + use<'_, T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(WriteJob {
            durability,
            span: tracing::Span::current(),
            work: Some(work),
            result: None,
            reply,
        });
        self.queue(place, job, result)
    }

    async fn queue<T>(
        &self,
        place: Place,
        job: Box<dyn Job>,
        result: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let asked = Instant::now();
        match place {
            Place::InTurn => self
                .jobs
                .send(Queued::Job(job))
                .await
                .map_err(|_| StoreError::Closed)?,
            Place::First => {
                self.urgent
                    .send(job)
                    .await
                    .map_err(|_| StoreError::Closed)?;
                // If the queue is full, the thread is awake and checks for urgent jobs before each
                // commit.
                drop(self.jobs.try_send(Queued::Look));
            }
        }
        let result = result.await;
        metrics::store_answered(StoreCall::Write, asked.elapsed());
        result.map_err(|_| StoreError::Closed)?
    }

    #[cfg(test)]
    pub(super) fn backlog(&self) -> usize {
        self.jobs.max_capacity() - self.jobs.capacity()
    }
}

/// The waiting jobs.
struct Line {
    in_turn: mpsc::Receiver<Queued>,
    first: mpsc::Receiver<Box<dyn Job>>,
    /// The next jobs in turn, in their order.
    waiting: VecDeque<Box<dyn Job>>,
}

impl Line {
    /// Waits until there is a job. False when all jobs are done and no sender is left.
    fn has_work(&mut self) -> bool {
        if self.waiting.is_empty() {
            let Some(next) = self.in_turn.blocking_recv() else {
                return false;
            };
            self.take_in(next);
        }
        while self.waiting.len() < MOST_PER_COMMIT
            && let Ok(next) = self.in_turn.try_recv()
        {
            self.take_in(next);
        }
        true
    }

    fn take_in(&mut self, next: Queued) {
        if let Queued::Job(job) = next {
            self.waiting.push_back(job);
        }
    }

    fn urgent(&mut self) -> VecDeque<Box<dyn Job>> {
        std::iter::from_fn(|| self.first.try_recv().ok())
            .take(MOST_PER_COMMIT)
            .collect()
    }
}

fn serve(mut committer: Committer, mut line: Line) {
    while line.has_work() {
        committer.commit_some(&mut line.urgent(), || false);
        committer.commit_some(&mut line.waiting, || !line.first.is_empty());
    }
    if committer.told.borrow().is_some() {
        return;
    }
    // Moves the log into the database file, so a copy of the file is complete. A failure costs
    // nothing: the log is kept.
    let folded = committer
        .connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    drop(folded);
}

/// The watch has a handle of the file, and the handle must outlive the connection: fields are
/// dropped in this order.
struct Committer {
    connection: Connection,
    /// The current setting of the connection.
    durability: Option<Durability>,
    files: Watch,
    /// Tells all handles when nothing can be stored any more.
    told: watch::Sender<Option<StoreError>>,
    /// Tells all handles while commits fail.
    troubled: watch::Sender<Option<StoreError>>,
}

impl Committer {
    /// Notes whether changes can be stored. A commit without a change needs no room on the disk, and
    /// tells nothing.
    fn note_trouble(
        &self,
        jobs: &[Box<dyn Job>],
        committed: &Result<(), StoreError>,
        has_stored: bool,
    ) {
        let own = jobs.iter().filter_map(|job| job.failure());
        let mut failures = own.chain(committed.as_ref().err());
        let lasting = failures.rfind(|error| error.is_of_the_disk());
        match lasting {
            Some(error) => {
                self.troubled.send_if_modified(|trouble| {
                    let is_new = trouble.as_ref() != Some(error);
                    if is_new {
                        *trouble = Some(error.clone());
                    }
                    is_new
                });
            }
            None if has_stored && self.troubled.borrow().is_some() => {
                tracing::info!("the store works again");
                self.troubled.send_replace(None);
            }
            None => {}
        }
    }

    /// Fails once the files are found to be gone, because any further commit would be lost.
    fn unharmed(&mut self) -> Result<(), StoreError> {
        if self.told.borrow().is_none()
            && let Err(harm) = self.files.look()
        {
            let harmed =
                StoreError::Harmed(rescue::rescue(&self.connection, self.files.path(), harm));
            tracing::error!("{harmed}");
            self.told.send_replace(Some(harmed));
        }
        self.told.borrow().clone().map_or(Ok(()), Err)
    }

    /// Runs jobs from the front and commits them. Jobs not reached before urgent work comes stay in
    /// the queue.
    fn commit_some(&mut self, jobs: &mut VecDeque<Box<dyn Job>>, is_wanted: impl Fn() -> bool) {
        // The strictest job decides for the whole commit: a synced commit also syncs all earlier
        // commits.
        let Some(needed) = jobs.iter().map(|job| job.durability()).max() else {
            return;
        };
        let mut done = Vec::new();
        let before = self.connection.total_changes();
        let committed = self
            .unharmed()
            .and_then(|()| self.set_durability(needed))
            .and_then(|()| self.commit(jobs, &mut done, is_wanted));
        let has_stored = committed.is_ok() && self.connection.total_changes() != before;
        self.note_trouble(&done, &committed, has_stored);
        if done.is_empty() {
            // No job was begun, and each of them would fail the same way.
            done.extend(jobs.drain(..));
        }
        for job in done {
            job.finish(committed.clone());
        }
    }

    fn set_durability(&mut self, needed: Durability) -> Result<(), StoreError> {
        if self.durability == Some(needed) {
            return Ok(());
        }
        let synchronous = match needed {
            Durability::Kill => "normal",
            Durability::PowerCut => "full",
        };
        self.durability = None;
        self.connection
            .pragma_update(None, "synchronous", synchronous)?;
        self.durability = Some(needed);
        Ok(())
    }

    fn commit(
        &mut self,
        jobs: &mut VecDeque<Box<dyn Job>>,
        done: &mut Vec<Box<dyn Job>>,
        is_wanted: impl Fn() -> bool,
    ) -> Result<(), StoreError> {
        let before = self.connection.total_changes();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (is_alone, began) = (jobs.len() == 1, Instant::now());
        while let Some(mut job) =
            jobs.pop_front_if(|_| done.is_empty() || began.elapsed() < LONGEST_RUN || !is_wanted())
        {
            if is_alone {
                // Undone with the whole transaction.
                let outcome = job.run(&transaction);
                done.push(job);
                return match outcome {
                    Outcome::Keep => finish(transaction, before),
                    Outcome::Undo => {
                        fail_points::commits_nothing();
                        Ok(transaction.rollback()?)
                    }
                };
            }
            let ran = run_alone(&transaction, job.as_mut());
            done.push(job);
            ran?;
        }
        // A failure that stays belongs to one of the jobs, and none of them is known to be the one.
        // Tried again, the job is alone sooner or later.
        finish(transaction, before).map_err(|error| match error.is_permanent() {
            true if done.len() > 1 => StoreError::Undone,
            _ => error,
        })
    }
}

/// A transaction without a changed row is not counted, so there is no page to write.
fn finish(transaction: Transaction<'_>, changes_before: u64) -> Result<(), StoreError> {
    if transaction.total_changes() == changes_before {
        fail_points::commits_nothing();
        return Ok(transaction.commit()?);
    }
    commits::count(&transaction)?;
    Ok(fail_points::commits(|| transaction.commit())?)
}

/// A savepoint keeps the failure of a job from undoing its neighbours. After some failures, such as
/// a full disk, SQLite undoes the whole transaction by itself; then all jobs so far are to be tried
/// again, and the failed job has an error of its own.
fn run_alone(transaction: &Transaction<'_>, job: &mut dyn Job) -> Result<(), StoreError> {
    let compiled = |sql| transaction.prepare_cached(sql)?.execute([]);
    compiled("SAVEPOINT job")?;
    let outcome = job.run(transaction);
    if transaction.is_autocommit() {
        return Err(StoreError::Undone);
    }
    match outcome {
        Outcome::Keep => drop(compiled("RELEASE job")?),
        Outcome::Undo => transaction.execute_batch("ROLLBACK TO job; RELEASE job")?,
    }
    Ok(())
}

enum Outcome {
    Keep,
    Undo,
}

trait Job: Send {
    fn durability(&self) -> Durability;
    fn run(&mut self, transaction: &Transaction<'_>) -> Outcome;
    /// Why the job itself failed, if it did.
    fn failure(&self) -> Option<&StoreError>;
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

struct WriteJob<F, T> {
    durability: Durability,
    /// Of the caller, for lines of the log.
    span: tracing::Span,
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
        let _inside = self.span.enter();
        // A panic in a caller's closure must not end the writer for every tenant.
        let work = || fail_points::job(|| work(transaction));
        let result = catch_unwind(AssertUnwindSafe(work))
            .map_err(|_| StoreError::Failed("a write panicked".into()))
            .and_then(|result| result.map_err(StoreError::from));
        let outcome = if result.is_ok() {
            Outcome::Keep
        } else {
            Outcome::Undo
        };
        self.result = Some(result);
        outcome
    }

    fn failure(&self) -> Option<&StoreError> {
        self.result.as_ref()?.as_ref().err()
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(_)) | None, Err(shared)) => Err(shared),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // The caller may have been cancelled, and the answer is then dropped.
        drop(self.reply.send(result));
    }
}
