//! Decides whether a person may speak to the bot in a place ([`decide`]) and use an agent there
//! ([`may_use`]). Pure; known people are in [`people`], roles given at run time in
//! [`grants`], and numbers in prompts in [`numbers`].

pub(crate) mod grants;
pub(crate) mod numbers;
pub(crate) mod people;
mod standing;
mod using;

use crate::config::{Access, Dms, Groups};
use crate::domain::{Addressed, SessionKey};

pub(crate) use crate::domain::Role;
pub(crate) use standing::{Standing, owners, people_with};
pub(crate) use using::{Asker, NotForYou, Opening, may_use};

/// Everything the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub key: &'a SessionKey,
    pub role: Role,
    /// The person may open closed places: an owner or admin of the house.
    pub may_open: bool,
    pub addressed: Addressed,
    pub is_command: bool,
    /// A binding is about this place, or a person has opened the place from chat.
    pub place_is_bound: bool,
    /// The deciding binding's `require_mention`.
    pub require_mention: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admit,
    /// A guest gets a pairing code.
    Hint,
    /// An owner or admin speaks to the bot in a closed place, and is told how to open the place.
    TellUnbound,
    /// Talk among people in an open place: no answer, but the next turn may see the text.
    Observe,
    /// No reply; the reason goes into the inbox row.
    Ignore(&'static str),
}

pub(crate) fn decide(access: &Access, asking: &Asking<'_>) -> Verdict {
    if asking.key.is_private() {
        decide_private(access, asking)
    } else {
        decide_group(access, asking)
    }
}

fn decide_private(access: &Access, asking: &Asking<'_>) -> Verdict {
    match (asking.role, access.dms) {
        (Role::Owner | Role::Admin | Role::Member, _) | (Role::Guest, Dms::Open) => Verdict::Admit,
        (Role::Guest, Dms::Pairing) => Verdict::Hint,
        (Role::Guest, Dms::Closed) => Verdict::Ignore("a guest, and private chats are closed"),
    }
}

fn decide_group(access: &Access, asking: &Asking<'_>) -> Verdict {
    let speaks_to_us = asking.is_command || asking.addressed != Addressed::NotAtAll;
    if !is_open(access, asking) {
        let was_written = asking.addressed != Addressed::ByTopicName;
        return match (
            asking.may_open && was_written,
            asking.is_command,
            speaks_to_us,
        ) {
            // Owners and admins can ask /whoami here, and open the place with /agent.
            (true, true, _) => Verdict::Admit,
            (true, false, true) => Verdict::TellUnbound,
            _ => Verdict::Ignore(PLACE_CLOSED),
        };
    }
    if needs_mention(access, asking) && !speaks_to_us {
        return if access.observe {
            Verdict::Observe
        } else {
            Verdict::Ignore(NOT_ADDRESSED)
        };
    }
    Verdict::Admit
}

/// Whether the bot answers in the place at all. Private chats are never closed as places.
pub(crate) fn is_open(access: &Access, asking: &Asking<'_>) -> bool {
    asking.key.is_private() || asking.place_is_bound || access.groups == Groups::Open
}

/// Whether a message in the place must be said to the bot.
pub(crate) fn needs_mention(access: &Access, asking: &Asking<'_>) -> bool {
    !asking.key.is_private() && asking.require_mention.unwrap_or(access.require_mention)
}

