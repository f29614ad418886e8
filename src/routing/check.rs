//! Finds wrong bindings: malformed, never matching, never reached, or as strong as another.

use std::ops::Range;

use super::filter::comma_separated;
use super::pattern::{Malformed, Target};
use super::table::{Bound, Table};
use super::trial::{Rank, Slot};
use crate::config::{Binding, Problem, Spanned};
use crate::domain::{PersonId, Platform, SessionKey};

pub(super) fn malformed(binding: &Binding, malformed: Malformed) -> Problem {
    let message = format!("`{}` is nothing a binding can match", binding.pattern.value);
    problem(
        &binding.pattern.span,
        message,
        malformed.label,
        malformed.help,
    )
}

/// A place in an agent's `who` that cannot be read.
pub(super) fn malformed_who(place: &Spanned<String>, malformed: Malformed) -> Problem {
    let message = format!("`{}` is no place", place.value);
    problem(&place.span, message, malformed.label, malformed.help)
}

/// Filters that let no message at this target pass.
pub(super) fn never_matches(binding: &Binding, target: &Target) -> Vec<Problem> {
    let found = [
        users(binding, target),
        roles(binding, target),
        name(binding, target),
        tag(binding, target),
    ];
    found.into_iter().flatten().collect()
}

/// Conflicts between rules.
pub(super) fn between_rules(table: &Table, bindings: &[Binding]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = table
        .slots()
        .flat_map(|slot| ties(table, slot, bindings))
        .collect();
    problems.extend(
        table
            .bindings()
            .filter_map(|bound| never_reached(table, bound, bindings)),
    );
    problems
}

fn users(binding: &Binding, target: &Target) -> Option<Problem> {
    let users = binding.users.as_ref()?;
    let platform = target.platform();
    let (label, help) = if users.value.is_empty() {
        (
            "an empty list lets nobody through".to_owned(),
            "name somebody, or leave `users` out".to_owned(),
        )
    } else if let Some(only) = target
        .only_person()
        .filter(|only| !users.value.contains(only))
    {
        (
            format!("`{target}` has messages of {only} only"),
            format!(
                "leave `users` out, or match a place where {} write",
                they(users.value.len())
            ),
        )
    } else if users.value.iter().all(|user| user.platform() != platform) {
        (
            format!("none of them writes on {platform}"),
            format!("name people as `{}`", person_form(platform)),
        )
    } else {
        return None;
    };
    Some(problem(
        &users.span,
        "this rule can never match".to_owned(),
        label,
        help,
    ))
}

fn they(count: usize) -> &'static str {
    if count == 1 {
        "this person can"
    } else {
        "these people can"
    }
}

fn person_form(platform: Platform) -> &'static str {
    match platform {
        Platform::Telegram => "telegram:<user>",
        Platform::Discord => "discord:<user>",
        Platform::Local => "local:<name>",
    }
}

