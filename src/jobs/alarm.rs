//! Wakes the scheduler between two slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Tells the scheduler to look at the jobs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Alarm {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rings: Notify,
    edits: AtomicU64,
}

impl Alarm {
    /// The turn of a job has ended.
    pub fn ring(&self) {
        self.inner.rings.notify_one();
    }

    /// Jobs were added, changed or removed.
    pub fn changed(&self) {
        self.inner.edits.fetch_add(1, Ordering::Release);
        self.ring();
    }

    /// How often jobs have changed.
    pub fn edits(&self) -> u64 {
        self.inner.edits.load(Ordering::Acquire)
    }

    /// Returns after a ring, also after a ring from before the call.
    pub async fn rung(&self) {
        self.inner.rings.notified().await;
    }
}
