//! Limits the spending of agents and people: before a turn begins, and between its model calls.

use std::num::NonZeroU32;
use std::sync::Arc;

use chrono::Local;
use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter};
use rusqlite::{Connection, Transaction};
use tokio::sync::watch;

use super::accounts::{Accounts, Allowance, Part, Taken};
use super::active_turn::ActiveTurn;
use super::job_turns::{destination, tells_failures};
use super::texts;
use crate::access::Role;
use crate::agents::Agent;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::config::{Budget, Config, PersonLimits};
use crate::console::{self, Person, Place};
use crate::delivery::outbox::Source;
use crate::delivery::{Delivery, Kind, outbox};
use crate::domain::{AgentUid, PersonId};
use crate::home::Snapshot;
use crate::metrics::TurnOutcome;
use crate::models::{Models, Usage};
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::ledger::{self, Spender, Spending, Sum, Sums, Warned};
use crate::storage::{Db, Durability, StoreError};
use crate::turn::Run;
use crate::turn::budget::{self, Limit, Over, Span, Spent, Verdict, Whose};

/// A place is told at most once in this time about a limit of turns per minute.
const PACE_TOLD_MS: i64 = 60 * 1000;

/// How often agents and people may be answered. In memory: a restart forgives a minute.
struct Paces {
    agents: DashMap<AgentUid, DefaultDirectRateLimiter>,
    guests: Option<DefaultKeyedRateLimiter<PersonId>>,
    /// Admins too.
    members: Option<DefaultKeyedRateLimiter<PersonId>>,
    /// Refusals that still count, each with its end.
    refused: DashMap<Refused, Over>,
    clock: DefaultClock,
}

/// Whose turns of a minute are used up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Refused {
    Person(PersonId),
    Agent(AgentUid),
}

impl Paces {
    fn new(snapshot: &Snapshot) -> Self {
        let limited = snapshot
            .registry
            .all()
            .iter()
            .filter_map(|agent| Some((agent.uid, per_minute(agent.limits.turns_per_minute)?)));
        let limits = &snapshot.config.access.limits;
        let of_role = |limits: &PersonLimits| per_minute(limits.turns_per_minute);
        Paces {
            agents: limited
                .map(|(uid, quota)| (uid, RateLimiter::direct(quota)))
                .collect(),
            guests: of_role(&limits.guest).map(RateLimiter::keyed),
            members: of_role(&limits.member).map(RateLimiter::keyed),
            refused: DashMap::new(),
            clock: DefaultClock::default(),
        }
    }

    /// `most` is how many turns a minute a person of this role has.
    fn check(
        &self,
        agent: &Agent,
        (person, role, most): (&PersonId, Role, u32),
        now: i64,
    ) -> Option<Over> {
        let over = |whose, most, free_at| Over {
            whose,
            limit: Limit::TurnsPerMinute(most),
            free_at,
        };
        let people = match role {
            Role::Guest => self.guests.as_ref(),
            Role::Member | Role::Admin => self.members.as_ref(),
            Role::Owner => None,
        };
        if let Some(Err(not_until)) = people.map(|people| people.check_key(person)) {
            let over = over(Whose::Persons, most, self.free_at(&not_until, now));
            self.refused.insert(Refused::Person(person.clone()), over);
            return Some(over);
        }
        let not_until = self.agents.get(&agent.uid)?.check().err()?;
        let most = agent.limits.turns_per_minute;
        let over = over(Whose::Agents, most, self.free_at(&not_until, now));
        self.refused.insert(Refused::Agent(agent.uid), over);
        Some(over)
    }

    /// The limit that was met lately, if the next turn would meet it too. A look counts no turn.
    fn still_over(&self, agent: &Agent, person: &PersonId, now: i64) -> Option<Over> {
        let whose = [Refused::Person(person.clone()), Refused::Agent(agent.uid)];
        let known = |whose: &Refused| self.refused.get(whose).map(|over| *over);
        let mut known = whose.iter().filter_map(known);
        known.find(|over| over.free_at > now)
    }

