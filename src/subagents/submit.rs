//! Puts internal turns into their lanes. The lanes are above this module, so requests go through a
//! sender.

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::domain::SessionKey;
use crate::records::inbox::Accepted;

/// The time of arrival of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    Now,
    /// Let in before: by an earlier process, or as the report of a subagent. A full lane does not
    /// refuse such a message.
    Before,
}

/// A request to the lanes.
pub(crate) enum LaneRequest {
    Queue {
        accepted: Box<Accepted>,
        arrived: Arrived,
        guard: TaskTrackerToken,
    },
    /// Ends the turns of these inbox rows in a lane.
    Halt { session: SessionKey, ids: Vec<i64> },
}

/// Queues and halts internal turns. Cheap to clone.
///
/// The channel is unbounded: the limits on subagents bound its length, and the rows are in the
/// inbox.
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
        self.send(LaneRequest::Queue {
            accepted: Box::new(accepted),
            arrived,
            guard,
        });
    }

    pub(crate) fn halt(&self, session: SessionKey, ids: Vec<i64>) {
        self.send(LaneRequest::Halt { session, ids });
    }

    fn send(&self, request: LaneRequest) {
        // The lanes are gone once the process stops; the next start finds the rows.
        drop(self.requests.send(request));
    }
}
