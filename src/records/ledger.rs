//! Spending by day and by month: the `spending`, `budgets`, `month_budgets` and `budget_notices`
//! tables.
//!
//! Every written model call is booked at once, not at the end of the turn, so killed and failed
//! turns count too.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chrono::{Local, Months, NaiveDate};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::config::{Money, Price};
use crate::domain::{AgentUid, PersonId, SessionKey};
use crate::models::Usage;
use crate::routing::places::{self, Twin};
use crate::turn::budget::{self, Span, Spent, Whose};

/// Days of spending to keep.
const KEPT_DAYS: u64 = 400;
/// Days of sums to keep. Only the sum of today counts, but the clock may be wrong about the day.
const KEPT_SUM_DAYS: u64 = 14;

/// A spender with sums by day and by month.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Spender {
    Agent(AgentUid),
    Person(PersonId),
    /// All agents together.
    House,
}

impl Spender {
    fn text(&self) -> String {
        match self {
            Spender::Agent(uid) => format!("agent:{uid}"),
            Spender::Person(person) => format!("person:{person}"),
            Spender::House => "house".to_owned(),
        }
    }
}

/// The cost of model calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spending {
    pub(crate) place: SessionKey,
    pub(crate) agent: AgentUid,
    pub(crate) person: PersonId,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    /// The price of the model, if known.
    pub(crate) price: Option<Price>,
    /// 1 at the end of a turn, else 0.
    pub(crate) turns: u32,
    /// The sums with a limit. Only these are read back.
    pub(crate) limited: Vec<(Whose, Span)>,
}

impl Spending {
    fn cost(&self) -> Option<Money> {
        self.price.map(|price| budget::cost(&price, self.usage))
    }
}

/// A spender's sum of a day or a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub(crate) spent: Spent,
    /// The amount allowed by an owner besides the limit.
    pub(crate) more: Spent,
    /// The last warning to the owners about this sum.
    pub(crate) warned: Warned,
}

/// A warning to the owners about a spender's sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Warned {
    #[default]
    Nothing,
    LittleLeft,
    NothingLeft,
}

impl Warned {
    fn number(self) -> i64 {
        match self {
            Warned::Nothing => 0,
            Warned::LittleLeft => 1,
            Warned::NothingLeft => 2,
        }
    }

    fn of(number: i64) -> Self {
        match number {
            0 => Warned::Nothing,
            1 => Warned::LittleLeft,
            _ => Warned::NothingLeft,
        }
    }
}

/// The sums of an entry's spenders, including the entry. Sums without a limit are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    agent: [Sum; 2],
    person: [Sum; 2],
    house: [Sum; 2],
}

impl Sums {
    pub(crate) fn of(&self, whose: Whose, span: Span) -> Sum {
        let sums = match whose {
            Whose::Agents => &self.agent,
            Whose::Persons => &self.person,
            Whose::House => &self.house,
        };
        match span {
            Span::Day => sums[0],
            Span::Month => sums[1],
        }
    }

    #[cfg(test)]
    pub(crate) fn of_person(today: Sum) -> Self {
        Sums {
            person: [today, Sum::default()],
            ..Sums::default()
        }
    }
}

pub(crate) fn spend(tx: &Transaction<'_>, spending: &Spending, now: i64) -> rusqlite::Result<Sums> {
    add_up(tx, spending, budget::day(&Local, now), now)?;
    let (day, month) = (period(Span::Day, now), period(Span::Month, now));
    let amount = Spent {
        tokens: budget::tokens(spending.usage),
        cost: spending.cost().unwrap_or_default(),
    };
    let sums = |whose: Whose, spender: &Spender| -> rusqlite::Result<[Sum; 2]> {
        let spender = spender.text();
        let count = |span, counting: &Counting, period: &str| {
            add(tx, counting, (period, &spender), amount)?;
            match spending.limited.contains(&(whose, span)) {
                true => read(tx, counting, period, &spender),
                false => Ok(Sum::default()),
            }
        };
        Ok([
            count(Span::Day, &DAYS, &day)?,
            count(Span::Month, &MONTHS, &month)?,
        ])
    };
    Ok(Sums {
        agent: sums(Whose::Agents, &Spender::Agent(spending.agent))?,
        person: sums(Whose::Persons, &Spender::Person(spending.person.clone()))?,
        house: sums(Whose::House, &Spender::House)?,
    })
}

