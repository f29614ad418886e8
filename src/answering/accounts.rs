//! Reservations: a model call takes its estimated cost off the limits of the day and the month
//! before it is made, so calls at the same time cannot go over a limit together.
//!
//! In memory, and exact within the one process: the sums are read from the ledger when
//! the first turn of a spender begins, and every entry of the ledger is taken over while turns of
//! the spender run. A killed process leaves no reservation behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{Local, NaiveDate};
use tokio::sync::Notify;

use crate::config::{Caps, Money};
use crate::records::ledger::{Spender, Sum, Sums};
use crate::turn::budget::{self, Limit, Span, Spent, Verdict, Whose};

/// The spenders of running turns.
#[derive(Default)]
pub(super) struct Accounts {
    // Locked sections are a few look-ups each and never await, so a plain lock does.
    open: Mutex<HashMap<Key, Account>>,
    /// Notified when a reservation is settled or given up.
    settled: Notify,
}

/// A spender, in a day or a month.
type Key = (Spender, Span);

struct Account {
    /// The first day of the day or month.
    begin: NaiveDate,
    /// Allowances that count in this account. Without any, the account is closed.
    allowances: usize,
    /// The ledger's sum; none before it is read. Sums, and what owners allow besides the limit,
    /// only grow within a day or a month, so the highest seen is the newest.
    known: Option<Known>,
    /// The estimates of running calls.
    reserved: Spent,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    spent: Spent,
    more: Spent,
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
    pub(super) span: Span,
    pub(super) caps: Caps,
}

impl Part {
    fn key(&self) -> Key {
        (self.spender.clone(), self.span)
    }

    /// How the spending stands to the limit of now.
    fn verdict(&self, known: Known, spent: Spent) -> Verdict {
        budget::verdict(self.span, &budget::raised(&self.caps, known.more), spent)
    }
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
                .entry(part.key())
                .or_insert_with(|| Account::new(part.span, now));
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

    fn locked(&self) -> MutexGuard<'_, HashMap<Key, Account>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new(span: Span, now: i64) -> Self {
        Account {
            begin: span.begin(&Local, now),
            allowances: 0,
            known: None,
            reserved: Spent::default(),
        }
    }

    fn learn(&mut self, sum: Sum) {
        let Sum { spent, more, .. } = sum;
        let known = self.known.get_or_insert(Known { spent, more });
        *known = Known {
            spent: highest(known.spent, spent),
            more: highest(known.more, more),
        };
    }

    /// None before the ledger is read, and on a new day or in a new month.
    fn known(&mut self, begin: NaiveDate) -> Option<Known> {
        if self.begin != begin {
            (self.begin, self.known) = (begin, None);
        }
        self.known
    }
}

impl Allowance {
    /// Whether no limit counts.
    pub(super) fn is_boundless(&self) -> bool {
        self.parts.is_empty()
    }

    /// The sums that have a limit.
    pub(super) fn limits(&self) -> Vec<(Whose, Span)> {
        let parts = self.parts.iter();
        parts.map(|part| (part.whose, part.span)).collect()
    }

    pub(super) fn spenders(&self) -> Vec<(Spender, Span)> {
        self.parts.iter().map(Part::key).collect()
    }

    /// Takes over the ledger's sums, in the order of [`Allowance::spenders`].
    pub(super) fn learn(&self, sums: &[Sum]) {
        let mut open = self.accounts.locked();
        for (part, sum) in self.parts.iter().zip(sums) {
            if let Some(account) = open.get_mut(&part.key()) {
                account.learn(*sum);
            }
        }
    }

