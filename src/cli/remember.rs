//! `parlor remember`, as `/remember` in chat. Works while the gateway runs.

use clap::Args;

use super::memory::Rooms;
use super::{Failure, Outcome, data, note};
use crate::agents::memory::Provenance;
use crate::config::Visibility;
use crate::home::Home;

#[derive(Args)]
pub(super) struct Arguments {
    /// Whose memory it becomes; the default agent's unless named
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// Only for this agent and those that read its memory, whatever the config says
    #[arg(long, conflicts_with = "global")]
    private: bool,
    /// For every agent
    #[arg(long)]
    global: bool,
    /// What to remember
    #[arg(required = true)]
    text: Vec<String>,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let rooms = Rooms::open(&home).await?;
    let memory = rooms.memory(arguments.agent.as_deref())?;
    let visibility = match (arguments.private, arguments.global) {
        (true, _) => Some(Visibility::Private),
        (_, true) => Some(Visibility::Global),
        _ => None,
    };
    let saving = memory.saving(&arguments.text.join(" "), visibility, Provenance::default());
    let saving = saving.map_err(|error| Failure::WrongUse(error.to_string()))?;
    let visibility = saving.visibility();
    let id = memory.save(saving).await?;
    data(format_args!("{id}"));
    note(format_args!(
        "{} remembers that ({visibility}).",
        memory.agent().label()
    ));
    Ok(())
}
