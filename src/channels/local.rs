//! The chat in this machine's terminal. Takes the same way through inbox, router, lane and outbox
//! as any platform.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Abilities, Batch, Channel, FetchError, Intake, ListenError, Outcome, Part, Progress, SendError,
    Streaming, Text, Ticket,
};
use crate::clock::now_ms;
use crate::domain::{
    Addressed, Arrival, Destination, Extras, FileRef, Inbound, LocalName, MessageId, Origin,
    OutgoingFile, PersonId, Platform, ReplyHandle, SessionKey,
};

/// Lines and screen events in the queue. When full, the other side waits.
const QUEUE: usize = 64;

/// The gateway's side.
pub struct LocalChannel {
    /// Locked by the running `listen`.
    lines: AsyncMutex<mpsc::Receiver<Line>>,
    screen: mpsc::Sender<Shown>,
    /// A plain lock: every section is a look at a few entries, and none awaits.
    talk: Arc<Mutex<Talk>>,
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
    place: SessionKey,
    /// The pieces that are on the screen already.
    text: String,
}

/// The person's side.
pub struct Terminal {
    pub voice: Voice,
    pub screen: mpsc::Receiver<Shown>,
    talk: Arc<Mutex<Talk>>,
}

/// The way in for a person's lines. Cheap to clone.
#[derive(Clone)]
pub struct Voice {
    lines: mpsc::Sender<Line>,
}

/// An event for the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The next piece of an answer.
    Text {
        place: SessionKey,
        question: Option<MessageId>,
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
    /// The line that is answered. Replies to commands name none.
    pub question: Option<MessageId>,
    /// The line that this message is for, a command too. None for messages that nobody asked for.
    pub line: Option<MessageId>,
    /// The question was asked before this process began.
    pub is_left: bool,
    /// None is the gateway itself.
    pub speaker: Option<String>,
    pub text: String,
}

impl Whole {
    fn of_gateway(to: &Destination, text: String) -> Self {
        Whole {
            place: to.place().clone(),
            question: None,
            line: line_of(to),
            is_left: false,
            speaker: None,
            text,
        }
    }

    /// Whether an apology stands in place of an answer: the gateway itself speaks, about a question.
    pub fn is_failure(&self) -> bool {
        self.speaker.is_none() && self.question.is_some()
    }
}

/// The line that a destination was made from: each line asks for a reply to itself.
fn line_of(to: &Destination) -> Option<MessageId> {
    to.reply().map(|handle| MessageId(handle.0.clone()))
}

struct Line {
    place: SessionKey,
    message: MessageId,
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
            talk: Arc::default(),
        };
        let terminal = Terminal {
            voice: Voice { lines },
            screen,
            talk: channel.talk.clone(),
        };
        (channel, terminal)
    }

    async fn show(&self, shown: Shown) {
        // A terminal that was closed reads nothing more; the transcript has the message.
        drop(self.screen.send(shown).await);
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        locked(&self.talk)
    }

    /// An answer of the same place that came in pieces so far is shown whole later: a newer answer
    /// has the screen.
    async fn give_way(&self, place: &SessionKey) {
        let was_streaming = {
            let mut talk = self.talk();
            talk.streamed
                .take_if(|streamed| streamed.place == *place)
                .is_some()
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
            let remark = Whole::of_gateway(to, text.to_owned());
            self.show(Shown::Whole(remark)).await;
        }
    }
}

