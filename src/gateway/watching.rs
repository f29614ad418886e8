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

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::GatewayState;
use crate::home::ReloadHandle;

/// The silence after which a save counts as finished.
const QUIET: Duration = Duration::from_millis(200);
/// Steady writes hold nothing back for longer.
const LONGEST: Duration = Duration::from_millis(1500);
/// A file that is replaced may be missing for this long.
const MISSING: Duration = Duration::from_millis(500);
/// Changed paths waiting to be looked at. Beyond them the whole home counts as changed.
const QUEUE: usize = 1024;

/// Follows saved files until the gateway stops.
pub(super) async fn watch(state: Arc<GatewayState>, reload: ReloadHandle) {
    let (events, mut changed) = mpsc::channel(QUEUE);
    let home = state.home.clone();
    let mut watcher = match watcher(&home, events) {
        Ok(watcher) => watcher,
        Err(error) => {
            tracing::warn!(
                "saved files are not noticed: {error}. /reload and SIGHUP have the config read anew"
            );
            return;
        }
    };
    follow_agents(&mut watcher, &home);
    let mut known = Contents::of(&home);
    loop {
        let first = tokio::select! {
            first = changed.recv() => first,
            () = state.stop.cancelled() => None,
        };
        let Some(first) = first else { return };
        let paths = together(first, &mut changed).await;
        look_at(&home, &paths, &mut known, &reload).await;
        follow_agents(&mut watcher, &home);
    }
}

fn watcher(home: &Path, events: mpsc::Sender<PathBuf>) -> notify::Result<RecommendedWatcher> {
    let everything = home.join("config.toml");
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        if !is_change(&event.kind) && !event.need_rescan() {
            return;
        }
        let paths = match event.paths.as_slice() {
            [] => std::slice::from_ref(&everything),
            paths => paths,
        };
        for path in paths {
            // A full queue is read as a whole soon.
            drop(events.try_send(path.clone()));
        }
    })?;
    watcher.watch(home, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Reading a file is no change, else the gateway's own reading would never end.
fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => *kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Watches the folders of the agents and of skills, but no workspace. A watched folder may be named
/// again.
fn follow_agents(watcher: &mut RecommendedWatcher, home: &Path) {
    let mut follow = |folder: PathBuf, mode| {
        if folder.is_dir()
            && let Err(error) = watcher.watch(&folder, mode)
        {
            tracing::debug!("saves in {} are not noticed: {error}", folder.display());
        }
    };
    follow(home.join("skills"), RecursiveMode::Recursive);
    follow(home.join("agents"), RecursiveMode::NonRecursive);
    let agents = std::fs::read_dir(home.join("agents"));
    for agent in agents.into_iter().flatten().flatten() {
        follow(agent.path(), RecursiveMode::NonRecursive);
        follow(agent.path().join("skills"), RecursiveMode::Recursive);
    }
}

/// All paths of a save, which may be several writes.
async fn together(first: PathBuf, changed: &mut mpsc::Receiver<PathBuf>) -> BTreeSet<PathBuf> {
    let longest = Instant::now() + LONGEST;
    let mut paths = BTreeSet::from([first]);
    loop {
        let quiet = (Instant::now() + QUIET).min(longest);
        match timeout_at(quiet, changed.recv()).await {
            Ok(Some(path)) => drop(paths.insert(path)),
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
        if let Some(saved) = saved(home, &path)
            && known.has_changed(&path)
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

/// The files of a folder that was not watched before its first file was saved.
fn new_files(home: &Path, path: &Path) -> Vec<PathBuf> {
    let is_of_agents =
        path.starts_with(home.join("agents")) || path.starts_with(home.join("skills"));
    if !is_of_agents || !path.is_dir() {
        return Vec::new();
    }
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let below = inside(path);
    let further = below
        .iter()
        .filter(|path| path.is_dir())
        .flat_map(|path| inside(path));
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
