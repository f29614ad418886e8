//! Judges a row by the outcome of its call. Pure.

use std::time::Duration;

use crate::channels::SendError;
use crate::domain::MessageId;

/// A row tried for this long is given up: an answer from yesterday is of no use.
pub(super) const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// A row tried for this long, while the platform answers other calls, is set aside, so later rows
/// do not wait.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(3 * 60);

/// The error of a row given up because its repetition was not confirmed either.
pub(super) const NEVER_CONFIRMED: &str = "sent twice, and neither answer was seen";

/// Facts about a row besides the outcome of its call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// The call edits or removes an existing message, so a repetition does no harm.
    pub(super) is_change: bool,
    /// The platform would still detect a repetition of this send.
    pub(super) is_told_apart: bool,
    /// The outcome of an earlier call is unknown.
    pub(super) was_repeated: bool,
    pub(super) is_first_call: bool,
    /// Time spent on tries of this row. Time between two processes does not count.
    pub(super) tried: Duration,
}

/// The decision about a row after its call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Sent(MessageId),
    Again(Again),
    /// The message to change is gone, so the row becomes a new message.
    SendInstead,
    GivenUp {
        error: String,
        rest: Rest,
    },
    /// Given up, and the owners are told.
    PlaceLost(String),
}

/// A row goes back into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) pause: Pause,
    pub(super) error: String,
    /// The row may have arrived already, and this is its only repetition.
    pub(super) repeated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    None,
    /// Asked for by the platform, so never shortened.
    Asked(Duration),
    /// Our own wait, which ends early when the platform answers again.
    BackOff,
}

/// The fate of the later parts of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The part may have arrived, so the later parts are sent.
    GoesOn,
    /// The part surely did not arrive, so the later parts would lack their beginning.
    StaysBehind,
}

impl Again {
    /// Whether the row itself is to blame, if the platform answers other calls. A row with its
    /// repetition still ahead is not.
    pub(super) fn may_be_stuck(&self, facts: &Facts) -> bool {
        let is_repeated_now = self.repeated && !facts.was_repeated;
        self.pause == Pause::BackOff && !is_repeated_now && facts.tried >= STUCK_AFTER
    }
}

