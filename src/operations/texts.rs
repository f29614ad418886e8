//! Words of operations: for the places they touch, and for operators.

use crate::domain::{AgentId, Role, SessionKey};
use crate::records::agent_pauses::Pause;

/// In a place whose turn ended with its agent.
pub(super) fn removed(label: &str) -> String {
    format!("{label} is no longer here, so this answer was stopped. /agent tells who answers now.")
}

pub(super) const STOPPED: &str = "The operator has stopped this answer.";

pub(super) const DROPPED: &str = "The operator has dropped the messages that waited here. Please send yours again if it still matters.";

// The stages of a walk.

pub(super) const GETS_A_CODE: &str = "a guest in a private chat gets a pairing code, not an answer";
pub(super) const PRIVATE_IS_OPEN: &str = "a private chat is never closed as a place";
pub(super) const PRIVATE_IS_FOR_US: &str = "everything in a private chat is for the bot";
pub(super) const BOUND_IS_OPEN: &str = "a rule about the place opens it";
pub(super) const ALL_ARE_OPEN: &str = "every place with the bot in it is open";
pub(super) const NO_MENTION_NEEDED: &str = "no mention is needed here";
pub(super) const MENTION_COUNTS: &str = "a mention is needed, and the message has one";
pub(super) const REPLY_COUNTS: &str = "a mention is needed, and an answer to the bot counts as one";
pub(super) const COMMAND_COUNTS: &str = "a mention is needed, and a command counts as one";
pub(super) const MENTION_MISSING: &str = "a mention is needed, and the message has none";
pub(super) const OVER_BUDGET: &str = "a limit of the day or month is reached";

pub(super) fn may_write_privately(role: Role) -> String {
    format!("{} may write in private chats", role.with_article())
}

pub(super) fn may_write_here(role: Role) -> String {
    format!(
        "{} may write in groups; the place decides about the rest",
        role.with_article()
    )
}

pub(super) fn opened_by(name: &str) -> String {
    format!("{name} has opened the place with /agent")
}

pub(super) fn pin_was_checked(agent: &AgentId) -> String {
    format!("{agent} was set with /agent, and is open to everybody who can write there")
}

pub(super) fn is_open_to(agent: &AgentId, role: Role) -> String {
    format!("{agent} is open to {} there", role.with_article())
}

pub(super) fn is_paused(agent: &AgentId, pause: &Pause) -> String {
    let by = pause.by_name.as_ref().unwrap_or(&pause.by);
    format!("{agent} was paused by {by}, so the message waits")
}

pub(super) fn is_not_paused(agent: &AgentId) -> String {
    format!("{agent} is not paused")
}

pub(super) fn is_within_limits(agent: &AgentId) -> String {
    format!("{agent} and the person are within their limits")
}

pub(super) const COMMAND_IS_NO_CASE: &str =
    "a command is answered by Parlor itself, so there is no agent to expect";

/// `rose answers in Family/Garden`.
pub(super) fn case_name(
    agent: Option<&AgentId>,
    place: Option<String>,
    key: &SessionKey,
) -> String {
    let place = place.unwrap_or_else(|| key.to_string());
    match agent {
        Some(agent) => format!("{agent} answers in {place}"),
        None => format!("nobody answers in {place}"),
    }
}
