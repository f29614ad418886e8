//! Shows on a person's message how far its answer is. A courtesy: never stored, never repeated when it fails.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::Inner;
use crate::channels::{Outcome, Progress};
use crate::domain::{Destination, Inbound, MessageId};

/// Lives as long as the turn it is about.
pub struct Mark {
    inner: Arc<Inner>,
    to: Destination,
    message: MessageId,
    /// Nothing waits for the first mark but the second. None where the channel shows no marks.
    begun: Option<JoinHandle<()>>,
}

impl Mark {
    pub(super) fn begin(inner: &Arc<Inner>, inbound: &Inbound) -> Self {
        let (to, message) = (Destination::of(inbound), inbound.message.clone());
        let shows_marks = inner.outlet_of(to.place()).is_some_and(|outlet| outlet.channel.shows_marks());
        let begun = shows_marks.then(|| inner.tasks.spawn(show(inner.clone(), to.clone(), message.clone(), None)));
        Mark { inner: inner.clone(), to, message, begun }
    }

    pub fn end(self, outcome: Outcome) {
        let Mark { inner, to, message, begun: Some(begun) } = self else { return };
        let tasks = inner.tasks.clone();
        tasks.spawn(async move {
            drop(begun.await);
            show(inner, to, message, Some(outcome)).await;
        });
    }
}

async fn show(inner: Arc<Inner>, to: Destination, message: MessageId, outcome: Option<Outcome>) {
    let Some(outlet) = inner.outlet_of(to.place()) else { return };
    let progress = match outcome {
        None => Progress::Begun(&message),
        Some(outcome) => Progress::Over(&message, outcome),
    };
    drop(outlet.channel.progress(&to, progress).await);
}
