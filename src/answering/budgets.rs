//! Limits the spending of agents and people: before a turn begins, and between its model calls.

use std::num::NonZeroU32;
use std::sync::Arc;

use chrono::Local;
use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter};
use rusqlite::Transaction;

use super::active_turn::ActiveTurn;
use crate::access::Role;
use crate::agents::Agent;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::config::DayLimits;
use crate::delivery::outbox::Source;
use crate::delivery::{Delivery, Kind, outbox};
use crate::domain::{AgentUid, Destination, PersonId};
use crate::home::Snapshot;
use crate::models::Usage;
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::ledger::{self, Spender, Spending, Today};
use crate::storage::{Db, Durability, StoreError};
use crate::turn::budget::{self, Limit, Over, Spent, Verdict, Whose};

/// A place is told at most once in this time about a limit of turns per minute.
const PACE_TOLD_MS: i64 = 60 * 1000;

/// How often agents and people may be answered. In memory: a restart forgives a minute.
struct Paces {
    agents: DashMap<AgentUid, DefaultDirectRateLimiter>,
    people: Option<DefaultKeyedRateLimiter<PersonId>>,
    clock: DefaultClock,
}

impl Paces {
    fn new(snapshot: &Snapshot) -> Self {
        let limited = snapshot
            .registry
            .all()
            .iter()
            .filter_map(|agent| Some((agent.uid, per_minute(agent.limits.turns_per_minute)?)));
        Paces {
            agents: limited
                .map(|(uid, quota)| (uid, RateLimiter::direct(quota)))
                .collect(),
            people: per_minute(snapshot.config.access.limits.turns_per_minute)
                .map(RateLimiter::keyed),
            clock: DefaultClock::default(),
        }
    }

    fn check(&self, agent: AgentUid, person: Option<&PersonId>, now: i64) -> Option<Over> {
        let over = |whose, free_at| Over {
            whose,
            limit: Limit::TurnsPerMinute,
            free_at,
        };
        if let (Some(people), Some(person)) = (&self.people, person)
            && let Err(not_until) = people.check_key(person)
        {
            return Some(over(Whose::Persons, self.free_at(&not_until, now)));
        }
        let not_until = self.agents.get(&agent)?.check().err()?;
        Some(over(Whose::Agents, self.free_at(&not_until, now)))
    }

    fn forget_idle(&self) {
        if let Some(people) = &self.people {
            people.retain_recent();
        }
    }

    fn free_at(&self, not_until: &NotUntil<<DefaultClock as Clock>::Instant>, now: i64) -> i64 {
        let wait = not_until.wait_time_from(self.clock.now());
        // Rounded up to a second, because people are told seconds.
        let at = now.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        at.saturating_add(999) / 1000 * 1000
    }
}

fn per_minute(turns: u32) -> Option<Quota> {
    NonZeroU32::new(turns).map(Quota::per_minute)
}

/// The person with limits for a message. Owners have none, because owners set the limits.
fn limited(person: &PersonId, role: Role) -> Option<&PersonId> {
    Some(person).filter(|_| role != Role::Owner)
}

/// Checks limits and tells people about them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Budgets {
    db: Db,
    delivery: Delivery,
    paces: Arc<Paces>,
}

impl Budgets {
    pub(super) fn new(db: Db, delivery: Delivery, snapshot: &Snapshot) -> Self {
        Budgets {
            db,
            delivery,
            paces: Arc::new(Paces::new(snapshot)),
        }
    }

    /// Forgets people without recent questions.
    pub(crate) fn forget_idle(&self) {
        self.paces.forget_idle();
    }

    /// The exceeded limit, if the turn may not begin. A call counts as a turn of this minute.
    pub(super) async fn check(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Agent,
    ) -> Result<Option<Over>, StoreError> {
        let person = &accepted.inbound.origin.person;
        if let Some(over) = self
            .check_day(snapshot, agent, person, accepted.role)
            .await?
        {
            return Ok(Some(over));
        }
        Ok(self
            .paces
            .check(agent.uid, limited(person, accepted.role), now_ms()))
    }

    /// The exceeded day limit of the agent or the person, if any.
    pub(super) async fn check_day(
        &self,
        snapshot: &Snapshot,
        agent: &Agent,
        person: &PersonId,
        role: Role,
    ) -> Result<Option<Over>, StoreError> {
        let now = now_ms();
        let person = limited(person, role);
        let people = DayLimits {
            tokens: snapshot.config.access.limits.tokens_per_day,
            cost: None,
        };
        let mut limits = vec![(Whose::Agents, agent.limits.day, Spender::Agent(agent.uid))];
        limits
            .extend(person.map(|person| (Whose::Persons, people, Spender::Person(person.clone()))));
        for (whose, limits, spender) in limits.into_iter().filter(|(_, limits, _)| limits.is_any())
        {
            let spent = self
                .db
                .read(move |connection| ledger::today(connection, &spender, now))
                .await?;
            if let Some(over) = over(whose, &limits, spent, now) {
                return Ok(Some(over));
            }
        }
        Ok(None)
    }

