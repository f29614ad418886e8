//! Reads the limits of agents and people, and the prices of models.

use std::str::FromStr;

use toml::de::DeValue;

use super::reader::{Section, Value, wrong_type};
use super::{
    AgentLimits, Budget, Caps, Money, PersonLimits, Price, Problem, RoleLimits, Spanned, schema,
};

pub(super) fn agent(section: &Section<'_>) -> AgentLimits {
    let Some(limits) = section.section("limits", &schema::AGENT_LIMITS) else {
        return AgentLimits::default();
    };
    let default = AgentLimits::default();
    AgentLimits {
        max_steps: limits
            .at_least_one("max_steps")
            .unwrap_or(default.max_steps),
        max_minutes: limits
            .at_least_one("max_minutes")
            .unwrap_or(default.max_minutes),
        tokens_per_turn: tokens(&limits, "tokens_per_turn"),
        budget: budget(&limits),
        turns_per_minute: limits.count("turns_per_minute").unwrap_or(0),
    }
}

/// The limits of all agents together: `[limits]`.
pub(super) fn house(top: &Section<'_>) -> Budget {
    let limits = top.section("limits", &schema::HOUSE_LIMITS);
    limits.as_ref().map(budget).unwrap_or_default()
}

fn budget(limits: &Section<'_>) -> Budget {
    let cost = |name| money(limits, name).filter(|cost| cost.0 > 0);
    Budget {
        day: Caps {
            tokens: tokens(limits, "tokens_per_day"),
            cost: cost("cost_per_day"),
        },
        month: Caps {
            tokens: tokens(limits, "tokens_per_month"),
            cost: cost("cost_per_month"),
        },
    }
}

/// The limits of people. A number above the tables of roles counts where a role's table has none.
pub(super) fn people(section: &Section<'_>) -> RoleLimits {
    let Some(limits) = section.section("limits", &schema::PEOPLE_LIMITS) else {
        return RoleLimits::default();
    };
    let of_all = |name| limits.count(name).filter(|number| *number > 0);
    let (own, turns_per_minute) = (budget(&limits), of_all("turns_per_minute"));
    let for_all = |shipped: PersonLimits| PersonLimits {
        budget: over(own, shipped.budget),
        turns_per_minute: turns_per_minute.unwrap_or(shipped.turns_per_minute),
        ..shipped
    };
    let shipped = RoleLimits::default();
    RoleLimits {
        guest: of_role(&limits, "guest", for_all(shipped.guest)),
        member: of_role(&limits, "member", for_all(shipped.member)),
    }
}

/// The first one's caps, and the second one's where the first has none.
fn over(first: Budget, second: Budget) -> Budget {
    let caps = |first: Caps, second: Caps| Caps {
        tokens: first.tokens.or(second.tokens),
        cost: first.cost.or(second.cost),
    };
    Budget {
        day: caps(first.day, second.day),
        month: caps(first.month, second.month),
    }
}

fn of_role(limits: &Section<'_>, role: &str, others: PersonLimits) -> PersonLimits {
    let Some(own) = limits.section(role, &schema::ROLE_LIMITS) else {
        return others;
    };
    let count = |name, other| own.count(name).unwrap_or(other);
    PersonLimits {
        messages_per_minute: count("messages_per_minute", others.messages_per_minute),
        turns_per_minute: count("turns_per_minute", others.turns_per_minute),
        budget: budget_of_role(&own, others.budget),
        turns_at_once: count("turns_at_once", others.turns_at_once),
    }
}

