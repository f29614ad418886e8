//! `parlor memory …`: lists, export and import, and earlier versions of MEMORY.md. Works while the
//! gateway runs.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::agent::{find, named};
use super::json::{Named, time};
use super::names::Names;
use super::{
    Failure, Outcome, data, data_json, data_json_text, database, meant_place, note, running_config,
};
use crate::agents::memory::export::{self, Form};
use crate::agents::memory::{self, EditError, Entry, Imported, Scope};
use crate::agents::{Memories, Memory, Reader, Registry};
use crate::config::Config;
use crate::domain::PersonId;
use crate::home::Home;
use crate::storage::Db;

/// Without a verb, memories are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List memories, the newest first
    #[command(visible_alias = "ls")]
    List {
        /// Id or name of the agent [default: the default agent]
        #[arg(long, short)]
        agent: Option<String>,
        /// Only global memories
        #[arg(long, conflicts_with = "agent")]
        global: bool,
        #[command(flatten)]
        reader: ReaderArguments,
        /// Most memories to list
        #[arg(long, default_value_t = MOST_LISTED, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Print saved memories in a form that `import` reads
    Export {
        /// Id or name of the agent [default: all agents]
        #[arg(long, short)]
        agent: Option<String>,
        /// JSON lines, or Markdown for reading; both can be imported
        #[arg(long, value_enum, default_value = "jsonl")]
        format: Format,
    },
    /// Add exported memories; memories that are there already are skipped
    Import {
        /// File with what `memory export` printed
        file: PathBuf,
        /// Give all of them to this agent, whatever the file says
        #[arg(long, short)]
        agent: Option<String>,
    },
    /// List earlier versions of an agent's MEMORY.md
    Versions {
        /// Id or name of the agent [default: the default agent]
        #[arg(long, short)]
        agent: Option<String>,
    },
    /// Bring back an earlier version of an agent's MEMORY.md
    Restore {
        /// Version, as `memory versions` lists it
        #[arg(value_name = "VERSION")]
        which: String,
        /// Id or name of the agent [default: the default agent]
        #[arg(long, short)]
        agent: Option<String>,
    },
}

/// Memories of a list that is not asked for more.
const MOST_LISTED: u32 = 50;

/// The person and place that memories are read for.
#[derive(Args, Default)]
pub(super) struct ReaderArguments {
    /// Also memories for this person, by name or id such as telegram:12345678
    #[arg(long, value_name = "WHO")]
    person: Option<String>,
    /// Also memories for this place, by its name or key
    #[arg(long, value_name = "PLACE")]
    place: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Format {
    Jsonl,
    Markdown,
}

/// The agents of a home and their memories.
pub(super) struct Rooms {
    pub(super) memories: Memories,
    home: Home,
    registry: Registry,
    db: Db,
    config: Arc<Config>,
}

impl Rooms {
    pub(super) async fn open(home: &Home) -> Result<Self, Failure> {
        let checked = running_config::checked(home).await?;
        let db = database::open(&home.database()).await?;
        let (registry, _) = checked.registry(home, &db).await?;
        let checked = checked.with_grants(&db).await?;
        Ok(Rooms {
            memories: Memories::new(db.clone()),
            home: home.clone(),
            registry,
            db,
            config: checked.config,
        })
    }

    /// The operator, who looks on behalf of a person and a place.
    pub(super) async fn reader(&self, arguments: &ReaderArguments) -> Result<Reader, Failure> {
        let person = match &arguments.person {
            Some(word) => {
                let names = Names::load(&self.db, Some(&self.config)).await?;
                let found = names.find_person(word);
                Some(found.map_err(|error| Failure::WrongUse(error.to_string()))?)
            }
            None => None,
        };
        let place = meant_place::place_if_any(&self.home, arguments.place.as_deref()).await?;
        let people = &self.config.access.people;
        let ids = person
            .as_ref()
            .map_or(&[] as &[PersonId], |person| people.ids_of(person));
        Ok(Reader::operator(ids, place))
    }

    /// The memories of people and places that a reader leaves out, and how to ask for them.
    pub(super) async fn left_out(
        &self,
        memory: &Memory,
        reader: &Reader,
    ) -> Result<Option<String>, Failure> {
        let (all, seen) = (
            memory.stats_of_all().await?.counts,
            memory.stats(reader).await?.counts,
        );
        let people = all.person.saturating_sub(seen.person);
        let places = all.place.saturating_sub(seen.place);
        Ok(left_out(people, places))
    }

