//! `parlor pause` and `parlor resume`: the switch for work that nobody waits for. Works while the
//! gateway runs.

use clap::Args;
use serde_json::json;

use super::actor::actor;
use super::{Failure, Outcome, database, print};
use crate::clock::now_ms;
use crate::home::Home;
use crate::records::pauses::{self, Work};

#[derive(Args)]
pub(super) struct Arguments {
    /// background: summaries, and subagents that report later
    #[arg(value_name = "WHAT")]
    what: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn work(&self) -> Result<Work, Failure> {
        let what = &self.what;
        Work::parse(what).ok_or_else(|| {
            Failure::WrongUse(format!("{what} has no switch here; `background` has one"))
                .hint(format!("`parlor agent pause {what}` pauses an agent of that name, `parlor agent resume {what}` lets it go on"))
        })
    }
}

pub(super) async fn pause(home: Home, arguments: Arguments) -> Outcome {
    let (work, json) = (arguments.work()?, arguments.json);
    let db = database::open(&home.database()).await?;
    let paused = db.write(move |tx| pauses::pause(tx, work, &actor(), now_ms()));
    let told = match paused.await? {
        true => PAUSED,
        false => "Background work is paused already.",
    };
    tell(json, work, true, told)
}

pub(super) async fn resume(home: Home, arguments: Arguments) -> Outcome {
    let (work, json) = (arguments.work()?, arguments.json);
    let db = database::open(&home.database()).await?;
    let resumed = db.write(move |tx| pauses::resume(tx, work, &actor(), now_ms()));
    let told = match resumed.await? {
        true => "Background work goes on.",
        false => "Background work was not paused.",
    };
    tell(json, work, false, told)
}

fn tell(json: bool, work: Work, is_paused: bool, told: &str) -> Outcome {
    let result = json!({ "what": work.as_str(), "paused": is_paused });
    print::result(json, &result, format_args!("{told}"))
}

const PAUSED: &str = "Background work is paused: no summaries, and no subagents that nobody waits for. People are answered as before.";
