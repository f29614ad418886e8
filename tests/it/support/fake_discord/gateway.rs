//! The WebSocket side: one connection from HELLO to its end.
//!
//! <https://discord.com/developers/docs/events/gateway>

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Shared;
use super::compression::Encoding;
use super::json::{self as payload};
use super::sessions::{Connection, GUILDS, Outgoing, Session, is_our_token, shard_of};
use super::world::World;

/// One connection, from HELLO to its end.
pub(super) async fn serve(mut socket: WebSocket, shared: Arc<Shared>, encoding: Encoding) {
    let (outgoing, mut to_send) = mpsc::unbounded_channel();
    let mut encoder = encoding.encoder();
    let connection = {
        let mut world = shared.world();
        world.gateway.connections += 1;
        let refusal = world.gateway.faults.close_before_hello();
        let hello = json!({ "op": 10, "d": { "heartbeat_interval": world.gateway.heartbeat_millis, "_trace": [] } });
        let connection = Connection {
            number: world.gateway.connections,
            outgoing,
        };
        connection.send(refusal.map_or(Outgoing::Text(hello.to_string().into()), Outgoing::Close));
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
                    let frame = CloseFrame { code, reason: reason_of(code).into() };
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

/// <https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes>
fn reason_of(code: u16) -> &'static str {
    match code {
        4000 => "Unknown error.",
        4001 => "Unknown opcode.",
        4002 => "Error while decoding payload.",
        4003 => "Not authenticated.",
        4004 => "Authentication failed.",
        4005 => "Already authenticated.",
        4007 => "Invalid seq.",
        4008 => "Rate limited.",
        4009 => "Session timed out.",
        4010 => "Invalid shard.",
        4011 => "Sharding required.",
        4012 => "Invalid API version.",
        4013 => "Invalid intent(s).",
        4014 => "Disallowed intent(s).",
        _ => "",
    }
}

/// A session stays for resuming, unless the bot closed it for good.
fn said_goodbye(shared: &Shared, connection: &Connection, code: u16) {
    let mut world = shared.world();
    world.gateway.closed_by_bot.push(code);
    if matches!(code, 1000 | 1001) {
        for session in world
            .gateway
            .connected()
            .filter(|session| session.is_on(connection))
        {
            session.can_resume = false;
        }
    }
}

fn detach(world: &mut World, connection: &Connection) {
    for session in world
        .gateway
        .connected()
        .filter(|session| session.is_on(connection))
    {
        session.connection = None;
    }
}

fn receive(shared: &Shared, connection: &Connection, text: &str) {
    let mut world = shared.world();
    let Ok(message) = serde_json::from_str::<Value>(text) else {
        return connection.send(Outgoing::Close(4002));
    };
    let (op, data) = (message["op"].as_u64(), &message["d"]);
    let has_session = world
        .gateway
        .connected()
        .any(|session| session.is_on(connection));
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
    let guilds: Vec<u64> = world
        .guilds
        .keys()
        .copied()
        .filter(|guild| (guild >> 22) % shard[1] == shard[0])
        .collect();
    let url = world.base_url.replace("http:", "ws:");
    session.dispatch("READY", &payload::ready(&session_id, shard, &url, &guilds));
    if intents & GUILDS != 0 {
        for guild in &guilds {
            session.dispatch(
                "GUILD_CREATE",
                &payload::guild_create(&world.guilds[guild], world),
            );
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
    let session = world
        .gateway
        .sessions
        .iter_mut()
        .find(|session| session.id == wanted && session.can_resume);
    let Some(session) = session.filter(|_| !refused) else {
        return connection.send(Outgoing::Text(r#"{"op":9,"d":false}"#.into()));
    };
    let seen = data["seq"]
        .as_u64()
        .and_then(|seen| usize::try_from(seen).ok())
        .unwrap_or(usize::MAX);
    if seen > session.events.len() {
        return connection.send(Outgoing::Close(4007));
    }
    for event in &session.events[seen..] {
        connection.send(Outgoing::Text(event.clone()));
    }
    session.connection = Some(connection.clone());
    session.dispatch("RESUMED", &json!({ "_trace": [] }));
}