    fn forget_idle(&self) {
        let now = now_ms();
        self.refused.retain(|_, over| over.free_at > now);
        [&self.guests, &self.members]
            .into_iter()
            .flatten()
            .for_each(RateLimiter::retain_recent);
    }

    fn free_at(&self, not_until: &NotUntil<<DefaultClock as Clock>::Instant>, now: i64) -> i64 {
        let wait = not_until.wait_time_from(self.clock.now());
        // Rounded up to a second, because people are told seconds.
        let at = now.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        at.saturating_add(999) / 1000 * 1000
    }
}

/// The turns per minute of people by role, and of agents.
fn limits(snapshot: &Snapshot) -> (u32, u32, Vec<(AgentUid, u32)>) {
    let people = &snapshot.config.access.limits;
    let of_agent = |agent: &Arc<Agent>| (agent.uid, agent.limits.turns_per_minute);
    let mut agents: Vec<_> = snapshot.registry.all().iter().map(of_agent).collect();
    agents.sort_unstable();
    (
        people.guest.turns_per_minute,
        people.member.turns_per_minute,
        agents,
    )
}

fn per_minute(turns: u32) -> Option<Quota> {
    NonZeroU32::new(turns).map(Quota::per_minute)
}

/// Everybody that a turn counts for, with their limits.
fn parts(
    config: &Config,
    (agent, of_agent): (AgentUid, Budget),
    (person, role): (&PersonId, Role),
) -> Vec<Part> {
    let of_person = config.access.limits.of(role).budget;
    let person = config.access.people.main_id(person).clone();
    let spenders = [
        (Whose::Agents, Spender::Agent(agent), of_agent),
        (Whose::Persons, Spender::Person(person), of_person),
        (Whose::House, Spender::House, config.budget),
    ];
    let parts = spenders.into_iter().flat_map(|(whose, spender, budget)| {
        Span::ALL.map(|span| Part {
            whose,
            spender: spender.clone(),
            span,
            caps: span.caps(&budget),
        })
    });
    parts.filter(|part| part.caps.is_any()).collect()
}

/// The id that a person's spending is counted under.
pub(super) fn spender<'a>(snapshot: &'a Snapshot, person: &'a PersonId) -> &'a PersonId {
    snapshot.config.access.people.main_id(person)
}

/// Checks limits and tells people about them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Budgets {
    db: Db,
    delivery: Delivery,
    /// Made anew when limits change.
    paces: Arc<watch::Sender<Arc<Paces>>>,
    accounts: Arc<Accounts>,
}

impl Budgets {
    pub(super) fn new(db: Db, delivery: Delivery, snapshot: &Snapshot) -> Self {
        Budgets {
            db,
            delivery,
            paces: Arc::new(watch::Sender::new(Arc::new(Paces::new(snapshot)))),
            accounts: Arc::default(),
        }
    }

    /// Forgets people without recent questions.
    pub(crate) fn forget_idle(&self) {
        self.paces().forget_idle();
    }

    /// Takes over the limits of a new snapshot. Unchanged limits keep their counts.
    pub(super) fn renew(&self, before: &Snapshot, now: &Snapshot) {
        if limits(before) != limits(now) {
            self.paces.send_replace(Arc::new(Paces::new(now)));
        }
    }

    fn paces(&self) -> Arc<Paces> {
        self.paces.borrow().clone()
    }

    /// The exceeded limit, if the turn may not begin. A call counts as a turn of this minute.
    pub(super) fn check(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Agent,
        allowance: &Allowance,
    ) -> Option<Over> {
        let now = now_ms();
        let person = spender(snapshot, &accepted.inbound.origin.person);
        // Nothing is taken yet: the cost of the call is not known before its prompt.
        let role = accepted.role;
        let most = snapshot.config.access.limits.of(role).turns_per_minute;
        exhausted(allowance, now).or_else(|| self.paces().check(agent, (person, role, most), now))
    }

