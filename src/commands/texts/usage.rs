//! `/usage`.

use super::words::{count, grouped};
use crate::config::{Caps, Currency, Money};
use crate::operations::budgets::{Account, Holder, Raise};
use crate::records::ledger::{By, Period, UsageLine};
use crate::turn::budget::{self, Span, Spent};

/// Lines of a list; the rest is only counted.
const MOST_LISTED: usize = 8;

/// `limits` are shown behind the total: the person's own, or all for an owner.
pub(crate) fn usage(
    period: Period,
    total: &UsageLine,
    lists: &[(By, Vec<UsageLine>)],
    limits: &[(String, Account)],
    currency: &Currency,
) -> String {
    let when = match period {
        Period::Today => "Today",
        Period::Week => "The last 7 days",
        Period::Month => "The last 30 days",
    };
    let mut text = match total.usage.input_tokens + total.usage.output_tokens + total.turns {
        0 => format!("{when}: nothing used."),
        _ => format!("{when}: {}.", describe(total, currency)),
    };
    if !limits.is_empty() {
        text.push_str("\n\nLimits:");
    }
    for (name, account) in limits {
        text.push_str(&format!("\n- {name}{}", against(account, currency)));
    }
    for (by, lines) in lists.iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push_str(&format!("\n\nBy {}:", by.as_str()));
        for line in lines.iter().take(MOST_LISTED) {
            text.push_str(&format!("\n- {}: {}", line.name, describe(line, currency)));
        }
        if lines.len() > MOST_LISTED {
            text.push_str(&format!("\n- and {} more", lines.len() - MOST_LISTED));
        }
    }
    text
}

/// `, today: 1,200 of 5,000 tokens, 0.50 of 2.00 USD (1.00 USD more allowed)`.
pub(crate) fn against(account: &Account, currency: &Currency) -> String {
    let Account {
        span,
        caps,
        spent,
        more,
        ..
    } = account;
    let more = match amounts(*more, currency) {
        more if more.is_empty() => String::new(),
        more => format!(" ({more} more allowed)"),
    };
    format!(
        ", {}: {}{more}",
        span.as_str(),
        spent_of(caps, *spent, currency)
    )
}

/// `1,200 of 5,000 tokens, 0.50 of 2.00 USD`.
fn spent_of(caps: &Caps, spent: Spent, currency: &Currency) -> String {
    let tokens = caps
        .tokens
        .map(|most| format!("{} of {} tokens", grouped(spent.tokens), grouped(most)));
    let cost = caps
        .cost
        .map(|most| format!("{} of {}", spent.cost, most.in_currency(currency)));
    let parts: Vec<String> = tokens.into_iter().chain(cost).collect();
    parts.join(", ")
}

fn amounts(amounts: Spent, currency: &Currency) -> String {
    let tokens = match amounts.tokens {
        0 => None,
        tokens => Some(format!("{} tokens", grouped(tokens))),
    };
    let cost = match amounts.cost.0 {
        0 => None,
        _ => Some(amounts.cost.in_currency(currency)),
    };
    let parts: Vec<String> = tokens.into_iter().chain(cost).collect();
    parts.join(", ")
}

/// A limit was raised.
pub(crate) fn allowed(raise: &Raise, currency: &Currency) -> String {
    let whom = match &raise.holder {
        Holder::Agent(agent) => agent.to_string(),
        Holder::Person { label, .. } => label.clone(),
        Holder::House => "The house".to_owned(),
    };
    let only = match raise.more.tokens {
        0 => Caps {
            tokens: None,
            ..raise.caps
        },
        _ => Caps {
            cost: None,
            ..raise.caps
        },
    };
    let until = match raise.span {
        Span::Day => "Tomorrow the limit of config.toml counts again.",
        Span::Month => "Next month the limit of config.toml counts again.",
    };
    let (more, span) = (amounts(raise.more, currency), raise.span.as_str());
    let so_far = spent_of(&only, raise.spent, currency);
    match still_over(&only, raise.spent) {
        Some(over) => format!(
            "The limit of {whom} is higher by {more} {span}, but that is not enough: {so_far}. Allow more than {} besides. {until}",
            amounts(over, currency)
        ),
        None => format!("{whom} may spend {more} more {span}: {so_far} so far. {until}"),
    }
}

/// The amount spent over a limit, if any.
fn still_over(caps: &Caps, spent: Spent) -> Option<Spent> {
    let over = Spent {
        tokens: caps
            .tokens
            .map_or(0, |most| spent.tokens.saturating_sub(most)),
        cost: caps
            .cost
            .map_or(Money(0), |most| Money(spent.cost.0.saturating_sub(most.0))),
    };
    (over.tokens > 0 || over.cost.0 > 0).then_some(over)
}

pub(crate) const ONLY_OWNERS_ALLOW: &str = "Only owners can raise a limit.";

