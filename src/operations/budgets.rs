//! Budgets as owners see them, and a limit raised for a day or a month.

use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};

use super::known_people::{Looking, find};
use super::people;
use crate::access::Role;
use crate::agents::agent_rows;
use crate::config::{AgentSpec, Budget, Caps, Config, Currency, Money};
use crate::domain::{AgentId, PersonId, UserError};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::ledger::{self, Spender};
use crate::turn::budget::{self, Span, Spent, Verdict};

/// The most tokens that are allowed at once.
const MOST_TOKENS: u64 = 1_000_000_000_000;

/// Those who have a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Holder {
    Agent(AgentId),
    Person { id: PersonId, label: String },
    House,
}

/// A limit, and what is spent of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) holder: Holder,
    pub(crate) span: Span,
    /// With what an owner has allowed besides.
    pub(crate) caps: Caps,
    pub(crate) more: Spent,
    pub(crate) spent: Spent,
}

impl Account {
    /// Whether nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        matches!(
            budget::verdict(self.span, &self.caps, self.spent),
            Verdict::Over(_)
        )
    }
}

/// The limits of the house and of all agents.
pub(crate) fn of_house(
    connection: &Connection,
    config: &Config,
    now: i64,
) -> rusqlite::Result<Vec<Account>> {
    let mut all = accounts(
        connection,
        (Holder::House, &Spender::House),
        &config.budget,
        now,
    )?;
    for agent in &config.agents {
        if let Some(uid) = agent_rows::uid_of(connection, &agent.id)? {
            let holder = (Holder::Agent(agent.id.clone()), &Spender::Agent(uid));
            all.extend(accounts(connection, holder, &agent.limits.budget, now)?);
        }
    }
    Ok(all)
}

/// The limits of a person with this role.
pub(crate) fn of_person(
    connection: &Connection,
    config: &Config,
    (person, role): (&PersonId, Role),
    now: i64,
) -> rusqlite::Result<Vec<Account>> {
    let id = config.access.people.main_id(person).clone();
    let spender = Spender::Person(id.clone());
    let label = id.to_string();
    let holder = (Holder::Person { id, label }, &spender);
    accounts(
        connection,
        holder,
        &config.access.limits.of(role).budget,
        now,
    )
}

fn accounts(
    connection: &Connection,
    (holder, spender): (Holder, &Spender),
    budget: &Budget,
    now: i64,
) -> rusqlite::Result<Vec<Account>> {
    let limited = Span::ALL
        .into_iter()
        .filter(|span| span.caps(budget).is_any());
    let account = |span: Span| {
        let sum = ledger::sum(connection, spender, span, now)?;
        Ok(Account {
            holder: holder.clone(),
            span,
            caps: budget::raised(&span.caps(budget), sum.more),
            more: sum.more,
            spent: sum.spent,
        })
    };
    limited.map(account).collect()
}

/// `/allow rose 2.00 today`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) whom: String,
    /// Tokens or money.
    pub(crate) more: Spent,
    pub(crate) span: Span,
}

/// Reads the words of a wish: whom, how much, `tokens` for tokens, and `today` or `this month`.
pub(crate) fn parse(words: &[&str]) -> Option<Wish> {
    let (span, words) = match words {
        [rest @ .., "today"] => (Span::Day, rest),
        [rest @ .., "this", "month"] | [rest @ .., "month"] => (Span::Month, rest),
        rest => (Span::Day, rest),
    };
    let (is_tokens, words) = match words {
        [rest @ .., "tokens" | "token"] => (true, rest),
        rest => (false, rest),
    };
    let (amount, whom) = words.split_last().filter(|(_, whom)| !whom.is_empty())?;
    let more = if is_tokens {
        let tokens = amount.replace(['_', ','], "").parse().ok();
        Spent {
            tokens: tokens.filter(|tokens| (1..=MOST_TOKENS).contains(tokens))?,
            cost: Money::default(),
        }
    } else {
        let cost: Option<Money> = amount.parse().ok();
        Spent {
            tokens: 0,
            cost: cost.filter(|cost| cost.0 > 0)?,
        }
    };
    Some(Wish {
        whom: whom.join(" "),
        more,
        span,
    })
}

/// A limit that can be raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raise {
    pub(crate) holder: Holder,
    pub(crate) span: Span,
    pub(crate) more: Spent,
    /// The limit from now on.
    pub(crate) caps: Caps,
    pub(crate) spent: Spent,
    allowed_before: Spent,
    spender: Spender,
    before: Caps,
    currency: Currency,
}

