//! A Discord for tests: REST and WebSocket on one loopback port on one side, a handle to play the people and the faults on the other.
//!
//! `server` speaks HTTP, `wire` and `routes` have what crosses it; `rest`, `threads`, `commands` and `interactions` answer the bot's
//! calls, of which `content` checks the texts; `gateway` speaks WebSocket, `sessions` number the events; `world`, `messages` and `json` know
//! what there is and how it looks. Tests use `guilds`, `places`,
//! `speech` and `actions` to say and do things, `journal` to see and await what the bot did,
//! `faults` and `gateway_faults` to break things, `tunnel` to stand where <https://discord.com> would be.
//!
//! ```ignore
//! let discord = FakeDiscord::start().await;
//! let guild = discord.guild(8001, "Garden");
//! let general = guild.text_channel(8101, "general");
//! // … start the bot with discord.url() and discord.token() …
//! discord.connected().await;
//! let said = general.says(ALICE, "hello").await;
//! let answer = general.wait_for_sent(1).await;
//! assert_eq!(answer.reply_to, Some(said.message_id));
//! discord.fail(Route::CreateMessage, Fault::RateLimited(0.5)).only_in(general.id).once();
//! discord.drop_connections();
//! discord.wait_for_resumes(1).await;
//! ```
//!
//! Nothing here sleeps: ids and timestamps follow the real time, but the deadlines of interactions and nonces pass only by
//! [`FakeDiscord::advance`]. A message, edit or answer of the bot that could ping somebody (`allowed_mentions` not empty), or that
//! drops a file it brought (`attachments` does not list it), fails the test when the last handle goes, unless
//! [`FakeDiscord::take_violations`] took note of it.

pub(crate) mod actions;
mod clock;
mod commands;
mod compression;
mod content;
pub(crate) mod faults;
mod gateway;
pub(crate) mod gateway_faults;
pub(crate) mod guilds;
mod interactions;
pub(crate) mod journal;
mod json;
mod messages;
pub(crate) mod places;
mod rest;
pub(crate) mod routes;
mod server;
mod sessions;
pub(crate) mod speech;
mod threads;
pub(crate) mod tunnel;
mod users;
mod wire;
mod world;

use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use faults::Fault;
pub(crate) use gateway_faults::Invalidation;
pub(crate) use guilds::GuildHandle;
pub(crate) use journal::{Outcome, SentMessage};
pub(crate) use places::{Dm, Room};
pub(crate) use routes::Route;
pub(crate) use users::{ALICE, APPLICATION_ID, BOB, CAROL, OTHER_BOT, PARLOR_BOT, User};
pub(crate) use world::BotMay;

use crate::support::fake_telegram::cuttable::Garbling;
use world::{Guild, World};

/// Begins with the bot's id in base64, as real ones do.
const TOKEN: &str = "NzAwNzAx.FAKEts.a-token-that-opens-nothing-but-a-test";

/// Handle to a running fake; clones share one world. The server stops with the last clone.
#[derive(Clone)]
pub(crate) struct FakeDiscord {
    shared: Arc<Shared>,
    server: Arc<ServerTask>,
}

impl FakeDiscord {
    pub(crate) async fn start() -> Self {
        Self::start_on(0).await
    }

    /// Port 0 takes any free one.
    pub(crate) async fn start_on(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("the port is free on loopback");
        let url = format!(
            "http://{}",
            listener
                .local_addr()
                .expect("a bound listener has an address")
        );
        let shared = Arc::new(Shared::new(url.clone()));
        let task = tokio::spawn(server::serve(listener, shared.clone()));
        Self {
            shared: shared.clone(),
            server: Arc::new(ServerTask { url, task, shared }),
        }
    }

