//! Conversations of OpenClaw: rows of each agent's database, some of them compressed, or JSONL
//! files.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::super::found::{Found, FoundAgent, FoundConversation, FoundSummary};
use super::super::mapping::Address;
use super::super::report::Kind;
use super::super::some;
use super::super::source::{Database, Source, shown, time_in, unzstd};
use super::super::tree::What;
use crate::domain::{PersonId, SessionKey};
use crate::records::transcript::{Arriving, Speaker};

/// The largest unpacked event.
const MAX_EVENT_BYTES: u64 = 4 * 1024 * 1024;
/// The largest unpacked transcript.
const MAX_TRANSCRIPT_BYTES: u64 = 256 * 1024 * 1024;

const NO_PLACE: &str = "it was held in no place of Telegram or Discord";
const SEVERAL: &str = "several people wrote in it from their own chats";
const UNKNOWN: &str = "its place cannot be told";

pub(super) fn read(source: &Source, found: &mut Found) {
    for agent in &mut found.agents {
        let mut tools = 0;
        let folder = Path::new("agents").join(&agent.source_id);
        if !is_plain(&agent.source_id) {
            continue;
        }
        let path = folder.join("agent/openclaw-agent.sqlite");
        if let Some(database) = source.database(&source.tree, &path) {
            tools += from_database(source, agent, &database, &folder);
        }
        for inside in ["sessions", "agent/sessions"] {
            tools += from_files(source, agent, &folder.join(inside));
        }
        agent
            .conversations
            .sort_by_key(|conversation| conversation.messages.last_at);
        if tools > 0 {
            let tools = some(
                tools,
                "call or result of a tool",
                "calls and results of tools",
            );
            let what = format!("{}: {tools}", agent.source_id);
            source.left(
                Kind::Conversation,
                what,
                "the words of people and agents are carried",
            );
        }
    }
}

/// Whether a name is no path.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/')
}

/// A transcript and its place.
struct Session {
    id: String,
    key: String,
    place: Result<SessionKey, &'static str>,
}

fn from_database(
    source: &Source,
    agent: &mut FoundAgent,
    database: &Database,
    folder: &Path,
) -> usize {
    let mut tools = 0;
    for session in sessions(source, agent, database) {
        let events = events(source, database, &session.id, folder);
        tools += add(source, agent, session, events);
    }
    tools
}

fn sessions(source: &Source, agent: &FoundAgent, database: &Database) -> Vec<Session> {
    let columns = ["session_key", "created_via"];
    let nodes = database.rows(source, ("session_nodes", &columns), ("", &[]), |row| {
        Some((row.text(0)?, row.text(1).unwrap_or_default()))
    });
    let via: HashMap<String, String> = nodes.into_iter().collect();
    let addresses = addresses(source, database);
    let columns = ["session_id", "session_key"];
    let order = ["started_at"];
    let mut windows = database.rows(source, ("session_windows", &columns), ("", &order), |row| {
        Some((row.text(0)?, row.text(1).unwrap_or_default()))
    });
    if windows.is_empty() {
        // Early versions have no windows; their events still name the session.
        let columns = ["session_id"];
        let group = "GROUP BY session_id";
        windows = database.rows(
            source,
            ("transcript_events", &columns),
            (group, &[]),
            |row| Some((row.text(0)?, String::new())),
        );
    }
    let mut internal = 0;
    let mut sessions = Vec::new();
    for (id, key) in windows {
        let via = via.get(&key).map_or("", String::as_str);
        if matches!(via, "spawn" | "cron" | "internal" | "run" | "plugin") {
            internal += 1;
            continue;
        }
        let place = match addresses.get(&id).map(Vec::as_slice) {
            None | Some([]) => of_key(&key),
            Some([address]) => address.place().ok_or(UNKNOWN),
            Some(_) => Err(SEVERAL),
        };
        sessions.push(Session { id, key, place });
    }
    if internal > 0 {
        let internal = some(internal, "session", "sessions");
        let what = format!("{}: {internal}", agent.source_id);
        source.left(Kind::Conversation, what, "the system held them with itself");
    }
    sessions
}

