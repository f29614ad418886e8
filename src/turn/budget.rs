//! Decides whether a turn may still spend. Pure: spending and limits go in, a verdict comes out.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, TimeZone};
use serde::{Deserialize, Serialize};

use crate::config::{Budget, Caps, Money, Price};
use crate::figures::zone_name;
use crate::models::Usage;

/// From this part of a limit on, little is left.
const NEARLY_PERCENT: u64 = 80;

/// Tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub tokens: u64,
    pub cost: Money,
}

/// The time that a budget is for, by the calendar of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Span {
    Day,
    Month,
}

impl Span {
    pub(crate) const ALL: [Span; 2] = [Span::Day, Span::Month];

    /// The span of now, as people write it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Span::Day => "today",
            Span::Month => "this month",
        }
    }

    pub(crate) fn caps(self, budget: &Budget) -> Caps {
        match self {
            Span::Day => budget.day,
            Span::Month => budget.month,
        }
    }

    /// The first day of the span that has this moment.
    pub(crate) fn begin<Z: TimeZone>(self, zone: &Z, at: i64) -> NaiveDate {
        let day = day(zone, at);
        match self {
            Span::Day => day,
            Span::Month => day.with_day(1).unwrap_or(day),
        }
    }

    pub(crate) fn end<Z: TimeZone>(self, zone: &Z, at: i64) -> i64 {
        let begin = self.begin(zone, at);
        let next = match self {
            Span::Day => begin + Days::new(1),
            Span::Month => begin + Months::new(1),
        };
        begin_of(zone, next).unwrap_or(at + 24 * 60 * 60 * 1000)
    }
}

/// The subject of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Limit {
    Tokens(Span),
    Cost(Span),
    /// So many are allowed.
    TurnsPerMinute(u32),
}

/// The owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Whose {
    Agents,
    Persons,
    /// Of all agents together.
    House,
}

/// How spending stands to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// Little is left of this.
    Nearly(Limit),
    /// Nothing is left of this.
    Over(Limit),
}

/// A reached limit, and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Over {
    pub whose: Whose,
    pub limit: Limit,
    /// Unix milliseconds.
    pub free_at: i64,
}

impl Over {
    /// For the operator.
    pub(crate) fn in_words(&self) -> &'static str {
        match (self.limit, self.whose) {
            (Limit::Tokens(Span::Day), Whose::Agents) => "the agent's tokens of the day",
            (Limit::Tokens(Span::Day), Whose::Persons) => "the person's tokens of the day",
            (Limit::Tokens(Span::Day), Whose::House) => "the house's tokens of the day",
            (Limit::Cost(Span::Day), Whose::Agents) => "the agent's cost of the day",
            (Limit::Cost(Span::Day), Whose::Persons) => "the person's cost of the day",
            (Limit::Cost(Span::Day), Whose::House) => "the house's cost of the day",
            (Limit::Tokens(Span::Month), Whose::Agents) => "the agent's tokens of the month",
            (Limit::Tokens(Span::Month), Whose::Persons) => "the person's tokens of the month",
            (Limit::Tokens(Span::Month), Whose::House) => "the house's tokens of the month",
            (Limit::Cost(Span::Month), Whose::Agents) => "the agent's cost of the month",
            (Limit::Cost(Span::Month), Whose::Persons) => "the person's cost of the month",
            (Limit::Cost(Span::Month), Whose::House) => "the house's cost of the month",
            (Limit::TurnsPerMinute(_), Whose::Agents) => "the agent's turns in a minute",
            (Limit::TurnsPerMinute(_), Whose::Persons) => "the person's turns in a minute",
            (Limit::TurnsPerMinute(_), Whose::House) => "the house's turns in a minute",
        }
    }
}

/// The limit with the least left decides.
pub(crate) fn verdict(span: Span, caps: &Caps, spent: Spent) -> Verdict {
    let tokens = caps
        .tokens
        .map(|most| (Limit::Tokens(span), percent(spent.tokens, most)));
    let cost = caps
        .cost
        .map(|most| (Limit::Cost(span), percent(spent.cost.0, most.0)));
    match tokens
        .into_iter()
        .chain(cost)
        .max_by_key(|(_, percent)| *percent)
    {
        Some((limit, 100..)) => Verdict::Over(limit),
        Some((limit, NEARLY_PERCENT..)) => Verdict::Nearly(limit),
        _ => Verdict::Fine,
    }
}

/// The caps with what an owner has allowed besides. No cap stays none.
pub(crate) fn raised(caps: &Caps, more: Spent) -> Caps {
    let cost = |most: Money| Money(most.0.saturating_add(more.cost.0));
    Caps {
        tokens: caps.tokens.map(|most| most.saturating_add(more.tokens)),
        cost: caps.cost.map(cost),
    }
}

