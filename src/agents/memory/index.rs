//! Takes MEMORY.md and the daily notes into the index when they have changed; the table
//! `memory_files`.
//!
//! There is no watcher: before a search, each file's size and time are compared with the last look.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use chrono::NaiveDate;
use rusqlite::{Connection, Transaction, params};

use super::chunks::chunks;
use super::rows::{self, New, Provenance};
use crate::agents::folders::Listings;
use crate::config::Visibility;
use crate::domain::{AgentUid, Labels};

/// The file that the agent itself edits.
pub(super) const MEMORY_FILE: &str = "MEMORY.md";
/// Where daily notes are.
pub(super) const NOTES_FOLDER: &str = "memory";
/// The indexed part of a file, in bytes from its beginning.
const MAX_INDEXED_BYTES: u64 = 1024 * 1024;

/// An agent's files with their stamps, by path in the agent's folder.
pub(super) type Stamps = BTreeMap<String, Stamp>;

/// Size and times of a file. A different stamp means a possible change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) bytes: u64,
    text: String,
    modified_ms: i64,
}

/// A changed file, with its new text.
pub(super) struct Changed {
    path: String,
    stamp: Stamp,
    text: String,
}

/// Looks at the files without opening them; blocks on the disk.
pub(super) fn look(folder: &Path) -> Stamps {
    let notes_folder = folder.join(NOTES_FOLDER);
    let notes = NOTES.get(&notes_folder, || notes_in(&notes_folder));
    let notes = notes.iter().flat_map(|notes| notes.iter());
    let paths = notes
        .map(|name| format!("{NOTES_FOLDER}/{name}"))
        .chain([MEMORY_FILE.to_owned()]);
    paths
        .filter_map(|path| stamp(&folder.join(&path)).map(|stamp| (path, stamp)))
        .collect()
}

/// The names of daily notes, by folder.
static NOTES: LazyLock<Listings<Vec<String>>> = LazyLock::new(Listings::default);

fn notes_in(folder: &Path) -> Vec<String> {
    let notes = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = notes.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_note(name)).collect()
}

/// `2026-11-16.md`
fn is_note(name: &str) -> bool {
    name.strip_suffix(".md")
        .is_some_and(|date| date.len() == 10 && date.parse::<NaiveDate>().is_ok())
}

/// None unless the path is a regular file.
fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let modified = metadata
        .modified()
        .ok()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // The inode tells a replaced file, the change time a file restored with its old time.
    let text = [
        metadata.len().to_string(),
        modified.as_nanos().to_string(),
        metadata.ino().to_string(),
        format!("{}.{}", metadata.ctime(), metadata.ctime_nsec()),
    ];
    let modified_ms = i64::try_from(modified.as_millis()).unwrap_or(i64::MAX);
    Some(Stamp {
        bytes: metadata.len(),
        text: text.join(" "),
        modified_ms,
    })
}

/// The stamps of an agent's files when they were taken in.
pub(super) fn taken_in(
    connection: &Connection,
    owner: AgentUid,
) -> rusqlite::Result<HashMap<String, String>> {
    let mut statement =
        connection.prepare_cached("SELECT path, stamp FROM memory_files WHERE agent_uid = ?1")?;
    let rows = statement.query_map([owner.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Reads the files with a new stamp; blocks on the disk. An unreadable file keeps its old pieces.
pub(super) fn read_changed(
    folder: &Path,
    now: &Stamps,
    taken_in: &HashMap<String, String>,
) -> Vec<Changed> {
    let changed = now
        .iter()
        .filter(|(path, stamp)| taken_in.get(*path) != Some(&stamp.text));
    let read = |(path, stamp): (&String, &Stamp)| {
        let mut bytes = Vec::new();
        let opened = fs::File::open(folder.join(path))
            .and_then(|file| file.take(MAX_INDEXED_BYTES).read_to_end(&mut bytes));
        opened
            .inspect_err(|error| {
                // The name of a file may be somebody's words.
                let folder = folder.display();
                tracing::warn!("a file in {folder} cannot be taken into memory: {error}");
            })
            .ok()?;
        Some(Changed {
            path: path.clone(),
            stamp: stamp.clone(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    };
    changed.filter_map(read).collect()
}

/// Replaces the pieces of changed files, and deletes the pieces of deleted files.
pub(super) fn take_in(
    tx: &Transaction<'_>,
    owner: AgentUid,
    changed: &[Changed],
    gone: &[String],
) -> rusqlite::Result<()> {
    for file in changed {
        replace(
            tx,
            owner,
            &file.path,
            chunks(&file.text),
            file.stamp.modified_ms,
        )?;
        let mut upsert = tx.prepare_cached(
            "INSERT INTO memory_files (agent_uid, path, stamp) VALUES (?1, ?2, ?3) \
             ON CONFLICT (agent_uid, path) DO UPDATE SET stamp = excluded.stamp",
        )?;
        upsert.execute(params![owner.to_string(), file.path, file.stamp.text])?;
    }
    for path in gone {
        replace(tx, owner, path, Vec::new(), 0)?;
        tx.execute(
            "DELETE FROM memory_files WHERE agent_uid = ?1 AND path = ?2",
            params![owner.to_string(), path],
        )?;
    }
    Ok(())
}

/// Unchanged pieces keep their rows.
fn replace(
    tx: &Transaction<'_>,
    owner: AgentUid,
    path: &str,
    mut wanted: Vec<String>,
    created_at: i64,
) -> rusqlite::Result<()> {
    let mut stale = Vec::new();
    for (id, text) in rows::pieces(tx, owner, path)? {
        match wanted.iter().position(|piece| *piece == text) {
            Some(index) => drop(wanted.remove(index)),
            None => stale.push(id),
        }
    }
    rows::delete(tx, owner, &stale)?;
    for text in wanted {
        let path = Some(path.to_owned());
        let new = New {
            owner,
            visibility: Visibility::Private,
            path,
            text,
            said: Provenance::default(),
            labels: Labels::NONE,
            created_at,
        };
        rows::insert(tx, &new)?;
    }
    Ok(())
}

/// Forgets an agent's files, so that all are taken in anew.
pub(super) fn forget(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<()> {
    tx.execute(
        "DELETE FROM memory_files WHERE agent_uid = ?1",
        [owner.to_string()],
    )
    .map(drop)
}
