//! `parlor export openclaw` and `parlor agent agents-md`.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::cli::{fresh_home, run};
use crate::support::pty::Pty;
use crate::tenants::{config, fine};

const BINDINGS: &str = r#"
[[bindings]]
match = "telegram:topic:-1001:7"
agent = "rose"
[[bindings]]
match = "discord:guild:8001"
roles = ["77"]
agent = "ada"
[[bindings]]
match = "telegram:group:-1001"
agent = "main"
users = ["telegram:111"]
[[bindings]]
match = "telegram:dm:222"
agent = "ada"
"#;

const OLD: &str = r#"{
  // mine
  zebra: 1,
  agents: { defaults: { x: 1 }, entries: { rose: { workspace: "/kept", sandbox: { mode: "all" } }, other: { default: true } } },
  bindings: [ { agentId: "other", match: { channel: "telegram", peer: { kind: "direct", id: "222" } } } ],
  apple: [1, 2],
}"#;

/// S0.38, S0.67
#[tokio::test]
async fn agents_and_bindings_are_merged_and_twice_is_the_same() {
    let home = fresh_home().await;
    let home = home.path();
    fs::write(home.join("config.toml"), config(home) + BINDINGS).expect("writes");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("openclaw.json");
    fs::write(&file, OLD).expect("writes");
    let path = file.display().to_string();
    let first = run(home, &["export", "openclaw", &path, "--yes"]).await;
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_snapshot!((first.stdout + &first.stderr).replace(&path, "FILE"), @"
    FILE has 3 agents and 2 bindings of this house.
    not written: web:home:writing (there is no such rule there)
    not written: web:home:code (there is no such rule there)
    not written: local:home:writing (there is no such rule there)
    not written: local:home:code (there is no such rule there)
    not written: telegram:group:-1001 (rules there cannot be for some people or names)
    not written: telegram:dm:222 (a rule of the file is for the same places)
    The file as it was before is FILE.before-parlor, with its comments.
    ");
    let text = fs::read_to_string(&file).expect("reads");
    assert_snapshot!(text.replace(&home.display().to_string(), "HOME"), @r#"
    {
      "zebra": 1,
      "agents": {
        "defaults": {
          "x": 1
        },
        "entries": {
          "rose": {
            "workspace": "/kept",
            "sandbox": {
              "mode": "all"
            },
            "identity": {
              "name": "Rose",
              "emoji": "🌹"
            }
          },
          "other": {
            "default": true
          },
          "main": {
            "workspace": "HOME/agents/main",
            "identity": {
              "emoji": "☕"
            }
          },
          "ada": {
            "workspace": "HOME/agents/ada",
            "identity": {
              "name": "Ada",
              "emoji": "🛠️"
            }
          }
        }
      },
      "bindings": [
        {
          "agentId": "other",
          "match": {
            "channel": "telegram",
            "peer": {
              "kind": "direct",
              "id": "222"
            }
          }
        },
        {
          "agentId": "rose",
          "comment": "parlor",
          "match": {
            "channel": "telegram",
            "peer": {
              "kind": "group",
              "id": "-1001:topic:7"
            }
          }
        },
        {
          "agentId": "ada",
          "comment": "parlor",
          "match": {
            "channel": "discord",
            "guildId": "8001",
            "roles": [
              "77"
            ]
          }
        }
      ],
      "apple": [
        1,
        2
      ]
    }
    "#);
    assert_eq!(
        fs::read_to_string(elsewhere.path().join("openclaw.json.before-parlor")).expect("a copy"),
        OLD
    );
    let parsed: Value = serde_json::from_str(&text).expect("it is JSON now");
    assert_eq!(
        parsed["agents"]["entries"]
            .as_object()
            .expect("a map")
            .len(),
        4
    );
    let again = run(home, &["export", "openclaw", &path]).await;
    assert!(
        again.stdout.contains("has everything already"),
        "{}",
        again.stdout
    );
    assert_eq!(
        fs::read_to_string(&file).expect("reads"),
        text,
        "identical bytes"
    );
}

/// S0.39, S0.38: the older form of a list, and bindings that were taken out again.
#[tokio::test]
async fn no_bindings_key_without_bindings() {
    let home = fresh_home().await;
    let home = home.path();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("new/openclaw.json");
    let path = file.display().to_string();
    let plain = config(home)
        .split("[[bindings]]")
        .next()
        .expect("a head")
        .to_owned();
    fs::write(home.join("config.toml"), &plain).expect("writes");
    fine(home, &["export", "openclaw", &path, "--yes"]).await;
    let without = fs::read_to_string(&file).expect("reads");
    assert!(!without.contains("bindings"), "{without}");
    fs::write(home.join("config.toml"), plain.clone() + BINDINGS).expect("writes");
    fine(home, &["export", "openclaw", &path, "--yes"]).await;
    assert!(
        fs::read_to_string(&file)
            .expect("reads")
            .contains("bindings")
    );
    fs::write(home.join("config.toml"), &plain).expect("writes");
    fine(home, &["export", "openclaw", &path, "--yes"]).await;
    assert_eq!(
        fs::read_to_string(&file).expect("reads"),
        without,
        "ours are gone again"
    );
    fs::write(&file, r#"{"agents":{"list":[{"id":"rose","x":1}]}}"#).expect("writes");
    fine(home, &["export", "openclaw", &path, "--yes"]).await;
    let list: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("reads")).expect("JSON");
    let ids: Vec<&str> = list["agents"]["list"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["id"].as_str())
        .collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    for broken in ["{", "[]", r#"{"agents":1}"#, r#"{"bindings":{}}"#] {
        fs::write(&file, broken).expect("writes");
        let ran = run(home, &["export", "openclaw", &path, "--yes"]).await;
        assert_eq!(ran.code, 1, "{broken}");
        assert_eq!(
            fs::read_to_string(&file).expect("reads"),
            broken,
            "left as it is"
        );
    }
    let printed = fine(home, &["export", "openclaw", "-"]).await;
    assert!(serde_json::from_str::<Value>(&printed).is_ok(), "{printed}");
}

#[tokio::test]
async fn an_agent_is_written_as_one_file_and_no_other_is_overwritten() {
    let home = fresh_home().await;
    let home = home.path();
    let printed = fine(home, &["agent", "agents-md", "rose"]).await;
    let heads: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with("<!--") || line.starts_with('#') || line.starts_with("- t"))
        .collect();
    assert_snapshot!(heads.join("\n"), @"
    <!-- Written by `parlor agent agents-md rose`; changes here are lost. -->
    # Rose
    <!-- IDENTITY.md -->
    <!-- SOUL.md -->
    <!-- AGENTS.md -->
    <!-- TOOLS.md -->
    <!-- USER.md -->
    ## Skills
    - thread-summary: Sums up what was said in this place. Use it when somebody asks for a summary, a recap, minutes, or what they missed.
    - tighten: Cuts a text to a length and keeps its voice. Use it when somebody asks to shorten, tighten or trim a text, or names a limit in words or characters.
    ");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("AGENTS.md");
    let path = file.display().to_string();
    fine(home, &["agent", "agents-md", "rose", &path]).await;
    assert_eq!(
        fs::read_to_string(&file).expect("reads").trim_end(),
        printed.trim_end()
    );
    fine(home, &["agent", "agents-md", "ada", &path]).await;
    fs::write(&file, "by hand\n").expect("writes");
    let refused = run(home, &["agent", "agents-md", "rose", &path]).await;
    assert_eq!(refused.code, 1);
    assert_eq!(fs::read_to_string(&file).expect("reads"), "by hand\n");
}

/// Without a terminal nobody can be asked, so an existing file needs a word before it is changed.
#[tokio::test]
async fn an_existing_file_is_not_written_unasked() {
    let home = fresh_home().await;
    let home = home.path();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("openclaw.json");
    let old = r#"{"gateway":{"token":"abc"}}"#;
    fs::write(&file, old).expect("writes");
    let path = file.display().to_string();
    for more in [&[] as &[&str], &["--json"]] {
        let line = [&["export", "openclaw", &path], more].concat();
        let ran = run(home, &line).await;
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        // With --json the refusal is on stdout.
        let told = ran.stdout + &ran.stderr;
        assert!(told.contains("nobody can be asked"), "{told}");
        assert!(told.contains("--yes"), "{told}");
        assert_eq!(fs::read_to_string(&file).expect("reads"), old);
    }
    let copy = |name: &str| {
        let copy = elsewhere.path().join(name);
        fs::read_to_string(copy).expect("a copy")
    };
    fine(home, &["export", "openclaw", &path, "--yes"]).await;
    assert_eq!(copy("openclaw.json.before-parlor"), old);
    fs::write(&file, "{}").expect("writes");
    fine(home, &["export", "openclaw", &path, "--yes"]).await;
    assert_eq!(
        copy("openclaw.json.before-parlor"),
        old,
        "the first copy stays"
    );
    assert_eq!(copy("openclaw.json.before-parlor-2"), "{}");
}

/// On a terminal the changes are shown first, without the secrets of the file.
#[tokio::test]
async fn the_difference_is_shown_before_the_question() {
    let home = fresh_home().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("openclaw.json");
    let old = "{\n  \"token\": \"abc123\", \"zebra\": 1\n}\n";
    fs::write(&file, old).expect("writes");
    let path = file.display().to_string();
    for (answer, is_written) in [("n\r", false), ("y\r", true)] {
        let mut terminal = Pty::start(home.path(), &["export", "openclaw", &path], 100, &[]);
        let screen = terminal.shows("Write it? A copy is kept. [y/N]").await;
        assert!(screen.contains("+"), "{screen}");
        assert!(!screen.contains("abc123"), "{screen}");
        terminal.types(answer);
        assert_eq!(terminal.ends().await, 0);
        let now = fs::read_to_string(&file).expect("reads");
        assert_eq!(now != old, is_written, "{now}");
    }
}
