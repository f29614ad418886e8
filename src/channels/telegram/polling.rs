//! The poll loop. The offset of the next poll confirms an update, so the next poll waits until the
//! update is on disk.

use std::time::Duration;

use serde::Serialize;
use teloxide::requests::Payload;
use tokio::time::Instant;

use super::api::{self, Api, ApiError, Done};
use super::position::{IDLE_TOLD, Position};
use super::receive::{ALLOWED_UPDATES, Receiver, Stored, refused};
use super::updates::{self, Update};
use crate::backoff::Backoff;
use crate::channels::{Health, Intake, ListenError};
use crate::console;

/// How long Telegram holds a poll open; its own upper bound.
const POLL: Duration = Duration::from_secs(50);
/// The pause after trouble that is not about the connection.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between polls while another program uses the token.
const LONGEST_AFTER_CONFLICTS: Duration = Duration::from_secs(60);
/// Conflicts before the operator is told about another program with the same token. A restart alone
/// makes up to two.
const CONFLICTS_TOLD: u32 = 3;
/// After so long without a conflict, the count begins anew. Successful polls in between do not
/// count: of two programs with the same token, each has some.
const CALM: Duration = Duration::from_secs(600);

#[derive(Serialize)]
struct GetRawUpdates {
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    timeout: u64,
    allowed_updates: &'static [&'static str],
}

impl Payload for GetRawUpdates {
    /// Never read as a whole: a broken update would cost all others.
    type Output = ();
    const NAME: &'static str = "getUpdates";

    fn timeout_hint(&self) -> Option<Duration> {
        Some(POLL)
    }
}

#[derive(Serialize)]
struct DeleteWebhook {}

impl Payload for DeleteWebhook {
    type Output = Done;
    const NAME: &'static str = "deleteWebhook";
}

