//! `parlor remember`, as `/remember` in chat. Works while the gateway runs.

use clap::Args;
use serde_json::json;

use super::agent::named;
use super::memory::Rooms;
use super::{Failure, Outcome, data, data_json, note};
use crate::agents::memory::Reader;
use crate::config::Visibility;
use crate::home::Home;

#[derive(Args)]
pub(super) struct Arguments {
    /// Id or name of the agent [default: the default agent]
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// For everybody who talks to this agent, whatever the config says
    #[arg(long, conflicts_with = "global")]
    private: bool,
    /// For every agent
    #[arg(long)]
    global: bool,
    /// Who sees it, as one word: private or global
    #[arg(long, value_name = "WHO", value_parser = visibility, conflicts_with_all = ["private", "global"])]
    visibility: Option<Visibility>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Text to remember
    #[arg(required = true)]
    text: Vec<String>,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let rooms = Rooms::open(&home).await?;
    let memory = rooms.memory(arguments.agent.as_deref())?;
    let visibility = match (arguments.private, arguments.global) {
        (true, _) => Some(Visibility::Private),
        (_, true) => Some(Visibility::Global),
        _ => arguments.visibility,
    };
    let reader = Reader::operator(&[], None);
    let wrong_use = |error| Failure::WrongUse(format!("{error}"));
    let saving = memory
        .saving(&reader, &arguments.text.join(" "), visibility)
        .map_err(wrong_use)?;
    let visibility = saving.visibility();
    let id = memory.save(saving).await?.map_err(wrong_use)?;
    if arguments.json {
        return data_json(&json!({
            "id": id,
            "agent": named(memory.agent()),
            "visibility": visibility.as_str(),
        }));
    }
    data(format_args!("{id}"));
    note(format_args!(
        "{} remembers that ({visibility}).",
        memory.agent().label()
    ));
    Ok(())
}

/// At the terminal there is no person and no place to remember something for.
fn visibility(text: &str) -> Result<Visibility, String> {
    match text.parse() {
        Ok(visibility @ (Visibility::Private | Visibility::Global)) => Ok(visibility),
        _ => Err("use private or global".to_owned()),
    }
}
