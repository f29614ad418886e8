//! Moves an agent to another home: files, memories and conversations in one package.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::editing::Editing;
use super::error::TenantError;
use super::folders::{self, STAGING};
use super::note::{self, Change};
use super::package::{self, Manifest, Texts};
use super::site::{Site, blocking, folder_of};
use crate::agents::memory::export::{self, Form};
use crate::agents::{Memories, agent_rows, memory};
use crate::clock::now_ms;
use crate::config::{Visibility, edit};
use crate::domain::{AgentId, AgentUid, SessionKey};
use crate::home::registry;
use crate::records::transcript::{self, ExportedMessage};
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

/// Writes an agent's files, memories and conversations into one file. The agent stays.
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
    let (memories, count) = written_memories(site, agent).await?;
    let lines = messages.iter().map(|message| {
        serde_json::to_string(message).expect("texts and numbers become JSON") + "\n"
    });
    let texts = Texts {
        tables: tables_of(&editing.text, &id)?,
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

/// The agent's tables without bindings, because places do not move to another home.
fn tables_of(text: &str, id: &AgentId) -> Result<String, TenantError> {
    Ok(edit::without_bindings(&edit::take_out_agent(text, id)?.piece)?.0)
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

/// An imported agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imported {
    pub id: AgentId,
    pub files: usize,
    pub memories: usize,
    /// Memories among them with the visibility `global`.
    pub global: usize,
    pub messages: usize,
    /// Keys of the agent's table without effect here.
    pub left_out: Vec<String>,
}

/// Takes in a package, under the agent's own id or another.
pub(super) async fn import(
    site: &Site,
    editing: Arc<Editing>,
    path: &Path,
    as_id: Option<&str>,
) -> Result<Imported, TenantError> {
    let staging = Staging(site.home.join(format!("{STAGING}{}", Uuid::now_v7())));
    let (package, into) = (path.to_owned(), staging.0.clone());
    let (manifest, texts) = blocking(move || package::read(&package, &into)).await?;
    let id = editing.free_as(as_id, &manifest.id)?;
    let tables: toml::Table = texts
        .tables
        .parse()
        .map_err(|_| TenantError::package(path, "its config.toml is not TOML"))?;
    let messages = read_messages(path, &texts.messages)?;
    let memories = export::read(&texts.memories)
        .map_err(|error| TenantError::package(path, format!("memories: {error}")))?;
    let (folder, from) = (folder_of(&site.home, &id), staging.0.clone());
    let (preparing, new_id) = (editing.clone(), id.clone());
    let uid = AgentUid(Uuid::now_v7());
    let change = Change::Import {
        id: id.clone(),
        uid: uid.to_string(),
    };
    let (text, left_out, files, _note) = blocking(move || {
        let note = note::write(&preparing.home, &change)?;
        // The files come first, because the check of the tables looks for their skills.
        let files = folders::walk(&from)?.files.len();
        folders::relocate(&from, &folder)?;
        let fitting = fitting(&preparing, &tables, &manifest.id, &new_id);
        let done =
            fitting.and_then(|(text, left_out)| preparing.commit(&text).map(|()| (text, left_out)));
        let (text, left_out) = done.inspect_err(|_| folders::discard(&folder))?;
        Ok((text, left_out, files, note))
    })
    .await?;
    let global = memories
        .iter()
        .filter(|memory| memory.visibility == Visibility::Global)
        .count();
    let (row_id, message_count, memory_count) = (id.clone(), messages.len(), memories.len());
    let written = site.db.write(move |tx| {
        agent_rows::add_new(tx, uid, &row_id, now_ms())?;
        transcript::import(tx, uid, &messages)?;
        memory::take_in(tx, uid, &memories)
    });
    if let Err(error) = written.await {
        editing.take_back(&text);
        folders::discard(&folder_of(&site.home, &id));
        return Err(error.into());
    }
    Ok(Imported {
        id,
        files,
        memories: memory_count,
        global,
        messages: message_count,
        left_out,
    })
}

/// Keys that a package may bring. Rights of an agent are given by the operator of this home only.
const HARMLESS_KEYS: [&str; 12] = [
    "name",
    "emoji",
    "model",
    "temperature",
    "max_tokens",
    "reasoning",
    "skills",
    "personality",
    "system_prompt",
    "memory",
    "recall",
    "recall_tokens",
];

/// The config with as many keys of the agent's table as pass the check, and the keys that were left
/// out.
fn fitting(
    editing: &Editing,
    written: &toml::Table,
    old: &AgentId,
    new: &AgentId,
) -> Result<(String, Vec<String>), TenantError> {
    let agent = written
        .get("agents")
        .and_then(|agents| agents.get(old.as_str()))
        .and_then(toml::Value::as_table);
    let (mut kept, refused): (toml::Table, toml::Table) = agent
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .partition(|(key, _)| HARMLESS_KEYS.contains(&key.as_str()));
    let mut left_out: Vec<String> = refused.keys().cloned().collect();
    loop {
        let text = edit::put_back(&editing.text, &table_of(new, &kept))?;
        let problem = match editing.check(&text) {
            Ok(()) => return Ok((text, left_out)),
            Err(problem) => problem,
        };
        // Keys that are most likely to fit only the agent's old home are dropped first.
        let Some(key) = ["model", "skills", "name", "personality"]
            .into_iter()
            .chain(HARMLESS_KEYS)
            .find(|key| kept.contains_key(*key))
        else {
            return Err(problem);
        };
        kept.remove(key);
        left_out.push(key.to_owned());
    }
}

fn table_of(id: &AgentId, keys: &toml::Table) -> String {
    format!("[agents.{id}]\n{keys}")
}

fn read_messages(path: &Path, lines: &str) -> Result<Vec<ExportedMessage>, TenantError> {
    let wrong = |line: usize, reason: String| {
        TenantError::package(path, format!("messages, line {line}: {reason}"))
    };
    let lines = lines
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(json, line)| {
            let message: ExportedMessage =
                serde_json::from_str(json).map_err(|error| wrong(line, error.to_string()))?;
            let place = message.place.parse::<SessionKey>();
            place
                .map(|_| message)
                .map_err(|error| wrong(line, error.to_string()))
        })
        .collect()
}

/// The folder of files being unpacked; leftovers are deleted when the import ends, well or not.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        folders::discard(&self.0);
    }
}
