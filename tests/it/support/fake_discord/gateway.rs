//! The WebSocket side: sessions, numbered events, resuming.
//!
//! <https://discord.com/developers/docs/events/gateway>

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::gateway_faults::GatewayFaults;
use super::json::{self as payload};
use super::messages::without_content;
use super::world::World;
use super::{Shared, TOKEN};

const GUILDS: u64 = 1;
const MESSAGE_CONTENT: u64 = 1 << 15;
const GUILD_MEMBERS: u64 = 1 << 1;
const GUILD_PRESENCES: u64 = 1 << 8;
/// Bits that mean something; 17 to 19, 22 and 23 never did.
const KNOWN_INTENTS: u64 = 0x0033_FFFF & !(1 << 17) & !(1 << 18) & !(1 << 19) | 1 << 24 | 1 << 25;
const DEFAULT_HEARTBEAT_MILLIS: u64 = 41_250;

/// All sessions there ever were, and how the gateway behaves.
pub(super) struct Gateway {
    pub(super) sessions: Vec<Session>,
    pub(super) connections: u64,
    /// The data of every IDENTIFY and RESUME that came.
    pub(super) identifies: Vec<Value>,
    pub(super) resumes: Vec<Value>,
    pub(super) heartbeats: usize,
    /// Close codes the bot sent, 1005 for none.
    pub(super) closed_by_bot: Vec<u16>,
    pub(super) heartbeat_millis: u64,
    /// Whether "Message Content Intent" is on in the developer portal.
    pub(super) portal_shows_content: bool,
    pub(super) recommended_shards: u64,
    pub(super) faults: GatewayFaults,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            sessions: Vec::new(),
            connections: 0,
            identifies: Vec::new(),
            resumes: Vec::new(),
            heartbeats: 0,
            closed_by_bot: Vec::new(),
            heartbeat_millis: DEFAULT_HEARTBEAT_MILLIS,
            portal_shows_content: true,
            recommended_shards: 1,
            faults: GatewayFaults::default(),
        }
    }
}

pub(super) struct Session {
    pub(super) id: String,
    intents: u64,
    shard: [u64; 2],
    /// Everything dispatched, for resuming; the number of an event is its position plus one.
    events: Vec<Arc<str>>,
    /// `None` while the bot is away.
    pub(super) connection: Option<Connection>,
    pub(super) can_resume: bool,
}

#[derive(Clone)]
pub(super) struct Connection {
    number: u64,
    outgoing: mpsc::UnboundedSender<Outgoing>,
}

impl Connection {
    pub(super) fn send(&self, outgoing: Outgoing) {
        // A socket that has just gone does not mind.
        let _gone = self.outgoing.send(outgoing);
    }
}

pub(super) enum Outgoing {
    Text(Arc<str>),
    Close(u16),
    /// The TCP connection goes without a goodbye.
    Drop,
}

impl Gateway {
    /// Numbers an event for each session that asked for its kind, and sends it to those that are connected.
    pub(super) fn dispatch(&mut self, guild: Option<u64>, event: &str, data: Value) {
        let data = self.faults.spoil(event, data);
        if let Some(held) = &mut self.faults.held_events {
            held.push((guild, event.to_owned(), data));
            return;
        }
        let shard_wants = |session: &Session| match guild {
            Some(guild) => (guild >> 22) % session.shard[1] == session.shard[0],
            None => session.shard[0] == 0,
        };
        let needed = needed_intent(event, guild.is_some());
        for session in self.sessions.iter_mut().filter(|session| session.can_resume && shard_wants(session)) {
            if needed == 0 || session.intents & needed != 0 {
                session.dispatch(event, &data);
            }
        }
    }

    /// Events of a name in the order in which they were numbered, over all sessions.
    pub(super) fn dispatched(&self, event: &str) -> Vec<Value> {
        let all = self.sessions.iter().flat_map(|session| &session.events);
        let read = all.map(|text| serde_json::from_str::<Value>(text).expect("we wrote it"));
        read.filter(|envelope| envelope["t"] == event).collect()
    }

    pub(super) fn connected(&mut self) -> impl Iterator<Item = &mut Session> {
        self.sessions.iter_mut().filter(|session| session.connection.is_some())
    }

