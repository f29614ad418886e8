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
    amount: String,
    currency: String,
}

impl Amount {
    /// For people: `0.25 USD`.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.amount, self.currency)
    }

    pub(super) fn of(money: Money, currency: &Currency) -> Self {
        Amount {
            amount: decimal(money, decimals(money)),
            currency: currency.to_string(),
        }
    }
}

/// Decimals of an amount: two, or as many as it has.
pub(super) fn decimals(money: Money) -> usize {
    let digits = format!("{:06}", money.0 % 1_000_000);
    digits.trim_end_matches('0').len().max(2)
}

/// An amount with this many decimals, cut and not rounded.
pub(super) fn decimal(money: Money, decimals: usize) -> String {
    let digits = format!("{:06}", money.0 % 1_000_000);
    format!("{}.{}", money.0 / 1_000_000, &digits[..decimals.min(6)])
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