/// The table of a span, and its column for the day or the month.
fn table(span: Span) -> (&'static str, &'static str) {
    match span {
        Span::Day => ("budgets", "day"),
        Span::Month => ("month_budgets", "month"),
    }
}

/// The day or month of a moment, in the form of its table.
fn period(span: Span, now: i64) -> String {
    let begin = span.begin(&Local, now);
    match span {
        Span::Day => begin.to_string(),
        Span::Month => begin.format("%Y-%m").to_string(),
    }
}

fn add_up(
    tx: &Transaction<'_>,
    spending: &Spending,
    day: NaiveDate,
    now: i64,
) -> rusqlite::Result<()> {
    let place = places::ensure(tx, &spending.place, now)?;
    let Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    } = spending.usage;
    tx.prepare_cached(&format!(
        "INSERT INTO spending (day, agent_uid, place_id, person, model, turns, input_tokens, output_tokens, cached_tokens, cost_micros)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) {ADDED}"
    ))?
    .execute(params![
        day.to_string(),
        spending.agent.to_string(),
        place,
        spending.person.to_string(),
        spending.model,
        spending.turns,
        input_tokens.cast_signed(),
        output_tokens.cast_signed(),
        cached_tokens.cast_signed(),
        spending.cost().map(|cost| cost.0.cast_signed()),
    ])
    .map(drop)
}

/// Adds the new amounts to the stored row, `spending`.
const ADDED: &str = "ON CONFLICT (day, agent_uid, place_id, person, model) DO UPDATE SET
    turns = spending.turns + excluded.turns,
    input_tokens = spending.input_tokens + excluded.input_tokens,
    output_tokens = spending.output_tokens + excluded.output_tokens,
    cached_tokens = spending.cached_tokens + excluded.cached_tokens,
    cost_micros = coalesce(spending.cost_micros + excluded.cost_micros, spending.cost_micros, excluded.cost_micros)";

/// The statements of [`add`] and [`read`]. Each turn adds to six sums, and `RETURNING` would make a table in
/// memory for each of them.
struct Counting {
    add: &'static str,
    insert: &'static str,
    read: &'static str,
}

const DAYS: Counting = Counting {
    add: "UPDATE budgets SET tokens = tokens + ?3, cost_micros = cost_micros + ?4 WHERE day = ?1 AND spender = ?2",
    insert: "INSERT INTO budgets (day, spender, tokens, cost_micros) VALUES (?1, ?2, ?3, ?4)",
    read: "SELECT tokens, cost_micros, more_tokens, more_cost_micros, warned FROM budgets WHERE day = ?1 AND spender = ?2",
};
const MONTHS: Counting = Counting {
    add: "UPDATE month_budgets SET tokens = tokens + ?3, cost_micros = cost_micros + ?4 WHERE month = ?1 AND spender = ?2",
    insert: "INSERT INTO month_budgets (month, spender, tokens, cost_micros) VALUES (?1, ?2, ?3, ?4)",
    read: "SELECT tokens, cost_micros, more_tokens, more_cost_micros, warned FROM month_budgets WHERE month = ?1 AND spender = ?2",
};

fn add(
    tx: &Transaction<'_>,
    counting: &Counting,
    (period, spender): (&str, &str),
    Spent { tokens, cost }: Spent,
) -> rusqlite::Result<()> {
    let (tokens, cost) = (tokens.cast_signed(), cost.0.cast_signed());
    let added = params![period, spender, tokens, cost];
    if tx.prepare_cached(counting.add)?.execute(added)? == 0 {
        tx.prepare_cached(counting.insert)?.execute(added)?;
    }
    Ok(())
}

