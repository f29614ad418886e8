//! The order of strength among rules.

use super::*;

/// Every kind of rule; each agent is called after its rule.
const HOUSE: &str = "
    telegram:topic:-100:7 -> topic
    telegram:-100:8 -> short
    telegram:topic:-100:1 -> general
    telegram:topic:-100:9 users=telegram:6 -> topic-of-6
    telegram:group:-100:6 -> member
    telegram:group:-100 name=ops* -> named
    telegram:group:-100 name=ops* users=telegram:7 -> named-for-7
    telegram:group:-100 -> group
    telegram:group:-200 -> plain-group
    telegram:topic:-300:* -> every-topic
    telegram:topic:-300:* name=bugs -> bugs
    telegram:group:-300 -> forum
    telegram:dm:5 -> private
    telegram:dm:5:3 -> private-topic
    telegram:dm:6 name=work -> private-work
    telegram:user:6 -> person
    telegram:dm -> telegram-dms
    telegram -> telegram
    discord:thread:20:21 -> thread
    discord:channel:20:6 -> channel-member
    discord:channel:20 name=*help* -> help-threads
    discord:channel:20 tag=Bug -> bug-posts
    discord:channel:20 roles=90 -> channel-role
    discord:channel:20 -> channel
    discord:category:30 name=release? -> releases
    discord:category:30 -> category
    discord:guild:40 name=release? -> server-releases
    discord:guild:40 roles=90 -> role
    discord:guild:40 roles=91 users=discord:7 -> role-of-7
    discord:guild:40 -> server
    discord:dm:5 -> discord-private
    discord:user:6 -> discord-person
    discord:dm -> discord-dms
    discord -> discord
    local:home:work -> local-work
    local:home name=garden* -> local-garden
    local:home -> local-home
    local -> local
";

fn check(place: &str, agent: &str, reason: &str) {
    let route = routed(HOUSE, place);
    assert_eq!(
        (route.agent.as_str(), route.rule.short()),
        (agent, reason),
        "{place}: {}",
        route.rule
    );
}

/// S4.29, S4.20
#[test]
fn telegram_messages_find_their_rule() {
    check("telegram:topic:-100:7", "topic", "exact topic");
    check(
        "telegram:topic:-100:7 by=telegram:6",
        "topic",
        "exact topic",
    );
    check("telegram:topic:-100:7 name=ops", "topic", "exact topic");
    check("telegram:topic:-100:8", "short", "exact topic");
    check("telegram:topic:-100:1", "general", "exact topic");
    check(
        "telegram:topic:-100:9 by=telegram:6",
        "topic-of-6",
        "exact topic",
    );
    check("telegram:topic:-100:9", "group", "group");
    check("telegram:topic:-100:10", "group", "group");
    check("telegram:topic:-100:10 by=telegram:6", "member", "member");
    check(
        "telegram:topic:-100:10 by=telegram:6 name=ops",
        "member",
        "member",
    );
    check(
        "telegram:topic:-100:10 name=Ops-night",
        "named",
        "name or tag",
    );
    check(
        "telegram:topic:-100:10 name=Ops-night by=telegram:7",
        "named-for-7",
        "name or tag",
    );
    check("telegram:topic:-100:10 name=devops", "group", "group");
    check("telegram:group:-100:5", "group", "group");
    check("telegram:group:-100:6 by=telegram:6", "member", "member");
    check("telegram:group:-100 by=telegram:6", "member", "member");
    check("telegram:group:-100", "group", "group");
    check("telegram:group:-200:5", "plain-group", "group");
    check(
        "telegram:group:-200:6 by=telegram:6",
        "plain-group",
        "group",
    );
    check("telegram:topic:-300:4", "every-topic", "every topic");
    check("telegram:topic:-300:1", "every-topic", "every topic");
    check("telegram:topic:-300:4 name=bugs", "bugs", "name or tag");
    check("telegram:group:-300:5", "forum", "group");
    check("telegram:topic:-999:7", "telegram", "platform");
    check("telegram:topic:-999:7 by=telegram:6", "person", "person");
    check("telegram:group:-999:6 by=telegram:6", "person", "person");
    check("telegram:dm:5", "private", "private chat");
    check("telegram:dm:5:3", "private-topic", "exact topic");
    check("telegram:dm:5:4", "private", "private chat");
    check(
        "telegram:dm:6:4 by=telegram:6 name=work",
        "private-work",
        "name or tag",
    );
    check("telegram:dm:6 by=telegram:6", "person", "person");
    check(
        "telegram:dm:8 by=telegram:8",
        "telegram-dms",
        "private chats",
    );
    check(
        "telegram:dm:8:2 by=telegram:8",
        "telegram-dms",
        "private chats",
    );
}

