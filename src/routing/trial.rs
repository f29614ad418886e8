//! The order of strength: where a message's rule is looked for, strongest first.

use serde::Serialize;

use super::Rule;
use super::pattern::Target;
use super::table::{Bound, Table};
use crate::domain::{Origin, PersonId, Platform, SessionKey};

/// The strength of a rule, strongest first. Within a rank a rule with more filters comes first,
/// then the earlier rule in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// Set from chat with `/agent`.
    Pin,
    /// `telegram:topic:<chat>:<topic>`, `telegram:dm:<user>:<topic>`, `discord:thread:…`,
    /// `local:<room>:<topic>`
    ExactTopic,
    /// `telegram:group:<chat>:<user>`, `discord:channel:<channel>:<user>`, in topics and threads
    /// too
    Member,
    /// A place with `name` or `tag`. The nearest place first: forum, group or channel, category,
    /// server.
    NameOrTag,
    /// `telegram:topic:<chat>:*`
    EveryTopic,
    /// The group, channel, private chat or room itself; all but the channel with their topics.
    Place,
    /// `discord:channel:<channel>`, for its threads
    ParentChannel,
    /// `discord:category:<id>`
    Category,
    /// `discord:guild:<id>` with `roles`
    ServerRole,
    /// `discord:guild:<id>`
    Server,
    /// `telegram:user:<id>`, `discord:user:<id>`
    Person,
    /// `telegram:dm`, `discord:dm`
    PrivateChats,
    /// `telegram`, `discord`, `local`
    Platform,
    /// `default_agent`
    Default,
}

impl Rank {
    /// Strongest first.
    pub(crate) const ALL: [Rank; 14] = [
        Rank::Pin,
        Rank::ExactTopic,
        Rank::Member,
        Rank::NameOrTag,
        Rank::EveryTopic,
        Rank::Place,
        Rank::ParentChannel,
        Rank::Category,
        Rank::ServerRole,
        Rank::Server,
        Rank::Person,
        Rank::PrivateChats,
        Rank::Platform,
        Rank::Default,
    ];

    /// A word for metrics, the same on every platform.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Rank::Pin => "pin",
            Rank::ExactTopic => "exact_topic",
            Rank::Member => "member",
            Rank::NameOrTag => "name_or_tag",
            Rank::EveryTopic => "every_topic",
            Rank::Place => "place",
            Rank::ParentChannel => "parent_channel",
            Rank::Category => "category",
            Rank::ServerRole => "server_role",
            Rank::Server => "server",
            Rank::Person => "person",
            Rank::PrivateChats => "private_chats",
            Rank::Platform => "platform",
            Rank::Default => "default_agent",
        }
    }

    pub(super) fn is_about_a_place(self) -> bool {
        self <= Rank::Server
    }
}

/// A place in the table, for rules of the same rank about the same target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) rank: Rank,
    pub(super) target: Target,
}

impl Slot {
    /// The rank in the words of the place.
    pub(super) fn kind(&self) -> &'static str {
        match self.rank {
            Rank::Pin => "pin",
            Rank::ExactTopic if self.target.platform() == Platform::Discord => "exact thread",
            Rank::ExactTopic => "exact topic",
            Rank::Member => "member",
            Rank::NameOrTag => "name or tag",
            Rank::EveryTopic => "every topic",
            Rank::Place => self.target.noun(),
            Rank::ParentChannel => "parent channel",
            Rank::Category => "category",
            Rank::ServerRole => "server and role",
            Rank::Server => "server",
            Rank::Person => "person",
            Rank::PrivateChats => "private chats",
            Rank::Platform => "platform",
            Rank::Default => "default_agent",
        }
    }
}

/// A slot to try for a message.
pub(super) struct Trial<'t> {
    pub(super) table: &'t Table,
    pub(super) slot: Slot,
}

/// The deciding binding of a message, and its strength there.
pub(super) struct Decision<'t> {
    pub(super) binding: &'t Bound,
    pub(super) rank: Rank,
    kind: &'static str,
}

