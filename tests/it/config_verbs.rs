//! `parlor config`: any file, for people, programs and editors.

use insta::{assert_json_snapshot, assert_snapshot};
use serde_json::Value;

use crate::cli::{fresh_home, run, run_with_input};

const WRONG: &str = "[access]\nowners = []\ndefault_model = \"demo\"\n\n[[bindings]]\nmatch = \"local\"\nagent = \"rsoe\"\n";

/// A check starts nothing, so it does not say that nothing was started; a start does.
#[tokio::test]
async fn a_check_and_a_start_end_with_true_sentences() {
    let home = fresh_home().await;
    std::fs::write(home.path().join("config.toml"), "zzz = 1\n").expect("writes");
    let last = |text: &str| {
        text.trim_end()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    let checked = run(home.path(), &["config", "check"]).await;
    assert_eq!((checked.code, checked.stdout.as_str()), (1, ""));
    assert_eq!(last(&checked.stderr), "1 problem in config.toml.");
    let started = run(home.path(), &["run"]).await;
    assert_eq!(started.code, 1);
    assert_eq!(
        last(&started.stderr),
        "1 problem in config.toml. Parlor was not started."
    );
    let listed = run(home.path(), &["agent", "list"]).await;
    assert_eq!(last(&listed.stderr), "1 problem in config.toml.");
}

/// A binding's wrong key, its unknown agent and its wrong `match` are told by one check.
#[tokio::test]
async fn all_problems_of_a_binding_are_told_at_once() {
    let home = fresh_home().await;
    let binding = "[[bindings]]\nmatch = \"telegram:tpic:-100:1\"\nagent = \"rsoe\"\ncolour = 1\n\
        [[bindings]]\nmatch = \"discord:channl:1\"\nagnt = \"main\"\n";
    let checked = run_with_input(home.path(), &["config", "check", "-"], binding).await;
    let told: Vec<&str> = checked.stderr.lines().collect();
    let errors = told.iter().filter(|line| line.starts_with("error: "));
    assert_snapshot!(errors.copied().collect::<Vec<_>>().join("\n"), @"
    error: `telegram:tpic:-100:1` is not a place that a binding can match
    error: unknown agent `rsoe`
    error: unknown key `colour`
    error: `discord:channl:1` is not a place that a binding can match
    error: unknown key `agnt`
    ");
}

/// A remedy is the line that was meant, and is accepted when it is written.
#[tokio::test]
async fn remedies_keep_the_value_that_was_meant() {
    let home = fresh_home().await;
    let remedy = async |text: &str| {
        let checked = run_with_input(home.path(), &["config", "check", "-"], text).await;
        let help = checked
            .stderr
            .lines()
            .find_map(|line| line.trim().strip_prefix("= help: "));
        help.unwrap_or_default().to_owned()
    };
    let quoted = remedy("[access]\nrequire_mention = \"false\"\n").await;
    assert_snapshot!(quoted, @"write `require_mention = false`, without quotes");
    let json = remedy("default_agent: \"main\",   # answers\n").await;
    assert_snapshot!(json, @r#"write `default_agent = "main"`"#);
}

/// Skills and files are looked for in the home folder, wherever the file is.
#[tokio::test]
async fn any_file_can_be_checked() {
    let home = fresh_home().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let path = elsewhere.path().join("new.toml");
    std::fs::write(&path, "[agents.rose]\nskills = []\n").expect("writes");
    let path = path.to_str().expect("text");
    let fine = run(home.path(), &["config", "check", path]).await;
    assert_eq!((fine.code, fine.stderr.as_str()), (0, ""));
    assert_snapshot!(fine.stdout, @"new.toml is fine: 2 agents, 0 bindings.");
    let stdin = run_with_input(home.path(), &["config", "check", "-"], WRONG).await;
    assert_eq!(stdin.code, 1);
    assert_snapshot!(stdin.stderr, @r#"
    error: unknown key `default_model`
     --> stdin:3:1
      |
    3 | default_model = "demo"
      | ^^^^^^^^^^^^^ not a key of [access]
      |
      = help: `default_model` belongs at the top of the file, above the first [section]

    error: unknown agent `rsoe`
     --> stdin:7:9
      |
    7 | agent = "rsoe"
      |         ^^^^^^ no agent has this id
      |
      = help: add a section [agents.rsoe], or name an agent of this file: `main`

    2 problems in stdin.
    "#);
    let missing = run(home.path(), &["config", "check", "/nowhere/x.toml"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (2, ""));
    assert_snapshot!(missing.stderr, @"error: there is no file /nowhere/x.toml");
}

#[tokio::test]
async fn programs_get_every_problem_with_its_place() {
    let home = fresh_home().await;
    std::fs::write(home.path().join("config.toml"), WRONG).expect("writes");
    let ran = run(home.path(), &["config", "check", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert_json_snapshot!(json(&ran.stdout), @r#"
    {
      "file": "HOME/config.toml",
      "ok": false,
      "agents": null,
      "bindings": null,
      "route_tests": null,
      "problems": [
        {
          "severity": "error",
          "code": "unknown-key",
          "message": "unknown key `default_model`",
          "label": "not a key of [access]",
          "help": "`default_model` belongs at the top of the file, above the first [section]",
          "file": "HOME/config.toml",
          "line": 3,
          "column": 1,
          "end_line": 3,
          "end_column": 14,
          "key": [
            "access",
            "default_model"
          ]
        },
        {
          "severity": "error",
          "code": "meaning",
          "message": "unknown agent `rsoe`",
          "label": "no agent has this id",
          "help": "add a section [agents.rsoe], or name an agent of this file: `main`",
          "file": "HOME/config.toml",
          "line": 7,
          "column": 9,
          "end_line": 7,
          "end_column": 15,
          "key": [
            "bindings",
            0,
            "agent"
          ]
        }
      ]
    }
    "#);
    std::fs::remove_file(home.path().join("config.toml")).expect("it was there");
    let unreadable = run(home.path(), &["config", "check", "--json"]).await;
    assert_eq!(unreadable.code, 1);
    assert_json_snapshot!(json(&unreadable.stdout)["problems"][0], @r#"
    {
      "severity": "error",
      "code": "unreadable",
      "message": "There is no config file at HOME/config.toml. Run `parlor init` to write one.",
      "label": "",
      "help": null,
      "file": "HOME/config.toml",
      "line": 1,
      "column": 1,
      "end_line": 1,
      "end_column": 1,
      "key": []
    }
    "#);
    let missing = run(home.path(), &["config", "check", "--json", "/nowhere/x"]).await;
    assert_eq!(missing.code, 2);
}

/// Warnings and notes are in the list, and the config counts as right.
#[tokio::test]
async fn programs_get_warnings_and_notes_too() {
    let home = fresh_home().await;
    let text = "[telegram]\ntoken = { env = \"PARLOR_TEST_NO_SUCH_VARIABLE\" }\n";
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    std::fs::write(home.path().join("config.schema.json"), "{}").expect("writes");
    let ran = run(home.path(), &["config", "check", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let told = json(&ran.stdout);
    assert_eq!((&told["ok"], &told["agents"]), (&true.into(), &1.into()));
    let kinds: Vec<(&str, &str)> = told["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|problem| {
            let word = |key: &str| problem[key].as_str().expect("a word");
            (word("severity"), word("code"))
        })
        .collect();
    assert_eq!(
        kinds,
        [("warning", "missing-secret"), ("note", "old-schema")]
    );
}

/// Parlor starts without the key of a provider, so the lack is a warning, with its line and key.
#[tokio::test]
async fn a_provider_without_its_key_is_a_warning_with_its_place() {
    let home = fresh_home().await;
    let text = "default_model = \"openai/x\"\n\n[providers.openai]\nkind = \"openai\"\napi_key = { env = \"PARLOR_TEST_NO_SUCH_VARIABLE\" }\n";
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    let ran = run(home.path(), &["config", "check"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(ran.stdout, @"config.toml is fine: 1 agent, 0 bindings.");
    assert_snapshot!(ran.stderr, @r#"
    warning: the environment variable PARLOR_TEST_NO_SUCH_VARIABLE is not set; [providers.openai] needs it
     --> HOME/config.toml:5:19
      |
    5 | api_key = { env = "PARLOR_TEST_NO_SUCH_VARIABLE" }
      |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the secret is looked for here
      |
      = help: set it where Parlor is started (`export PARLOR_TEST_NO_SUCH_VARIABLE=…`), or keep the secret in a file and write { file = "…" }
    "#);
    let ran = run(home.path(), &["config", "check", "--json"]).await;
    let told = json(&ran.stdout);
    assert_json_snapshot!(told["problems"][0], { ".file" => "FILE" }, @r#"
    {
      "severity": "warning",
      "code": "missing-secret",
      "message": "the environment variable PARLOR_TEST_NO_SUCH_VARIABLE is not set; [providers.openai] needs it",
      "label": "the secret is looked for here",
      "help": "set it where Parlor is started (`export PARLOR_TEST_NO_SUCH_VARIABLE=…`), or keep the secret in a file and write { file = \"…\" }",
      "file": "FILE",
      "line": 5,
      "column": 19,
      "end_line": 5,
      "end_column": 49,
      "key": [
        "providers",
        "openai",
        "api_key",
        "env"
      ]
    }
    "#);
    // Warnings are counted apart from problems.
    std::fs::write(home.path().join("config.toml"), format!("zzz = 1\n{text}")).expect("writes");
    let ran = run(home.path(), &["config", "check"]).await;
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr.trim_end().lines().last(),
        Some("1 problem and 1 warning in config.toml.")
    );
}

/// A secret that is there and cannot be used is an error, also for a check.
#[tokio::test]
async fn a_secret_that_cannot_be_used_is_an_error() {
    let home = fresh_home().await;
    let text = "[telegram]\ntoken = { file = \"bot\" }\n";
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    std::fs::write(home.path().join("bot"), "123:abc\n456:def\n").expect("writes");
    let ran = run(home.path(), &["config", "check"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert_snapshot!(ran.stderr, @r#"
    error: the file bot has several lines
     --> HOME/config.toml:2:18
      |
    2 | token = { file = "bot" }
      |                  ^^^^^ looked for HOME/bot
      |
      = help: a secret is one line: keep that line, and delete the others

    1 problem in config.toml.
    "#);
    // Verbs that need no secret still work.
    assert_eq!(run(home.path(), &["agent", "list"]).await.code, 0);
}

#[tokio::test]
async fn the_schema_is_written_beside_the_config_and_renewed_when_asked() {
    let home = fresh_home().await;
    let path = home.path().join("config.schema.json");
    let written = std::fs::read_to_string(&path).expect("init wrote it");
    let printed = run(home.path(), &["config", "schema"]).await;
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (0, written.as_str())
    );
    assert_eq!(
        json(&written)["$schema"],
        "http://json-schema.org/draft-07/schema#"
    );

    std::fs::write(&path, "{}").expect("writes");
    let noted = run(home.path(), &["config", "check"]).await;
    assert_eq!(noted.code, 0);
    assert_snapshot!(noted.stderr, @"config.schema.json is from another version of Parlor. `parlor config schema --write` renews it.");
    let renewed = run(home.path(), &["config", "schema", "--write"]).await;
    assert_snapshot!(renewed.stdout, @"wrote HOME/config.schema.json");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), written);
    assert_eq!(run(home.path(), &["config", "check"]).await.stderr, "");
}

#[tokio::test]
async fn colours_are_for_terminals_and_for_those_who_ask() {
    let home = fresh_home().await;
    std::fs::write(home.path().join("config.toml"), WRONG).expect("writes");
    let plain = run(home.path(), &["config", "check"]).await;
    assert!(!plain.stderr.contains('\u{1b}'));
    let coloured = run(home.path(), &["config", "check", "--color", "always"]).await;
    assert!(coloured.stderr.contains("\u{1b}["), "{}", coloured.stderr);
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Every value with the line behind it; of secrets only whether they are there.
#[tokio::test]
async fn settings_are_shown_with_their_source() {
    let home = fresh_home().await;
    let config = "switch = \"separate\"\n[telegram]\ntoken = { env = \"A_TOKEN\" }\n[agents.rose]\nmodel = \"demo\"\n";
    std::fs::write(home.path().join("config.toml"), config).expect("writes");
    let shown = run(home.path(), &["config", "show"]).await;
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    for line in [
        "switch = \"separate\"  (config.toml:1)",
        "group_sessions = \"per-user\"  (default)",
        "telegram.token = not set  (environment variable A_TOKEN, config.toml:3)",
        "agents.rose.model = \"demo\"  (config.toml:5)",
        "agents.rose.name = \"Rose\"  (default)",
        "agents.main.model = \"demo\"  (default_model, default)",
    ] {
        assert!(
            shown.stdout.lines().any(|told| told == line),
            "{line}\n{}",
            shown.stdout
        );
    }
    assert!(!shown.stdout.contains("agents.rose.emoji"), "it is not set");
    let rose = run(home.path(), &["config", "show", "agents.rose"])
        .await
        .stdout;
    assert!(rose.lines().all(|line| line.starts_with("agents.rose.")));
    assert!(rose.contains("agents.rose.emoji: not set"), "{rose}");
    let one = run(home.path(), &["config", "show", "switch", "--json"]).await;
    assert_json_snapshot!(serde_json::from_str::<Value>(&one.stdout).expect("JSON"), @r#"
    [
      {
        "key": "switch",
        "value": "separate",
        "source": "file",
        "line": 1,
        "from": null
      }
    ]
    "#);
    let unknown = run(home.path(), &["config", "show", "agents.rosse"]).await;
    assert_eq!(unknown.code, 2);
    assert_snapshot!(unknown.stderr, @"error: no setting is called `agents.rosse`. Did you mean `agents.rose`?");
    std::fs::write(home.path().join("config.toml"), "zzz = 1\n").expect("writes");
    let broken = run(home.path(), &["config", "show"]).await;
    assert_eq!((broken.code, broken.stdout.as_str()), (1, ""));
    assert!(
        broken.stderr.contains("unknown key `zzz`"),
        "{}",
        broken.stderr
    );
}
