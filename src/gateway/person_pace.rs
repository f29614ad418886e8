//! The pace of people: how much a person may send in a minute, in all places and with all ids.
//!
//! In memory: a restart forgives a minute.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::access::Role;
use crate::config::{PersonLimits, RoleLimits};
use crate::domain::{PersonId, SessionKey};

/// A person who keeps sending is not told again before this long a silence.
const TOLD_FOR: Duration = Duration::from_secs(60);
/// The most places where a person is told at a time. A notice in each of a hundred topics would
/// take the way out from everybody else.
const MOST_TOLD_PLACES: usize = 3;

/// What a person sent. Each kind has a pace of its own, so talk among people and the pictures of
/// an album leave room for questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// A question, a command, a button, an edit.
    Ask,
    /// A further file of a message let in before.
    Part,
    /// Talk among people, or a reaction. Makes rows, and no reply.
    Talk,
}

/// Whether the person may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Fine,
    TooFast {
        /// In whole seconds.
        wait: u64,
        /// The person should be told in this place.
        is_news: bool,
    },
}

pub(super) struct PersonPaces {
    guest: Paces,
    member: Paces,
    told: DashMap<PersonId, Told>,
    /// People whose last message was dropped, and when the next one counts.
    refused: DashMap<PersonId, Instant>,
    clock: DefaultClock,
}

/// The paces of a role.
struct Paces {
    asks: Option<DefaultKeyedRateLimiter<PersonId>>,
    parts: Option<DefaultKeyedRateLimiter<PersonId>>,
    talk: Option<DefaultKeyedRateLimiter<PersonId>>,
}

struct Told {
    until: Instant,
    places: Vec<SessionKey>,
}

impl PersonPaces {
    pub(super) fn new(limits: &RoleLimits) -> Self {
        PersonPaces {
            guest: Paces::of(limits.guest),
            member: Paces::of(limits.member),
            told: DashMap::new(),
            refused: DashMap::new(),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a message of the person, whose main id is given.
    pub(super) fn check(
        &self,
        person: &PersonId,
        role: Role,
        sent: Sent,
        place: &SessionKey,
    ) -> Pace {
        let paces = match role {
            Role::Owner => return Pace::Fine,
            Role::Admin | Role::Member => &self.member,
            Role::Guest => &self.guest,
        };
        let Some(Err(not_until)) = paces.of_kind(sent).map(|pace| pace.check_key(person)) else {
            return Pace::Fine;
        };
        let wait = not_until.wait_time_from(self.clock.now());
        if sent == Sent::Ask {
            self.refused.insert(person.clone(), Instant::now() + wait);
        }
        Pace::TooFast {
            wait: u64::try_from(wait.as_millis().div_ceil(1000))
                .unwrap_or(u64::MAX)
                .max(1),
            is_news: sent != Sent::Talk && self.is_news(person, place, Instant::now()),
        }
    }

    /// How long messages of the person are dropped, if they are.
    pub(super) fn wait_of(&self, person: &PersonId) -> Option<Duration> {
        let until = self.refused.get(person).map(|until| *until)?;
        let wait = until.saturating_duration_since(Instant::now());
        (!wait.is_zero()).then_some(wait)
    }

    /// Forgets people who sent nothing lately.
    pub(super) fn forget_idle(&self) {
        for paces in [&self.guest, &self.member] {
            [&paces.asks, &paces.parts, &paces.talk]
                .into_iter()
                .flatten()
                .for_each(RateLimiter::retain_recent);
        }
        let now = Instant::now();
        self.told.retain(|_, told| told.until > now);
        self.refused.retain(|_, until| *until > now);
    }

    fn is_news(&self, person: &PersonId, place: &SessionKey, now: Instant) -> bool {
        let mut told = self.told.entry(person.clone()).or_insert_with(|| Told {
            until: now,
            places: Vec::new(),
        });
        if told.until <= now {
            told.places.clear();
        }
        told.until = now + TOLD_FOR;
        if told.places.contains(place) || told.places.len() >= MOST_TOLD_PLACES {
            return false;
        }
        told.places.push(place.clone());
        true
    }
}

impl Paces {
    fn of(limits: PersonLimits) -> Self {
        let pace = |times: u32| {
            NonZeroU32::new(limits.messages_per_minute.saturating_mul(times))
                .map(|count| RateLimiter::keyed(Quota::per_minute(count)))
        };
        Paces {
            asks: pace(1),
            parts: pace(2),
            talk: pace(3),
        }
    }

    fn of_kind(&self, sent: Sent) -> Option<&DefaultKeyedRateLimiter<PersonId>> {
        match sent {
            Sent::Ask => self.asks.as_ref(),
            Sent::Part => self.parts.as_ref(),
            Sent::Talk => self.talk.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: u32) -> PersonId {
        format!("telegram:{id}").parse().unwrap()
    }

    fn place(topic: u32) -> SessionKey {
        format!("telegram:topic:-1001:{topic}").parse().unwrap()
    }

    /// How many of a hundred get through, and how often the person is told.
    fn hundred(paces: &PersonPaces, role: Role, sent: Sent, places: u32) -> (usize, usize) {
        let all: Vec<Pace> = (0..100)
            .map(|number| paces.check(&person(1), role, sent, &place(2 + number % places)))
            .collect();
        let told = |pace: &&Pace| matches!(pace, Pace::TooFast { is_news: true, .. });
        (
            all.iter().filter(|pace| **pace == Pace::Fine).count(),
            all.iter().filter(told).count(),
        )
    }

    #[test]
    fn roles_and_kinds_have_paces_of_their_own() {
        let check = |role, sent, expected| {
            let paces = PersonPaces::new(&RoleLimits::default());
            assert_eq!(
                hundred(&paces, role, sent, 1),
                expected,
                "{role:?} {sent:?}"
            );
        };
        check(Role::Guest, Sent::Ask, (10, 1));
        check(Role::Guest, Sent::Part, (20, 1));
        check(Role::Guest, Sent::Talk, (30, 0));
        check(Role::Member, Sent::Ask, (60, 1));
        check(Role::Admin, Sent::Ask, (60, 1));
        check(Role::Owner, Sent::Ask, (100, 0));
    }

    #[test]
    fn a_person_is_told_once_in_each_of_a_few_places() {
        let paces = PersonPaces::new(&RoleLimits::default());
        assert_eq!(
            hundred(&paces, Role::Guest, Sent::Ask, 50),
            (10, MOST_TOLD_PLACES)
        );
        let later = Instant::now() + TOLD_FOR + Duration::from_secs(1);
        assert!(paces.is_news(&person(1), &place(2), later), "after silence");
        assert!(!paces.is_news(&person(1), &place(2), later + TOLD_FOR / 2));
        let still = later + TOLD_FOR + TOLD_FOR / 4;
        assert!(
            !paces.is_news(&person(1), &place(2), still),
            "a flood goes on without a word"
        );
    }

    #[test]
    fn people_without_recent_messages_take_no_memory() {
        let paces = PersonPaces::new(&RoleLimits {
            guest: PersonLimits {
                messages_per_minute: 60_000,
                ..PersonLimits::default()
            },
            ..RoleLimits::default()
        });
        for id in 1..=1000 {
            paces.check(&person(id), Role::Guest, Sent::Ask, &place(2));
        }
        // A thousand a second: everybody's pace is whole again at once.
        while paces
            .guest
            .asks
            .as_ref()
            .is_some_and(|asks| !asks.is_empty())
        {
            paces.forget_idle();
        }
    }
}
