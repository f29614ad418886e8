//! The life of agents, from the command line: what changes in the config, on the disk and in the
//! store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use tempfile::TempDir;

use crate::cli::{Ran, fresh_home, run, run_with_input};
use crate::support::house::{ask, parlor};

pub(crate) async fn fine(home: &Path, arguments: &[&str]) -> String {
    let ran = run(home, arguments).await;
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

pub(crate) fn config(home: &Path) -> String {
    std::fs::read_to_string(home.join("config.toml")).expect("there is a config")
}

/// Every file below a folder with its content, but for what changes with every look.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let inside = path.strip_prefix(folder).expect("inside").to_owned();
            if path.is_dir() {
                open.push(path);
            } else if !inside.to_string_lossy().starts_with("parlor.") {
                found.insert(inside, std::fs::read(&path).expect("reads"));
            }
        }
    }
    found
}

/// Rows of all tables that hang on an agent.
pub(crate) fn counts(home: &Path) -> Vec<(&'static str, String)> {
    let tables = ["agents", "memories", "messages", "places", "pins", "turns"];
    tables
        .map(|table| (table, ask(home, &format!("SELECT count(*) FROM {table}"))))
        .to_vec()
}

/// The archive's name has the time in it.
fn timeless(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_inclusive([' ', '\n', '/', ';', '`']) {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        words.push(if digits >= 14 {
            word.replace(|c: char| c.is_ascii_digit(), "0")
        } else {
            word.to_owned()
        });
    }
    words.concat()
}

/// A home in which Rose has talked, is pinned somewhere and remembers something.
pub(crate) async fn lived_in() -> TempDir {
    let home = fresh_home().await;
    let talk = "/agent rose\nhello rose\n/topic writing\nhello again\n";
    run_with_input(home.path(), &["chat"], talk).await;
    std::fs::write(
        home.path().join("agents/rose/MEMORY.md"),
        "Likes short words.\n",
    )
    .expect("writes");
    let uid = ask(home.path(), "SELECT uid FROM agents WHERE slug = 'rose'");
    let connection = rusqlite::Connection::open(home.path().join("parlor.db")).expect("opens");
    for (visibility, text) in [
        ("private", "a secret of rose"),
        ("global", "the door code is new"),
    ] {
        connection
            .execute(
                "INSERT INTO memories (agent_uid, visibility, source, text, created_at) VALUES (?1, ?2, 'saved', ?3, 1)",
                [&uid, visibility, text],
            )
            .expect("writes");
    }
    home
}

