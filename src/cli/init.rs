//! `parlor init`: writes the home folder's starting content and never overwrites.

use clap::Args;
use serde_json::json;

use super::json::paths;
use super::{Outcome, data, data_json, note};
use crate::agents::{Team, write_home};
use crate::home::Home;

#[derive(Args)]
pub(super) struct Arguments {
    /// Write one agent, main, instead of three
    #[arg(long, value_name = "AGENT", value_parser = ["main"])]
    only: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Home, arguments: &Arguments) -> Outcome {
    let team = match arguments.only {
        Some(_) => Team::OnlyMain,
        None => Team::Whole,
    };
    let written = write_home(home.path(), team)?;
    home.keep_private()?;
    if arguments.json {
        return data_json(&json!({
            "home": home.path().display().to_string(),
            "created": paths(&written.created),
            "kept": paths(&written.kept),
        }));
    }
    for path in &written.created {
        data(format_args!("created {}", path.display()));
    }
    for path in &written.kept {
        data(format_args!("kept    {}", path.display()));
    }
    note(format_args!(
        "{} is ready. `parlor chat` talks to the agents here; `parlor setup` connects a model and a bot.",
        home.path().display()
    ));
    Ok(())
}
