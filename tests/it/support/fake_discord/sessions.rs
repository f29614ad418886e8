//! The sessions of the gateway: who gets which event under which number.
//!
//! <https://discord.com/developers/docs/events/gateway>

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::TOKEN;
use super::gateway_faults::GatewayFaults;
use super::messages::without_content;

pub(super) const GUILDS: u64 = 1;
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
    pub(super) intents: u64,
    pub(super) shard: [u64; 2],
    /// Everything dispatched, for resuming; the number of an event is its position plus one.
    pub(super) events: Vec<Arc<str>>,
    /// `None` while the bot is away.
    pub(super) connection: Option<Connection>,
    pub(super) can_resume: bool,
}

#[derive(Clone)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) outgoing: mpsc::UnboundedSender<Outgoing>,
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
    /// Numbers an event for each session that asked for its kind, and sends it to those that are
    /// connected.
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
        let is_lost = self.faults.lose_event();
        for session in self
            .sessions
            .iter_mut()
            .filter(|session| session.is_alive() && shard_wants(session))
        {
            if needed == 0 || session.intents & needed != 0 {
                let connection = if is_lost {
                    session.connection.take()
                } else {
                    None
                };
                session.dispatch(event, &data);
                session.connection = connection.or(session.connection.take());
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
        self.sessions
            .iter_mut()
            .filter(|session| session.connection.is_some())
    }

    pub(super) fn check_identify(&mut self, data: &Value) -> Result<(), u16> {
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
    fn is_alive(&self) -> bool {
        self.can_resume || self.connection.is_some()
    }

    pub(super) fn is_on(&self, connection: &Connection) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|own| own.number == connection.number)
    }

    pub(super) fn dispatch(&mut self, event: &str, data: &Value) {
        let sees_content = self.intents & MESSAGE_CONTENT != 0;
        let is_message = matches!(event, "MESSAGE_CREATE" | "MESSAGE_UPDATE");
        let data = if is_message
            && !sees_content
            && data.get("guild_id").is_some()
            && data.get("mentions").is_some()
        {
            without_content(data)
        } else {
            data.clone()
        };
        let number = self.events.len() + 1;
        let text: Arc<str> = json!({ "op": 0, "s": number, "t": event, "d": data })
            .to_string()
            .into();
        self.events.push(text.clone());
        if let Some(connection) = &self.connection {
            connection.send(Outgoing::Text(text));
        }
    }
}

pub(super) fn is_our_token(data: &Value) -> bool {
    let token = data["token"].as_str().unwrap_or("");
    token.strip_prefix("Bot ").unwrap_or(token) == TOKEN
}

pub(super) fn shard_of(data: &Value) -> [u64; 2] {
    let part = |index: usize| data["shard"].get(index).and_then(Value::as_u64);
    [part(0).unwrap_or(0), part(1).unwrap_or(1)]
}

/// <https://discord.com/developers/docs/events/gateway#list-of-intents>; 0 comes to everybody.
fn needed_intent(event: &str, in_guild: bool) -> u64 {
    let either = |guild: u64, dm: u64| if in_guild { 1 << guild } else { 1 << dm };
    match event {
        "MESSAGE_CREATE" | "MESSAGE_UPDATE" | "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => {
            either(9, 12)
        }
        "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE" => either(10, 13),
        "TYPING_START" => either(11, 14),
        "GUILD_MEMBER_ADD" | "GUILD_MEMBER_REMOVE" => GUILD_MEMBERS,
        _ if event.starts_with("GUILD_")
            || event.starts_with("CHANNEL_")
            || event.starts_with("THREAD_") =>
        {
            GUILDS
        }
        _ => 0,
    }
}
