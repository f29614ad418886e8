//! Shows the progress of an answer, and its text so far. A courtesy: never repeated after a
//! failure.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, interval_at};
use tracing::Instrument;

use super::preview::Previewer;
use super::{Inner, Outlet};
use crate::channels::{Medium, Progress, Question, SendError, Streaming, followed_by};
use crate::domain::{Destination, SessionKey, TurnEvent};
use crate::routing::delivery_off;

/// A quicker answer needs no typing sign.
const FIRST_SIGN_AFTER: Duration = Duration::from_millis(150);
/// A sign is renewed after this share of its lifetime, to avoid flicker.
const SIGN_AGAIN_AFTER: f64 = 0.8;
/// The preview interval of a place without streaming. Such a place sees a single remark at most.
const REMARK_EVERY: Duration = Duration::from_secs(3);
/// Shown in the answer's place while the model is slow.
const SLOW: &str = "_My model takes long to answer. I am still waiting for it._";
/// Pieces of text waiting to be shown. When full, the model's stream waits.
const QUEUE: usize = 64;

/// An unfinished answer.
pub struct AnswerInProgress {
    pub to: Destination,
    pub speaker: String,
    /// The inbox row of the answered message.
    pub inbox_id: i64,
    /// None where no person asked.
    pub question: Option<Question>,
}

/// Reports on a turn, and lives as long as the turn.
pub struct ProgressHandle {
    events: mpsc::Sender<TurnEvent>,
    task: JoinHandle<u32>,
}

impl ProgressHandle {
    pub(super) fn start(inner: &Arc<Inner>, answer: AnswerInProgress) -> Self {
        let (events, receiver) = mpsc::channel(QUEUE);
        let shown = inner.clone();
        let showing = async move {
            let outlet = shown.outlet_of(answer.to.place());
            let Some(outlet) = outlet else { return 0 };
            let scene = Scene {
                inner: &shown,
                outlet: &outlet,
                answer: &answer,
                is_visible: &AtomicBool::new(false),
                is_wanted: &OnceCell::new(),
            };
            show(scene, receiver).await
        };
        // Tracked, because a message just sent must be stored before the process ends.
        let task = inner.tasks.spawn(showing.in_current_span());
        ProgressHandle { events, task }
    }

    /// The sender for the turn's events.
    pub fn events(&self) -> mpsc::Sender<TurnEvent> {
        self.events.clone()
    }

    /// Returns once the screen changes no more: all text so far is shown, or will not be. Tells how
    /// often a preview was shown.
    pub async fn end(self) -> u32 {
        drop(self.events);
        self.task.await.unwrap_or(0)
    }
}

/// Where delivery is off, nothing of an answer is shown, and no sign of it. Neither is where that cannot be looked up.
/// In the terminal delivery is always on.
pub(super) async fn is_wanted(inner: &Inner, place: &SessionKey) -> bool {
    if matches!(place, SessionKey::Local { .. }) {
        return true;
    }
    let place = place.clone();
    let read = inner
        .db
        .read(move |connection| delivery_off::is_off(connection, &place));
    matches!(read.await, Ok(false))
}

/// A turn's answer, and the channel to the people waiting for the answer.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) inner: &'a Inner,
    pub(super) outlet: &'a Outlet,
    pub(super) answer: &'a AnswerInProgress,
    /// Set once people have text to read.
    pub(super) is_visible: &'a AtomicBool,
    /// Looked up for the first thing to show: most answers are there before it.
    is_wanted: &'a OnceCell<bool>,
}

/// Returns how often a preview was shown.
async fn show(scene: Scene<'_>, events: mpsc::Receiver<TurnEvent>) -> u32 {
    let (so_far, to_show) = watch::channel(SoFar::default());
    match scene.outlet.channel.abilities().streaming(&scene.answer.to) {
        Streaming::Pieces => {
            follow(scene, events, Words::AsTheyCome).await;
            0
        }
        Streaming::Off => {
            let previewer = Previewer {
                scene,
                medium: Medium::Message,
                every: REMARK_EVERY,
            };
            let following = follow(scene, events, Words::Unseen(so_far));
            let ((), shown) = tokio::join!(following, previewer.run(to_show));
            shown
        }
        Streaming::Previews { medium, every } => {
            let previewer = Previewer {
                scene,
                medium,
                every,
            };
            let following = follow(scene, events, Words::Collected(so_far));
            let ((), shown) = tokio::join!(following, previewer.run(to_show));
            shown
        }
    }
}

/// The destination of pieces of text.
enum Words {
    AsTheyCome,
    /// Before the answer, only the remark about a slow model is shown.
    Unseen(watch::Sender<SoFar>),
    Collected(watch::Sender<SoFar>),
}

/// The answer so far, for previews.
#[derive(Debug, Clone, Default)]
pub(super) struct SoFar {
    pub(super) text: String,
    /// The model has been silent for long. The next text ends this.
    pub(super) is_slow: bool,
}

impl SoFar {
    pub(super) fn markdown(&self) -> Cow<'_, str> {
        match (self.is_slow, self.text.is_empty()) {
            (true, true) => SLOW.into(),
            (true, false) => followed_by(&self.text, SLOW).into(),
            (false, _) => self.text.as_str().into(),
        }
    }
}

/// Takes in events, and shows signs until there is text to read.
async fn follow(scene: Scene<'_>, mut events: mpsc::Receiver<TurnEvent>, words: Words) {
    let every = scene
        .outlet
        .channel
        .abilities()
        .typing_lasts
        .map(|lasts| lasts.mul_f64(SIGN_AGAIN_AFTER));
    let mut signs = every.map(|every| interval_at(Instant::now() + FIRST_SIGN_AFTER, every));
    // At most one sign is on its way, and text does not wait for the sign.
    let mut sign = OptionFuture::from(None);
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => take_in(scene, &words, &event).await,
                None => return,
            },
            Some(()) = &mut sign => sign = OptionFuture::from(None),
            () = due(&mut signs), if !scene.is_visible.load(Ordering::Relaxed) => {
                sign = OptionFuture::from(Some(Box::pin(show_sign(scene))));
            }
        }
    }
}