/// Whole percents; 100 only when nothing is left.
pub(crate) fn percent(spent: u64, most: u64) -> u64 {
    let percent = u128::from(spent) * 100 / u128::from(most.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// The cost of tokens. Rounded up, so many small calls are not free.
pub(crate) fn cost(price: &Price, usage: Usage) -> Money {
    let cached = usage.cached_tokens.min(usage.input_tokens);
    let parts = [
        (usage.input_tokens - cached, price.input),
        (cached, price.cached),
        (usage.output_tokens, price.output),
    ];
    let of_million: u128 = parts
        .iter()
        .map(|(tokens, price)| u128::from(*tokens) * u128::from(price.0))
        .sum();
    Money(u64::try_from(of_million.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// All tokens, as limits count them. Cached tokens are part of the input.
pub(crate) fn tokens(usage: Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

/// The day of a moment in `zone`.
pub(crate) fn day<Z: TimeZone>(zone: &Z, at: i64) -> NaiveDate {
    moment(zone, at).date_naive()
}

/// The first moment of a day.
fn begin_of<Z: TimeZone>(zone: &Z, day: NaiveDate) -> Option<i64> {
    // A day begins at 01:00 where clocks are changed at midnight.
    let hours = (0..3).filter_map(|hour| NaiveTime::from_hms_opt(hour, 0, 0));
    let begins = hours
        .filter_map(|hour| zone.from_local_datetime(&day.and_time(hour)).earliest())
        .next();
    begins.map(|begins| begins.timestamp_millis())
}

fn moment<Z: TimeZone>(zone: &Z, at: i64) -> DateTime<Z> {
    zone.from_utc_datetime(
        &DateTime::from_timestamp_millis(at)
            .unwrap_or_default()
            .naive_utc(),
    )
}

/// For the log: "the agent has used up its tokens for today".
impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, its) = match self.whose {
            Whose::Agents => ("the agent", "its"),
            Whose::Persons => ("the person", "their"),
            Whose::House => ("the house", "its"),
        };
        match self.limit {
            Limit::Tokens(span) => {
                write!(f, "{whose} has used up {its} tokens for {}", span.as_str())
            }
            Limit::Cost(span) => write!(f, "{whose} has used up {its} money for {}", span.as_str()),
            Limit::TurnsPerMinute(_) => write!(f, "{whose} has reached {its} turns a minute"),
        }
    }
}

impl Over {
    /// For the chat.
    pub(crate) fn told<Z: TimeZone>(&self, zone: &Z, now: i64) -> String
    where
        Z::Offset: std::fmt::Display,
    {
        let free_at = moment(zone, self.free_at);
        let left = u64::try_from(self.free_at.saturating_sub(now)).unwrap_or_default();
        let wait = in_words(Duration::from_millis(left));
        match (self.whose, self.limit) {
            (Whose::Agents | Whose::House, Limit::TurnsPerMinute(most)) => format!(
                "I've reached my limit of {} a minute. Try again in {wait}.",
                answers(most)
            ),
            (Whose::Persons, Limit::TurnsPerMinute(most)) => format!(
                "You've reached your limit of {} a minute. Try again in {wait}.",
                answers(most)
            ),
            (whose, Limit::Tokens(span)) => used_up(whose, "tokens", span, &free_at),
            (whose, Limit::Cost(span)) => used_up(whose, "money", span, &free_at),
        }
    }
}

fn answers(most: u32) -> String {
    let noun = if most == 1 { "answer" } else { "answers" };
    format!("{most} {noun}")
}

fn used_up<Z: TimeZone>(whose: Whose, what: &str, span: Span, free_at: &DateTime<Z>) -> String
where
    Z::Offset: std::fmt::Display,
{
    let when = span.as_str();
    let used_up = match whose {
        Whose::Agents => format!("I've used up my {what} for {when}."),
        Whose::Persons => format!("You've used up your {what} for {when}."),
        Whose::House => format!("All of us here have used up our {what} for {when}."),
    };
    let again = match span {
        Span::Day => free_at.format("%H:%M"),
        Span::Month => free_at.format("%-d %B, %H:%M"),
    };
    let zone = zone_name(&free_at.format("%:z").to_string());
    format!("{used_up} Try again after {again} {zone}.")
}

/// A time to wait as people say it, rounded up: `20 seconds`, `2 hours`.
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_millis().div_ceil(1000).max(1);
    let (count, unit) = match seconds {
        0..=90 => (seconds, "second"),
        91..=5_400 => (seconds.div_ceil(60), "minute"),
        5_401..=172_800 => (seconds.div_ceil(60 * 60), "hour"),
        _ => (seconds.div_ceil(24 * 60 * 60), "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests;