    /// The limits that a person's turn with an agent counts against, with what is spent of them.
    pub(super) async fn open(
        &self,
        snapshot: &Snapshot,
        agent: &Agent,
        person: &PersonId,
        role: Role,
    ) -> Result<Allowance, StoreError> {
        let of_agent = (agent.uid, agent.limits.budget);
        let parts = parts(&snapshot.config, of_agent, (person, role));
        let allowance = self.accounts.open(parts, now_ms());
        self.read(&allowance).await?;
        Ok(allowance)
    }

    /// The limit that the person's next turn with the agent would meet.
    pub(crate) async fn over_now(
        &self,
        snapshot: &Snapshot,
        agent: &Agent,
        person: &PersonId,
        role: Role,
    ) -> Result<Option<Over>, StoreError> {
        let allowance = self.open(snapshot, agent, person, role).await?;
        let now = now_ms();
        let person = spender(snapshot, person);
        let pace = || self.paces().still_over(agent, person, now);
        Ok(exhausted(&allowance, now).or_else(pace))
    }

    /// Takes the estimated cost of a call off the limits. Waits while the running calls of others
    /// may use up what is left.
    pub(super) async fn reserve(
        &self,
        allowance: &mut Allowance,
        estimate: impl FnOnce() -> Spent,
    ) -> Result<Result<(), Over>, StoreError> {
        if allowance.is_boundless() {
            return Ok(Ok(()));
        }
        let estimate = estimate();
        loop {
            // Registered before the look, so a call settled meanwhile is noticed.
            let mut settled = std::pin::pin!(self.accounts.settled().notified());
            settled.as_mut().enable();
            let now = now_ms();
            match allowance.take(estimate, now) {
                Taken::Yes => return Ok(Ok(())),
                Taken::Over(whose, limit) => return Ok(Err(until_free(whose, limit, now))),
                Taken::Unknown => self.read(allowance).await?,
                Taken::Wait => settled.await,
            }
        }
    }

    /// A single trip to the store, and none without a limit.
    async fn read(&self, allowance: &Allowance) -> Result<(), StoreError> {
        if allowance.is_boundless() {
            return Ok(());
        }
        let spenders = allowance.spenders();
        let sums = move |connection: &Connection| {
            let now = now_ms();
            spenders
                .iter()
                .map(|(spender, span)| ledger::sum(connection, spender, *span, now))
                .collect::<rusqlite::Result<Vec<Sum>>>()
        };
        allowance.learn(&self.db.read(sums).await?);
        Ok(())
    }

