//! The output of `parlor route explain`.

use super::*;
use crate::routing::explain;

const RULES: &str = "
    telegram:topic:-100:7 -> ops
    telegram:group:-100 locked -> rose
    telegram:group:-100 name=ops* -> ops
    telegram:group:-200:5 -> ops
    telegram:dm:5 -> rose
    discord:channel:20 roles=90,91 -> ops
    discord:channel:20 -> rose
    discord:guild:40 roles=91 -> main
    discord:guild:40 roles=90 -> ops
";

fn listing(place: &str) -> String {
    explain(&table(RULES), None, &message(place)).to_string()
}

/// S4.12
#[test]
fn a_topic_bound_exactly() {
    insta::assert_snapshot!(listing("telegram:topic:-100:7"), @r#"
    telegram:topic:-100:7 belongs to ops
    because of config.toml line 1: exact topic telegram:topic:-100:7

    pin          telegram:topic:-100:7  no pin
    exact topic  telegram:topic:-100:7  config.toml line 1, ops: decides
    member       telegram:group:-100:5  no binding
    name or tag  telegram:topic:-100:*  no binding
    name or tag  telegram:group:-100    config.toml line 3, ops: does not match
                                          name "ops*": no, the name is not known
    every topic  telegram:topic:-100:*  no binding
    group        telegram:group:-100    config.toml line 2, rose: matches, but is weaker
    person       telegram:user:5        no binding
    platform     telegram               no binding
    default      default_agent          main: not needed
    "#);
}

#[test]
fn an_unbound_topic_follows_its_group() {
    insta::assert_snapshot!(listing("telegram:topic:-100:8"), @r#"
    telegram:topic:-100:8 belongs to rose
    because of config.toml line 2: group telegram:group:-100

    locked: only owners and admins may use /agent here

    pin          telegram:topic:-100:8  no pin
    exact topic  telegram:topic:-100:8  no binding
    member       telegram:group:-100:5  no binding
    name or tag  telegram:topic:-100:*  no binding
    name or tag  telegram:group:-100    config.toml line 3, ops: does not match
                                          name "ops*": no, the name is not known
    every topic  telegram:topic:-100:*  no binding
    group        telegram:group:-100    config.toml line 2, rose: decides
    person       telegram:user:5        no binding
    platform     telegram               no binding
    default      default_agent          main: not needed
    "#);
}

#[test]
fn a_member_of_a_group() {
    insta::assert_snapshot!(listing("telegram:group:-200:5"), @"
    telegram:group:-200:5 belongs to ops
    because of config.toml line 4: member telegram:group:-200:5

    pin       telegram:group:-200:5  no pin
    member    telegram:group:-200:5  config.toml line 4, ops: decides
    group     telegram:group:-200    no binding
    person    telegram:user:5        no binding
    platform  telegram               no binding
    default   default_agent          main: not needed
    ");
}

#[test]
fn a_private_chat() {
    insta::assert_snapshot!(listing("telegram:dm:5"), @"
    telegram:dm:5 belongs to rose
    because of config.toml line 5: private chat telegram:dm:5

    pin            telegram:dm:5    no pin
    private chat   telegram:dm:5    config.toml line 5, rose: decides
    person         telegram:user:5  no binding
    private chats  telegram:dm      no binding
    platform       telegram         no binding
    default        default_agent    main: not needed
    ");
}

#[test]
fn a_name_pattern_that_fails() {
    insta::assert_snapshot!(listing("telegram:topic:-100:8 name=General"), @r#"
    telegram:topic:-100:8 belongs to rose
    because of config.toml line 2: group telegram:group:-100

    locked: only owners and admins may use /agent here

    name: General

    pin          telegram:topic:-100:8  no pin
    exact topic  telegram:topic:-100:8  no binding
    member       telegram:group:-100:5  no binding
    name or tag  telegram:topic:-100:*  no binding
    name or tag  telegram:group:-100    config.toml line 3, ops: does not match
                                          name "ops*": no, the name is "General"
    every topic  telegram:topic:-100:*  no binding
    group        telegram:group:-100    config.toml line 2, rose: decides
    person       telegram:user:5        no binding
    platform     telegram               no binding
    default      default_agent          main: not needed
    "#);
}

#[test]
fn a_discord_thread_by_its_parent_and_a_role() {
    insta::assert_snapshot!(listing("discord:thread:20:21 server=40 category=30 roles=90 tags=bug"), @"
    discord:thread:20:21 belongs to ops
    because of config.toml line 6: parent channel discord:channel:20 with roles 90, 91

    tags: bug
    category: 30
    server: 40
    roles: 90

    pin              discord:thread:20:21  no pin
    exact thread     discord:thread:20:21  no binding
    member           discord:channel:20:5  no binding
    name or tag      discord:channel:20    no binding
    name or tag      discord:category:30   no binding
    name or tag      discord:guild:40      no binding
    parent channel   discord:channel:20    config.toml line 6, ops: decides
                                             roles 90, 91: yes, the person has 90
                                           config.toml line 7, rose: matches, but is weaker
    category         discord:category:30   no binding
    server and role  discord:guild:40      config.toml line 8, main: does not match
                                             roles 91: no, the person has 90
                                           config.toml line 9, ops: matches, but is weaker
                                             roles 90: yes, the person has 90
    server           discord:guild:40      no binding
    person           discord:user:5        no binding
    platform         discord               no binding
    default          default_agent         main: not needed
    ");
}

#[test]
fn equal_roles_by_the_order_of_the_file() {
    insta::assert_snapshot!(listing("discord:channel:29:5 server=40 roles=90,91"), @"
    discord:channel:29:5 belongs to main
    because of config.toml line 8: server and role discord:guild:40 with roles 91

    server: 40
    roles: 90, 91

    pin              discord:channel:29:5  no pin
    member           discord:channel:29:5  no binding
    channel          discord:channel:29    no binding
    server and role  discord:guild:40      config.toml line 8, main: decides
                                             roles 91: yes, the person has 90, 91
                                           config.toml line 9, ops: matches and is as strong, but stands later in the file
                                             roles 90: yes, the person has 90, 91
    server           discord:guild:40      no binding
    person           discord:user:5        no binding
    platform         discord               no binding
    default          default_agent         main: not needed
    ");
}

#[test]
fn a_pin_over_a_binding() {
    let explanation = explain(
        &table(RULES),
        Some(&pin("main")),
        &message("telegram:topic:-100:7"),
    );
    insta::assert_snapshot!(explanation, @r#"
    telegram:topic:-100:7 belongs to main
    because telegram:9 chose it

    pin          telegram:topic:-100:7  main, set by telegram:9: decides
    exact topic  telegram:topic:-100:7  config.toml line 1, ops: would decide without the pin
    member       telegram:group:-100:5  no binding
    name or tag  telegram:topic:-100:*  no binding
    name or tag  telegram:group:-100    config.toml line 3, ops: does not match
                                          name "ops*": no, the name is not known
    every topic  telegram:topic:-100:*  no binding
    group        telegram:group:-100    config.toml line 2, rose: matches, but is weaker
    person       telegram:user:5        no binding
    platform     telegram               no binding
    default      default_agent          main: not needed
    "#);
}

#[test]
fn nothing_but_the_default() {
    insta::assert_snapshot!(listing("local:home:work by=local:you"), @"
    local:home:work belongs to main
    because it is the default agent

    name: work

    pin          local:home:work  no pin
    exact topic  local:home:work  no binding
    name or tag  local:home       no binding
    room         local:home       no binding
    platform     local            no binding
    default      default_agent    main: decides
    ");
}

/// Rules without a binding are told together, so that the answer stays on the screen.
#[test]
fn in_short_the_kinds_without_a_binding_are_one_line() {
    let explanation = explain(&table(RULES), None, &message("telegram:topic:-100:8"));
    let mut closed = explain(&table(""), None, &message("telegram:topic:-100:8"));
    closed.is_silent = true;
    insta::assert_snapshot!(format!("{}\n{}", explanation.in_short(), closed.in_short()), @r#"
    telegram:topic:-100:8 belongs to rose
    because of config.toml line 2: group telegram:group:-100

    locked: only owners and admins may use /agent here

    pin          telegram:topic:-100:8  no pin
    name or tag  telegram:group:-100    config.toml line 3, ops: does not match
                                          name "ops*": no, the name is not known
    group        telegram:group:-100    config.toml line 2, rose: decides
    default      default_agent          main: not needed
    no binding for: exact topic, member, name or tag, every topic, person, platform

    Otherwise main would answer in telegram:topic:-100:8
    because it is the default agent

    pin      telegram:topic:-100:8  no pin
    default  default_agent          main: decides
    no binding for: exact topic, member, name or tag, every topic, group, person, platform
    "#);
}

#[test]
fn the_same_for_programs() {
    let explanation = explain(
        &table("telegram:group:-100 name=ops* -> ops"),
        None,
        &message("telegram:topic:-100:8 name=ops"),
    );
    let named = explanation
        .steps
        .iter()
        .find(|step| !step.bindings.is_empty());
    insta::assert_json_snapshot!((&explanation.route, &explanation.reason, named), @r#"
    [
      {
        "agent": "ops",
        "rule": {
          "by": "binding",
          "index": 0,
          "line": 1,
          "rank": "name_or_tag",
          "kind": "name or tag",
          "matches": "telegram:group:-100 with name \"ops*\""
        },
        "locked": false,
        "require_mention": null,
        "opens_place": true
      },
      "config.toml line 1: name or tag telegram:group:-100 with name \"ops*\"",
      {
        "rank": "name_or_tag",
        "kind": "name or tag",
        "looked_for": "telegram:group:-100",
        "bindings": [
          {
            "index": 0,
            "line": 1,
            "agent": "ops",
            "outcome": "decides",
            "filters": [
              {
                "filter": "name \"ops*\"",
                "holds": true,
                "finding": "the name is \"ops\""
              }
            ]
          }
        ],
        "result": "decides"
      }
    ]
    "#);
}

/// What each rank says, in the words of What if.
#[test]
fn every_rank_says_why() {
    let ranks = |place: &str| {
        let explanation = explain(&table(RULES), None, &message(place));
        let ranks = explanation.by_rank().into_iter();
        let lines = ranks.map(|rank| format!("{}: {:?}, {}", rank.title, rank.says, rank.why));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(ranks("telegram:topic:-100:7 name=Garden"), @r#"
    Pin, set with /agent: NoRule, no pin
    Exact topic or thread: Decides, line 1: telegram:topic:-100:7
    Member in a group: NoRule, no binding for telegram:group:-100:5
    Name of the topic, or tag: Misses, line 3: name "ops*", but the name is "Garden"
    Every topic of the group: NoRule, no binding for telegram:topic:-100:*
    Group, channel, chat or room: Matches, line 2 matches, but a stronger rule decides
    Channel of the thread: NotHere, not a thread
    Category: NotHere, only on Discord
    Server and role: NotHere, only on Discord
    Server: NotHere, only on Discord
    Person anywhere: NoRule, no binding for telegram:user:5
    Private chats: NotHere, not a private chat
    Platform: NoRule, no binding for telegram
    default_agent: NoRule, main: not needed
    "#);
    insta::assert_snapshot!(ranks("discord:thread:20:21"), @"
    Pin, set with /agent: NoRule, no pin
    Exact topic or thread: NoRule, no binding for discord:thread:20:21
    Member in a group: NoRule, no binding for discord:channel:20:5
    Name of the topic, or tag: NoRule, no binding for discord:channel:20
    Every topic of the group: NotHere, not a topic of a Telegram group
    Group, channel, chat or room: NotHere, a thread: its channel has the rank below
    Channel of the thread: Decides, line 7: discord:channel:20
    Category: NotHere, the category is not known
    Server and role: NotHere, the server is not known
    Server: NotHere, the server is not known
    Person anywhere: NoRule, no binding for discord:user:5
    Private chats: NotHere, not a private chat
    Platform: NoRule, no binding for discord
    default_agent: NoRule, main: not needed
    ");
}
