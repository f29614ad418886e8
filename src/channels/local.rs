//! The chat in this machine's terminal. Takes the same way through inbox, router, lane and outbox
//! as any platform.

mod seats;

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
    Addressed, Arrival, Destination, DiscordId, Extras, FileRef, Inbound, LocalName, MessageId,
    Origin, OutgoingFile, PersonId, Platform, ReplyHandle, SessionKey, TelegramUserId,
};
use seats::{Seat, Seats};

/// Lines and screen events in the queue. When full, the other side waits.
const QUEUE: usize = 64;

/// The kind of reader at a terminal. Decides about the messages shown besides answers to the
/// terminal's own lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Audience {
    /// A person: earlier questions are answered here too, piece by piece.
    Person,
    /// Lines of a script: earlier questions are answered here too, each answer as a whole.
    #[default]
    Pipe,
    /// A single question: nothing else is shown, and its answer is of no use once the terminal is
    /// gone.
    Question,
}

/// The gateway's side.
pub struct LocalChannel {
    /// Locked by the running `listen`.
    received: AsyncMutex<mpsc::Receiver<Line>>,
    lines: mpsc::Sender<Line>,
    seats: SharedSeats,
    /// The audience of the channel's own terminal.
    audience: Audience,
}

type SharedSeats = Arc<Mutex<Seats>>;

/// The person's side.
pub struct Terminal {
    pub voice: Voice,
    pub screen: mpsc::Receiver<Shown>,
    seat: Option<Taken>,
}

/// A seat at this process's own channel. The seat is free again when the terminal goes.
struct Taken {
    number: u64,
    seats: SharedSeats,
}

impl Drop for Taken {
    fn drop(&mut self) {
        locked(&self.seats).leave(self.number);
    }
}

/// The way in for a person's lines. Cheap to clone.
#[derive(Clone)]
pub struct Voice {
    lines: mpsc::Sender<Line>,
    seat: u64,
}

/// The far side of a terminal whose gateway is another process.
pub(crate) struct Far {
    pub(crate) lines: mpsc::Receiver<Line>,
    pub(crate) screen: mpsc::Sender<Shown>,
}

/// An event for the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// A line of an earlier chat is being answered now.
    TakenUp { place: SessionKey, text: String },
    /// A message shown in a single piece.
    Whole(Whole),
}

/// A complete message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    pub place: SessionKey,
    /// The answered line. Replies to commands name none.
    pub question: Option<MessageId>,
    /// The line with the question or command. None for messages without a question.
    pub line: Option<MessageId>,
    /// The question was asked before this terminal came.
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

    /// Whether an apology stands in place of an answer: the gateway itself speaks, about a
    /// question.
    pub fn is_failure(&self) -> bool {
        self.speaker.is_none() && self.question.is_some()
    }
}

/// The line behind a destination: each line asks for a reply to itself.
fn line_of(to: &Destination) -> Option<MessageId> {
    to.reply().map(|handle| MessageId(handle.0.clone()))
}

/// A line on its way in.
pub(crate) struct Line {
    pub(crate) place: SessionKey,
    pub(crate) message: MessageId,
    pub(crate) text: String,
    seat: u64,
    pub(crate) accepted: oneshot::Sender<()>,
}

impl LocalChannel {
    /// A channel with a terminal of its own, which shows everything.
    pub fn new() -> (Self, Terminal) {
        LocalChannel::for_audience(Audience::default())
    }

    /// A channel with a terminal for this audience.
    pub(crate) fn for_audience(audience: Audience) -> (Self, Terminal) {
        let channel = LocalChannel {
            audience,
            ..LocalChannel::without_terminals()
        };
        let terminal = channel.open(None, audience);
        (channel, terminal)
    }

    /// A channel for terminals that come and go.
    pub(crate) fn without_terminals() -> Self {
        let (lines, received) = mpsc::channel(QUEUE);
        LocalChannel {
            received: AsyncMutex::new(received),
            lines,
            seats: Arc::default(),
            audience: Audience::default(),
        }
    }

    /// Whether the channel is there for a single question.
    pub(crate) fn is_for_a_question(&self) -> bool {
        self.audience == Audience::Question
    }

