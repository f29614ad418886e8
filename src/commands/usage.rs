//! `/usage`: tells the spending. Owners see all of it, others their own.

use rusqlite::Connection;

use super::Context;
use crate::access::Role;
use crate::clock::now_ms;
use crate::records::ledger::{self, By, Period, UsageLine};
use crate::storage::StoreError;
use crate::turn::budget;

/// Lines of a list; the rest is only counted.
const MOST_LISTED: usize = 8;

pub(super) async fn run(period: Period, context: &Context<'_>) -> Result<String, StoreError> {
    let is_owner = context.standing.role() == Role::Owner;
    let people = &context.snapshot.config.access.people;
    let person = (!is_owner).then(|| people.ids_of(&context.inbound.origin.person).to_vec());
    // Others read along in a group, and a person's use elsewhere is private.
    let in_private = context.inbound.origin.key.is_private();
    let kinds: &[By] = match (is_owner, in_private) {
        (true, true) => &By::ALL,
        (true, false) => &[By::Agent, By::Model],
        (false, _) => &[By::Agent],
    };
    let read = move |connection: &Connection| {
        let lines = |by| {
            Ok((
                by,
                ledger::report(connection, by, period, person.as_deref(), now_ms())?,
            ))
        };
        kinds
            .iter()
            .copied()
            .map(lines)
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    let lists = context.services.db.read(read).await?;
    let left = context
        .snapshot
        .config
        .access
        .limits
        .of(context.role)
        .tokens_per_day
        .filter(|_| !is_owner && period == Period::Today);
    let mut text = show(period, &lists, left);
    if is_owner && !in_private {
        text.push_str(MORE_IN_PRIVATE);
    }
    Ok(text)
}

/// `most` is the person's limit for today, if there is a limit.
fn show(period: Period, lists: &[(By, Vec<UsageLine>)], most: Option<u64>) -> String {
    let total = lists
        .first()
        .map(|(_, lines)| ledger::total(lines))
        .unwrap_or_default();
    let when = match period {
        Period::Today => "Today",
        Period::Week => "The last 7 days",
        Period::Month => "The last 30 days",
    };
    let mut text = if total == UsageLine::default() {
        format!("{when}: nothing.")
    } else {
        format!("{when}: {}.", describe(&total))
    };
    if let Some(most) = most {
        let used = budget::tokens(total.usage);
        text.push_str(&format!(
            " You may use {} tokens a day; {} are left.",
            grouped(most),
            grouped(most.saturating_sub(used))
        ));
    }
    for (by, lines) in lists.iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push_str(&format!("\n\nBy {}:", by.as_str()));
        for line in lines.iter().take(MOST_LISTED) {
            text.push_str(&format!("\n- `{}`: {}", line.name, describe(line)));
        }
        if lines.len() > MOST_LISTED {
            text.push_str(&format!("\n- and {} more", lines.len() - MOST_LISTED));
        }
    }
    text
}

fn describe(line: &UsageLine) -> String {
    let turns = if line.turns == 1 {
        "1 turn".to_owned()
    } else {
        format!("{} turns", grouped(line.turns))
    };
    let cached = match line.usage.cached_tokens {
        0 => String::new(),
        cached => format!(", {} of them cached", grouped(cached)),
    };
    let cost = line
        .cost
        .filter(|cost| cost.0 > 0)
        .map_or_else(String::new, |cost| format!(", cost {cost}"));
    format!(
        "{turns}, {} tokens{cached}{cost}",
        grouped(budget::tokens(line.usage))
    )
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const MORE_IN_PRIVATE: &str = "\n\nIn private I also tell it by place and person.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Money;
    use crate::models::Usage;

    fn line(name: &str, turns: u64, input_tokens: u64, cost: Option<u64>) -> UsageLine {
        let usage = Usage {
            input_tokens,
            output_tokens: 7,
            cached_tokens: input_tokens / 2,
        };
        UsageLine {
            name: name.into(),
            turns,
            usage,
            cost: cost.map(Money),
        }
    }

    #[test]
    fn usage_reads_well() {
        let lists = [
            (
                By::Agent,
                vec![
                    line("rose", 12, 1_234_560, Some(2_345_678)),
                    line("main", 1, 0, None),
                ],
            ),
            (
                By::Model,
                (0..10)
                    .map(|number| line(&format!("openai/{number}"), 1, 100, Some(123)))
                    .collect(),
            ),
        ];
        insta::assert_snapshot!(show(Period::Week, &lists, None), @"
        The last 7 days: 13 turns, 1,234,574 tokens, 617,280 of them cached, cost 2.34.

        By agent:
        - `rose`: 12 turns, 1,234,567 tokens, 617,280 of them cached, cost 2.34
        - `main`: 1 turn, 7 tokens

        By model:
        - `openai/0`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/1`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/2`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/3`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/4`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/5`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/6`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - `openai/7`: 1 turn, 107 tokens, 50 of them cached, cost 0.000123
        - and 2 more
        ");
        insta::assert_snapshot!(show(Period::Today, &[(By::Agent, Vec::new())], Some(5_000)), @"Today: nothing. You may use 5,000 tokens a day; 5,000 are left.");
    }

    #[test]
    fn long_numbers_are_grouped() {
        let check = |number, expected| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(12_345, "12,345");
        check(1_234_567, "1,234,567");
    }
}
