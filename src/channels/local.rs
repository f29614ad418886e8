//! The chat in this machine's terminal. Takes the same way through inbox, router, lane and outbox
//! as any platform.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Abilities, Batch, Channel, FetchError, Intake, ListenError, Part, Progress, SendError,
    Streaming, Text, Ticket,
};
use crate::clock::now_ms;
use crate::domain::{
    Addressed, Arrival, Destination, Extras, FileRef, Inbound, LocalName, MessageId, Origin,
    OutgoingFile, PersonId, Platform, SessionKey,
};

/// Lines and screen events in the queue. When full, the other side waits.
const QUEUE: usize = 64;

/// The gateway's side.
pub struct LocalChannel {
    /// Locked by the running `listen`.
    lines: AsyncMutex<mpsc::Receiver<Line>>,
    screen: mpsc::Sender<Shown>,
    /// A plain lock: every section is a look at a few entries, and none awaits.
    talk: Mutex<Talk>,
}

/// The questions of this process, and the answer that the terminal is shown while a model writes.
#[derive(Default)]
struct Talk {
    asked: HashSet<MessageId>,
    streamed: Option<Streamed>,
}

/// The answer that is shown as it comes. There is one at most, because pieces of two would be mixed
/// on the screen.
struct Streamed {
    question: MessageId,
    /// The pieces that are on the screen already.
    text: String,
}

/// The person's side.
pub struct Terminal {
    lines: mpsc::Sender<Line>,
    pub screen: mpsc::Receiver<Shown>,
}

/// An event for the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The next piece of an answer.
    Text {
        speaker: Option<String>,
        text: String,
    },
    /// No further piece follows.
    End,
    /// A message that was not shown piece by piece.
    Whole(Whole),
}

/// A complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    pub place: SessionKey,
    /// The question was asked before this process began.
    pub is_left: bool,
    /// None is the gateway itself.
    pub speaker: Option<String>,
    pub text: String,
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
        let channel = LocalChannel {
            lines: AsyncMutex::new(received),
            screen: shown,
            talk: Mutex::default(),
        };
        (channel, Terminal { lines, screen })
    }

    async fn show(&self, shown: Shown) {
        // A terminal that was closed reads nothing more; the transcript has the message.
        drop(self.screen.send(shown).await);
    }

    async fn show_whole(
        &self,
        to: &Destination,
        is_left: bool,
        speaker: Option<String>,
        text: String,
    ) {
        self.show(Shown::Whole(Whole {
            place: to.place().clone(),
            is_left,
            speaker,
            text,
        }))
        .await;
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a question. An answer that still comes in pieces is shown whole from here on: the next
    /// one has the screen.
    async fn hear(&self, question: &MessageId) {
        let was_streaming = {
            let mut talk = self.talk();
            talk.asked.insert(question.clone());
            talk.streamed.take().is_some()
        };
        if was_streaming {
            self.show(Shown::End).await;
        }
    }

    /// A remark stands on a line of its own, also in the middle of an answer.
    async fn show_remark(&self, to: &Destination, question: Option<&MessageId>, text: &str) {
        let (is_awaited, is_streaming) = {
            let talk = self.talk();
            (talk.may_show(question), talk.streamed.is_some())
        };
        if is_awaited && is_streaming {
            self.show(Shown::End).await;
        }
        if is_awaited {
            self.show_whole(to, false, None, text.to_owned()).await;
        }
    }
}

impl Talk {
    /// Whether the screen is free for the answer to this question: it was asked here, and no other
    /// answer is being shown.
    fn may_show(&self, question: Option<&MessageId>) -> bool {
        let is_free = |question: &MessageId| {
            self.streamed
                .as_ref()
                .is_none_or(|streamed| streamed.question == *question)
        };
        question.is_some_and(|question| self.asked.contains(question) && is_free(question))
    }

    /// Takes the next piece of an answer. False when the terminal gets that answer whole.
    fn stream(&mut self, question: Option<&MessageId>, text: &str) -> bool {
        let Some(question) = question.filter(|question| self.may_show(Some(question))) else {
            return false;
        };
        let begin = || Streamed {
            question: question.clone(),
            text: String::new(),
        };
        self.streamed.get_or_insert_with(begin).text.push_str(text);
        true
    }

    /// The pieces of a complete answer that are on the screen, if it came in pieces.
    fn end(&mut self, question: Option<&MessageId>) -> Option<String> {
        let streamed = self
            .streamed
            .take_if(|streamed| question == Some(&streamed.question))?;
        Some(streamed.text)
    }