/// The addresses of each session. A session has several if people wrote from several chats.
fn addresses(source: &Source, database: &Database) -> HashMap<String, Vec<Address>> {
    let columns = [
        "conversation_id",
        "channel",
        "kind",
        "peer_id",
        "thread_id",
        "native_channel_id",
        "native_direct_user_id",
    ];
    let read = database.rows(source, ("conversations", &columns), ("", &[]), |row| {
        let kind = row.text(2).unwrap_or_default();
        let peer = row.word(3).unwrap_or_default();
        let (chat, topic) = match peer.split_once(":topic:") {
            Some((chat, topic)) => (chat.to_owned(), Some(topic.to_owned())),
            None => (peer, None),
        };
        let chat = match kind.as_str() {
            "direct" => row.word(6).unwrap_or(chat),
            "channel" => row.word(5).unwrap_or(chat),
            _ => chat,
        };
        let address = Address {
            platform: row.text(1).unwrap_or_default(),
            kind,
            chat,
            thread: row.word(4).or(topic),
            member: None,
        };
        Some((row.text(0)?, address))
    });
    let conversations: HashMap<String, Address> = read.into_iter().collect();
    let mut addresses: HashMap<String, Vec<Address>> = HashMap::new();
    let columns = ["session_id", "conversation_id", "role"];
    let links = database.rows(
        source,
        ("session_conversations", &columns),
        ("", &[]),
        |row| Some((row.text(0)?, row.text(1)?, row.text(2).unwrap_or_default())),
    );
    let links = links.into_iter().filter(|(_, _, role)| role != "related");
    let columns = ["session_id", "primary_conversation_id"];
    let primary = database.rows(source, ("session_windows", &columns), ("", &[]), |row| {
        Some((row.text(0)?, row.word(1)))
    });
    let primary = primary
        .into_iter()
        .filter_map(|(session, id)| Some((session, id?)));
    let all = links.map(|(session, id, _)| (session, id)).chain(primary);
    for (session, id) in all {
        let Some(address) = conversations.get(&id) else {
            continue;
        };
        let of_session = addresses.entry(session).or_default();
        if !of_session.contains(address) {
            of_session.push(address.clone());
        }
    }
    addresses
}

/// The place in a session key: `agent:rose:telegram:group:-100:topic:7`.
fn of_key(key: &str) -> Result<SessionKey, &'static str> {
    let fields: Vec<&str> = key.split(':').collect();
    let address = |platform: &str, kind: &str, chat: &str, thread: Option<&str>| Address {
        platform: platform.to_owned(),
        kind: kind.to_owned(),
        chat: chat.to_owned(),
        thread: thread.map(str::to_owned),
        member: None,
    };
    let address = match fields.as_slice() {
        ["agent", _, platform, kind, chat] => address(platform, kind, chat, None),
        ["agent", _, platform, kind, chat, "topic" | "thread", thread] => {
            address(platform, kind, chat, Some(thread))
        }
        _ => return Err(NO_PLACE),
    };
    address.place().ok_or(NO_PLACE)
}

/// The valid events of a session, in order.
fn events(source: &Source, database: &Database, session: &str, folder: &Path) -> Vec<Value> {
    let quoted = session.replace('\'', "''");
    let filter = format!("WHERE session_id = '{quoted}'");
    let columns = ["seq", "event_json", "event_zstd"];
    let rows = database.rows(
        source,
        ("transcript_events", &columns),
        (&filter, &["seq"]),
        |row| {
            let event = match row.json(1) {
                Some(event) => event,
                None => {
                    let packed = unzstd(&row.blob(2)?, MAX_EVENT_BYTES)?;
                    serde_json::from_slice(&packed).ok()?
                }
            };
            Some((row.number(0)?, event))
        },
    );
    let columns = ["event_seq", "active_position"];
    let order = ["active_position"];
    let active = database.rows(
        source,
        ("session_transcript_active_events", &columns),
        (&filter, &order),
        |row| row.number(0),
    );
    if rows.is_empty() {
        return cold(source, database, &filter, folder);
    }
    if active.is_empty() {
        return rows.into_iter().map(|(_, event)| event).collect();
    }
    let mut by_seq: HashMap<i64, Value> = rows.into_iter().collect();
    let events = active.iter().filter_map(|seq| by_seq.remove(seq));
    events.collect()
}

