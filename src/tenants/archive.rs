//! Archives of removed agents: `archive/<id>-<time>/` with a manifest, the agent's tables of the
//! config, and its files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::editing::config_has;
use super::error::TenantError;
use super::folders;
use super::site::Site;
use crate::agents::agent_rows;
use crate::domain::{AgentId, AgentUid};

pub(super) const FILES: &str = "files";
const MANIFEST: &str = "agent.json";
const TABLES: &str = "config.toml";

/// A removed agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Archive {
    /// The folder's name, by which people restore or purge the agent.
    pub name: String,
    pub id: AgentId,
    pub uid: AgentUid,
    pub removed_at: i64,
    /// Lists in the config that named the agent: `agents.main.read_memory_from`.
    pub mentions: Vec<String>,
    #[serde(skip)]
    pub folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    v: u32,
    id: AgentId,
    uid: String,
    removed_at: i64,
    #[serde(default)]
    mentions: Vec<String>,
}

/// All archives of a home, the oldest first. Folders without a manifest are left out.
pub(crate) fn archives(home: &Path) -> Vec<Archive> {
    let Ok(entries) = fs::read_dir(home.join("archive")) else {
        return Vec::new();
    };
    let mut all: Vec<Archive> = entries
        .flatten()
        .filter_map(|entry| read(&entry.path()))
        .collect();
    all.sort_by(|a, b| (a.removed_at, &a.name).cmp(&(b.removed_at, &b.name)));
    all
}

fn read(folder: &Path) -> Option<Archive> {
    let name = folder.file_name()?.to_str()?.to_owned();
    let manifest: Manifest = serde_json::from_slice(&fs::read(folder.join(MANIFEST)).ok()?).ok()?;
    let uid = AgentUid(Uuid::parse_str(&manifest.uid).ok()?);
    let Manifest {
        id,
        removed_at,
        mentions,
        ..
    } = manifest;
    Some(Archive {
        name,
        id,
        uid,
        removed_at,
        mentions,
        folder: folder.to_owned(),
    })
}

/// Makes an empty folder for an agent. The folder becomes an archive when its manifest is written.
pub(super) fn create(
    home: &Path,
    id: &AgentId,
    uid: AgentUid,
    now: i64,
) -> Result<Archive, TenantError> {
    let (name, folder) = new_folder(home, id, now)?;
    Ok(Archive {
        name,
        id: id.clone(),
        uid,
        removed_at: now,
        mentions: Vec::new(),
        folder,
    })
}

pub(super) fn folder(home: &Path, name: &str) -> PathBuf {
    home.join("archive").join(name)
}

/// Whether an interrupted removal got as far as writing tables, manifest or files into the archive.
pub(super) fn has_anything(home: &Path, name: &str) -> bool {
    let folder = folder(home, name);
    let has_tables =
        fs::read_to_string(folder.join(TABLES)).is_ok_and(|tables| !tables.trim().is_empty());
    has_tables || read(&folder).is_some() || fs::symlink_metadata(folder.join(FILES)).is_ok()
}

fn new_folder(home: &Path, id: &AgentId, now: i64) -> Result<(String, PathBuf), TenantError> {
    let time = DateTime::from_timestamp_millis(now)
        .unwrap_or_default()
        .with_timezone(&Local)
        .format("%Y%m%d-%H%M%S");
    let all = home.join("archive");
    folders::create(&all)?;
    let mut number = 1;
    loop {
        let name = if number == 1 {
            format!("{id}-{time}")
        } else {
            format!("{id}-{time}-{number}")
        };
        let folder = all.join(&name);
        match fs::create_dir(&folder) {
            Ok(()) => return Ok((name, folder)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(TenantError::disk(&folder)(error)),
        }
    }
}

/// The archive of this name, or the only archive of an agent with this id.
pub(super) fn find(home: &Path, which: &str) -> Result<Archive, TenantError> {
    let all = archives(home);
    if let Some(archive) = all.iter().find(|archive| archive.name == which) {
        return Ok(archive.clone());
    }
    let of_id: Vec<&Archive> = all
        .iter()
        .filter(|archive| archive.id.as_str() == which)
        .collect();
    match of_id.as_slice() {
        [] if all.is_empty() => Err(TenantError::unknown(format!(
            "no removed agent is called {which}; the archive is empty"
        ))),
        [] => Err(TenantError::unknown(format!(
            "no removed agent is called {which}. The archive has: {}",
            names(&all)
        ))),
        [only] => Ok((*only).clone()),
        several => {
            let several: Vec<Archive> = several.iter().map(|archive| (*archive).clone()).collect();
            Err(TenantError::unknown(format!(
                "{which} was removed more than once. Name one of: {}",
                names(&several)
            )))
        }
    }
}

pub(super) fn names(archives: &[Archive]) -> String {
    archives
        .iter()
        .map(|archive| archive.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Refuses an archive whose agent is in use, such as a copied folder: its rows belong to the living
/// agent.
pub(super) async fn refuse_in_use(site: &Site, archive: &Archive) -> Result<(), TenantError> {
    let uid = archive.uid;
    let living = site
        .db
        .read(move |connection| agent_rows::living_id(connection, uid))
        .await?;
    // A database restored from a backup may have forgotten the removal; the config has not.
    let in_use = living.filter(|id| config_has(&site.home, id).unwrap_or(true));
    match in_use {
        None => Ok(()),
        Some(id) => Err(TenantError::conflict(format!(
            "the agent of archive/{} is in use, as {id}. If nothing in that folder is needed, delete it by hand",
            archive.name
        ))),
    }
}

impl Archive {
    /// Writes the manifest and the agent's tables of the config; the files come later.
    pub(super) fn fill(&self, tables: &str) -> Result<(), TenantError> {
        let (id, uid, mentions) = (self.id.clone(), self.uid.to_string(), self.mentions.clone());
        let manifest = Manifest {
            v: 1,
            id,
            uid,
            removed_at: self.removed_at,
            mentions,
        };
        let json = serde_json::to_string_pretty(&manifest).expect("texts and numbers become JSON");
        for (file, text) in [(TABLES, tables), (MANIFEST, json.as_str())] {
            let path = self.folder.join(file);
            fs::write(&path, text).map_err(TenantError::disk(&path))?;
        }
        Ok(())
    }

    /// The agent's tables of the config.
    pub(super) fn tables(&self) -> Result<String, TenantError> {
        let path = self.folder.join(TABLES);
        fs::read_to_string(&path).map_err(TenantError::disk(&path))
    }

    pub(super) fn files(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// The manifest goes last, so that an interrupted purge can be found and repeated.
    pub(super) fn destroy(&self) -> Result<(), TenantError> {
        let files = self.files();
        match fs::symlink_metadata(&files) {
            Err(_) => {}
            Ok(kind) if kind.is_dir() => {
                fs::remove_dir_all(&files).map_err(TenantError::disk(&files))?;
            }
            // The agent's folder was a link; the files behind the link belong to others.
            Ok(_) => fs::remove_file(&files).map_err(TenantError::disk(&files))?,
        }
        fs::remove_dir_all(&self.folder).map_err(TenantError::disk(&self.folder))
    }
}
