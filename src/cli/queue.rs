//! `parlor queue`: shows the answers under way and the messages that wait, or drops the latter.

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::json::{Named, time};
use super::names::Names;
use super::operator::{self, odd_reply};
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, meant_place, print, running_config};
use crate::clock::now_ms;
use crate::commands::texts::words::duration;
use crate::domain::SessionKey;
use crate::home::Home;
use crate::operations::{Ended, Listed, ListedStage, Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Key or name of a place, such as telegram:topic:-100:7 or Family/Garden
    /// [default: every place]
    place: Option<String>,
    /// Drop the messages that wait in PLACE; answers under way go on
    #[arg(long)]
    clear: bool,
    /// With --clear: drop the messages of every place
    #[arg(long, requires = "clear", conflicts_with = "place")]
    all: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A turn or a message for programs.
#[derive(Serialize)]
struct Row {
    place: Named,
    agent: Option<Named>,
    state: ListedStage,
    /// The agent is paused, so that nothing is answered.
    paused: bool,
    by: String,
    since: String,
    seconds: i64,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let Arguments {
        place,
        clear,
        all,
        json,
    } = arguments;
    if clear && place.is_none() && !all {
        let missed = "--clear needs a place, because messages that are dropped are gone";
        return Err(Failure::WrongUse(missed.into()).hint(
            "`parlor queue` shows where messages wait; `parlor queue --clear --all` drops them in every place",
        ));
    }
    let place = meant_place::place_if_any(&home, place.as_deref()).await?;
    if clear {
        return drop_waiting(&home, place, json).await;
    }
    let Reply::Queue(listed) = operator::ask(&home, Request::Queue { place }).await? else {
        return Err(odd_reply());
    };
    let config = running_config::checked(&home).await.ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let names = Names::load(&database::open(&home.database()).await?, config).await?;
    let now = now_ms();
    let rows: Vec<Row> = listed.iter().map(|row| shown(row, &names, now)).collect();
    if json {
        return data_json(&rows);
    }
    if rows.is_empty() {
        data(format_args!(
            "Nothing is being answered, and nothing waits."
        ));
        return Ok(());
    }
    let columns = [
        Column::Words("PLACE"),
        Column::Words("STATE"),
        Column::Words("AGENT"),
        Column::Words("FOR"),
        Column::Number("TIME"),
    ];
    let cells = rows.into_iter().map(|row| {
        [
            row.place.text(),
            state(row.state, row.paused),
            row.agent.map(|agent| agent.text()).unwrap_or_default(),
            row.by,
            duration(row.seconds * 1000),
        ]
    });
    data(format_args!("{}", table(columns, cells.collect())));
    Ok(())
}

fn shown(row: &Listed, names: &Names, now: i64) -> Row {
    Row {
        place: names.place(&row.place),
        agent: row.agent.as_ref().map(|agent| names.agent(agent)),
        state: row.stage,
        paused: row.paused,
        by: row.by.clone(),
        since: time(row.since),
        seconds: (now - row.since).max(0) / 1000,
    }
}

fn state(stage: ListedStage, paused: bool) -> String {
    let state = match stage {
        ListedStage::Running => "running",
        ListedStage::Parked => "parked",
        ListedStage::Waiting => "waiting",
    };
    match paused {
        true => format!("{state}, agent paused"),
        false => state.to_owned(),
    }
}

async fn drop_waiting(home: &Home, place: Option<SessionKey>, json: bool) -> Outcome {
    let Reply::Ended(ended) = operator::ask(home, Request::Clear { place }).await? else {
        return Err(odd_reply());
    };
    let Ended { count, places } = ended;
    let told = match count {
        0 => "Nothing waits.".to_owned(),
        1 => "1 waiting message is dropped.".to_owned(),
        count => format!("{count} waiting messages are dropped."),
    };
    print::result(
        json,
        &json!({ "dropped": count, "places": places }),
        format_args!("{told}"),
    )
}
