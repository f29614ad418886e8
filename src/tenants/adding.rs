//! New agents: from a template, from an existing folder, from another agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::editing::Editing;
use super::error::TenantError;
use super::inventory::{Rows, stored};
use super::note::{self, Change};
use super::site::{Site, blocking, folder_of};
use super::{folders, rows};
use crate::agents::{IdentityFile, Scaffolded, write_agent};
use crate::config::edit::{self, NewAgent};
use crate::domain::{AgentId, AgentUid};

/// The wish for a new agent.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Adding {
    pub id: String,
    pub entry: NewAgent,
    /// The text of SOUL.md.
    pub personality: Option<String>,
    /// Places to bind to the agent.
    pub bindings: Vec<String>,
}

/// A new agent.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Added {
    pub id: AgentId,
    /// The new files, as paths within the home folder.
    pub files: Scaffolded,
    /// Rows of an earlier agent of this id, whose table was taken out of the config by hand.
    pub earlier: Rows,
}

/// Makes an agent with files from a template. Existing files are kept.
pub(super) async fn add(
    site: &Site,
    editing: Arc<Editing>,
    adding: Adding,
) -> Result<Added, TenantError> {
    let (id, files) = blocking(move || {
        let id = editing.unused(&adding.id)?;
        let mut text = edit::add_agent(&editing.text, &id, &adding.entry)?;
        for pattern in &adding.bindings {
            text = edit::add_binding(&text, pattern, &id)?;
        }
        // The config is checked before any file is made; the commit checks again.
        editing.check(&text)?;
        let files =
            write_agent(&editing.home, &id, adding.personality.as_deref()).map_err(|error| {
                TenantError::Disk {
                    path: folder_of(&editing.home, &id),
                    error: std::io::Error::other(error.to_string()),
                }
            })?;
        editing
            .commit(&text)
            .inspect_err(|_| take_away(&editing.home, &id, &files.created))?;
        Ok((id, files))
    })
    .await?;
    let earlier = stored(site, &id).await?.unwrap_or_default();
    Ok(Added { id, files, earlier })
}

/// Deletes the newly made files. A folder with other files stays, and `agent list` shows leftovers
/// as discovered.
fn take_away(home: &Path, id: &AgentId, created: &[PathBuf]) {
    for file in created {
        let _ = std::fs::remove_file(home.join(file));
    }
    let _ = std::fs::remove_dir(folder_of(home, id));
}

/// Takes a handmade folder into the config, or an agent whose table was deleted by hand.
pub(super) async fn adopt(
    site: &Site,
    editing: Arc<Editing>,
    word: &str,
) -> Result<AgentId, TenantError> {
    let id = editing.unused(word)?;
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

/// Makes an agent with the tables, identity files and skills of another, without its memories and
/// conversations.
pub(super) async fn clone(
    site: &Site,
    editing: Arc<Editing>,
    from: &str,
    to: &str,
) -> Result<AgentId, TenantError> {
    let (from, to) = (from.to_owned(), to.to_owned());
    // The config's lock outlives the note: a process that takes the lock may write a note of its
    // own.
    let (uid, _lock) = (AgentUid(Uuid::now_v7()), editing.clone());
    let (id, _note) = blocking(move || {
        let (from, to) = (editing.find(&from)?.id.clone(), editing.free(&to)?);
        let piece = edit::take_out_agent(&editing.text, &from)?.piece;
        let (tables, _) = edit::without_bindings(&piece)?;
        // Two agents cannot have the same name.
        let tables = edit::without_name(&edit::rename_agent(&tables, &from, &to)?, &to)?;
        let text = edit::put_back(&editing.text, &tables)?;
        let text = if piece.is_empty() {
            edit::add_agent(&text, &to, &NewAgent::default())?
        } else {
            text
        };
        let (source, target) = (
            folder_of(&editing.home, &from),
            folder_of(&editing.home, &to),
        );
        let note = note::write(
            &editing.home,
            &Change::Clone {
                id: to.clone(),
                uid: uid.to_string(),
            },
        )?;
        let personality = editing
            .spec(&from)
            .and_then(|spec| spec.personality.as_ref())
            .map(|path| PathBuf::from(&path.value));
        let files = folders::walk(&source)?.files.into_iter();
        let files: Vec<PathBuf> = files
            .filter(|file| is_character(file) || Some(file) == personality.as_ref())
            .collect();
        // The files come first, because the check of the new table looks for its skills.
        let done = folders::copy(&source, &target, &files).and_then(|()| editing.commit(&text));
        done.inspect_err(|_| folders::discard(&target))?;
        Ok((to, note))
    })
    .await?;
    rows::record_clone(site, &id, uid).await?;
    Ok(id)
}

/// Identity files and skills, as opposed to memories and work.
fn is_character(file: &Path) -> bool {
    let is_identity = |file: &Path| {
        IdentityFile::ALL
            .into_iter()
            .any(|known| file == Path::new(known.name()))
    };
    file.starts_with("skills")
        || (is_identity(file) && file != Path::new(IdentityFile::Memory.name()))
}
