//! Rules for every table and every message.

use std::cmp::Reverse;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::routing::ranked::Says;
use crate::routing::{Rank, Rule, explain};

proptest! {
    #[test]
    fn the_result_is_that_of_looking_at_every_rule(bindings in any_rules(), origin in any_message()) {
        let (table, _) = build(&bindings);
        prop_assert_eq!(decided(&route(&table, None, &origin)), slow_route(&bindings, &origin));
    }

    #[test]
    fn the_explanation_ends_where_the_route_does(bindings in any_rules(), origin in any_message(), pinned in any::<bool>()) {
        let (table, _) = build(&bindings);
        let pin = pinned.then(|| pin("rose"));
        let explanation = explain(&table, pin.as_ref(), &origin);
        prop_assert_eq!(&explanation.route, &route(&table, pin.as_ref(), &origin));
        let deciding = explanation.to_string().matches(": decides\n").count();
        prop_assert_eq!(deciding, 1);
    }

    /// All fourteen ranks are told, and the one that decides is that of the route.
    #[test]
    fn one_rank_of_fourteen_decides(bindings in any_rules(), origin in any_message(), pinned in any::<bool>()) {
        let (table, _) = build(&bindings);
        let pin = pinned.then(|| pin("rose"));
        let explanation = explain(&table, pin.as_ref(), &origin);
        let ranks = explanation.by_rank();
        prop_assert_eq!(ranks.len(), 14);
        let deciding: Vec<&str> = ranks.iter().filter(|rank| rank.says == Says::Decides).map(|rank| rank.rank).collect();
        prop_assert_eq!(deciding, [explanation.route.rule.rank().as_str()]);
        prop_assert!(ranks.iter().all(|rank| !rank.why.is_empty()), "{ranks:?}");
    }

    /// S4.29
    #[test]
    fn the_order_of_the_file_matters_only_between_rules_of_equal_strength(
        (bindings, shuffled) in any_rules().prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
        origin in any_message(),
    ) {
        let agent = |bindings: &[Binding]| route(&build(bindings).0, None, &origin).agent;
        prop_assert_eq!(agent(&bindings), agent(&bindings));
        if strongest(&bindings, &origin).len() <= 1 {
            prop_assert_eq!(agent(&bindings), agent(&shuffled));
        }
    }
}

fn decided(route: &Route) -> Option<(usize, Rank)> {
    match route.rule {
        Rule::Binding { index, rank, .. } => Some((index, rank)),
        _ => None,
    }
}

const PATTERNS: [&str; 26] = [
    "telegram",
    "discord",
    "local",
    "telegram:dm",
    "discord:dm",
    "telegram:user:5",
    "discord:user:5",
    "telegram:dm:5",
    "telegram:dm:5:3",
    "telegram:group:-1",
    "telegram:group:-1:5",
    "telegram:topic:-1:7",
    "telegram:topic:-1:*",
    "telegram:group:-2",
    "telegram:topic:-2:1",
    "discord:channel:20",
    "discord:channel:20:5",
    "discord:thread:20:21",
    "discord:channel:22",
    "discord:category:30",
    "discord:guild:40",
    "discord:guild:41",
    "discord:dm:5",
    "local:home",
    "local:home:work",
    "telegram:topic:-2:*",
];

const PLACES: [&str; 15] = [
    "telegram:dm:5",
    "telegram:dm:5:3",
    "telegram:dm:6",
    "telegram:group:-1:5",
    "telegram:group:-1",
    "telegram:topic:-1:7",
    "telegram:topic:-1:8",
    "telegram:topic:-2:1",
    "discord:channel:20:5",
    "discord:thread:20:21",
    "discord:thread:22:21",
    "discord:dm:5",
    "local:home",
    "local:home:work",
    "cron:main:nightly",
];