    /// A terminal. Messages without a question are shown to all terminals of their room.
    pub(crate) fn open(&self, room: Option<LocalName>, audience: Audience) -> Terminal {
        let (shown, screen) = mpsc::channel(QUEUE);
        let number = self.seats().take(room, audience, shown);
        let lines = self.lines.clone();
        Terminal {
            voice: Voice {
                lines,
                seat: number,
            },
            screen,
            seat: Some(Taken {
                number,
                seats: self.seats.clone(),
            }),
        }
    }

    /// Tells a person about an earlier line whose turn comes now. The answer is shown like an
    /// answer to a line of this terminal.
    pub(crate) async fn take_up(&self, line: &Inbound) {
        let place = &line.origin.key;
        let seat = self.seats().adopt(place, &line.message);
        if let Some(seat) = seat {
            let taken_up = Shown::TakenUp {
                place: place.clone(),
                text: line.text.clone(),
            };
            self.show(seat, taken_up).await;
        }
    }

    /// Whether the answer to a line is for a terminal of this channel.
    pub(crate) fn is_asked_here(&self, line: &MessageId) -> bool {
        self.seats().asker(line).is_some()
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        locked(&self.seats)
    }

    /// A look at a seat, which may be free by now.
    fn at<T: Default>(&self, seat: u64, look: impl FnOnce(&mut Seat) -> T) -> T {
        self.seats().seat(seat).map(look).unwrap_or_default()
    }

    async fn show(&self, seat: u64, shown: Shown) {
        let screen = self.seats().screen(seat);
        if let Some(screen) = screen {
            // A closed terminal reads nothing more; the transcript has the message.
            drop(screen.send(shown).await);
        }
    }

    /// Shows a message to its terminal.
    async fn show_whole(&self, seat: u64, mut whole: Whole) {
        let question = whole.question.clone();
        whole.is_left = self.at(seat, |seat| seat.is_left(question.as_ref()));
        if question.is_some() && self.at(seat, |seat| seat.give_way(&whole.place)) {
            self.show(seat, Shown::End).await;
        }
        self.show(seat, Shown::Whole(whole)).await;
    }

    /// Shows a message that no terminal here asked for, to all terminals of its room.
    async fn show_around(&self, whole: Whole) {
        let seats = {
            let mut seats = self.seats();
            let there = seats.in_room_of(&whole.place);
            if there.is_empty() {
                seats.keep(whole);
                return;
            }
            there
        };
        for seat in seats {
            self.show_whole(seat, whole.clone()).await;
        }
    }

    /// Shows the end of an answer that may have come in pieces.
    async fn show_answer(&self, seat: u64, whole: Whole) {
        let streamed = self.at(seat, |seat| seat.end(whole.question.as_ref()));
        let rest = streamed
            .as_deref()
            .map(|streamed| whole.text.strip_prefix(streamed));
        if let Some(Some(rest)) = rest.filter(|rest| *rest != Some("")) {
            let piece = Shown::Text {
                place: whole.place.clone(),
                question: whole.question.clone(),
                speaker: whole.speaker.clone(),
                text: rest.to_owned(),
            };
            self.show(seat, piece).await;
        }
        if streamed.is_some() {
            self.show(seat, Shown::End).await;
        }
        // An answer different from its pieces is shown again.
        if rest.flatten().is_none() {
            self.show_whole(seat, whole).await;
        }
    }

    async fn show_piece(&self, seat: u64, to: &Destination, piece: Piece<'_>) {
        let (place, question) = (to.place(), piece.question);
        let gives_way =
            |seat: &mut Seat| seat.streams_another(place, question) && seat.give_way(place);
        if self.at(seat, gives_way) {
            self.show(seat, Shown::End).await;
        }
        if self.at(seat, |seat| seat.stream(place, question, piece.text)) {
            let shown = Shown::Text {
                place: place.clone(),
                question: Some(question.clone()),
                speaker: Some(piece.speaker.to_owned()),
                text: piece.text.to_owned(),
            };
            self.show(seat, shown).await;
        }
    }

    /// A remark stands on a line of its own, also in the middle of an answer.
    async fn show_remark(&self, seat: u64, to: &Destination, question: &MessageId, text: &str) {
        let (is_awaited, is_streaming) = self.at(seat, |seat| {
            (seat.may_show(question), seat.streamed.is_some())
        });
        if is_awaited && is_streaming {
            self.show(seat, Shown::End).await;
        }
        if is_awaited {
            let remark = Whole::of_gateway(to, text.to_owned());
            self.show(seat, Shown::Whole(remark)).await;
        }
    }

