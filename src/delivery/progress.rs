//! Shows that an answer is under way. A courtesy: never stored, never repeated when it fails.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at};

use crate::channels::{Channel, Progress};
use crate::domain::{Destination, TurnEvent};

/// An answer quicker than this needs no sign that it is coming.
const FIRST_SIGN_AFTER: Duration = Duration::from_millis(150);
/// Platforms show "typing" for about five seconds.
const SIGN_EVERY: Duration = Duration::from_secs(4);
/// Pieces of text that wait to be shown. When full, the model's stream waits.
const QUEUE: usize = 64;

/// Lives as long as the turn it reports on.
pub struct ProgressHandle {
    events: mpsc::Sender<TurnEvent>,
    task: JoinHandle<()>,
}

impl ProgressHandle {
    pub(super) fn start(channel: Option<Arc<dyn Channel>>, to: Destination, speaker: String) -> Self {
        let (events, receiver) = mpsc::channel(QUEUE);
        let task = tokio::spawn(async move {
            if let Some(channel) = channel {
                show(channel.as_ref(), &to, &speaker, receiver).await;
            }
        });
        ProgressHandle { events, task }
    }

    /// Where the turn puts what happens.
    pub fn events(&self) -> mpsc::Sender<TurnEvent> {
        self.events.clone()
    }

    /// Returns once everything said so far has been shown.
    pub async fn end(self) {
        drop(self.events);
        drop(self.task.await);
    }
}

async fn show(channel: &dyn Channel, to: &Destination, speaker: &str, mut events: mpsc::Receiver<TurnEvent>) {
    let mut signs = interval_at(Instant::now() + FIRST_SIGN_AFTER, SIGN_EVERY);
    // At most one sign is on its way, and text does not wait for it.
    let mut sign = OptionFuture::from(None);
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(TurnEvent::Text(text)) => channel.progress(to, Progress::Text { speaker, text: &text }).await,
                None => return,
            },
            Some(()) = &mut sign => sign = OptionFuture::from(None),
            _ = signs.tick() => sign = OptionFuture::from(Some(channel.progress(to, Progress::Working))),
        }
    }
}