pub(super) fn judge(outcome: Result<MessageId, SendError>, facts: &Facts) -> Verdict {
    let too_old = facts.tried >= GIVE_UP_AFTER;
    let again = |pause, error| {
        Verdict::Again(Again {
            pause,
            error,
            repeated: facts.was_repeated,
        })
    };
    match outcome {
        Ok(message) => Verdict::Sent(message),
        Err(SendError::Gone) => Verdict::SendInstead,
        Err(SendError::PlaceLost(loss)) => Verdict::PlaceLost(loss.to_string()),
        Err(SendError::RetryAfter(wait)) if !too_old => {
            again(Pause::Asked(wait), "asked to wait".into())
        }
        Err(SendError::Moved(_)) if !too_old => again(
            if facts.is_first_call {
                Pause::None
            } else {
                Pause::BackOff
            },
            "the group has moved".into(),
        ),
        Err(SendError::NotSent(error)) if !too_old => again(Pause::BackOff, error),
        // A repetition is harmless here, so the row is not marked as repeated and not given up
        // early.
        Err(SendError::Unknown(error)) if (facts.is_change || facts.is_told_apart) && !too_old => {
            again(Pause::BackOff, error)
        }
        Err(SendError::Unknown(error)) if !facts.is_change && !facts.was_repeated => {
            Verdict::Again(Again {
                pause: Pause::BackOff,
                error,
                repeated: true,
            })
        }
        Err(SendError::Unknown(_)) if !facts.is_change => Verdict::GivenUp {
            error: NEVER_CONFIRMED.into(),
            rest: Rest::GoesOn,
        },
        Err(error) => Verdict::GivenUp {
            error: error.to_string(),
            rest: Rest::StaysBehind,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::PlaceLoss;
    use crate::domain::ChatId;

    const SEND: Facts = Facts {
        is_change: false,
        is_told_apart: false,
        was_repeated: false,
        is_first_call: true,
        tried: Duration::ZERO,
    };
    const CHANGE: Facts = Facts {
        is_change: true,
        ..SEND
    };
    const TOLD_APART: Facts = Facts {
        is_told_apart: true,
        ..SEND
    };
    const REPEATED: Facts = Facts {
        was_repeated: true,
        is_first_call: false,
        ..SEND
    };

    fn check(error: SendError, facts: Facts, expected: &str) {
        let asked = format!("{error:?} {facts:?}");
        let found = match judge(Err(error), &facts) {
            Verdict::Sent(_) => "sent".to_owned(),
            Verdict::SendInstead => "send instead".to_owned(),
            Verdict::PlaceLost(_) => "lost".to_owned(),
            Verdict::GivenUp {
                rest: Rest::GoesOn, ..
            } => "given up, the rest goes on".to_owned(),
            Verdict::GivenUp {
                rest: Rest::StaysBehind,
                ..
            } => "given up with the rest".to_owned(),
            Verdict::Again(again) => {
                let (repeated, stuck) = (
                    if again.repeated { ", once" } else { "" },
                    again.may_be_stuck(&facts),
                );
                format!(
                    "again{repeated}, {:?}{}",
                    again.pause,
                    if stuck { ", maybe stuck" } else { "" }
                )
            }
        };
        assert_eq!(found, expected, "{asked}");
    }

    fn unknown() -> SendError {
        SendError::Unknown("502".into())
    }

    fn not_sent() -> SendError {
        SendError::NotSent("401".into())
    }

    #[test]
    fn what_may_have_arrived_is_sent_once_more_and_never_a_third_time() {
        check(unknown(), SEND, "again, once, BackOff");
        check(unknown(), REPEATED, "given up, the rest goes on");
        check(unknown(), TOLD_APART, "again, BackOff");
        check(
            unknown(),
            Facts {
                is_told_apart: true,
                ..REPEATED
            },
            "again, once, BackOff",
        );
        check(unknown(), CHANGE, "again, BackOff");
        check(not_sent(), SEND, "again, BackOff");
        check(not_sent(), REPEATED, "again, once, BackOff");
    }

    #[test]
    fn what_the_platform_says_decides() {
        check(SendError::Gone, CHANGE, "send instead");
        check(SendError::PlaceLost(PlaceLoss::Closed), SEND, "lost");
        check(
            SendError::Refused("400".into()),
            SEND,
            "given up with the rest",
        );
        check(
            SendError::RetryAfter(Duration::from_secs(5)),
            SEND,
            "again, Asked(5s)",
        );
        check(SendError::Moved(ChatId(-5)), SEND, "again, None");
        check(
            SendError::Moved(ChatId(-5)),
            Facts {
                is_first_call: false,
                ..SEND
            },
            "again, BackOff",
        );
    }

    #[test]
    fn a_row_that_is_tried_for_minutes_may_be_stuck_and_for_a_day_is_given_up() {
        let long = |facts| Facts {
            tried: STUCK_AFTER,
            is_first_call: false,
            ..facts
        };
        check(not_sent(), long(SEND), "again, BackOff, maybe stuck");
        check(unknown(), long(CHANGE), "again, BackOff, maybe stuck");
        check(unknown(), long(TOLD_APART), "again, BackOff, maybe stuck");
        check(unknown(), long(SEND), "again, once, BackOff");
        check(
            SendError::RetryAfter(Duration::from_secs(5)),
            long(SEND),
            "again, Asked(5s)",
        );
        let longer = |facts| Facts {
            tried: GIVE_UP_AFTER,
            is_first_call: false,
            ..facts
        };
        check(not_sent(), longer(SEND), "given up with the rest");
        check(unknown(), longer(CHANGE), "given up with the rest");
        check(
            SendError::RetryAfter(Duration::from_secs(5)),
            longer(SEND),
            "given up with the rest",
        );
        check(unknown(), longer(SEND), "again, once, BackOff");
    }
}
