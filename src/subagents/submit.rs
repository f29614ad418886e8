//! How internal turns get into their lanes. The lanes stand above this room, so they are reached through a sender.

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::domain::SessionKey;
use crate::records::inbox::Accepted;

/// When a message was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    Now,
    /// By an earlier process. It was let in then, so a full lane does not refuse it now.
    Before,
}

/// A request to the lanes.
pub(crate) enum LaneRequest {
    Queue {
        accepted: Box<Accepted>,
        arrived: Arrived,
        guard: TaskTrackerToken,
    },
    /// Ends the turns of these inbox rows in one lane.
    Halt {
        session: SessionKey,
        ids: Vec<i64>,
    },
}

/// Queues and halts internal turns. Cheap to clone.
///
/// The channel is unbounded: its length is bounded by the subagents that agents may have, and their rows are in the inbox.
#[derive(Clone)]
pub(crate) struct Submit {
    requests: mpsc::UnboundedSender<LaneRequest>,
    work: TaskTracker,
}

impl Submit {
    pub(crate) fn new(work: TaskTracker) -> (Self, mpsc::UnboundedReceiver<LaneRequest>) {
        let (requests, receiver) = mpsc::unbounded_channel();
        (Submit { requests, work }, receiver)
    }

    pub(crate) fn queue(&self, accepted: Accepted, arrived: Arrived) {
        let guard = self.work.token();
        self.send(LaneRequest::Queue { accepted: Box::new(accepted), arrived, guard });
    }

    pub(crate) fn halt(&self, session: SessionKey, ids: Vec<i64>) {
        self.send(LaneRequest::Halt { session, ids });
    }

    fn send(&self, request: LaneRequest) {
        // The lanes are gone once the process stops; the next start finds the rows.
        drop(self.requests.send(request));
    }
}
