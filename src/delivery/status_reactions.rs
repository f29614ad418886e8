//! Status reactions on people's messages. A courtesy: never stored, and never repeated after a
//! failure.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::progress::is_wanted;
use super::{Inner, Outlet};
use crate::channels::{Outcome, Progress, SendError};
use crate::domain::{Destination, Inbound, MessageId};

/// Tries to change a reaction at the end of its turn while the budgets have no room.
const TRIES: u32 = 60;
const TRY_EVERY: Duration = Duration::from_secs(1);

/// The status reactions of a turn. Lives as long as the turn.
pub struct Mark {
    inner: Arc<Inner>,
    marked: Vec<Marked>,
}

/// A message and the call for its first reaction.
struct Marked {
    to: Destination,
    message: MessageId,
    /// Only the call for the second reaction waits for this.
    begun: JoinHandle<Shown>,
}

/// Whether the message has a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
}

impl Mark {
    pub(super) fn begin<'a>(
        inner: &Arc<Inner>,
        messages: impl Iterator<Item = &'a Inbound>,
    ) -> Self {
        let begin = |inbound: &Inbound| {
            let (to, message) = (Destination::of(inbound), inbound.message.clone());
            let shows_marks = inner
                .outlet_of(to.place())
                .is_some_and(|outlet| outlet.channel.abilities().reactions);
            let begun = shows_marks.then(|| {
                inner
                    .tasks
                    .spawn(begin(inner.clone(), to.clone(), message.clone()))
            })?;
            Some(Marked { to, message, begun })
        };
        Mark {
            inner: inner.clone(),
            marked: messages.filter_map(begin).collect(),
        }
    }

    pub fn end(self, outcome: Outcome) {
        for Marked { to, message, begun } in self.marked {
            let inner = self.inner.clone();
            self.inner.tasks.spawn(async move {
                let is_marked = begun.await.is_ok_and(|shown| shown == Shown::Yes);
                let is_told = outcome == Outcome::Failed && is_wanted(&inner, to.place()).await;
                if is_marked || is_told {
                    end(&inner, &to, &message, outcome).await;
                }
            });
        }
    }
}

/// A reaction where the channel has reactions, else a typing sign.
pub(super) fn notice(inner: &Arc<Inner>, inbound: &Inbound) {
    let (to, message) = (Destination::of(inbound), inbound.message.clone());
    let shown = inner.clone();
    inner.tasks.spawn(async move {
        let outlet = shown.outlet_of(to.place());
        let Some(outlet) = outlet.filter(|outlet| has_room(outlet, &to)) else {
            return;
        };
        if !is_wanted(&shown, to.place()).await {
            return;
        }
        let progress = if outlet.channel.abilities().reactions {
            Progress::Begun(&message)
        } else {
            Progress::Working
        };
        show(&shown, &outlet, &to, progress).await;
    });
}

async fn begin(inner: Arc<Inner>, to: Destination, message: MessageId) -> Shown {
    let Some(outlet) = inner
        .outlet_of(to.place())
        .filter(|outlet| has_room(outlet, &to))
    else {
        return Shown::No;
    };
    if !is_wanted(&inner, to.place()).await {
        return Shown::No;
    }
    show(&inner, &outlet, &to, Progress::Begun(&message)).await
}

/// Waits for room, because the old reaction is wrong from now on.
async fn end(inner: &Inner, to: &Destination, message: &MessageId, outcome: Outcome) {
    let Some(outlet) = inner.outlet_of(to.place()) else {
        return;
    };
    for _ in 0..TRIES {
        if has_room(&outlet, to) {
            show(inner, &outlet, to, Progress::Over(message, outcome)).await;
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(TRY_EVERY) => {}
            () = inner.stop.cancelled() => return,
        }
    }
}

fn has_room(outlet: &Outlet, to: &Destination) -> bool {
    outlet
        .channel
        .abilities()
        .pace(to)
        .is_none_or(|pace| outlet.pacing.has_room_for_a_sign(pace))
}

async fn show(inner: &Inner, outlet: &Outlet, to: &Destination, progress: Progress<'_>) -> Shown {
    let Err(error) = outlet.channel.progress(to, progress).await else {
        return Shown::Yes;
    };
    tracing::debug!(session = %to.place(), "a mark was not shown: {error}");
    if let SendError::RetryAfter(wait) = &error {
        inner.asked_to_wait(outlet, to, *wait).await;
    }
    // The reaction may be there.
    if matches!(error, SendError::Unknown(_)) {
        Shown::Yes
    } else {
        Shown::No
    }
}
