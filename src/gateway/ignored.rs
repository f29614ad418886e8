//! Tells the operator why a message has no answer: once an hour for each place and reason.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;

use crate::access;
use crate::commands::texts::place as texts;
use crate::commands::texts::words::kind;
use crate::console::{self, Person, Place};
use crate::domain::{Inbound, SessionKey};

/// A place is not mentioned again with the same reason before.
const QUIET_FOR: Duration = Duration::from_secs(60 * 60);
/// Places remembered. When full, further places are not mentioned until some are forgotten.
const MOST_PLACES: usize = 10_000;

/// Names of ignored places that are kept in mind.
const MOST_NAMES: usize = 1_000;

/// The places told about, each with the time.
#[derive(Default)]
pub(super) struct Ignored {
    told: DashMap<(SessionKey, &'static str), Instant>,
    /// The names of places without an answer and their groups, so that an operator can name them.
    /// In memory only: a closed place leaves no name behind.
    names: Arc<DashMap<SessionKey, String>>,
}

impl Ignored {
    /// Edits and reactions ask for no answer.
    pub(super) fn tell(&self, inbound: &Inbound, reason: &'static str) {
        self.hear(inbound);
        if inbound.extras.note.is_none()
            && self.is_news(&inbound.origin.key, reason, Instant::now())
        {
            let told = in_words(reason, &inbound.origin.key);
            console::ignored(&Person::of(inbound), &Place::of(inbound), &told);
        }
    }

    /// Whether something else about a place was not told within the hour.
    pub(super) fn is_news_about(&self, place: &SessionKey, reason: &'static str) -> bool {
        self.is_news(place, reason, Instant::now())
    }

    /// Keeps the names of a place and its group in mind.
    pub(super) fn hear(&self, inbound: &Inbound) {
        let origin = &inbound.origin;
        // The name is the group's, also where each member has a conversation of their own.
        let own = origin
            .place_name()
            .map(|name| (console::group_of(&origin.key), name));
        let group = origin.key.whole_group().zip(origin.group.as_deref());
        for (key, name) in own.into_iter().chain(group) {
            if self.names.len() < MOST_NAMES || self.names.contains_key(&key) {
                self.names.insert(key, name.to_owned());
            }
        }
    }

    /// The names of places with ignored messages.
    pub(super) fn names(&self) -> Arc<DashMap<SessionKey, String>> {
        self.names.clone()
    }

    /// Forgets places that may be mentioned again.
    pub(super) fn forget_idle(&self) {
        let now = Instant::now();
        self.told
            .retain(|_, told| now.saturating_duration_since(*told) < QUIET_FOR);
    }

    fn is_news(&self, place: &SessionKey, reason: &'static str, now: Instant) -> bool {
        let key = (console::group_of(place), reason);
        let known = self.told.get(&key).map(|told| *told);
        let is_news = match known {
            Some(told) => now.saturating_duration_since(told) >= QUIET_FOR,
            None => self.told.len() < MOST_PLACES,
        };
        if is_news {
            self.told.insert(key, now);
        }
        is_news
    }
}

/// The reason in the words of `/agent why` and `route explain`.
fn in_words(reason: &'static str, place: &SessionKey) -> String {
    match reason {
        access::PLACE_CLOSED => texts::place_closed(&format!("this {}", kind(place))),
        access::NOT_ADDRESSED => access::NOT_ADDRESSED_TOLD.to_owned(),
        reason => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_mentioned_once_an_hour_for_each_reason() {
        let (ignored, start) = (Ignored::default(), Instant::now());
        let topic = |number: usize| {
            format!("telegram:topic:-1001:{}", number + 2)
                .parse()
                .unwrap()
        };
        let at = |minute: u64| start + Duration::from_secs(60 * minute);
        let told: Vec<u64> = (0..150)
            .filter(|minute| ignored.is_news(&topic(0), "too quiet", at(*minute)))
            .collect();
        assert_eq!(told, [0, 60, 120]);
        assert!(ignored.is_news(&topic(0), "too loud", at(1)));
        assert!(ignored.is_news(&topic(1), "too quiet", at(1)));
        for number in 0..MOST_PLACES {
            ignored.is_news(&topic(number), "too quiet", at(2));
        }
        assert!(
            !ignored.is_news(&topic(MOST_PLACES), "too quiet", at(3)),
            "bounded"
        );
    }
}