    fn asker(&self, line: Option<&MessageId>) -> Option<u64> {
        line.and_then(|line| self.seats().asker(line))
    }
}

/// A piece of an answer.
#[derive(Clone, Copy)]
struct Piece<'a> {
    speaker: &'a str,
    question: &'a MessageId,
    text: &'a str,
}

fn locked(seats: &Mutex<Seats>) -> MutexGuard<'_, Seats> {
    seats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Voice {
    /// Returns once the line is in the inbox; false when the gateway has stopped.
    pub async fn say(&self, place: SessionKey, message: MessageId, text: String) -> bool {
        let (accepted, wait) = oneshot::channel();
        let line = Line {
            place,
            message,
            text,
            seat: self.seat,
            accepted,
        };
        self.lines.send(line).await.is_ok() && wait.await.is_ok()
    }
}

impl Terminal {
    /// A terminal whose gateway is another process.
    pub(crate) fn of_another_process() -> (Self, Far) {
        let (lines, received) = mpsc::channel(QUEUE);
        let (shown, screen) = mpsc::channel(QUEUE);
        let terminal = Terminal {
            voice: Voice { lines, seat: 0 },
            screen,
            seat: None,
        };
        let far = Far {
            lines: received,
            screen: shown,
        };
        (terminal, far)
    }

    /// Everything is answered, so an answer without an end leaves the screen to the next.
    pub fn rest(&self) {
        if let Some(Taken { number, seats }) = &self.seat
            && let Some(seat) = locked(seats).seat(*number)
        {
            seat.streamed = None;
        }
    }

    /// Says a line with a new id, for callers who need not recognize the line later.
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
        let mut lines = self.received.lock().await;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = stop.cancelled() => return Ok(()),
            };
            let Some(line) = line else { return Ok(()) };
            let message = line.message.clone();
            self.at(line.seat, |seat| seat.asked.insert(message));
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
        let whole = Whole {
            place: to.place().clone(),
            question: answers,
            line,
            is_left: false,
            speaker,
            text,
        };
        let asked = whole.question.as_ref().or(whole.line.as_ref());
        match self.asker(asked) {
            Some(seat) => self.show_answer(seat, whole).await,
            None => self.show_around(whole).await,
        }
        Ok(new_message())
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        match progress {
            Progress::Text {
                speaker,
                question: Some(question),
                text,
            } => {
                let piece = Piece {
                    speaker,
                    question,
                    text,
                };
                if let Some(seat) = self.asker(Some(question)) {
                    self.show_piece(seat, to, piece).await;
                }
            }
            Progress::Remark {
                question: Some(question),
                text,
            } => {
                if let Some(seat) = self.asker(Some(question)) {
                    self.show_remark(seat, to, question, text).await;
                }
            }
            // The rest of a stopped answer never comes.
            Progress::Over(message, Outcome::Stopped) => {
                if let Some(seat) = self.asker(Some(message))
                    && self.at(seat, |seat| seat.end(Some(message))).is_some()
                {
                    self.show(seat, Shown::End).await;
                }
            }
            Progress::Text { .. }
            | Progress::Remark { .. }
            | Progress::Working
            | Progress::Taken
            | Progress::Begun(_)
            | Progress::Over(..) => {}
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
        let whole = Whole::of_gateway(to, text);
        match self.asker(whole.line.as_ref()) {
            Some(seat) => self.show_whole(seat, whole).await,
            None => self.show_around(whole).await,
        }
        Ok(new_message())
    }

    async fn fetch(&self, _: &FileRef, _: &Path) -> Result<(), FetchError> {
        Err(FetchError::Failed("a terminal brings no files".into()))
    }
}

#[derive(Serialize, Deserialize)]
struct LocalPart {
    speaker: Option<String>,
    /// The answered message.
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

/// The person in the key, else a person without an id, because a rule for a person must not match
/// by chance.
pub(crate) fn person_of(key: &SessionKey) -> PersonId {
    key.only_person().unwrap_or_else(|| match key {
        SessionKey::DiscordThread { .. } | SessionKey::DiscordChannel { .. } => {
            PersonId::Discord(DiscordId(0))
        }
        SessionKey::Local { .. } | SessionKey::Web { .. } => person(),
        _ => PersonId::Telegram(TelegramUserId(0)),
    })
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