fn describe(line: &UsageLine, currency: &Currency) -> String {
    let cached = match line.usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", grouped(cached)),
    };
    let is_free = line.cost.is_none_or(|cost| cost.0 == 0) && line.unpriced_tokens == 0;
    let cost = cost(line, currency).filter(|_| !is_free);
    let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
    format!(
        "{}, {} tokens{cached}{cost}",
        count(line.turns, "turn"),
        grouped(budget::tokens(line.usage))
    )
}

/// `0.25 USD`, with the tokens that no price is known for. None where nothing was spent.
pub(crate) fn cost(line: &UsageLine, currency: &Currency) -> Option<String> {
    cost_of(line.cost, line.unpriced_tokens, currency)
}

/// The same for a sum.
pub(crate) fn cost_of(
    cost: Option<Money>,
    unpriced_tokens: u64,
    currency: &Currency,
) -> Option<String> {
    let known = cost.map(|cost| (cost, cost.in_currency(currency)));
    match (known, unpriced_tokens) {
        (known, 0) => known.map(|(_, text)| text),
        (None | Some((Money(0), _)), _) => Some(PRICE_UNKNOWN.to_owned()),
        (Some((_, text)), tokens) => Some(format!(
            "{text} and more ({PRICE_UNKNOWN} for {} tokens)",
            grouped(tokens)
        )),
    }
}

/// Stands where a model has no price in config.toml.
pub(crate) const PRICE_UNKNOWN: &str = "price unknown";

pub(crate) const MORE_IN_PRIVATE: &str =
    "\n\nIn a private chat I also show it by place and by person.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Money;
    use crate::models::Usage;
    use crate::records::ledger;

    fn line(name: &str, turns: u64, input_tokens: u64, cost: Option<u64>) -> UsageLine {
        UsageLine {
            name: name.into(),
            turns,
            usage: Usage {
                input_tokens,
                output_tokens: 7,
                cached_tokens: input_tokens / 2,
            },
            cost: cost.map(Money),
            unpriced_tokens: 0,
        }
    }

    #[test]
    fn tokens_without_a_price_are_not_told_as_free() {
        let told = |cost, unpriced_tokens| {
            let line = UsageLine {
                unpriced_tokens,
                ..line("Rose", 1, 100, cost)
            };
            super::cost(&line, &Currency::default()).unwrap_or_default()
        };
        assert_eq!(told(None, 0), "");
        assert_eq!(told(Some(0), 0), "0.00 USD");
        assert_eq!(told(Some(12_300), 0), "0.0123 USD");
        assert_eq!(told(None, 1_200), "price unknown");
        assert_eq!(told(Some(0), 1_200), "price unknown");
        assert_eq!(
            told(Some(12_300), 1_200),
            "0.0123 USD and more (price unknown for 1,200 tokens)"
        );
    }

    #[test]
    fn usage_reads_well() {
        let models = (0..10).map(|number| line(&format!("openai/{number}"), 1, 100, Some(12_300)));
        let lists = [
            (
                By::Agent,
                vec![
                    line("🌹 Rose", 12, 1_234_560, Some(2_345_678)),
                    line("☕ Main", 1, 0, None),
                ],
            ),
            (
                By::Person,
                vec![line("Alice (`telegram:111`)", 12, 100, Some(6_731))],
            ),
            (By::Model, models.collect()),
        ];
        let total = ledger::total(&lists[0].1);
        insta::assert_snapshot!(usage(Period::Week, &total, &lists, &[], &Currency::default()), @"
        The last 7 days: 13 turns, 1,234,574 tokens (617,280 cached), 2.3457 USD.

        By agent:
        - 🌹 Rose: 12 turns, 1,234,567 tokens (617,280 cached), 2.3457 USD
        - ☕ Main: 1 turn, 7 tokens

        By person:
        - Alice (`telegram:111`): 12 turns, 107 tokens (50 cached), 0.0067 USD

        By model:
        - openai/0: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/1: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/2: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/3: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/4: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/5: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/6: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - openai/7: 1 turn, 107 tokens (50 cached), 0.0123 USD
        - and 2 more
        ");
        let account = |span, more| Account {
            holder: Holder::House,
            span,
            caps: Caps {
                tokens: Some(5_000),
                cost: Some(Money(2_000_000)),
            },
            more: Spent {
                tokens: 0,
                cost: Money(more),
            },
            spent: Spent {
                tokens: 1_200,
                cost: Money(500_000),
            },
        };
        let limits = [
            ("the house".to_owned(), account(Span::Day, 1_000_000)),
            ("🌹 Rose".to_owned(), account(Span::Month, 0)),
        ];
        insta::assert_snapshot!(usage(Period::Today, &UsageLine::default(), &[], &limits, &Currency::default()), @"
        Today: nothing used.

        Limits:
        - the house, today: 1,200 of 5,000 tokens, 0.50 of 2.00 USD (1.00 USD more allowed)
        - 🌹 Rose, this month: 1,200 of 5,000 tokens, 0.50 of 2.00 USD
        ");
    }
}
