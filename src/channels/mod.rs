//! The platforms. Only the folder of a platform knows the platform's types, limits and habits.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::domain::{
    Arrival, ChatId, Destination, FileRef, MessageId, OutgoingFile, Platform, SessionKey,
};

mod answer_style;
mod button_owner;
mod connections;
mod describe;
pub(crate) mod discord;
mod health;
mod json_list;
pub mod local;
pub(crate) mod markdown;
mod media_type;
mod newest;
mod nicknames;
pub(crate) mod outgoing;
pub(crate) mod telegram;
mod upload;
pub(crate) mod web;

pub(crate) use answer_style::escaped;
pub(crate) use describe::name_line;
pub use health::{Health, Hearing};
pub use markdown::followed_by;
pub(crate) use nicknames::calls_the_bot;

/// The connection to a platform: takes messages in, brings answers out.
#[async_trait]
pub trait Channel: Send + Sync + 'static {
    /// The platform's limits and habits. They do not change while the channel lives.
    fn abilities(&self) -> Abilities;

    /// Receives until `stop` is cancelled. Returns early only when the platform refuses us for
    /// good.
    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError>;

    /// Cuts a text into parts. Each part is a single call to the platform.
    fn render(&self, to: &Destination, text: &Text<'_>) -> Vec<Part>;

    /// Makes exactly one call with a visible effect.
    async fn send(
        &self,
        to: &Destination,
        part: &Part,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError>;

    /// For how long a second send with the same ticket makes no second message.
    fn tells_repeats_for(&self, _part: &Part) -> Duration {
        Duration::ZERO
    }

    /// Shows that an answer is under way. Never repeated after a failure.
    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError>;

    /// Changes the screen with exactly one call. A repeated call does no harm.
    async fn revise(&self, to: &Destination, _revision: Revision<'_>) -> Result<(), SendError> {
        Err(SendError::Refused(format!(
            "what was said in {} cannot be changed",
            to.place()
        )))
    }

    /// Writes the file of a message to `to`, in a single try.
    async fn fetch(&self, file: &FileRef, to: &Path) -> Result<(), FetchError>;

    /// Sends a file with exactly one visible call; its copy is at `path`. Where files cannot be
    /// sent, the person is told so.
    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        _path: &Path,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let text = format!(
            "There is a file for you, {}, but files cannot be sent here.",
            file.name
        );
        let part = self.render(to, &Text::plain(&text)).into_iter().next();
        let part = part.ok_or_else(|| SendError::Refused("files cannot be sent here".into()))?;
        self.send(to, &part, ticket).await
    }

    /// The state of the connection; none where no connection could break.
    fn health(&self) -> Option<&Health> {
        None
    }

    /// Set while the platform lets the bot write nothing in the group of a place.
    fn barred(&self, _place: &SessionKey) -> Option<Barred> {
        None
    }

    /// Whether the platform surely keeps messages from the bot that do not mention it.
    fn is_hard_of_hearing(&self, _place: &SessionKey) -> bool {
        false
    }

    /// Makes a harmless call, to find out whether the platform answers.
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
    /// How long the platform shows [`Progress::Working`]; none where people see no such sign.
    pub typing_lasts: Option<Duration>,
    /// Whether people see [`Progress::Begun`] and [`Progress::Over`].
    pub reactions: bool,
    /// Whether a message can be changed after it was sent.
    pub changes: bool,
    pub streaming_in_private: Streaming,
    pub streaming_in_groups: Streaming,
}

impl Abilities {
    /// A platform without limits, signs and reactions, where answers are shown when they are
    /// complete.
    pub fn plain(platform: Platform) -> Self {
        Abilities {
            platform,
            limits: None,
            typing_lasts: None,
            reactions: false,
            changes: false,
            streaming_in_private: Streaming::Off,
            streaming_in_groups: Streaming::Off,
        }
    }

    pub fn streaming(&self, to: &Destination) -> Streaming {
        if to.place().is_private() {
            self.streaming_in_private
        } else {
            self.streaming_in_groups
        }
    }

    /// The budgets of a send to this place; none where sends are not limited.
    pub fn pace(&self, to: &Destination) -> Option<Pace> {
        let place = Some(to.place()).filter(|place| place.platform() == Some(self.platform))?;
        Some(Pace {
            chat: chat_of(place)?,
            is_group: !place.is_private(),
            limits: self.limits?,
        })
    }
}

/// The number for counting a place's own limits. Places of a chat share it.
pub(crate) fn chat_of(place: &SessionKey) -> Option<i64> {
    Some(match place {
        SessionKey::TelegramDm { user, .. } => user.0,
        SessionKey::TelegramTopic { chat, .. } | SessionKey::TelegramGroup { chat, .. } => chat.0,
        SessionKey::DiscordDm { user } => user.0.cast_signed(),
        SessionKey::DiscordChannel { channel, .. } => channel.0.cast_signed(),
        SessionKey::DiscordThread { thread, .. } => thread.0.cast_signed(),
        _ => return None,
    })
}

