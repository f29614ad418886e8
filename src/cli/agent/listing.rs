//! `parlor agent list`.

use serde::Serialize;

use super::super::table::{Column, table};
use super::super::{Failure, Outcome, data, data_json, print};
use super::OpenHome;
use crate::agents::{Agent, Skills, memory};
use crate::commands::texts::steering as texts;
use crate::domain::AgentId;
use crate::operations;
use crate::tenants::health::{Health, State};
use crate::tenants::{self, Archive, Origin, Site};

#[derive(Serialize)]
pub(super) struct Row {
    id: String,
    name: String,
    emoji: Option<String>,
    model: Option<String>,
    effective_skills: Vec<String>,
    /// Bindings of the config.
    bindings: usize,
    /// Places that were given to it with /agent.
    pins: usize,
    /// Saved memories; none if memory is off.
    memories: Option<u32>,
    origin: Origin,
    default: bool,
    /// `ready`, `busy`, `paused`, `failing`, or why it is no agent of the config.
    state: &'static str,
    /// The state in words, for the table.
    #[serde(skip)]
    shown: String,
    /// The name for `parlor agent restore`.
    archive: Option<String>,
    /// Absent for agents that are not in config.toml.
    health: Option<Health>,
}

impl Row {
    pub(super) fn health(&self) -> Option<&Health> {
        self.health.as_ref()
    }
}

pub(super) async fn list(open: &OpenHome, json: bool) -> Outcome {
    let rows = rows(open).await?;
    if json {
        data_json(&rows)?;
        return Ok(());
    }
    let columns = [
        Column::Whole("ID"),
        Column::Words("NAME"),
        Column::Words("MODEL"),
        Column::Number("SKILLS"),
        Column::Number("PLACES"),
        Column::Number("MEMORIES"),
        Column::Words("STATE"),
    ];
    let cells = rows.into_iter().map(|row| {
        let name = [row.emoji.as_deref().unwrap_or(""), &row.name].join(" ");
        let [skills, places] =
            [row.effective_skills.len(), row.bindings + row.pins].map(|count| count.to_string());
        let memories = row
            .memories
            .map_or_else(|| "off".to_owned(), |count| count.to_string());
        [
            row.id,
            name.trim().to_owned(),
            row.model.unwrap_or_default(),
            skills,
            places,
            memories,
            row.shown,
        ]
    });
    data(format_args!("{}", table(columns, cells.collect())));
    Ok(())
}

/// Agents of the config, then folders without a table, then agents known to the store alone, then
/// removed agents.
async fn rows(open: &OpenHome) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for agent in open.registry.all() {
        rows.push(row(open, agent));
    }
    rows.extend(
        tenants::discovered(&open.checked.config, &open.home)
            .iter()
            .map(discovered),
    );
    let site = Site {
        home: open.home.clone(),
        db: open.db.clone(),
        by: operations::actor(nix::unistd::geteuid().as_raw()),
    };
    for (id, known) in tenants::stored_only(&site, &open.checked.config).await? {
        let state = format!("not in config.toml any more; `parlor agent adopt {id}` adds it again");
        let state = print::to_type(&state).into_owned();
        let memories = u32::try_from(known.memories).ok();
        rows.push(Row {
            memories,
            ..without_config(&id, Origin::Stored, state)
        });
    }
    for archive in tenants::archives(&open.home) {
        let uid = archive.uid;
        let memories = open
            .db
            .read(move |connection| memory::count_of(connection, uid))
            .await?;
        rows.push(Row {
            memories: Some(memories),
            ..removed(&archive)
        });
    }
    Ok(rows)
}

pub(super) fn row(open: &OpenHome, agent: &Agent) -> Row {
    Row {
        id: agent.id.to_string(),
        name: agent.name.clone(),
        emoji: agent.emoji.clone(),
        model: Some(agent.models.model.to_string()),
        effective_skills: Skills::load(agent)
            .names()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        bindings: open.bindings_of(agent).len(),
        pins: open.pins_of(agent).count(),
        memories: open.memories_of(agent),
        origin: Origin::Configured,
        default: agent.is_default,
        state: open
            .health_of(agent)
            .map_or("ready", |health| health.state.as_str()),
        shown: state(agent, open.health_of(agent)),
        archive: None,
        health: open.health_of(agent).cloned(),
    }
}

/// `default, paused by Alice`. Being ready needs no word.
fn state(agent: &Agent, health: Option<&Health>) -> String {
    let default = agent.is_default.then(|| "default".to_owned());
    let health = health.map(|health| &health.state);
    let health = health.filter(|state| !matches!(state, State::Ready | State::Busy));
    let words: Vec<String> = default
        .into_iter()
        .chain(health.map(texts::state))
        .collect();
    words.join(", ")
}

fn without_config(id: &AgentId, origin: Origin, shown: String) -> Row {
    let state = match origin {
        Origin::Archived => "archived",
        _ => "not in config",
    };
    let (name, emoji, model, effective_skills) = (String::new(), None, None, Vec::new());
    Row {
        id: id.to_string(),
        name,
        emoji,
        model,
        effective_skills,
        bindings: 0,
        pins: 0,
        memories: Some(0),
        origin,
        default: false,
        state,
        shown,
        archive: None,
        health: None,
    }
}

fn discovered(id: &AgentId) -> Row {
    without_config(
        id,
        Origin::Discovered,
        print::to_type(&format!(
            "not in config.toml; `parlor agent adopt {id}` adds it"
        ))
        .into_owned(),
    )
}

fn removed(archive: &Archive) -> Row {
    let shown = format!("archived as {}", archive.name);
    Row {
        archive: Some(archive.name.clone()),
        ..without_config(&archive.id, Origin::Archived, shown)
    }
}
