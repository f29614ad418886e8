//! Moves an agent to another home: files, memories and conversations in a package.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Transaction;
use uuid::Uuid;

use super::editing::Editing;
use super::error::TenantError;
use super::folders::{self, STAGING, Sizes};
use super::moving_in::{self, Newcomer, WriteRows};
use super::package::{self, Manifest, Package, Texts};
use super::site::{Site, blocking, folder_of};
use crate::agents::memory::export::{self, Form};
use crate::agents::{Memories, memory};
use crate::clock::now_ms;
use crate::config::{AgentTable, JobKeys, Visibility, edit};
use crate::domain::{AgentId, AgentUid};
use crate::home::registry;
use crate::records::jobs;
use crate::records::transcript::{self, ExportedMessage, Importing};
use crate::records::view::View;

/// Memories per read of the database.
const PORTION: u32 = 1_000;

/// A written package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exported {
    pub id: AgentId,
    pub path: PathBuf,
    pub files: usize,
    pub memories: usize,
    pub messages: usize,
    /// Links, pipes and devices: they stay behind.
    pub left_out: Vec<PathBuf>,
}

/// Writes an agent's files, memories and conversations into a single file. The agent stays.
pub(super) async fn export(
    site: &Site,
    editing: Arc<Editing>,
    word: &str,
    path: &Path,
) -> Result<Exported, TenantError> {
    let id = editing.find(word)?.id.clone();
    let (registry, _) = registry(&editing.config, &site.home, &site.db).await?;
    let agent = registry
        .get(&id)
        .ok_or_else(|| TenantError::unknown(format!("no agent is called {id}")))?;
    let (uid, view) = (agent.uid, View::of(editing.config.switch, agent.uid));
    let messages = site
        .db
        .read(move |connection| transcript::export(connection, uid, view))
        .await?;
    let stored = stored_jobs(site, uid).await?;
    let (memories, count) = written_memories(site, agent).await?;
    let lines = messages.iter().map(|message| {
        serde_json::to_string(message).expect("texts and numbers become JSON") + "\n"
    });
    let texts = Texts {
        tables: table_of(&editing, &id, stored)?,
        memories,
        messages: lines.collect(),
    };
    let (path, folder) = (path.to_owned(), folder_of(&site.home, &id));
    blocking(move || {
        let walk = folders::walk(&folder)?;
        package::write(
            &path,
            &Manifest::new(id.clone(), now_ms()),
            &texts,
            &folder,
            &walk.files,
        )?;
        let (files, left_out) = (walk.files.len(), walk.left_out);
        Ok(Exported {
            id,
            path,
            files,
            memories: count,
            messages: messages.len(),
            left_out,
        })
    })
    .await
}

/// The agent's table, extended by the limits of its risk profile. Bindings stay, because places do
/// not move to another home, and so do comments.
fn table_of(editing: &Editing, id: &AgentId, stored: Vec<JobKeys>) -> Result<String, TenantError> {
    let taken = edit::take_out_agent(&editing.text, id)?;
    let (piece, _) = edit::without_bindings(&taken.piece)?;
    let mut table = AgentTable::read(&piece, id).map_err(|reason| {
        TenantError::conflict(format!(
            "the table of {id} cannot be written down: {reason}"
        ))
    })?;
    let profile = table.risk_profile.as_ref();
    if let Some(profile) = profile.and_then(|name| editing.config.tools.profiles.get(name)) {
        table.take_in_profile(profile);
    }
    table.jobs.extend(stored);
    Ok(edit::with_header(id, table.written()))
}

/// Jobs made in chat or at the command line, in the form of config.toml.
async fn stored_jobs(site: &Site, agent: AgentUid) -> Result<Vec<JobKeys>, TenantError> {
    let rows = site.db.read(jobs::all).await?;
    let own = rows.into_iter().filter(|job| job.agent == agent);
    let keys = own.filter_map(|job| {
        let definition = job.definition?;
        Some(JobKeys::of(
            job.name.as_str(),
            &definition.timetable,
            definition.zone.as_deref(),
            &definition.prompt,
        ))
    });
    Ok(keys.collect())
}

