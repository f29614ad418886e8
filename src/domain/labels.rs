//! The origins of words: labels of everything that a turn has read. Pure.
//!
//! A turn reads its question, the conversation, recalled memories and the results of its tools. The
//! set of labels only grows. Words of an agent carry the labels of their turn, so no answer,
//! summary, memory or report washes off the origin of its words.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use super::Role;

/// Where words come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// Written by an owner; the next three are the other roles. People whose role is no longer
    /// known count as guests.
    Owner,
    Admin,
    Member,
    Guest,
    /// A page of the internet.
    Web,
    /// A file that a guest sent.
    GuestFile,
    /// A file that a member, an admin or an owner sent in a place of several people.
    MemberFile,
    /// Brought along by an imported agent.
    Imported,
    /// Said by another agent. The other labels come from everything this agent had read.
    Agent,
    /// Reported by a subagent. The other labels come from everything the subagent had read.
    Subagent,
    /// Remembered. The other labels tell the person of the memory, and everything its turn had
    /// read.
    Memory,
    /// A summary of earlier messages, with all their labels.
    Summary,
}

impl Label {
    pub const ALL: [Label; 12] = [
        Label::Owner,
        Label::Admin,
        Label::Member,
        Label::Guest,
        Label::Web,
        Label::GuestFile,
        Label::MemberFile,
        Label::Imported,
        Label::Agent,
        Label::Subagent,
        Label::Memory,
        Label::Summary,
    ];

    /// The words of a person.
    pub fn of(role: Role) -> Self {
        match role {
            Role::Owner => Label::Owner,
            Role::Admin => Label::Admin,
            Role::Member => Label::Member,
            Role::Guest => Label::Guest,
        }
    }

    /// A short name, for logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Label::Owner => "owner",
            Label::Admin => "admin",
            Label::Member => "member",
            Label::Guest => "guest",
            Label::Web => "web",
            Label::GuestFile => "guest-file",
            Label::MemberFile => "member-file",
            Label::Imported => "imported",
            Label::Agent => "agent",
            Label::Subagent => "subagent",
            Label::Memory => "memory",
            Label::Summary => "summary",
        }
    }

    /// For people and models: `a guest's words`.
    pub fn in_words(self) -> &'static str {
        match self {
            Label::Owner => "an owner's words",
            Label::Admin => "an admin's words",
            Label::Member => "a member's words",
            Label::Guest => "a guest's words",
            Label::Web => "a web page",
            Label::GuestFile => "a file from a guest",
            Label::MemberFile => "a file that somebody sent",
            Label::Imported => "something imported",
            Label::Agent => "another agent's words",
            Label::Subagent => "a subagent's report",
            Label::Memory => "memories",
            Label::Summary => "a summary",
        }
    }

    /// Whether these words have less trust than the words of a person of this role. The words of
    /// agents, memories and summaries say nothing by themselves: the labels beside them do.
    fn is_below(self, asker: Role) -> bool {
        match self {
            Label::Owner => Role::Owner < asker,
            Label::Admin => Role::Admin < asker,
            Label::Member | Label::MemberFile => Role::Member < asker,
            Label::Guest | Label::GuestFile => Role::Guest < asker,
            Label::Web | Label::Imported => true,
            Label::Agent | Label::Subagent | Label::Memory | Label::Summary => false,
        }
    }

    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

/// A set of labels.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Labels(u32);

impl Labels {
    /// Nothing, or only words of the operator: identity files, skills, the gateway's own lines.
    pub const NONE: Labels = Labels(0);

    /// The words of a person of this role.
    pub fn of(role: Role) -> Self {
        Labels::from(Label::of(role))
    }

