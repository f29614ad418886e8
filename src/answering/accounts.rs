//! Reservations: a model call takes its estimated cost off the limits of the day before it is
//! made, so calls at the same time cannot go over a limit together.
//!
//! In memory, and exact within the one process: the sums of the day are read from the ledger when
//! the first turn of a spender begins, and every entry of the ledger is taken over while turns of
//! the spender run. A killed process leaves no reservation behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{Local, NaiveDate};
use tokio::sync::Notify;

use crate::config::{DayLimits, Money};
use crate::records::ledger::{Spender, Today};
use crate::turn::budget::{self, Limit, Spent, Verdict, Whose};

/// The spenders of running turns.
#[derive(Default)]
pub(super) struct Accounts {
    // Locked sections are a few look-ups each and never await, so a plain lock does.
    open: Mutex<HashMap<Spender, Account>>,
    /// Notified when a reservation is settled or given up.
    settled: Notify,
}

struct Account {
    day: NaiveDate,
    /// Allowances that count in this account. Without any, the account is closed.
    allowances: usize,
    /// The ledger's sum of the day; none before it is read. Sums only grow within a day, so the
    /// highest seen is the newest.
    spent: Option<Spent>,
    /// The estimates of running calls.
    reserved: Spent,
}

/// The limits a turn or a summary counts against, with the reservation of its running call.
pub(super) struct Allowance {
    accounts: Arc<Accounts>,
    parts: Vec<Part>,
    reserved: Option<Spent>,
}

/// A spender with limits.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) whose: Whose,
    pub(super) spender: Spender,
    pub(super) limits: DayLimits,
}

/// The result of asking for a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    /// The running calls of others may use up what is left. Their real cost may be less.
    Wait,
    /// Nothing is left of this limit.
    Over(Whose, Limit),
    /// The ledger has to be read first.
    Unknown,
}

impl Accounts {
    pub(super) fn open(self: &Arc<Self>, parts: Vec<Part>, now: i64) -> Allowance {
        let mut open = self.locked();
        for part in &parts {
            let account = open
                .entry(part.spender.clone())
                .or_insert_with(|| Account::new(now));
            account.allowances += 1;
        }
        drop(open);
        Allowance {
            accounts: self.clone(),
            parts,
            reserved: None,
        }
    }

