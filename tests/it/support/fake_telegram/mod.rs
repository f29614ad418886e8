//! A Bot API server for tests: real HTTP on loopback on one side, a handle to play the people and
//! the faults on the other.
//!
//! `server` speaks HTTP, `wire` has what crosses it; `methods` answers the bot's calls, of which
//! `content` checks the texts and `updates` is the queue behind `getUpdates` and `ages` what older
//! servers leave out; `chats` knows how a message looks in each kind of chat. Tests use `places` to
//! say things, `journal` to see and await what the bot did, `faults` to break things.

pub(crate) mod ages;
mod chats;
mod content;
pub(crate) mod cuttable;
pub(crate) mod faults;
pub(crate) mod journal;
mod methods;
pub(crate) mod places;
mod server;
mod updates;
pub(crate) mod webhook;
mod wire;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use chats::{ALICE, BOB, CAROL, OTHER_BOT, PARLOR_BOT, User};
pub(crate) use faults::{ANY_METHOD, Fault};
pub(crate) use journal::{Journal, Outcome, SentMessage};
pub(crate) use places::{Dm, Place};

use chats::{Chat, Kind};
use updates::UpdateQueue;

use super::faults::Faults;

const TOKEN: &str = "123456:TEST-TOKEN";

/// Handle to a running fake; clones share one world. The server stops with the last clone.
#[derive(Clone)]
pub(crate) struct FakeTelegram {
    shared: Arc<Shared>,
    server: Arc<ServerTask>,
}

impl FakeTelegram {
    pub(crate) async fn start() -> Self {
        Self::start_on(0).await
    }

    /// Port 0 takes any free one.
    pub(crate) async fn start_on(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("the port is free on loopback");
        let api_url = format!(
            "http://{}",
            listener
                .local_addr()
                .expect("a bound listener has an address")
        );
        let shared = Arc::new(Shared::new());
        let task = tokio::spawn(server::serve(listener, shared.clone()));
        Self {
            shared,
            server: Arc::new(ServerTask { api_url, task }),
        }
    }

    /// Base URL without the token, as one would configure it: `http://127.0.0.1:PORT`.
    pub(crate) fn api_url(&self) -> &str {
        &self.server.api_url
    }

    pub(crate) fn token(&self) -> &'static str {
        TOKEN
    }

    /// The user's private chat with the bot.
    pub(crate) fn private_chat(&self, user: User) -> Dm {
        Dm::new(self.place(user.id, Kind::Private(user)), user)
    }

    /// Short for [`FakeTelegram::private_chat`].
    pub(crate) fn dm(&self, user: User) -> Dm {
        self.private_chat(user)
    }

    pub(crate) fn group(&self, chat_id: i64) -> Place {
        self.place(chat_id, Kind::Group)
    }

    pub(crate) fn supergroup(&self, chat_id: i64) -> Place {
        self.place(chat_id, Kind::Supergroup)
    }

    /// The place itself is General; `topic()` leads to the named ones.
    pub(crate) fn forum(&self, chat_id: i64) -> Place {
        self.place(chat_id, Kind::Forum)
    }

    pub(crate) fn channel(&self, chat_id: i64) -> Place {
        self.place(chat_id, Kind::Channel)
    }

    fn place(&self, chat_id: i64, kind: Kind) -> Place {
        self.world()
            .chats
            .entry(chat_id)
            .or_insert_with(|| Chat::new(chat_id, kind));
        Place::new(self.clone(), chat_id)
    }

    /// Queues any JSON as an update and returns its id; an absent `update_id` is filled in.
    ///
    /// An `update_id` below the bot's offset counts as confirmed, as on the real server;
    /// `push_again` gets past that.
    pub(crate) fn push_raw(&self, update: Value) -> i64 {
        let update_id = self.world().updates.push(update);
        self.shared.arrivals.send_replace(());
        update_id
    }

    /// Queues bytes that need not be JSON as an update, with its number in place of `#`.
    pub(crate) fn push_bytes(&self, bytes: &[u8]) -> i64 {
        let update_id = self.world().updates.push_bytes(bytes);
        self.shared.arrivals.send_replace(());
        update_id
    }

    /// Every answer that has this update breaks off behind it.
    pub(crate) fn break_off_behind(&self, update_id: i64) {
        self.world().updates.break_off_behind(update_id);
    }

    /// Offsets above this are refused, as by a server that counts in small numbers.
    pub(crate) fn refuse_offsets_above(&self, largest: i64) {
        self.world().updates.largest_offset = Some(largest.into());
    }

    /// Delivers an update once more, even if it was confirmed long ago.
    pub(crate) fn push_again(&self, update_id: i64) {
        self.world().updates.push_again(update_id);
        self.shared.arrivals.send_replace(());
    }

    /// The JSON of an update as the bot got or will get it.
    pub(crate) fn update(&self, update_id: i64) -> String {
        self.world().updates.text_of(update_id).to_string()
    }

    /// Ids of later updates start here, as they start somewhere else after a week of silence.
    pub(crate) fn restart_update_ids_at(&self, update_id: i64) {
        self.world().updates.restart_ids_at(update_id);
    }

    /// As if a call of the webhook had failed, so many seconds ago.
    pub(crate) fn fail_webhook(&self, why: &str, seconds_ago: i64) {
        let at = chrono::Utc::now().timestamp() - seconds_ago;
        self.world().updates.webhook_error = Some((why.to_owned(), at));
    }

    /// From here on Telegram's time is behind the machine's.
    pub(crate) fn set_back(&self, by: std::time::Duration) {
        *self.shared.behind.lock().expect("nobody panicked") = by;
    }

    /// As if somebody had called `setWebhook`; an empty URL removes it.
    pub(crate) fn set_webhook(&self, url: &str) {
        self.world().updates.webhook = url.into();
        self.shared.arrivals.send_replace(());
    }

    /// Changes a field of what `getMe` answers.
    pub(crate) fn set_me(&self, field: &str, value: impl Into<Value>) {
        self.world().me.insert(field.into(), value.into());
    }

    /// The commands last set for the default scope.
    pub(crate) fn commands(&self) -> Value {
        self.world()
            .commands
            .get(methods::DEFAULT_SCOPE)
            .cloned()
            .unwrap_or_else(|| json!([]))
    }

    /// The emoji with which the bot reacted to a message.
    pub(crate) fn reaction_to(&self, chat_id: i64, message_id: i64) -> Option<String> {
        self.world()
            .chats
            .get(&chat_id)?
            .messages
            .get(&message_id)?
            .reaction
            .clone()
    }

    /// What `getFile` leads to for this id.
    pub(crate) fn keeps_file(&self, file_id: &str, content: &[u8]) {
        self.world().files.insert(file_id.into(), content.into());
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }
}