/// Returns when the next sign is due. Cancel-safe.
async fn due(signs: &mut Option<Interval>) {
    match signs {
        Some(signs) => drop(signs.tick().await),
        None => std::future::pending().await,
    }
}

async fn take_in(scene: Scene<'_>, words: &Words, event: &TurnEvent) {
    let question = scene
        .answer
        .question
        .as_ref()
        .map(|question| &question.message);
    match (words, event) {
        (Words::AsTheyCome, TurnEvent::Text(text)) => {
            scene
                .progress(Progress::Text {
                    speaker: &scene.answer.speaker,
                    question,
                    text,
                })
                .await;
        }
        (Words::AsTheyCome, TurnEvent::Slow) => {
            scene
                .progress(Progress::Remark {
                    question,
                    text: SLOW,
                })
                .await;
        }
        (Words::Unseen(_), TurnEvent::Text(_)) => {}
        (Words::Collected(so_far), TurnEvent::Text(text)) => so_far.send_modify(|so_far| {
            so_far.text.push_str(text);
            so_far.is_slow = false;
        }),
        (Words::Unseen(so_far) | Words::Collected(so_far), TurnEvent::Slow) => {
            so_far.send_modify(|so_far| so_far.is_slow = true);
        }
    }
}

async fn show_sign(scene: Scene<'_>) {
    let pace = scene.outlet.channel.abilities().pace(&scene.answer.to);
    if pace.is_none_or(|pace| scene.outlet.pacing.has_room_for_a_sign(pace)) {
        scene.progress(Progress::Working).await;
    }
}

impl Scene<'_> {
    /// Whether anything of the answer may be shown.
    pub(super) async fn is_wanted(self) -> bool {
        let look = || is_wanted(self.inner, self.answer.to.place());
        *self.is_wanted.get_or_init(look).await
    }

    async fn progress(self, progress: Progress<'_>) {
        if !self.is_wanted().await {
            return;
        }
        if let Err(error) = self
            .outlet
            .channel
            .progress(&self.answer.to, progress)
            .await
        {
            self.not_shown(&error).await;
        }
    }

    /// A failure is not retried, but a wait asked for by the platform counts.
    pub(super) async fn not_shown(self, error: &SendError) {
        tracing::debug!(session = %self.answer.to.place(), "progress was not shown: {error}");
        if let SendError::RetryAfter(wait) = error {
            self.inner
                .asked_to_wait(self.outlet, &self.answer.to, *wait)
                .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::channels::{
        Abilities, Channel, FetchError, Intake, ListenError, Part, Text, Ticket,
    };
    use crate::delivery::Delivery;
    use crate::domain::{FileRef, MessageId, Platform};
    use crate::storage::Db;

    /// Records the times of its signs.
    struct Watched {
        lasts: Option<Duration>,
        begun: Instant,
        signs: Mutex<Vec<u128>>,
    }

    #[async_trait]
    impl Channel for Watched {
        fn abilities(&self) -> Abilities {
            let streaming_in_private = Streaming::Pieces;
            Abilities {
                typing_lasts: self.lasts,
                streaming_in_private,
                ..Abilities::plain(Platform::Local)
            }
        }

        async fn listen(
            &self,
            _intake: Intake,
            _stop: CancellationToken,
        ) -> Result<(), ListenError> {
            Ok(())
        }

        fn render(&self, _to: &Destination, _text: &Text<'_>) -> Vec<Part> {
            Vec::new()
        }

        async fn send(
            &self,
            _to: &Destination,
            _part: &Part,
            _ticket: &Ticket,
        ) -> Result<MessageId, SendError> {
            Err(SendError::Gone)
        }

        async fn progress(
            &self,
            _to: &Destination,
            _progress: Progress<'_>,
        ) -> Result<(), SendError> {
            self.signs
                .lock()
                .unwrap()
                .push(self.begun.elapsed().as_millis());
            Ok(())
        }

        async fn fetch(&self, _file: &FileRef, _to: &Path) -> Result<(), FetchError> {
            Err(FetchError::NoRoom)
        }
    }

    /// The times of the signs in a turn of 20 seconds, in milliseconds.
    async fn signs(lasts: Option<Duration>) -> Vec<u128> {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let channel = Arc::new(Watched {
            lasts,
            begun: Instant::now(),
            signs: Mutex::default(),
        });
        let channels: [Arc<dyn Channel>; 1] = [channel.clone()];
        let (delivery, _moves) = Delivery::new(
            db,
            &channels,
            Vec::new(),
            folder.path().to_owned(),
            TaskTracker::new(),
        );
        let to = Destination::stored("local:home".parse().unwrap());
        let handle = delivery.progress(AnswerInProgress {
            to,
            speaker: "Main".into(),
            inbox_id: 1,
            question: None,
        });
        tokio::time::sleep(Duration::from_secs(20)).await;
        handle.end().await;
        let signs = channel.signs.lock().unwrap();
        signs.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_is_shown_again_just_before_it_passes() {
        assert_eq!(
            signs(Some(Duration::from_secs(5))).await,
            [150, 4150, 8150, 12_150, 16_150],
            "Telegram"
        );
        assert_eq!(
            signs(Some(Duration::from_secs(10))).await,
            [150, 8150, 16_150],
            "Discord"
        );
        assert_eq!(signs(None).await, [0_u128; 0], "nobody would see it");
    }
}