fn read(
    connection: &Connection,
    counting: &Counting,
    period: &str,
    spender: &str,
) -> rusqlite::Result<Sum> {
    let mut statement = connection.prepare_cached(counting.read)?;
    let found = statement.query_row(params![period, spender], read_sum);
    Ok(found.optional()?.unwrap_or_default())
}

fn read_sum(row: &Row<'_>) -> rusqlite::Result<Sum> {
    let amount = |column| -> rusqlite::Result<Spent> {
        Ok(Spent {
            tokens: unsigned(row, column)?,
            cost: Money(unsigned(row, column + 1)?),
        })
    };
    Ok(Sum {
        spent: amount(0)?,
        more: amount(2)?,
        warned: Warned::of(row.get(4)?),
    })
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column)
        .map(|number| u64::try_from(number).unwrap_or(0))
}

/// A spender's sum of today or of this month.
pub(crate) fn sum(
    connection: &Connection,
    spender: &Spender,
    span: Span,
    now: i64,
) -> rusqlite::Result<Sum> {
    let counting = match span {
        Span::Day => &DAYS,
        Span::Month => &MONTHS,
    };
    read(connection, counting, &period(span, now), &spender.text())
}

/// The spending of today.
pub(crate) fn today(
    connection: &Connection,
    spender: &Spender,
    now: i64,
) -> rusqlite::Result<Spent> {
    Ok(sum(connection, spender, Span::Day, now)?.spent)
}