/// S0.9, S0.32, S0.59
#[tokio::test]
async fn add_writes_files_and_a_table_and_keeps_every_comment() {
    let home = fresh_home().await;
    let before = config(home.path());
    let added = run(
        home.path(),
        &[
            "agent",
            "add",
            "dot",
            "--name",
            "Dot",
            "--emoji",
            "⚫",
            "--personality",
            "Dry as dust.",
            "--skills",
            "thread-summary",
            "--bind",
            "local:home:dots",
        ],
    )
    .await;
    assert_snapshot!(added.stdout, @"
    created agents/dot/IDENTITY.md
    created agents/dot/SOUL.md
    created agents/dot/MEMORY.md
    Dot (dot) is in config.toml.
    ");
    assert_snapshot!(added.stderr, @"Next: `parlor chat --agent dot` talks to it.");
    assert_eq!(
        std::fs::read_to_string(home.path().join("agents/dot/SOUL.md")).expect("reads"),
        "Dry as dust.\n"
    );
    let after = config(home.path());
    assert!(before.lines().all(|line| after.contains(line)), "{after}");
    let new: Vec<&str> = after
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_snapshot!(new.join("\n"), @r#"
    [agents.dot]
    name = "Dot"
    emoji = "⚫"
    skills = ["thread-summary"]
    match = "local:home:dots"
    agent = "dot"
    "#);
    assert_snapshot!(fine(home.path(), &["route", "explain", "local:home:dots"]).await.lines().next().unwrap_or_default(), @"Dot answers in dots (local:home:dots). Line 75 of config.toml gives this topic to Dot.");
    std::fs::create_dir_all(home.path().join("agents/eve")).expect("makes");
    std::fs::write(home.path().join("agents/eve/SOUL.md"), "mine").expect("writes");
    assert_snapshot!(fine(home.path(), &["agent", "add", "eve"]).await, @"
    created agents/eve/IDENTITY.md
    created agents/eve/MEMORY.md
    kept    agents/eve/SOUL.md
    Eve (eve) is in config.toml.
    ");
    assert_eq!(
        std::fs::read_to_string(home.path().join("agents/eve/SOUL.md")).expect("reads"),
        "mine"
    );
}

/// S1.50, S1.11, S2.2, S0.56: a bad edit changes nothing.
#[tokio::test]
async fn what_cannot_be_added_changes_nothing() {
    let home = fresh_home().await;
    let before = files(home.path());
    let long = "x".repeat(65);
    for bad in ["../x", "a/b", "", long.as_str(), "system", "ros\u{435}"] {
        let ran = run(home.path(), &["agent", "add", bad]).await;
        assert_eq!(ran.code, 2, "{bad}: {}", ran.stderr);
    }
    let refused = async |arguments: &[&str]| {
        let Ran {
            code,
            stdout,
            stderr,
        } = run(home.path(), arguments).await;
        assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}");
        stderr
    };
    assert_snapshot!(refused(&["agent", "add", "main"]).await, @"error: `main` is there already, because Parlor always has an agent with this id");
    assert_snapshot!(refused(&["agent", "add", "rose"]).await, @"error: there is an agent called rose already. Choose another id");
    assert_snapshot!(refused(&["agent", "add", "rosa", "--name", "Rose"]).await, @r#"
    error: two agents answer to `Rose`
      --> HOME/config.toml:51:8
       |
    51 | name = "Rose"
       |        ^^^^^^ agent `rose` has this name already
       |
       = help: give each agent its own name; an agent also answers to its id

    Nothing was changed. With your options config.toml would have had this error.
    "#);
    assert_snapshot!(refused(&["agent", "add", "dot", "--bind", "local:home:code"]).await, @r#"
    error: two bindings for the same place: ada (line 68) and dot (here)
      --> HOME/config.toml:72:9
       |
    68 | match = "local:home:code"
       |         ----------------- the first one
    ...
    72 | match = "local:home:code"
       |         ^^^^^^^^^^^^^^^^^ line 68 has `local:home:code` already
       |
       = help: delete one of the two, or give one of them a filter that the other does not have: `users`, `roles`, `name` or `tag`

    Nothing was changed. With your options config.toml would have had this error.
    "#);
    assert!(
        refused(&["agent", "add", "dot", "--skills", "nope"])
            .await
            .contains("no skill is called `nope`")
    );
    assert!(
        refused(&["agent", "add", "dot", "--model", "nobody/x"])
            .await
            .contains("nobody")
    );
    for arguments in [
        &["agent", "rename", "rose", "main"][..],
        &["agent", "rename", "main", "host"],
        &["agent", "purge", "main", "--yes"],
        &["agent", "remove", "main"],
    ] {
        assert!(
            refused(arguments)
                .await
                .contains("Parlor always has an agent with"),
            "{arguments:?}"
        );
    }
    let mut after = files(home.path());
    after.remove(Path::new("config.lock"));
    assert_eq!(after, before);
}

/// S1.13
#[tokio::test]
async fn of_fifty_who_add_the_same_agent_one_does() {
    let home = fresh_home().await;
    // The schema is made once, so that the fifty are about the agent.
    fine(home.path(), &["agent", "list"]).await;
    let arguments = ["agent", "add", "dot"];
    let tries = (0..50).map(|_| run(home.path(), &arguments));
    let ran = futures_util::future::join_all(tries).await;
    let told = |code: i32| {
        ran.iter()
            .filter(|ran| ran.code == code)
            .collect::<Vec<_>>()
    };
    assert_eq!((told(0).len(), told(1).len()), (1, 49));
    assert!(told(1).iter().all(
        |ran| ran.stderr == "error: there is an agent called dot already. Choose another id\n"
    ));
    assert_eq!(config(home.path()).matches("[agents.dot]").count(), 1);
    fine(home.path(), &["config", "check"]).await;
}

/// S0.8, S0.31, S0.60
#[tokio::test]
async fn list_shows_folders_and_removed_agents_too() {
    let home = lived_in().await;
    std::fs::create_dir_all(home.path().join("agents/foo")).expect("makes");
    std::fs::create_dir_all(home.path().join("agents/Not An Id")).expect("makes");
    fine(home.path(), &["agent", "remove", "rose"]).await;
    assert_snapshot!(timeless(&fine(home.path(), &["agent", "list"]).await), @"
    ID    NAME     MODEL  SKILLS  PLACES  MEMORIES  STATE
    main  ☕ Main  demo        1       0         0  default
    ada   🛠️ Ada   demo        2       2         0
    foo                        0       0         0  not in config.toml; `parlor agent adopt foo` adds it
    rose                       0       0         2  archived as rose-00000000-000000
    ");
    let rows: serde_json::Value =
        serde_json::from_str(&fine(home.path(), &["agent", "list", "--json"]).await).expect("JSON");
    assert_eq!(
        rows[1]["effective_skills"],
        serde_json::json!(["bug-report", "thread-summary"])
    );
    assert_eq!(
        (&rows[2]["origin"], &rows[3]["origin"]),
        (&"discovered".into(), &"archived".into())
    );
    assert_snapshot!(fine(home.path(), &["agent", "adopt", "foo"]).await, @"foo is in config.toml, with the files of agents/foo.");
    assert_eq!(run(home.path(), &["agent", "adopt", "bar"]).await.code, 2);
    assert!(
        fine(home.path(), &["agent", "list"])
            .await
            .contains("foo   Foo")
    );
}

/// S0.35
#[tokio::test]
async fn info_tells_skills_memories_and_the_last_error() {
    let home = lived_in().await;
    let connection = rusqlite::Connection::open(home.path().join("parlor.db")).expect("opens");
    connection
        .execute(
            "UPDATE turns SET outcome = 'the model is overloaded', ended_at = 0 WHERE id = 1",
            [],
        )
        .expect("writes");
    let text = fine(home.path(), &["agent", "info", "rose"]).await;
    let text = text.replace(
        text.split("last error: ")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .unwrap_or("?"),
        "then",
    );
    // The last answer was just now.
    let lines = text.lines().skip(10);
    let lines: Vec<&str> = lines
        .filter(|line| !line.starts_with("last answer: "))
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    skill tighten: local, in its own folder
    memory: 1 private, 1 global, 0 of people, 0 of places, 1 piece of files; MEMORY.md has 19 bytes; last saved then
    tools when an owner asks: now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, memory_edit, transcript_search
    tools when an admin asks: now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, transcript_search
    tools when a member asks: now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, transcript_search
    tools when a guest asks: now, skill, file_read, file_list, file_search, memory_search, transcript_search
    bound: writing (web:home:writing)
    bound: writing (local:home:writing)
    pinned: local:home, by ann at the terminal (local:you)
    state: ready
    waiting: 0 messages
    last 24 hours: 1 turn, 0 failed
    last error: then, the model is overloaded
    ");
}

/// S0.19, S0.33, S0.54, S0.69, S3.32, S1.18: nothing is lost, and everything comes back.
#[tokio::test]
async fn a_removed_agent_comes_back_as_it_was() {
    let home = lived_in().await;
    fine(home.path(), &["agent", "list"]).await;
    let (before, rows, text) = (
        files(&home.path().join("agents/rose")),
        counts(home.path()),
        config(home.path()),
    );
    assert_snapshot!(timeless(&fine(home.path(), &["agent", "remove", "rose"]).await), @"
    rose is archived. Its files are in archive/rose-00000000-000000; 3 memories, 2 messages, 1 pin are kept, out of sight.
    no longer bound: web:home:writing
    no longer bound: local:home:writing
    `parlor agent restore rose-00000000-000000` undoes this.
    ");
    assert_eq!(counts(home.path()), rows, "S0.54");
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM memories WHERE visibility <> 'archived'"
        ),
        "0"
    );
    assert!(!home.path().join("agents/rose").exists() && !config(home.path()).contains("rose"));
    let gone = run_with_input(
        home.path(),
        &["chat", "--topic", "writing"],
        "/agent rose\nwho is here\n",
    )
    .await
    .stdout;
    assert!(
        gone.contains("No agent is called rose") && gone.contains("You said: “who is here”"),
        "{gone}"
    );
    let rows = counts(home.path());
    assert_snapshot!(fine(home.path(), &["agent", "restore", "rose"]).await, @"rose is back, with 3 memories, 2 messages, 1 pin.");
    assert_eq!(counts(home.path()), rows);
    assert_eq!(files(&home.path().join("agents/rose")), before);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(
        sorted(&config(home.path())),
        sorted(&text),
        "every line of the config is back"
    );
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM memories WHERE visibility = 'global'"
        ),
        "1"
    );
    assert_eq!(
        run(home.path(), &["agent", "archive", "list"]).await.stderr,
        "No agent is archived.\n"
    );
    let back = run_with_input(home.path(), &["chat"], "who are you\n")
        .await
        .stdout;
    assert!(
        back.contains("I'm Rose, played by the demo model"),
        "the pin counts again: {back}"
    );
}

/// S1.17, S1.18
#[tokio::test]
async fn an_id_can_be_used_again_and_both_agents_come_back() {
    let home = lived_in().await;
    fine(home.path(), &["agent", "remove", "rose"]).await;
    fine(
        home.path(),
        &["agent", "add", "rose", "--personality", "The second."],
    )
    .await;
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM memories m JOIN agents a ON a.uid = m.agent_uid WHERE a.slug = 'rose'"
        ),
        "0"
    );
    let said = run_with_input(
        home.path(),
        &["chat", "--topic", "fresh"],
        "/agent rose\nhi\n",
    )
    .await
    .stdout;
    assert!(said.contains("The second."), "{said}");
    fine(home.path(), &["agent", "remove", "rose"]).await;
    let several = run(home.path(), &["agent", "restore", "rose"]).await;
    assert_eq!(several.code, 2);
    assert!(
        several
            .stderr
            .starts_with("error: rose was removed more than once. Name one of: rose-2"),
        "{}",
        several.stderr
    );
    let archives: serde_json::Value =
        serde_json::from_str(&fine(home.path(), &["agent", "archive", "list", "--json"]).await)
            .expect("JSON");
    let names: Vec<&str> = archives
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["archive"].as_str())
        .collect();
    assert_eq!(names.len(), 2);
    fine(home.path(), &["agent", "restore", names[0]]).await;
    let taken = run(home.path(), &["agent", "restore", names[1]]).await;
    assert_snapshot!(taken.stderr, @"error: there is an agent called rose already. `--as` gives this one another id");
    fine(
        home.path(),
        &["agent", "restore", names[1], "--as", "second-rose"],
    )
    .await;
    let soul = |id: &str| {
        std::fs::read_to_string(home.path().join(format!("agents/{id}/SOUL.md"))).expect("reads")
    };
    assert!(
        soul("rose").starts_with("Every sentence")
            && soul("second-rose").starts_with("The second.")
    );
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM memories m JOIN agents a ON a.uid = m.agent_uid WHERE a.slug = 'rose' AND source = 'saved'"
        ),
        "2"
    );
}

