//! `parlor usage`: spending by agent, place, person and model. Works while the gateway runs.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::{Outcome, data, data_json};
use crate::clock::now_ms;
use crate::home::Home;
use crate::records::ledger::{self, By, Period, UsageLine};
use crate::storage::Db;

#[derive(Args)]
pub(super) struct Arguments {
    /// The days to look at; the last is today
    #[arg(value_parser = ["today", "7d", "30d"], default_value = "today")]
    period: String,
    /// Add up by this alone
    #[arg(long, value_parser = ["agent", "place", "person", "model"])]
    by: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let period = Period::ALL
        .into_iter()
        .find(|period| period.as_str() == arguments.period)
        .unwrap_or(Period::Today);
    let kinds: Vec<By> = By::ALL
        .into_iter()
        .filter(|by| {
            arguments
                .by
                .as_deref()
                .is_none_or(|only| only == by.as_str())
        })
        .collect();
    let db = Db::open(&home.database()).await?;
    let read = move |connection: &rusqlite::Connection| {
        let lines = |by| Ok((by, ledger::report(connection, by, period, None, now_ms())?));
        kinds
            .into_iter()
            .map(lines)
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    let lists = db.read(read).await?;
    if arguments.json {
        data_json(&as_json(period, &lists))?;
    } else {
        print(&lists);
    }
    Ok(())
}

fn print(lists: &[(By, Vec<UsageLine>)]) {
    let Some((_, lines)) = lists.first().filter(|(_, lines)| !lines.is_empty()) else {
        return data(format_args!("Nothing was spent."));
    };
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["BY", "NAME", "TURNS", "INPUT", "CACHED", "OUTPUT", "COST"]);
    table.add_row(row("all", "", &ledger::total(lines)));
    for (by, lines) in lists {
        for line in lines {
            table.add_row(row(by.as_str(), &line.name, line));
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    data(format_args!("{}", table.trim_fmt()));
}

fn row(by: &str, name: &str, line: &UsageLine) -> [String; 7] {
    let usage = line.usage;
    let cost = line
        .cost
        .map_or_else(|| "-".to_owned(), |cost| cost.to_string());
    let numbers = [
        line.turns,
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
    ]
    .map(|number| number.to_string());
    let [turns, input, cached, output] = numbers;
    [
        by.to_owned(),
        name.to_owned(),
        turns,
        input,
        cached,
        output,
        cost,
    ]
}

fn as_json(period: Period, lists: &[(By, Vec<UsageLine>)]) -> Value {
    let line = |line: &UsageLine| {
        json!({
            "name": line.name,
            "turns": line.turns,
            "input_tokens": line.usage.input_tokens,
            "cached_tokens": line.usage.cached_tokens,
            "output_tokens": line.usage.output_tokens,
            "cost_micros": line.cost.map(|cost| cost.0),
        })
    };
    let by = lists.iter().map(|(by, lines)| {
        (
            by.as_str().to_owned(),
            lines.iter().map(line).collect::<Value>(),
        )
    });
    json!({ "period": period.as_str(), "by": by.collect::<serde_json::Map<_, _>>() })
}