/// The spending of today of all people.
pub(crate) fn people_today(
    connection: &Connection,
    now: i64,
) -> rusqlite::Result<HashMap<PersonId, Spent>> {
    let mut statement = connection.prepare_cached(
        "SELECT tokens, cost_micros, more_tokens, more_cost_micros, warned, spender FROM budgets
         WHERE day = ?1 AND spender >= 'person:' AND spender < 'person;'",
    )?;
    let rows = statement.query_map([period(Span::Day, now)], |row| {
        let spender = row.get_ref(5)?.as_str()?;
        let person = spender
            .strip_prefix("person:")
            .and_then(|id| id.parse().ok());
        Ok(person.zip(Some(read_sum(row)?.spent)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// The tokens of today that no price is known for, by person. The demo model costs nothing.
pub(crate) fn unpriced_today(
    connection: &Connection,
    now: i64,
) -> rusqlite::Result<HashMap<PersonId, u64>> {
    let mut statement = connection.prepare_cached(
        "SELECT person, sum(input_tokens + output_tokens) FROM spending
         WHERE day = ?1 AND cost_micros IS NULL AND model <> 'demo' GROUP BY person",
    )?;
    let day = budget::day(&Local, now).to_string();
    let rows = statement.query_map([day], |row| {
        let person = row.get_ref(0)?.as_str()?.parse().ok();
        Ok(person.zip(Some(unsigned(row, 1)?)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// True once in a span for each of the two words: then the owners are told.
pub(crate) fn warn(
    tx: &Transaction<'_>,
    (spender, span): (&Spender, Span),
    told: Warned,
    now: i64,
) -> rusqlite::Result<bool> {
    let (table, column) = table(span);
    let mut statement = tx.prepare_cached(&format!(
        "UPDATE {table} SET warned = ?3 WHERE {column} = ?1 AND spender = ?2 AND warned < ?3"
    ))?;
    Ok(statement.execute(params![period(span, now), spender.text(), told.number()])? == 1)
}

/// Raises a limit for the span of now. Owners and places are told anew when the new limit is near.
pub(crate) fn allow(
    tx: &Transaction<'_>,
    spender: &Spender,
    span: Span,
    more: Spent,
    now: i64,
) -> rusqlite::Result<()> {
    let (table, column) = table(span);
    tx.prepare_cached(&format!(
        "INSERT INTO {table} ({column}, spender, more_tokens, more_cost_micros) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET more_tokens = more_tokens + excluded.more_tokens,
             more_cost_micros = more_cost_micros + excluded.more_cost_micros, warned = 0"
    ))?
    .execute(params![
        period(span, now),
        spender.text(),
        more.tokens.cast_signed(),
        more.cost.0.cast_signed()
    ])?;
    tx.execute(
        "DELETE FROM budget_notices WHERE spender = ?1",
        [spender.text()],
    )
    .map(drop)
}

/// Adds the sums of a linked id to the person's sums, so that linking frees no budget.
pub(crate) fn link(
    tx: &Transaction<'_>,
    main: &PersonId,
    linked: &PersonId,
) -> rusqlite::Result<()> {
    let (main, linked) = (
        Spender::Person(main.clone()).text(),
        Spender::Person(linked.clone()).text(),
    );
    for span in Span::ALL {
        let (table, column) = table(span);
        tx.execute(
            &format!(
                "INSERT INTO {table} ({column}, spender, tokens, cost_micros, more_tokens, more_cost_micros)
                 SELECT {column}, ?2, tokens, cost_micros, more_tokens, more_cost_micros FROM {table} WHERE spender = ?1
                 ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost_micros = cost_micros + excluded.cost_micros,
                     more_tokens = more_tokens + excluded.more_tokens,
                     more_cost_micros = more_cost_micros + excluded.more_cost_micros"
            ),
            params![linked, main],
        )?;
        tx.execute(
            &format!("DELETE FROM {table} WHERE spender = ?1"),
            [&linked],
        )?;
    }
    Ok(())
}

/// Whether an agent has used a model without a price today. The demo model costs nothing.
pub(crate) fn has_unpriced(
    connection: &Connection,
    agent: AgentUid,
    now: i64,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM spending
               WHERE day = ?1 AND agent_uid = ?2 AND cost_micros IS NULL AND model <> 'demo')";
    let day = budget::day(&Local, now).to_string();
    connection.query_row(sql, params![day, agent.to_string()], |row| row.get(0))
}

/// True if the place is to be told about the spender's limit. From then on the place counts as told
/// until `until`. A notice that lasts longer was written under a wrong clock.
pub(crate) fn is_news(
    tx: &Transaction<'_>,
    place: &SessionKey,
    spender: &Spender,
    until: i64,
    now: i64,
) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO budget_notices (place_id, spender, until) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <= ?4 OR until > excluded.until",
    )?;
    Ok(statement.execute(params![
        places::ensure(tx, place, now)?,
        spender.text(),
        until,
        now
    ])? == 1)
}

/// The key for adding up spending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Agent,
    Place,
    Person,
    Model,
}

impl By {
    pub(crate) const ALL: [By; 4] = [By::Agent, By::Place, By::Person, By::Model];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            By::Agent => "agent",
            By::Place => "place",
            By::Person => "person",
            By::Model => "model",
        }
    }

    fn column(self) -> &'static str {
        match self {
            By::Agent => "agent_uid",
            By::Place => "place_id",
            By::Person => "person",
            By::Model => "model",
        }
    }

    /// The name of a value of the column.
    fn name(self) -> &'static str {
        match self {
            By::Agent => {
                "(SELECT coalesce('former-' || archived_id, slug) FROM agents WHERE uid = sums.id)"
            }
            By::Place => "(SELECT key FROM places WHERE places.id = sums.id)",
            By::Person | By::Model => "sums.id",
        }
    }
}

/// A number of days up to today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period {
    Today,
    Week,
    Month,
}

impl Period {
    pub(crate) const ALL: [Period; 3] = [Period::Today, Period::Week, Period::Month];

    /// The period in people's words.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Period::Today => "today",
            Period::Week => "7d",
            Period::Month => "30d",
        }
    }

    pub(crate) fn first_day(self, now: i64) -> NaiveDate {
        let days = match self {
            Period::Today => 0,
            Period::Week => 6,
            Period::Month => 29,
        };
        budget::day(&Local, now) - chrono::Days::new(days)
    }
}