/// S0.20, S0.34
#[tokio::test]
async fn purge_wants_the_id_and_says_what_is_gone() {
    let home = lived_in().await;
    let before = counts(home.path());
    let wrong = run_with_input(home.path(), &["agent", "purge", "rose"], "rosa\n").await;
    assert_eq!(wrong.code, 1);
    assert_snapshot!(wrong.stderr, @"This deletes rose for good: 4 files, 2 memories, 2 messages of its own, 2 conversations that only it answered in, 1 pin. Type rose to go on: error: that is not rose; nothing was deleted");
    assert_eq!(counts(home.path()), before);
    let right = run_with_input(home.path(), &["agent", "purge", "rose"], "rose\n").await;
    assert_eq!(right.code, 0, "{}", right.stderr);
    assert_snapshot!(right.stdout, @"rose is deleted: 4 files, 2 memories, 5 messages, 1 pin.");
    assert_eq!(
        files(&home.path().join("archive")).len() + files(&home.path().join("agents/rose")).len(),
        0
    );
    for (table, column) in [
        ("agents", "uid"),
        ("memories", "agent_uid"),
        ("messages", "agent_uid"),
        ("pins", "agent_uid"),
        ("turns", "agent_uid"),
    ] {
        let sql = format!(
            "SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT uid FROM agents WHERE slug <> 'rose')"
        );
        assert_eq!(ask(home.path(), &sql), "0", "{table}");
    }
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM messages WHERE text LIKE '%hello%'"
        ),
        "0",
        "what was said to her alone is gone"
    );
    assert_eq!(
        run(home.path(), &["agent", "purge", "rose", "--yes"])
            .await
            .code,
        2
    );
}

