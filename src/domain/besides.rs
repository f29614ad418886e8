//! What comes with the words of a message: what it refers to, what was attached, what it belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Inbound;

/// Everything about a message that is not its words. Most messages have nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Besides {
    /// What it answers and who wrote it first, each in brackets.
    pub marks: Vec<String>,
    pub attachment: Option<Attachment>,
    /// Set when others may come that are one message with it.
    pub together: Option<Together>,
    /// Set on what is kept and not answered.
    pub note: Option<Note>,
    /// Set on what the gateway itself put into a lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal: Option<Internal>,
    /// Set when the platform waits for an answer to this very message.
    pub reply: Option<ReplyHandle>,
}

/// Why the gateway put a message into a lane by itself. The run is a row of `children`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Internal {
    /// What an agent wants done by another run.
    Child { run: String },
    /// A run has ended, and its parent is to tell about it where it was asked.
    Report { run: String },
}

/// What the platform gave along to answer a message with. Only its channel can read it. It is as good as a key for a while,
/// so it is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyHandle(pub String);

impl fmt::Debug for ReplyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyHandle(…)")
    }
}

/// Something sent that is not text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it is, in words: `photo, 1280×720`.
    pub description: String,
    /// Absent when there is nothing to be fetched.
    pub file: Option<FileRef>,
}

/// A file that the platform keeps for us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The platform's own id.
    pub id: String,
    /// What the sender called it, else what it is. Not safe as a path.
    pub name: String,
    /// As far as the platform says.
    pub bytes: Option<u64>,
}

/// Messages of one person that follow each other with the same `with` are answered as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    pub with: String,
    /// How long to wait for the next one.
    pub wait_ms: u64,
}

/// Why a message is only kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// A new form of an earlier message.
    Edit,
    /// The text is the emoji, the mark the answer it is about.
    Reaction,
}

impl Inbound {
    /// The message as an agent reads it.
    pub fn readable(&self) -> String {
        let attached = self.besides.attachment.as_ref().map(|attachment| attachment.description.as_str());
        self.readable_with(attached)
    }

    /// Whether a message that follows this one is part of it.
    pub fn is_one_with(&self, next: &Inbound) -> bool {
        let (Some(ours), Some(theirs)) = (&self.besides.together, &next.besides.together) else { return false };
        ours.with == theirs.with && self.origin.person == next.origin.person && next.besides.note.is_none()
    }

    /// As [`Inbound::readable`], with other words for what was attached.
    pub fn readable_with(&self, attached: Option<&str>) -> String {
        if matches!(self.besides.note, Some(Note::Reaction)) {
            return format!("[reacted {} to {}]", self.text, self.besides.marks.join(" "));
        }
        let edited = matches!(self.besides.note, Some(Note::Edit)).then(|| "[edited]".to_owned());
        let marks = edited.into_iter().chain(self.besides.marks.iter().cloned());
        let attached = attached.map(|attached| format!("[{attached}]"));
        let words = Some(self.text.clone()).filter(|text| !text.is_empty());
        marks.chain(attached).chain(words).collect::<Vec<_>>().join(" ")
    }
}
