//! Moving in: agents, memories, bindings, people and conversations of other systems.
//!
//! A system's file reads its layout into a [`found::Found`]; [`plan`] compares the contents with
//! the home; [`carry_out`] carries everything new. The source is only read. The [`Report`] names
//! everything left behind, with the reason.

mod carry_out;
mod export;
mod found;
mod hermes;
mod homes;
mod mapping;
mod moltis;
mod openclaw;
mod plan;
mod report;
mod running;
mod schedules;
mod signet;
mod source;
mod spool;
mod staging;
mod telling;
mod tree;
mod unpacking;
mod zeroclaw;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::storage::StoreError;
use crate::tenants::{Site, TenantError};
use found::Found;
use report::Kind;
use source::Source;
use staging::Staging;

pub(crate) use export::openclaw as export_openclaw;
pub(crate) use report::{Report, State, System};
pub(crate) use telling::told;

/// The source and the extent of an import.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) system: System,
    /// The folder, or an archive of the folder.
    pub(crate) folder: PathBuf,
    /// A second folder of the installation, if any.
    pub(crate) config_folder: Option<PathBuf>,
    /// The account whose bot moves in, if the source has several.
    pub(crate) account: Option<String>,
    /// Ids there and the ids they get here.
    pub(crate) names: Vec<(String, String)>,
    /// Tokens and keys come along.
    pub(crate) with_secrets: bool,
    /// Global memories stay global.
    pub(crate) keep_global: bool,
    /// Notes taken by the way come too.
    pub(crate) everything: bool,
    /// Nothing is kept.
    pub(crate) only_look: bool,
}

impl Wish {
    /// A look at the whole of an installation.
    pub(crate) fn look(system: System, folder: PathBuf) -> Self {
        Wish {
            system,
            folder,
            config_folder: None,
            account: None,
            names: Vec::new(),
            with_secrets: false,
            keep_global: false,
            everything: false,
            only_look: true,
        }
    }
}

