//! The chat in this machine's terminal. Takes the same way through inbox, router, lane and outbox as any platform.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Abilities, Batch, Channel, FetchError, Intake, ListenError, Part, Progress, SendError, Streaming, Text, Ticket};
use crate::clock::now_ms;
use crate::domain::{
    Addressed, Arrival, Destination, Extras, FileRef, Inbound, LocalName, MessageId, Origin, OutgoingFile, PersonId, Platform,
    SessionKey,
};

/// Lines and screen events in the queue. When full, the other side waits.
const QUEUE: usize = 64;

/// The gateway's side.
pub struct LocalChannel {
    /// Locked by the running `listen`.
    lines: AsyncMutex<mpsc::Receiver<Line>>,
    screen: mpsc::Sender<Shown>,
    /// The piece of the running answer on the screen.
    streamed: Mutex<HashMap<SessionKey, String>>,
}

/// The person's side.
pub struct Terminal {
    lines: mpsc::Sender<Line>,
    pub screen: mpsc::Receiver<Shown>,
}

/// An event for the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// More text of the speaker; none is the gateway itself.
    Text { speaker: Option<String>, text: String },
    /// The text is complete.
    End,
}

struct Line {
    place: SessionKey,
    text: String,
    accepted: oneshot::Sender<()>,
}

impl LocalChannel {
    pub fn new() -> (Self, Terminal) {
        let (lines, received) = mpsc::channel(QUEUE);
        let (shown, screen) = mpsc::channel(QUEUE);
        let channel = LocalChannel { lines: AsyncMutex::new(received), screen: shown, streamed: Mutex::default() };
        (channel, Terminal { lines, screen })
    }

    async fn show(&self, speaker: Option<String>, text: String) {
        // A closed terminal reads nothing more; the transcript has the text.
        drop(self.screen.send(Shown::Text { speaker, text }).await);
    }

    async fn end(&self) {
        drop(self.screen.send(Shown::End).await);
    }
}

impl Terminal {
    /// Returns once the line is in the inbox; false when the gateway has stopped.
    pub async fn say(&self, place: SessionKey, text: String) -> bool {
        let (accepted, wait) = oneshot::channel();
        self.lines.send(Line { place, text, accepted }).await.is_ok() && wait.await.is_ok()
    }
}

#[async_trait]
impl Channel for LocalChannel {
    fn abilities(&self) -> Abilities {
        Abilities { streaming_in_private: Streaming::Pieces, ..Abilities::plain(Platform::Local) }
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        let mut lines = self.lines.lock().await;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = stop.cancelled() => return Ok(()),
            };
            let Some(line) = line else { return Ok(()) };
            let arrivals = vec![Arrival::Message(Box::new(inbound(line.place, line.text)))];
            if intake.accept(Batch { platform: Platform::Local, arrivals }).await.is_ok() {
                // The person may be gone already.
                let _ = line.accepted.send(());
            }
        }
    }

    fn render(&self, _to: &Destination, text: &Text<'_>) -> Vec<Part> {
        let message = LocalPart { speaker: text.speaker.map(str::to_owned), text: text.markdown.to_owned() };
        vec![Part(serde_json::to_string(&message).expect("two strings are JSON"))]
    }

    async fn send(&self, to: &Destination, part: &Part, _ticket: &Ticket) -> Result<MessageId, SendError> {
        let message: LocalPart = serde_json::from_str(&part.0).map_err(|error| SendError::Refused(error.to_string()))?;
        let streamed = self.streamed.lock().unwrap_or_else(PoisonError::into_inner).remove(to.place());
        let rest = streamed.as_deref().map(|streamed| message.text.strip_prefix(streamed));
        match rest {
            Some(Some("")) => {}
            Some(Some(rest)) => self.show(message.speaker, rest.to_owned()).await,
            Some(None) => {
                self.end().await;
                self.show(message.speaker, message.text).await;
            }
            None => self.show(message.speaker, message.text).await,
        }
        self.end().await;
        Ok(MessageId(Uuid::now_v7().to_string()))
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        let (speaker, text) = match progress {
            Progress::Text { speaker, text } => (speaker, text),
            Progress::Remark(remark) => {
                self.show(None, remark.to_owned()).await;
                self.end().await;
                return Ok(());
            }
            Progress::Working | Progress::Begun(_) | Progress::Over(..) => return Ok(()),
        };
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner).entry(to.place().clone()).or_default().push_str(text);
        self.show(Some(speaker.to_owned()), text.to_owned()).await;
        Ok(())
    }

    /// The person at the terminal has the original at hand; the copy goes away.
    async fn send_file(
        &self,
        _to: &Destination,
        file: &OutgoingFile,
        _path: &Path,
        _ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let caption = file.caption.as_deref().map(|caption| format!(" ({caption})")).unwrap_or_default();
        self.show(None, format!("A file for you{caption}: {}", file.original.display())).await;
        self.end().await;
        Ok(MessageId(Uuid::now_v7().to_string()))
    }

    async fn fetch(&self, _: &FileRef, _: &Path) -> Result<(), FetchError> {
        Err(FetchError::Failed("a terminal brings no files".into()))
    }
}

#[derive(Serialize, Deserialize)]
struct LocalPart {
    speaker: Option<String>,
    text: String,
}

/// A person at the terminal has the home folder in hand, so all share a name.
pub fn person() -> PersonId {
    PersonId::Local("you".parse::<LocalName>().expect("`you` is a plain name"))
}

/// The login name.
fn person_name() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    if name.trim().is_empty() { "somebody".into() } else { name }
}

fn inbound(place: SessionKey, text: String) -> Inbound {
    let id = Uuid::now_v7().to_string();
    Inbound {
        update_id: id.clone(),
        origin: Origin::new(place, person()),
        person_name: person_name(),
        text,
        addressed: Addressed::Privately,
        message: MessageId(id),
        sent_at: now_ms(),
        extras: Extras::default(),
    }
}