    pub(super) fn settled(&self) -> &Notify {
        &self.settled
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Spender, Account>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new(now: i64) -> Self {
        Account {
            day: budget::day(&Local, now),
            allowances: 0,
            spent: None,
            reserved: Spent::default(),
        }
    }

    fn learn(&mut self, spent: Spent) {
        let known = self.spent.get_or_insert(spent);
        *known = Spent {
            tokens: known.tokens.max(spent.tokens),
            cost: known.cost.max(spent.cost),
        };
    }

    /// None before the ledger is read, and on a new day.
    fn spent(&mut self, today: NaiveDate) -> Option<Spent> {
        if self.day != today {
            (self.day, self.spent) = (today, None);
        }
        self.spent
    }
}

impl Allowance {
    /// Whether no limit counts.
    pub(super) fn is_boundless(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn spenders(&self) -> Vec<Spender> {
        self.parts.iter().map(|part| part.spender.clone()).collect()
    }

    /// Takes over the ledger's sums, in the order of [`Allowance::spenders`].
    pub(super) fn learn(&self, spent: &[Spent]) {
        let mut open = self.accounts.locked();
        for (part, spent) in self.parts.iter().zip(spent) {
            if let Some(account) = open.get_mut(&part.spender) {
                account.learn(*spent);
            }
        }
    }

    /// The limit with nothing left, whatever running calls may cost.
    pub(super) fn exhausted(&self, now: i64) -> Option<(Whose, Limit)> {
        let today = budget::day(&Local, now);
        let mut open = self.accounts.locked();
        self.parts.iter().find_map(|part| {
            let spent = open.get_mut(&part.spender)?.spent(today)?;
            match budget::of_day(&part.limits, spent) {
                Verdict::Over(limit) => Some((part.whose, limit)),
                Verdict::Fine | Verdict::Nearly(_) => None,
            }
        })
    }

    /// Looks at the limits, and takes off the estimate if something is left of all of them.
    pub(super) fn take(&mut self, estimate: Spent, now: i64) -> Taken {
        if self.reserved.is_some() {
            return Taken::Yes;
        }
        let today = budget::day(&Local, now);
        let mut open = self.accounts.locked();
        let mut must_wait = false;
        for part in &self.parts {
            let Some(account) = open.get_mut(&part.spender) else {
                continue;
            };
            let Some(spent) = account.spent(today) else {
                return Taken::Unknown;
            };
            if let Verdict::Over(limit) = budget::of_day(&part.limits, spent) {
                return Taken::Over(part.whose, limit);
            }
            let with_reserved = sum(spent, account.reserved);
            must_wait |= matches!(
                budget::of_day(&part.limits, with_reserved),
                Verdict::Over(_)
            );
        }
        if must_wait {
            return Taken::Wait;
        }
        for part in &self.parts {
            if let Some(account) = open.get_mut(&part.spender) {
                account.reserved = sum(account.reserved, estimate);
            }
        }
        drop(open);
        self.reserved = Some(estimate);
        Taken::Yes
    }

    /// Puts the ledger's new sums in the place of the reservation.
    pub(super) fn settle(&mut self, today: &Today) {
        let spent: Vec<Spent> = self
            .parts
            .iter()
            .map(|part| match part.whose {
                Whose::Agents => today.agent,
                Whose::Persons => today.person,
            })
            .collect();
        self.learn(&spent);
        self.give_back();
    }

    fn give_back(&mut self) {
        let Some(estimate) = self.reserved.take() else {
            return;
        };
        let mut open = self.accounts.locked();
        for part in &self.parts {
            if let Some(account) = open.get_mut(&part.spender) {
                account.reserved = Spent {
                    tokens: account.reserved.tokens.saturating_sub(estimate.tokens),
                    cost: Money(account.reserved.cost.0.saturating_sub(estimate.cost.0)),
                };
            }
        }
        drop(open);
        self.accounts.settled.notify_waiters();
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.give_back();
        let mut open = self.accounts.locked();
        for part in &self.parts {
            if let Some(account) = open.get_mut(&part.spender) {
                account.allowances -= 1;
                if account.allowances == 0 {
                    open.remove(&part.spender);
                }
            }
        }
    }
}

fn sum(one: Spent, other: Spent) -> Spent {
    Spent {
        tokens: one.tokens.saturating_add(other.tokens),
        cost: Money(one.cost.0.saturating_add(other.cost.0)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: i64 = 20_000 * 24 * 60 * 60 * 1000 + 12 * 60 * 60 * 1000;

    fn bob() -> Vec<Part> {
        vec![Part {
            whose: Whose::Persons,
            spender: Spender::Person("telegram:2".parse().unwrap()),
            limits: DayLimits {
                tokens: Some(1000),
                cost: None,
            },
        }]
    }

    fn tokens(tokens: u64) -> Spent {
        Spent {
            tokens,
            cost: Money(0),
        }
    }

    fn today(spent: u64) -> Today {
        Today {
            person: tokens(spent),
            ..Today::default()
        }
    }

    #[test]
    fn calls_at_the_same_time_share_what_is_left() {
        let accounts = Arc::new(Accounts::default());
        let (mut one, mut two) = (accounts.open(bob(), NOON), accounts.open(bob(), NOON));
        assert_eq!(one.take(tokens(5000), NOON), Taken::Unknown);
        one.learn(&[tokens(0)]);
        assert_eq!(one.take(tokens(5000), NOON), Taken::Yes);
        assert_eq!(two.take(tokens(5000), NOON), Taken::Wait);
        one.settle(&today(990));
        assert_eq!(two.take(tokens(5000), NOON), Taken::Yes);
        // An old sum, read before the last entry was written, changes nothing.
        one.learn(&[tokens(0)]);
        assert_eq!(one.take(tokens(1), NOON), Taken::Wait);
        two.settle(&today(1980));
        let over = Taken::Over(Whose::Persons, Limit::TokensPerDay);
        assert_eq!(one.take(tokens(1), NOON), over);
        let tomorrow = NOON + 24 * 60 * 60 * 1000;
        assert_eq!(one.take(tokens(1), tomorrow), Taken::Unknown);
        drop((one, two));
        assert!(accounts.locked().is_empty(), "idle spenders take no memory");
    }

    #[test]
    fn a_dropped_call_gives_back_what_it_took() {
        let accounts = Arc::new(Accounts::default());
        let (mut one, mut two) = (accounts.open(bob(), NOON), accounts.open(bob(), NOON));
        one.learn(&[tokens(0)]);
        assert_eq!(one.take(tokens(5000), NOON), Taken::Yes);
        drop(one);
        assert_eq!(two.take(tokens(5000), NOON), Taken::Yes);
    }

    proptest! {
        /// With honest estimates, no order of begins and ends goes over by more than one call.
        #[test]
        fn no_order_of_calls_goes_over_by_more_than_one(
            steps in proptest::collection::vec((0..8_usize, 1..400_u64), 0..200)
        ) {
            let accounts = Arc::new(Accounts::default());
            let mut turns: Vec<(Allowance, u64)> = (0..8).map(|_| (accounts.open(bob(), NOON), 0)).collect();
            turns[0].0.learn(&[tokens(0)]);
            let mut spent = 0;
            for (turn, estimate) in steps {
                let (allowance, cost) = &mut turns[turn];
                if *cost > 0 {
                    spent += *cost;
                    *cost = 0;
                    allowance.settle(&today(spent));
                } else if allowance.take(tokens(estimate), NOON) == Taken::Yes {
                    *cost = estimate;
                }
            }
            let running: u64 = turns.iter().map(|(_, cost)| *cost).sum();
            prop_assert!(spent + running < 1000 + 400);
        }
    }
}