/// A text for people.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text<'a> {
    /// The agent that speaks; none is the gateway itself.
    pub speaker: Option<&'a str>,
    pub markdown: &'a str,
    /// Buttons, on platforms with buttons. The text must be complete without them.
    pub choices: &'a [Choice],
    /// A button that opens a page of ours, on platforms with such buttons and in private only.
    pub app: Option<&'a AppButton>,
    pub answers: Option<&'a Question>,
    /// More text will come, so the text must stay changeable.
    pub is_unfinished: bool,
    /// Only the asking person needs to see the text, on platforms with such messages.
    pub is_for_asker_alone: bool,
}

/// The message that a text answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub message: MessageId,
    /// The last message of the question, such as the last picture of an album.
    pub upto: MessageId,
    /// An earlier process has seen later messages. The channel knows the messages seen by this
    /// process.
    pub others_wrote: bool,
}

impl<'a> Text<'a> {
    /// Said by the gateway itself, with nothing to choose.
    pub fn plain(markdown: &'a str) -> Self {
        Text {
            markdown,
            ..Text::default()
        }
    }
}

/// A command to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub label: String,
    /// In its written form: `/agent rose`.
    pub command: String,
}

/// A page that opens inside the platform's own program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppButton {
    pub label: String,
    /// With TLS.
    pub url: String,
}

/// A rendered piece of an answer, made by a channel for its own `send`. Opaque to everyone else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part(pub String);

/// Tells a send from every other, also after a restart: the same ticket is the same message. At
/// most 25 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket(pub String);

/// Signs that a person may see before the answer.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// A turn is running; said again every few seconds.
    Working,
    /// The next piece of the answer of `speaker` to `question`; none where no person asked.
    Text {
        speaker: &'a str,
        question: Option<&'a MessageId>,
        text: &'a str,
    },
    /// Why there is nothing to read yet, for places that show pieces as they come.
    Remark {
        question: Option<&'a MessageId>,
        text: &'a str,
    },
    /// The command behind a pressed button is carried out.
    Taken,
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
    /// A person stopped the turn. No answer follows, nor the rest of a begun answer.
    Stopped,
}

/// The way an unfinished answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// Only the complete answer is shown.
    Off,
    /// Each piece is shown at once, by [`Channel::progress`].
    Pieces,
    /// The text so far is shown anew each time, at most this often in a chat.
    Previews { medium: Medium, every: Duration },
}

/// The medium of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A draft passes by itself; the answer is then sent as a message.
    Draft,
    /// A message; the answer replaces its text at the end.
    Message,
}

/// A change on the screen.
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
    /// The number for counting the place's own limits; places with the same number share them.
    pub chat: i64,
    /// Groups have a limit per minute on top.
    pub is_group: bool,
    pub limits: Limits,
}

/// A platform's limits for a bot. Zero is no limit.
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
    /// The message to change is gone.
    #[error("the message is gone")]
    Gone,
    /// The message surely did not arrive: no connection was made, or the platform itself refused
    /// the message.
    #[error("{0}")]
    NotSent(String),
    /// The call was made, and no answer tells whether the platform took the message.
    #[error("{0}")]
    Unknown(String),
}

/// Why a place takes no messages.
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
    #[error("I was removed from the group. Add me again")]
    Removed,
    /// The number of the group is wrong, or the bot was never there.
    #[error(
        "Telegram knows no such group. Correct its number (`/whoami` in the group tells it), or add me there"
    )]
    NoSuchGroup,
    #[error("I may not write in the group. Let me send messages there, or make me an admin")]
    Mute,
}

impl PlaceLoss {
    /// The reason with the way out, for people who can do something about it.
    pub fn with_advice(self) -> String {
        match self {
            PlaceLoss::Closed => {
                format!("{self}. Reopen it, or make the bot an admin of the group")
            }
            PlaceLoss::Deleted => {
                format!(
                    "{self}. Open another one with `/bind` there, and remove the rule of this one"
                )
            }
            loss => loss.to_string(),
        }
    }
}

/// The bot may write nothing in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barred {
    pub loss: PlaceLoss,
    /// Unix milliseconds.
    pub since: i64,
}

/// Why a file is not there. The text is for the agent.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("larger than {max_mb} MB")]
    TooLarge { max_mb: u32 },
    #[error("the workspace is full")]
    NoRoom,
    /// With the cause, for the operator.
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

/// The arrivals of a poll or an event.
#[derive(Debug)]
pub struct Batch {
    pub platform: Platform,
    pub arrivals: Vec<Arrival>,
}

/// The way of received messages into the gateway. `accept` returns once they are on disk.
#[derive(Debug, Clone)]
pub struct Intake {
    batches: mpsc::Sender<(Batch, oneshot::Sender<()>)>,
}

/// The gateway's end of an [`Intake`].
pub type IntakeReceiver = mpsc::Receiver<(Batch, oneshot::Sender<()>)>;

/// The batch was not stored; the platform must keep the messages.
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
        self.batches
            .send((batch, stored))
            .await
            .map_err(|_| NotAccepted)?;
        wait.await.map_err(|_| NotAccepted)
    }
}