/// What the HTTP side and the control side share.
struct Shared {
    // A plain mutex: every section is short and none awaits.
    world: Mutex<World>,
    /// Wakes pending polls: an update, a webhook or a newer poll arrived.
    arrivals: watch::Sender<()>,
    /// Wakes tests: the bot called, was answered, or confirmed updates.
    progress: watch::Sender<()>,
    /// How far the time in answers is behind.
    behind: Mutex<std::time::Duration>,
}

impl Shared {
    fn new() -> Self {
        Self {
            world: Mutex::new(World::new()),
            arrivals: watch::Sender::new(()),
            progress: watch::Sender::new(()),
            behind: Mutex::default(),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A failed assertion inside `wait_until` must not hide behind a poisoned lock.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything Telegram would know, and what we noted about the bot.
struct World {
    chats: HashMap<i64, Chat>,
    updates: UpdateQueue,
    journal: Journal,
    faults: Faults<FakeTelegram>,
    answers: ages::Answers,
    me: Map<String, Value>,
    /// By scope and language, in their JSON form.
    commands: HashMap<String, Value>,
    /// Callback queries nobody has answered yet.
    open_callbacks: HashSet<String>,
    callbacks_issued: u64,
    /// By file id.
    files: HashMap<String, Vec<u8>>,
}

impl World {
    fn new() -> Self {
        Self {
            chats: HashMap::new(),
            updates: UpdateQueue::default(),
            journal: Journal::default(),
            faults: Faults::default(),
            answers: ages::Answers::default(),
            me: methods::me(),
            commands: HashMap::new(),
            open_callbacks: HashSet::new(),
            callbacks_issued: 0,
            files: HashMap::new(),
        }
    }

    fn chat(&mut self, chat_id: i64) -> &mut Chat {
        self.chats
            .get_mut(&chat_id)
            .expect("a place exists only for a known chat")
    }
}

struct ServerTask {
    api_url: String,
    task: JoinHandle<()>,
}

impl Drop for ServerTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Labels and payloads of the buttons under a message.
pub(crate) fn buttons(reply_markup: &Value) -> Vec<(String, String)> {
    let rows = reply_markup["inline_keyboard"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.iter()
        .flat_map(|row| row.as_array().cloned().unwrap_or_default())
        .map(|button| (text(&button["text"]), text(&button["callback_data"])))
        .collect()
}
