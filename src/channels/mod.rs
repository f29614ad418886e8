//! The platforms. Each folder here is the only place that knows its platform's types, limits and habits.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::domain::{Arrival, ChatId, Destination, FileRef, MessageId, OutgoingFile, Platform, SessionKey};

mod answer_style;
mod callers;
mod connections;
mod describe;
pub mod discord;
mod health;
mod json_list;
pub mod local;
mod markdown;
mod newest;
mod nicknames;
pub mod outgoing;
pub mod telegram;
mod upload;

pub use health::Health;
pub use markdown::followed_by;

/// One platform's connection: takes messages in, brings answers out.
#[async_trait]
pub trait Channel: Send + Sync + 'static {
    /// The platform's limits and habits. They do not change while the channel lives.
    fn abilities(&self) -> Abilities;

    /// Receives until `stop` is cancelled. Returns early only when the platform refuses us for good.
    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError>;

    /// Cuts a text into parts of which each is one call to the platform.
    fn render(&self, to: &Destination, text: &Text<'_>) -> Vec<Part>;

    /// Makes exactly one call that a person can see.
    async fn send(&self, to: &Destination, part: &Part, ticket: &Ticket) -> Result<MessageId, SendError>;

    /// For how long a second send with the same ticket makes no second message.
    fn tells_repeats_for(&self, _part: &Part) -> Duration {
        Duration::ZERO
    }

    /// Shows that an answer is under way. Never repeated when it fails.
    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError>;

    /// Makes exactly one call that changes what a person sees. Making it again does no harm.
    async fn revise(&self, to: &Destination, _revision: Revision<'_>) -> Result<(), SendError> {
        Err(SendError::Refused(format!("what was said in {} cannot be changed", to.place())))
    }

    /// Writes a file that came with a message to `to`, in one try.
    async fn fetch(&self, file: &FileRef, to: &Path) -> Result<(), FetchError>;

    /// Sends a file, whose copy is at `path`, with exactly one call that a person can see. Where files cannot be sent, that is
    /// what the person is told.
    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        _path: &Path,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let text = format!("There is a file for you, {}, but files cannot be sent here.", file.name);
        let part = self.render(to, &Text::plain(&text)).into_iter().next();
        let part = part.ok_or_else(|| SendError::Refused("files cannot be sent here".into()))?;
        self.send(to, &part, ticket).await
    }

    /// How its connection is; none where there is no connection that could break.
    fn health(&self) -> Option<&Health> {
        None
    }

    /// Makes a call that changes nothing, to find out whether the platform answers.
    async fn is_reachable(&self) -> bool {
        true
    }
}

/// The limits and habits of a platform, as data.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    pub platform: Platform,
    /// None where sends are not limited.
    pub limits: Option<Limits>,
    /// How long the platform shows [`Progress::Working`]; none where people never see it.
    pub typing_lasts: Option<Duration>,
    /// Whether people see [`Progress::Begun`] and [`Progress::Over`].
    pub reactions: bool,
    pub streaming_in_private: Streaming,
    pub streaming_in_groups: Streaming,
}

impl Abilities {
    /// A platform without limits, signs and reactions, where answers are shown when they are complete.
    pub fn plain(platform: Platform) -> Self {
        Abilities {
            platform,
            limits: None,
            typing_lasts: None,
            reactions: false,
            streaming_in_private: Streaming::Off,
            streaming_in_groups: Streaming::Off,
        }
    }

    pub fn streaming(&self, to: &Destination) -> Streaming {
        if to.place().is_private() { self.streaming_in_private } else { self.streaming_in_groups }
    }

    /// The budgets of a send to this place; none where sends are not limited.
    pub fn pace(&self, to: &Destination) -> Option<Pace> {
        let place = Some(to.place()).filter(|place| place.platform() == Some(self.platform))?;
        let chat = match place {
            SessionKey::TelegramDm { user, .. } => user.0,
            SessionKey::TelegramTopic { chat, .. } | SessionKey::TelegramGroup { chat, .. } => chat.0,
            SessionKey::DiscordDm { user } => user.0.cast_signed(),
            SessionKey::DiscordChannel { channel, .. } => channel.0.cast_signed(),
            SessionKey::DiscordThread { thread, .. } => thread.0.cast_signed(),
            _ => return None,
        };
        Some(Pace { chat, is_group: !place.is_private(), limits: self.limits? })
    }
}

/// Something to be shown to people.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text<'a> {
    /// The agent that says it; none is the gateway itself.
    pub speaker: Option<&'a str>,
    pub markdown: &'a str,
    /// What people can choose with a press where the platform has buttons. The text stands without them.
    pub choices: &'a [Choice],
    pub answers: Option<&'a Question>,
    /// More will come, so nothing is made of it that cannot be changed.
    pub is_unfinished: bool,
    /// Nobody but the one who is answered needs to see it, where the platform can do that.
    pub is_for_asker_alone: bool,
}

/// What a text is the answer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub message: MessageId,
    /// The last message that is part of it, such as the last picture of an album.
    pub upto: MessageId,
    /// An earlier process has seen messages after it. Those that this process sees, the channel knows.
    pub others_wrote: bool,
}

impl<'a> Text<'a> {
    /// Said by the gateway itself, with nothing to choose.
    pub fn plain(markdown: &'a str) -> Self {
        Text { markdown, ..Text::default() }
    }
}