pub(super) async fn poll(receiver: &Receiver, intake: &Intake) -> Result<(), ListenError> {
    let mut position = Position::default();
    let mut trouble = Trouble::new();
    // The first poll, and the first after a failure, is answered at once, so the operator soon knows
    // whether polling works.
    let (mut hold, mut is_told) = (Duration::ZERO, false);
    loop {
        let asked = Instant::now();
        match ask(&receiver.api, &mut position, hold).await {
            Ok(updates) => {
                trouble.polled();
                receiver.api.health().hears();
                let was_short = std::mem::replace(&mut hold, POLL).is_zero();
                if !std::mem::replace(&mut is_told, true) {
                    receiver.say_connected("polling").await?;
                }
                if was_short && updates.is_empty() {
                    continue;
                }
                let answered_after = asked.elapsed();
                if let Stored::No = receiver.store(intake, &updates).await? {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                let pause = position.go_on(&updates, answered_after);
                if position.idle() == IDLE_TOLD {
                    tracing::error!(
                        "Telegram answers polls at once and sends nothing new; asking once a second"
                    );
                }
                tokio::time::sleep(pause).await;
            }
            Err(error) => {
                hold = Duration::ZERO;
                trouble.handle(&receiver.api, error).await?;
            }
        }
    }
}

/// Telegram may hold the poll open for so long.
async fn ask(api: &Api, position: &mut Position, hold: Duration) -> Result<Vec<Update>, ApiError> {
    let (offset, limit) = (position.offset(), position.limit());
    let request = GetRawUpdates {
        offset,
        limit,
        timeout: hold.as_secs(),
        allowed_updates: ALLOWED_UPDATES,
    };
    let asked = api.call_unread(&request).await;
    let (status, body) = asked.inspect_err(|error| api.note_health(Some(error)))?;
    let answer = updates::read_answer(&body).filter(|_| status.is_success());
    if let Some(updates) = answer.and_then(|answer| position.accept(answer)) {
        api.note_health(None);
        return Ok(updates);
    }
    let error = api::refusal(status, &body);
    api.note_health(Some(&error));
    match error {
        ApiError::Answered { code: 400, .. } if position.was_refused() => {
            tracing::error!(
                "Telegram does not let its updates be confirmed; asking for the oldest again"
            );
        }
        ApiError::NoAnswer(_) if position.was_unreadable() => {
            tracing::error!("Telegram's updates cannot be read; asking for them one by one");
        }
        _ => {}
    }
    Err(error)
}

/// Telegram holds a poll of [`has_rival`] open for so long. A program that polls with the same token
/// comes back within this time, and Telegram then ends our poll.
const RIVAL: Duration = Duration::from_secs(2);

/// Whether another program polls with this token. Confirms nothing, so nothing is lost; only for
/// times when no gateway of ours polls.
pub(super) async fn has_rival(api: &Api) -> bool {
    let request = GetRawUpdates {
        offset: None,
        limit: Some(1),
        timeout: RIVAL.as_secs(),
        allowed_updates: ALLOWED_UPDATES,
    };
    let asked = api.call_unread(&request).await;
    asked.is_ok_and(|(status, _)| status == reqwest::StatusCode::CONFLICT)
}

/// In the words of the operator's status.
const RIVAL_POLLS: &str = "another program uses this bot token";

/// Why no update arrives.
fn why_deaf(error: &ApiError) -> String {
    match error {
        ApiError::Answered {
            code: 409,
            description,
            ..
        } if !description.contains("webhook") => RIVAL_POLLS.to_owned(),
        error => error.to_string(),
    }
}

/// Recent failures of polling.
struct Trouble {
    /// Failed polls in a row.
    failures: u32,
    backoff: Backoff,
    conflicts: u32,
    conflict_backoff: Backoff,
    last_conflict: Option<Instant>,
}

impl Trouble {
    fn new() -> Self {
        let conflict_backoff = Backoff::new(PAUSE, LONGEST_AFTER_CONFLICTS);
        Trouble {
            failures: 0,
            backoff: Health::backoff(),
            conflicts: 0,
            conflict_backoff,
            last_conflict: None,
        }
    }

    fn polled(&mut self) {
        if self.failures > 0 {
            console::say("Telegram answers again");
        }
        self.failures = 0;
        self.backoff.reset();
    }

    async fn handle(&mut self, api: &Api, error: ApiError) -> Result<(), ListenError> {
        self.failures += 1;
        api.health().is_deaf(why_deaf(&error));
        match error {
            // Telegram answers 404 to a token without a bot, and 401 to a withdrawn token.
            ApiError::Answered {
                code: 401 | 404, ..
            } => return Err(refused()),
            ApiError::Answered {
                code: 409,
                description,
                ..
            } if description.contains("webhook") => {
                tracing::warn!("a webhook was set for this bot; removing it, because Parlor polls");
                let removed = api.call(&DeleteWebhook {}).await;
                if let Err(error) = &removed {
                    tracing::warn!("removing the webhook: {error}");
                }
                // A webhook that comes back is set by another program, perhaps for ever, so this
                // waits.
                if removed.is_err() || self.failures > 1 {
                    tokio::time::sleep(self.backoff.next().at_most).await;
                }
            }
            ApiError::Answered { code: 409, .. } => {
                if self.count_conflict(Instant::now()) == CONFLICTS_TOLD {
                    tracing::error!(
                        "{RIVAL_POLLS}. Stop it, or give Parlor a bot of its own; trying on slowly"
                    );
                }
                tokio::time::sleep(self.conflict_backoff.next().at_most).await;
            }
            ApiError::Answered {
                code: 429,
                retry_after,
                ..
            } => {
                tokio::time::sleep(retry_after.unwrap_or(PAUSE)).await;
            }
            error => {
                tracing::warn!(
                    "polling Telegram: {error}; trying again in {} s",
                    self.backoff.peek().as_secs()
                );
                api.health().pause(&mut self.backoff).await;
            }
        }
        Ok(())
    }

    fn count_conflict(&mut self, now: Instant) -> u32 {
        if self.last_conflict.is_some_and(|last| now - last > CALM) {
            self.conflicts = 0;
            self.conflict_backoff.reset();
        }
        self.last_conflict = Some(now);
        self.conflicts += 1;
        self.conflicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_poller_is_told_in_words() {
        let conflict = |description: &str| ApiError::Answered {
            code: 409,
            description: description.to_owned(),
            retry_after: None,
            moved_to: None,
        };
        let rival = conflict("Conflict: terminated by other getUpdates request");
        assert_eq!(why_deaf(&rival), RIVAL_POLLS);
        let webhook = conflict("Conflict: can't use getUpdates method while webhook is active");
        assert_eq!(why_deaf(&webhook), webhook.to_string());
    }

    #[test]
    fn another_poller_is_told_once_until_it_was_calm_for_long() {
        let mut trouble = Trouble::new();
        let start = Instant::now();
        let told = |trouble: &mut Trouble, minute: u64| {
            trouble.polled();
            trouble.count_conflict(start + Duration::from_secs(60 * minute)) == CONFLICTS_TOLD
        };
        let first: Vec<_> = (0..20)
            .filter(|minute| told(&mut trouble, *minute))
            .collect();
        assert_eq!(first, [2]);
        let again: Vec<_> = (40..50)
            .filter(|minute| told(&mut trouble, *minute))
            .collect();
        assert_eq!(again, [42]);
    }
}