/// Every slot the message can have rules in, strongest first.
pub(super) fn trials<'t>(table: &'t Table, origin: &Origin) -> impl Iterator<Item = Trial<'t>> {
    slots(origin).map(|slot| Trial { table, slot })
}

/// Whether a rule with this target could be about the message.
pub(super) fn is_about(target: &Target, origin: &Origin) -> bool {
    slots(origin).any(|slot| slot.target == *target)
}

impl<'t> Trial<'t> {
    /// The bindings found here, strongest first.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &'t Bound> + use<'t> {
        self.table.at(&self.slot)
    }

    pub(super) fn decide(&self, origin: &Origin) -> Option<Decision<'t>> {
        let binding = self
            .bindings()
            .find(|binding| binding.filters.hold(origin))?;
        Some(Decision {
            binding,
            rank: self.slot.rank,
            kind: self.slot.kind(),
        })
    }
}

impl Decision<'_> {
    pub(super) fn rule(&self) -> Rule {
        Rule::Binding {
            index: self.binding.index,
            line: self.binding.line,
            rank: self.rank,
            kind: self.kind,
            matches: self.binding.text.clone(),
        }
    }
}

/// The ranks of a binding, by its target and filters.
pub(super) fn ranks(binding: &Bound) -> &'static [Rank] {
    match &binding.target {
        Target::Place(key) if is_topic(key) => &[Rank::ExactTopic],
        Target::Place(SessionKey::TelegramGroup {
            member: Some(_), ..
        }) => &[Rank::Member],
        Target::Place(SessionKey::DiscordChannel {
            member: Some(_), ..
        }) => &[Rank::Member],
        _ if binding.filters.look_at_topics() => &[Rank::NameOrTag],
        Target::EveryTopic(_) => &[Rank::EveryTopic],
        Target::Place(SessionKey::DiscordChannel { .. }) => &[Rank::Place, Rank::ParentChannel],
        Target::Place(_) => &[Rank::Place],
        Target::Category(_) => &[Rank::Category],
        Target::Server(_) if binding.filters.look_at_roles() => &[Rank::ServerRole],
        Target::Server(_) => &[Rank::Server],
        Target::Person(_) => &[Rank::Person],
        Target::PrivateChats(_) => &[Rank::PrivateChats],
        Target::Platform(_) => &[Rank::Platform],
    }
}

/// Places inside the gateway (cron, subagents) have no platform and so no rule but the default.
fn slots(origin: &Origin) -> impl Iterator<Item = Slot> {
    origin
        .key
        .platform()
        .into_iter()
        .flat_map(|platform| slots_on(platform, origin))
}

fn slots_on(platform: Platform, origin: &Origin) -> impl Iterator<Item = Slot> + use<> {
    let key = &origin.key;
    let in_topic = is_topic(key);
    let named = |target: &Option<Target>| target.clone().filter(|_| in_topic);
    let forum = forum(key);
    let home = home(key);
    let former = origin.formerly.map(|chat| key.in_telegram_group(chat));
    let former_member = former
        .as_ref()
        .and_then(|former| member(former, &origin.person));
    let former_home = former.as_ref().and_then(self::home);
    let home_rank = if matches!(key, SessionKey::DiscordThread { .. }) {
        Rank::ParentChannel
    } else {
        Rank::Place
    };
    let category = origin.category.map(Target::Category);
    let server = origin.server.map(Target::Server);
    let trials = [
        (
            Rank::ExactTopic,
            in_topic.then(|| Target::Place(key.clone())),
        ),
        (Rank::Member, member(key, &origin.person)),
        (Rank::Member, former_member),
        (Rank::NameOrTag, named(&forum)),
        (Rank::NameOrTag, named(&home)),
        (Rank::NameOrTag, named(&former_home)),
        (Rank::NameOrTag, named(&category)),
        (Rank::NameOrTag, named(&server)),
        (Rank::EveryTopic, forum),
        (home_rank, home),
        (home_rank, former_home),
        (Rank::Category, category),
        (Rank::ServerRole, server.clone()),
        (Rank::Server, server),
        (Rank::Person, person(&origin.person)),
        (Rank::PrivateChats, private_chats(key, platform)),
        (Rank::Platform, Some(Target::Platform(platform))),
    ];
    trials.into_iter().filter_map(|(rank, target)| {
        Some(Slot {
            rank,
            target: target?,
        })
    })
}