/// Why a message in a closed place is left alone.
pub(crate) const PLACE_CLOSED: &str = "no binding or /agent opens this place";
/// Why a message in a group is left alone.
pub(crate) const NOT_ADDRESSED: &str = "not addressed to the bot";
/// The same as a sentence, for people, lists and the log.
pub(crate) const NOT_ADDRESSED_TOLD: &str =
    "the message neither mentions the bot nor replies to it";

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        dms: Dms,
        groups: Groups,
        role: Role,
        addressed: Addressed,
        command: bool,
        bound: bool,
        mention: Option<bool>,
        observe: bool,
    }

    const GROUP: Case = Case {
        dms: Dms::Pairing,
        groups: Groups::Bound,
        role: Role::Guest,
        addressed: Addressed::ByMention,
        command: false,
        bound: true,
        mention: None,
        observe: true,
    };

    fn check(key: &str, case: Case, expected: Verdict) {
        let access = Access {
            dms: case.dms,
            groups: case.groups,
            observe: case.observe,
            ..Access::default()
        };
        let asking = Asking {
            key: &key.parse().unwrap(),
            role: case.role,
            may_open: case.role >= Role::Admin,
            addressed: case.addressed,
            is_command: case.command,
            place_is_bound: case.bound,
            require_mention: case.mention,
        };
        assert_eq!(decide(&access, &asking), expected, "{key}");
    }

    #[test]
    fn private_chats_are_for_people_who_were_let_in() {
        let dm = "telegram:dm:5";
        let ask = |role, dms| Case {
            role,
            dms,
            addressed: Addressed::Privately,
            bound: false,
            ..GROUP
        };
        check(dm, ask(Role::Owner, Dms::Closed), Verdict::Admit);
        check(dm, ask(Role::Member, Dms::Closed), Verdict::Admit);
        check(dm, ask(Role::Guest, Dms::Open), Verdict::Admit);
        check(dm, ask(Role::Guest, Dms::Pairing), Verdict::Hint);
        check(
            dm,
            ask(Role::Guest, Dms::Closed),
            Verdict::Ignore("a guest, and private chats are closed"),
        );
        // A binding chooses an agent, but gives no access.
        check(
            dm,
            Case {
                bound: true,
                ..ask(Role::Guest, Dms::Pairing)
            },
            Verdict::Hint,
        );
    }

    #[test]
    fn groups_answer_only_where_bound_and_when_addressed() {
        let topic = "telegram:topic:-100:7";
        let unbound = Verdict::Ignore(PLACE_CLOSED);
        let silent = Addressed::NotAtAll;
        check(topic, GROUP, Verdict::Admit);
        check(
            topic,
            Case {
                addressed: Addressed::ByReply,
                ..GROUP
            },
            Verdict::Admit,
        );
        check(
            topic,
            Case {
                addressed: silent,
                ..GROUP
            },
            Verdict::Observe,
        );
        check(
            topic,
            Case {
                addressed: silent,
                observe: false,
                ..GROUP
            },
            Verdict::Ignore(NOT_ADDRESSED),
        );
        check(
            topic,
            Case {
                addressed: silent,
                command: true,
                ..GROUP
            },
            Verdict::Admit,
        );
        check(
            topic,
            Case {
                addressed: silent,
                mention: Some(false),
                ..GROUP
            },
            Verdict::Admit,
        );
        check(
            topic,
            Case {
                bound: false,
                ..GROUP
            },
            unbound,
        );
        check(
            topic,
            Case {
                bound: false,
                command: true,
                ..GROUP
            },
            unbound,
        );
        check(
            topic,
            Case {
                bound: false,
                groups: Groups::Open,
                ..GROUP
            },
            Verdict::Admit,
        );
        check(
            topic,
            Case {
                bound: false,
                role: Role::Owner,
                ..GROUP
            },
            Verdict::TellUnbound,
        );
        check(
            topic,
            Case {
                bound: false,
                role: Role::Owner,
                command: true,
                ..GROUP
            },
            Verdict::Admit,
        );
        check(
            topic,
            Case {
                bound: false,
                role: Role::Admin,
                command: true,
                ..GROUP
            },
            Verdict::Admit,
        );
        check(
            topic,
            Case {
                bound: false,
                role: Role::Owner,
                addressed: silent,
                ..GROUP
            },
            unbound,
        );
        let made = Case {
            addressed: Addressed::ByTopicName,
            command: true,
            role: Role::Owner,
            ..GROUP
        };
        check(
            topic,
            Case {
                bound: false,
                ..made
            },
            unbound,
        );
        check(topic, made, Verdict::Admit);
        check(
            topic,
            Case {
                bound: false,
                role: Role::Member,
                command: true,
                ..GROUP
            },
            unbound,
        );
    }
}
