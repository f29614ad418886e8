//! A few threads for reads. Each opens its connection at its first job.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{StoreError, open};
use crate::metrics::{self, StoreCall};

/// Enough to keep a long query from holding up the rest; a read is mostly memory work.
const READERS: usize = 2;
/// Reads waiting for a thread. When full, callers wait their turn.
const QUEUE: usize = 1024;

type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

#[derive(Debug, Clone)]
pub(super) struct Readers {
    jobs: mpsc::Sender<Job>,
}

impl Readers {
    /// `file` is a handle of the database and must outlive the connections.
    pub(super) fn start(path: &Path, file: &Arc<File>) -> (Self, Vec<JoinHandle<()>>) {
        let (jobs, receiver) = mpsc::channel::<Job>(QUEUE);
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |number| {
            let (receiver, path, file) = (receiver.clone(), path.to_owned(), file.clone());
            thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || {
                    serve(&path, &receiver);
                    drop(file);
                })
                .expect("the process can start a thread")
        };
        let threads = (0..READERS).map(start).collect();
        (Readers { jobs }, threads)
    }

    /// As with writes, the work is in its box before anything is awaited.
    pub(super) fn run<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + use<'_, T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        let span = tracing::Span::current();
        let job: Job = Box::new(move |connection| {
            let _inside = span.enter();
            // A panic must neither take a reader away from all, nor look like a closed database.
            let work = || connection.and_then(|connection| Ok(work(connection)?));
            let result = catch_unwind(AssertUnwindSafe(work))
                .unwrap_or_else(|_| Err(StoreError::Failed("a read panicked".into())));
            // The caller may have been cancelled, and the answer is then dropped.
            drop(reply.send(result));
        });
        self.queue(job, result)
    }

    async fn queue<T>(
        &self,
        job: Job,
        result: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let asked = Instant::now();
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        let result = result.await;
        metrics::store_answered(StoreCall::Read, asked.elapsed());
        result.map_err(|_| StoreError::Closed)?
    }
}

fn serve(path: &Path, jobs: &Mutex<mpsc::Receiver<Job>>) {
    let mut connection = None;
    loop {
        // The lock is the queue: the thread with the lock takes the next job, the others wait
        // behind.
        let job = jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        let Some(job) = job else { return };
        if connection.is_none() {
            match open::read_only(path) {
                Ok(opened) => connection = Some(opened),
                Err(error) => {
                    job(Err(error));
                    continue;
                }
            }
        }
        let opened = connection.as_ref().ok_or(StoreError::Closed);
        job(opened);
    }
}
