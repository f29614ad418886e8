//! The chat in a browser. Its messages go through inbox, router, lane and outbox as on any
//! platform.
//!
//! The far end is a table ([`screen`]): a line is stored there before its sender gets a
//! confirmation, then taken in; an answer is delivered once stored there. Browsers read the table,
//! and the passing view while a turn runs ([`live`]).

mod files;
mod live;
mod screen;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Abilities, Batch, Channel, FetchError, Intake, ListenError, Part, Progress, SendError,
    Streaming, Text, Ticket, local,
};
use crate::clock::now_ms;
use crate::domain::{
    Addressed, Arrival, Attachment, Destination, Extras, FileRef, Inbound, MessageId, Origin,
    OutgoingFile, Platform, ReplyHandle, SessionKey, Together,
};
use crate::storage::{Db, Next, Patience, StoreError};

pub(crate) use files::{MAX_FILE_BYTES, NotStored, Stored};
use live::Live;
pub(crate) use live::Sight;
pub(crate) use screen::{Body, Button, Row, Speaker, purge, show};

/// The longest line of a person.
pub(crate) const MAX_LINE_CHARS: usize = 32_000;
/// Files of a line. Each is a message of its own, and they are answered together.
pub(crate) const MAX_FILES: usize = 10;
/// How long to wait for the next file of a line; all are in the table already.
const NEXT_FILE_WITHIN_MS: u64 = 200;
/// Lines handed over at once.
const PORTION: u32 = 16;
/// The screen recognizes repeats during the life of its rows.
const REPEATS_TOLD_FOR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The gateway's side, and the door's. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WebChannel(Arc<Inner>);

struct Inner {
    db: Db,
    home: PathBuf,
    live: Live,
    /// Notified when a line is in the table.
    said: Notify,
    /// Counts up when the table has a new row.
    grown: watch::Sender<u64>,
}

/// A line on its way in.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) place: SessionKey,
    /// Made by the browser, for the recognition of a repeated line.
    pub(crate) id: String,
    pub(crate) text: String,
    /// Ids of stored files.
    pub(crate) files: Vec<String>,
    /// The people's name for the topic, on its first line.
    pub(crate) topic_name: Option<String>,
}

