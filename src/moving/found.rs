//! The contents of a source, in one form for all systems. Each system's file makes a [`Found`] of
//! its own layout; the rest of the room knows no system.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use super::report::Kind;
use super::spool::Spooled;
use super::tree::Tree;
use crate::config::{AgentTable, Visibility};
use crate::domain::{PersonId, SessionKey};
use crate::tenants::Section;

/// The contents of a source.
#[derive(Default)]
pub(super) struct Found {
    pub(super) agents: Vec<FoundAgent>,
    pub(super) bindings: Vec<FoundBinding>,
    pub(super) people: Vec<FoundPerson>,
    pub(super) secrets: Vec<FoundSecret>,
}

impl Found {
    pub(super) fn agent(&mut self, source_id: &str) -> Option<&mut FoundAgent> {
        let mut agents = self.agents.iter_mut();
        agents.find(|agent| agent.source_id == source_id)
    }
}

#[derive(Default)]
pub(super) struct FoundAgent {
    pub(super) source_id: String,
    /// Answers where nothing else decides.
    pub(super) is_default: bool,
    pub(super) table: AgentTable,
    pub(super) files: Vec<FoundFile>,
    pub(super) memories: Vec<FoundMemory>,
    /// Oldest first.
    pub(super) conversations: Vec<FoundConversation>,
    /// Schedules in the form of the source.
    pub(super) schedules: Vec<serde_json::Value>,
}

impl FoundAgent {
    pub(super) fn new(source_id: impl Into<String>) -> Self {
        FoundAgent {
            source_id: source_id.into(),
            ..FoundAgent::default()
        }
    }

    /// Adds a file, unless the agent has a file of this name.
    pub(super) fn add_file(&mut self, kind: Kind, target: impl Into<PathBuf>, content: Content) {
        let target = target.into();
        if self.files.iter().all(|file| file.target != target) {
            self.files.push(FoundFile {
                kind,
                target,
                content,
            });
        }
    }
}

/// A file of an agent.
#[derive(Clone)]
pub(super) struct FoundFile {
    /// File or skill.
    pub(super) kind: Kind,
    /// Seen from the agent's folder.
    pub(super) target: PathBuf,
    pub(super) content: Content,
}

#[derive(Clone)]
pub(super) enum Content {
    Copy { tree: Arc<Tree>, path: PathBuf },
    Text(String),
}

pub(super) struct FoundMemory {
    /// Unique among the memories of the source.
    pub(super) source_id: String,
    pub(super) text: String,
    pub(super) visibility: Visibility,
    pub(super) created_at: i64,
}

pub(super) struct FoundConversation {
    pub(super) source_id: String,
    /// The source's name for the place of the conversation.
    pub(super) name: String,
    /// The place, or the reason for not knowing the place.
    pub(super) place: Result<SessionKey, &'static str>,
    pub(super) messages: Spooled,
    pub(super) summary: Option<FoundSummary>,
}

pub(super) struct FoundSummary {
    pub(super) text: String,
    /// The number of messages, from the first, covered by the summary.
    pub(super) messages: usize,
}

/// A rule that gives places to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundBinding {
    /// The rule in the words of the source.
    pub(super) source: String,
    pub(super) pattern: String,
    /// An agent of the source.
    pub(super) agent: String,
    pub(super) require_mention: Option<bool>,
    /// Only these people may write there.
    pub(super) users: Option<Vec<PersonId>>,
    pub(super) roles: Vec<u64>,
}

pub(super) struct FoundPerson {
    pub(super) id: PersonId,
    pub(super) name: Option<String>,
    pub(super) was_owner: bool,
}

/// A token or key.
pub(super) struct FoundSecret {
    /// The name of its file in `secrets/`.
    pub(super) name: String,
    /// The place of the secret in the source.
    pub(super) source: String,
    /// Absent: the source has the secret elsewhere, as in the environment.
    pub(super) value: Option<SecretString>,
    /// The section of the config that uses the secret.
    pub(super) section: Section,
    /// The usual name in the environment.
    pub(super) variable: String,
}
