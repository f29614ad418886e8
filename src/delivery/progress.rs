//! Shows that an answer is under way, and as much of it as there is. A courtesy: never repeated when it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at};

use super::preview::Previewer;
use super::{Inner, Outlet};
use crate::channels::{Progress, Question, SendError, Streaming};
use crate::domain::{Destination, TurnEvent};

/// An answer quicker than this needs no sign that it is coming.
const FIRST_SIGN_AFTER: Duration = Duration::from_millis(150);
/// Platforms show "typing" for about five seconds.
const SIGN_EVERY: Duration = Duration::from_secs(4);
/// Pieces of text that wait to be shown. When full, the model's stream waits.
const QUEUE: usize = 64;

/// An answer that is being written.
pub struct Underway {
    pub to: Destination,
    pub speaker: String,
    /// The message it answers.
    pub inbox_id: i64,
    /// None where no person asked.
    pub question: Option<Question>,
}

/// Lives as long as the turn it reports on.
pub struct ProgressHandle {
    events: mpsc::Sender<TurnEvent>,
    task: JoinHandle<()>,
}

impl ProgressHandle {
    pub(super) fn start(inner: &Arc<Inner>, answer: Underway) -> Self {
        let (events, receiver) = mpsc::channel(QUEUE);
        let shown = inner.clone();
        // Counted, because a message that was just sent must be noted before the process ends.
        let task = inner.tasks.spawn(async move {
            if let Some(outlet) = shown.outlet_of(answer.to.place()) {
                let is_visible = AtomicBool::new(false);
                show(Scene { inner: &shown, outlet, answer: &answer, is_visible: &is_visible }, receiver).await;
            }
        });
        ProgressHandle { events, task }
    }

    /// Where the turn puts what happens.
    pub fn events(&self) -> mpsc::Sender<TurnEvent> {
        self.events.clone()
    }

    /// Returns once everything said so far has been shown, or will not be: nothing changes on the screen after this.
    pub async fn end(self) {
        drop(self.events);
        drop(self.task.await);
    }
}

/// A turn's answer, and the way to the people who wait for it.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) inner: &'a Inner,
    pub(super) outlet: &'a Outlet,
    pub(super) answer: &'a Underway,
    /// Set once there is something to read.
    pub(super) is_visible: &'a AtomicBool,
}

async fn show(scene: Scene<'_>, events: mpsc::Receiver<TurnEvent>) {
    match scene.outlet.channel.streaming(&scene.answer.to) {
        Streaming::Off => follow(scene, events, Words::Unseen).await,
        Streaming::Pieces => follow(scene, events, Words::AsTheyCome).await,
        Streaming::Previews { medium, every } => {
            let (text, so_far) = watch::channel(String::new());
            let previewer = Previewer { scene, medium, every };
            tokio::join!(follow(scene, events, Words::Collected(text)), previewer.run(so_far));
        }
    }
}

/// Where pieces of text go.
enum Words {
    Unseen,
    AsTheyCome,
    Collected(watch::Sender<String>),
}

/// Takes in what happens, and shows a sign now and then until there is something to read.
async fn follow(scene: Scene<'_>, mut events: mpsc::Receiver<TurnEvent>, words: Words) {
    let mut signs = interval_at(Instant::now() + FIRST_SIGN_AFTER, SIGN_EVERY);
    // At most one sign is on its way, and text does not wait for it.
    let mut sign = OptionFuture::from(None);
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(TurnEvent::Text(text)) => take_in(scene, &words, &text).await,
                None => return,
            },
            Some(()) = &mut sign => sign = OptionFuture::from(None),
            _ = signs.tick(), if !scene.is_visible.load(Ordering::Relaxed) => {
                sign = OptionFuture::from(Some(Box::pin(show_sign(scene))));
            }
        }
    }
}

async fn take_in(scene: Scene<'_>, words: &Words, text: &str) {
    match words {
        Words::Unseen => {}
        Words::AsTheyCome => scene.progress(Progress::Text { speaker: &scene.answer.speaker, text }).await,
        Words::Collected(so_far) => so_far.send_modify(|so_far| so_far.push_str(text)),
    }
}

async fn show_sign(scene: Scene<'_>) {
    let pace = scene.outlet.channel.pace(&scene.answer.to);
    if pace.is_none_or(|pace| scene.outlet.pacing.has_room_for_a_sign(pace)) {
        scene.progress(Progress::Working).await;
    }
}

impl Scene<'_> {
    async fn progress(self, progress: Progress<'_>) {
        if let Err(error) = self.outlet.channel.progress(&self.answer.to, progress).await {
            self.not_shown(&error).await;
        }
    }

    /// Not tried again, but what the platform asks for counts.
    pub(super) async fn not_shown(self, error: &SendError) {
        tracing::debug!(session = %self.answer.to.place(), "progress was not shown: {error}");
        if let SendError::RetryAfter(wait) = error {
            self.inner.asked_to_wait(self.outlet, &self.answer.to, *wait).await;
        }
    }
}
