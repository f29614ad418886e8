//! Notices saved files of the home: the config, which is read anew, and identity files and skills,
//! which count from the next message on by themselves.
//!
//! Folders are watched, not files: editors put a new file in the place of the old one. File systems
//! that report nothing, such as some network mounts, need `/reload` or SIGHUP.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::GatewayState;
use super::watched_folders::{Changed, WatchedFolders};
use crate::agents::{has_seed, is_seed};
use crate::home::ReloadHandle;

/// The silence after which a save counts as finished.
const QUIET: Duration = Duration::from_millis(200);
/// Steady writes hold nothing back for longer.
const LONGEST: Duration = Duration::from_millis(1500);
/// A file that is replaced may be missing for this long.
const MISSING: Duration = Duration::from_millis(500);

/// Follows saved files until the gateway stops.
pub(super) async fn watch(state: Arc<GatewayState>, reload: ReloadHandle) {
    let home = state.home.clone();
    let mut folders = match watched(&home) {
        Ok(folders) => folders,
        Err(error) => {
            tracing::warn!(
                "saved files are not noticed: {error}. /reload and SIGHUP have the config read anew"
            );
            return;
        }
    };
    follow_agents(&mut folders, &home);
    let mut known = Contents::of(&home);
    loop {
        let paths = tokio::select! {
            paths = together(&mut folders, &home) => paths,
            () = state.stop.cancelled() => return,
        };
        if paths.is_empty() {
            return;
        }
        look_at(&home, &paths, &mut known, &reload).await;
        follow_agents(&mut folders, &home);
    }
}

fn watched(home: &Path) -> std::io::Result<WatchedFolders> {
    let mut folders = WatchedFolders::new()?;
    folders.follow(home)?;
    Ok(folders)
}

/// Watches the folders of the agents and of skills, but no workspace.
fn follow_agents(folders: &mut WatchedFolders, home: &Path) {
    let agents = entries(&home.join("agents"));
    let of_agents = agents.iter().map(|agent| agent.join("skills"));
    let pools: Vec<PathBuf> = std::iter::once(home.join("skills"))
        .chain(of_agents)
        .collect();
    let skills = pools.iter().flat_map(|pool| entries(pool));
    let all = std::iter::once(home.join("agents"))
        .chain(agents.iter().cloned())
        .chain(pools.iter().cloned())
        .chain(skills);
    for folder in all.filter(|folder| folder.is_dir()) {
        if let Err(error) = folders.follow(&folder) {
            tracing::debug!("saves in {} are not noticed: {error}", folder.display());
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// All paths of a save, which may be several writes. Empty when the system reports nothing more.
async fn together(folders: &mut WatchedFolders, home: &Path) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    let mut take = |changed: Changed| {
        paths.insert(match changed {
            Changed::Path(path) => path,
            Changed::Anything => home.join("config.toml"),
        });
    };
    let Some(first) = folders.next().await else {
        return paths;
    };
    take(first);
    let longest = Instant::now() + LONGEST;
    loop {
        let quiet = (Instant::now() + QUIET).min(longest);
        match timeout_at(quiet, folders.next()).await {
            Ok(Some(changed)) => take(changed),
            Ok(None) | Err(_) => return paths,
        }
    }
}

async fn look_at(
    home: &Path,
    paths: &BTreeSet<PathBuf>,
    known: &mut Contents,
    reload: &ReloadHandle,
) {
    let within = paths.iter().flat_map(|path| new_files(home, path));
    let paths_within: BTreeSet<PathBuf> = paths.iter().cloned().chain(within).collect();
    for path in paths_within {
        let is_first = !known.0.contains_key(&path) && is_first_file(&path);
        if let Some(saved) = saved(home, &path)
            && known.has_changed(&path)
            && !is_first
        {
            match saved.agent {
                Some(agent) => {
                    tracing::info!(agent.id = %agent, "reload agent={agent} cause={}", saved.file);
                }
                None => tracing::info!("reload cause={}", saved.file),
            }
        }
    }
    let config = home.join("config.toml");
    if paths.contains(&config) {
        if !config.exists() {
            tokio::time::sleep(MISSING).await;
        }
        drop(reload.file_changed("config.toml").await);
    }
}

/// The contents of the files of prompts, as sums, so that a save in several steps is told once and a
/// save without a change is not told.
struct Contents(BTreeMap<PathBuf, u64>);

impl Contents {
    fn of(home: &Path) -> Self {
        let mut known = Contents(BTreeMap::new());
        let folders = [home.to_owned(), home.join("agents"), home.join("skills")];
        let agents = std::fs::read_dir(home.join("agents"));
        let agents = agents.into_iter().flatten().flatten();
        let of_agents = agents.flat_map(|agent| [agent.path(), agent.path().join("skills")]);
        for folder in folders.into_iter().chain(of_agents) {
            let beside = IDENTITY_FILES.iter().map(|name| folder.join(name));
            for path in beside.chain(new_files(home, &folder)) {
                if saved(home, &path).is_some() {
                    known.has_changed(&path);
                }
            }
        }
        known
    }

    fn has_changed(&mut self, path: &Path) -> bool {
        let sum = std::fs::read(path).map(|bytes| {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            hasher.finish()
        });
        match sum {
            Ok(sum) => self.0.insert(path.to_owned(), sum) != Some(sum),
            // A deleted file counts too: the prompt is without it.
            Err(_) => self.0.remove(path).is_some(),
        }
    }
}

/// Whether the gateway wrote the file for a new agent, and nobody saved it. No other file is opened
/// here: closing the database would give up SQLite's locks on it, and those of this whole process.
fn is_first_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| has_seed(name));
    name.is_some_and(|name| std::fs::read(path).is_ok_and(|bytes| is_seed(name, &bytes)))
}