/// The contents of an installation, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glance {
    pub(crate) agents: usize,
    /// Places with an agent of their own.
    pub(crate) places: usize,
    /// The topics and threads among the places.
    pub(crate) topics: usize,
    pub(crate) conversations: usize,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum MovingError {
    /// The folder does not belong to the system.
    #[error("{0}")]
    NoSource(String),
    #[error("{}: {error}", .path.display())]
    Disk { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Tenant(#[from] TenantError),
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Reads the source, and carries everything new into the home, or only tells the plan.
pub(crate) async fn import(site: &Site, wish: Wish) -> Result<Report, MovingError> {
    let (home, reading) = (site.home.clone(), wish.clone());
    let (source, found) = blocking(move || look(&home, &home, &reading)).await?;
    carry_out::run(site, &wish, source, found).await
}

/// Counts the contents of an installation, before its future home exists. Copies are made in a
/// folder for temporary files.
pub(crate) async fn glance(home: &Path, wish: Wish) -> Result<Glance, MovingError> {
    let home = home.to_owned();
    blocking(move || {
        let scratch = Scratch::new()?;
        let (_source, found) = look(&home, &scratch.0, &wish)?;
        let is_topic = |pattern: &str| pattern.contains(":topic:") || pattern.contains(":thread:");
        let topics = found.bindings.iter();
        let topics = topics.filter(|binding| is_topic(&binding.pattern));
        let agents = found.agents.iter();
        Ok(Glance {
            agents: found.agents.len(),
            places: found.bindings.len(),
            topics: topics.count(),
            conversations: agents.map(|agent| agent.conversations.len()).sum(),
        })
    })
    .await
}

/// A folder of this process alone, beside folders of others.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, MovingError> {
        let path = std::env::temp_dir().join(format!("parlor-{}", Uuid::new_v4()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(disk(&path))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover does no harm: the system empties the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads the source. Copies and unpacked files are in a folder of `scratch` meanwhile.
fn look(home: &Path, scratch: &Path, wish: &Wish) -> Result<(Arc<Source>, Found), MovingError> {
    let folder = &wish.folder;
    let name = wish.system.name();
    let Ok(path) = std::fs::canonicalize(folder) else {
        return Err(MovingError::NoSource(format!(
            "there is no folder {}",
            folder.display()
        )));
    };
    if !path.is_dir() && !path.is_file() {
        return Err(MovingError::NoSource(format!(
            "{} is neither a folder nor a file",
            folder.display()
        )));
    }
    let own = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    if path.is_dir() && (path.starts_with(&own) || own.starts_with(&path)) {
        return Err(MovingError::NoSource(format!(
            "{} is, or holds, the home of Parlor",
            path.display()
        )));
    }
    let staging = Staging::new(scratch).map_err(disk(scratch))?;
    let (source, wish) = match path.is_dir() {
        true => (
            Source::open(&path, staging).map_err(disk(&path))?,
            wish.clone(),
        ),
        false => unpack(&path, staging, wish.clone())?,
    };
    let found = match wish.system {
        System::OpenClaw => openclaw::read(&source, &wish),
        System::Hermes => hermes::read(&source, &wish),
        System::ZeroClaw => zeroclaw::read(&source, &wish),
        System::Moltis => moltis::read(&source, &wish),
        System::Signet => signet::read(&source, &wish),
    };
    let Some(mut found) = found else {
        return Err(MovingError::NoSource(format!(
            "{} has nothing of {name}",
            path.display()
        )));
    };
    bound(&source, &mut found);
    schedules::carry(&source, &mut found, wish.system);
    Ok((Arc::new(source), found))
}

/// Unpacks an archive. The config of an installation may be in a folder of its own there.
fn unpack(archive: &Path, staging: Staging, wish: Wish) -> Result<(Source, Wish), MovingError> {
    let into = staging.fresh("archive");
    let made = DirBuilder::new().mode(0o700).create(&into);
    made.map_err(disk(&into))?;
    let left_out = unpacking::unpack(archive, &into)
        .map_err(|problem| MovingError::NoSource(format!("{}: {problem}", archive.display())))?;
    let folder = unpacking::home_in(&into, wish.system);
    let source = Source::unpacked(&folder, archive, staging).map_err(disk(archive))?;
    for name in left_out {
        source.left(Kind::File, name, "it is no plain file, or there twice");
    }
    let apart = match wish.system {
        System::Moltis => unpacking::with_one_of(&into, &["moltis.toml"]),
        _ => None,
    };
    let config_folder = wish.config_folder.clone().or(apart);
    Ok((
        source,
        Wish {
            config_folder,
            ..wish
        },
    ))
}

/// Agents of a source.
const MOST_AGENTS: usize = 200;
/// Memories of an agent.
const MOST_MEMORIES: usize = 50_000;
/// Conversations of an agent; the newest come.
const MOST_CONVERSATIONS: usize = 20_000;
/// Rules of a source.
const MOST_RULES: usize = 1_000;

/// Cuts off amounts beyond any real house.
fn bound(source: &Source, found: &mut Found) {
    let cut = |kind, count: usize, most: usize| {
        if count > most {
            let what = format!("{count} of them");
            source.left(kind, what, format!("at most {most} are carried"));
        }
        count.saturating_sub(most)
    };
    cut(Kind::Agent, found.agents.len(), MOST_AGENTS);
    found.agents.truncate(MOST_AGENTS);
    cut(Kind::Binding, found.bindings.len(), MOST_RULES);
    found.bindings.truncate(MOST_RULES);
    for agent in &mut found.agents {
        cut(Kind::Memory, agent.memories.len(), MOST_MEMORIES);
        agent.memories.truncate(MOST_MEMORIES);
        let old = cut(
            Kind::Conversation,
            agent.conversations.len(),
            MOST_CONVERSATIONS,
        );
        agent.conversations.drain(..old);
    }
}

fn disk(path: &Path) -> impl FnOnce(io::Error) -> MovingError {
    let path = path.to_owned();
    move |error| MovingError::Disk { path, error }
}

/// Runs work on files outside the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MovingError> + Send + 'static,
) -> Result<T, MovingError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Failed(format!("importing: {error}")))?
}

/// `1 file`, `2 files`.
fn some(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}