/// Spending of a single agent, place, person or model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UsageLine {
    pub(crate) name: String,
    pub(crate) turns: u64,
    pub(crate) usage: Usage,
    /// The cost of models with a price.
    pub(crate) cost: Option<Money>,
    /// Tokens of models without a price, which the cost leaves out. The demo model costs nothing.
    pub(crate) unpriced_tokens: u64,
}

impl UsageLine {
    fn add(&mut self, other: &UsageLine) {
        self.turns += other.turns;
        self.usage.add(other.usage);
        self.unpriced_tokens += other.unpriced_tokens;
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(Money(one.0.saturating_add(other.0))),
            (one, other) => one.or(other),
        };
    }
}

/// Spending by key, the most expensive first. With the ids of a person, only the spending of that
/// person.
pub(crate) fn report(
    connection: &Connection,
    by: By,
    period: Period,
    person: Option<&[PersonId]>,
    now: i64,
) -> rusqlite::Result<Vec<UsageLine>> {
    report_since(connection, by, period.first_day(now), person)
}

/// Spending by key from a day on, the most expensive first. With the ids of a person, only the
/// spending of this person.
pub(crate) fn report_since(
    connection: &Connection,
    by: By,
    first_day: NaiveDate,
    person: Option<&[PersonId]>,
) -> rusqlite::Result<Vec<UsageLine>> {
    let (column, name) = (by.column(), by.name());
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {name}, turns, input_tokens, output_tokens, cached_tokens, cost_micros, unpriced_tokens
         FROM (SELECT {column} AS id, sum(turns) AS turns, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
                      sum(cached_tokens) AS cached_tokens, sum(cost_micros) AS cost_micros,
                      sum(CASE WHEN cost_micros IS NULL AND model <> 'demo' THEN input_tokens + output_tokens ELSE 0 END) AS unpriced_tokens
               FROM spending WHERE day >= ?1 AND (?2 IS NULL OR person IN (SELECT value FROM json_each(?2))) GROUP BY {column}) AS sums"
    ))?;
    let ids = person.map(|ids| {
        let ids: Vec<String> = ids.iter().map(PersonId::to_string).collect();
        serde_json::Value::from(ids).to_string()
    });
    let lines = statement.query_map(params![first_day.to_string(), ids], |row| {
        let usage = Usage {
            input_tokens: unsigned(row, 2)?,
            output_tokens: unsigned(row, 3)?,
            cached_tokens: unsigned(row, 4)?,
        };
        let cost = row
            .get::<_, Option<i64>>(5)?
            .map(|micros| Money(u64::try_from(micros).unwrap_or(0)));
        Ok(UsageLine {
            name: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
            turns: unsigned(row, 1)?,
            usage,
            cost,
            unpriced_tokens: unsigned(row, 6)?,
        })
    })?;
    let mut lines = by_name(lines.collect::<rusqlite::Result<_>>()?);
    lines.sort_by_cached_key(|line| {
        let tokens = line.usage.input_tokens + line.usage.output_tokens;
        let cost = line.cost.map(|cost| cost.0);
        (Reverse(cost), Reverse(tokens), line.name.clone())
    });
    Ok(lines)
}

/// Adds lines of the same name up: several agents of one name may have been removed.
fn by_name(lines: Vec<UsageLine>) -> Vec<UsageLine> {
    let mut sums: HashMap<String, UsageLine> = HashMap::with_capacity(lines.len());
    for line in lines {
        match sums.entry(line.name.clone()) {
            Entry::Occupied(mut sum) => sum.get_mut().add(&line),
            Entry::Vacant(free) => {
                free.insert(line);
            }
        }
    }
    sums.into_values().collect()
}

/// The sum of all lines.
pub(crate) fn total(lines: &[UsageLine]) -> UsageLine {
    lines.iter().fold(UsageLine::default(), |mut total, line| {
        total.add(line);
        total
    })
}

