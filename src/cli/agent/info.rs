//! `parlor agent info`.

use serde::Serialize;

use super::super::agent_tools::ToolReport;
use super::super::json::{Named, moment, time};
use super::super::names::Names;
use super::super::{Outcome, data_json, print};
use super::OpenHome;
use super::listing::{Row, row};
use super::texts::counted;
use crate::agents::memory::Stats;
use crate::agents::skills::Skill;
use crate::agents::{Agent, Colleague, Identity};
use crate::clock::now_ms;
use crate::commands::texts::steering as texts;
use crate::operations::budgets::{self, Account, Holder};
use crate::tenants;
use crate::tenants::health::{Health, State};

#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    row: Row,
    uid: String,
    created_at: Option<String>,
    /// When it was renamed, removed or brought back last, or made.
    updated_at: Option<String>,
    creature: Option<&'a str>,
    vibe: Option<&'a str>,
    bootstrapped: bool,
    /// What its bindings match, with the place's name where it is one place.
    bound: Vec<Named>,
    /// Places that were given to it with /agent.
    pinned: Vec<Pinned>,
    /// Agents of the same peer group: this agent may write to them and give them work.
    peers: Vec<String>,
    files: Vec<FileInfo>,
    /// The file in place of SOUL.md, if the config names a personality.
    personality: Option<&'a str>,
    /// The length of the config's own prompt, in bytes.
    system_prompt_bytes: Option<usize>,
    skills: Vec<Skill>,
    memory: Option<MemoryInfo>,
    #[serde(flatten)]
    tools: ToolReport,
    /// When its last turn without an answer ended, and why.
    last_error: Option<LastError>,
    /// A limit has nothing left, so it answers nobody.
    over_budget: bool,
}

#[derive(Serialize)]
struct Pinned {
    place: Named,
    set_by: Named,
}

#[derive(Serialize)]
struct LastError {
    at: String,
    #[serde(skip)]
    shown: String,
    reason: String,
}

#[derive(Serialize)]
struct MemoryInfo {
    /// For one person each.
    person: u32,
    /// For one place each.
    place: u32,
    private: u32,
    global: u32,
    archived: u32,
    /// Of MEMORY.md and daily notes.
    pieces: u32,
    memory_file_bytes: Option<u64>,
    last_saved_at: Option<String>,
    #[serde(skip)]
    last_saved: Option<String>,
}

#[derive(Serialize)]
struct FileInfo {
    file: &'static str,
    #[serde(skip)]
    shown: String,
    origin: String,
    path: String,
    bytes: usize,
    problem: Option<String>,
}

pub(super) async fn info(open: &OpenHome, agent: &Agent, json: bool) -> Outcome {
    let (identity, uid) = (open.identity(agent), agent.uid);
    let (config, id) = (open.checked.config.clone(), agent.id.clone());
    let read = move |connection: &rusqlite::Connection| {
        let limits = budgets::of_house(connection, &config, now_ms())?;
        let mut own = limits.iter().filter(|limit| match &limit.holder {
            Holder::Agent(agent) => *agent == id,
            Holder::House => true,
            Holder::Person { .. } => false,
        });
        let over_budget = own.any(Account::is_over);
        Ok((tenants::last_error(connection, uid)?, over_budget))
    };
    let (last_error, over_budget) = open.db.read(read).await?;
    let names = open.names().await?;
    let known = open.agent_rows.get(&agent.id);
    let info = Info {
        row: row(open, agent),
        uid: agent.uid.to_string(),
        created_at: known.map(|known| time(known.created_at)),
        updated_at: known.map(|known| time(known.updated_at)),
        creature: agent.creature.as_deref(),
        vibe: agent.vibe.as_deref(),
        bootstrapped: open.is_bootstrapped(agent),
        bound: bound(open, agent, &names),
        pinned: pinned(open, agent, &names),
        peers: agent.peers.iter().map(peer).collect(),
        files: file_infos(&identity),
        personality: agent.personality.as_deref(),
        system_prompt_bytes: agent.system_prompt.as_ref().map(String::len),
        skills: identity.skills().readable.clone(),
        last_error: last_error.map(|(at, reason)| LastError {
            at: time(at),
            shown: moment(at),
            reason,
        }),
        memory: open.stats.get(&agent.uid).map(memory_info),
        over_budget,
        tools: ToolReport::of(agent),
    };
    if json {
        data_json(&info)?;
    } else {
        print::wrapped(&info_text(agent, &info));
    }
    Ok(())
}

fn bound(open: &OpenHome, agent: &Agent, names: &Names) -> Vec<Named> {
    let named = |pattern: &str| {
        pattern
            .parse()
            .map_or_else(|_| Named::new(pattern, None), |key| names.place(&key))
    };
    open.bindings_of(agent).into_iter().map(named).collect()
}