    /// What stands for `https://discord.com`: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    pub(crate) fn token(&self) -> &'static str {
        TOKEN
    }

    /// The addresses that it gives to bots lead here, such as that of the gateway.
    pub(crate) fn is_reached_at(&self, url: &str) {
        self.world().base_url = url.to_owned();
    }

    /// A server with the bot in it. Its owner is Carol.
    pub(crate) fn guild(&self, id: u64, name: &str) -> GuildHandle {
        let mut world = self.world();
        if let Entry::Vacant(free) = world.guilds.entry(id) {
            let roles = [(id, "@everyone".to_owned())].into();
            free.insert(Guild {
                id,
                name: name.into(),
                owner: CAROL,
                roles,
                members: Default::default(),
            });
            let data = json::guild_create(&world.guilds[&id], &world);
            world.gateway.dispatch(Some(id), "GUILD_CREATE", data);
        }
        drop(world);
        GuildHandle::new(self.clone(), id)
    }

    /// The user's private conversation with the bot.
    pub(crate) fn dm(&self, user: User) -> Dm {
        let id = self.world().dm_with(user);
        Dm::new(Room::new(self.clone(), id), user)
    }

    /// A room by its id, for threads that the bot opened.
    pub(crate) fn room(&self, channel_id: u64) -> Room {
        assert!(
            self.world().channels.contains_key(&channel_id),
            "there is no channel {channel_id}"
        );
        Room::new(self.clone(), channel_id)
    }

    /// "Message Content Intent" of the developer portal; on at the start.
    pub(crate) fn show_message_content(&self, shown: bool) {
        self.world().gateway.portal_shows_content = shown;
    }

    /// Applies to connections from now on.
    pub(crate) fn set_heartbeat_interval(&self, interval: Duration) {
        let millis = u64::try_from(interval.as_millis()).expect("an interval of seconds");
        self.world().gateway.heartbeat_millis = millis;
    }

    /// What `GET /gateway/bot` advises.
    pub(crate) fn recommend_shards(&self, shards: u64) {
        self.world().gateway.recommended_shards = shards;
    }

    /// Lets time pass for the deadlines of interactions and nonces.
    pub(crate) fn advance(&self, by: Duration) {
        self.world().clock.advance(by);
    }

    /// Discord's time is behind the machine's from here on.
    pub(crate) fn set_back(&self, by: Duration) {
        self.world().clock.set_back(by);
    }

    /// The data of every IDENTIFY so far.
    pub(crate) fn identifies(&self) -> Vec<Value> {
        self.world().gateway.identifies.clone()
    }

    /// The data of every RESUME so far.
    pub(crate) fn resumes(&self) -> Vec<Value> {
        self.world().gateway.resumes.clone()
    }

    /// The events of a name that sessions got or will get, as envelopes with `s` and `d`.
    pub(crate) fn dispatched(&self, event: &str) -> Vec<Value> {
        self.world().gateway.dispatched(event)
    }

    /// WebSocket connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.world().gateway.connections
    }

    /// The close codes that the bot sent.
    pub(crate) fn closed_by_bot(&self) -> Vec<u16> {
        self.world().gateway.closed_by_bot.clone()
    }

    /// What must not happen and did, such as pings; the test goes on as if it had not been.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.world().journal.violations)
    }

    /// Fails if something happened that must not; dropping the last handle does the same.
    pub(crate) fn finish(self) {
        self.server.check();
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }
}

/// What the wire's side and the control side share.
struct Shared {
    // A plain mutex: every section is short and none awaits.
    world: Mutex<World>,
    /// Wakes tests: the bot called, was answered, connected or went.
    progress: watch::Sender<()>,
    garbling: Garbling,
}

impl Shared {
    fn new(base_url: String) -> Self {
        Self {
            world: Mutex::new(World::new(base_url)),
            progress: watch::Sender::new(()),
            garbling: Garbling::default(),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A failed assertion inside `wait_until` must not hide behind a poisoned lock.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ServerTask {
    url: String,
    task: JoinHandle<()>,
    shared: Arc<Shared>,
}

impl ServerTask {
    fn check(&self) {
        let violations = std::mem::take(&mut self.shared.world().journal.violations);
        assert!(
            violations.is_empty(),
            "the bot broke a rule:\n{}",
            violations.join("\n")
        );
    }
}

impl Drop for ServerTask {
    fn drop(&mut self) {
        self.task.abort();
        if !std::thread::panicking() {
            self.check();
        }
    }
}
