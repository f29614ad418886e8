//! `parlor security check`: tells where the house is more open than it may seem.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::Subcommand;

use super::{Failure, Outcome, data, data_json};
use crate::agents::memory::Reader;
use crate::agents::{Agent, Memories, Registry};
use crate::config::Secrets;
use crate::domain::AgentId;
use crate::home::exposure::{Belongings, Exposure, Facts, Level, exposures};
use crate::home::{CheckedConfig, Home};
use crate::routing::doors::SetInChat;
use crate::routing::{openings, pins};
use crate::storage::Db;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List what guests or other users of this machine can reach, with the
    /// fix for each; exits with 1 if something needs a decision
    Check {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(home: Home, Verb::Check { json }: Verb) -> Outcome {
    let checked = CheckedConfig::load(&home, Secrets::WherePresent)?;
    let facts = facts(&home, &checked).await?;
    let found = exposures(&checked.config, &checked.table, &facts);
    if json {
        data_json(&found)?;
    } else {
        data(format_args!("{}", in_words(&found)));
    }
    let serious = found.iter().filter(|found| found.level > Level::Note);
    match serious.count() {
        0 => Ok(()),
        _ if json => Err(Failure::told()),
        1 => Err(Failure::Failed("1 finding needs a decision".into())),
        more => Err(Failure::Failed(format!("{more} findings need a decision"))),
    }
}

fn in_words(found: &[Exposure]) -> String {
    if found.is_empty() {
        return "Nothing is more open than it should be.".into();
    }
    let one = |found: &Exposure| {
        let level = match found.level {
            Level::Danger => "danger",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        format!("{level}: {}\n  fix: {}", found.finding, found.fix)
    };
    found.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// A home without a database has no memories and no pins.
async fn facts(home: &Home, checked: &CheckedConfig) -> Result<Facts, Failure> {
    let mut facts = Facts {
        readable_by_others: readable_by_others(home.path()),
        ..Facts::default()
    };
    if !home.database().exists() {
        return Ok(facts);
    }
    let db = Db::open(&home.database()).await?;
    let read = |connection: &rusqlite::Connection| {
        Ok(SetInChat {
            pins: pins::all(connection)?,
            opened: openings::all(connection)?,
        })
    };
    facts.set_in_chat = db.read(read).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    facts.belongings = belongings(&registry, &Memories::new(db)).await?;
    Ok(facts)
}

async fn belongings(
    registry: &Registry,
    memories: &Memories,
) -> Result<HashMap<AgentId, Belongings>, Failure> {
    let mut found = HashMap::new();
    for agent in registry.all() {
        let mut own = Belongings {
            has_files: has_files(agent),
            ..Belongings::default()
        };
        if let Some(memory) = memories.of(agent) {
            let stats = memory.stats(&Reader::operator(&[], None)).await?;
            own.memories = stats.counts.private;
            own.has_memory_file = stats.memory_file_bytes.is_some_and(|bytes| bytes > 0);
        }
        found.insert(agent.id.clone(), own);
    }
    Ok(found)
}

fn has_files(agent: &Agent) -> bool {
    fs::read_dir(agent.folder.join("workspace")).is_ok_and(|mut entries| entries.next().is_some())
}

/// The home folder and every secret's file. The other files are behind the folder's mode.
fn readable_by_others(home: &Path) -> Vec<(String, u32)> {
    let secrets = fs::read_dir(home.join("secrets")).into_iter().flatten();
    let secrets = secrets.flatten().map(|entry| entry.path());
    let looked_at = [home.to_owned(), home.join("secrets")]
        .into_iter()
        .chain(secrets);
    let loose = looked_at.filter_map(|path| {
        let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| (path.display().to_string(), mode))
    });
    loose.collect()
}
