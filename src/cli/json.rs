//! The parts that every JSON of the command line is made of: people, places and agents with a name
//! beside the id, times with their zone, amounts with their currency. The book's page "JSON"
//! promises them.

use std::path::PathBuf;

use chrono::{DateTime, Local, SecondsFormat};
use serde::Serialize;

use crate::config::{Currency, Money};

/// A person, place or agent. The name is absent where nobody ever told one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Named {
    pub(super) id: String,
    pub(super) name: Option<String>,
}

impl Named {
    pub(super) fn new(id: impl ToString, name: Option<&str>) -> Self {
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        Named {
            id: id.to_string(),
            name: name.map(str::to_owned),
        }
    }

    /// For people: `Alice (telegram:11)`, or the id alone.
    pub(super) fn text(&self) -> String {
        match &self.name {
            Some(name) if *name != self.id => format!("{name} ({})", self.id),
            _ => self.id.clone(),
        }
    }
}

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

/// A stored time as RFC 3339, in the zone of this machine: `2026-11-17T08:30:00+01:00`.
pub(super) fn time(millis: i64) -> String {
    local(millis).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A stored time for people: `2026-11-17 08:30 +01:00`.
pub(super) fn moment(millis: i64) -> String {
    local(millis).format("%Y-%m-%d %H:%M %:z").to_string()
}

fn local(millis: i64) -> DateTime<Local> {
    DateTime::from_timestamp_millis(millis)
        .unwrap_or_default()
        .with_timezone(&Local)
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

    #[test]
    fn names_stand_before_ids() {
        let check = |name, expected| assert_eq!(Named::new("dot", name).text(), expected);
        check(Some("Dot"), "Dot (dot)");
        check(Some("dot"), "dot");
        check(Some(" "), "dot");
        check(None, "dot");
    }

    #[test]
    fn times_have_a_zone() {
        let read = DateTime::parse_from_rfc3339(&time(1_700_000_000_000)).unwrap();
        assert_eq!(read.timestamp(), 1_700_000_000);
    }
}