fn pinned(open: &OpenHome, agent: &Agent, names: &Names) -> Vec<Pinned> {
    let pinned = open.pins_of(agent).map(|(key, pin)| Pinned {
        place: names.place(key),
        set_by: names.author(&pin.set_by),
    });
    pinned.collect()
}

fn peer(peer: &Colleague) -> String {
    peer.platform.map_or_else(
        || peer.id.to_string(),
        |platform| format!("{} (on {platform})", peer.id),
    )
}

fn memory_info(stats: &Stats) -> MemoryInfo {
    let counts = &stats.counts;
    MemoryInfo {
        person: counts.person,
        place: counts.place,
        private: counts.private,
        global: counts.global,
        archived: counts.archived,
        pieces: counts.pieces,
        memory_file_bytes: stats.memory_file_bytes,
        last_saved_at: counts.last_saved_at.map(time),
        last_saved: counts.last_saved_at.map(moment),
    }
}

fn memory_line(memory: Option<&MemoryInfo>) -> String {
    let Some(memory) = memory else {
        return "memory: off".into();
    };
    let file = memory.memory_file_bytes.map_or_else(
        || "no MEMORY.md".to_owned(),
        |bytes| format!("MEMORY.md has {bytes} bytes"),
    );
    let last = memory.last_saved.as_ref().map_or_else(
        || "nothing saved yet".to_owned(),
        |time| format!("last saved {time}"),
    );
    let pieces = if memory.pieces == 1 {
        "1 piece".to_owned()
    } else {
        format!("{} pieces", memory.pieces)
    };
    format!(
        "memory: {} private, {} global, {} of people, {} of places, {pieces} of files; {file}; {last}",
        memory.private, memory.global, memory.person, memory.place
    )
}

fn file_infos(identity: &Identity) -> Vec<FileInfo> {
    let info = |loaded: &crate::agents::LoadedFile| FileInfo {
        file: loaded.file.name(),
        shown: loaded.stand_in.as_ref().map_or_else(
            || loaded.name().to_owned(),
            |path| format!("personality {path}"),
        ),
        origin: loaded.origin.to_string(),
        path: loaded.path.display().to_string(),
        bytes: loaded.content.len(),
        problem: loaded.problem.clone(),
    };
    identity.files().iter().map(info).collect()
}

fn health_text(health: &Health, over_budget: bool) -> String {
    let answered = health
        .last_success
        .map_or_else(|| "none".to_owned(), moment);
    let state = match &health.state {
        State::Ready | State::Busy if over_budget => "over budget".to_owned(),
        state => texts::state(state),
    };
    format!(
        "state: {state}\nwaiting: {}\nlast 24 hours: {}, {} failed\nlast answer: {answered}\n",
        counted(health.waiting, "message", "messages"),
        counted(
            usize::try_from(health.turns_of_day).unwrap_or(usize::MAX),
            "turn",
            "turns"
        ),
        health.failed_of_day,
    )
}

fn info_text(agent: &Agent, info: &Info<'_>) -> String {
    let mut text = format!(
        "{} ({})\nmodel: {}\n",
        agent.label(),
        agent.id,
        agent.models.model
    );
    let traits = [("creature", &agent.creature), ("vibe", &agent.vibe)];
    for (name, text_of) in traits {
        if let Some(words) = text_of {
            text.push_str(&format!("{name}: {words}\n"));
        }
    }
    let first = if info.bootstrapped { "done" } else { "not yet" };
    text.push_str(&format!("first turn: {first}\n"));
    for file in &info.files {
        let problem = file
            .problem
            .as_ref()
            .map_or_else(String::new, |problem| format!(" ({problem})"));
        text.push_str(&format!("{}: {}{problem}\n", file.shown, file.origin));
    }
    if let Some(bytes) = info.system_prompt_bytes {
        text.push_str(&format!("system_prompt: {bytes} bytes\n"));
    }
    for skill in &info.skills {
        text.push_str(&format!(
            "skill {}: {}, {}\n",
            skill.name, skill.origin, skill.because
        ));
    }
    if info.skills.is_empty() {
        text.push_str("skills: none\n");
    }
    text.push_str(&memory_line(info.memory.as_ref()));
    text.push('\n');
    text.push_str(&info.tools.text());
    if !info.peers.is_empty() {
        text.push_str(&format!("peers: {}\n", info.peers.join(", ")));
    }
    if info.bound.is_empty() && info.pinned.is_empty() {
        text.push_str("places: none of its own\n");
    }
    for place in &info.bound {
        text.push_str(&format!("bound: {}\n", place.text()));
    }
    for pinned in &info.pinned {
        text.push_str(&format!(
            "pinned: {}, by {}\n",
            pinned.place.text(),
            pinned.set_by.text()
        ));
    }
    if let Some(health) = info.row.health() {
        text.push_str(&health_text(health, info.over_budget));
    }
    match &info.last_error {
        None => text.push_str("last error: none"),
        Some(error) => {
            text.push_str(&format!("last error: {}, {}", error.shown, error.reason));
        }
    }
    text
}