/// S1.12, S1.34, S1.47
#[tokio::test]
async fn the_default_is_set_in_one_key_and_cannot_be_removed() {
    let home = fresh_home().await;
    let before = config(home.path());
    assert_snapshot!(fine(home.path(), &["agent", "default", "rose"]).await, @"rose is the default agent.");
    assert_eq!(
        config(home.path()),
        before.replace("default_agent = \"main\"", "default_agent = \"rose\"")
    );
    assert_snapshot!(fine(home.path(), &["agent", "default", "rose"]).await, @"rose is the default agent already.");
    let refused = run(home.path(), &["agent", "remove", "rose"]).await;
    assert_eq!(refused.code, 1);
    assert_snapshot!(refused.stderr, @"error: rose is the default agent. Make another one the default first: `parlor agent default main`");
}

/// S3.18, S3.31
#[tokio::test]
async fn a_renamed_agent_keeps_everything_and_its_old_id_for_a_while() {
    let home = lived_in().await;
    fine(home.path(), &["agent", "list"]).await;
    let memories = ask(
        home.path(),
        "SELECT group_concat(id || agent_uid || visibility || text) FROM memories",
    );
    let rows = counts(home.path());
    assert_snapshot!(fine(home.path(), &["agent", "rename", "rose", "rosa"]).await, @"rose is now rosa. `/agent rose` works for 30 more days.");
    assert_eq!(
        ask(
            home.path(),
            "SELECT group_concat(id || agent_uid || visibility || text) FROM memories"
        ),
        memories
    );
    assert_eq!(counts(home.path()), rows);
    let talk = run_with_input(
        home.path(),
        &["chat"],
        "hi\n/topic writing\nhi\n/topic code\n/agent rose\n",
    )
    .await
    .stdout;
    assert_snapshot!(talk, @"
    You said: “hi” (message 2).
    You said: “hi” (message 2).
    🌹 Rose answers here from now on. `/agent reset` undoes that.
    ");
}

/// S1.10: the row has uid, slug and both times; name and default are in config.toml alone.
#[tokio::test]
async fn the_row_of_an_agent_has_its_uid_its_id_and_its_times() {
    let home = lived_in().await;
    let home = home.path();
    let info = async |id: &str| -> serde_json::Value {
        let told = run(home, &["agent", "info", id, "--json"]).await;
        serde_json::from_str(&told.stdout).expect("JSON")
    };
    let made = info("rose").await;
    assert!(made["created_at"].is_string() && made["created_at"] == made["updated_at"]);
    let connection = rusqlite::Connection::open(home.join("parlor.db")).expect("opens");
    let long_ago = "UPDATE agents SET created_at = 1000, updated_at = 1000";
    connection.execute(long_ago, []).expect("writes");
    drop(connection);
    fine(home, &["agent", "rename", "rose", "rosa"]).await;
    let renamed = info("rosa").await;
    assert_eq!(renamed["uid"], made["uid"]);
    let row = |facts: &str| {
        ask(
            home,
            &format!("SELECT {facts} FROM agents WHERE slug = 'rosa'"),
        )
    };
    assert_eq!(row("created_at"), "1000");
    assert_eq!(row("updated_at > 1000"), "1");
    assert_eq!(
        info("ada").await["updated_at"],
        info("ada").await["created_at"]
    );
    let columns = "SELECT group_concat(name) FROM pragma_table_info('agents') WHERE name IN ('name', 'label', 'is_default', 'updated_at', 'uid', 'slug')";
    assert_eq!(ask(home, columns), "uid,slug,updated_at");
    fine(home, &["agent", "remove", "rosa"]).await;
    let removed = "SELECT updated_at = archived_at FROM agents WHERE archived_id = 'rosa'";
    assert_eq!(ask(home, removed), "1");
}

/// S3.31
#[tokio::test]
async fn a_former_id_finds_its_agent_for_thirty_days() {
    let home = fresh_home().await;
    fine(home.path(), &["agent", "add", "dot"]).await;
    fine(home.path(), &["agent", "list"]).await;
    fine(home.path(), &["agent", "rename", "dot", "spot"]).await;
    let asked = run_with_input(home.path(), &["chat"], "/agent dot\n")
        .await
        .stdout;
    assert_snapshot!(asked, @"Spot answers here from now on. `/agent reset` undoes that.");
    let days = "SELECT (until / 1000 - unixepoch() + 43200) / 86400 FROM agent_former_ids WHERE id = 'dot'";
    assert_eq!(ask(home.path(), days), "30");
    let connection = rusqlite::Connection::open(home.path().join("parlor.db")).expect("opens");
    connection
        .execute("UPDATE agent_former_ids SET until = 1", [])
        .expect("writes");
    let later = run_with_input(home.path(), &["chat", "--topic", "other"], "/agent dot\n")
        .await
        .stdout;
    assert_snapshot!(later, @"No agent is called dot. Did you mean `/agent spot`?");
    fine(home.path(), &["agent", "add", "dot"]).await;
    fine(home.path(), &["agent", "rename", "spot", "blot"]).await;
    let new = run_with_input(
        home.path(),
        &["chat", "--topic", "other"],
        "/agent dot\n/agent spot\n",
    )
    .await
    .stdout;
    assert_snapshot!(new, @"
    Dot answers here from now on. `/agent reset` undoes that.
    Blot answers here from now on. `/agent reset` undoes that.
    ");
}

/// S0.5: the person's own folder, the one for temporary files and the one that the command is typed
/// in stay empty.
#[tokio::test]
async fn nothing_is_written_outside_the_home() {
    let parent = tempfile::tempdir().expect("a folder");
    let [home, own, temporary, here] =
        ["house", "own", "temporary", "here"].map(|name| parent.path().join(name));
    for folder in [&own, &temporary, &here] {
        std::fs::create_dir(folder).expect("makes");
    }
    let fine = async |arguments: &[&str]| {
        let mut command = parlor(&home);
        command
            .args(arguments)
            .env("HOME", &own)
            .env("TMPDIR", &temporary)
            .current_dir(&here);
        let output = command.output().await.expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    fine(&["init"]).await;
    std::fs::create_dir_all(home.join("agents/stray")).expect("makes");
    std::fs::write(home.join("agents/stray/SOUL.md"), "A cat.").expect("writes");
    let package = home.join("dot.tar");
    let package = package.to_str().expect("text");
    for arguments in [
        &["agent", "add", "dot"][..],
        &["agent", "rename", "dot", "spot"],
        &["agent", "clone", "spot", "dot"],
        &["agent", "default", "dot"],
        &["agent", "remove", "spot"],
        &["agent", "restore", "spot"],
        &["agent", "purge", "spot", "--yes"],
        &["agent", "adopt", "stray"],
        &["agent", "export", "dot", "-o", package],
        &["agent", "import", package, "--as", "dash"],
    ] {
        fine(arguments).await;
    }
    let outside: Vec<PathBuf> = files(parent.path())
        .into_keys()
        .filter(|path| !path.starts_with("house"))
        .collect();
    assert!(outside.is_empty(), "files outside of the home: {outside:?}");
    let folders =
        [&own, &temporary, &here].map(|folder| std::fs::read_dir(folder).expect("reads").count());
    assert_eq!(folders, [0; 3], "folders outside of the home");
    assert_eq!(files(&home.join("archive")).len(), 0);
}

/// S3.34
#[tokio::test]
async fn a_clone_is_made_alike_and_remembers_nothing() {
    let home = lived_in().await;
    assert_snapshot!(fine(home.path(), &["agent", "clone", "rose", "lily"]).await, @"lily is a copy of rose: the same settings, identity files and skills, and no memories.");
    let (rose, lily) = (
        files(&home.path().join("agents/rose")),
        files(&home.path().join("agents/lily")),
    );
    assert_eq!(
        lily.get(Path::new("SOUL.md")),
        rose.get(Path::new("SOUL.md"))
    );
    assert!(
        lily.contains_key(Path::new("skills/tighten/SKILL.md"))
            && !lily.contains_key(Path::new("MEMORY.md"))
    );
    assert_eq!(
        fine(home.path(), &["agent", "list"])
            .await
            .matches("tighten")
            .count(),
        0
    );
    assert!(
        config(home.path()).contains("[agents.lily]\nemoji = \"🌹\""),
        "{}",
        config(home.path())
    );
}

/// S4.27
#[tokio::test]
async fn an_agent_moves_to_another_house() {
    let (home, other) = (lived_in().await, fresh_home().await);
    std::os::unix::fs::symlink("/etc/hostname", home.path().join("agents/rose/link"))
        .expect("links");
    let package = home.path().join("rose.tar.gz");
    let package = package.to_str().expect("text");
    assert_snapshot!(fine(home.path(), &["agent", "export", "rose", "--output", package]).await, @"
    rose is in HOME/rose.tar.gz: 4 files, 2 memories, 4 messages.
    left out, because it is a link or no plain file: link
    ");
    assert_eq!(
        run(
            home.path(),
            &["agent", "export", "rose", "--output", package]
        )
        .await
        .code,
        1,
        "it is there"
    );
    let taken = run(other.path(), &["agent", "import", package]).await;
    assert_eq!(
        (taken.code, taken.stderr.as_str()),
        (
            1,
            "error: there is an agent called rose already. `--as` gives this one another id\n"
        )
    );
    assert_snapshot!(fine(other.path(), &["agent", "import", package, "--as", "rosa"]).await, @"
    rosa is in config.toml, with 4 files, 2 memories, 4 messages.
    1 memory was global at home and is private to rosa here. `--global` lets every agent find it.
    The messages, from 2 places, are kept for the next export. No place and no agent shows them.
    not taken over into [agents.rosa]: name. Set them there if you need them.
    ");
    assert!(
        config(other.path()).contains("[agents.rosa]\nemoji = \"🌹\""),
        "{}",
        config(other.path())
    );
    let mut expected = files(&home.path().join("agents/rose"));
    expected.remove(Path::new("link"));
    assert_eq!(files(&other.path().join("agents/rosa")), expected);
    let of_rosa = |table: &str| {
        format!(
            "SELECT count(*) FROM {table} t JOIN agents a ON a.uid = t.agent_uid WHERE a.slug = 'rosa'"
        )
    };
    assert_eq!(ask(other.path(), &of_rosa("messages")), "2");
    let saved = of_rosa("memories") + " AND t.source = 'saved'";
    assert_eq!(ask(other.path(), &saved), "2");
    let talk = run_with_input(other.path(), &["chat"], "/agent rosa\ngo on\n")
        .await
        .stdout;
    assert!(
        talk.contains("You said: “go on”") && !talk.contains("(message"),
        "what was said elsewhere is not said here: {talk}"
    );
    std::fs::write(other.path().join("junk"), "no package").expect("writes");
    let junk = run(
        other.path(),
        &[
            "agent",
            "import",
            other.path().join("junk").to_str().expect("text"),
        ],
    )
    .await;
    assert_eq!(junk.code, 1);
    assert!(
        junk.stderr.contains("this is not an agent's package"),
        "{}",
        junk.stderr
    );
    let left: Vec<_> = files(other.path())
        .into_keys()
        .filter(|path| path.to_string_lossy().contains("incoming"))
        .collect();
    assert_eq!(left, [] as [PathBuf; 0]);
}

/// What somebody decided meanwhile is not overruled by an agent that comes back.
#[tokio::test]
async fn a_place_that_was_given_away_meanwhile_stays_away() {
    let home = fresh_home().await;
    let with_list = config(home.path()).replace(
        "emoji = \"☕\"",
        "emoji = \"☕\"\nread_memory_from = [\"rose\", \"ada\"] # two",
    );
    std::fs::write(home.path().join("config.toml"), with_list).expect("writes");
    assert_snapshot!(timeless(&fine(home.path(), &["agent", "remove", "rose"]).await), @"
    rose is archived. Its files are in archive/rose-00000000-000000; 0 memories, 0 messages, 0 pins are kept, out of sight.
    no longer bound: web:home:writing
    no longer bound: local:home:writing
    no longer named in: agents.main.read_memory_from
    `parlor agent restore rose-00000000-000000` undoes this.
    ");
    assert!(
        config(home.path()).contains("read_memory_from = [\"ada\"] # two"),
        "{}",
        config(home.path())
    );
    let given = format!(
        "{}\n[[bindings]]\nmatch = \"local:home:writing\"\nagent = \"ada\"\n",
        config(home.path())
    );
    std::fs::write(home.path().join("config.toml"), given).expect("writes");
    assert_snapshot!(fine(home.path(), &["agent", "restore", "rose"]).await, @"
    rose is back, with 0 memories, 0 messages, 0 pins.
    not bound again, because another agent has the place now: web:home:writing
    not bound again, because another agent has the place now: local:home:writing
    ");
    fine(home.path(), &["config", "check"]).await;
    assert!(
        fine(home.path(), &["route", "explain", "local:home:writing"])
            .await
            .starts_with("Ada answers in writing (local:home:writing).")
    );
}

/// A bad edit changes nothing, and a config that is broken already is not edited at all.
#[tokio::test]
async fn a_restore_that_cannot_be_leaves_everything_where_it_was() {
    let home = lived_in().await;
    fine(home.path(), &["agent", "remove", "rose"]).await;
    let right = config(home.path());
    std::fs::write(
        home.path().join("config.toml"),
        format!("{right}\n[agents.flower]\nname = \"Rose\"\n"),
    )
    .expect("writes");
    let (before, rows) = (files(home.path()), counts(home.path()));
    let refused = run(home.path(), &["agent", "restore", "rose"]).await;
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("two agents answer to `rose`")
            || refused.stderr.contains("two agents answer to `Rose`"),
        "{}",
        refused.stderr
    );
    assert_eq!((files(home.path()), counts(home.path())), (before, rows));
    std::fs::write(
        home.path().join("config.toml"),
        format!("{right}\nwrong = 1\n"),
    )
    .expect("writes");
    let broken = run(home.path(), &["agent", "add", "dot"]).await;
    assert_eq!(broken.code, 1);
    assert!(
        broken
            .stderr
            .ends_with("Nothing was changed. Fix config.toml first.\n"),
        "{}",
        broken.stderr
    );
}

/// A home in which Rose has a file in place of her soul, and words of the config.
async fn with_character() -> TempDir {
    let home = fresh_home().await;
    std::fs::create_dir_all(home.path().join("agents/rose/voices")).expect("a folder");
    std::fs::write(
        home.path().join("agents/rose/voices/night.md"),
        "Whispers.\n",
    )
    .expect("writes");
    let keys = "[agents.rose]\npersonality = \"voices/night.md\"\nsystem_prompt = \"\"\"\n# Of the house\nPrices are in euros.\"\"\"\n";
    let text = config(home.path()).replace("[agents.rose]\n", keys);
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    home
}

/// What the prompt of an agent has of both.
async fn character(home: &Path, agent: &str) -> String {
    let prompt = fine(home, &["agent", "prompt", agent]).await;
    let from = prompt
        .find("# voices/night.md")
        .unwrap_or_else(|| panic!("{agent} has no personality: {prompt}"));
    prompt[from..prompt.find("# AGENTS.md").expect("the next file")].to_owned()
}

const NIGHT: &str =
    "# voices/night.md\n\nWhispers.\n\n# system_prompt\n\n# Of the house\nPrices are in euros.\n\n";

/// S0.6, S2.38
#[tokio::test]
async fn info_and_prompt_show_what_the_config_says_about_an_agent() {
    let home = with_character().await;
    assert_eq!(character(home.path(), "rose").await, NIGHT);
    let info = fine(home.path(), &["agent", "info", "rose"]).await;
    assert!(
        info.contains("\npersonality voices/night.md: own\nAGENTS.md: inherited\n"),
        "{info}"
    );
    assert!(info.contains("\nsystem_prompt: 35 bytes\n"), "{info}");
    let json: serde_json::Value =
        serde_json::from_str(&fine(home.path(), &["agent", "info", "rose", "--json"]).await)
            .expect("JSON");
    assert_eq!(
        (&json["personality"], &json["system_prompt_bytes"]),
        (&"voices/night.md".into(), &35.into())
    );
    assert_eq!(json["files"][1]["file"], "SOUL.md");

    std::fs::remove_file(home.path().join("agents/rose/voices/night.md")).expect("it was there");
    let checked = run(home.path(), &["config", "check"]).await;
    assert_eq!(checked.code, 1);
    assert_snapshot!(checked.stderr, @r#"
    error: the file agents/rose/voices/night.md does not exist
      --> HOME/config.toml:43:15
       |
    43 | personality = "voices/night.md"
       |               ^^^^^^^^^^^^^^^^^ no such file in the agent's folder
       |
       = help: write the file, or delete the line to use SOUL.md

    1 problem in config.toml.
    "#);
    for verb in ["info", "prompt"] {
        assert_eq!(
            run(home.path(), &["agent", verb, "rose"]).await.stderr,
            checked.stderr,
            "{verb}"
        );
    }
}

/// S3.18, S3.34, S4.27, S0.69: wherever an agent goes, what the config says about it goes along.
#[tokio::test]
async fn a_personality_goes_wherever_its_agent_goes() {
    let home = with_character().await;
    fine(home.path(), &["agent", "clone", "rose", "lily"]).await;
    assert_eq!(character(home.path(), "lily").await, NIGHT);
    fine(home.path(), &["agent", "rename", "lily", "iris"]).await;
    assert_eq!(character(home.path(), "iris").await, NIGHT);
    fine(home.path(), &["agent", "remove", "iris"]).await;
    fine(home.path(), &["agent", "restore", "iris"]).await;
    assert_eq!(character(home.path(), "iris").await, NIGHT);

    let (other, package) = (fresh_home().await, home.path().join("iris.tar.gz"));
    let package = package.to_str().expect("text");
    fine(
        home.path(),
        &["agent", "export", "iris", "--output", package],
    )
    .await;
    fine(other.path(), &["agent", "import", package]).await;
    assert_eq!(character(other.path(), "iris").await, NIGHT);
    assert_eq!(
        character(home.path(), "rose").await,
        NIGHT,
        "nobody else was touched"
    );
}
