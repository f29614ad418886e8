//! `parlor new`: begins a new conversation in a place, as `/new` does in a chat.

use clap::Args;
use serde_json::json;

use super::operator::{self, odd_reply};
use super::{Outcome, meant_place, print};
use crate::home::Home;
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Key of the place, as /whoami shows it, or its name, such as Garden or
    /// Family/Garden
    place: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Arguments { place, json }: Arguments) -> Outcome {
    let place = meant_place::place(&home, &place).await?;
    let request = Request::New {
        place: place.clone(),
    };
    let Reply::BegunAnew = operator::ask(&home, request).await? else {
        return Err(odd_reply());
    };
    print::result(
        json,
        &json!({ "place": place }),
        format_args!(
            "A new conversation begins in {place}. Its agent sees nothing of the one before."
        ),
    )
}