    fn check_identify(&mut self, data: &Value) -> Result<(), u16> {
        let intents = data["intents"].as_u64().unwrap_or(u64::MAX);
        let shard = shard_of(data);
        if let Some(code) = self.faults.close_on_identify() {
            Err(code)
        } else if !is_our_token(data) {
            Err(4004)
        } else if intents & !KNOWN_INTENTS != 0 {
            Err(4013)
        } else if intents & (GUILD_MEMBERS | GUILD_PRESENCES) != 0
            || (intents & MESSAGE_CONTENT != 0 && !self.portal_shows_content)
        {
            Err(4014)
        } else if shard[1] == 0 || shard[0] >= shard[1] {
            Err(4010)
        } else if shard[1] < self.recommended_shards && self.faults.sharding_is_required {
            Err(4011)
        } else {
            Ok(())
        }
    }
}

impl Session {
    fn dispatch(&mut self, event: &str, data: &Value) {
        let sees_content = self.intents & MESSAGE_CONTENT != 0;
        let is_message = matches!(event, "MESSAGE_CREATE" | "MESSAGE_UPDATE");
        let data = if is_message && !sees_content && data.get("guild_id").is_some() && data.get("mentions").is_some() {
            without_content(data)
        } else {
            data.clone()
        };
        let number = self.events.len() + 1;
        let text: Arc<str> = json!({ "op": 0, "s": number, "t": event, "d": data }).to_string().into();
        self.events.push(text.clone());
        if let Some(connection) = &self.connection {
            connection.send(Outgoing::Text(text));
        }
    }
}

/// One connection, from HELLO to its end.
pub(super) async fn serve(mut socket: WebSocket, shared: Arc<Shared>, encoding: super::compression::Encoding) {
    let (outgoing, mut to_send) = mpsc::unbounded_channel();
    let mut encoder = encoding.encoder();
    let connection = {
        let mut world = shared.world();
        world.gateway.connections += 1;
        let hello = json!({ "op": 10, "d": { "heartbeat_interval": world.gateway.heartbeat_millis, "_trace": [] } });
        let connection = Connection { number: world.gateway.connections, outgoing };
        connection.send(Outgoing::Text(hello.to_string().into()));
        connection
    };
    shared.progress.send_replace(());
    loop {
        tokio::select! {
            Some(outgoing) = to_send.recv() => match outgoing {
                Outgoing::Text(text) => {
                    if socket.send(encoder.encode(&text)).await.is_err() {
                        break;
                    }
                }
                Outgoing::Close(code) => {
                    let frame = CloseFrame { code, reason: "".into() };
                    let _gone = socket.send(Message::Close(Some(frame))).await;
                    break;
                }
                Outgoing::Drop => break,
            },
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) => receive(&shared, &connection, text.as_str()),
                Some(Ok(Message::Close(frame))) => {
                    said_goodbye(&shared, &connection, frame.map_or(1005, |frame| frame.code));
                    break;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
        }
    }
    detach(&mut shared.world(), &connection);
    shared.progress.send_replace(());
}

/// A session stays for resuming, unless the bot closed it for good.
fn said_goodbye(shared: &Shared, connection: &Connection, code: u16) {
    let mut world = shared.world();
    world.gateway.closed_by_bot.push(code);
    if matches!(code, 1000 | 1001) {
        for session in world.gateway.connected().filter(|session| session.is_on(connection)) {
            session.can_resume = false;
        }
    }
}

fn detach(world: &mut World, connection: &Connection) {
    for session in world.gateway.connected().filter(|session| session.is_on(connection)) {
        session.connection = None;
    }
}

impl Session {
    fn is_on(&self, connection: &Connection) -> bool {
        self.connection.as_ref().is_some_and(|own| own.number == connection.number)
    }
}

