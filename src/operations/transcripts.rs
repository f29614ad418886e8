//! The transcript of a place for people and programs: who said what, when, in which role.
//!
//! Machine payloads (the facts about a subagent's run, platform ids, labels) are left out unless
//! they are asked for.

use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::house::House;
use super::named::{Moment, Named};
use crate::domain::{AgentUid, Around, SessionKey, Source};
use crate::records::transcript::{self, Entry, Extent};

/// A message of a transcript.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Line {
    pub(crate) at: Moment,
    /// Counts up with every /new.
    pub(crate) conversation: i64,
    pub(crate) kind: Kind,
    /// The writer, or the person behind a switch.
    pub(crate) person: Option<Named>,
    /// The writer, if an agent.
    pub(crate) agent: Option<Named>,
    /// The writer's role with the agent at that time.
    pub(crate) role: Option<&'static str>,
    /// Replies, forwards and attachments, in words.
    pub(crate) around: Vec<String>,
    pub(crate) text: String,
    /// The tools behind an agent's message, in order.
    pub(crate) tools: Vec<String>,
    /// Absent unless it was asked for.
    pub(crate) raw: Option<Raw>,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LineKind)]
pub(crate) enum Kind {
    Person,
    Agent,
    /// A person gave the place to another agent.
    Handoff,
    /// A line of the gateway.
    Gateway,
}

/// Everything else that is kept about a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Raw {
    pub(crate) id: i64,
    pub(crate) stored_at: Moment,
    /// The accepted message behind the turn.
    pub(crate) inbox_id: Option<i64>,
    /// The platform's ids of the message.
    pub(crate) message_ids: Vec<String>,
    /// Talk among people.
    pub(crate) observed: bool,
    /// Whose words the message is made of.
    pub(crate) labels: String,
    pub(crate) meta_json: Value,
}

/// How much of each message is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Readable,
    Raw,
}

/// The newest messages of a place, oldest first.
pub(crate) fn read(
    connection: &Connection,
    house: &House,
    place: &SessionKey,
    (extent, limit): (Extent, u32),
    detail: Detail,
) -> rusqlite::Result<Vec<Line>> {
    let entries = transcript::entries(connection, place, extent, limit)?;
    Ok(entries
        .into_iter()
        .map(|entry| Line::of(house, entry, detail))
        .collect())
}

/// A message that was found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Hit {
    pub(crate) place: Named,
    #[serde(flatten)]
    pub(crate) line: Line,
}

/// Messages with all of these words, in the conversations of all agents or of one, newest first.
/// For operators alone: an agent searches its own place.
pub(crate) fn search(
    connection: &Connection,
    house: &House,
    words: &[String],
    agent: Option<AgentUid>,
    limit: u32,
) -> rusqlite::Result<Vec<Hit>> {
    let found = transcript::search_everywhere(connection, words, agent, limit)?;
    let hit = |(place, entry)| Hit {
        place: house.names.place(&place),
        line: Line::of(house, entry, Detail::Readable),
    };
    Ok(found.into_iter().map(hit).collect())
}

impl Line {
    fn of(house: &House, entry: Entry, detail: Detail) -> Self {
        let (kind, voice, agent) = match &entry.said.by {
            Source::Person(voice) => (Kind::Person, Some(voice), None),
            Source::Handoff(voice) => (Kind::Handoff, Some(voice), None),
            Source::Agent(id) => (Kind::Agent, None, Some(house.agent(id))),
            _ => (Kind::Gateway, None, None),
        };
        let person = voice.map(|voice| match &voice.person {
            Some(id) => Named::new(id, Some(&voice.name)),
            None => Named::new(&voice.name, None),
        });
        let tools = entry.meta["tools"].as_array().cloned().unwrap_or_default();
        let tools = tools.iter().filter_map(Value::as_str).map(str::to_owned);
        Line {
            at: Moment(entry.at),
            conversation: entry.conversation,
            kind,
            person,
            agent,
            role: voice.and_then(|voice| voice.role).map(|role| role.as_str()),
            around: entry.said.around.iter().map(Around::to_string).collect(),
            text: entry.said.text.clone(),
            tools: tools.collect(),
            raw: (detail == Detail::Raw).then(|| Raw::of(entry)),
        }
    }

    /// The writer for people.
    pub(crate) fn writer(&self) -> String {
        let named = self.agent.as_ref().or(self.person.as_ref());
        let name = named.map_or_else(|| "Parlor".to_owned(), Named::text);
        match self.role {
            Some(role) => format!("{name}, {role}"),
            None => name,
        }
    }

    /// The words for people, with everything around them.
    pub(crate) fn words(&self) -> String {
        let around = self.around.iter().map(|around| format!("[{around}]"));
        let text = match self.kind {
            Kind::Handoff => format!("handed this place {}", self.text),
            _ => self.text.clone(),
        };
        let parts: Vec<String> = around
            .chain([text])
            .filter(|part| !part.is_empty())
            .collect();
        parts.join("\n")
    }
}

impl Raw {
    fn of(entry: Entry) -> Self {
        Raw {
            id: entry.id,
            stored_at: Moment(entry.stored_at),
            inbox_id: entry.inbox_id,
            message_ids: entry.written_as,
            observed: entry.is_observed,
            labels: entry.labels.to_string(),
            meta_json: entry.meta,
        }
    }
}
