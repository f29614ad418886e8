//! Filters narrow a binding to some people, topics or posts.

use std::fmt;

use super::glob::{Glob, fold};
use crate::config::Binding;
use crate::domain::{DiscordId, Origin, PersonId, SessionKey};

/// All filters of a binding; all must hold.
#[derive(Debug, Clone)]
pub(super) struct Filters(Vec<Filter>);

#[derive(Debug, Clone)]
pub(super) enum Filter {
    Users(Vec<PersonId>),
    Roles(Vec<DiscordId>),
    Name(Glob),
    Tag(String),
}

impl Filters {
    pub(super) fn of(binding: &Binding) -> Self {
        let users = binding
            .users
            .as_ref()
            .map(|users| Filter::Users(users.value.clone()));
        let roles = binding
            .roles
            .as_ref()
            .map(|roles| Filter::Roles(roles.value.iter().copied().map(DiscordId).collect()));
        let name = binding
            .name
            .as_ref()
            .map(|name| Filter::Name(Glob::parse(&name.value)));
        let tag = binding
            .tag
            .as_ref()
            .map(|tag| Filter::Tag(tag.value.clone()));
        Filters([users, roles, name, tag].into_iter().flatten().collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.0.iter()
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn hold(&self, origin: &Origin) -> bool {
        self.iter().all(|filter| filter.holds(origin))
    }

    pub(super) fn look_at_topics(&self) -> bool {
        self.iter()
            .any(|filter| matches!(filter, Filter::Name(_) | Filter::Tag(_)))
    }

    pub(super) fn look_at_roles(&self) -> bool {
        self.iter().any(|filter| matches!(filter, Filter::Roles(_)))
    }

    pub(super) fn users(&self) -> Option<&[PersonId]> {
        self.iter().find_map(|filter| match filter {
            Filter::Users(users) => Some(users.as_slice()),
            _ => None,
        })
    }

    /// Whether both have filters of the same kinds and a message can pass both, so that neither is
    /// stronger.
    pub(super) fn collide(&self, other: &Filters) -> bool {
        self.count() == other.count()
            && self
                .iter()
                .zip(other.iter())
                .all(|(own, theirs)| own.collides(theirs))
    }
}

impl Filter {
    pub(super) fn holds(&self, origin: &Origin) -> bool {
        match self {
            Filter::Users(users) => users.contains(&origin.person),
            Filter::Roles(roles) => roles.iter().any(|role| origin.roles.contains(role)),
            Filter::Name(glob) => topic_name(origin).is_some_and(|name| glob.matches(name)),
            Filter::Tag(tag) => origin.tags.iter().any(|own| same_tag(own, tag)),
        }
    }

    /// The property of the message that the filter compares, in words.
    pub(super) fn finding(&self, origin: &Origin) -> String {
        match self {
            Filter::Users(_) => format!("written by {}", origin.person),
            Filter::Roles(_) if origin.roles.is_empty() => "the person has no role here".to_owned(),
            Filter::Roles(_) => format!("the person has {}", comma_separated(&origin.roles)),
            Filter::Name(_) => match topic_name(origin) {
                Some(name) => format!("the name is {name:?}"),
                None => "the name is not known".to_owned(),
            },
            Filter::Tag(_) if origin.tags.is_empty() => "the post has no tag".to_owned(),
            Filter::Tag(_) => format!("the post has {}", comma_separated(&origin.tags)),
        }
    }

    /// Different roles or tags do not collide, although a person can have both roles and a post
    /// both tags: such rules are common and fine, and the earlier rule in the file wins.
    fn collides(&self, other: &Filter) -> bool {
        match (self, other) {
            (Filter::Users(own), Filter::Users(theirs)) => {
                own.iter().any(|user| theirs.contains(user))
            }
            (Filter::Roles(own), Filter::Roles(theirs)) => {
                own.iter().any(|role| theirs.contains(role))
            }
            (Filter::Name(own), Filter::Name(theirs)) => own.overlaps(theirs),
            (Filter::Tag(own), Filter::Tag(theirs)) => same_tag(own, theirs),
            _ => false,
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::Users(users) => write!(f, "users {}", comma_separated(users)),
            Filter::Roles(roles) => write!(f, "roles {}", comma_separated(roles)),
            Filter::Name(glob) => write!(f, "name \"{glob}\""),
            Filter::Tag(tag) => write!(f, "tag {tag:?}"),
        }
    }
}

/// The topic's name. A topic of the terminal chat or the web chat has a name in the key.
pub(super) fn topic_name(origin: &Origin) -> Option<&str> {
    match (&origin.name, &origin.key) {
        (Some(name), _) => Some(name),
        (
            None,
            SessionKey::Local {
                topic: Some(topic), ..
            }
            | SessionKey::Web {
                topic: Some(topic), ..
            },
        ) => Some(topic.as_str()),
        (None, _) => None,
    }
}

pub(super) fn comma_separated(items: &[impl ToString]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn same_tag(a: &str, b: &str) -> bool {
    a.chars().map(fold).eq(b.chars().map(fold))
}