    /// Closes a message refused at a limit. The place is told once; the row always says so.
    pub(super) async fn refuse(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Agent,
        over: Over,
    ) -> Result<(), StoreError> {
        let (inbound, limit) = (&accepted.inbound, over.in_words());
        agent.counts.turn(TurnOutcome::Refused);
        console::over_limit(&Person::of(inbound), &Place::of(inbound), &agent.id, limit);
        let to = destination(accepted);
        let rows = match tells_failures(accepted) && !to.place().is_internal() {
            true => {
                let told = over.told(&Local, now_ms());
                self.delivery.draft(&to, Kind::Notice, &Text::plain(&told))
            }
            false => Vec::new(),
        };
        let whom = match over.whose {
            Whose::Agents => Spender::Agent(agent.uid),
            Whose::Persons => {
                Spender::Person(spender(snapshot, &accepted.inbound.origin.person).clone())
            }
            Whose::House => Spender::House,
        };
        let accepted = accepted.clone();
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let until = if matches!(over.limit, Limit::TurnsPerMinute(_)) {
                now + PACE_TOLD_MS
            } else {
                over.free_at
            };
            inbox::close_all(tx, &accepted, Closing::Refused, inbox::OVER_BUDGET, now)?;
            if !ledger::is_news(tx, &accepted.inbound.origin.key, &whom, until, now)? {
                return Ok(0);
            }
            outbox::insert(tx, &rows, Source::of(Some(accepted.id)), now)?;
            Ok(rows.len())
        };
        let count = self.db.write(write).await?;
        self.delivery.submit(to.place(), count);
        Ok(())
    }

    /// Tells the owners, once each in a day and a month, that the agent or the house has little
    /// left, and that nothing is left.
    pub(super) async fn warn_owners(&self, snapshot: &Snapshot, agent: &Agent, sums: Sums) {
        let house = &snapshot.config.budget;
        for span in Span::ALL {
            for (whose, budget) in [(Whose::Agents, &agent.limits.budget), (Whose::House, house)] {
                let sum = sums.of(whose, span);
                let caps = budget::raised(&span.caps(budget), sum.more);
                let (limit, told) = match budget::verdict(span, &caps, sum.spent) {
                    Verdict::Nearly(limit) => (limit, Warned::LittleLeft),
                    Verdict::Over(limit) => (limit, Warned::NothingLeft),
                    Verdict::Fine => continue,
                };
                if sum.warned >= told {
                    continue;
                }
                let (spender, subject) = match whose {
                    Whose::House => (Spender::House, texts::Spending::House),
                    _ => (Spender::Agent(agent.uid), texts::Spending::Agent(agent)),
                };
                let text = texts::running_out(
                    subject,
                    limit,
                    (sum.spent, caps),
                    told,
                    &snapshot.config.currency,
                );
                self.warn(agent, (spender, span), told, &text).await;
            }
        }
    }

    async fn warn(&self, agent: &Agent, spending: (Spender, Span), told: Warned, text: &str) {
        let rows = self.delivery.draft_for_owners(text);
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let rows = if ledger::warn(tx, (&spending.0, spending.1), told, now)? {
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

/// The same as [`Budgets::over_now`], for verbs that run without a gateway.
pub(crate) fn over_at(
    connection: &Connection,
    config: &Config,
    agent: (AgentUid, Budget),
    person: &PersonId,
    role: Role,
    now: i64,
) -> rusqlite::Result<Option<Over>> {
    for part in parts(config, agent, (person, role)) {
        let sum = ledger::sum(connection, &part.spender, part.span, now)?;
        let caps = budget::raised(&part.caps, sum.more);
        if let Verdict::Over(limit) = budget::verdict(part.span, &caps, sum.spent) {
            return Ok(Some(until_free(part.whose, limit, now)));
        }
    }
    Ok(None)
}

fn until_free(whose: Whose, limit: Limit, now: i64) -> Over {
    let span = match limit {
        Limit::Tokens(span) | Limit::Cost(span) => span,
        Limit::TurnsPerMinute(_) => Span::Day,
    };
    Over {
        whose,
        limit,
        free_at: span.end(&Local, now),
    }
}

/// The limit with nothing left, if any.
pub(super) fn exhausted(allowance: &Allowance, now: i64) -> Option<Over> {
    let (whose, limit) = allowance.exhausted(now)?;
    Some(until_free(whose, limit, now))
}

/// The estimated cost of the next call. With several models, the dearest counts.
pub(super) fn estimate(models: &Models, run: &Run) -> Spent {
    let usage = run.estimate();
    let prices = run.lineup().models.iter();
    let cost = prices
        .filter_map(|model| models.price(model))
        .map(|price| budget::cost(&price, usage))
        .max();
    Spent {
        tokens: budget::tokens(usage),
        cost: cost.unwrap_or_default(),
    }
}

/// The cost of model calls as a ledger entry.
pub(super) fn spending(turn: &ActiveTurn, usage: Usage) -> Spending {
    let model = turn.model();
    let origin = &turn.accepted.inbound.origin;
    Spending {
        place: origin.key.clone(),
        agent: turn.agent.uid,
        person: spender(&turn.snapshot, &origin.person).clone(),
        model: model.to_string(),
        usage,
        price: turn.snapshot.models.price(model),
        turns: 0,
        limited: turn.allowance.limits(),
    }
}