fn locked(talk: &Mutex<Talk>) -> MutexGuard<'_, Talk> {
    talk.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whether another answer of the place is on the screen.
    fn streams_another(&self, place: &SessionKey, question: Option<&MessageId>) -> bool {
        self.streamed.as_ref().is_some_and(|streamed| {
            streamed.place == *place && Some(&streamed.question) != question
        })
    }

    /// Takes the next piece of an answer. False when the terminal gets that answer whole.
    fn stream(&mut self, place: &SessionKey, question: Option<&MessageId>, text: &str) -> bool {
        let Some(question) = question.filter(|question| self.may_show(Some(question))) else {
            return false;
        };
        let begin = || Streamed {
            question: question.clone(),
            place: place.clone(),
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

    /// Whether the answer on the screen was stopped. The rest of it never comes.
    fn stop(&mut self, question: &MessageId) -> bool {
        let stopped = self
            .streamed
            .take_if(|streamed| streamed.question == *question);
        stopped.is_some()
    }

    /// Rows without a question were written by commands, or by an earlier version.
    fn is_left(&self, question: Option<&MessageId>) -> bool {
        question.is_some_and(|question| !self.asked.contains(question))
    }
}

impl Voice {
    /// Returns once the line is in the inbox; false when the gateway has stopped.
    pub async fn say(&self, place: SessionKey, message: MessageId, text: String) -> bool {
        let (accepted, wait) = oneshot::channel();
        let line = Line {
            place,
            message,
            text,
            accepted,
        };
        self.lines.send(line).await.is_ok() && wait.await.is_ok()
    }
}

impl Terminal {
    /// Everything is answered, so an answer without an end was stopped and leaves the screen to the
    /// next.
    pub fn rest(&self) {
        locked(&self.talk).streamed = None;
    }

    /// The same for a line that nobody needs to recognize.
    pub async fn say(&self, place: SessionKey, text: String) -> bool {
        self.voice.say(place, new_message(), text).await
    }
}

/// The id of a new line.
pub fn new_message() -> MessageId {
    MessageId(Uuid::now_v7().to_string())
}

#[async_trait]
impl Channel for LocalChannel {
    fn abilities(&self) -> Abilities {
        Abilities {
            streaming_in_private: Streaming::Pieces,
            // Nothing is put on a line, but the end of a stopped answer must be known.
            reactions: true,
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
            self.talk().asked.insert(line.message.clone());
            let inbound = inbound(line.place, line.message, line.text);
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

    fn render(&self, to: &Destination, text: &Text<'_>) -> Vec<Part> {
        let (speaker, answers) = (
            text.speaker.map(str::to_owned),
            text.answers.map(|question| question.message.clone()),
        );
        let message = LocalPart {
            speaker,
            answers,
            line: line_of(to),
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
            line,
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
                place: to.place().clone(),
                question: answers.clone(),
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
            if answers.is_some() {
                self.give_way(to.place()).await;
            }
            let whole = Whole {
                place: to.place().clone(),
                question: answers,
                line,
                is_left,
                speaker,
                text,
            };
            self.show(Shown::Whole(whole)).await;
        }
        Ok(new_message())
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        match progress {
            Progress::Text {
                speaker,
                question,
                text,
            } => {
                // A place has one turn at a time, so another answer there has ended or is parked.
                let is_another = self.talk().streams_another(to.place(), question);
                if is_another {
                    self.give_way(to.place()).await;
                }
                let is_shown = self.talk().stream(to.place(), question, text);
                if is_shown {
                    self.show(Shown::Text {
                        place: to.place().clone(),
                        question: question.cloned(),
                        speaker: Some(speaker.to_owned()),
                        text: text.to_owned(),
                    })
                    .await;
                }
            }
            Progress::Remark { question, text } => self.show_remark(to, question, text).await,
            Progress::Over(message, Outcome::Stopped) => {
                let was_shown = self.talk().stop(message);
                if was_shown {
                    self.show(Shown::End).await;
                }
            }
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
        self.show(Shown::Whole(Whole::of_gateway(to, text))).await;
        Ok(new_message())
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<MessageId>,
    text: String,
}

/// A person at the terminal has the home folder in hand, so all share a name.
pub fn person() -> PersonId {
    PersonId::Local("you".parse::<LocalName>().expect("`you` is a plain name"))
}

/// The login name, also where the environment does not tell, as in a container.
pub(crate) fn person_name() -> String {
    let told = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let named = |name: &String| !name.trim().is_empty();
    let known = || User::from_uid(Uid::current()).ok().flatten();
    told.ok()
        .filter(named)
        .or_else(|| known().map(|user| user.name).filter(named))
        .unwrap_or_else(|| "you".into())
}

fn inbound(place: SessionKey, message: MessageId, text: String) -> Inbound {
    Inbound {
        update_id: message.0.clone(),
        origin: Origin::new(place, person()),
        person_name: person_name(),
        text,
        addressed: Addressed::Privately,
        extras: Extras {
            reply: Some(ReplyHandle(message.0.clone())),
            ..Extras::default()
        },
        message,
        sent_at: now_ms(),
    }
}