/// A written 0 lifts the limit of all people.
fn budget_of_role(own: &Section<'_>, others: Budget) -> Budget {
    let read = budget(own);
    let is_written = |name| own.value(name).is_some();
    let tokens = |name, read: Option<u64>, other| if is_written(name) { read } else { other };
    let cost = |name, read: Option<Money>, other| if is_written(name) { read } else { other };
    Budget {
        day: Caps {
            tokens: tokens("tokens_per_day", read.day.tokens, others.day.tokens),
            cost: cost("cost_per_day", read.day.cost, others.day.cost),
        },
        month: Caps {
            tokens: tokens("tokens_per_month", read.month.tokens, others.month.tokens),
            cost: cost("cost_per_month", read.month.cost, others.month.cost),
        },
    }
}

/// The prices of a provider's models, by their names there.
pub(super) fn prices(section: &Section<'_>) -> Vec<(String, Price)> {
    let priced = section.named("prices").into_iter().filter_map(|named| {
        if let Some(rest) = named.only_table_below() {
            section.problems.note(unquoted(&named.name, &rest));
            return None;
        }
        let price = named.section(&schema::PRICE)?;
        let (input, output) = (money(&price, "input"), money(&price, "output"));
        let cached = if price.value("cached").is_some() {
            money(&price, "cached")
        } else {
            input
        };
        Some((
            named.name.value,
            Price {
                input: input?,
                output: output?,
                cached: cached?,
            },
        ))
    });
    priced.collect()
}

/// `gpt-5.4 = { … }`: TOML reads the point as a table within a table.
fn unquoted(name: &Spanned<String>, rest: &str) -> Problem {
    let model = format!("{}.{rest}", name.value);
    Problem::new(name.span.clone(), format!("`{model}` needs quotes"))
        .label("a point separates tables")
        .help(format!(
            "write `\"{model}\" = {{ input = 2.0, output = 8.0 }}`, in money for a million tokens"
        ))
}

/// 0 means no limit, like an absent key.
fn tokens(section: &Section<'_>, name: &str) -> Option<u64> {
    section
        .count(name)
        .filter(|tokens| *tokens > 0)
        .map(u64::from)
}

fn money(section: &Section<'_>, name: &str) -> Option<Money> {
    let value = section.value(name)?;
    let money = amount(value).and_then(micros).map(Money);
    if money.is_none() {
        let problem = wrong_type(
            &format!("`{name}`"),
            value,
            "an amount of money, 0 or more, with at most six decimals",
        );
        let problem = match amount(value).is_some_and(|text| text.starts_with('-')) {
            true => problem.label("this is below 0"),
            false => problem,
        };
        section
            .problems
            .note(problem.help(format!("write it like `{}`", section.usage(name))));
    }
    money
}

/// Whether a value is an amount of money above 0.
pub(super) fn is_above_zero(value: &Value<'_>) -> bool {
    amount(value)
        .and_then(micros)
        .is_some_and(|micros| micros > 0)
}

/// The number, read from its text, so that 0.1 is exactly a tenth.
fn amount<'a>(value: &'a Value<'_>) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => Some(integer.as_str()),
        DeValue::Float(float) => Some(float.as_str()),
        _ => None,
    }
}

impl FromStr for Money {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        micros(text).map(Money).ok_or(())
    }
}

/// Millionths of a decimal number.
fn micros(text: &str) -> Option<u64> {
    const DECIMALS: usize = 6;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || fraction.len() > DECIMALS {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<DECIMALS$}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(fraction)
        .filter(|micros| *micros <= MOST_MICROS)
}

/// The highest amount, so that the sum of a day never overflows the database's integers.
const MOST_MICROS: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_to_the_millionth() {
        let check = |text, expected| assert_eq!(micros(text), expected, "{text}");
        check("2.5", Some(2_500_000));
        check("10", Some(10_000_000));
        check("0.000001", Some(1));
        check("0.1", Some(100_000));
        check("1.5000000", Some(1_500_000));
        check("0", Some(0));
        for wrong in [
            "-1",
            "+1",
            "1e3",
            "inf",
            "nan",
            "0.0000001",
            "",
            ".5",
            "99999999999999999999",
            "10000000000",
        ] {
            check(wrong, None);
        }
    }
}
