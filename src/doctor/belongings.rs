//! Every file and folder of the home, with its purpose and its size.

use std::fs;
use std::path::Path;

use crate::config::ENVIRONMENT_FILE;
use crate::operations::diagnosis::Belonging;

/// The book tells the consequences of losing each, under "The home folder".
const KNOWN: &[(&str, &str)] = &[
    ("config.toml", "settings"),
    (
        "config.schema.json",
        "which settings there are, for editors",
    ),
    ("IDENTITY.md", "identity of all agents"),
    ("SOUL.md", "identity of all agents"),
    ("AGENTS.md", "identity of all agents"),
    ("TOOLS.md", "identity of all agents"),
    ("USER.md", "identity of all agents"),
    (
        "agents",
        "agents: identity, memory, notes, skills, workspaces",
    ),
    ("skills", "skills for all agents"),
    ("shared", "folders that agents share"),
    ("secrets", "tokens and keys"),
    (ENVIRONMENT_FILE, "variables for a service: tokens and keys"),
    ("archive", "removed agents, and unused files"),
    (
        "parlor.db",
        "the database: conversations, memories, people, pins",
    ),
    ("parlor.db-wal", "newest writes to the database"),
    ("parlor.db-shm", "belongs to the database"),
    (
        "parlor.db.saved",
        "rows saved when the database was taken away",
    ),
    ("parlor.db.new", "a database that was not finished"),
    ("parlor.stamp", "the sign that there is a database"),
    ("backups", "backups, and the database from before upgrades"),
    ("outgoing", "files to be sent"),
    ("web", "files of the web chat"),
    ("incoming", "files being fetched"),
    ("results", "long results of tools"),
    ("logs", "the log"),
    ("chat_history", "lines typed in `parlor chat`"),
    ("unfinished.json", "a change of an agent under way"),
    ("restoring.json", "a restore under way"),
    ("parlor.lock", "held while a gateway runs"),
    ("config.lock", "held while config.toml is edited"),
    ("parlor.sock", "the way of verbs to the gateway"),
];

/// Names with an ending of their own.
const KNOWN_PREFIXES: &[(&str, &str)] = &[
    ("before-restore-", "the home from before a restore"),
    (
        "parlor.db.saved-",
        "rows saved when the database was taken away",
    ),
];

fn what(name: &str) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let by_prefix = || {
        KNOWN_PREFIXES
            .iter()
            .find(|(prefix, _)| name.starts_with(prefix))
    };
    known.or_else(by_prefix).map(|(_, what)| *what)
}

pub(super) fn is_known(name: &str) -> bool {
    what(name).is_some()
}

/// The entries of the home, by name. Names unknown to Parlor are not told, because they may be
/// private.
pub(super) fn of(home: &Path) -> Vec<Belonging> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let mut found: Vec<Belonging> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let what = what(&name)?;
            let (bytes, files) = size(&entry.path());
            Some(Belonging {
                path: name,
                what: what.to_owned(),
                bytes,
                files,
            })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Bytes and files, without following links.
fn size(path: &Path) -> (u64, u64) {
    let (mut bytes, mut files, mut open) = (0, 0, vec![path.to_owned()]);
    while let Some(next) = open.pop() {
        let Ok(metadata) = fs::symlink_metadata(&next) else {
            continue;
        };
        if metadata.is_dir() {
            let entries = fs::read_dir(&next).into_iter().flatten().flatten();
            open.extend(entries.map(|entry| entry.path()));
        } else {
            bytes += metadata.len();
            files += 1;
        }
    }
    (bytes, files)
}