fn is_topic(key: &SessionKey) -> bool {
    matches!(
        key,
        SessionKey::TelegramTopic { .. }
            | SessionKey::TelegramDm { topic: Some(_), .. }
            | SessionKey::DiscordThread { .. }
            | SessionKey::Local { topic: Some(_), .. }
            | SessionKey::Web { topic: Some(_), .. }
    )
}

/// A target from the author, not from the key, because the key of a shared conversation has no
/// member.
fn member(key: &SessionKey, person: &PersonId) -> Option<Target> {
    match (key, person) {
        (
            SessionKey::TelegramGroup { chat, .. } | SessionKey::TelegramTopic { chat, .. },
            PersonId::Telegram(user),
        ) => Some(Target::Place(SessionKey::TelegramGroup {
            chat: *chat,
            member: Some(*user),
        })),
        (
            SessionKey::DiscordChannel { channel, .. } | SessionKey::DiscordThread { channel, .. },
            PersonId::Discord(user),
        ) => Some(Target::Place(SessionKey::DiscordChannel {
            channel: *channel,
            member: Some(*user),
        })),
        _ => None,
    }
}

fn forum(key: &SessionKey) -> Option<Target> {
    match key {
        SessionKey::TelegramTopic { chat, .. } => Some(Target::EveryTopic(*chat)),
        _ => None,
    }
}

/// The place without topic and member.
fn home(key: &SessionKey) -> Option<Target> {
    let home = match key {
        SessionKey::TelegramDm { user, .. } => SessionKey::TelegramDm {
            user: *user,
            topic: None,
        },
        SessionKey::TelegramTopic { chat, .. } | SessionKey::TelegramGroup { chat, .. } => {
            SessionKey::TelegramGroup {
                chat: *chat,
                member: None,
            }
        }
        SessionKey::DiscordDm { user } => SessionKey::DiscordDm { user: *user },
        SessionKey::DiscordChannel { channel, .. } | SessionKey::DiscordThread { channel, .. } => {
            SessionKey::DiscordChannel {
                channel: *channel,
                member: None,
            }
        }
        SessionKey::Local { room, .. } => SessionKey::Local {
            room: room.clone(),
            topic: None,
        },
        SessionKey::Web { room, .. } => SessionKey::Web {
            room: room.clone(),
            topic: None,
        },
        SessionKey::Cron { .. } | SessionKey::Child { .. } | SessionKey::Import { .. } => {
            return None;
        }
    };
    Some(Target::Place(home))
}

fn person(person: &PersonId) -> Option<Target> {
    match person {
        PersonId::Telegram(_) | PersonId::Discord(_) => Some(Target::Person(person.clone())),
        PersonId::Local(_) => None,
    }
}

/// The chats of this machine have no groups, so `local:dm` would mean the same as `local`.
fn private_chats(key: &SessionKey, platform: Platform) -> Option<Target> {
    let has_groups = !matches!(platform, Platform::Local | Platform::Web);
    (has_groups && key.is_private()).then_some(Target::PrivateChats(platform))
}

#[cfg(test)]
mod tests {
    use super::Rank;
    use crate::metrics::Counts;

    #[test]
    fn every_rank_is_counted() {
        let ranks = Rank::ALL;
        assert!(ranks.is_sorted() && ranks.len() == Rank::Default as usize + 1);
        for rank in ranks {
            Counts::default().routed(rank.as_str());
        }
    }
}
