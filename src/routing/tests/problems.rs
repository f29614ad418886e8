//! Refused bindings, and the texts of their problems.

use super::*;

/// Prints each problem with its spot in the file.
fn problems_of(text: &str) -> String {
    let (_, problems) = build(&rules(text));
    let shown = problems.iter().map(|problem| {
        let spot = &text[problem.span.clone()];
        let help = problem.help.as_deref().unwrap_or("none");
        format!(
            "{}\n  at {spot:?}: {}\n  help: {help}\n",
            problem.message, problem.label
        )
    });
    shown.collect()
}

#[track_caller]
fn check_fine(rules: &str) {
    assert_eq!(problems_of(rules), "", "{rules}");
}

#[test]
fn a_malformed_pattern_is_pointed_at() {
    insta::assert_snapshot!(problems_of("telegram:topic:100:7 -> ops"), @r#"
    `telegram:topic:100:7` is not a place that a binding can match
      at "telegram:topic:100:7": `100` is not the id of a group
      help: group ids are negative; /whoami prints the key to paste
    "#);
}

/// Links and other notations are read, so that the whole key can be pasted.
#[test]
fn links_and_other_notations_become_keys() {
    let patterns = [
        "telegram/topic/-1001234567890/101",
        "t.me/c/1234567890/101",
        "https://t.me/c/1234567890/101/55",
        "https://web.telegram.org/a/#-1001234567890_101",
        "https://discord.com/channels/812345678901234567/912345678901234567",
        "slack:C024BE91L",
        "telegram:topic:-1234567890:101",
        "telegram:topic:-1234567890:*",
        "telegram:topic:1234567890:101",
        "telegram:-1234567890:101",
    ];
    let told: String = patterns
        .iter()
        .map(|pattern| problems_of(&format!("{pattern} -> ops")))
        .collect();
    insta::assert_snapshot!(told, @r#"
    `telegram/topic/-1001234567890/101` is not a place that a binding can match
      at "telegram/topic/-1001234567890/101": the parts are joined by colons
      help: write `telegram:topic:-1001234567890:101`
    `t.me/c/1234567890/101` is not a place that a binding can match
      at "t.me/c/1234567890/101": a link, and not a key
      help: write `telegram:topic:-1001234567890:101`, if the link leads there; /whoami prints the key to paste
    `https://t.me/c/1234567890/101/55` is not a place that a binding can match
      at "https://t.me/c/1234567890/101/55": a link, and not a key
      help: write `telegram:topic:-1001234567890:101`, if the link leads there; /whoami prints the key to paste
    `https://web.telegram.org/a/#-1001234567890_101` is not a place that a binding can match
      at "https://web.telegram.org/a/#-1001234567890_101": a link, and not a key
      help: write `telegram:topic:-1001234567890:101`, if the link leads there; /whoami prints the key to paste
    `https://discord.com/channels/812345678901234567/912345678901234567` is not a place that a binding can match
      at "https://discord.com/channels/812345678901234567/912345678901234567": a link, and not a key
      help: write `discord:channel:912345678901234567`, if the link leads there; /whoami prints the key to paste
    `slack:C024BE91L` is not a place that a binding can match
      at "slack:C024BE91L": Parlor has no Slack
      help: delete this binding, or begin with telegram, discord, web or local
    `telegram:topic:-1234567890:101` is not a place that a binding can match
      at "telegram:topic:-1234567890:101": ids of groups with topics begin with -100
      help: write `telegram:topic:-1001234567890:101`
    `telegram:topic:-1234567890:*` is not a place that a binding can match
      at "telegram:topic:-1234567890:*": ids of groups with topics begin with -100
      help: write `telegram:topic:-1001234567890:*`
    `telegram:topic:1234567890:101` is not a place that a binding can match
      at "telegram:topic:1234567890:101": `1234567890` is not the id of a group
      help: group ids are negative: write `-1001234567890`, if it is from a link; /whoami prints the key to paste
    `telegram:-1234567890:101` is not a place that a binding can match
      at "telegram:-1234567890:101": ids of groups with topics begin with -100
      help: write `telegram:topic:-1001234567890:101`
    "#);
    check_fine("telegram:group:-1234567890 -> ops");
}

#[test]
fn a_malformed_pattern_says_what_to_write_instead() {
    let patterns = [
        "telegram:100:7",
        "telegram:topic:-100:0",
        "telegram:dm:-100",
        "telegram:topic:-100",
        "telegram:-100",
        "telegram:100",
        "telegram:topic:-100:seven",
        "telegram:topic:-100:99999999999",
        "telegram:topics:-100:7",
        "telegram:forum:-100",
        "telegram:",
        "Telegram:Group:-100 ",
        "telegam:group:-100",
        "matrix:room",
        "",
        "discord:server:8",
        "discord:guild:-8",
        "discord:thread:20:*",
        "discord:thread:20",
        "discord:zzz:1",
        "local:Home",
        "local:a b",
        "cron:main:nightly",
        "child:7",
    ];
    let shown = patterns.map(|pattern| {
        let malformed = crate::routing::pattern::parse(pattern).expect_err(pattern);
        format!("{pattern:?}: {}\n    {}\n", malformed.label, malformed.help)
    });
    insta::assert_snapshot!(shown.concat(), @r#"
    "telegram:100:7": `100` is not the id of a group
        group ids are negative; /whoami prints the key to paste
    "telegram:topic:-100:0": `0` is not the id of a topic
        topic ids begin at 1, which is General; /whoami prints the key to paste
    "telegram:dm:-100": `-100` is not the id of a person
        ids of people are positive, those of groups negative; /whoami prints the key to paste
    "telegram:topic:-100": not the right number of ids
        write `telegram:topic:<chat>:<topic>` or `telegram:topic:<chat>:*`; /whoami prints the key to paste
    "telegram:-100": an id alone does not say what it is
        write `telegram:group:-100` for the group with its topics
    "telegram:100": an id alone does not say what it is
        write `telegram:dm:100` for the private chat, `telegram:user:100` for the person anywhere
    "telegram:topic:-100:seven": `seven` is not an id
        an id is a number, written without spaces, plus sign or zeros in front; /whoami prints the key to paste
    "telegram:topic:-100:99999999999": `99999999999` is not the id of a topic
        it has too many digits; /whoami prints the key to paste
    "telegram:topics:-100:7": telegram has no kind of place called `topics`
        write `telegram:topic:<chat>:<topic>` or `telegram:topic:<chat>:*`; /whoami prints the key to paste
    "telegram:forum:-100": telegram has no kind of place called `forum`
        write `telegram:group:<chat>` or `telegram:group:<chat>:<user>`; /whoami prints the key to paste
    "telegram:": telegram has no kind of place called ``
        write `telegram:topic:<chat>:<topic>`, `telegram:topic:<chat>:*`, `telegram:group:<chat>`, `telegram:group:<chat>:<user>`, `telegram:dm:<user>`, `telegram:dm:<user>:<topic>` or `telegram:user:<user>`; /whoami prints the key to paste
    "Telegram:Group:-100 ": written with spaces or capitals
        write `telegram:group:-100`
    "telegam:group:-100": begins with no platform
        did you mean `telegram`?
    "matrix:room": Parlor has no Matrix
        delete this binding, or begin with telegram, discord, web or local
    "": begins with no platform
        begin with telegram, discord, web or local; /whoami prints the key to paste
    "discord:server:8": discord has no kind of place called `server`
        write `discord:guild:<server>`; /whoami prints the key to paste
    "discord:guild:-8": `-8` is not an id on Discord
        ids are positive there; /whoami prints the key to paste
    "discord:thread:20:*": `*` is not the id of a thread
        `discord:channel:<channel>` has all its threads; /whoami prints the key to paste
    "discord:thread:20": not the right number of ids
        write `discord:thread:<channel>:<thread>`; /whoami prints the key to paste
    "discord:zzz:1": discord has no kind of place called `zzz`
        write `discord:thread:<channel>:<thread>`, `discord:channel:<channel>`, `discord:channel:<channel>:<user>`, `discord:category:<category>`, `discord:guild:<server>`, `discord:dm:<user>` or `discord:user:<user>`; /whoami prints the key to paste
    "local:Home": written with spaces or capitals
        write `local:home`
    "local:a b": no name of a room
        write `local`, `local:<room>` or `local:<room>:<topic>`; a name has 1 to 64 of a-z, 0-9, - and _
    "cron:main:nightly": a session inside the gateway, where nobody writes
        bind the place where people write; a job names its own agent
    "child:7": a session inside the gateway, where nobody writes
        bind the place where people write; a job names its own agent
    "#);
}

#[test]
fn every_form_is_understood_and_printed_the_same() {
    for form in [
        "telegram",
        "discord",
        "local",
        "telegram:dm",
        "discord:dm",
        "telegram:user:5",
        "discord:user:5",
        "telegram:dm:5",
        "telegram:dm:5:3",
        "telegram:group:-100",
        "telegram:group:-100:5",
        "telegram:topic:-100:7",
        "telegram:topic:-100:*",
        "discord:channel:20",
        "discord:channel:20:5",
        "discord:thread:20:21",
        "discord:category:30",
        "discord:guild:40",
        "discord:dm:5",
        "local:home",
        "local:home:work",
    ] {
        assert_eq!(
            crate::routing::pattern::parse(form).unwrap().to_string(),
            form
        );
    }
}

#[test]
fn users_who_cannot_write_there() {
    insta::assert_snapshot!(problems_of("
        telegram:group:-5 users= -> ops
        telegram:group:-5:7 users=telegram:8 -> ops
        telegram:user:7 users=telegram:8,telegram:9 -> ops
        telegram:group:-6 users=discord:8 -> ops
        local users=discord:8 -> ops
    "), @r#"
    this binding can never match
      at "": an empty list lets nobody through
      help: name somebody, or delete `users`
    this binding can never match
      at "telegram:8": `telegram:group:-5:7` has messages of telegram:7 only
      help: delete `users`, or match a place where this person can write
    this binding can never match
      at "telegram:8,telegram:9": `telegram:user:7` has messages of telegram:7 only
      help: delete `users`, or match a place where these people can write
    this binding can never match
      at "discord:8": none of them writes on telegram
      help: name people as `telegram:<user>`
    this binding can never match
      at "discord:8": none of them writes on local
      help: name people as `local:<name>`
    "#);
    check_fine("telegram:group:-5 users=telegram:8,discord:9 -> ops");
}

#[test]
fn roles_where_there_are_none() {
    insta::assert_snapshot!(problems_of("
        telegram:group:-5 roles=9 -> ops
        discord:dm roles=9 -> ops
        discord:dm:7 roles=9 -> ops
        discord:guild:8 roles= -> ops
    "), @r#"
    this binding can never match
      at "9": nobody has a role in `telegram:group:-5`
      help: delete `roles`, or match a Discord server, category, channel or thread
    this binding can never match
      at "9": nobody has a role in `discord:dm`
      help: delete `roles`, or match a Discord server, category, channel or thread
    this binding can never match
      at "9": nobody has a role in `discord:dm:7`
      help: delete `roles`, or match a Discord server, category, channel or thread
    this binding can never match
      at "": an empty list lets nobody through
      help: name a role by its id, or delete `roles`
    "#);
    check_fine("discord roles=9 -> ops\ndiscord:user:5 roles=9 -> ops");
}

#[test]
fn names_and_tags_where_there_are_no_topics() {
    insta::assert_snapshot!(problems_of("
        telegram:dm name=ops -> ops
        telegram:user:5 name=ops -> ops
        local name=ops -> ops
        discord:dm:5 name=ops -> ops
        telegram:group:-5 name= -> ops
        telegram:group:-5 tag=bug -> ops
        discord:user:5 tag=bug -> ops
        discord:channel:20 tag= -> ops
    "), @r#"
    this binding can never match
      at "ops": `telegram:dm` has no topics
      help: delete `name`, or match the group, channel, category or server that has the topics
    this binding can never match
      at "ops": `telegram:user:5` has no topics
      help: delete `name`, or match the group, channel, category or server that has the topics
    this binding can never match
      at "ops": `local` has no topics
      help: delete `name`, or match the group, channel, category or server that has the topics
    this binding can never match
      at "ops": `discord:dm:5` has no topics
      help: delete `name`, or match the group, channel, category or server that has the topics
    this binding can never match
      at "": no topic has an empty name
      help: write a name, with `*` for any text, or delete `name`
    this binding can never match
      at "bug": telegram has no forum tags
      help: delete `tag`; only posts in a Discord forum have tags
    this binding can never match
      at "bug": `discord:user:5` has no topics
      help: delete `tag`, or match the forum channel, category or server that has the posts
    this binding can never match
      at "": no tag has an empty name
      help: write the tag's name, or delete `tag`
    "#);
    check_fine(
        "telegram:topic:-5:7 name=ops -> ops\ntelegram:dm:5 name=ops -> ops\nlocal:home name=ops -> ops",
    );
}

#[test]
fn rules_of_equal_strength() {
    insta::assert_snapshot!(problems_of("
        telegram:topic:-5:7 -> ops
        telegram:-5:7 -> rose
        telegram:group:-5 name=ops* -> ops
        telegram:group:-5 name=*NIGHT -> rose
        telegram:group:-6 users=telegram:1,telegram:2 -> ops
        telegram:group:-6 users=telegram:2,telegram:3 -> rose
        discord:guild:8 roles=1,2 -> ops
        discord:guild:8 roles=2 -> rose
        discord:channel:20 tag=bug -> ops
        discord:channel:20 tag=Bug -> rose
        discord:channel:20 -> ops
        discord:channel:20 -> ops
        discord:channel:20 -> ops
    "), @r#"
    two bindings for the same place: ops (line 1) and rose (here)
      at "telegram:-5:7": line 1 has `telegram:topic:-5:7` already
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    two bindings that fit the same message: ops (line 3) and rose (here)
      at "telegram:group:-5": line 3 is telegram:group:-5 with name "ops*"
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    two bindings that fit the same message: ops (line 5) and rose (here)
      at "telegram:group:-6": line 5 is telegram:group:-6 with users telegram:1, telegram:2
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    two bindings that fit the same message: ops (line 7) and rose (here)
      at "discord:guild:8": line 7 is discord:guild:8 with roles 1, 2
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    two bindings that fit the same message: ops (line 9) and rose (here)
      at "discord:channel:20": line 9 is discord:channel:20 with tag "bug"
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    two bindings for the same place, both to ops: in line 11 and here
      at "discord:channel:20": line 11 has `discord:channel:20` already
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    two bindings for the same place, both to ops: in line 11 and here
      at "discord:channel:20": line 11 has `discord:channel:20` already
      help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`
    "#);
}

#[test]
fn rules_that_only_look_equal() {
    check_fine("telegram:group:-5 name=ops* -> ops\ntelegram:group:-5 name=dev* -> rose");
    check_fine(
        "telegram:group:-5 users=telegram:1 -> ops\ntelegram:group:-5 users=telegram:2 -> rose",
    );
    check_fine(
        "telegram:group:-5 name=ops users=telegram:1 -> ops\ntelegram:group:-5 name=ops users=telegram:2 -> rose",
    );
    check_fine("discord:channel:20 tag=bug -> ops\ndiscord:channel:20 tag=later -> rose");
    check_fine("discord:guild:8 roles=1 -> ops\ndiscord:guild:8 roles=2 -> rose");
    check_fine("discord:channel:20 users=discord:5 -> ops\ndiscord:channel:20 roles=2 -> rose");
    check_fine("telegram:group:-5 name=ops -> ops\ntelegram:topic:-5:* name=ops -> rose");
}

#[test]
fn rules_that_are_never_reached() {
    insta::assert_snapshot!(problems_of("
        telegram:group:-5:1 -> ops
        telegram:group:-5:2 -> ops
        telegram:group:-5 users=telegram:1,telegram:2 -> rose
        telegram:user:3 -> ops
        telegram:dm users=telegram:3 -> rose
        discord:dm:4 -> ops
        discord:dm users=discord:4 -> rose
    "), @r#"
    this binding never decides
      at "telegram:group:-5": telegram:1, telegram:2 have bindings of their own
      help: delete this binding, or those in lines 1, 2
    this binding never decides
      at "telegram:dm": telegram:3 has a binding of their own
      help: delete this binding, or the one in line 4
    this binding never decides
      at "discord:dm": discord:4 has a binding of their own
      help: delete this binding, or the one in line 6
    "#);
    check_fine("telegram:group:-5:1 -> ops\ntelegram:group:-5 users=telegram:1,telegram:2 -> rose");
    check_fine("telegram:group:-5:1 name=ops -> ops\ntelegram:group:-5 users=telegram:1 -> rose");
}

#[test]
fn a_refused_rule_is_not_in_the_table() {
    let (table, problems) = build(&rules("telegram:topic:5:7 -> ops\ntelegram -> rose"));
    assert_eq!(problems.len(), 1);
    assert_eq!(
        route(&table, None, &message("telegram:topic:-5:7"))
            .rule
            .to_string(),
        "config.toml line 2: platform telegram"
    );
}
