//! `parlor new`: begins a new conversation in a place, as `/new` does in a chat.

use clap::Args;
use serde_json::json;

use super::names::Names;
use super::operator::{self, odd_reply};
use super::{Outcome, database, meant_place, print};
use crate::home::Home;
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Name or key of the place, such as Garden, Family/Garden or the key that
    /// /whoami prints
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
    let names = Names::load(&database::open(&home.database()).await?, None).await?;
    let place = names.place(&place);
    print::result(
        json,
        &json!({ "place": place }),
        format_args!(
            "A new conversation begins in {}. Its agent sees nothing of the one before.",
            place.text()
        ),
    )
}
