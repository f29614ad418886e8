//! What is spent, by day: the `spending`, `budgets` and `budget_notices` tables.
//!
//! Counted with every model call that is written down, not when a turn is over, so that one that is killed or fails counts too.

use chrono::{Local, NaiveDate};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::config::Money;
use crate::domain::{AgentUid, PersonId, SessionKey};
use crate::models::Usage;
use crate::turn::budget::{self, Spent};

/// Days of spending that are kept.
const KEPT_DAYS: u64 = 400;

/// Who spends. Each has sums of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spender {
    Agent(AgentUid),
    Person(PersonId),
}

impl Spender {
    fn text(&self) -> String {
        match self {
            Spender::Agent(uid) => format!("agent:{uid}"),
            Spender::Person(person) => format!("person:{person}"),
        }
    }
}

/// What one or more model calls cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spending {
    pub(super) place: SessionKey,
    pub(super) agent: AgentUid,
    pub(super) person: PersonId,
    pub(super) model: String,
    pub(super) usage: Usage,
    /// Absent: the model has no price.
    pub(super) cost: Option<Money>,
    /// 1 with the end of a turn, else 0.
    pub(super) turns: u32,
}

/// What was spent today, this included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Today {
    pub(super) agent: Spent,
    pub(super) person: Spent,
    /// The owners know that the agent has little left.
    pub(super) warned: bool,
}

pub(super) fn spend(tx: &Transaction<'_>, spending: &Spending, now: i64) -> rusqlite::Result<Today> {
    let day = budget::day(&Local, now);
    add_up(tx, spending, day)?;
    let (agent, warned) = count(tx, &Spender::Agent(spending.agent), spending, day)?;
    let (person, _) = count(tx, &Spender::Person(spending.person.clone()), spending, day)?;
    Ok(Today { agent, person, warned })
}

fn add_up(tx: &Transaction<'_>, spending: &Spending, day: NaiveDate) -> rusqlite::Result<()> {
    let Usage { input_tokens, output_tokens, cached_tokens } = spending.usage;
    tx.prepare_cached(
        "INSERT INTO spending (day, agent_uid, session_key, person, model, turns, input_tokens, output_tokens, cached_tokens, cost_micros)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT DO UPDATE SET
            turns = turns + excluded.turns,
            input_tokens = input_tokens + excluded.input_tokens,
            output_tokens = output_tokens + excluded.output_tokens,
            cached_tokens = cached_tokens + excluded.cached_tokens,
            cost_micros = coalesce(cost_micros + excluded.cost_micros, cost_micros, excluded.cost_micros)",
    )?
    .execute(params![
        day.to_string(),
        spending.agent.to_string(),
        spending.place.to_string(),
        spending.person.to_string(),
        spending.model,
        spending.turns,
        input_tokens.cast_signed(),
        output_tokens.cast_signed(),
        cached_tokens.cast_signed(),
        spending.cost.map(|cost| cost.0.cast_signed()),
    ])
    .map(drop)
}

fn count(tx: &Transaction<'_>, spender: &Spender, spending: &Spending, day: NaiveDate) -> rusqlite::Result<(Spent, bool)> {
    let (tokens, cost) = (budget::tokens(spending.usage), spending.cost.unwrap_or_default());
    tx.prepare_cached(
        "INSERT INTO budgets (day, spender, tokens, cost_micros) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost_micros = cost_micros + excluded.cost_micros
         RETURNING tokens, cost_micros, warned",
    )?
    .query_row(params![day.to_string(), spender.text(), tokens.cast_signed(), cost.0.cast_signed()], sums)
}

fn sums(row: &Row<'_>) -> rusqlite::Result<(Spent, bool)> {
    Ok((Spent { tokens: unsigned(row, 0)?, cost: Money(unsigned(row, 1)?) }, row.get(2)?))
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}

/// What somebody has spent today.
pub(super) fn today(connection: &Connection, spender: &Spender, now: i64) -> rusqlite::Result<Spent> {
    let mut statement =
        connection.prepare_cached("SELECT tokens, cost_micros, warned FROM budgets WHERE day = ?1 AND spender = ?2")?;
    let found = statement.query_row(params![budget::day(&Local, now).to_string(), spender.text()], sums).optional()?;
    Ok(found.map(|(spent, _)| spent).unwrap_or_default())
}