/// Adds the spending in the old row of a place to its new row.
pub(crate) fn merge(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<()> {
    let sum = format!(
        "INSERT INTO spending (day, agent_uid, place_id, person, model, turns, input_tokens, output_tokens, cached_tokens, cost_micros)
         SELECT day, agent_uid, ?2, person, model, turns, input_tokens, output_tokens, cached_tokens, cost_micros
         FROM spending WHERE place_id = ?1 {ADDED}"
    );
    tx.execute(&sum, params![old, new])?;
    tx.execute("DELETE FROM spending WHERE place_id = ?1", [old])?;
    tx.execute(
        "UPDATE OR IGNORE budget_notices SET place_id = ?2 WHERE place_id = ?1",
        params![old, new],
    )?;
    tx.execute("DELETE FROM budget_notices WHERE place_id = ?1", [old])
        .map(drop)
}

/// Deletes the spending of an agent. The sums of people stay.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    let spender = Spender::Agent(uid).text();
    Ok(tx.execute(
        "DELETE FROM spending WHERE agent_uid = ?1",
        [uid.to_string()],
    )? + tx.execute("DELETE FROM budgets WHERE spender = ?1", [&spender])?
        + tx.execute("DELETE FROM month_budgets WHERE spender = ?1", [&spender])?
        + tx.execute("DELETE FROM budget_notices WHERE spender = ?1", [&spender])?)
}