/// S4.29
#[test]
fn discord_messages_find_their_rule() {
    check("discord:thread:20:21", "thread", "exact thread");
    check(
        "discord:thread:20:21 by=discord:6 tags=bug",
        "thread",
        "exact thread",
    );
    check(
        "discord:thread:20:22 by=discord:6 tags=bug",
        "channel-member",
        "member",
    );
    check(
        "discord:thread:20:22 tags=bug,later",
        "bug-posts",
        "name or tag",
    );
    check(
        "discord:thread:20:22 name=i-need-help-please",
        "help-threads",
        "name or tag",
    );
    check(
        "discord:thread:20:22 name=help tags=bug",
        "help-threads",
        "name or tag",
    );
    check(
        "discord:thread:20:22 roles=90",
        "channel-role",
        "parent channel",
    );
    check(
        "discord:thread:20:22 roles=91 category=30 server=40",
        "channel",
        "parent channel",
    );
    check("discord:channel:20:5 roles=90", "channel-role", "channel");
    check(
        "discord:channel:20:5 category=30 server=40",
        "channel",
        "channel",
    );
    check(
        "discord:channel:20 by=discord:6",
        "channel-member",
        "member",
    );
    check(
        "discord:thread:29:22 category=30 server=40 name=release1",
        "releases",
        "name or tag",
    );
    check(
        "discord:thread:29:22 category=31 server=40 name=release1",
        "server-releases",
        "name or tag",
    );
    check(
        "discord:thread:29:22 category=30 server=40 name=release10",
        "category",
        "category",
    );
    check(
        "discord:channel:29:5 category=30 server=40 roles=90",
        "category",
        "category",
    );
    check(
        "discord:channel:29:5 server=40 roles=90",
        "role",
        "server and role",
    );
    check(
        "discord:channel:29:7 server=40 roles=90,91 by=discord:7",
        "role-of-7",
        "server and role",
    );
    check(
        "discord:channel:29:5 server=40 roles=91",
        "server",
        "server",
    );
    check(
        "discord:channel:29:6 server=40 by=discord:6",
        "server",
        "server",
    );
    check(
        "discord:channel:29:6 server=41 by=discord:6",
        "discord-person",
        "person",
    );
    check("discord:channel:29:5 server=41", "discord", "platform");
    check("discord:dm:5", "discord-private", "private chat");
    check("discord:dm:6 by=discord:6", "discord-person", "person");
    check("discord:dm:8 by=discord:8", "discord-dms", "private chats");
}

/// S4.29
#[test]
fn local_and_inner_messages_find_their_rule() {
    check("local:home:work by=local:you", "local-work", "exact topic");
    check(
        "local:home:garden-plan by=local:you",
        "local-garden",
        "name or tag",
    );
    check("local:home:play by=local:you", "local-home", "room");
    check("local:home by=local:you", "local-home", "room");
    check("local:attic by=local:you", "local", "platform");
    check("cron:main:nightly by=telegram:6", "main", "default_agent");
    check("child:7 by=telegram:6", "main", "default_agent");
}

/// Takes away the strongest rule again and again; the file has the weakest first. S1.27
#[track_caller]
fn check_order(place: &str, strongest_first: &[&str]) {
    let origin = message(place);
    for first in 0..strongest_first.len() {
        let rules: Vec<String> = (first..strongest_first.len())
            .rev()
            .map(|rule| format!("{} -> rule-{rule}", strongest_first[rule]))
            .collect();
        let route = route(&table(&rules.join("\n")), None, &origin);
        assert_eq!(
            route.agent.as_str(),
            format!("rule-{first}"),
            "{place}: {}",
            route.rule
        );
    }
}

/// S1.27
#[test]
fn each_rank_beats_the_next_in_a_telegram_topic() {
    check_order(
        "telegram:topic:-100:7 name=ops",
        &[
            "telegram:topic:-100:7 name=* users=telegram:5",
            "telegram:topic:-100:7 users=telegram:5",
            "telegram:topic:-100:7",
            "telegram:group:-100:5 name=ops",
            "telegram:group:-100:5",
            "telegram:topic:-100:* name=ops",
            "telegram:group:-100 name=ops users=telegram:5,telegram:6",
            "telegram:group:-100 name=ops",
            "telegram:topic:-100:* users=telegram:5,telegram:6",
            "telegram:topic:-100:*",
            "telegram:group:-100 users=telegram:5,telegram:6",
            "telegram:group:-100",
            "telegram:user:5",
            "telegram users=telegram:5,telegram:6",
            "telegram",
        ],
    );
}

/// S1.27
#[test]
fn each_rank_beats_the_next_in_a_discord_thread() {
    check_order(
        "discord:thread:20:21 name=ops tags=bug category=30 server=40 roles=90",
        &[
            "discord:thread:20:21 roles=90",
            "discord:thread:20:21",
            "discord:channel:20:5",
            "discord:channel:20 tag=bug name=ops",
            "discord:channel:20 tag=bug",
            "discord:category:30 name=ops",
            "discord:guild:40 name=ops",
            "discord:channel:20 roles=90",
            "discord:channel:20",
            "discord:category:30 users=discord:5",
            "discord:category:30",
            "discord:guild:40 roles=90 users=discord:5",
            "discord:guild:40 roles=90",
            "discord:guild:40 users=discord:5",
            "discord:guild:40",
            "discord:user:5 roles=90",
            "discord:user:5",
            "discord",
        ],
    );
}

