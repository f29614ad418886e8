use std::path::Path;

use super::*;
use crate::config::{Secrets, Source, draft};
use crate::domain::SessionKey;
use crate::routing::Pin;

fn check(text: &str, facts: &Facts) -> String {
    let source = Source {
        path: "config.toml".into(),
        text: text.to_owned(),
    };
    let draft = draft(source, Path::new("home"), Secrets::WherePresent);
    let (table, problems) = Table::build(&draft.config);
    assert!(problems.is_empty(), "{problems:?}");
    let config = draft.finish().unwrap_or_else(|report| panic!("{report}"));
    let lines = exposures(&config, &table, facts);
    let lines = lines.iter().map(|found| {
        format!(
            "{:?} {}: {} → {}",
            found.level, found.check, found.finding, found.fix
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn main_has(memories: u32) -> Facts {
    let belongings = Belongings {
        memories,
        has_memory_file: true,
        has_files: false,
    };
    Facts {
        belongings: [(AgentId::main(), belongings)].into(),
        ..Facts::default()
    }
}

#[test]
fn a_fresh_house_has_nothing_to_say() {
    assert_eq!(check("", &Facts::default()), "");
    assert_eq!(check("[agents.rose]\n", &main_has(3)), "");
}

#[test]
fn an_open_place_of_an_agent_with_private_things_is_told() {
    let bound = "[access]\nowners = [\"telegram:1\"]\n[agents.main]\nafter_untrusted = \"refuse\"\n[agents.main.limits]\ntokens_per_day = 1000\n[[bindings]]\nmatch = \"telegram:topic:-1001:7\"\nagent = \"main\"\n";
    insta::assert_snapshot!(check(bound, &main_has(3)), @r#"Warning open-agent: Guests can talk to `main` (the binding of telegram:topic:-1001:7), and `main` has 3 private memories, MEMORY.md. → Give guests an agent without private things, or close this one: `who = "member"` under [agents.main] and no binding of open places."#);
    let for_one = bound.replace(
        "agent = \"main\"\n",
        "agent = \"main\"\nusers = [\"telegram:1\"]\n",
    );
    assert!(!check(&for_one, &main_has(3)).contains("open-agent"));
    // Another agent's things are reached by way of an agent that is open.
    let by_way = format!(
        "{}[agents.rose]\nafter_untrusted = \"refuse\"\naccess = {{ read = [\"main\"] }}\nlimits = {{ tokens_per_day = 5 }}\n",
        bound.replace("agent = \"main\"\n", "agent = \"rose\"\n")
    );
    insta::assert_snapshot!(check(&by_way, &main_has(3)), @"Warning open-by-way-of: Guests can talk to `rose` (the binding of telegram:topic:-1001:7), which reads the workspace or memories of `main`. → Take `main` out of `access` and `read_memory_from` under [agents.rose].");
}

#[test]
fn an_owners_switch_and_the_default_agent_are_doors_until_who_is_written() {
    let pin = Pin {
        agent: AgentId::main(),
        once: false,
        set_by: "telegram:1".parse().unwrap(),
        set_by_name: None,
        set_at: 0,
        until: None,
    };
    let topic: SessionKey = "telegram:topic:-1001:7".parse().unwrap();
    let pinned = Facts {
        set_in_chat: SetInChat {
            pins: vec![(topic.clone(), pin)],
            opened: Vec::new(),
        },
        ..main_has(1)
    };
    let text = "[access]\nowners = [\"telegram:1\"]\n";
    assert!(check(text, &pinned).contains("`main` (/agent in telegram:topic:-1001:7)"));
    let by_a_guest = text.replace("telegram:1", "telegram:2");
    assert!(!check(&by_a_guest, &pinned).contains("open-agent"));
    let written = format!("{text}[agents.main]\nwho = \"member\"\n");
    assert!(!check(&written, &pinned).contains("open-agent"));
    let unpinned = Facts {
        set_in_chat: SetInChat {
            pins: Vec::new(),
            opened: vec![topic],
        },
        ..main_has(1)
    };
    assert!(check(text, &unpinned).contains("it is the default_agent and has no `who`"));
    let open = format!("{text}dms = \"open\"\n");
    assert!(check(&open, &main_has(1)).contains("it is the default_agent and has no `who`"));
    let closed = format!("{open}[agents.main]\nwho = \"member\"\n");
    assert!(!check(&closed, &main_has(1)).contains("open-agent"));
}

#[test]
fn each_rule_that_opens_much_is_told_with_its_remedy() {
    let wide = r#"
[telegram]
token = { env = "T" }
mode = "webhook"
[telegram.webhook]
url = "https://bot.example.org/hook"
[access]
dms = "open"
groups = "open"
[access.tools]
guest = "change"
[access.limits.guest]
tokens_per_day = 0
[[bindings]]
match = "telegram:group:-1001"
agent = "main"
"#;
    let facts = Facts {
        readable_by_others: vec![("/srv/parlor".into(), 0o755)],
        ..Facts::default()
    };
    insta::assert_snapshot!(check(wide, &facts), @r#"
    Danger modes: Other users of this machine may read /srv/parlor (mode 755). → chmod go-rwx /srv/parlor
    Warning guest-tools: Guests may have agents use tools up to `change`. → Write `guest = "look"` under [access.tools].
    Warning guest-limits: Guests can write in open places, and a limit for guests is switched off. → Write `tokens_per_day` and `messages_per_minute` above 0 under [access.limits.guest].
    Warning groups-open: Anybody can add the bot to a group of their own and talk to it there (groups = "open"). → Write `groups = "bound"` under [access] and bind the places you want.
    Warning dms-open: Everybody can talk to the bot in private (dms = "open"). → Write `dms = "pairing"` under [access].
    Note agent-limits: Guests can talk to `main`, which has no daily limit. → Write `tokens_per_day` or `cost_per_day` under [agents.main.limits].
    Note after-untrusted: Guests can talk to `main`, and a turn of `main` that has read a guest's words may still use web_fetch, agent_send, message_send. → Write `after_untrusted = "ask"` or `"refuse"` under [agents.main].
    Note wide-binding: The binding in line 15 opens all of `telegram:group:-1001`, also topics, channels and threads that are made later. → Bind single topics or channels where that is too much.
    Note no-owner: Nobody is an owner on a platform, so nobody is told of problems there. → Write your id under [access] owners; /whoami shows it.
    "#);
}

/// A remark that holds for several agents is one remark.
#[test]
fn agents_with_the_same_remark_are_told_together() {
    let three = r#"
[agents.main]
[agents.rose]
[agents.ada]
[access]
owners = ["telegram:1"]
groups = "open"
[[bindings]]
match = "telegram:topic:-1001:1"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:2"
agent = "ada"
"#;
    let told = check(three, &Facts::default());
    let notes = told.lines().filter(|line| line.starts_with("Note"));
    insta::assert_snapshot!(notes.collect::<Vec<_>>().join("\n"), @r#"
    Note agent-limits: Guests can talk to `main`, `rose` and `ada`, which have no daily limit. → Write `tokens_per_day` or `cost_per_day` under [agents.main.limits], [agents.rose.limits] and [agents.ada.limits].
    Note after-untrusted: Guests can talk to `main`, `rose` and `ada`, and a turn of theirs that has read a guest's words may still use web_fetch, agent_send, message_send. → Write `after_untrusted = "ask"` or `"refuse"` under [agents.main], [agents.rose] and [agents.ada].
    "#);
}

#[test]
fn a_listener_for_other_machines_is_told() {
    let local = "[access]\nowners = [\"telegram:1\"]\n[admin]\n";
    assert!(!check(local, &Facts::default()).contains("listeners"));
    let public =
        format!("{local}listen = \"0.0.0.0:7717\"\npublic = true\ntoken = {{ env = \"T\" }}\n");
    let told = check(&public, &Facts::default());
    assert!(
        told.contains("Warning listeners: The listener of [admin] listens on 0.0.0.0:7717"),
        "{told}"
    );
}
