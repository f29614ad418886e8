//! Counts work in progress, so tests and shutdown can wait for the end of all work.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared counter of unfinished pieces of work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Work {
    open: Arc<watch::Sender<usize>>,
}

/// An unfinished piece of work, finished on drop.
#[derive(Debug)]
pub struct WorkGuard {
    work: Work,
}

impl Work {
    pub fn new() -> Self {
        Work { open: Arc::new(watch::Sender::new(0)) }
    }

    pub fn begin(&self) -> WorkGuard {
        self.open.send_modify(|open| *open += 1);
        WorkGuard { work: self.clone() }
    }

    /// Returns when no work is in progress.
    pub async fn settled(&self) {
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open == 0).await.expect("the sender lives as long as self");
    }
}

impl Default for Work {
    fn default() -> Self {
        Work::new()
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        self.work.open.send_modify(|open| *open -= 1);
    }
}