/// Looks whether there is such a limit.
pub(crate) fn plan(
    connection: &Connection,
    config: &Config,
    wish: &Wish,
    now: i64,
) -> rusqlite::Result<Result<Raise, UserError>> {
    let (holder, spender, budget) = match holder(connection, config, &wish.whom, now)? {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let sum = ledger::sum(connection, &spender, wish.span, now)?;
    let before = budget::raised(&wish.span.caps(&budget), sum.more);
    let is_money = wish.more.cost.0 > 0;
    let has_cap = if is_money {
        before.cost.is_some()
    } else {
        before.tokens.is_some()
    };
    if !has_cap {
        return Ok(Err(no_cap(&holder, wish, &budget)));
    }
    Ok(Ok(Raise {
        caps: budget::raised(&before, wish.more),
        holder,
        span: wish.span,
        more: wish.more,
        spent: sum.spent,
        allowed_before: sum.more,
        spender,
        before,
        currency: config.currency.clone(),
    }))
}

type Found = (Holder, Spender, Budget);

/// Whether no person is called so, not even on a platform.
fn is_nobody(
    connection: &Connection,
    config: &Config,
    word: &str,
    now: i64,
) -> rusqlite::Result<bool> {
    let is_id = word.parse::<PersonId>().is_ok();
    let called = find(connection, &config.access, word, Looking::ToShow, now)?;
    Ok(!is_id && called.is_err())
}

fn holder(
    connection: &Connection,
    config: &Config,
    word: &str,
    now: i64,
) -> rusqlite::Result<Result<Found, UserError>> {
    if word.eq_ignore_ascii_case("house") {
        return Ok(Ok((Holder::House, Spender::House, config.budget)));
    }
    if let Some(spec) = people::agent_called(config, word) {
        return of_agent(connection, spec);
    }
    let known = match find(connection, &config.access, word, Looking::ToChange, now)? {
        Ok(known) => known,
        Err(_) if is_nobody(connection, config, word, now)? => {
            return Ok(Err(UserError::new(format!(
                "No agent and no person is called {word}. A person is named by an id, such as telegram:12345678; `house` is everybody."
            ))));
        }
        Err(error) => return Ok(Err(error)),
    };
    if known.role == Role::Owner {
        return Ok(Err(UserError::new(format!(
            "{} is an owner, and owners have no limits of their own.",
            known.label()
        ))));
    }
    let budget = config.access.limits.of(known.role).budget;
    let holder = Holder::Person {
        id: known.main().clone(),
        label: known.label(),
    };
    Ok(Ok((holder, Spender::Person(known.main().clone()), budget)))
}

fn of_agent(
    connection: &Connection,
    spec: &AgentSpec,
) -> rusqlite::Result<Result<Found, UserError>> {
    let uid = agent_rows::uid_of(connection, &spec.id)?;
    let never_ran = || UserError::new(format!("{} is new: start the gateway first.", spec.id));
    Ok(uid
        .map(|uid| {
            let holder = Holder::Agent(spec.id.clone());
            (holder, Spender::Agent(uid), spec.limits.budget)
        })
        .ok_or_else(never_ran))
}

/// A smaller number of tokens is hardly a wish.
const FEW_TOKENS: u64 = 1_000;

fn no_cap(holder: &Holder, wish: &Wish, budget: &Budget) -> UserError {
    let name = match holder {
        Holder::Agent(agent) => agent.to_string(),
        Holder::Person { label, .. } => label.clone(),
        Holder::House => "The house".to_owned(),
    };
    let is_money = wish.more.cost.0 > 0;
    let what = if is_money { "money" } else { "tokens" };
    let caps = Span::ALL.into_iter().flat_map(|span| {
        let caps = span.caps(budget);
        let tokens = caps.tokens.map(|_| ("tokens", span));
        let cost = caps.cost.map(|_| ("money", span));
        tokens.into_iter().chain(cost)
    });
    let caps: Vec<(&str, Span)> = caps.collect();
    // A limit of the wished span, or of the wished kind, is likelier meant than another.
    let likely = |(kind, span): &&(&str, Span)| *span == wish.span || *kind == what;
    let meant = caps.iter().find(likely).or(caps.first());
    let has = match meant {
        None => match holder {
            Holder::Agent(agent) => {
                format!("A limit is set in config.toml, under `[agents.{agent}.limits]`.")
            }
            Holder::Person { .. } => {
                "A limit is set in config.toml, under `[access.limits]`.".to_owned()
            }
            Holder::House => "A limit is set in config.toml, under `[limits]`.".to_owned(),
        },
        Some((kind, span)) => {
            let all = caps
                .iter()
                .map(|(kind, span)| format!("{kind} {}", span.as_str()));
            format!(
                "There are limits on {}: `/allow {} {} {}`.",
                all.collect::<Vec<_>>().join(", "),
                word_for(holder),
                amount_like(wish, kind),
                span.as_str()
            )
        }
    };
    UserError::new(format!(
        "{name} has no limit on {what} {} that could be raised. {has}",
        wish.span.as_str()
    ))
}

/// The word that a command has for a holder.
fn word_for(holder: &Holder) -> String {
    match holder {
        Holder::Agent(agent) => agent.to_string(),
        Holder::Person { id, .. } => id.to_string(),
        Holder::House => "house".to_owned(),
    }
}

/// The wished amount in a kind of limit that exists. A large whole number without a unit means
/// tokens; otherwise the amount is an example.
fn amount_like(wish: &Wish, kind: &str) -> String {
    let (whole, fraction) = (wish.more.cost.0 / 1_000_000, wish.more.cost.0 % 1_000_000);
    let tokens = match wish.more.tokens {
        0 if fraction == 0 && whole >= FEW_TOKENS => whole,
        0 => 50_000,
        tokens => tokens,
    };
    match kind {
        "tokens" => format!("{tokens} tokens"),
        _ if whole > 0 || fraction > 0 => format!("{whole}.{:02}", fraction / 10_000),
        _ => "2.00".to_owned(),
    }
}

impl Raise {
    /// The limit from now on.
    pub(crate) fn account(&self) -> Account {
        let own = |raised: u64, more: u64| raised.saturating_add(more);
        Account {
            holder: self.holder.clone(),
            span: self.span,
            caps: self.caps,
            more: Spent {
                tokens: own(self.allowed_before.tokens, self.more.tokens),
                cost: Money(own(self.allowed_before.cost.0, self.more.cost.0)),
            },
            spent: self.spent,
        }
    }

    pub(crate) fn write(
        &self,
        tx: &Transaction<'_>,
        actor: &Actor,
        now: i64,
    ) -> rusqlite::Result<()> {
        ledger::allow(tx, &self.spender, self.span, self.more, now)?;
        let (before, after) = (self.audited(&self.before), self.audited(&self.caps));
        let change = Change::new(Action::Allow).from(before).to(after);
        let change = match &self.holder {
            Holder::Agent(agent) => change.of(agent),
            Holder::Person { id, .. } => change.about(id),
            Holder::House => change.about("house"),
        };
        audit::note(tx, actor, &change, now)
    }

    fn audited(&self, caps: &Caps) -> String {
        let amount = match self.more.tokens {
            0 => caps.cost.unwrap_or_default().in_currency(&self.currency),
            _ => format!("{} tokens", caps.tokens.unwrap_or_default()),
        };
        format!("{amount} {}", self.span.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_as_people_say_it() {
        let check = |words: &str, expected: Option<(&str, u64, u64, Span)>| {
            let words: Vec<&str> = words.split_whitespace().collect();
            let wish = parse(&words);
            let read = wish.as_ref().map(|wish| {
                (
                    wish.whom.as_str(),
                    wish.more.tokens,
                    wish.more.cost.0,
                    wish.span,
                )
            });
            assert_eq!(read, expected, "{words:?}");
        };
        check("rose 2.00 today", Some(("rose", 0, 2_000_000, Span::Day)));
        check("rose 2", Some(("rose", 0, 2_000_000, Span::Day)));
        check(
            "rose 50000 tokens today",
            Some(("rose", 50_000, 0, Span::Day)),
        );
        check("rose 50_000 tokens", Some(("rose", 50_000, 0, Span::Day)));
        check(
            "house 5 this month",
            Some(("house", 0, 5_000_000, Span::Month)),
        );
        check(
            "night desk 1 month",
            Some(("night desk", 0, 1_000_000, Span::Month)),
        );
        for wrong in [
            "",
            "rose",
            "rose today",
            "rose 0",
            "rose -1",
            "2.00 today",
            "rose 0 tokens",
            "rose 1e9",
        ] {
            check(wrong, None);
        }
    }
}
