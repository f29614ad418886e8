//! What keeps an answer from its place, though an agent would give one: the gateway itself, the
//! connection, the bot's rights, answers that have not arrived.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::channels::Hearing;
use crate::clock::now_ms;
use crate::delivery::Delivery;
use crate::delivery::held::{self, Held};
use crate::domain::{Platform, SessionKey};

/// The strongest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Obstacle {
    /// No gateway runs.
    NoGateway,
    /// The gateway runs and says nothing: suspended, stuck, or at its very beginning or end.
    Frozen { pid: String },
    /// The gateway can write nothing into its database, so it takes in no message.
    NotStored { reason: String },
    /// Messages of the platform do not reach the gateway.
    Disconnected {
        platform: Platform,
        since: Option<i64>,
        reason: Option<String>,
    },
    /// The bot may write nothing in the group.
    Barred { reason: String, since: i64 },
    /// The person has to wait, because they sent too much in a minute.
    TooFast { until: i64 },
    /// Answers wait, because the platform asked for a pause.
    AskedToWait {
        platform: Option<Platform>,
        until: i64,
        waiting: i64,
    },
    /// Answers wait, because the platform takes none.
    NotSent { waiting: i64, reason: String },
    /// Answers were given up.
    Undelivered { count: i64, reason: String },
    /// The platform shows the bot only what mentions it.
    PrivacyMode,
}

impl Obstacle {
    /// As the gateway of this process knows the place. `needs_mention`: other messages are not
    /// answered anyway.
    pub(crate) fn live(delivery: &Delivery, place: &SessionKey, needs_mention: bool) -> Vec<Self> {
        let Some(platform) = place.platform().filter(|it| *it != Platform::Local) else {
            return Vec::new();
        };
        let Some(channel) = delivery.channel_of(place) else {
            let (since, reason) = (None, None);
            return vec![Obstacle::Disconnected {
                platform,
                since,
                reason,
            }];
        };
        let deaf = match channel.health().map(crate::channels::Health::hearing) {
            Some(Hearing::Deaf { since, reason }) => Some(Obstacle::Disconnected {
                platform,
                since: Some(since),
                reason: Some(reason),
            }),
            _ => None,
        };
        let barred = channel.barred(place).map(|barred| Obstacle::Barred {
            reason: barred.loss.with_advice(),
            since: barred.since,
        });
        let hears_little = !needs_mention && channel.is_hard_of_hearing(place);
        let hears_little = hears_little.then_some(Obstacle::PrivacyMode);
        deaf.into_iter().chain(barred).chain(hears_little).collect()
    }

    /// As the store knows the place.
    pub(crate) fn stored(
        connection: &Connection,
        place: &SessionKey,
    ) -> rusqlite::Result<Vec<Self>> {
        let held = held::in_place(connection, place, now_ms())?;
        Ok(Obstacle::of_held(place, held))
    }

    /// Answers that have not arrived.
    pub(crate) fn of_held(place: &SessionKey, held: Held) -> Vec<Self> {
        let mut found = Vec::new();
        match (held.paused_until, held.trouble) {
            (Some(until), _) => found.push(Obstacle::AskedToWait {
                platform: place.platform(),
                until,
                waiting: held.waiting,
            }),
            (None, Some(reason)) => found.push(Obstacle::NotSent {
                waiting: held.waiting,
                reason,
            }),
            (None, None) => {}
        }
        if held.undelivered > 0 {
            found.push(Obstacle::Undelivered {
                count: held.undelivered,
                reason: held.reason.unwrap_or_default(),
            });
        }
        found
    }
}