    /// The memory of the named agent, else of the default agent.
    pub(super) fn memory(&self, agent: Option<&str>) -> Result<Memory, Failure> {
        let agent = agent.map_or_else(
            || Ok(self.registry.default_agent()),
            |word| find(&self.registry, word),
        )?;
        let off = || {
            Failure::Failed(format!(
                "{} has no memory: memory = \"off\" in config.toml",
                agent.id
            ))
        };
        self.memories.of(agent).ok_or_else(off)
    }
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let rooms = Rooms::open(&home).await?;
    let verb = verb.unwrap_or(Verb::List {
        agent: None,
        global: false,
        reader: ReaderArguments::default(),
        limit: MOST_LISTED,
    });
    match verb {
        Verb::List {
            agent,
            global,
            reader,
            limit,
        } => {
            let reader = rooms.reader(&reader).await?;
            let memory = match global {
                true => None,
                false => Some(rooms.memory(agent.as_deref())?),
            };
            list(&rooms, memory.as_ref(), &reader, limit, json).await
        }
        Verb::Export { agent, .. } if json => export_json(&rooms, agent.as_deref()).await,
        Verb::Export { agent, format } => export(&rooms, agent.as_deref(), format).await,
        Verb::Import { file, agent } => import(&rooms, &file, agent.as_deref(), json).await,
        Verb::Versions { agent } => versions(&rooms.memory(agent.as_deref())?, json).await,
        Verb::Restore { which, agent } => {
            let memory = rooms.memory(agent.as_deref())?;
            restore(&memory, which, json).await
        }
    }
}

/// `2 memories of places are left out; --place PLACE includes those of one.`
fn left_out(people: u32, places: u32) -> Option<String> {
    let part = |count: u32, whose: &str| match count {
        0 => None,
        1 => Some(format!("1 memory of a {whose}")),
        count if whose == "person" => Some(format!("{count} memories of people")),
        count => Some(format!("{count} memories of places")),
    };
    let (of_people, of_places) = (part(people, "person"), part(places, "place"));
    let how = match (&of_people, &of_places) {
        (None, None) => return None,
        (Some(_), None) => "`--person WHO` includes those of one person",
        (None, Some(_)) => "`--place PLACE` includes those of one place",
        (Some(_), Some(_)) => {
            "`--person WHO` includes those of one person, `--place PLACE` those of one place"
        }
    };
    let parts: Vec<String> = of_people.into_iter().chain(of_places).collect();
    let are = if people + places == 1 { "is" } else { "are" };
    Some(format!("{} {are} left out; {how}.", parts.join(" and ")))
}

async fn restore(memory: &Memory, version: String, json: bool) -> Outcome {
    let restored = version.clone();
    let bytes = memory.restore(version).await.map_err(wrong_use)?;
    if json {
        let agent = named(memory.agent());
        return data_json(&json!({ "agent": agent, "version": restored, "bytes": bytes }));
    }
    note(format_args!(
        "MEMORY.md of {} has {bytes} bytes again.",
        memory.agent().id
    ));
    Ok(())
}

fn wrong_use(error: EditError) -> Failure {
    match error {
        EditError::Refused(error) => Failure::WrongUse(error.to_string()),
        error => Failure::from(error),
    }
}

async fn list(
    rooms: &Rooms,
    memory: Option<&Memory>,
    reader: &Reader,
    limit: u32,
    json: bool,
) -> Outcome {
    let agent = memory.map(Memory::agent);
    let scope = agent.map_or(Scope::Global, |agent| Scope::Of(agent, reader));
    let entries = rooms.memories.list(scope, i64::MAX, limit).await?;
    if json {
        return data_json(&rooms.json_rows(&entries).await?);
    }
    if entries.is_empty() {
        match memory {
            Some(memory) if memory.everything(i64::MAX, 1).await?.is_empty() => note(format_args!(
                "{} has no memories yet. `parlor remember` adds one.",
                memory.agent().name
            )),
            Some(memory) => note(format_args!(
                "{} has memories of people or places only. `parlor memory export --agent {}` prints all.",
                memory.agent().name,
                memory.agent().id
            )),
            None => note(format_args!("There are no global memories yet.")),
        }
    }
    for entry in &entries {
        data(format_args!(
            "{}\t{}\t{}",
            entry.id,
            entry.visibility,
            entry.shown_to(agent)
        ));
    }
    if let Some(memory) = memory
        && let Some(text) = rooms.left_out(memory, reader).await?
    {
        note(format_args!("{text}"));
    }
    Ok(())
}

/// Rows in one read of an export, so that a large export needs little memory.
const EXPORT_PORTION: u32 = 1000;

/// The memories of one agent, or of all.
fn memories(rooms: &Rooms, agent: Option<&str>) -> Result<Vec<Memory>, Failure> {
    Ok(match agent {
        Some(agent) => vec![rooms.memory(Some(agent))?],
        None => rooms
            .registry
            .all()
            .iter()
            .filter_map(|agent| rooms.memories.of(agent))
            .collect(),
    })
}

/// One document, with the fields of `memory list`.
async fn export_json(rooms: &Rooms, agent: Option<&str>) -> Outcome {
    let mut all = Vec::new();
    for memory in memories(rooms, agent)? {
        let mut before = i64::MAX;
        loop {
            let entries = memory.everything(before, EXPORT_PORTION).await?;
            let Some(last) = entries.last() else { break };
            before = last.id;
            all.extend(entries);
        }
    }
    data_json(&rooms.json_rows(&all).await?)
}

async fn export(rooms: &Rooms, agent: Option<&str>, format: Format) -> Outcome {
    let memories = memories(rooms, agent)?;
    let form = match format {
        Format::Jsonl => Form::JsonLines,
        Format::Markdown => Form::Markdown,
    };
    for memory in memories {
        let mut before = i64::MAX;
        loop {
            let entries = memory.everything(before, EXPORT_PORTION).await?;
            let Some(last) = entries.last() else { break };
            before = last.id;
            let written = export::write(&entries, form);
            let written = written.trim_end_matches('\n');
            match form {
                Form::JsonLines => data_json_text(written),
                Form::Markdown => data(format_args!("{written}")),
            }
        }
    }
    Ok(())
}

async fn import(rooms: &Rooms, file: &PathBuf, agent: Option<&str>, json: bool) -> Outcome {
    let told = |error: &dyn std::fmt::Display| {
        Failure::Failed(format!("{} cannot be imported: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| told(&error))?;
    let carried = export::read(&text).map_err(|error| told(&error))?;
    // All agents are looked up before the first row is written, so that an unknown name changes
    // nothing.
    let mut memories = Vec::new();
    for id in memory::agents_of(&carried) {
        memories.push((rooms.memory(Some(agent.unwrap_or(id.as_str())))?, id));
    }
    let mut total = Imported::default();
    for (memory, id) in memories {
        let own = carried
            .iter()
            .filter(|carried| carried.agent == id)
            .cloned()
            .collect();
        let imported = memory.import(own).await?;
        total = Imported {
            new: total.new + imported.new,
            known: total.known + imported.known,
        };
    }
    let (new, known) = (total.new, total.known);
    if json {
        return data_json(&json!({ "new": new, "known": known }));
    }
    let new = if new == 1 {
        "1 memory is new".to_owned()
    } else {
        format!("{new} memories are new")
    };
    note(format_args!(
        "{new}, {known} {} there already.",
        if known == 1 { "was" } else { "were" }
    ));
    Ok(())
}

async fn versions(memory: &Memory, json: bool) -> Outcome {
    let versions = memory.versions().await?;
    if json {
        let rows: Vec<_> = versions
            .iter()
            .map(|version| serde_json::json!({ "version": version.name, "bytes": version.bytes }))
            .collect();
        data_json(&rows)?;
        return Ok(());
    }
    if versions.is_empty() {
        note(format_args!(
            "There is no earlier version of MEMORY.md. One is kept whenever its agent changes the file."
        ));
    }
    for version in versions {
        data(format_args!("{}\t{} bytes", version.name, version.bytes));
    }
    Ok(())
}

/// A memory for programs.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    id: i64,
    agent: Named,
    visibility: &'static str,
    /// The file of a piece; none for saved memories.
    file: Option<&'a str>,
    text: &'a str,
    place: Option<Named>,
    person: Option<Named>,
    created_at: String,
}

impl Rooms {
    pub(super) async fn json_rows<'a>(
        &self,
        entries: &'a [Entry],
    ) -> Result<Vec<Row<'a>>, Failure> {
        let names = Names::load(&self.db, Some(&self.config)).await?;
        let name_of = |id: &str| self.registry.find(id).map(|agent| agent.name.clone());
        let row = |entry: &'a Entry| Row {
            id: entry.id,
            agent: Named::new(&entry.agent, name_of(&entry.agent).as_deref()),
            visibility: entry.visibility.as_str(),
            file: entry.path.as_deref(),
            text: &entry.text,
            place: entry.said.place.as_ref().map(|key| names.place(key)),
            person: entry
                .said
                .person
                .as_ref()
                .map(|person| names.person(person)),
            created_at: time(entry.created_at),
        };
        Ok(entries.iter().map(row).collect())
    }
}
