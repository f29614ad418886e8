//! Extras of a message besides its text: reply, forward, attachment, album, note.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AgentUid, Around, Inbound, Label, Labels, MessageId, Role, SessionKey};

/// Extras of a message besides its text. Most messages have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extras {
    /// The quoted message and the original author.
    pub around: Vec<Around>,
    pub attachment: Option<Attachment>,
    /// Set when further parts of the same message may come, as in an album.
    pub together: Option<Together>,
    /// Set on edits and reactions, which are kept without an answer.
    pub note: Option<Note>,
    /// Set on messages from the gateway itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal: Option<Internal>,
    /// Set when the platform waits for an answer to this very message.
    pub reply: Option<ReplyHandle>,
    /// Our message with the pressed button.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressed: Option<MessageId>,
    /// The message that this message replies to. Its words are in `around`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies_to: Option<MessageId>,
}

/// Why the gateway put a message into a lane by itself. `run` names a row of `subagents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Internal {
    /// The task of a subagent.
    Subagent { run: String },
    /// A subagent has ended, and its parent is to report in the place of the request.
    Report { run: String },
    /// A job is due.
    Job(JobRun),
}

/// A run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRun {
    /// The row of the job. None: the call of a hook.
    pub job: Option<i64>,
    /// The slot, in Unix milliseconds.
    pub slot: i64,
    pub name: String,
    pub agent: AgentUid,
    /// Where the answer goes. None: nowhere.
    pub to: Option<SessionKey>,
    /// The job has no other slot.
    pub is_once: bool,
    /// A look whether anything is to be done, where an empty answer means no.
    pub is_heartbeat: bool,
    /// Where the words of the task come from, as bits of [`Labels`].
    pub read: u32,
    /// The turn has no more rights than this.
    #[serde(default)]
    pub most: Option<Role>,
}

/// The platform's handle for answering a message, such as an interaction token. Only its channel
/// can read the text. The handle works like a key for a while, so the text is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyHandle(pub String);

impl fmt::Debug for ReplyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyHandle(…)")
    }
}

/// A photo, file, sticker or the like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The kind and size in words: `photo, 1280×720`.
    pub description: String,
    /// Absent when there is nothing to be fetched.
    pub file: Option<FileRef>,
}

/// A file on the platform's servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The platform's own id.
    pub id: String,
    /// The sender's file name, else the kind. Not safe as a path.
    pub name: String,
    /// The size, as far as the platform says.
    pub bytes: Option<u64>,
}

/// Successive messages of a person with the same `with` are answered together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    pub with: String,
    /// How long to wait for the next part.
    pub wait_ms: u64,
}

/// Why a message is only kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// A new form of an earlier message.
    Edit,
    /// A reaction: the text is the emoji, and the answer is quoted.
    Reaction,
}

impl Inbound {
    /// Everything that belongs to the message besides its words.
    pub fn around(&self) -> Vec<Around> {
        let attached = self.extras.attachment.as_ref();
        self.around_with(attached.map(|attachment| attachment.description.clone()))
    }

    /// As [`Inbound::around`], with other words for the attachment.
    pub fn around_with(&self, attached: Option<String>) -> Vec<Around> {
        let edited = matches!(self.extras.note, Some(Note::Edit)).then_some(Around::Edited);
        edited
            .into_iter()
            .chain(self.extras.around.iter().cloned())
            .chain(attached.map(Around::With))
            .collect()
    }

    /// The message on a line for people, such as in `/queue`.
    pub fn in_short(&self) -> String {
        let words = Some(self.text.clone()).filter(|text| !text.is_empty());
        let around = self.around();
        let around = around.iter().map(|around| format!("[{around}]"));
        around.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// The sources of the message's words: its writer, and quoted people.
    pub fn labels(&self, writer: Role) -> Labels {
        let written = Labels::of(writer);
        match self.extras.around.iter().any(Around::has_words_of_others) {
            true => written.with(Label::Guest),
            false => written,
        }
    }

    /// Whether the next message is a part of this message.
    pub fn is_one_with(&self, next: &Inbound) -> bool {
        let (Some(ours), Some(theirs)) = (&self.extras.together, &next.extras.together) else {
            return false;
        };
        ours.with == theirs.with
            && self.origin.person == next.origin.person
            && next.extras.note.is_none()
    }
}
