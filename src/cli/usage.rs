//! `parlor usage`: tokens and costs by agent, place, person and model. Works while the gateway
//! runs.

use chrono::{Days, Local, NaiveDate};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::json::{Amount, Named, decimal};
use super::names::Names;
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, running_config};
use crate::clock::now_ms;
use crate::commands::texts::usage::{self as texts, against};
use crate::config::{Config, Currency};
use crate::domain::AgentId;
use crate::figures::grouped;
use crate::home::Home;
use crate::operations::budgets::{self, Account, Holder};
use crate::records::ledger::{self, By, Period, UsageLine};
use crate::storage::Db;
use crate::turn::budget;

#[derive(Args)]
pub(super) struct Arguments {
    /// Days to add up, today included
    #[arg(value_parser = ["today", "7d", "30d"], default_value = "today")]
    period: String,
    /// Count from this day on: a date, or a number of days such as 14d
    #[arg(long, value_name = "DAY", value_parser = first_day, conflicts_with = "period")]
    since: Option<NaiveDate>,
    /// Only one table
    #[arg(long, value_parser = ["agent", "place", "person", "model"])]
    by: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print the result as CSV, with a line for each agent, place, person and
    /// model
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// `14d` is two weeks, today included.
fn first_day(text: &str) -> Result<NaiveDate, String> {
    let today = Local::now().date_naive();
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let counted =
        days.and_then(|days: u64| today.checked_sub_days(Days::new(days.checked_sub(1)?)));
    let date = text.parse().ok().filter(|date| *date <= today);
    counted
        .or(date)
        .ok_or_else(|| "write a date up to today, such as 2026-11-01, or days such as 14d".into())
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let db = database::open(&home.database()).await?;
    // Costs are told even if the config has problems.
    let config = running_config::checked(&home).await.ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let since = arguments.first_day();
    let kinds = arguments.kinds();
    let read = move |connection: &rusqlite::Connection| {
        let lines = |by| Ok((by, ledger::report_since(connection, by, since, None)?));
        kinds
            .into_iter()
            .map(lines)
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    let limits = match config {
        Some(config) => limits(&db, config).await?,
        None => Vec::new(),
    };
    let usage = Usage {
        limits,
        period: arguments.since.is_none().then_some(arguments.period),
        since,
        lists: db.read(read).await?,
        names: Names::load(&db, config).await?,
        currency: config
            .map(|config| config.currency.clone())
            .unwrap_or_default(),
    };
    match (arguments.json, arguments.csv) {
        (true, _) => data_json(&usage.as_json())?,
        (_, true) => data(format_args!("{}", usage.as_csv())),
        _ => data(format_args!("{}", usage.in_tables())),
    }
    Ok(())
}

/// The limits of the house and of agents, with what is spent of them.
async fn limits(db: &Db, config: &Config) -> Result<Vec<Account>, Failure> {
    let config = config.clone();
    let read =
        move |connection: &rusqlite::Connection| budgets::of_house(connection, &config, now_ms());
    Ok(db.read(read).await?)
}

impl Arguments {
    fn first_day(&self) -> NaiveDate {
        let period = Period::ALL
            .into_iter()
            .find(|period| period.as_str() == self.period)
            .unwrap_or(Period::Today);
        self.since.unwrap_or_else(|| period.first_day(now_ms()))
    }

    fn kinds(&self) -> Vec<By> {
        let wanted = |by: &By| self.by.as_deref().is_none_or(|only| only == by.as_str());
        By::ALL.into_iter().filter(wanted).collect()
    }
}

struct Usage {
    /// As the command line named it.
    period: Option<String>,
    since: NaiveDate,
    /// At least one.
    lists: Vec<(By, Vec<UsageLine>)>,
    names: Names,
    currency: Currency,
    limits: Vec<Account>,
}

/// A limit for programs.
#[derive(Serialize)]
pub(super) struct LimitLine {
    /// An agent's id, or `house`.
    of: String,
    span: &'static str,
    tokens: u64,
    most_tokens: Option<u64>,
    cost: Amount,
    most_cost: Option<Amount>,
    /// What an owner has allowed besides the limit of config.toml; part of the two above.
    more_tokens: u64,
    more_cost: Amount,
}

/// Numbers for programs.
#[derive(Serialize)]
struct Numbers {
    turns: u64,
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    /// Of models with a price.
    cost: Option<Amount>,
    /// Tokens of models without a price, which the cost leaves out.
    unpriced_tokens: u64,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    named: Named,
    #[serde(flatten)]
    numbers: Numbers,
}

impl Usage {
    fn total(&self) -> UsageLine {
        let first = self.lists.first();
        first
            .map(|(_, lines)| ledger::total(lines))
            .unwrap_or_default()
    }

    /// The stored text with its name. Text that is no id of today stays as it is.
    fn named(&self, by: By, text: &str) -> Named {
        let named = match by {
            By::Agent => AgentId::parse(text).ok().map(|id| self.names.agent(&id)),
            By::Place => text.parse().ok().map(|key| self.names.place(&key)),
            By::Person => text.parse().ok().map(|id| self.names.person(&id)),
            By::Model => None,
        };
        named.unwrap_or_else(|| Named::new(text, None))
    }

    fn numbers(&self, line: &UsageLine) -> Numbers {
        Numbers {
            turns: line.turns,
            input_tokens: line.usage.input_tokens,
            cached_tokens: line.usage.cached_tokens,
            output_tokens: line.usage.output_tokens,
            cost: line.cost.map(|cost| Amount::of(cost, &self.currency)),
            unpriced_tokens: line.unpriced_tokens,
        }
    }

    /// Spending against each limit, a line for each.
    fn limits_in_lines(&self) -> String {
        let lines = self.limits.iter().map(|account| {
            let against = against(account, &self.currency);
            format!("- {}{against}", holder(account))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn as_json(&self) -> Value {
        let lines = |by: By, lines: &[UsageLine]| -> Vec<Line> {
            let line = |line: &UsageLine| Line {
                named: self.named(by, &line.name),
                numbers: self.numbers(line),
            };
            lines.iter().map(line).collect()
        };
        let by: Map<String, Value> = self
            .lists
            .iter()
            .map(|(by, list)| (by.as_str().to_owned(), json!(lines(*by, list))))
            .collect();
        json!({
            "period": self.period,
            "since": self.since.to_string(),
            "total": self.numbers(&self.total()),
            "by": by,
            "limits": self.limits.iter().map(|account| LimitLine::of(account, &self.currency)).collect::<Vec<_>>(),
        })
    }

    fn as_csv(&self) -> String {
        let mut text =
            "by,id,name,turns,input_tokens,cached_tokens,output_tokens,cost,currency,unpriced_tokens".to_owned();
        for (by, lines) in &self.lists {
            for line in lines {
                let named = self.named(*by, &line.name);
                let cost = line.cost.map(decimal);
                let cells = [
                    by.as_str().to_owned(),
                    named.id,
                    named.name.unwrap_or_default(),
                    line.turns.to_string(),
                    line.usage.input_tokens.to_string(),
                    line.usage.cached_tokens.to_string(),
                    line.usage.output_tokens.to_string(),
                    cost.clone().unwrap_or_default(),
                    cost.map(|_| self.currency.to_string()).unwrap_or_default(),
                    line.unpriced_tokens.to_string(),
                ];
                text.push('\n');
                text.push_str(&cells.map(|cell| quoted(&cell)).join(","));
            }
        }
        text
    }

    fn in_tables(&self) -> String {
        let total = self.total();
        let limits = match self.limits.is_empty() {
            true => String::new(),
            false => format!("\n\nLimits:\n{}", self.limits_in_lines()),
        };
        if total == UsageLine::default() {
            return format!("{}: nothing was used.{limits}", self.when());
        }
        let cost = texts::cost(&total, &self.currency);
        let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
        let turns = match total.turns {
            1 => "1 turn".to_owned(),
            turns => format!("{} turns", grouped(turns)),
        };
        let mut text = format!(
            "{}: {turns}, {} tokens{cost}",
            self.when(),
            grouped(budget::tokens(total.usage))
        );
        for (by, lines) in &self.lists {
            text.push_str("\n\n");
            text.push_str(&self.one_table(*by, lines));
        }
        text.push_str(&limits);
        if total.unpriced_tokens > 0 {
            text.push_str("\n\n");
            text.push_str(NO_PRICES);
        }
        text
    }

    fn when(&self) -> String {
        let today = Local::now().date_naive();
        if self.since == today {
            format!("Today ({today})")
        } else {
            format!("{} to {today}", self.since)
        }
    }

    /// Short, for the remark below the tables tells the rest.
    fn cost_in_table(&self, line: &UsageLine) -> String {
        let known = line
            .cost
            .filter(|cost| cost.0 > 0 || line.unpriced_tokens == 0);
        let known = known.map(|cost| cost.in_currency(&self.currency));
        match (known, line.unpriced_tokens) {
            (None, 0) => "-".to_owned(),
            (None, _) => texts::PRICE_UNKNOWN.to_owned(),
            (Some(known), 0) => known,
            (Some(known), _) => format!("{known} and more"),
        }
    }

    fn one_table(&self, by: By, lines: &[UsageLine]) -> String {
        let title = match by {
            By::Agent => "AGENT",
            By::Place => "PLACE",
            By::Person => "PERSON",
            By::Model => "MODEL",
        };
        let row = |line: &UsageLine| {
            [
                self.named(by, &line.name).text(),
                grouped(line.turns),
                grouped(line.usage.input_tokens),
                grouped(line.usage.cached_tokens),
                grouped(line.usage.output_tokens),
                self.cost_in_table(line),
            ]
        };
        let columns = [
            Column::Words(title),
            Column::Number("TURNS"),
            Column::Number("INPUT"),
            Column::Number("CACHED"),
            Column::Number("OUTPUT"),
            Column::Number("COST"),
        ];
        table(columns, lines.iter().map(row).collect())
    }
}

impl LimitLine {
    pub(super) fn of(account: &Account, currency: &Currency) -> Self {
        let amount = |money| Amount::of(money, currency);
        LimitLine {
            of: holder(account),
            span: account.span.as_str(),
            tokens: account.spent.tokens,
            most_tokens: account.caps.tokens,
            cost: amount(account.spent.cost),
            most_cost: account.caps.cost.map(amount),
            more_tokens: account.more.tokens,
            more_cost: amount(account.more.cost),
        }
    }
}

fn holder(account: &Account) -> String {
    match &account.holder {
        Holder::Agent(agent) => agent.to_string(),
        Holder::Person { id, .. } => id.to_string(),
        Holder::House => "house".to_owned(),
    }
}

const NO_PRICES: &str = "Models without a price in config.toml were used, so costs leave them out. Prices go to [providers.<name>.prices], per million tokens.";

/// A cell as RFC 4180 has it. A spreadsheet must not take a name for a formula.
fn quoted(cell: &str) -> String {
    let cell = match cell.chars().next() {
        Some('=' | '+' | '-' | '@') => format!("'{cell}"),
        _ => cell.to_owned(),
    };
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let check = |cell, expected: &str| assert_eq!(quoted(cell), expected);
        check("Alice", "Alice");
        check("Alice, \"Al\"", "\"Alice, \"\"Al\"\"\"");
        check("=1+1", "'=1+1");
        check("telegram:topic:-100:7", "telegram:topic:-100:7");
    }

    #[test]
    fn days_are_dates_or_numbers() {
        let today = Local::now().date_naive();
        assert_eq!(first_day("1d"), Ok(today));
        assert_eq!(first_day("14d"), Ok(today - Days::new(13)));
        assert_eq!(first_day("2026-01-31").ok(), "2026-01-31".parse().ok());
        for wrong in ["0d", "yesterday", "2999-01-01", "", "d"] {
            assert!(first_day(wrong).is_err(), "{wrong}");
        }
    }
}
