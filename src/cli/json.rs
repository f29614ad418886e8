//! The parts that every JSON of the command line is made of: people, places and agents with a name
//! beside the id, times with their zone, amounts with their currency. The book's page "JSON"
//! promises them.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::{Currency, Money};

pub(super) use crate::operations::named::{Named, moment, time};

/// Paths as text. Bytes that are no text are replaced.
pub(super) fn paths(paths: &[PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

/// An amount as a decimal number, with all its digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Amount {
    /// In full.
    amount: String,
    currency: String,
    #[serde(skip)]
    money: Money,
}

impl Amount {
    /// For people: `0.25 USD`.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.money, self.currency)
    }

    pub(super) fn of(money: Money, currency: &Currency) -> Self {
        Amount {
            amount: decimal(money),
            currency: currency.to_string(),
            money,
        }
    }
}

/// An amount in full, with two decimals or as many as it has.
pub(super) fn decimal(money: Money) -> String {
    let digits = format!("{:06}", money.0 % 1_000_000);
    let decimals = digits.trim_end_matches('0').len().max(2);
    format!("{}.{}", money.0 / 1_000_000, &digits[..decimals])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_whole_and_have_a_currency() {
        let check = |micros, expected: &str| {
            let amount = Amount::of(Money(micros), &Currency::default());
            assert_eq!(
                (amount.amount.as_str(), &*amount.currency),
                (expected, "USD")
            );
        };
        check(0, "0.00");
        check(6_731, "0.006731");
        check(2_500_000, "2.50");
        check(1_000_001, "1.000001");
    }
}