fn roles(binding: &Binding, target: &Target) -> Option<Problem> {
    let roles = binding.roles.as_ref()?;
    let (label, help) = if !target.has_roles() {
        (
            format!("nobody has a role in `{target}`"),
            "leave `roles` out, or match a Discord server, category, channel or thread",
        )
    } else if roles.value.is_empty() {
        (
            "an empty list lets nobody through".to_owned(),
            "name a role by its id, or leave `roles` out",
        )
    } else {
        return None;
    };
    Some(problem(
        &roles.span,
        "this rule can never match".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn name(binding: &Binding, target: &Target) -> Option<Problem> {
    let name = binding.name.as_ref()?;
    let (label, help) = if !target.has_topics() {
        (
            without_topics(target),
            "leave `name` out, or match the group, channel, category or server that has the topics",
        )
    } else if name.value.is_empty() {
        (
            "no topic has an empty name".to_owned(),
            "write a name, with `*` for any text, or leave `name` out",
        )
    } else {
        return None;
    };
    Some(problem(
        &name.span,
        "this rule can never match".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn tag(binding: &Binding, target: &Target) -> Option<Problem> {
    let tag = binding.tag.as_ref()?;
    let (label, help) = if target.platform() != Platform::Discord {
        (
            format!("{} has no forum tags", target.platform()),
            "leave `tag` out; only posts in a Discord forum have tags",
        )
    } else if !target.has_topics() {
        (
            without_topics(target),
            "leave `tag` out, or match the forum channel, category or server that has the posts",
        )
    } else if tag.value.is_empty() {
        (
            "no tag has an empty name".to_owned(),
            "write the tag's name, or leave `tag` out",
        )
    } else {
        return None;
    };
    Some(problem(
        &tag.span,
        "this rule can never match".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn without_topics(target: &Target) -> String {
    format!("`{target}` names no place with topics")
}

/// Compares all pairs inside a slot; each rule is reported once, with the first colliding rule.
fn ties(table: &Table, slot: &Slot, bindings: &[Binding]) -> Vec<Problem> {
    if slot.rank == Rank::ParentChannel {
        // The same rules stand in the channel's own slot.
        return Vec::new();
    }
    let mut seen: Vec<&Bound> = Vec::new();
    let mut problems = Vec::new();
    for bound in table.at(slot) {
        let earlier = seen
            .iter()
            .find(|earlier| earlier.filters.collide(&bound.filters));
        problems.extend(earlier.map(|earlier| {
            tie(
                &bindings[bound.index],
                bound,
                (&bindings[earlier.index], earlier),
            )
        }));
        seen.push(bound);
    }
    problems
}

fn tie(binding: &Binding, bound: &Bound, (other, earlier): (&Binding, &Bound)) -> Problem {
    let label = match bound.filters.count() {
        0 => format!("`{}` is already taken", bound.target),
        _ => format!("one message can match both: the other is {}", earlier.text),
    };
    let message = format!(
        "this rule is exactly as strong as bindings[{}]",
        other.index
    );
    let help = "remove one of them, or narrow one with a filter the other has not: `users`, `roles`, `name` or `tag`";
    problem(&binding.pattern.span, message, label, help.to_owned())
}

/// A rule for some people is never reached if each of them has a stronger rule for the same
/// messages.
fn never_reached(table: &Table, bound: &Bound, bindings: &[Binding]) -> Option<Problem> {
    let users = bound.filters.users()?;
    let own_rules: Option<Vec<&Bound>> = users
        .iter()
        .map(|user| own_rule(table, &bound.target, user))
        .collect();
    let indexes: Vec<String> = own_rules?
        .iter()
        .map(|rule| format!("bindings[{}]", bindings[rule.index].index))
        .collect();
    let binding = &bindings[bound.index];
    let label = format!(
        "{} already decided by {}",
        comma_separated(users),
        comma_separated(&indexes)
    );
    let help = "remove it, or the stronger rules for the same people";
    Some(problem(
        &binding.pattern.span,
        "this rule is never reached".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn own_rule<'t>(table: &'t Table, target: &Target, user: &PersonId) -> Option<&'t Bound> {
    let slots = [
        member_slot(target, user),
        private_chat_slot(target, user),
        person_slot(target, user),
    ];
    slots
        .into_iter()
        .flatten()
        .find_map(|slot| table.at(&slot).find(|rule| rule.filters.count() == 0))
}

fn member_slot(target: &Target, user: &PersonId) -> Option<Slot> {
    let key = match (target, user) {
        (
            Target::Place(SessionKey::TelegramGroup { chat, member: None })
            | Target::EveryTopic(chat),
            PersonId::Telegram(user),
        ) => SessionKey::TelegramGroup {
            chat: *chat,
            member: Some(*user),
        },
        (
            Target::Place(SessionKey::DiscordChannel {
                channel,
                member: None,
            }),
            PersonId::Discord(user),
        ) => SessionKey::DiscordChannel {
            channel: *channel,
            member: Some(*user),
        },
        _ => return None,
    };
    Some(Slot {
        rank: Rank::Member,
        target: Target::Place(key),
    })
}

fn private_chat_slot(target: &Target, user: &PersonId) -> Option<Slot> {
    let key = match (target, user) {
        (Target::PrivateChats(Platform::Telegram), PersonId::Telegram(user)) => {
            SessionKey::TelegramDm {
                user: *user,
                topic: None,
            }
        }
        (Target::PrivateChats(Platform::Discord), PersonId::Discord(user)) => {
            SessionKey::DiscordDm { user: *user }
        }
        _ => return None,
    };
    Some(Slot {
        rank: Rank::Place,
        target: Target::Place(key),
    })
}

fn person_slot(target: &Target, user: &PersonId) -> Option<Slot> {
    let wide = matches!(target, Target::PrivateChats(_) | Target::Platform(_));
    wide.then(|| Slot {
        rank: Rank::Person,
        target: Target::Person(user.clone()),
    })
}

fn problem(span: &Range<usize>, message: String, label: String, help: String) -> Problem {
    Problem {
        message,
        span: span.clone(),
        label,
        help: Some(help),
    }
}