/// A command to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub label: String,
    /// As one would write it: `/agent rose`.
    pub command: String,
}

/// A rendered piece of an answer, as the channel wants it back in `send`. Opaque to everyone else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part(pub String);

/// Tells a send from every other, also after a restart: the same ticket is the same message. At most 25 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket(pub String);

/// What a person may see before the answer is there.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// A turn is running; said again every few seconds.
    Working,
    /// The next piece of what `speaker` is saying.
    Text { speaker: &'a str, text: &'a str },
    /// Why there is nothing to read yet, for places that show pieces as they come.
    Remark(&'a str),
    /// The turn of this message has come.
    Begun(&'a MessageId),
    /// And is over.
    Over(&'a MessageId, Outcome),
}

/// How a turn came out, as far as a person is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    Failed,
}

/// How an answer is shown while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// Not before it is complete.
    Off,
    /// Each piece as it comes, by [`Channel::progress`].
    Pieces,
    /// The text so far, anew each time, and in one chat no more often than this.
    Previews { medium: Medium, every: Duration },
}

/// What the text so far is shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Something that passes by itself; the answer is then sent as a message.
    Draft,
    /// A message, which the answer is put into at the end.
    Message,
}

/// A change of what is on the screen.
#[derive(Debug, Clone, Copy)]
pub enum Revision<'a> {
    /// Shows or changes the draft of this number.
    Draft {
        number: i64,
        part: &'a Part,
    },
    Edit {
        message: &'a MessageId,
        part: &'a Part,
    },
    Remove {
        message: &'a MessageId,
    },
}

/// The platform's limits for a place, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// What the place's own limits are counted on; places with the same number share them.
    pub chat: i64,
    /// Groups have a limit per minute on top.
    pub is_group: bool,
    pub limits: Limits,
}

/// What a platform lets one bot send. Zero is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub all_per_second: u32,
    pub chat_per_second: u32,
    pub group_per_minute: u32,
}

/// Why a send did not work, as far as delivery has to know.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The platform asks to wait this long.
    #[error("asked to wait {} s", .0.as_secs())]
    RetryAfter(Duration),
    /// The place is closed to us; sending again would not help.
    #[error("{0}")]
    Refused(String),
    /// The place takes nothing from us, and nothing may go elsewhere instead.
    #[error("{0}")]
    PlaceLost(PlaceLoss),
    /// The group became a supergroup with this id.
    #[error("the group has moved to {0}")]
    Moved(ChatId),
    /// The message that was to be changed is not there any more.
    #[error("the message is gone")]
    Gone,
    /// It surely did not arrive: no connection was made, or the platform itself said that it did not take it.
    #[error("{0}")]
    NotSent(String),
    /// The call was made, and nothing that came back says whether it was taken.
    #[error("{0}")]
    Unknown(String),
}

/// What became of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaceLoss {
    #[error("the topic is closed")]
    Closed,
    #[error("the topic is gone")]
    Deleted,
    #[error("the thread is locked")]
    ThreadLocked,
    #[error("the channel is gone")]
    ChannelGone,
    #[error("I may not see the channel. Give my role View Channel there")]
    NotSeen,
    #[error("I may not write there. Give my role Send Messages, and Send Messages in Threads")]
    MayNotWrite,
    #[error("this person takes no private messages from me")]
    DmsClosed,
}

/// Why a file is not there. The text is for the agent.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("larger than {max_mb} MB")]
    TooLarge { max_mb: u32 },
    #[error("the workspace is full")]
    NoRoom,
    /// With what the operator should know.
    #[error("it could not be fetched")]
    Failed(String),
}

impl FetchError {
    /// For the operator.
    pub fn cause(&self) -> String {
        match self {
            FetchError::TooLarge { .. } | FetchError::NoRoom => self.to_string(),
            FetchError::Failed(cause) => cause.clone(),
        }
    }
}

/// Why a channel gave up listening. The text is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ListenError(pub String);

/// What one poll or one event brought.
#[derive(Debug)]
pub struct Batch {
    pub platform: Platform,
    pub arrivals: Vec<Arrival>,
}

/// Where channels put what they receive. `accept` returns once it is on disk.
#[derive(Debug, Clone)]
pub struct Intake {
    batches: mpsc::Sender<(Batch, oneshot::Sender<()>)>,
}

/// The gateway's end of an [`Intake`].
pub type IntakeReceiver = mpsc::Receiver<(Batch, oneshot::Sender<()>)>;

/// The batch was not stored; the platform must keep it.
#[derive(Debug, thiserror::Error)]
#[error("the gateway takes no messages right now")]
pub struct NotAccepted;

impl Intake {
    /// Batches waiting to be stored. When full, channels wait and their platform keeps the rest.
    const CAPACITY: usize = 16;

    pub fn new() -> (Self, IntakeReceiver) {
        let (batches, receiver) = mpsc::channel(Self::CAPACITY);
        (Intake { batches }, receiver)
    }

    pub async fn accept(&self, batch: Batch) -> Result<(), NotAccepted> {
        let (stored, wait) = oneshot::channel();
        self.batches.send((batch, stored)).await.map_err(|_| NotAccepted)?;
        wait.await.map_err(|_| NotAccepted)
    }
}
