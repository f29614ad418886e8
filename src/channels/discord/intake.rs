//! Takes events in their order, one at a time, and hands messages to the inbox.
//!
//! Discord has no acknowledgement: after an absence the messages behind the read position are
//! fetched again.

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::api::ApiError;
use super::bot::Bot;
use super::broken_json::{Broken, BrokenMessage};
use super::catchup;
use super::directory::{Surroundings, id, id_in, list};
use super::levels;
use super::parse::{Read, Reader};
use super::read_positions::{self, Progress, ReadPosition, Realm};
use super::shard::Event;
use crate::channels::{Batch, Intake};
use crate::clock::now_ms;
use crate::console::{self, Connected};
use crate::domain::{
    Addressed, Arrival, DiscordId, MessageId, Note, PersonId, Platform, SessionKey,
};
use crate::storage::Durability;

/// Events in the queue. A full queue stops the reading of the connection.
pub(super) const QUEUE: usize = 1024;
/// Events in a batch when many wait.
const TOGETHER: usize = 64;
/// Empty messages in a row, after which the operator is told about the missing intent.
const EMPTIES_TOLD: u32 = 5;
/// The pause before a refused batch is offered again.
const NOT_TAKEN: std::time::Duration = std::time::Duration::from_millis(500);
/// Tries to look up the channel of a message.
const TRIES: u32 = 3;

/// Arrivals and read positions before they are stored.
#[derive(Default)]
struct Unstored {
    arrivals: Vec<Arrival>,
    progress: Progress,
}