    /// The limit with nothing left, whatever running calls may cost.
    pub(super) fn exhausted(&self, now: i64) -> Option<(Whose, Limit)> {
        let mut open = self.accounts.locked();
        self.parts.iter().find_map(|part| {
            let begin = part.span.begin(&Local, now);
            let known = open.get_mut(&part.key())?.known(begin)?;
            match part.verdict(known, known.spent) {
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
        let mut open = self.accounts.locked();
        let mut must_wait = false;
        for part in &self.parts {
            let Some(account) = open.get_mut(&part.key()) else {
                continue;
            };
            let Some(known) = account.known(part.span.begin(&Local, now)) else {
                return Taken::Unknown;
            };
            if let Verdict::Over(limit) = part.verdict(known, known.spent) {
                return Taken::Over(part.whose, limit);
            }
            let with_reserved = sum(known.spent, account.reserved);
            must_wait |= matches!(part.verdict(known, with_reserved), Verdict::Over(_));
        }
        if must_wait {
            return Taken::Wait;
        }
        for part in &self.parts {
            if let Some(account) = open.get_mut(&part.key()) {
                account.reserved = sum(account.reserved, estimate);
            }
        }
        drop(open);
        self.reserved = Some(estimate);
        Taken::Yes
    }

    /// Puts the ledger's new sums in the place of the reservation.
    pub(super) fn settle(&mut self, sums: &Sums) {
        let parts = self.parts.iter();
        let own: Vec<Sum> = parts.map(|part| sums.of(part.whose, part.span)).collect();
        self.learn(&own);
        self.give_back();
    }

    fn give_back(&mut self) {
        let Some(estimate) = self.reserved.take() else {
            return;
        };
        let mut open = self.accounts.locked();
        for part in &self.parts {
            if let Some(account) = open.get_mut(&part.key()) {
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
            if let Some(account) = open.get_mut(&part.key()) {
                account.allowances -= 1;
                if account.allowances == 0 {
                    open.remove(&part.key());
                }
            }
        }
    }
}

fn highest(one: Spent, other: Spent) -> Spent {
    Spent {
        tokens: one.tokens.max(other.tokens),
        cost: one.cost.max(other.cost),
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
            span: Span::Day,
            caps: Caps {
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

    fn known(spent: u64) -> Sum {
        Sum {
            spent: tokens(spent),
            ..Sum::default()
        }
    }

    fn today(spent: u64) -> Sums {
        Sums::of_person(known(spent))
    }

    #[test]
    fn calls_at_the_same_time_share_what_is_left() {
        let accounts = Arc::new(Accounts::default());
        let (mut one, mut two) = (accounts.open(bob(), NOON), accounts.open(bob(), NOON));
        assert_eq!(one.take(tokens(5000), NOON), Taken::Unknown);
        one.learn(&[known(0)]);
        assert_eq!(one.take(tokens(5000), NOON), Taken::Yes);
        assert_eq!(two.take(tokens(5000), NOON), Taken::Wait);
        one.settle(&today(990));
        assert_eq!(two.take(tokens(5000), NOON), Taken::Yes);
        // An old sum, read before the last entry was written, changes nothing.
        one.learn(&[known(0)]);
        assert_eq!(one.take(tokens(1), NOON), Taken::Wait);
        two.settle(&today(1980));
        let over = Taken::Over(Whose::Persons, Limit::Tokens(Span::Day));
        assert_eq!(one.take(tokens(1), NOON), over);
        let tomorrow = NOON + 24 * 60 * 60 * 1000;
        assert_eq!(one.take(tokens(1), tomorrow), Taken::Unknown);
        // An owner has allowed more, which counts at the next look into the ledger.
        one.learn(&[known(1980)]);
        let more = Sum {
            more: tokens(1000),
            ..known(1980)
        };
        one.learn(&[more]);
        assert_eq!(one.take(tokens(1), tomorrow), Taken::Yes);
        drop((one, two));
        assert!(accounts.locked().is_empty(), "idle spenders take no memory");
    }

    #[test]
    fn a_dropped_call_gives_back_what_it_took() {
        let accounts = Arc::new(Accounts::default());
        let (mut one, mut two) = (accounts.open(bob(), NOON), accounts.open(bob(), NOON));
        one.learn(&[known(0)]);
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
            turns[0].0.learn(&[known(0)]);
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
