//! Things more open than they may seem, for `parlor security check` and the doctor.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Patient;
use crate::agents::memory::Reader;
use crate::agents::{Agent, Memories, Registry};
use crate::config::Config;
use crate::domain::AgentId;
use crate::home::exposure::{Belongings, Exposure, Facts, Level, exposures};
use crate::operations::diagnosis::{Finding, State};
use crate::routing::doors::SetInChat;
use crate::routing::{Table, openings, pins};
use crate::storage::{Db, StoreError};

/// Modes have checks of their own.
const MODES: &str = "modes";

pub(super) async fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(snapshot) = &patient.snapshot else {
        return Vec::new();
    };
    let home = patient.home.path();
    let rows = patient.db().map(|db| (db, snapshot.registry.as_ref()));
    let found = look(home, (&snapshot.config, &snapshot.table), rows).await;
    let mut findings: Vec<Finding> = found
        .unwrap_or_default()
        .into_iter()
        .filter(|exposure| exposure.check != MODES)
        .map(finding)
        .collect();
    if findings.is_empty() {
        let text = "Nothing is more open than it should be.";
        findings.push(Finding::ok("security", text));
    }
    findings
}

fn finding(exposure: Exposure) -> Finding {
    let state = match exposure.level {
        Level::Note => State::Note,
        Level::Warning => State::Warn,
        Level::Danger => State::Bad,
    };
    let id = format!("security.{}", exposure.check);
    Finding::new(&id, state, exposure.finding).fix(exposure.fix)
}

/// The exposures of a house. A home without a database has no memories and no pins.
pub(crate) async fn look(
    home: &Path,
    (config, table): (&Config, &Table),
    rows: Option<(&Db, &Registry)>,
) -> Result<Vec<Exposure>, StoreError> {
    let mut facts = Facts {
        readable_by_others: readable_by_others(home),
        ..Facts::default()
    };
    if let Some((db, registry)) = rows {
        let read = |connection: &rusqlite::Connection| {
            Ok(SetInChat {
                pins: pins::all(connection)?,
                opened: openings::all(connection)?,
            })
        };
        facts.set_in_chat = db.read(read).await?;
        facts.belongings = belongings(registry, &Memories::new(db.clone())).await?;
    }
    Ok(exposures(config, table, &facts))
}

async fn belongings(
    registry: &Registry,
    memories: &Memories,
) -> Result<HashMap<AgentId, Belongings>, StoreError> {
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
    let inside = [home.join("secrets")].into_iter().chain(secrets);
    let loose = |path: &Path| {
        let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| (path.display().to_string(), mode))
    };
    // A closed home keeps others out of all its files.
    let Some(own) = loose(home) else {
        return Vec::new();
    };
    let inside = inside.filter_map(|path| loose(&path));
    std::iter::once(own).chain(inside).collect()
}