async fn written_memories(
    site: &Site,
    agent: &Arc<crate::agents::Agent>,
) -> Result<(String, usize), TenantError> {
    let Some(memory) = Memories::new(site.db.clone()).of(agent) else {
        return Ok((String::new(), 0));
    };
    let (mut text, mut count, mut before) = (String::new(), 0, i64::MAX);
    loop {
        let entries = memory.everything(before, PORTION).await?;
        let Some(last) = entries.last() else {
            return Ok((text, count));
        };
        before = last.id;
        count += entries.len();
        text.push_str(&export::write(&entries, Form::JsonLines));
    }
}

/// How a package is taken in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wish<'a> {
    /// Another id than the agent had.
    pub as_id: Option<&'a str>,
    /// Global memories stay global.
    pub keep_global: bool,
    /// Everything is checked and nothing is kept.
    pub only_look: bool,
}

/// An imported agent, or the plan of an import.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Imported {
    pub id: AgentId,
    /// The agent's table in the config.
    pub table: String,
    /// Files with their size.
    pub files: Sizes,
    pub memories: usize,
    /// The memories among them that were global at home.
    pub global: usize,
    pub messages: usize,
    /// Places of the messages.
    pub places: usize,
    /// Lines of the gateway in the conversations, which stay behind.
    pub lines_of_gateway: usize,
    /// Keys of the agent's table without effect here.
    pub left_out: Vec<String>,
    /// Limits that did not fit, for which the agent got read-only tools instead.
    pub tightened: Vec<String>,
}

/// Takes in a package. The whole package is checked before any part is kept.
pub(super) async fn import(
    site: &Site,
    editing: Arc<Editing>,
    path: &Path,
    wish: Wish<'_>,
) -> Result<Imported, TenantError> {
    let staging = Staging(site.home.join(format!("{STAGING}{}", Uuid::now_v7())));
    let (file, into) = (path.to_owned(), staging.0.clone());
    let package = blocking(move || package::read(&file, &into, now_ms())).await?;
    let id = editing.free_as(wish.as_id, &package.manifest.id)?;
    let counts = Imported {
        id: id.clone(),
        table: String::new(),
        files: Sizes::new(),
        memories: package.memories.count,
        global: package.global,
        messages: package.messages.count,
        places: package.places,
        lines_of_gateway: package.lines_of_gateway,
        left_out: Vec::new(),
        tightened: Vec::new(),
    };
    let (table, files) = (package.table.clone(), package.files.clone());
    let keep_global = wish.keep_global;
    let rows: WriteRows = Box::new(move |tx, uid| {
        write_rows(tx, uid, &package, keep_global).map_err(|WriteError(error)| error)
    });
    let newcomer = Newcomer {
        id,
        table,
        files,
        rows: (!wish.only_look).then_some(rows),
    };
    let moved = moving_in::move_in(site, editing, newcomer).await?;
    Ok(Imported {
        table: moved.table,
        files: moved.files,
        left_out: moved.left_out,
        tightened: moved.tightened,
        ..counts
    })
}

/// Writes memories and conversations, line by line.
fn write_rows(
    tx: &Transaction<'_>,
    uid: AgentUid,
    package: &Package,
    keep_global: bool,
) -> Result<(), WriteError> {
    let mut conversations = Importing::new(tx, uid);
    package.messages.each(|line| -> Result<(), WriteError> {
        // The line was read before, so a second read works too.
        if let Some(message) = ExportedMessage::read(line, i64::MAX).map_err(WriteError::odd)? {
            conversations.add(&message)?;
        }
        Ok(())
    })?;
    package.memories.each(|line| {
        let mut carried = export::read_line(line).map_err(WriteError::odd)?;
        if !keep_global {
            carried.visibility = Visibility::Private;
        }
        Ok(memory::take_in(tx, uid, &carried)?)
    })
}

/// An error of the store, or of the file that the rows come from.
struct WriteError(rusqlite::Error);

impl WriteError {
    fn odd(reason: String) -> Self {
        WriteError::from(io::Error::other(reason))
    }
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        WriteError(error)
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}

/// The folder of files being unpacked; leftovers are deleted when the import ends, well or not.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        folders::discard(&self.0);
    }
}