fn receive(shared: &Shared, connection: &Connection, text: &str) {
    let mut world = shared.world();
    let Ok(message) = serde_json::from_str::<Value>(text) else {
        return connection.send(Outgoing::Close(4002));
    };
    let (op, data) = (message["op"].as_u64(), &message["d"]);
    let has_session = world.gateway.connected().any(|session| session.is_on(connection));
    match op {
        Some(1) => heartbeat(&mut world, connection),
        Some(2 | 6) if has_session => connection.send(Outgoing::Close(4005)),
        Some(2) => identify(&mut world, connection, data),
        Some(6) => resume(&mut world, connection, data),
        Some(3 | 4 | 8 | 31) if has_session => {}
        Some(3 | 4 | 8 | 31) => connection.send(Outgoing::Close(4003)),
        _ => connection.send(Outgoing::Close(4001)),
    }
    drop(world);
    shared.progress.send_replace(());
}

fn heartbeat(world: &mut World, connection: &Connection) {
    world.gateway.heartbeats += 1;
    if !world.gateway.faults.withholds_acks() {
        connection.send(Outgoing::Text(r#"{"op":11}"#.into()));
    }
}

fn identify(world: &mut World, connection: &Connection, data: &Value) {
    world.gateway.identifies.push(data.clone());
    if let Err(code) = world.gateway.check_identify(data) {
        return connection.send(Outgoing::Close(code));
    }
    if world.gateway.faults.reject_identify() {
        return connection.send(Outgoing::Text(r#"{"op":9,"d":false}"#.into()));
    }
    let shard = shard_of(data);
    let session_id = format!("session-{}", world.gateway.sessions.len() + 1);
    let intents = data["intents"].as_u64().unwrap_or(0);
    let mut session = Session {
        id: session_id.clone(),
        intents,
        shard,
        events: Vec::new(),
        connection: Some(connection.clone()),
        can_resume: true,
    };
    let guilds: Vec<u64> = world.guilds.keys().copied().filter(|guild| (guild >> 22) % shard[1] == shard[0]).collect();
    let url = world.base_url.replace("http:", "ws:");
    session.dispatch("READY", &payload::ready(&session_id, shard, &url, &guilds));
    if intents & GUILDS != 0 {
        for guild in &guilds {
            session.dispatch("GUILD_CREATE", &payload::guild_create(&world.guilds[guild], world));
        }
    }
    world.gateway.sessions.push(session);
}

fn resume(world: &mut World, connection: &Connection, data: &Value) {
    world.gateway.resumes.push(data.clone());
    if !is_our_token(data) {
        return connection.send(Outgoing::Close(4004));
    }
    let wanted = data["session_id"].as_str().unwrap_or("");
    let refused = world.gateway.faults.reject_resume();
    let session = world.gateway.sessions.iter_mut().find(|session| session.id == wanted && session.can_resume);
    let Some(session) = session.filter(|_| !refused) else {
        return connection.send(Outgoing::Text(r#"{"op":9,"d":false}"#.into()));
    };
    let seen = data["seq"].as_u64().and_then(|seen| usize::try_from(seen).ok()).unwrap_or(usize::MAX);
    if seen > session.events.len() {
        return connection.send(Outgoing::Close(4007));
    }
    for event in &session.events[seen..] {
        connection.send(Outgoing::Text(event.clone()));
    }
    session.connection = Some(connection.clone());
    session.dispatch("RESUMED", &json!({ "_trace": [] }));
}

fn is_our_token(data: &Value) -> bool {
    let token = data["token"].as_str().unwrap_or("");
    token.strip_prefix("Bot ").unwrap_or(token) == TOKEN
}

fn shard_of(data: &Value) -> [u64; 2] {
    let part = |index: usize| data["shard"].get(index).and_then(Value::as_u64);
    [part(0).unwrap_or(0), part(1).unwrap_or(1)]
}

/// <https://discord.com/developers/docs/events/gateway#list-of-intents>; 0 comes to everybody.
fn needed_intent(event: &str, in_guild: bool) -> u64 {
    let either = |guild: u64, dm: u64| if in_guild { 1 << guild } else { 1 << dm };
    match event {
        "MESSAGE_CREATE" | "MESSAGE_UPDATE" | "MESSAGE_DELETE" => either(9, 12),
        "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE" => either(10, 13),
        "TYPING_START" => either(11, 14),
        "GUILD_MEMBER_ADD" | "GUILD_MEMBER_REMOVE" => GUILD_MEMBERS,
        _ if event.starts_with("GUILD_") || event.starts_with("CHANNEL_") || event.starts_with("THREAD_") => GUILDS,
        _ => 0,
    }
}