fn any_rules() -> impl Strategy<Value = Vec<Binding>> {
    let filters = subsequence(vec!["users", "roles", "name", "tag"], 0..=3);
    let rule = (select(PATTERNS.to_vec()), filters, any_filter_values()).prop_map(
        |(pattern, filters, values)| {
            let chosen = |kind: &&str| {
                values
                    .iter()
                    .find(|value| value.starts_with(*kind))
                    .cloned()
            };
            format!(
                "{pattern} {}",
                filters
                    .iter()
                    .filter_map(chosen)
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        },
    );
    proptest::collection::vec(rule, 0..25).prop_map(|lines| {
        let numbered = lines
            .iter()
            .enumerate()
            .map(|(number, line)| format!("{line} -> agent-{number}\n"));
        rules(&numbered.collect::<String>())
    })
}

fn any_filter_values() -> impl Strategy<Value = Vec<String>> {
    let users = select(vec![
        "telegram:5",
        "telegram:6",
        "discord:5",
        "discord:5,discord:6,telegram:5",
        "local:you",
    ]);
    let roles = select(vec!["90", "91", "90,91"]);
    let name = select(vec!["ops", "o*", "*S", "?ork", "*"]);
    (users, roles, name, select(vec!["bug", "Later"])).prop_map(|(users, roles, name, tag)| {
        vec![
            format!("users={users}"),
            format!("roles={roles}"),
            format!("name={name}"),
            format!("tag={tag}"),
        ]
    })
}

fn any_message() -> impl Strategy<Value = Origin> {
    let place = select(PLACES.to_vec()).prop_flat_map(|place| {
        let facts = facts_of(place);
        let count = 0..=facts.len();
        (Just(place), subsequence(facts, count))
    });
    (place, select(vec!["5", "6"])).prop_map(|((place, facts), person)| {
        let platform = place
            .split(':')
            .next()
            .filter(|platform| *platform != "cron")
            .unwrap_or("telegram");
        let person = only_writer(place).unwrap_or(person);
        message(&format!(
            "{place} by={platform}:{person} {}",
            facts.join(" ")
        ))
    })
}

fn only_writer(place: &str) -> Option<&str> {
    match place.split(':').collect::<Vec<_>>().as_slice() {
        [_, "dm", user, ..] | [_, "group" | "channel", _, user] => Some(user),
        _ => None,
    }
}

fn facts_of(place: &str) -> Vec<&'static str> {
    match place.split(':').collect::<Vec<_>>().as_slice() {
        ["discord", "thread", ..] => vec![
            "name=ops",
            "roles=90",
            "tags=bug,later",
            "category=30",
            "server=40",
        ],
        ["discord", "channel", ..] => vec!["roles=90", "category=30", "server=40"],
        ["telegram", "topic", ..] | ["telegram", "dm", _, _] => vec!["name=ops"],
        _ => Vec::new(),
    }
}

/// The obvious way: look at every rule and take the strongest.
fn slow_route(bindings: &[Binding], origin: &Origin) -> Option<(usize, Rank)> {
    strongest(bindings, origin).first().copied()
}

/// The matching rules of the greatest strength, in file order.
fn strongest(bindings: &[Binding], origin: &Origin) -> Vec<(usize, Rank)> {
    let matching: Vec<_> = bindings
        .iter()
        .enumerate()
        .filter(|(_, binding)| filters_hold(binding, origin))
        .filter_map(|(index, binding)| Some((strength(binding, origin)?, index)))
        .collect();
    let best = matching.iter().map(|(strength, _)| *strength).min();
    matching
        .iter()
        .filter(|(strength, _)| Some(*strength) == best)
        .map(|(strength, index)| (*index, strength.0))
        .collect()
}

/// Rank, distance of the place, filters; smaller is stronger.
fn strength(binding: &Binding, origin: &Origin) -> Option<(Rank, u8, Reverse<usize>)> {
    let has = [
        binding.users.is_some(),
        binding.roles.is_some(),
        binding.name.is_some(),
        binding.tag.is_some(),
    ];
    let (rank, distance) = rank(binding, origin)?;
    Some((
        rank,
        distance,
        Reverse(has.into_iter().filter(|has| *has).count()),
    ))
}