/// Why a line was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSaid {
    #[error("{0} is no place of the web chat")]
    ElsewherePlace(SessionKey),
    #[error("a message needs words or a file")]
    Empty,
    #[error("a message has at most {MAX_LINE_CHARS} characters")]
    TooLong,
    #[error("a message has at most {MAX_FILES} files")]
    TooManyFiles,
    #[error("the id of a message is 1 to 64 letters, digits and hyphens")]
    BadId,
    #[error("the file {0} is not here; send it again")]
    NoFile(String),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl WebChannel {
    pub(crate) fn new(db: Db, home: PathBuf) -> Self {
        WebChannel(Arc::new(Inner {
            db,
            home,
            live: Live::default(),
            said: Notify::new(),
            grown: watch::Sender::new(0),
        }))
    }

    /// Stores a person's line. The gateway takes the line in as soon as possible, also after a
    /// restart.
    pub(crate) async fn say(&self, line: Line) -> Result<(), NotSaid> {
        let files = self.check(&line).await?;
        let Line {
            place,
            id,
            text,
            topic_name,
            ..
        } = line;
        let body = Body {
            speaker: Speaker::Person(local::person_name()),
            text,
            answers: None,
            buttons: Vec::new(),
            files,
            topic_name,
        };
        let now = now_ms();
        let write =
            move |tx: &rusqlite::Transaction<'_>| screen::add(tx, &place, (&id, true), &body, now);
        self.0.db.write(write).await?;
        self.grew();
        self.0.said.notify_one();
        Ok(())
    }

    async fn check(&self, line: &Line) -> Result<Vec<Stored>, NotSaid> {
        if !matches!(line.place, SessionKey::Web { .. }) {
            return Err(NotSaid::ElsewherePlace(line.place.clone()));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(1..=64).contains(&line.id.len()) || !line.id.bytes().all(is_plain) {
            return Err(NotSaid::BadId);
        }
        if line.text.trim().is_empty() && line.files.is_empty() {
            return Err(NotSaid::Empty);
        }
        if line.text.chars().count() > MAX_LINE_CHARS {
            return Err(NotSaid::TooLong);
        }
        if line.files.len() > MAX_FILES {
            return Err(NotSaid::TooManyFiles);
        }
        let mut stored = Vec::new();
        for id in &line.files {
            let file = files::find(&self.0.home, id).await;
            stored.push(file.ok_or_else(|| NotSaid::NoFile(id.clone()))?);
        }
        Ok(stored)
    }

    /// Keeps a file that a person is about to send.
    pub(crate) async fn store_file(&self, name: &str, content: &[u8]) -> Result<Stored, NotStored> {
        files::store(&self.0.home, name, content).await
    }

    /// A stored file, and its path.
    pub(crate) async fn file(&self, id: &str) -> Option<(Stored, PathBuf)> {
        let file = files::find(&self.0.home, id).await?;
        let path = files::path(&self.0.home, &file.id);
        Some((file, path))
    }

    /// Rows after an id, of all places, oldest first.
    pub(crate) async fn rows_after(&self, id: i64, most: u32) -> Result<Vec<Row>, StoreError> {
        self.0
            .db
            .read(move |connection| screen::after(connection, id, most))
            .await
    }

    /// The last rows of a place before an id, oldest first.
    pub(crate) async fn rows_before(
        &self,
        place: &SessionKey,
        before: i64,
        most: u32,
    ) -> Result<Vec<Row>, StoreError> {
        let place = place.clone();
        self.0
            .db
            .read(move |connection| screen::before(connection, &place, before, most))
            .await
    }

    /// The last message of each place, the latest first.
    pub(crate) async fn latest(&self) -> Result<Vec<Row>, StoreError> {
        self.0.db.read(screen::latest).await
    }

    /// The id of the newest row, of all places.
    pub(crate) async fn newest(&self) -> Result<i64, StoreError> {
        self.0.db.read(screen::newest).await
    }

    /// Changes with each new row.
    pub(crate) fn growth(&self) -> watch::Receiver<u64> {
        self.0.grown.subscribe()
    }

    /// The view of running turns: everything so far, and every change.
    pub(crate) fn sights(&self) -> (Vec<Sight>, broadcast::Receiver<Sight>) {
        self.0.live.watch()
    }

    fn grew(&self) {
        self.0
            .grown
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    async fn show(
        &self,
        place: &SessionKey,
        message: String,
        body: Body,
    ) -> Result<MessageId, SendError> {
        let (place, id) = (place.clone(), message.clone());
        let now = now_ms();
        let write =
            move |tx: &rusqlite::Transaction<'_>| screen::add(tx, &place, (&id, false), &body, now);
        let written = self.0.db.write(write).await;
        written.map_err(|error| SendError::NotSent(error.to_string()))?;
        self.grew();
        Ok(MessageId(message))
    }

    /// Hands over every waiting line.
    async fn hand_over(&self, intake: &Intake) -> Result<(), Trouble> {
        loop {
            let waiting = self
                .0
                .db
                .read(|connection| screen::waiting(connection, PORTION));
            let waiting = waiting.await?;
            let Some(last) = waiting.last().map(|row| row.id) else {
                return Ok(());
            };
            let lines = waiting.into_iter().flat_map(arrivals);
            let batch = Batch {
                platform: Platform::Web,
                arrivals: lines.collect(),
            };
            if intake.accept(batch).await.is_err() {
                return Err(Trouble::Stopping);
            }
            self.0.db.write(move |tx| screen::taken(tx, last)).await?;
        }
    }
}

/// Why lines wait on.
enum Trouble {
    Stopping,
    Store(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::Store(error)
    }
}

#[async_trait]
impl Channel for WebChannel {
    fn abilities(&self) -> Abilities {
        Abilities {
            streaming_in_private: Streaming::Pieces,
            reactions: true,
            ..Abilities::plain(Platform::Web)
        }
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        files::tidy(&self.0.home).await;
        let mut patience = Patience::new("lines of the web chat");
        loop {
            match self.hand_over(&intake).await {
                Ok(()) => {}
                Err(Trouble::Stopping) => return Ok(()),
                Err(Trouble::Store(error)) => match patience.after(&stop, &error).await {
                    Next::Again => continue,
                    Next::Stopping | Next::Hopeless => return Ok(()),
                },
            }
            tokio::select! {
                () = self.0.said.notified() => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    fn render(&self, _to: &Destination, text: &Text<'_>) -> Vec<Part> {
        let button = |choice: &super::Choice| Button {
            label: choice.label.clone(),
            command: choice.command.clone(),
        };
        let body = Body {
            speaker: match text.speaker {
                Some(label) => Speaker::Agent(label.to_owned()),
                None => Speaker::Gateway,
            },
            text: text.markdown.to_owned(),
            answers: text.answers.map(|question| question.message.clone()),
            buttons: text.choices.iter().map(button).collect(),
            files: Vec::new(),
            topic_name: None,
        };
        vec![Part(body.to_json())]
    }

    async fn send(
        &self,
        to: &Destination,
        part: &Part,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let body =
            Body::from_json(&part.0).map_err(|error| SendError::Refused(error.to_string()))?;
        let answers = body.answers.clone();
        let sent = self.show(to.place(), ticket.0.clone(), body).await;
        if sent.is_ok() && answers.is_some() {
            self.0.live.clear(to.place());
        }
        sent
    }

    fn tells_repeats_for(&self, _part: &Part) -> Duration {
        REPEATS_TOLD_FOR
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        let (live, place) = (&self.0.live, to.place());
        match progress {
            Progress::Text { speaker, text, .. } => live.add(place, speaker, text),
            Progress::Remark { text, .. } => live.remark(place, text),
            Progress::Begun(_) => live.begin(place),
            Progress::Over(..) => live.clear(place),
            Progress::Working | Progress::Taken => {}
        }
        Ok(())
    }

    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        path: &Path,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let kept = files::keep(&self.0.home, &ticket.0, file, path).await;
        let kept = kept.map_err(|error| SendError::NotSent(error.to_string()))?;
        let body = Body {
            speaker: Speaker::Gateway,
            text: file.caption.clone().unwrap_or_default(),
            answers: None,
            buttons: Vec::new(),
            files: vec![kept],
            topic_name: None,
        };
        self.show(to.place(), ticket.0.clone(), body).await
    }

    async fn fetch(&self, file: &FileRef, to: &Path) -> Result<(), FetchError> {
        let path = files::path(&self.0.home, &file.id);
        let copied = tokio::fs::copy(path, to).await;
        copied
            .map(drop)
            .map_err(|error| FetchError::Failed(error.to_string()))
    }
}

/// A line as messages: a single message, or a message for each of its files.
fn arrivals(row: Row) -> Vec<Arrival> {
    let Row {
        place,
        message,
        body,
        at,
        ..
    } = row;
    let Body {
        text,
        files,
        topic_name,
        ..
    } = body;
    let count = files.len();
    let mut attachments: Vec<Option<Stored>> = files.into_iter().map(Some).collect();
    if attachments.is_empty() {
        attachments.push(None);
    }
    let mut messages = Vec::new();
    for (number, file) in attachments.into_iter().enumerate() {
        let id = match number {
            0 => message.clone(),
            more => format!("{message}-{more}"),
        };
        let words = if number == 0 {
            text.clone()
        } else {
            String::new()
        };
        let together = (count > 1).then(|| Together {
            with: message.clone(),
            wait_ms: NEXT_FILE_WITHIN_MS,
        });
        let extras = Extras {
            attachment: file.map(attachment),
            together,
            reply: Some(ReplyHandle(id.clone())),
            ..Extras::default()
        };
        let mut origin = Origin::new(place.clone(), local::person());
        origin.name = topic_name.clone();
        messages.push(Arrival::Message(Box::new(Inbound {
            update_id: id.clone(),
            origin,
            person_name: local::person_name(),
            text: words,
            addressed: Addressed::Privately,
            message: MessageId(id),
            sent_at: at,
            extras,
        })));
    }
    messages
}

fn attachment(file: Stored) -> Attachment {
    let kind = match file.media_type.starts_with("image/") {
        true => "photo",
        false => "file",
    };
    Attachment {
        description: format!("{kind}, {}", file.name),
        file: Some(FileRef {
            id: file.id,
            name: file.name,
            bytes: Some(file.bytes),
        }),
    }
}

#[cfg(test)]
mod tests;