/// True once a day: then the owners are to be told that the agent has little left.
pub(super) fn warn(tx: &Transaction<'_>, agent: AgentUid, now: i64) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached("UPDATE budgets SET warned = 1 WHERE day = ?1 AND spender = ?2 AND warned = 0")?;
    Ok(statement.execute(params![budget::day(&Local, now).to_string(), Spender::Agent(agent).text()])? == 1)
}

/// True when the place was not told yet that this spender is at a limit. From here on it counts as told until `until`.
pub(super) fn is_news(
    tx: &Transaction<'_>,
    place: &SessionKey,
    spender: &Spender,
    until: i64,
    now: i64,
) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO budget_notices (session_key, spender, until) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <= ?4",
    )?;
    Ok(statement.execute(params![place.to_string(), spender.text(), until, now])? == 1)
}

/// What spending is added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Agent,
    Place,
    Person,
    Model,
}

impl By {
    pub const ALL: [By; 4] = [By::Agent, By::Place, By::Person, By::Model];

    pub fn as_str(self) -> &'static str {
        match self {
            By::Agent => "agent",
            By::Place => "place",
            By::Person => "person",
            By::Model => "model",
        }
    }

    fn column(self) -> &'static str {
        match self {
            // Agents that are gone keep their name here.
            By::Agent => "(SELECT slug FROM agents WHERE uid = agent_uid)",
            By::Place => "session_key",
            By::Person => "person",
            By::Model => "model",
        }
    }
}

/// The days that are looked at; the last is today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Today,
    Week,
    Month,
}

impl Period {
    pub const ALL: [Period; 3] = [Period::Today, Period::Week, Period::Month];

    /// As people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Period::Today => "today",
            Period::Week => "7d",
            Period::Month => "30d",
        }
    }

    fn first_day(self, now: i64) -> String {
        let days = match self {
            Period::Today => 0,
            Period::Week => 6,
            Period::Month => 29,
        };
        (budget::day(&Local, now) - chrono::Days::new(days)).to_string()
    }
}

/// Spending of one agent, place, person or model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    pub name: String,
    pub turns: u64,
    pub usage: Usage,
    /// Of models that have a price.
    pub cost: Option<Money>,
}

/// The most expensive first. With a person, theirs alone.
pub fn report(
    connection: &Connection,
    by: By,
    period: Period,
    person: Option<&PersonId>,
    now: i64,
) -> rusqlite::Result<Vec<Line>> {
    let column = by.column();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {column} AS name, sum(turns), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(cost_micros)
         FROM spending WHERE day >= ?1 AND (?2 IS NULL OR person = ?2) GROUP BY name
         ORDER BY sum(cost_micros) DESC, sum(input_tokens + output_tokens) DESC, name"
    ))?;
    let lines = statement.query_map(params![period.first_day(now), person.map(PersonId::to_string)], |row| {
        let usage = Usage { input_tokens: unsigned(row, 2)?, output_tokens: unsigned(row, 3)?, cached_tokens: unsigned(row, 4)? };
        let cost = row.get::<_, Option<i64>>(5)?.map(|micros| Money(u64::try_from(micros).unwrap_or(0)));
        Ok(Line { name: row.get::<_, Option<String>>(0)?.unwrap_or_default(), turns: unsigned(row, 1)?, usage, cost })
    })?;
    lines.collect()
}

/// All lines together.
pub fn total(lines: &[Line]) -> Line {
    lines.iter().fold(Line::default(), |mut total, line| {
        total.turns += line.turns;
        total.usage.add(line.usage);
        total.cost = match (total.cost, line.cost) {
            (Some(one), Some(other)) => Some(Money(one.0.saturating_add(other.0))),
            (one, other) => one.or(other),
        };
        total
    })
}

pub fn forget_old(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<usize> {
    let today = budget::day(&Local, now);
    let (oldest, yesterday) = (today - chrono::Days::new(KEPT_DAYS), today - chrono::Days::new(1));
    Ok(tx.execute("DELETE FROM spending WHERE day < ?1", [oldest.to_string()])?
        + tx.execute("DELETE FROM budgets WHERE day < ?1", [yesterday.to_string()])?
        + tx.execute("DELETE FROM budget_notices WHERE until < ?1", [now])?)
}