/// The events of an archived session, in a blob or in a file.
fn cold(source: &Source, database: &Database, filter: &str, folder: &Path) -> Vec<Value> {
    let columns = ["archive_name", "storage", "archive_blob"];
    let table = ("session_transcript_cold_archives", columns.as_slice());
    let rows = database.rows(source, table, (filter, &[]), |row| {
        Some((row.text(0), row.text(1), row.blob(2)))
    });
    let mut events = Vec::new();
    for (name, storage, blob) in rows {
        let packed = match (storage.as_deref(), blob, &name) {
            (Some("sqlite"), Some(blob), _) => Some(blob),
            (_, _, Some(name)) if is_plain(name) => {
                let path = folder.join("sessions/cold").join(name);
                let read = source.tree.bytes(&path, MAX_TRANSCRIPT_BYTES);
                read.map_err(|error| {
                    source.left(
                        Kind::Conversation,
                        shown(&source.tree, &path),
                        error.to_string(),
                    );
                })
                .ok()
            }
            _ => None,
        };
        let Some(packed) = packed else { continue };
        let text = unzstd(&packed, MAX_TRANSCRIPT_BYTES);
        match text.and_then(|text| String::from_utf8(text).ok()) {
            Some(text) => events.extend(lines(&text)),
            None => {
                let name = name.unwrap_or_default();
                source.left(Kind::Conversation, name, "this archive cannot be unpacked");
            }
        }
    }
    events
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

/// The older form: `sessions.json` and a JSONL file for each session.
fn from_files(source: &Source, agent: &mut FoundAgent, folder: &Path) -> usize {
    let tree = &source.tree;
    if !source.is_folder(tree, folder) {
        return 0;
    }
    let index = source.json(tree, folder.join("sessions.json"));
    let mut named: HashMap<String, (String, Value)> = HashMap::new();
    for (key, entry) in index
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let file = entry["sessionFile"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        let id = entry["sessionId"].as_str();
        let file = file
            .map(str::to_owned)
            .or_else(|| Some(format!("{}.jsonl", id?)));
        if let Some(file) = file {
            named.insert(file, (key.clone(), entry.clone()));
        }
    }
    let mut tools = 0;
    for file in source.names(tree, folder, What::File) {
        let Some(id) = file.strip_suffix(".jsonl") else {
            continue;
        };
        let is_carried = |conversation: &FoundConversation| conversation.source_id == id;
        if agent.conversations.iter().any(is_carried) {
            continue;
        }
        let bytes = match tree.bytes(&folder.join(&file), MAX_TRANSCRIPT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                source.left(
                    Kind::Conversation,
                    shown(tree, &folder.join(&file)),
                    error.to_string(),
                );
                continue;
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let (key, place) = match named.get(&file) {
            Some((key, entry)) => (key.clone(), of_entry(key, entry)),
            None => (file.clone(), Err(UNKNOWN)),
        };
        let session = Session {
            id: id.to_owned(),
            key,
            place,
        };
        tools += add(source, agent, session, lines(&text).collect());
    }
    tools
}

/// The place of an entry in `sessions.json`.
fn of_entry(key: &str, entry: &Value) -> Result<SessionKey, &'static str> {
    if let Ok(place) = of_key(key) {
        return Ok(place);
    }
    let context = match entry.get("deliveryContext") {
        Some(context) => context,
        None => &entry["origin"],
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let platform = text(&context["channel"]).or_else(|| text(&entry["lastChannel"]));
    let to = text(&context["to"]).or_else(|| text(&entry["lastTo"]));
    let (Some(platform), Some(to)) = (platform, to) else {
        return Err(NO_PLACE);
    };
    let (chat, topic) = match to.split_once(":topic:") {
        Some((chat, topic)) => (chat.to_owned(), Some(topic.to_owned())),
        None => (to, None),
    };
    let chat = chat.rsplit(':').next().unwrap_or_default().to_owned();
    let address = Address {
        platform,
        kind: text(&entry["chatType"]).unwrap_or_default(),
        chat,
        thread: text(&context["threadId"]).or(topic),
        member: None,
    };
    address.place().ok_or(UNKNOWN)
}

/// Adds a conversation with words, and returns its number of calls and results of tools.
fn add(source: &Source, agent: &mut FoundAgent, session: Session, events: Vec<Value>) -> usize {
    let person = session
        .place
        .as_ref()
        .ok()
        .and_then(SessionKey::only_person);
    let transcript = Transcript::of(events, person.as_ref());
    let summary = transcript.summary.filter(|summary| {
        // A summary must cover some of the messages, and no others.
        summary.messages > 0 && summary.messages <= transcript.messages.len()
    });
    match source.spool(transcript.messages) {
        Ok(messages) if messages.count > 0 => agent.conversations.push(FoundConversation {
            source_id: session.id,
            name: match session.key.is_empty() {
                true => agent.source_id.clone(),
                false => session.key,
            },
            place: session.place,
            messages,
            summary,
        }),
        Ok(_) => {}
        Err(error) => source.left(Kind::Conversation, session.key, error.to_string()),
    }
    transcript.tools
}

/// The words of a session since its last reset.
#[derive(Default)]
struct Transcript {
    messages: Vec<Arriving>,
    summary: Option<FoundSummary>,
    tools: usize,
}

impl Transcript {
    fn of(events: Vec<Value>, person: Option<&PersonId>) -> Self {
        let mut transcript = Transcript::default();
        // The id of each message's entry.
        let mut entries: Vec<String> = Vec::new();
        for event in events {
            let kept = event["firstKeptEntryId"].as_str();
            let first_kept = kept.and_then(|kept| entries.iter().position(|id| id == kept));
            match event["type"].as_str() {
                Some("reset") => {
                    let keep_from = first_kept.unwrap_or(entries.len());
                    entries.drain(..keep_from);
                    transcript.messages.drain(..keep_from);
                    transcript.summary = None;
                }
                Some("compaction") => {
                    let text = event["summary"].as_str().unwrap_or_default();
                    transcript.summary = Some(FoundSummary {
                        text: text.to_owned(),
                        messages: first_kept.unwrap_or(entries.len()),
                    });
                }
                Some("message") => {
                    let (message, tools) = message(&event, person);
                    transcript.tools += tools;
                    if let Some(message) = message {
                        entries.push(event["id"].as_str().unwrap_or_default().to_owned());
                        transcript.messages.push(message);
                    }
                }
                _ => {}
            }
        }
        transcript.summary = transcript
            .summary
            .filter(|summary| !summary.text.trim().is_empty());
        transcript
    }
}

fn message(event: &Value, person: Option<&PersonId>) -> (Option<Arriving>, usize) {
    let message = &event["message"];
    let (text, tools) = text_of(&message["content"]);
    let speaker = match message["role"].as_str() {
        Some("user") => Speaker::Person {
            id: person.cloned(),
            name: None,
        },
        Some("assistant") => Speaker::Agent,
        Some("toolResult") => return (None, 1),
        _ => return (None, 0),
    };
    let at = time_in(&message["timestamp"]).or_else(|| time_in(&event["timestamp"]));
    let is_empty = text.trim().is_empty();
    let arriving = Arriving {
        speaker,
        text,
        at: at.unwrap_or(0),
    };
    ((!is_empty).then_some(arriving), tools)
}

/// The text of a content, and its number of calls. Pictures are told by a word.
fn text_of(content: &Value) -> (String, usize) {
    match content {
        Value::String(text) => (text.clone(), 0),
        Value::Array(parts) => {
            let calls = parts
                .iter()
                .filter(|part| part["type"] == "toolCall")
                .count();
            let texts = parts.iter().filter_map(|part| match part["type"].as_str() {
                Some("text") => part["text"].as_str().map(str::to_owned),
                Some("image") => Some("[picture]".to_owned()),
                _ => None,
            });
            (texts.collect::<Vec<_>>().join("\n"), calls)
        }
        _ => (String::new(), 0),
    }
}
