//! `parlor recall`: finds memories as an agent would, by default those that `parlor remember` saves.

use std::str::FromStr;

use clap::Args;

use super::memory::{ReaderArguments, Rooms};
use super::{Outcome, data, data_json, note};
use crate::agents::memory::{Filter, Scope};
use crate::clock::now_ms;
use crate::config::{MemoryKind, Visibility};
use crate::home::Home;

#[derive(Args)]
pub(super) struct Arguments {
    /// Id or name of the agent [default: the default agent]
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    #[command(flatten)]
    reader: ReaderArguments,
    /// Leave out global memories
    #[arg(long, conflicts_with = "global")]
    private: bool,
    /// Only global memories
    #[arg(long)]
    global: bool,
    /// Only memories of this visibility: person, place, private or global
    #[arg(long, value_name = "WHO", value_parser = words::<Visibility>)]
    visibility: Vec<Visibility>,
    /// Only saved memories (memory), notes of a day (note) or MEMORY.md (file)
    #[arg(long, value_name = "KIND", value_parser = words::<MemoryKind>)]
    kind: Vec<MemoryKind>,
    /// Only memories that are at most so many days old
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_age_days: Option<u32>,
    /// Tell which memories are searched, and for which words
    #[arg(long)]
    explain: bool,
    /// Most memories to show
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Words to search for
    #[arg(required = true)]
    query: Vec<String>,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let rooms = Rooms::open(&home).await?;
    let query = arguments.query.join(" ");
    let memory = match arguments.global {
        true => None,
        false => Some(rooms.memory(arguments.agent.as_deref())?),
    };
    let reader = rooms.reader(&arguments.reader).await?;
    let filter = Filter {
        visibility: arguments.visibility.clone(),
        kinds: arguments.kind.clone(),
        since: None,
    }
    .within_days(arguments.max_age_days, now_ms());
    let (scope, found) = match &memory {
        Some(memory) if arguments.private => (
            Scope::PrivateOf(memory.agent(), &reader),
            memory
                .search_private(&reader, &query, &filter, arguments.limit)
                .await?,
        ),
        Some(memory) => (
            Scope::Of(memory.agent(), &reader),
            memory
                .search_narrowed(&reader, &query, &filter, arguments.limit)
                .await?,
        ),
        None => (
            Scope::Global,
            rooms
                .memories
                .search_narrowed(Scope::Global, &query, &filter, arguments.limit)
                .await?,
        ),
    };
    if arguments.explain {
        note(format_args!(
            "{}",
            rooms.memories.explain(scope, &query).await?
        ));
    }
    if arguments.json {
        return data_json(&rooms.json_rows(&found).await?);
    }
    let left_out = match &memory {
        Some(memory) => rooms.left_out(memory, &reader).await?,
        None => None,
    };
    if found.is_empty() {
        match &memory {
            Some(memory) if left_out.is_some() => note(format_args!(
                "No memory of {} that was searched has any of these words.",
                memory.agent().name
            )),
            Some(memory) => note(format_args!(
                "No memory of {} has any of these words.",
                memory.agent().name
            )),
            None => note(format_args!("No global memory has any of these words.")),
        }
    }
    for entry in &found {
        data(format_args!(
            "{}\t{}",
            entry.id,
            entry.shown_to(memory.as_ref().map(|memory| memory.agent()))
        ));
    }
    if let Some(text) = left_out {
        note(format_args!("{text}"));
    }
    Ok(())
}

/// A word of a short list.
fn words<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "unknown word".to_owned())
}
