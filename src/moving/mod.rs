//! Moving in: agents, memories, bindings, people and conversations of other systems.
//!
//! A system's file reads its layout into a [`found::Found`]; [`plan`] compares that with the home;
//! [`carry_out`] does what is new. The source is only read. Everything that is not carried is in the
//! [`Report`], with the reason.

mod carry_out;
mod export;
mod found;
mod hermes;
mod mapping;
mod moltis;
mod openclaw;
mod plan;
mod report;
mod running;
mod signet;
mod source;
mod spool;
mod staging;
mod tree;
mod zeroclaw;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::storage::StoreError;
use crate::tenants::{Site, TenantError};
use found::Found;
use source::Source;

pub(crate) use export::openclaw as export_openclaw;
pub(crate) use report::{Item, Kind, Report, State, System};

/// What to import, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) system: System,
    pub(crate) folder: PathBuf,
    /// A second folder of the installation, where it has one.
    pub(crate) config_folder: Option<PathBuf>,
    /// The account whose bot moves in, where there are several.
    pub(crate) account: Option<String>,
    /// Ids there and the ids they get here.
    pub(crate) names: Vec<(String, String)>,
    /// Tokens and keys come along.
    pub(crate) with_secrets: bool,
    /// Global memories stay global.
    pub(crate) keep_global: bool,
    /// Also what was noted by the way.
    pub(crate) everything: bool,
    /// Nothing is kept.
    pub(crate) only_look: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum MovingError {
    /// The folder is not one of that system.
    #[error("{0}")]
    NoSource(String),
    #[error("{}: {error}", .path.display())]
    Disk { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Tenant(#[from] TenantError),
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Reads the source, and carries what is new into the home, or only tells what that would be.
pub(crate) async fn import(site: &Site, wish: Wish) -> Result<Report, MovingError> {
    let (home, reading) = (site.home.clone(), wish.clone());
    let (source, found) = blocking(move || look(&home, &reading)).await?;
    carry_out::run(site, &wish, source, found).await
}

fn look(home: &Path, wish: &Wish) -> Result<(Arc<Source>, Found), MovingError> {
    let folder = &wish.folder;
    let name = wish.system.name();
    let Ok(path) = std::fs::canonicalize(folder) else {
        return Err(MovingError::NoSource(format!(
            "there is no folder {}",
            folder.display()
        )));
    };
    if path.is_file() {
        return Err(MovingError::NoSource(format!(
            "{} is a file; unpack it first, and name the folder",
            folder.display()
        )));
    }
    let own = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    if path.starts_with(&own) || own.starts_with(&path) {
        return Err(MovingError::NoSource(format!(
            "{} is, or holds, the home of Parlor",
            path.display()
        )));
    }
    let source = Source::open(&path, home).map_err(disk(&path))?;
    let found = match wish.system {
        System::OpenClaw => openclaw::read(&source, wish),
        System::Hermes => hermes::read(&source, wish),
        System::ZeroClaw => zeroclaw::read(&source, wish),
        System::Moltis => moltis::read(&source, wish),
        System::Signet => signet::read(&source, wish),
    };
    let Some(mut found) = found else {
        return Err(MovingError::NoSource(format!(
            "{} has nothing of {name}",
            path.display()
        )));
    };
    bound(&source, &mut found);
    keep_schedules(&source, &mut found, wish.system);
    Ok((Arc::new(source), found))
}

/// Agents of a source.
const MOST_AGENTS: usize = 200;
/// Memories of an agent.
const MOST_MEMORIES: usize = 50_000;
/// Conversations of an agent; the newest come.
const MOST_CONVERSATIONS: usize = 20_000;
/// Rules of a source.
const MOST_RULES: usize = 1_000;

/// Cuts off what no house has.
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

/// Schedules are kept as files, for the day on which agents have some.
fn keep_schedules(source: &Source, found: &mut Found, system: System) {
    for agent in &mut found.agents {
        if agent.schedules.is_empty() {
            continue;
        }
        let path = plan::beside(system).join("schedules.json");
        for schedule in &agent.schedules {
            let name = ["name", "id"]
                .iter()
                .find_map(|key| schedule.get(key)?.as_str());
            let name = format!("{}: {}", agent.source_id, name.unwrap_or("a schedule"));
            let why = format!(
                "agents have no schedules here yet; it is kept in {}",
                path.display()
            );
            source.left(Kind::Schedule, name, why);
        }
        let text = serde_json::to_string_pretty(&agent.schedules).unwrap_or_default();
        agent.add_file(Kind::File, path, found::Content::Text(text + "\n"));
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
