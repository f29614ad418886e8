//! `parlor audit`: who changed what, and where. Works while the gateway runs.

use clap::Args;
use serde::Serialize;

use super::json::{Named, moment, time};
use super::names::Names;
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, meant_place, note, running_config};
use crate::clock::now_ms;
use crate::commands::texts::audit as texts;
use crate::domain::{PersonId, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::records::audit::{self, Entry, Wanted};
use crate::storage::Db;

#[derive(Args)]
pub(super) struct Arguments {
    /// Only changes of this agent, and switches from or to it
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only changes of this place, by its key or its name
    #[arg(long, value_name = "PLACE")]
    place: Option<String>,
    /// Only changes by a person such as telegram:11, or by cli, config or
    /// gateway
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// Only changes since then: a time such as 2026-11-01T08:00:00+01:00, a
    /// day, or a while such as 2h or 14d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<i64>,
    /// The most changes to show, newest first
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// An entry for programs.
#[derive(Serialize)]
struct Line {
    id: i64,
    at: String,
    /// A person's id, `cli`, `config` or `gateway`.
    by: Named,
    action: String,
    agent: Option<String>,
    place: Option<Named>,
    subject: Option<String>,
    before: Option<String>,
    after: Option<String>,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let place = meant_place::place_if_any(&home, arguments.place.as_deref()).await?;
    let agent = arguments.agent;
    let wanted = Wanted {
        agent: agent.clone(),
        place: place.map(|place| place.to_string()),
        by: arguments.by.clone(),
        since: arguments.since,
        before: None,
    };
    let db = database::open(&home.database()).await?;
    let limit = arguments.limit;
    let read = move |connection: &rusqlite::Connection| audit::latest(connection, &wanted, limit);
    let entries = db.read(read).await?;
    // Names are nice to have, also beside a config with problems.
    let checked = running_config::checked(&home).await.ok();
    if let (Some(agent), Some(checked)) = (agent.filter(|_| entries.is_empty()), &checked) {
        refuse_unknown(&home, &db, checked, agent).await?;
    }
    if let Some(by) = arguments.by.filter(|_| entries.is_empty()) {
        refuse_nobody(&db, by).await?;
    }
    let config = checked.as_ref().map(|checked| &*checked.config);
    let names = Names::load(&db, config).await?;
    if arguments.json {
        let lines: Vec<Line> = entries
            .into_iter()
            .map(|entry| line(entry, &names))
            .collect();
        return data_json(&lines);
    }
    if entries.is_empty() {
        note(format_args!("No changes."));
        return Ok(());
    }
    let columns = [
        Column::Whole("WHEN"),
        Column::Words("WHO"),
        Column::Words("WHAT"),
        Column::Words("WHERE"),
    ];
    let cells = entries.iter().map(|entry| {
        [
            moment(entry.at),
            texts::who(entry).replace('`', ""),
            texts::did(entry, "the place", &names).replace('`', ""),
            placed(entry, &names).map_or_else(String::new, |place| place.text()),
        ]
    });
    data(format_args!("{}", table(columns, cells.collect())));
    Ok(())
}

/// A word that is no id, and that nobody in the audit has, is misspelt.
async fn refuse_nobody(db: &Db, by: String) -> Outcome {
    let is_id = by.parse::<PersonId>().is_ok();
    if is_id || ["cli", "config", "gateway"].contains(&by.as_str()) {
        return Ok(());
    }
    let wanted = Wanted {
        by: Some(by.clone()),
        ..Wanted::default()
    };
    let read = move |connection: &rusqlite::Connection| audit::latest(connection, &wanted, 1);
    match db.read(read).await?.is_empty() {
        true => Err(
            Failure::WrongUse(format!("the audit knows nobody called {by}")).hint(
                "write a person's id, such as telegram:11 (`parlor people` lists them), or cli, config or gateway",
            ),
        ),
        false => Ok(()),
    }
}

/// An agent that is neither here nor in the audit is misspelt.
async fn refuse_unknown(home: &Home, db: &Db, checked: &CheckedConfig, agent: String) -> Outcome {
    let (registry, _) = checked.registry(home, db).await?;
    let known = super::agent::find(&registry, &agent).map(|_| ());
    if known.is_ok() {
        return known;
    }
    let wanted = Wanted {
        agent: Some(agent),
        ..Wanted::default()
    };
    let read = move |connection: &rusqlite::Connection| audit::latest(connection, &wanted, 1);
    match db.read(read).await?.is_empty() {
        true => known,
        false => Ok(()),
    }
}

fn line(entry: Entry, names: &Names) -> Line {
    let place = placed(&entry, names);
    Line {
        id: entry.id,
        at: time(entry.at),
        by: Named::new(&entry.actor, entry.name.as_deref()),
        action: entry.action,
        agent: entry.agent,
        place,
        subject: entry.subject,
        before: entry.before,
        after: entry.after,
    }
}

fn placed(entry: &Entry, names: &Names) -> Option<Named> {
    let place = entry.place.as_ref()?;
    let key = place.parse::<SessionKey>();
    Some(key.map_or_else(|_| Named::new(place, None), |key| names.place(&key)))
}

/// A time in milliseconds: RFC 3339, a day, or a while before now.
fn since(text: &str) -> Result<i64, String> {
    let moment = chrono::DateTime::parse_from_rfc3339(text).ok();
    let day = text.parse::<chrono::NaiveDate>().ok().and_then(|day| {
        let start = day.and_hms_opt(0, 0, 0)?.and_local_timezone(chrono::Local);
        start.earliest()
    });
    let units = [('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];
    let ago = units.into_iter().find_map(|(unit, ms): (char, i64)| {
        let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
        (number >= 0).then(|| now_ms().saturating_sub(number.saturating_mul(ms)))
    });
    moment
        .map(|moment| moment.timestamp_millis())
        .or(day.map(|day| day.timestamp_millis()))
        .or(ago)
        .ok_or_else(|| "write a time such as 2026-11-01T08:00:00+01:00, a day such as 2026-11-01, or a while such as 2h or 14d".into())
}
