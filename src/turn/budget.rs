//! Decides whether a turn may still spend. Pure: spending and limits go in, a verdict comes out.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeZone};

use crate::config::{DayLimits, Money, Price};
use crate::models::Usage;

/// From this part of a limit on, little is left.
const NEARLY_PERCENT: u64 = 80;

/// The spending of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    pub tokens: u64,
    pub cost: Money,
}

/// The subject of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    TokensPerDay,
    CostPerDay,
    TurnsPerMinute,
}

/// The owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Agents,
    Persons,
}

/// How a day's spending stands to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// Little is left of this.
    Nearly(Limit),
    /// Nothing is left of this.
    Over(Limit),
}

/// A reached limit, and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Over {
    pub whose: Whose,
    pub limit: Limit,
    /// Unix milliseconds.
    pub free_at: i64,
}

/// The limit with the least left decides.
pub(crate) fn of_day(limits: &DayLimits, spent: Spent) -> Verdict {
    let tokens = limits
        .tokens
        .map(|most| (Limit::TokensPerDay, percent(spent.tokens, most)));
    let cost = limits
        .cost
        .map(|most| (Limit::CostPerDay, percent(spent.cost.0, most.0)));
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

/// The end of a day.
pub(crate) fn end_of_day<Z: TimeZone>(zone: &Z, at: i64) -> i64 {
    let tomorrow = day(zone, at) + Days::new(1);
    // A day begins at 01:00 where clocks are changed at midnight.
    let hours = (0..3).filter_map(|hour| NaiveTime::from_hms_opt(hour, 0, 0));
    let begins = hours
        .filter_map(|hour| {
            zone.from_local_datetime(&tomorrow.and_time(hour))
                .earliest()
        })
        .next();
    begins.map_or(at + 24 * 60 * 60 * 1000, |begins| begins.timestamp_millis())
}

fn moment<Z: TimeZone>(zone: &Z, at: i64) -> DateTime<Z> {
    zone.from_utc_datetime(
        &DateTime::from_timestamp_millis(at)
            .unwrap_or_default()
            .naive_utc(),
    )
}

impl Over {
    /// For the chat.
    pub(crate) fn told<Z: TimeZone>(&self, zone: &Z) -> String
    where
        Z::Offset: std::fmt::Display,
    {
        let free_at = moment(zone, self.free_at);
        match (self.whose, self.limit) {
            (Whose::Agents, Limit::TurnsPerMinute) => {
                format!(
                    "I am asked more than I may answer in a minute. Please ask again after {}.",
                    free_at.format("%H:%M:%S")
                )
            }
            (Whose::Persons, Limit::TurnsPerMinute) => {
                format!(
                    "You ask more than I may answer in a minute. Please ask again after {}.",
                    free_at.format("%H:%M:%S")
                )
            }
            (Whose::Agents, Limit::TokensPerDay) => {
                format!("I have used up my tokens for today. {}", again(&free_at))
            }
            (Whose::Agents, Limit::CostPerDay) => {
                format!("I have used up my money for today. {}", again(&free_at))
            }
            (Whose::Persons, _) => format!(
                "You have used up your tokens for today. {}",
                again(&free_at)
            ),
        }
    }
}

fn again<Z: TimeZone>(free_at: &DateTime<Z>) -> String
where
    Z::Offset: std::fmt::Display,
{
    format!(
        "Please ask again tomorrow; I am free at {}.",
        free_at.format("%H:%M")
    )
}

#[cfg(test)]
mod tests;
