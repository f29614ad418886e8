//! The meaning of close codes: resume, identify or give up.
//!
//! <https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes>

use serenity::constants::close_codes;

/// serenity has no constant for this code: Discord no longer offers the version of the API.
const INVALID_API_VERSION: u16 = 4012;

/// The next step after a close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    Resume,
    /// The session is lost.
    Identify,
    /// Trying again would not help. For the operator.
    GiveUp(String),
}

pub(super) fn after_close(code: Option<u16>) -> After {
    let give_up = |reason: &str| After::GiveUp(reason.to_owned());
    match code {
        Some(close_codes::AUTHENTICATION_FAILED) => give_up(BAD_TOKEN),
        Some(close_codes::DISALLOWED_GATEWAY_INTENTS) => give_up(
            "Discord does not let the bot read messages. Enable Message Content Intent on the Bot page of the developer portal. `parlor reload` then has a running gateway connect anew",
        ),
        Some(close_codes::INVALID_GATEWAY_INTENTS) => give_up(
            "Discord does not know an intent that Parlor asks for. Look for a newer version of Parlor",
        ),
        Some(close_codes::INVALID_SHARD | close_codes::SHARDING_REQUIRED) => give_up(
            "Discord wants this bot to connect in another number of pieces than it said. Start again; if that does not help, look for a newer version of Parlor",
        ),
        Some(INVALID_API_VERSION) => give_up(
            "Discord no longer speaks the version of its API that Parlor uses. Look for a newer version of Parlor",
        ),
        Some(
            close_codes::NOT_AUTHENTICATED
            | close_codes::INVALID_SEQUENCE
            | close_codes::SESSION_TIMEOUT,
        ) => After::Identify,
        Some(close_codes::RATE_LIMITED) => {
            tracing::error!(
                "Discord says that we sent too fast over the gateway, which should not happen"
            );
            After::Resume
        }
        _ => After::Resume,
    }
}

pub(super) const BAD_TOKEN: &str = "Discord does not accept the bot token. Create a new one on the Bot page of the developer portal and store it where [discord] token points. `parlor reload` has a running gateway read it; a new environment variable needs a new start";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_get_better_ends_discord() {
        for code in [4004, 4010, 4011, 4012, 4013, 4014] {
            assert!(
                matches!(after_close(Some(code)), After::GiveUp(_)),
                "{code}"
            );
        }
        for code in [4003, 4007, 4009] {
            assert_eq!(after_close(Some(code)), After::Identify, "{code}");
        }
        for code in [
            None,
            Some(1000),
            Some(1001),
            Some(1006),
            Some(4000),
            Some(4001),
            Some(4002),
            Some(4005),
            Some(4008),
        ] {
            assert_eq!(after_close(code), After::Resume, "{code:?}");
        }
    }
}
