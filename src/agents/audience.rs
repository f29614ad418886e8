//! Decides which texts may stand in a prompt, by the people who read the answers of its turn. Pure.
//!
//! The gateway does not know the silent readers of a group. Guests who write are known: once a
//! guest asks, or has words in the conversation of a group, the group counts as a place of guests.

use super::MemoryRules;
use crate::domain::{Label, Labels, Role, SessionKey};

/// The people who read the answers of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A person in private, or people of the house as far as is known.
    House,
    /// Guests too.
    Guests,
}

/// Kinds of things in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Texts of the operator about the agent: identity files, skills.
    Identity,
    /// USER.md, about the people of the house.
    UserFile,
    /// The agent's own memory: MEMORY.md, daily notes, private memories.
    Memory,
    /// Memories of other agents, which guests may not be allowed to use.
    OthersMemory,
}

impl Audience {
    /// The audience of a turn that has read this, for a person of this role. Without a place, the
    /// operator is alone.
    pub fn of(place: Option<&SessionKey>, asker: Role, read: Labels) -> Self {
        let is_private = place.is_none_or(SessionKey::is_private);
        let guests_wrote = read.has(Label::Guest) || read.has(Label::GuestFile);
        if asker == Role::Guest || (!is_private && guests_wrote) {
            Audience::Guests
        } else {
            Audience::House
        }
    }

    pub fn may_see(self, rules: &MemoryRules, content: Content) -> bool {
        match (self, content) {
            (Audience::House, _) | (Audience::Guests, Content::Identity) => true,
            (Audience::Guests, Content::UserFile | Content::Memory) => rules.is_for_guests,
            (Audience::Guests, Content::OthersMemory) => false,
        }
    }
}

/// Whether words of lower trust than the asker's may lead a turn whose answer others read. Things
/// of one person stay out of such a turn, also if the agent looks for them.
pub fn may_be_led(place: Option<&SessionKey>, asker: Role, read: Labels) -> bool {
    let is_private = place.is_none_or(SessionKey::is_private);
    !is_private && !read.below(asker).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DefaultVisibility, RecallFilter};

    fn rules(is_for_guests: bool) -> MemoryRules {
        MemoryRules {
            is_on: true,
            recall_tokens: 1000,
            recall_filter: RecallFilter::default(),
            default_visibility: DefaultVisibility::Apart,
            read_from: Vec::new(),
            is_for_guests,
        }
    }

    #[test]
    fn guests_who_ask_or_wrote_in_a_group_are_the_audience() {
        use Audience::{Guests, House};
        let check = |place: &str, asker, read: &[Label], expected, led: bool| {
            let place: SessionKey = place.parse().unwrap();
            let read: Labels = read.iter().copied().collect();
            assert_eq!(
                Audience::of(Some(&place), asker, read),
                expected,
                "{place} {asker} {read}"
            );
            assert_eq!(
                may_be_led(Some(&place), asker, read),
                led,
                "{place} {asker} {read}"
            );
        };
        let (dm, topic, of_member) = (
            "telegram:dm:5",
            "telegram:topic:-100:7",
            "telegram:group:-100:5",
        );
        check(dm, Role::Owner, &[Label::Owner], House, false);
        // A guest's memory recalled in an owner's private chat is read by the owner alone.
        check(dm, Role::Owner, &[Label::Guest], House, false);
        check(dm, Role::Guest, &[Label::Guest], Guests, false);
        check(topic, Role::Owner, &[Label::Owner], House, false);
        check(topic, Role::Owner, &[Label::Member], House, true);
        check(topic, Role::Owner, &[Label::Guest], Guests, true);
        check(topic, Role::Member, &[Label::GuestFile], Guests, true);
        check(topic, Role::Member, &[Label::Owner], House, false);
        check(topic, Role::Owner, &[Label::Web], House, true);
        check(of_member, Role::Owner, &[Label::Guest], Guests, true);
        check(of_member, Role::Guest, &[], Guests, false);
        assert_eq!(
            Audience::of(None, Role::Owner, Labels::of(Role::Guest)),
            House
        );
    }

    #[test]
    fn guests_see_what_is_meant_for_them() {
        use Content::{Identity, Memory, OthersMemory, UserFile};
        let check = |content, by_default: bool, closed: bool| {
            assert!(
                Audience::House.may_see(&rules(false), content),
                "{content:?}"
            );
            let seen = |rules: &MemoryRules| Audience::Guests.may_see(rules, content);
            assert_eq!(
                (seen(&rules(true)), seen(&rules(false))),
                (by_default, closed),
                "{content:?}"
            );
        };
        check(Identity, true, true);
        check(UserFile, true, false);
        check(Memory, true, false);
        check(OthersMemory, false, false);
    }
}
