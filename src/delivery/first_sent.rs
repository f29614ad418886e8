//! The moment in which people see the beginning of an answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{Delivery, Inner};

/// How long the line about a turn waits for its answer to be sent. A platform that asks for a pause
/// may take minutes.
const PATIENCE: Duration = Duration::from_secs(5);

/// A wait for the first part of an answer.
pub(crate) struct FirstSent {
    inner: Arc<Inner>,
    inbox_id: i64,
    since: Instant,
    sent: oneshot::Receiver<()>,
}

/// What became of the first part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPart {
    /// After this time.
    Sent(Duration),
    GivenUp,
    /// Not within the patience of the line about the turn.
    NotYet,
}

impl Delivery {
    /// Call before the rows are submitted.
    pub(crate) fn expect_first(&self, inbox_id: i64) -> FirstSent {
        let (tell, sent) = oneshot::channel();
        self.inner.awaited.insert(inbox_id, tell);
        FirstSent {
            inner: self.inner.clone(),
            inbox_id,
            since: Instant::now(),
            sent,
        }
    }
}

impl FirstSent {
    /// Calls `tell` once.
    pub(crate) fn then(self, tell: impl FnOnce(FirstPart) + Send + 'static) {
        let FirstSent {
            inner,
            inbox_id,
            since,
            sent,
        } = self;
        inner.tasks.clone().spawn(async move {
            let first = tokio::select! {
                sent = sent => sent.map_or(FirstPart::GivenUp, |()| FirstPart::Sent(since.elapsed())),
                () = sleep(PATIENCE) => FirstPart::NotYet,
                () = inner.stop.cancelled() => FirstPart::NotYet,
            };
            inner.awaited.remove(&inbox_id);
            tell(first);
        });
    }
}

impl Inner {
    /// A row that answers this message was sent.
    pub(super) fn was_sent(&self, inbox_id: Option<i64>) {
        if let Some((_, tell)) = inbox_id.and_then(|id| self.awaited.remove(&id)) {
            // The line may have waited long enough.
            let _ = tell.send(());
        }
    }

    /// A row that answers this message was given up.
    pub(super) fn was_given_up(&self, inbox_id: Option<i64>) {
        if let Some(id) = inbox_id {
            self.awaited.remove(&id);
        }
    }
}