    /// Rows without a question were written by commands, or by an earlier version.
    fn is_left(&self, question: Option<&MessageId>) -> bool {
        question.is_some_and(|question| !self.asked.contains(question))
    }
}

impl Terminal {
    /// Returns once the line is in the inbox; false when the gateway has stopped.
    pub async fn say(&self, place: SessionKey, text: String) -> bool {
        let (accepted, wait) = oneshot::channel();
        self.lines
            .send(Line {
                place,
                text,
                accepted,
            })
            .await
            .is_ok()
            && wait.await.is_ok()
    }
}

#[async_trait]
impl Channel for LocalChannel {
    fn abilities(&self) -> Abilities {
        Abilities {
            streaming_in_private: Streaming::Pieces,
            ..Abilities::plain(Platform::Local)
        }
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        let mut lines = self.lines.lock().await;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = stop.cancelled() => return Ok(()),
            };
            let Some(line) = line else { return Ok(()) };
            let inbound = inbound(line.place, line.text);
            self.hear(&inbound.message).await;
            let arrivals = vec![Arrival::Message(Box::new(inbound))];
            if intake
                .accept(Batch {
                    platform: Platform::Local,
                    arrivals,
                })
                .await
                .is_ok()
            {
                // The person may be gone already.
                let _ = line.accepted.send(());
            }
        }
    }

    fn render(&self, _to: &Destination, text: &Text<'_>) -> Vec<Part> {
        let (speaker, answers) = (
            text.speaker.map(str::to_owned),
            text.answers.map(|question| question.message.clone()),
        );
        let message = LocalPart {
            speaker,
            answers,
            text: text.markdown.to_owned(),
        };
        vec![Part(
            serde_json::to_string(&message).expect("strings are JSON"),
        )]
    }

    async fn send(
        &self,
        to: &Destination,
        part: &Part,
        _ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let message: LocalPart =
            serde_json::from_str(&part.0).map_err(|error| SendError::Refused(error.to_string()))?;
        let LocalPart {
            speaker,
            answers,
            text,
        } = message;
        let (streamed, is_left) = {
            let mut talk = self.talk();
            (talk.end(answers.as_ref()), talk.is_left(answers.as_ref()))
        };
        let rest = streamed
            .as_deref()
            .map(|streamed| text.strip_prefix(streamed));
        if let Some(Some(rest)) = rest.filter(|rest| *rest != Some("")) {
            self.show(Shown::Text {
                speaker: speaker.clone(),
                text: rest.to_owned(),
            })
            .await;
        }
        if streamed.is_some() {
            self.show(Shown::End).await;
        }
        // An answer that differs from its pieces is shown again.
        if rest.flatten().is_none() {
            self.show_whole(to, is_left, speaker, text).await;
        }
        Ok(MessageId(Uuid::now_v7().to_string()))
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        match progress {
            Progress::Text {
                speaker,
                question,
                text,
            } => {
                let is_shown = self.talk().stream(question, text);
                if is_shown {
                    self.show(Shown::Text {
                        speaker: Some(speaker.to_owned()),
                        text: text.to_owned(),
                    })
                    .await;
                }
            }
            Progress::Remark { question, text } => self.show_remark(to, question, text).await,
            Progress::Working | Progress::Begun(_) | Progress::Over(..) => {}
        }
        Ok(())
    }

    /// The person at the terminal has the original at hand; the copy goes away.
    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        _path: &Path,
        _ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let caption = file
            .caption
            .as_deref()
            .map(|caption| format!(" ({caption})"))
            .unwrap_or_default();
        let text = format!("A file for you{caption}: {}", file.original.display());
        self.show_whole(to, false, None, text).await;
        Ok(MessageId(Uuid::now_v7().to_string()))
    }

    async fn fetch(&self, _: &FileRef, _: &Path) -> Result<(), FetchError> {
        Err(FetchError::Failed("a terminal brings no files".into()))
    }
}

#[derive(Serialize, Deserialize)]
struct LocalPart {
    speaker: Option<String>,
    /// The message that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<MessageId>,
    text: String,
}

/// A person at the terminal has the home folder in hand, so all share a name.
pub fn person() -> PersonId {
    PersonId::Local("you".parse::<LocalName>().expect("`you` is a plain name"))
}

/// The login name.
fn person_name() -> String {
    let name = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .unwrap_or_default();
    if name.trim().is_empty() {
        "somebody".into()
    } else {
        name
    }
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
