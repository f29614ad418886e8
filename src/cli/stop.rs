//! `parlor stop`: stops the answers under way, in a place or everywhere.

use clap::Args;
use serde_json::json;

use super::operator::{self, odd_reply};
use super::{Outcome, meant_place, note, print};
use crate::home::Home;
use crate::operations::{Ended, Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Key or name of a place, such as telegram:topic:-100:7 or Family/Garden
    /// [default: every place]
    place: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Arguments { place, json }: Arguments) -> Outcome {
    let (is_everywhere, is_running) = (place.is_none(), home.is_running());
    let place = meant_place::place_if_any(&home, place.as_deref()).await?;
    let Reply::Ended(ended) = operator::ask(&home, Request::Stop { place }).await? else {
        return Err(odd_reply());
    };
    print::result(
        json,
        &json!({ "stopped": ended.count, "places": ended.places }),
        format_args!("{}", told(&ended)),
    )?;
    if is_everywhere && is_running {
        note(format_args!(
            "The gateway goes on; Ctrl-C in its terminal or SIGTERM stops it."
        ));
    }
    Ok(())
}

fn told(ended: &Ended) -> String {
    match (ended.count, ended.places) {
        (0, _) => "Nothing is being answered.".to_owned(),
        (1, _) => "1 answer is stopped, and its place is told.".to_owned(),
        (count, 1) => format!("{count} answers are stopped, and their place is told."),
        (count, places) => {
            format!("{count} answers in {places} places are stopped, and the places are told.")
        }
    }
}