    pub fn has(self, label: Label) -> bool {
        self.0 & label.bit() != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn with(self, label: Label) -> Self {
        self | label.into()
    }

    /// The labels of words with less trust than the words of a person of this role.
    #[must_use]
    pub fn below(self, asker: Role) -> Self {
        self.iter().filter(|label| label.is_below(asker)).collect()
    }

    pub fn iter(self) -> impl Iterator<Item = Label> {
        Label::ALL.into_iter().filter(move |label| self.has(*label))
    }

    /// The number for the database.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// A label from a later version counts as a guest's words.
    pub fn from_bits(bits: u32) -> Self {
        let known = Label::ALL
            .into_iter()
            .fold(0, |all, label| all | label.bit());
        let labels = Labels(bits & known);
        if bits == labels.0 {
            labels
        } else {
            labels.with(Label::Guest)
        }
    }

    /// For people and models: `a guest's words, a web page and memories`.
    pub fn in_words(self) -> String {
        list(&self.iter().map(Label::in_words).collect::<Vec<_>>())
    }

    /// The same for a person in a private chat, where words of the person's role are the person's.
    pub fn in_words_for(self, reader: Role) -> String {
        let word = |label: Label| match label == Label::of(reader) {
            true => "your words",
            false => label.in_words(),
        };
        list(&self.iter().map(word).collect::<Vec<_>>())
    }
}

fn list(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl From<Label> for Labels {
    fn from(label: Label) -> Self {
        Labels(label.bit())
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        labels.into_iter().fold(Labels::NONE, Labels::with)
    }
}

impl FromIterator<Labels> for Labels {
    fn from_iter<I: IntoIterator<Item = Labels>>(all: I) -> Self {
        all.into_iter().fold(Labels::NONE, BitOr::bitor)
    }
}

impl BitOr for Labels {
    type Output = Labels;

    fn bitor(self, other: Labels) -> Labels {
        Labels(self.0 | other.0)
    }
}

impl BitOrAssign for Labels {
    fn bitor_assign(&mut self, other: Labels) {
        self.0 |= other.0;
    }
}

/// The short names, for logs: `guest,web`.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Label::as_str).collect();
        f.pad(&names.join(","))
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Labels({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_below_people_of_a_higher_role() {
        use Role::{Admin, Guest, Member, Owner};
        let check = |label: Label, below: &[Role]| {
            for role in Role::ALL {
                let found = !Labels::from(label).below(role).is_empty();
                assert_eq!(found, below.contains(&role), "{label:?} for {role}");
            }
        };
        check(Label::Owner, &[]);
        check(Label::Admin, &[Owner]);
        check(Label::Member, &[Owner, Admin]);
        check(Label::Guest, &[Owner, Admin, Member]);
        check(Label::Web, &[Owner, Admin, Member, Guest]);
        check(Label::GuestFile, &[Owner, Admin, Member]);
        check(Label::MemberFile, &[Owner, Admin]);
        check(Label::Imported, &[Owner, Admin, Member, Guest]);
        check(Label::Agent, &[]);
        check(Label::Subagent, &[]);
        check(Label::Memory, &[]);
        check(Label::Summary, &[]);
    }

    #[test]
    fn labels_read_well() {
        let labels: Labels = [Label::Web, Label::Owner, Label::Guest]
            .into_iter()
            .collect();
        assert_eq!(labels.to_string(), "owner,guest,web");
        assert_eq!(
            labels.in_words(),
            "an owner's words, a guest's words and a web page"
        );
        assert_eq!(
            labels.in_words_for(Role::Owner),
            "your words, a guest's words and a web page"
        );
        assert_eq!(Labels::NONE.in_words(), "nothing");
    }

    #[test]
    fn a_label_of_a_later_version_is_a_guests() {
        assert_eq!(Labels::from_bits(1 << 31), Labels::of(Role::Guest));
    }

    proptest! {
        /// Nothing that was read is forgotten, and the number in the database tells it all.
        #[test]
        fn labels_only_grow(one in 0_u32..1 << 12, other in 0_u32..1 << 12) {
            let (one, other) = (Labels::from_bits(one), Labels::from_bits(other));
            let both = one | other;
            for label in Label::ALL {
                prop_assert_eq!(both.has(label), one.has(label) || other.has(label));
            }
            prop_assert_eq!(Labels::from_bits(both.bits()), both);
            for role in Role::ALL {
                prop_assert_eq!(both.below(role), one.below(role) | other.below(role));
            }
        }
    }
}
