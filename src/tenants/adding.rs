//! New agents: from nothing, from a folder that is there, from another agent.

use std::path::{Path, PathBuf};

use rusqlite::Transaction;
use toml_edit::{DocumentMut, Item};
use uuid::Uuid;

use super::editing::Editing;
use super::survey::{Rows, stored};
use super::unfinished::{self, Change};
use super::{Site, TenantError, blocking, folder_of, folders};
use crate::agents::{IdentityFile, Scaffolded, roster, write_agent};
use crate::clock::now_ms;
use crate::config::edit::{self, EditError, NewAgent};
use crate::domain::{AgentId, AgentUid};

/// What somebody wants.
#[derive(Debug, Clone, Default)]
pub struct Adding {
    pub id: String,
    pub entry: NewAgent,
    /// Becomes its SOUL.md.
    pub personality: Option<String>,
    /// Places to bind to it.
    pub bindings: Vec<String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub id: AgentId,
    /// As paths within the home folder.
    pub files: Scaffolded,
    /// What the store kept of an agent of this id whose table was taken out of the config by hand.
    pub earlier: Rows,
}

/// Whether a new agent can have this id.
pub async fn may_add(site: &Site, id: &str) -> Result<AgentId, TenantError> {
    Editing::begin(site).await?.unused(id)
}

/// A new agent with files from a template. Files that are there are kept.
pub async fn add(site: &Site, adding: Adding) -> Result<Added, TenantError> {
    let editing = Editing::begin(site).await?;
    let (id, files) = blocking(move || {
        let id = editing.unused(&adding.id)?;
        let mut text = edit::add_agent(&editing.text, &id, &adding.entry)?;
        for pattern in &adding.bindings {
            text = edit::add_binding(&text, pattern, &id)?;
        }
        // Before any file is made, and once more with the config's own commit.
        editing.check(&text)?;
        let files = write_agent(&editing.home, &id, adding.personality.as_deref()).map_err(|error| TenantError::Disk {
            path: folder_of(&editing.home, &id),
            error: std::io::Error::other(error.to_string()),
        })?;
        editing.commit(&text).inspect_err(|_| take_away(&editing.home, &id, &files.created))?;
        Ok((id, files))
    })
    .await?;
    let earlier = stored(site, &id).await?.unwrap_or_default();
    Ok(Added { id, files, earlier })
}

/// Undoes the making of files. A folder with others in it stays, and what cannot go is seen as discovered.
fn take_away(home: &Path, id: &AgentId, created: &[PathBuf]) {
    for file in created {
        let _ = std::fs::remove_file(home.join(file));
    }
    let _ = std::fs::remove_dir(folder_of(home, id));
}

/// Takes a folder that somebody made by hand into the config, or an agent whose table was taken out by hand.
pub async fn adopt(site: &Site, word: &str) -> Result<AgentId, TenantError> {
    let (editing, word) = (Editing::begin(site).await?, word.to_owned());
    let id = editing.unused(&word)?;
    let is_stored = stored(site, &id).await?.is_some();
    blocking(move || {
        if !is_stored && !folder_of(&editing.home, &id).is_dir() {
            return Err(TenantError::unknown(format!(
                "there is no folder agents/{id}. `parlor agent add {id}` makes a new agent"
            )));
        }
        editing.commit(&edit::add_agent(&editing.text, &id, &NewAgent::default())?)?;
        Ok(id)
    })
    .await
}

/// Another agent that is made like this one: the same tables and identity files and skills, and nothing that it lived through.
pub async fn clone(site: &Site, from: &str, to: &str) -> Result<AgentId, TenantError> {
    let (editing, from, to) = (Editing::begin(site).await?, from.to_owned(), to.to_owned());
    // Its lock is held until the store knows the clone.
    let (uid, held) = (AgentUid(Uuid::now_v7()), editing.clone());
    let (id, _note) = blocking(move || {
        let (from, to) = (editing.find(&from)?.id.clone(), editing.free(&to)?);
        let piece = edit::take_out_agent(&editing.text, &from)?.piece;
        let (tables, _) = edit::without_bindings(&piece)?;
        let text = edit::put_back(&editing.text, &nameless(&edit::rename_agent(&tables, &from, &to)?, &to)?)?;
        let text = if piece.is_empty() { edit::add_agent(&text, &to, &NewAgent::default())? } else { text };
        let (source, target) = (folder_of(&editing.home, &from), folder_of(&editing.home, &to));
        let note = unfinished::note(&editing.home, &Change::Clone { id: to.clone(), uid: uid.to_string() })?;
        let personality = editing.spec(&from).and_then(|spec| spec.personality.as_ref()).map(|path| PathBuf::from(&path.value));
        let files = folders::walk(&source)?.files.into_iter();
        let files: Vec<PathBuf> = files.filter(|file| is_character(file) || Some(file) == personality.as_ref()).collect();
        // The files first: the skills that the new table names must be where it says.
        let done = folders::copy(&source, &target, &files).and_then(|()| editing.commit(&text));
        done.inspect_err(|_| folders::discard(&target))?;
        Ok((to, note))
    })
    .await?;
    record_clone(site, &id, uid).await?;
    drop(held);
    Ok(id)
}

/// In the store, which may know an older one of that id, with memories. Nothing to do if it knows this one.
pub(super) async fn record_clone(site: &Site, id: &AgentId, uid: AgentUid) -> Result<(), TenantError> {
    let id = id.clone();
    let record = move |tx: &Transaction<'_>| {
        if roster::knows(tx, &uid.to_string())? {
            return Ok(());
        }
        roster::add_new(tx, uid, &id, now_ms())
    };
    Ok(site.db.write(record).await?)
}

/// Two agents cannot have the same name.
fn nameless(tables: &str, id: &AgentId) -> Result<String, TenantError> {
    let mut document: DocumentMut = tables.parse().map_err(|_| EditError::NotToml)?;
    let agent = document.get_mut("agents").and_then(|agents| agents.get_mut(id.as_str())).and_then(Item::as_table_mut);
    if let Some(agent) = agent {
        agent.remove("name");
    }
    Ok(document.to_string())
}

/// What an agent is made of, not what it remembers or works on.
fn is_character(file: &Path) -> bool {
    let is_identity = |file: &Path| IdentityFile::ALL.into_iter().any(|known| file == Path::new(known.name()));
    file.starts_with("skills") || (is_identity(file) && file != Path::new(IdentityFile::Memory.name()))
}
