//! Finds wrong bindings: malformed, never matching, never reached, or as strong as another.

use std::ops::Range;

use super::filter::comma_separated;
use super::pattern::{self, Malformed, Target};
use super::table::{Bound, Table};
use super::trial::{Rank, Slot};
use crate::config::{Binding, Config, Fault, Problem, Spanned};
use crate::domain::{PersonId, Platform, SessionKey};

pub(super) fn malformed(pattern: &Spanned<String>, malformed: Malformed) -> Problem {
    let message = format!(
        "`{}` is not a place that a binding can match",
        pattern.value
    );
    problem(&pattern.span, message, malformed.label, malformed.help)
}

/// Bindings to a platform without a section, and so without any messages.
pub(crate) fn idle(config: &Config) -> Vec<Problem> {
    let idle = config.bindings.iter().filter_map(|binding| {
        let platform = pattern::parse(&binding.pattern.value).ok()?.platform();
        // The shipped file has topics of the web chat and of the terminal, which need no section.
        let is_ours = matches!(platform, Platform::Web | Platform::Local);
        let is_off = !is_ours && config.platform(platform).is_none();
        is_off.then(|| {
            let message = format!("this binding waits for {}, which is off", title(platform));
            problem(
                &binding.pattern.span,
                message,
                format!("the file has no [{platform}]"),
                format!(
                    "`parlor setup` connects a bot, or add the section [{platform}] with its token"
                ),
            )
            .fault(Fault::Idle)
        })
    });
    idle.collect()
}

fn title(platform: Platform) -> &'static str {
    match platform {
        Platform::Telegram => "Telegram",
        Platform::Discord => "Discord",
        Platform::Web => "the web chat",
        Platform::Local => "the terminal",
    }
}

/// A place in an agent's `who` that cannot be read.
pub(super) fn malformed_who(place: &Spanned<String>, malformed: Malformed) -> Problem {
    let message = format!("`{}` is not a place", place.value);
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
            "name somebody, or delete `users`".to_owned(),
        )
    } else if let Some(only) = target
        .only_person()
        .filter(|only| !users.value.contains(only))
    {
        (
            format!("`{target}` has messages of {only} only"),
            format!(
                "delete `users`, or match a place where {} write",
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
        "this binding can never match".to_owned(),
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
        Platform::Local | Platform::Web => "local:<name>",
    }
}

fn roles(binding: &Binding, target: &Target) -> Option<Problem> {
    let roles = binding.roles.as_ref()?;
    let (label, help) = if !target.has_roles() {
        (
            format!("nobody has a role in `{target}`"),
            "delete `roles`, or match a Discord server, category, channel or thread",
        )
    } else if roles.value.is_empty() {
        (
            "an empty list lets nobody through".to_owned(),
            "name a role by its id, or delete `roles`",
        )
    } else {
        return None;
    };
    Some(problem(
        &roles.span,
        "this binding can never match".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn name(binding: &Binding, target: &Target) -> Option<Problem> {
    let name = binding.name.as_ref()?;
    let (label, help) = if !target.has_topics() {
        (
            without_topics(target),
            "delete `name`, or match the group, channel, category or server that has the topics",
        )
    } else if name.value.is_empty() {
        (
            "no topic has an empty name".to_owned(),
            "write a name, with `*` for any text, or delete `name`",
        )
    } else {
        return None;
    };
    Some(problem(
        &name.span,
        "this binding can never match".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn tag(binding: &Binding, target: &Target) -> Option<Problem> {
    let tag = binding.tag.as_ref()?;
    let (label, help) = if target.platform() != Platform::Discord {
        (
            format!("{} has no forum tags", target.platform()),
            "delete `tag`; only posts in a Discord forum have tags",
        )
    } else if !target.has_topics() {
        (
            without_topics(target),
            "delete `tag`, or match the forum channel, category or server that has the posts",
        )
    } else if tag.value.is_empty() {
        (
            "no tag has an empty name".to_owned(),
            "write the tag's name, or delete `tag`",
        )
    } else {
        return None;
    };
    Some(problem(
        &tag.span,
        "this binding can never match".to_owned(),
        label,
        help.to_owned(),
    ))
}

fn without_topics(target: &Target) -> String {
    format!("`{target}` has no topics")
}

/// Compares all pairs inside a slot; each rule is reported once, with the first colliding rule.
fn ties(table: &Table, slot: &Slot, bindings: &[Binding]) -> Vec<Problem> {
    if slot.rank == Rank::ParentChannel {
        // The rules of a parent channel are compared in the channel's own slot.
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
    let (agent, others) = (&binding.agent.value, &other.agent.value);
    let is_same_place = bound.filters.count() == 0;
    let what = match is_same_place {
        true => "two bindings for the same place",
        false => "two bindings that fit the same message",
    };
    let message = match agent == others {
        true => format!("{what}, both to {agent}: in line {} and here", other.line),
        false => format!("{what}: {others} (line {}) and {agent} (here)", other.line),
    };
    let label = match is_same_place {
        true => format!("line {} has `{}` already", other.line, bound.target),
        false => format!("line {} is {}", other.line, earlier.text),
    };
    let help = "delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`";
    problem(&binding.pattern.span, message, label, help.to_owned())
        .related(other.pattern.span.clone(), "the first one")
}

/// A rule for some people is never reached if each of them has a stronger rule for the same
/// messages.
fn never_reached(table: &Table, bound: &Bound, bindings: &[Binding]) -> Option<Problem> {
    let users = bound.filters.users()?;
    let own_rules: Option<Vec<&Bound>> = users
        .iter()
        .map(|user| own_rule(table, &bound.target, user))
        .collect();
    let stronger: Vec<&Binding> = own_rules?
        .iter()
        .map(|rule| &bindings[rule.index])
        .collect();
    let binding = &bindings[bound.index];
    let label = match users.len() {
        1 => format!("{} has a binding of their own", comma_separated(users)),
        _ => format!("{} have bindings of their own", comma_separated(users)),
    };
    let mut lines: Vec<usize> = stronger.iter().map(|binding| binding.line).collect();
    lines.dedup();
    let help = match lines.as_slice() {
        [line] => format!("delete this binding, or the one in line {line}"),
        lines => format!(
            "delete this binding, or those in lines {}",
            comma_separated(lines)
        ),
    };
    let problem = problem(
        &binding.pattern.span,
        "this binding never decides".to_owned(),
        label,
        help,
    );
    Some(stronger.iter().fold(problem, |problem, other| {
        problem.related(other.pattern.span.clone(), "decides before it")
    }))
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
    Problem::new(span.clone(), message).label(label).help(help)
}
