//! A turn's view of its lane. The lanes are above this module and keep the news up to date.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::domain::AgentUid;

/// News from a lane for its running turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LaneNews {
    /// A person waits for an answer, and few enough turns are parked: the running turn should be
    /// parked at its next boundary.
    pub(crate) should_yield: bool,
}

/// A turn's view of its lane.
#[derive(Debug, Clone)]
pub(crate) struct LaneView {
    news: watch::Receiver<LaneNews>,
    worker: Worker,
}

/// The agent of a turn, for its lane. A plain mutex, held for a copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Worker(Arc<Mutex<Option<AgentUid>>>);

impl Worker {
    /// None before the agent is chosen.
    pub(crate) fn agent(&self) -> Option<AgentUid> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, agent: AgentUid) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent);
    }
}

impl LaneView {
    pub(crate) fn new(news: watch::Receiver<LaneNews>) -> Self {
        LaneView {
            news,
            worker: Worker::default(),
        }
    }

    pub(crate) fn worker(&self) -> Worker {
        self.worker.clone()
    }

    /// The turn is this agent's.
    pub(super) fn works(&self, agent: AgentUid) {
        self.worker.set(agent);
    }

    pub(crate) fn should_yield(&self) -> bool {
        self.news.borrow().should_yield
    }

    /// Returns when the turn should yield.
    pub(crate) async fn yield_wanted(&self) {
        let mut news = self.news.clone();
        if news.wait_for(|news| news.should_yield).await.is_err() {
            // The lane is gone because the process stops. The waiting turn is cancelled too.
            std::future::pending::<()>().await;
        }
    }
}