/// Compares texts, to share nothing with the code under test.
fn rank(binding: &Binding, origin: &Origin) -> Option<(Rank, u8)> {
    let (key, person) = (origin.key.to_string(), origin.person.to_string());
    let place: Vec<&str> = key.split(':').collect();
    let pattern = binding.pattern.value.as_str();
    let in_topic = matches!(
        place.as_slice(),
        ["telegram", "topic", ..]
            | ["telegram", "dm", _, _]
            | ["discord", "thread", ..]
            | ["local", _, _]
    );
    let named = binding.name.is_some() || binding.tag.is_some();
    let group = matches!(place[1], "group" | "topic").then(|| place[2]);
    let channel = matches!(place[1], "channel" | "thread").then(|| place[2]);
    let at = |applies: bool, rank: Rank, distance: u8| match named {
        true => (applies && in_topic).then_some((Rank::NameOrTag, distance)),
        false => applies.then_some((rank, 0)),
    };
    let wide = |applies: bool, rank: Rank| (applies && !named).then_some((rank, 0));
    match pattern.split(':').collect::<Vec<_>>().as_slice() {
        [platform] => wide(place[0] == *platform, Rank::Platform),
        [platform, "dm"] => wide(
            key.starts_with(&format!("{platform}:dm:")),
            Rank::PrivateChats,
        ),
        [platform, "user", id] => wide(
            place[0] == *platform && person == format!("{platform}:{id}"),
            Rank::Person,
        ),
        ["telegram", "topic", chat, "*"] => at(
            place[1] == "topic" && place[2] == *chat,
            Rank::EveryTopic,
            0,
        ),
        ["discord", "category", id] => at(
            origin.category.is_some_and(|own| own.to_string() == *id),
            Rank::Category,
            2,
        ),
        ["discord", "guild", id] => {
            let rank = if binding.roles.is_some() {
                Rank::ServerRole
            } else {
                Rank::Server
            };
            at(
                origin.server.is_some_and(|own| own.to_string() == *id),
                rank,
                3,
            )
        }
        ["telegram", "group", chat, user] => (group == Some(*chat)
            && person == format!("telegram:{user}"))
        .then_some((Rank::Member, 0)),
        ["discord", "channel", id, user] => (channel == Some(*id)
            && person == format!("discord:{user}"))
        .then_some((Rank::Member, 0)),
        ["telegram", "group", chat] => at(group == Some(*chat), Rank::Place, 1),
        ["discord", "channel", id] => at(
            channel == Some(*id),
            if place[1] == "thread" {
                Rank::ParentChannel
            } else {
                Rank::Place
            },
            1,
        ),
        ["telegram", "dm", user] => at(
            place[..2] == ["telegram", "dm"] && place[2] == *user,
            Rank::Place,
            1,
        ),
        ["discord", "dm", _] => at(key == pattern, Rank::Place, 1),
        ["local", room] => at(place[0] == "local" && place[1] == *room, Rank::Place, 1),
        _ => (key == pattern).then_some((Rank::ExactTopic, 0)),
    }
}

fn filters_hold(binding: &Binding, origin: &Origin) -> bool {
    let local_topic = || {
        origin
            .key
            .to_string()
            .strip_prefix("local:home:")
            .map(str::to_owned)
    };
    let name = origin.name.clone().or_else(local_topic);
    let glob = |glob: &str| {
        name.as_deref()
            .is_some_and(|name| glob_matches(&glob.to_lowercase(), &name.to_lowercase()))
    };
    let tagged = |tag: &str| origin.tags.iter().any(|own| own.eq_ignore_ascii_case(tag));
    binding
        .users
        .as_ref()
        .is_none_or(|users| users.value.contains(&origin.person))
        && binding.roles.as_ref().is_none_or(|roles| {
            origin
                .roles
                .iter()
                .any(|role| roles.value.contains(&role.0))
        })
        && binding.name.as_ref().is_none_or(|name| glob(&name.value))
        && binding.tag.as_ref().is_none_or(|tag| tagged(&tag.value))
}

fn glob_matches(glob: &str, name: &str) -> bool {
    match (glob.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            glob_matches(&glob[1..], name) || (!name.is_empty() && glob_matches(glob, &name[1..]))
        }
        (Some(wanted), Some(found)) => {
            (wanted == '?' || wanted == found) && glob_matches(&glob[1..], &name[1..])
        }
        _ => false,
    }
}