/// The files of a folder that was not watched before its first file was saved.
fn new_files(home: &Path, path: &Path) -> Vec<PathBuf> {
    let is_of_agents =
        path.starts_with(home.join("agents")) || path.starts_with(home.join("skills"));
    if !is_of_agents || !path.is_dir() {
        return Vec::new();
    }
    let below = entries(path);
    let further = below
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|path| entries(path));
    let further: Vec<PathBuf> = further.collect();
    below.into_iter().chain(further).collect()
}

/// A file that belongs to a prompt.
#[derive(Debug, PartialEq, Eq)]
struct Saved<'a> {
    /// None: all agents inherit it.
    agent: Option<&'a str>,
    file: &'a str,
}

const IDENTITY_FILES: [&str; 7] = [
    "IDENTITY.md",
    "SOUL.md",
    "AGENTS.md",
    "TOOLS.md",
    "USER.md",
    "BOOTSTRAP.md",
    "MEMORY.md",
];

fn saved<'a>(home: &Path, path: &'a Path) -> Option<Saved<'a>> {
    let inside = path.strip_prefix(home).ok()?;
    let parts: Option<Vec<&str>> = inside.iter().map(|part| part.to_str()).collect();
    match parts?.as_slice() {
        [file] if IDENTITY_FILES.contains(file) => Some(Saved { agent: None, file }),
        ["agents", agent, file] if IDENTITY_FILES.contains(file) => Some(Saved {
            agent: Some(agent),
            file,
        }),
        ["skills", skill, "SKILL.md"] => Some(Saved {
            agent: None,
            file: skill,
        }),
        ["agents", agent, "skills", skill, "SKILL.md"] => Some(Saved {
            agent: Some(agent),
            file: skill,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_prompt_are_told_from_others() {
        let check = |path: &str, expected: Option<(Option<&str>, &str)>| {
            let path = Path::new("/home").join(path);
            let found = saved(Path::new("/home"), &path).map(|saved| (saved.agent, saved.file));
            assert_eq!(found, expected, "{}", path.display());
        };
        check("SOUL.md", Some((None, "SOUL.md")));
        check("agents/dot/SOUL.md", Some((Some("dot"), "SOUL.md")));
        check("agents/dot/SOUL.md~", None);
        check("agents/dot/.SOUL.md.swp", None);
        check("agents/dot/workspace/SOUL.md", None);
        check("skills/tea/SKILL.md", Some((None, "tea")));
        check("agents/dot/skills/tea/SKILL.md", Some((Some("dot"), "tea")));
        check("config.toml", None);
        check("parlor.db-wal", None);
    }
}