pub(super) struct EventLoop<'a> {
    bot: &'a Bot,
    intake: &'a Intake,
    stop: &'a CancellationToken,
    unstored: Unstored,
    /// The rest of the budget for catching up.
    pub(super) budget: catchup::Budget,
    /// Empty messages in a row; none after the warning, or after a message with content.
    empties: Option<u32>,
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(bot: &'a Bot, intake: &'a Intake, stop: &'a CancellationToken) -> Self {
        EventLoop {
            bot,
            intake,
            stop,
            unstored: Unstored::default(),
            budget: catchup::Budget::new(),
            empties: Some(0),
        }
    }

    /// Returns when all connections have ended.
    pub(super) async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        let mut waiting = Vec::with_capacity(TOGETHER);
        while events.recv_many(&mut waiting, TOGETHER).await > 0 {
            for event in waiting.drain(..) {
                self.take(event).await;
            }
            self.store().await;
        }
    }

    async fn take(
        &mut self,
        Event {
            kind,
            data,
            is_after_gap,
        }: Event,
    ) {
        if is_after_gap {
            self.store().await;
            catchup::run(self).await;
        }
        match data {
            Ok(data) => self.take_event(&kind, &data).await,
            Err(broken) => self.keep_broken(format!("event:{}", Uuid::now_v7().simple()), broken),
        }
    }

    async fn take_event(&mut self, kind: &str, data: &Value) {
        levels::follow(&self.bot.db, kind, data).await;
        let directory = &self.bot.directory;
        match kind {
            "READY" => self.begin(data).await,
            "GUILD_CREATE" => self.server(data).await,
            // `unavailable` is an outage of the server; otherwise the bot has left.
            "GUILD_DELETE" if data["unavailable"] != true => self.left_server(data).await,
            "CHANNEL_CREATE" => drop(directory.learn(data, None)),
            "GUILD_UPDATE" => directory.learn_server(data),
            "THREAD_CREATE" => self.thread_made(data).await,
            "CHANNEL_UPDATE" | "THREAD_UPDATE" => self.changed(data),
            "CHANNEL_DELETE" | "THREAD_DELETE" => self.gone(data).await,
            "THREAD_LIST_SYNC" => directory.learn_threads(data),
            "MESSAGE_CREATE" => self.message(data, None).await,
            // Link previews also come as updates, without this timestamp.
            "MESSAGE_UPDATE" if data["edited_timestamp"].is_string() => {
                self.message(data, Some(Note::Edit)).await;
            }
            "MESSAGE_DELETE" => self.deleted(id_in(data, "id")),
            "MESSAGE_DELETE_BULK" => self.deleted(list(data, "ids").filter_map(id)),
            "MESSAGE_REACTION_ADD" => self.reaction(data).await,
            "INTERACTION_CREATE" => self.interaction(data).await,
            _ => {}
        }
    }

    /// Begins a new session by catching up.
    async fn begin(&mut self, ready: &Value) {
        let Some(me) = id_in(&ready["user"], "id") else {
            tracing::error!("Discord does not say who the bot is; it will not be heard");
            return;
        };
        self.store().await;
        self.bot
            .interactions
            .know_application(id_in(&ready["application"], "id"));
        self.bot.know_me(me);
        console::connected(&Connected {
            name: ready["user"]["username"].as_str().unwrap_or("the bot"),
            by: "gateway",
            servers: Some(list(ready, "guilds").count()),
            agents: self.bot.agents,
            link: None,
        });
        catchup::run(self).await;
        // Private chats belong to the first shard.
        if ready["shard"][0].as_u64().unwrap_or(0) == 0 {
            catchup::private_chats(self).await;
        }
    }

    /// `GUILD_CREATE` comes at the beginning of a session, after an outage, and when the bot joins.
    async fn server(&mut self, raw: &Value) {
        self.bot.directory.learn_server(raw);
        if raw["unavailable"] != true && self.bot.me().is_some() {
            self.store().await;
            catchup::server(self, raw).await;
        }
    }

    async fn left_server(&self, raw: &Value) {
        let Some(server) = id_in(raw, "id") else {
            return;
        };
        if let Err(error) = self
            .bot
            .db
            .write(move |tx| read_positions::forget_server(tx, server))
            .await
        {
            tracing::warn!("a server that the bot has left was not forgotten: {error}");
        }
    }

    /// `THREAD_CREATE` also comes when the bot is added to an older thread.
    async fn thread_made(&mut self, raw: &Value) {
        self.bot.directory.learn(raw, None);
        if raw["newly_created"] == true {
            self.thread_found(raw).await;
        }
    }

    /// Reports a new thread, because its name may be an agent's.
    pub(super) async fn thread_found(&mut self, raw: &Value) {
        let (Some(reader), Some(id)) = (self.reader(), id_in(raw, "id")) else {
            return;
        };
        if let Ok(around) = self.bot.directory.surroundings(&self.bot.api, id).await {
            self.unstored.arrivals.extend(
                reader
                    .thread_made(raw, &around)
                    .map(|made| Arrival::TopicMade(Box::new(made))),
            );
        }
    }

    fn deleted(&mut self, messages: impl IntoIterator<Item = DiscordId>) {
        let messages: Vec<MessageId> = messages
            .into_iter()
            .map(|id| MessageId(id.to_string()))
            .collect();
        if !messages.is_empty() {
            self.unstored.arrivals.push(Arrival::Deleted(messages));
        }
    }

    /// Discord sends no event for the threads of a deleted channel.
    async fn gone(&mut self, raw: &Value) {
        let Some(channel) = id_in(raw, "id") else {
            return;
        };
        self.bot.directory.learn(raw, None);
        let place = self.bot.directory.thread(channel);
        self.bot.directory.forget(channel);
        self.unstored
            .arrivals
            .push(Arrival::Gone(place.unwrap_or(SessionKey::DiscordChannel {
                channel,
                member: None,
            })));
        if let Err(error) = self
            .bot
            .db
            .write(move |tx| read_positions::forget(tx, channel))
            .await
        {
            tracing::warn!("a channel that is gone was not forgotten: {error}");
        }
    }

    fn changed(&mut self, raw: &Value) {
        let Some(id) = id_in(raw, "id") else { return };
        let before = self.bot.directory.learn(raw, None);
        let Some(now) = self.bot.directory.get(id) else {
            return;
        };
        let place = self.bot.directory.thread(id);
        if let (Some(place), Some(name)) = (&place, now.name())
            && before
                .as_ref()
                .is_none_or(|before| before.name() != Some(name))
        {
            self.unstored.arrivals.push(Arrival::Named {
                place: place.clone(),
                name: name.to_owned(),
            });
        }
        let was_shut = before.is_some_and(|before| before.is_locked || before.is_archived);
        let is_open_again = was_shut && !now.is_locked && !now.is_archived;
        if is_open_again || self.bot.refused_channels.forget(id) {
            let place = place.unwrap_or(SessionKey::DiscordChannel {
                channel: id,
                member: None,
            });
            self.unstored.arrivals.push(Arrival::Reopened(place));
        }
    }

    /// The place of an event. Messages do not say whether their channel is a thread.
    pub(super) async fn surroundings(&self, raw: &Value) -> Surroundings {
        let directory = &self.bot.directory;
        let Some(channel) = id_in(raw, "channel_id") else {
            return Surroundings::default();
        };
        // A missing server means a private message, so a known channel's server is taken for an
        // incomplete event.
        let server = id_in(raw, "guild_id").or_else(|| directory.get(channel)?.server);
        if server.is_none() {
            return Surroundings::default();
        }
        for _ in 0..TRIES {
            match directory.surroundings(&self.bot.api, channel).await {
                Ok(found) => return Surroundings { server, ..found },
                Err(error) => {
                    tracing::warn!("asking Discord about the channel {channel}: {error}");
                    if matches!(
                        error,
                        ApiError::Answered {
                            status: 400..500,
                            ..
                        }
                    ) {
                        break;
                    }
                }
            }
            tokio::time::sleep(NOT_TAKEN).await;
        }
        Surroundings {
            server,
            ..Surroundings::default()
        }
    }

    /// Takes in a message that came as an event.
    async fn message(&mut self, raw: &Value, note: Option<Note>) {
        if let Some(position) = self.take_in(raw, note).await {
            let server =
                id_in(raw, "guild_id").or_else(|| self.bot.directory.get(position.channel)?.server);
            let realm = server.map_or(Realm::PrivateChats, Realm::Server);
            self.unstored.progress.saw(realm, position);
        }
    }

    /// Takes in a message that was asked for.
    pub(super) async fn missed(&mut self, raw: &Value) {
        if let Some(position) = self.take_in(raw, None).await {
            self.unstored.progress.caught_up(position);
        }
    }

    /// Returns the place of the message in its channel.
    async fn take_in(&mut self, raw: &Value, note: Option<Note>) -> Option<ReadPosition> {
        let reader = self.reader()?;
        // Messages of bots are not worth a call for their channel.
        let around = if reader.is_from_a_person(raw) {
            self.surroundings(raw).await
        } else {
            Surroundings::default()
        };
        let read = reader.message(raw, &around, note);
        let position = id_in(raw, "channel_id").zip(id_in(raw, "id"));
        if let Some((channel, message)) = position {
            if let Read::Messages(messages) = &read
                && let Some(SessionKey::DiscordDm { user }) =
                    messages.first().map(|inbound| &inbound.origin.key)
            {
                self.bot.directory.learn_private(*user, channel);
            }
            if note.is_none() && !reader.is_ours(raw) {
                self.bot.newest.note(channel, message);
            }
        }
        match read {
            Read::Messages(messages) => {
                // Messages with a mention of the bot have their text even without the intent.
                if messages
                    .iter()
                    .any(|inbound| inbound.addressed == Addressed::NotAtAll)
                {
                    self.empties = None;
                }
                self.unstored.arrivals.extend(
                    messages
                        .into_iter()
                        .map(|inbound| Arrival::Message(Box::new(inbound))),
                );
            }
            Read::Empty => self.count_empty(),
            Read::NotForUs => {}
            Read::Unreadable(reason) => {
                tracing::error!("a message from Discord cannot be read: {reason}");
                self.keep_broken(
                    message_update(id_in(raw, "id")),
                    Broken {
                        reason: reason.to_owned(),
                        raw: raw.to_string(),
                    },
                );
            }
        }
        position.map(|(channel, message)| ReadPosition { channel, message })
    }

    /// Keeps a broken message of a page, and moves the read position past the message.
    pub(super) fn broken_message(&mut self, channel: DiscordId, message: BrokenMessage) {
        tracing::error!(
            "a message of {} bytes from the Discord channel {channel} is not quite JSON",
            message.broken.raw.len()
        );
        self.keep_broken(message_update(message.id), message.broken);
        if let Some(message) = message.id {
            let position = ReadPosition { channel, message };
            self.unstored.progress.caught_up(position);
        }
    }

    fn keep_broken(&mut self, update_id: String, Broken { reason, raw }: Broken) {
        self.unstored.arrivals.push(Arrival::Broken {
            update_id,
            reason,
            raw,
        });
    }

    /// Counts only until the first message with content, which shows that the intent is on.
    fn count_empty(&mut self) {
        let Some(count) = &mut self.empties else {
            return;
        };
        *count += 1;
        if *count == EMPTIES_TOLD {
            self.empties = None;
            tracing::warn!(
                "messages from Discord come without their text. Enable Message Content Intent on the Bot page of the developer portal, \
                 and start Parlor again"
            );
        }
    }

    async fn reaction(&mut self, raw: &Value) {
        let Some(reader) = self.reader() else { return };
        let around = self.surroundings(raw).await;
        let noted = reader.reaction(raw, &around);
        self.unstored
            .arrivals
            .extend(noted.map(|inbound| Arrival::Message(Box::new(inbound))));
    }

    /// The acknowledged interaction goes on as a written command.
    async fn interaction(&mut self, raw: &Value) {
        let Some(reader) = self.reader() else { return };
        self.bot
            .directory
            .learn_if_new(&raw["channel"], id_in(raw, "guild_id"));
        let around = self.surroundings(raw).await;
        let Some(inbound) = self.bot.interactions.read(&reader, raw, &around) else {
            return;
        };
        if let (None, PersonId::Discord(person), Some(channel)) = (
            around.server,
            &inbound.origin.person,
            id_in(raw, "channel_id"),
        ) {
            self.bot.directory.learn_private(*person, channel);
        }
        self.unstored
            .arrivals
            .push(Arrival::Message(Box::new(inbound)));
    }

    fn reader(&self) -> Option<Reader<'a>> {
        let bot = self.bot;
        Some(Reader {
            me: bot.me()?,
            group_sessions: bot.group_sessions,
            nicknames: &bot.nicknames,
            gather: bot.gather,
        })
    }

    /// Returns once the arrivals are on disk. A refused batch is offered again, because Discord
    /// does not send messages twice.
    pub(super) async fn store(&mut self) {
        let Unstored { arrivals, progress } = std::mem::take(&mut self.unstored);
        while !arrivals.is_empty() {
            let batch = Batch {
                platform: Platform::Discord,
                arrivals: arrivals.clone(),
            };
            if self.intake.accept(batch).await.is_ok() {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(NOT_TAKEN) => {}
                // The next start catches up.
                () = self.stop.cancelled() => return,
            }
        }
        if !progress.is_empty() {
            let note = move |tx: &rusqlite::Transaction<'_>| progress.note(tx, now_ms());
            if let Err(error) = self.bot.db.write_as(Durability::Kill, note).await {
                tracing::warn!("what was seen on Discord was not noted: {error}");
            }
        }
    }

    /// Marks a server or the private chats as read up to this message.
    pub(super) fn heard(&mut self, realm: Realm, message: DiscordId) {
        self.unstored.progress.heard(realm, message);
    }

    pub(super) fn bot(&self) -> &'a Bot {
        self.bot
    }
}

/// The update id of a broken message; random if the message has no readable id.
fn message_update(id: Option<DiscordId>) -> String {
    format!(
        "message:{}",
        id.map_or_else(|| Uuid::now_v7().simple().to_string(), |id| id.to_string())
    )
}
