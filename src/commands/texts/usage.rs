//! `/usage`.

use super::words::{count, grouped, money};
use crate::config::Currency;
use crate::records::ledger::{By, Period, UsageLine};
use crate::turn::budget;

/// Lines of a list; the rest is only counted.
const MOST_LISTED: usize = 8;

/// `most` is the person's limit for today, if there is a limit.
pub(crate) fn usage(
    period: Period,
    total: &UsageLine,
    lists: &[(By, Vec<UsageLine>)],
    most: Option<u64>,
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
    if let Some(most) = most {
        let left = most.saturating_sub(budget::tokens(total.usage));
        text.push_str(&format!(
            " You have {} of {} tokens left today.",
            grouped(left),
            grouped(most)
        ));
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

fn describe(line: &UsageLine, currency: &Currency) -> String {
    let cached = match line.usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", grouped(cached)),
    };
    let cost = line
        .cost
        .filter(|cost| cost.0 > 0)
        .map_or_else(String::new, |cost| format!(", {}", money(cost, currency)));
    format!(
        "{}, {} tokens{cached}{cost}",
        count(line.turns, "turn"),
        grouped(budget::tokens(line.usage))
    )
}

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
        }
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
        insta::assert_snapshot!(usage(Period::Week, &total, &lists, None, &Currency::default()), @"
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
        insta::assert_snapshot!(usage(Period::Today, &UsageLine::default(), &[], Some(5_000), &Currency::default()), @"Today: nothing used. You have 5,000 of 5,000 tokens left today.");
    }
}
