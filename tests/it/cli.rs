//! The command line: what it prints and how it ends.

use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::support::House;
use crate::support::house::parlor;

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary; the home folder's path reads HOME in what it printed.
pub(crate) async fn run(home: &Path, arguments: &[&str]) -> Ran {
    run_with_input(home, arguments, "").await
}

pub(crate) async fn run_with_input(home: &Path, arguments: &[&str], input: &str) -> Ran {
    let mut command = parlor(home);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).await.expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().await.expect("it ends");
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes)
            .expect("text")
            .replace(&home.display().to_string(), "HOME")
    };
    Ran {
        code: output.status.code().expect("by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

pub(crate) async fn fresh_home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    assert_eq!(run(home.path(), &["init"]).await.code, 0);
    home
}

/// S0.9, S0.59: never overwrites.
#[tokio::test]
async fn init_writes_the_team_and_keeps_what_is_there() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(home.path().join("agents/rose")).expect("makes");
    std::fs::write(home.path().join("agents/rose/SOUL.md"), "my own rose").expect("writes");
    let first = run(home.path(), &["init"]).await;
    assert_snapshot!(first.stdout, @"
    created AGENTS.md
    created IDENTITY.md
    created SOUL.md
    created TOOLS.md
    created USER.md
    created agents/ada/IDENTITY.md
    created agents/ada/MEMORY.md
    created agents/ada/SOUL.md
    created agents/ada/skills/bug-report/SKILL.md
    created agents/ada/skills/bug-report/template.md
    created agents/main/BOOTSTRAP.md
    created agents/main/IDENTITY.md
    created agents/main/MEMORY.md
    created agents/main/SOUL.md
    created agents/rose/IDENTITY.md
    created agents/rose/MEMORY.md
    created agents/rose/skills/tighten/SKILL.md
    created skills/thread-summary/SKILL.md
    created config.schema.json
    created config.toml
    kept    agents/rose/SOUL.md
    ");
    assert_snapshot!(first.stderr, @"HOME is ready. `parlor chat` talks to the agents here; `parlor setup` connects a model and a bot.");
    assert_eq!(
        std::fs::read_to_string(home.path().join("agents/rose/SOUL.md")).expect("reads"),
        "my own rose"
    );
    let second = run(home.path(), &["init"]).await;
    assert!(
        second.stdout.lines().all(|line| line.starts_with("kept")),
        "{}",
        second.stdout
    );
}

/// The whole way of a first command: a home is made, and two topics have two agents. Answers alone
/// are printed.
#[tokio::test]
async fn piped_chat_answers_each_line_once_in_two_topics() {
    let home = tempfile::tempdir().expect("a folder");
    let input = "hello\n/topic writing\nhello again\n\n/topic\nstill there?\n/quit\nunheard\n";
    let ran = run_with_input(home.path(), &["chat"], input).await;
    assert_eq!(ran.code, 0);
    assert_snapshot!(ran.stderr, @"
    You're in writing now. 🌹 Rose answers here.
    You're back in the main chat. ☕ Main answers here.
    ");
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
    assert_eq!(turns(home.path()), "main, rose, main");
}

/// Who answered, in order.
fn turns(home: &std::path::Path) -> String {
    crate::support::house::ask(
        home,
        "SELECT group_concat(slug, ', ') FROM (SELECT slug FROM turns JOIN agents ON uid = agent_uid ORDER BY turns.id)",
    )
}

#[tokio::test]
async fn help_in_a_terminal_also_tells_what_only_the_terminal_knows() {
    let home = tempfile::tempdir().expect("a folder");
    let short = run_with_input(home.path(), &["chat"], "/help\n").await;
    assert!(short.stdout.lines().count() < 25, "{}", short.stdout);
    assert!(short.stdout.contains("/help `all`"), "{}", short.stdout);
    let ran = run_with_input(home.path(), &["chat"], "/help all\n").await;
    let (_, own) = ran.stdout.split_once("\n**Only in").expect("a part");
    assert_snapshot!(own, @"
     this terminal**
    /topic `[name]`: go to another topic; without a name, back to the main chat
    /topics: all topics, and who answers there
    /quit: leave; /exit does the same

    **Keys**
    Ctrl-C: clear the line; on an empty line, stop the answer; when nothing is being written, press twice to leave
    Ctrl-D: leave, after the answer that is being written
    Tab: complete a command, an agent or a topic
    ↑ and ↓: your earlier lines, from earlier chats too; Ctrl-R searches them
    Enter: send, also while an answer is being written; lines wait for their turn
    Paste: several lines at once are one message
    ");
}

/// `--agent` is for this run: nothing is said about it, and nothing is pinned.
#[tokio::test]
async fn chat_with_an_agent_pins_nothing() {
    let home = fresh_home().await;
    let shed = |arguments: &'static [&'static str], lines: &'static str| {
        let arguments: Vec<&str> = ["chat", "--topic", "shed"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let home = home.path();
        async move { run_with_input(home, &arguments, lines).await }
    };
    let first = shed(&["-a", "ada"], "hi\nand again\n").await;
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    assert_eq!(first.stdout.lines().count(), 2, "{}", first.stdout);
    shed(&[], "who are you\n").await;
    assert_eq!(turns(home.path()), "ada, ada, main");
    // What the person says during the run counts.
    shed(&["-a", "ada"], "/agent rose\nhello\n").await;
    shed(&[], "still you?\n").await;
    shed(&["-a", "ada"], "and you?\n").await;
    assert_eq!(turns(home.path()), "ada, ada, main, rose, rose, ada");
    let pins = crate::support::house::ask(
        home.path(),
        "SELECT group_concat(slug) FROM pins JOIN agents ON uid = agent_uid",
    );
    assert_eq!(pins, "rose");
}

#[tokio::test]
async fn chat_refuses_agents_and_topics_that_do_not_exist() {
    let home = fresh_home().await;
    let unknown = run_with_input(home.path(), &["chat", "-a", "rosa"], "").await;
    assert_eq!(
        (unknown.code, unknown.stdout.as_str()),
        (2, ""),
        "nobody else answers"
    );
    assert_snapshot!(unknown.stderr, @"error: no agent is called rosa. Did you mean rose?");
    let unknown = run_with_input(home.path(), &["chat", "--topic", "Not A Topic"], "").await;
    assert_eq!(unknown.code, 2);
    assert_snapshot!(unknown.stderr, @"error: a topic is written with a-z, 0-9, - and _, such as `not-a-topic`, not `Not A Topic`");
    let unknown = run_with_input(home.path(), &["chat"], "/topic Not A Topic\n").await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""));
    assert_snapshot!(unknown.stderr, @"
    `Not A Topic` can't be a topic: its name is written with a-z, 0-9, - and _. /topic not-a-topic would do.
    error: a line was not answered
    ");
}

/// S1.59: until somebody chooses, the default; afterwards the choice, also when there is another
/// default.
#[tokio::test]
async fn a_place_without_a_binding_keeps_the_agent_that_was_chosen() {
    let home = fresh_home().await;
    let shed =
        |lines: &'static str| run_with_input(home.path(), &["chat", "--topic", "shed"], lines);
    shed("hello\n").await;
    shed("/agent ada\nhello\n").await;
    assert_eq!(
        run(home.path(), &["agent", "default", "rose"]).await.code,
        0
    );
    shed("still you?\n").await;
    run_with_input(home.path(), &["chat", "--topic", "attic"], "hello\n").await;
    assert_eq!(
        turns(home.path()),
        "main, ada, ada, rose",
        "a new place has the new default"
    );
}

/// Part of S0.31.
#[tokio::test]
async fn agent_list_shows_who_is_there() {
    let home = fresh_home().await;
    assert_snapshot!(run(home.path(), &["agent", "list"]).await.stdout, @"
    ID    NAME     MODEL  SKILLS  PLACES  MEMORIES  STATE
    main  ☕ Main  demo        1       0         0  default
    rose  🌹 Rose  demo        2       2         0
    ada   🛠️ Ada   demo        2       2         0
    ");
    let json = run(home.path(), &["agent", "list", "--json"]).await.stdout;
    let rows: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(rows[1]["id"], "rose");
    assert_eq!(rows[1]["bindings"], 2);
}

/// S0.11, and part of S0.35.
#[tokio::test]
async fn agent_info_says_where_each_file_comes_from() {
    let home = fresh_home().await;
    assert_snapshot!(run(home.path(), &["agent", "info", "rose"]).await.stdout, @"
    🌹 Rose (rose)
    model: demo
    first turn: not yet
    IDENTITY.md: own
    SOUL.md: own
    AGENTS.md: inherited
    TOOLS.md: inherited
    USER.md: inherited
    BOOTSTRAP.md: missing
    MEMORY.md: own
    skill thread-summary: pool, no `skills` list
    skill tighten: local, in its own folder
    memory: 0 private, 0 global, 0 of people, 0 of places, 0 pieces of files; MEMORY.md has 0 bytes; nothing saved yet
    tools when an owner asks: now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, memory_edit, transcript_search
    tools when an admin asks: now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, transcript_search
    tools when a member asks: now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, transcript_search
    tools when a guest asks: now, skill, file_read, file_list, file_search, memory_search, transcript_search
    bound: writing (web:home:writing)
    bound: writing (local:home:writing)
    state: ready
    waiting: 0 messages
    last 24 hours: 0 turns, 0 failed
    last answer: none
    last error: none
    ");
    let json: serde_json::Value = serde_json::from_str(
        &run(home.path(), &["agent", "info", "rose", "--json"])
            .await
            .stdout,
    )
    .expect("JSON");
    assert_eq!(json["files"][1]["file"], "SOUL.md");
    assert_eq!(json["files"][1]["origin"], "own");
    let config = std::fs::read_to_string(home.path().join("config.toml")).expect("a config");
    let groups = "\n[peer_groups.desk]\nmembers = [\"rose\", \"ada\"]\n[peer_groups.chat]\nmembers = [\"rose\", \"main\"]\nplatform = \"telegram\"\n";
    std::fs::write(home.path().join("config.toml"), config + groups).expect("it can be written");
    let told = run(home.path(), &["agent", "info", "rose"]).await.stdout;
    assert!(
        told.contains("\npeers: ada, main (on telegram)\n"),
        "{told}"
    );
    let missing = run(home.path(), &["agent", "info", "ros"]).await;
    assert_eq!(missing.code, 2);
    assert_snapshot!(missing.stderr, @"error: no agent is called ros. Did you mean rose?");
}

/// S1.65: one for the whole house, in a fresh home and for agents that are added.
#[tokio::test]
async fn every_agent_has_the_one_user_file_of_the_house() {
    let home = fresh_home().await;
    assert_eq!(run(home.path(), &["agent", "add", "dot"]).await.code, 0);
    std::fs::write(home.path().join("USER.md"), "Ann likes tea.").expect("writes");
    for agent in ["main", "rose", "ada", "dot"] {
        assert!(
            !home
                .path()
                .join("agents")
                .join(agent)
                .join("USER.md")
                .exists(),
            "{agent} has none of its own"
        );
        let info = run(home.path(), &["agent", "info", agent]).await.stdout;
        assert!(info.contains("\nUSER.md: inherited\n"), "{info}");
        let prompt = run(home.path(), &["agent", "prompt", agent]).await.stdout;
        assert!(prompt.contains("# USER.md\n\nAnn likes tea.\n"), "{prompt}");
    }
}

/// S0.30: to the byte what the model is told, in the first turn and in the next.
#[tokio::test]
async fn agent_prompt_prints_what_the_model_is_told() {
    let house = House::new("[agents.main]\n").await;
    assert_eq!(run(house.home.path(), &["init"]).await.code, 0);
    for line in ["hello\n", "again\n"] {
        let printed = run(house.home.path(), &["agent", "prompt", "main"])
            .await
            .stdout;
        run_with_input(house.home.path(), &["chat"], line).await;
        assert_eq!(format!("{}\n", house.model.last_request().system), printed);
    }
}

/// S3.5: the same bytes as long as nothing changes; the bootstrap goes after the first turn.
#[tokio::test]
async fn agent_prompt_prints_the_same_bytes_until_something_changes() {
    let home = fresh_home().await;
    let before = run(home.path(), &["agent", "prompt", "main"]).await.stdout;
    assert_eq!(
        run(home.path(), &["agent", "prompt", "main"]).await.stdout,
        before
    );
    assert!(before.contains("# BOOTSTRAP.md"));
    run_with_input(home.path(), &["chat"], "hello\n").await;
    let after = run(home.path(), &["agent", "prompt", "main"]).await.stdout;
    assert!(!after.contains("# BOOTSTRAP.md"));
    let json: serde_json::Value = serde_json::from_str(
        &run(home.path(), &["agent", "prompt", "main", "--json"])
            .await
            .stdout,
    )
    .expect("JSON");
    assert_eq!(
        json["prompt"].as_str().map(|prompt| format!("{prompt}\n")),
        Some(after)
    );
}

#[tokio::test]
async fn route_explain_tells_every_rule_and_the_winner() {
    let home = fresh_home().await;
    assert_snapshot!(run(home.path(), &["route", "explain", "local:home:writing"]).await.stdout, @"
    Rose answers in writing (local:home:writing). Line 62 of config.toml gives this topic to Rose.
    Asked for local:you, an owner.

    local:home:writing belongs to rose
    because of config.toml line 62: exact topic local:home:writing

    name: writing

    pin          local:home:writing  no pin
    exact topic  local:home:writing  config.toml line 62, rose: decides
    default      default_agent       main: not needed
    no binding for: name or tag, room, platform

    model: demo (no other model is set)
    --all adds every rule that was looked for, and tools, skills, memory and limits.
    ");
    run_with_input(home.path(), &["chat", "--topic", "writing"], "/agent ada\n").await;
    let pinned = run(
        home.path(),
        &["route", "explain", "local:home:writing", "--json"],
    )
    .await
    .stdout;
    let pinned: serde_json::Value = serde_json::from_str(&pinned).expect("JSON");
    assert_eq!(pinned["route"]["agent"], "ada");
    assert_eq!(pinned["reason"], "pin set by local:you");
    let anybody = run(home.path(), &["route", "explain", "telegram:topic:-5:5"])
        .await
        .stdout;
    assert!(
        anybody.contains("Asked for a guest; --as names a role or a person.\n"),
        "{anybody}"
    );
    assert!(
        !anybody.contains(":0 "),
        "a rule for nobody is not looked for: {anybody}"
    );
    let wrong = run(home.path(), &["route", "explain", "telegram:topic:5:5"]).await;
    assert_eq!(wrong.code, 2);
    assert_snapshot!(wrong.stderr, @"error: `telegram:topic:5:5` is not the key of a place. A key looks like telegram:topic:-1001234567890:101, discord:channel:1234567890 or local:home; /whoami in the chat prints it");
}

/// S4.43, S0.56: everything at once, also what only routing can see.
#[tokio::test]
async fn config_check_reports_all_problems_at_once() {
    let home = fresh_home().await;
    assert_snapshot!(run(home.path(), &["config", "check"]).await.stdout, @"config.toml is fine: 3 agents, 4 bindings.");
    let text = r#"defualt_agent = "main"

[telegram]
token = "123456:AAAA-secret"

[agents.rose]
nam = "Rose"

[[bindings]]
match = "telegram:topic:100123:7"
agent = "rose"

[[bindings]]
match = "telegram:group:-5"
agent = "rose"

[[bindings]]
match = "telegram:group:-5"
agent = "main"

[[bindings]]
match = "telegram:group:6"
agent = "rosa"
"#;
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    for arguments in [
        &["config", "check"][..],
        &["run"],
        &["chat"],
        &["agent", "list"],
    ] {
        let ran = run(home.path(), arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{arguments:?}");
        assert!(!ran.stderr.contains("AAAA-secret"));
    }
    assert_snapshot!(run(home.path(), &["config", "check"]).await.stderr, @r#"
    error: unknown key `defualt_agent`
     --> HOME/config.toml:1:1
      |
    1 | defualt_agent = "main"
      | ^^^^^^^^^^^^^ not a key of the top level
      |
      = help: did you mean `default_agent`?

    error: `token` is in the config file itself
     --> HOME/config.toml:4:9
      |
    4 | token = ********************
      |         ^^^^^^^^^^^^^^^^^^^^ a secret in plain text, hidden here
      |
      = help: move it to the environment and write `token = { env = "TELEGRAM_BOT_TOKEN" }`, or to a file and write `token = { file = "secrets/token" }`

    error: unknown key `nam`
     --> HOME/config.toml:7:1
      |
    7 | nam = "Rose"
      | ^^^ not a key of an agent
      |
      = help: did you mean `name`?

    error: `telegram:topic:100123:7` is not a place that a binding can match
      --> HOME/config.toml:10:9
       |
    10 | match = "telegram:topic:100123:7"
       |         ^^^^^^^^^^^^^^^^^^^^^^^^^ `100123` is not the id of a group
       |
       = help: group ids are negative; /whoami prints the key to paste

    error: two bindings for the same place: rose (line 14) and main (here)
      --> HOME/config.toml:18:9
       |
    14 | match = "telegram:group:-5"
       |         ------------------- the first one
    ...
    18 | match = "telegram:group:-5"
       |         ^^^^^^^^^^^^^^^^^^^ line 14 has `telegram:group:-5` already
       |
       = help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`

    error: `telegram:group:6` is not a place that a binding can match
      --> HOME/config.toml:22:9
       |
    22 | match = "telegram:group:6"
       |         ^^^^^^^^^^^^^^^^^^ `6` is not the id of a group
       |
       = help: group ids are negative; /whoami prints the key to paste

    error: unknown agent `rosa`
      --> HOME/config.toml:23:9
       |
    23 | agent = "rosa"
       |         ^^^^^^ no agent has this id
       |
       = help: did you mean `rose`? If not, add a section [agents.rosa]

    7 problems in config.toml.
    "#);
}

/// A right config on a machine without its secrets is right, and starting there would fail.
#[tokio::test]
async fn config_check_notes_secrets_that_are_missing_here() {
    let home = fresh_home().await;
    let text = "[telegram]\ntoken = { env = \"TELEGRAM_BOT_TOKEN\" }\n";
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    let ran = run(home.path(), &["config", "check"]).await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "config.toml is fine: 1 agent, 0 bindings.\n")
    );
    assert_snapshot!(ran.stderr, @r#"
    warning: the environment variable TELEGRAM_BOT_TOKEN is not set
     --> HOME/config.toml:2:17
      |
    2 | token = { env = "TELEGRAM_BOT_TOKEN" }
      |                 ^^^^^^^^^^^^^^^^^^^^ the secret is looked for here
      |
      = help: set it where Parlor is started (`export TELEGRAM_BOT_TOKEN=…`), or keep the secret in a file and write { file = "…" }

    `parlor run` would not start from this shell: a secret is missing here.
    "#);
    let run = run(home.path(), &["run"]).await;
    assert_eq!(run.code, 1);
    assert_snapshot!(run.stderr, @r#"
    error: the environment variable TELEGRAM_BOT_TOKEN is not set
     --> HOME/config.toml:2:17
      |
    2 | token = { env = "TELEGRAM_BOT_TOKEN" }
      |                 ^^^^^^^^^^^^^^^^^^^^ the secret is looked for here
      |
      = help: set it where Parlor is started (`export TELEGRAM_BOT_TOKEN=…`), or keep the secret in a file and write { file = "…" }

    1 problem in config.toml. Parlor was not started.
    "#);
}

#[tokio::test]
async fn a_home_without_a_config_says_what_to_do() {
    let home = tempfile::tempdir().expect("a folder");
    let ran = run(home.path(), &["config", "check"]).await;
    assert_eq!(ran.code, 1);
    assert_snapshot!(ran.stderr, @"error: There is no config file at HOME/config.toml. Run `parlor init` to write one.");
}

/// Rules are counted as the file has them, also behind one that is left out for a problem of its
/// own.
#[tokio::test]
async fn config_check_counts_rules_as_the_file_does() {
    let home = tempfile::tempdir().expect("a folder");
    let broken = "[[bindings]]\nmatch = \"local\"\nagent = \"nobody\"\n";
    let rule = "[[bindings]]\nmatch = \"discord:channel:1\"\nagent = \"main\"\n";
    let provider = "[providers.mine]\nkind = \"nothing\"\nvision = \"yes\"\n";
    std::fs::write(
        home.path().join("config.toml"),
        format!("{provider}{broken}{rule}{rule}"),
    )
    .expect("writes");
    let told = run(home.path(), &["config", "check"]).await.stderr;
    let headings: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_snapshot!(headings.join("\n"), @"
    error: `kind` cannot be `nothing`
    error: `vision` must be `true`, `false` or a list of models
    error: unknown agent `nobody`
    error: two bindings for the same place, both to main: in line 8 and here
    ");
}