/// S1.27, S4.22
#[test]
fn each_rank_beats_the_next_in_private_chats() {
    check_order(
        "telegram:dm:5",
        &[
            "telegram:dm:5",
            "telegram:user:5",
            "telegram:dm",
            "telegram",
        ],
    );
    check_order(
        "telegram:dm:5:3 name=work",
        &[
            "telegram:dm:5:3",
            "telegram:dm:5 name=work",
            "telegram:dm:5",
        ],
    );
    check_order(
        "discord:dm:5",
        &["discord:dm:5", "discord:user:5", "discord:dm", "discord"],
    );
    check_order(
        "local:home:work by=local:you",
        &[
            "local:home:work",
            "local:home name=work",
            "local:home",
            "local",
        ],
    );
}

/// S1.27, S1.21
#[test]
fn a_pin_beats_every_binding_and_keeps_what_the_binding_says_about_the_place() {
    let table = table("telegram:topic:-100:7 locked require_mention=false -> ops");
    let pinned = route(
        &table,
        Some(&pin("rose")),
        &message("telegram:topic:-100:7"),
    );
    assert_eq!(
        (pinned.agent.as_str(), pinned.rule.to_string().as_str()),
        ("rose", "pin set by telegram:9")
    );
    assert_eq!(
        (pinned.locked, pinned.require_mention, pinned.opens_place),
        (true, Some(false), true)
    );

    let elsewhere = route(
        &table,
        Some(&Pin {
            once: true,
            ..pin("rose")
        }),
        &message("telegram:topic:-100:8"),
    );
    assert_eq!(
        elsewhere.rule.to_string(),
        "pin for one turn, set by telegram:9"
    );
    assert_eq!(
        (
            elsewhere.locked,
            elsewhere.require_mention,
            elsewhere.opens_place
        ),
        (false, None, false),
        "a pin names an agent and opens nothing"
    );
}

/// S0.58, S1.19
#[test]
fn without_bindings_the_default_agent_answers_and_no_place_is_opened() {
    let route = routed("", "telegram:topic:-100:7");
    assert_eq!(
        (route.agent.as_str(), route.rule.to_string().as_str()),
        ("main", "default_agent")
    );
    assert_eq!(
        (route.locked, route.require_mention, route.opens_place),
        (false, None, false)
    );
}

#[test]
fn only_rules_about_a_place_open_it() {
    let opens = |rule: &str, place: &str| routed(&format!("{rule} -> ops"), place).opens_place;
    let thread = "discord:thread:20:21 name=ops category=30 server=40 roles=90";
    for rule in [
        "discord:thread:20:21",
        "discord:channel:20:5",
        "discord:channel:20 name=ops",
        "discord:channel:20",
    ] {
        assert!(opens(rule, thread), "{rule}");
    }
    for rule in [
        "discord:category:30",
        "discord:guild:40 roles=90",
        "discord:guild:40",
    ] {
        assert!(opens(rule, thread), "{rule}");
    }
    assert!(opens("telegram:topic:-100:*", "telegram:topic:-100:7"));
    for rule in ["discord:user:5", "discord"] {
        assert!(!opens(rule, thread), "{rule}");
    }
    assert!(!opens("discord:dm", "discord:dm:5"));
}

#[test]
fn of_two_roles_or_tags_the_earlier_rule_wins() {
    let roles = "discord:guild:40 roles=91 -> first\ndiscord:guild:40 roles=90 -> second";
    assert_eq!(
        routed(roles, "discord:channel:20 server=40 roles=90,91")
            .agent
            .as_str(),
        "first"
    );
    let tags = "discord:channel:20 tag=bug -> first\ndiscord:channel:20 tag=later -> second";
    assert_eq!(
        routed(tags, "discord:thread:20:21 tags=later,bug")
            .agent
            .as_str(),
        "first"
    );
}

#[test]
fn the_reason_names_the_binding_its_place_and_its_filters() {
    let reason = |place: &str| routed(HOUSE, place).rule.to_string();
    assert_eq!(
        reason("telegram:topic:-100:8"),
        "config.toml line 2: exact topic telegram:topic:-100:8"
    );
    assert_eq!(
        reason("telegram:topic:-100:10 name=ops by=telegram:7"),
        "config.toml line 7: name or tag telegram:group:-100 with users telegram:7 and name \"ops*\""
    );
    assert_eq!(
        reason("discord:thread:20:22 roles=90"),
        "config.toml line 23: parent channel discord:channel:20 with roles 90"
    );
}

#[test]
fn the_table_knows_its_agents() {
    let table = table("telegram -> ops");
    assert!(table.knows(&AgentId::parse("ops").unwrap()));
    assert!(!table.knows(&AgentId::parse("gone").unwrap()));
}