    /// Closes a message refused at a limit. The place is told once; the row always says so.
    pub(super) async fn refuse(
        &self,
        accepted: &Accepted,
        agent: &Agent,
        over: Over,
    ) -> Result<(), StoreError> {
        tracing::info!(agent.id = %agent.id, session = %accepted.inbound.origin.key, "over budget: {:?} of {:?}", over.limit, over.whose);
        let to = Destination::of(&accepted.inbound);
        let rows = self
            .delivery
            .draft(&to, Kind::Notice, &Text::plain(&over.told(&Local)));
        let spender = match over.whose {
            Whose::Agents => Spender::Agent(agent.uid),
            Whose::Persons => Spender::Person(accepted.inbound.origin.person.clone()),
        };
        let accepted = accepted.clone();
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let until = if over.limit == Limit::TurnsPerMinute {
                now + PACE_TOLD_MS
            } else {
                over.free_at
            };
            inbox::close_all(tx, &accepted, Closing::Refused, OVER_BUDGET, now)?;
            if !ledger::is_news(tx, &accepted.inbound.origin.key, &spender, until, now)? {
                return Ok(0);
            }
            outbox::insert(tx, &rows, Source::of(Some(accepted.id)), now)?;
            Ok(rows.len())
        };
        let count = self.db.write(write).await?;
        self.delivery.submit(to.place(), count);
        Ok(())
    }

    /// Tells the owners, once a day, about an agent with little left.
    pub(super) async fn warn_owners(&self, agent: &Agent, today: Today) {
        let limit = match budget::of_day(&agent.limits.day, today.agent) {
            Verdict::Nearly(limit) | Verdict::Over(limit) if !today.warned => limit,
            _ => return,
        };
        let rows = self
            .delivery
            .draft_for_owners(&little_left(agent, limit, today.agent));
        let uid = agent.uid;
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let rows = if ledger::warn(tx, uid, now)? {
                rows
            } else {
                Vec::new()
            };
            outbox::insert(tx, &rows, Source::default(), now)?;
            Ok(rows)
        };
        match self.db.write_as(Durability::Kill, write).await {
            Ok(rows) => self.delivery.submit_drafted(&rows),
            // The agent's next model call tries again.
            Err(error) => tracing::warn!(agent.id = %agent.id, "owners were not warned: {error}"),
        }
    }
}

fn over(whose: Whose, limits: &DayLimits, spent: Spent, now: i64) -> Option<Over> {
    match budget::of_day(limits, spent) {
        Verdict::Over(limit) => Some(Over {
            whose,
            limit,
            free_at: budget::end_of_day(&Local, now),
        }),
        Verdict::Fine | Verdict::Nearly(_) => None,
    }
}

/// The cost of model calls as a ledger entry.
pub(super) fn spending(turn: &ActiveTurn, usage: Usage) -> Spending {
    let model = turn.model();
    let origin = &turn.accepted.inbound.origin;
    Spending {
        place: origin.key.clone(),
        agent: turn.agent.uid,
        person: origin.person.clone(),
        model: model.to_string(),
        usage,
        price: turn.snapshot.models.price(model),
        turns: 0,
    }
}

/// The day limit exceeded by a running turn, if any.
pub(super) fn check_running(turn: &ActiveTurn, today: &Today) -> Option<Over> {
    let now = now_ms();
    let people = DayLimits {
        tokens: turn.snapshot.config.access.limits.tokens_per_day,
        cost: None,
    };
    let person = limited(&turn.accepted.inbound.origin.person, turn.accepted.role);
    let persons = person.and_then(|_| over(Whose::Persons, &people, today.person, now));
    over(Whose::Agents, &turn.agent.limits.day, today.agent, now).or(persons)
}

/// The outcome of a message refused at a limit.
const OVER_BUDGET: &str = "over budget";

fn little_left(agent: &Agent, limit: Limit, spent: Spent) -> String {
    let day = agent.limits.day;
    let (what, percent, of) = match limit {
        Limit::CostPerDay => {
            let most = day.cost.unwrap_or_default();
            (
                "money",
                budget::percent(spent.cost.0, most.0),
                format!("{} of {most}", spent.cost),
            )
        }
        Limit::TokensPerDay | Limit::TurnsPerMinute => {
            let most = day.tokens.unwrap_or_default();
            (
                "tokens",
                budget::percent(spent.tokens, most),
                format!("{} of {most}", spent.tokens),
            )
        }
    };
    format!(
        "{} has used {percent} % of today's {what}: {of}. At the limit I answer nobody for it until tomorrow. \
         `/usage` tells who asked; the limit is in config.toml under `[agents.{}.limits]`.",
        agent.label(),
        agent.id
    )
}