/// Only the sum of this month counts, but the clock may be wrong about the month.
fn month_before(now: i64) -> String {
    let begin = Span::Month.begin(&Local, now);
    (begin - Months::new(1)).format("%Y-%m").to_string()
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let today = budget::day(&Local, now);
    let (oldest, no_longer_counted) = (
        today - chrono::Days::new(KEPT_DAYS),
        today - chrono::Days::new(KEPT_SUM_DAYS),
    );
    let old = |table: &str, key: &str, is_old: &str| {
        format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {is_old} < ?1 LIMIT ?2)"
        )
    };
    let spending = old("spending", "day, agent_uid, place_id, person, model", "day");
    Ok(tx.execute(&spending, params![oldest.to_string(), most])?
        + tx.execute(
            &old("budgets", "day, spender", "day"),
            params![no_longer_counted.to_string(), most],
        )?
        + tx.execute(
            &old("month_budgets", "month, spender", "month"),
            params![month_before(now), most],
        )?
        + tx.execute(
            &old("budget_notices", "place_id, spender", "until"),
            params![now, most],
        )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::agent_rows;
    use crate::domain::AgentId;
    use crate::storage::Db;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    /// Noon of some day, far from midnight everywhere.
    const NOON: i64 = 20_000 * DAY_MS + DAY_MS / 2;

    async fn open(folder: &tempfile::TempDir) -> (Db, AgentUid) {
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let main = AgentId::main();
        let agent_rows = db
            .write(move |tx| agent_rows::add(tx, &[main], 0).and_then(|()| agent_rows::load(tx)))
            .await
            .unwrap();
        (db, agent_rows[&AgentId::main()].uid)
    }

    /// With a price, a hundred tokens cost five.
    fn spending(agent: AgentUid, tokens: u64, is_priced: bool) -> Spending {
        let price = Price {
            input: Money(50_000),
            output: Money(0),
            cached: Money(0),
        };
        Spending {
            place: "telegram:dm:1".parse().unwrap(),
            agent,
            person: "telegram:1".parse().unwrap(),
            model: "fake/any".into(),
            usage: Usage {
                input_tokens: tokens,
                output_tokens: 0,
                cached_tokens: 0,
            },
            price: is_priced.then_some(price),
            turns: 1,
            limited: [Whose::Agents, Whose::Persons, Whose::House]
                .into_iter()
                .flat_map(|whose| Span::ALL.map(|span| (whose, span)))
                .collect(),
        }
    }

    #[tokio::test]
    async fn a_day_is_looked_up_and_not_added_up() {
        let folder = tempfile::tempdir().unwrap();
        let (db, _) = open(&folder).await;
        for (counting, expected) in [
            (
                DAYS,
                "SEARCH budgets USING PRIMARY KEY (day=? AND spender=?)",
            ),
            (
                MONTHS,
                "SEARCH month_budgets USING PRIMARY KEY (month=? AND spender=?)",
            ),
        ] {
            let explain = format!("EXPLAIN QUERY PLAN {}", counting.read);
            let plan: String = db
                .read(move |connection| {
                    connection.query_row(&explain, ["", ""], |row| row.get("detail"))
                })
                .await
                .unwrap();
            assert_eq!(plan, expected);
        }
    }

    #[tokio::test]
    async fn days_are_apart_and_periods_end_today() {
        let folder = tempfile::tempdir().unwrap();
        let (db, agent) = open(&folder).await;
        let check = move |tx: &Transaction<'_>| {
            for days_ago in [0, 1, 6, 7, 29, 30] {
                spend(tx, &spending(agent, 100, true), NOON - days_ago * DAY_MS)?;
            }
            // Spending without a price leaves the cost as it is.
            let today = spend(tx, &spending(agent, 11, false), NOON)?;
            let of = |whose, span| today.of(whose, span).spent;
            assert_eq!(
                of(Whose::Agents, Span::Day),
                Spent {
                    tokens: 111,
                    cost: Money(5)
                }
            );
            assert_eq!(of(Whose::Persons, Span::Day), of(Whose::Agents, Span::Day));
            assert_eq!(of(Whose::House, Span::Day), of(Whose::Agents, Span::Day));
            let month = of(Whose::House, Span::Month);
            assert!(month.tokens > 111, "and the days before: {month:?}");
            for (period, turns, cost) in [
                (Period::Today, 2, 5),
                (Period::Week, 4, 15),
                (Period::Month, 6, 25),
            ] {
                let lines = report(tx, By::Agent, period, None, NOON)?;
                assert_eq!(
                    lines
                        .iter()
                        .map(|line| line.name.as_str())
                        .collect::<Vec<_>>(),
                    ["main"]
                );
                assert_eq!(
                    (total(&lines).turns, total(&lines).cost),
                    (turns, Some(Money(cost))),
                    "{period:?}"
                );
            }
            assert!(
                report(
                    tx,
                    By::Place,
                    Period::Month,
                    Some(&["telegram:2".parse().unwrap()]),
                    NOON
                )?
                .is_empty()
            );
            let warned = |tx: &Transaction<'_>, told, now| {
                warn(tx, (&Spender::Agent(agent), Span::Day), told, now)
            };
            Ok((
                warned(tx, Warned::LittleLeft, NOON)?,
                warned(tx, Warned::LittleLeft, NOON)?,
                warned(tx, Warned::NothingLeft, NOON)?,
                warned(tx, Warned::LittleLeft, NOON)?,
                warned(tx, Warned::LittleLeft, NOON - DAY_MS)?,
            ))
        };
        assert_eq!(
            db.write(check).await.unwrap(),
            (true, false, true, false, true),
            "each once a day"
        );
    }

    #[tokio::test]
    async fn a_place_is_told_once_until_the_limit_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let (db, agent) = open(&folder).await;
        let check = move |tx: &Transaction<'_>| {
            let news = |place: &str, spender: Spender, now| {
                is_news(tx, &place.parse().unwrap(), &spender, now + 60, now)
            };
            let person = || Spender::Person("telegram:1".parse().unwrap());
            assert!(news("telegram:dm:1", person(), 0)?);
            assert!(
                !news("telegram:dm:1", person(), 59)?,
                "and asking does not make it longer"
            );
            assert!(news("telegram:dm:1", Spender::Agent(agent), 59)?);
            assert!(news("telegram:dm:2", person(), 59)?);
            assert!(news("telegram:dm:1", person(), 60)?);
            assert!(
                news("telegram:dm:1", person(), -1000)?,
                "the clock went back, and nobody is left without a word for that"
            );
            assert_eq!(forget_old(tx, NOON, 10)?, 3);
            spend(tx, &spending(agent, 100, false), NOON)?;
            assert_eq!(purge(tx, agent)?, 3, "the person's own sums stay");
            assert_eq!(today(tx, &person(), NOON)?.tokens, 100);
            Ok(())
        };
        db.write(check).await.unwrap();
    }
}
