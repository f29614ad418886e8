//! Messages on their way, in a file: a source may have more of them than fit into memory.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::domain::PersonId;
use crate::records::transcript::{Arriving, Speaker};

/// The longest message carried whole.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Messages of a conversation; a longer conversation loses its oldest.
const MOST_MESSAGES: usize = 20_000;

/// Writes messages down, conversation by conversation.
#[derive(Debug)]
pub(super) struct Spool {
    path: PathBuf,
    file: BufWriter<File>,
    at: u64,
}

/// Where the messages of a conversation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spooled {
    at: u64,
    pub(super) count: usize,
    /// When the last message was written, in Unix milliseconds.
    pub(super) last_at: i64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    agent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<PersonId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    text: String,
    at: i64,
}

impl Spool {
    pub(super) fn new(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let file = BufWriter::new(file);
        Ok(Spool { path, file, at: 0 })
    }

    /// Keeps the messages with words of a conversation.
    pub(super) fn add(&mut self, messages: Vec<Arriving>) -> io::Result<Spooled> {
        let mut spooled = Spooled {
            at: self.at,
            ..Spooled::default()
        };
        let messages = messages
            .into_iter()
            .filter(|message| !message.text.trim().is_empty());
        let messages: Vec<Arriving> = messages.collect();
        let skipped = messages.len().saturating_sub(MOST_MESSAGES);
        for message in messages.into_iter().skip(skipped) {
            let (agent, person, name) = match message.speaker {
                Speaker::Agent => (true, None, None),
                Speaker::Person { id, name } => (false, id, name),
            };
            let line = Line {
                agent,
                person,
                name,
                text: cut(message.text),
                at: message.at.max(0),
            };
            spooled.last_at = spooled.last_at.max(line.at);
            spooled.count += 1;
            let json = serde_json::to_string(&line).map_err(io::Error::other)?;
            self.file.write_all(json.as_bytes())?;
            self.file.write_all(b"\n")?;
            self.at += json.len() as u64 + 1;
        }
        Ok(spooled)
    }

    /// Ends the writing.
    pub(super) fn finish(mut self) -> io::Result<Kept> {
        self.file.flush()?;
        Ok(Kept { path: self.path })
    }
}

/// All spooled messages.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    path: PathBuf,
}

impl Kept {
    /// The messages of a conversation.
    pub(super) fn read(&self, spooled: Spooled) -> io::Result<Vec<Arriving>> {
        let read = |line: String| {
            let line: Line = serde_json::from_str(&line).map_err(io::Error::other)?;
            let speaker = match line.agent {
                true => Speaker::Agent,
                false => Speaker::Person {
                    id: line.person,
                    name: line.name,
                },
            };
            Ok(Arriving {
                speaker,
                text: line.text,
                at: line.at,
            })
        };
        let lines = lines(&self.path, spooled, spooled.count)?;
        lines.into_iter().map(read).collect()
    }

    /// The digest of the first messages of a conversation, with their number: `12 ab34…`.
    pub(super) fn stamp(&self, spooled: Spooled, first: usize) -> io::Result<String> {
        let mut context = Context::new(&SHA256);
        for line in lines(&self.path, spooled, first)? {
            context.update(line.as_bytes());
            context.update(b"\n");
        }
        Ok(format!("{first} {}", hex(context.finish().as_ref())))
    }
}

fn lines(path: &Path, spooled: Spooled, first: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(spooled.at))?;
    let lines = BufReader::new(file).lines();
    lines.take(first.min(spooled.count)).collect()
}

fn cut(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    format!("{} […]", &text[..end])
}

/// The first half of a digest is plenty.
pub(super) fn hex(digest: &[u8]) -> String {
    let half = digest.iter().take(16);
    half.map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a content.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&SHA256, bytes).as_ref())
}
