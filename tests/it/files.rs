//! Agents and their files, from a message to what Telegram shows; and who gets to use which tool.

use std::sync::Arc;

use insta::assert_snapshot;
use parlor::channels::local::{LocalChannel, Shown, Whole};
use parlor::gateway::Gateway;
use parlor::home::Home;
use serde_json::{Value, json};

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Fault};
use crate::support::house::parlor;

/// Alice owns the bot, and Bob is a guest in a topic of Rose's.
const ROSE: &str = r#"
[access]
owners = ["telegram:111"]
[agents.rose]
[agents.ada]
tools = { allow = ["now", "file_read"] }
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
"#;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n a picture";

/// What tools answered, as the model's last request has it.
fn tool_results(house: &House) -> Vec<String> {
    let messages = house.model.last_request().messages;
    messages
        .into_iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text)
        .collect()
}

fn send(path: &str, caption: Option<&str>) -> Script {
    Script::tool_call("file_send", json!({ "path": path, "caption": caption }))
}

fn put(house: &House, path: &str, content: &[u8]) {
    house.write(path, "");
    std::fs::write(house.home.path().join(path), content).expect("it can be written");
}

fn copies(house: &House) -> usize {
    std::fs::read_dir(house.home.path().join("outgoing")).map_or(0, Iterator::count)
}

/// S2.11, S4.51 by person: the model hears which policy it was, and the turn goes on.
#[tokio::test]
async fn a_guest_cannot_make_an_agent_write() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house.model.enqueue(Script::tool_call(
        "file_write",
        json!({ "path": "note.md", "content": "Bob was here" }),
    ));
    house.model.enqueue(Script::text("I may not."));
    rose.says(BOB, "@parlor_bot write it down").await;
    assert_eq!(rose.wait_for_sent(1).await.text, "I may not.");
    let offered = house.model.last_request().tools;
    let has = |tool: &str| offered.contains(&tool.to_owned());
    assert!(
        has("file_read") && !has("file_write") && !has("web_fetch"),
        "{offered:?}"
    );
    assert_snapshot!(tool_results(&house).join("\n"), @"The tool `file_write` was not run: a guest may use tools up to `look` (`[access.tools]`), and this is a `change` tool. Go on without it.");
    assert!(
        !house
            .home
            .path()
            .join("agents/rose/workspace/note.md")
            .exists()
    );

    house.model.enqueue(Script::tool_call(
        "file_write",
        json!({ "path": "note.md", "content": "Alice was here" }),
    ));
    rose.says(ALICE, "@parlor_bot write it down").await;
    rose.wait_for_sent(2).await;
    assert_eq!(
        tool_results(&house).last().map(String::as_str),
        Some("Wrote 14 bytes to `note.md`.")
    );
    house.close(gateway).await;
}

/// S2.8, S2.50, S4.51 by agent.
#[tokio::test]
async fn a_switch_changes_the_tools() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(ALICE, "@parlor_bot hello").await;
    rose.wait_for_sent(1).await;
    assert!(
        house
            .model
            .last_request()
            .tools
            .contains(&"web_fetch".to_owned())
    );
    rose.says(ALICE, "/agent ada").await;
    rose.wait_for_sent(2).await;
    house.model.enqueue(Script::tool_call(
        "web_fetch",
        json!({ "url": "https://example.org" }),
    ));
    rose.says(ALICE, "@parlor_bot hello").await;
    rose.wait_for_sent(3).await;
    assert_eq!(house.model.last_request().tools, ["now", "file_read"]);
    assert_snapshot!(tool_results(&house).join("\n"), @"The tool `web_fetch` was not run: the agent's `tools.allow` does not name it. Go on without it.");
    house.close(gateway).await;
}

#[tokio::test]
async fn files_follow_the_answer_into_its_topic() {
    let house = House::new(ROSE).await;
    put(&house, "agents/rose/workspace/out/a rose.png", PNG);
    put(
        &house,
        "agents/rose/workspace/report \"1\".pdf",
        &vec![b'%'; 3_000_000],
    );
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house.model.enqueue(send("out/a rose.png", Some("A rose")));
    house.model.enqueue(send("report \"1\".pdf", None));
    house.model.enqueue(Script::text("Here they are."));
    rose.says(ALICE, "@parlor_bot send me everything").await;
    house.settled(&gateway).await;

    let sent = house.telegram.sent();
    let shown: Vec<_> = sent
        .iter()
        .map(|sent| (sent.thread, sent.text.as_str(), &sent.document["file_name"]))
        .collect();
    let named = [
        Value::Null,
        json!("a rose.png"),
        json!("report %221%22.pdf"),
    ];
    assert_eq!(
        shown,
        [
            (Some(101), "Here they are.", &named[0]),
            (Some(101), "A rose", &named[1]),
            (Some(101), "", &named[2])
        ]
    );
    assert_eq!(sent[2].document["size"], 3_000_000);
    assert_eq!(
        (
            house.telegram.calls("sendPhoto").len(),
            house.telegram.calls("sendDocument").len()
        ),
        (1, 1)
    );
    assert_eq!(copies(&house), 0, "what was sent is not kept");
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE file IS NOT NULL"),
        "0"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_picture_that_is_no_photo_for_telegram_goes_as_a_document() {
    let house = House::new(ROSE).await;
    put(&house, "agents/main/workspace/wide.png", PNG);
    let gateway = house.open().await;
    house
        .telegram
        .fail(
            "sendPhoto",
            Fault::Refused(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"),
        )
        .once();
    house.model.enqueue(send("wide.png", Some("wide")));
    house.model.enqueue(Script::text(""));
    let alice = house.telegram.dm(ALICE);
    alice.says("the wide one").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        ["Here is wide.png.", "wide"],
        "an agent that says nothing has still answered"
    );
    assert_eq!(
        (
            house.telegram.calls("sendPhoto").len(),
            house.telegram.calls("sendDocument").len()
        ),
        (1, 1)
    );
    gateway.shutdown().await;
}

/// A file that Telegram finds too large, and one whose copy is gone: the place is told.
#[tokio::test]
async fn a_file_that_cannot_be_sent_is_told_about() {
    let house = House::new(ROSE).await;
    put(&house, "agents/main/workspace/a.bin", b"abc");
    put(&house, "agents/main/workspace/b.bin", b"abc");
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house
        .telegram
        .fail(
            "sendDocument",
            Fault::Refused(413, "Request Entity Too Large"),
        )
        .once();
    house.model.enqueue(send("a.bin", None));
    house.model.enqueue(Script::text("one"));
    alice.says("first").await;
    house.settled(&gateway).await;
    let held = house.telegram.hold("sendMessage");
    house.model.enqueue(send("b.bin", None));
    house.model.enqueue(Script::text("two"));
    alice.says("second").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE file IS NOT NULL", "1")
        .await;
    std::fs::remove_dir_all(house.home.path().join("outgoing")).expect("it is there");
    held.release();
    house.settled(&gateway).await;
    assert_snapshot!(alice.texts().join("\n"), @"
    one
    I have a.bin for you, but Telegram does not take a file of 1 MB from a bot.
    two
    I wanted to send b.bin, but it is gone. Please ask for it again.
    ");
    gateway.shutdown().await;
}

/// The copy was made when the agent asked, so neither a restart nor a change matters.
#[tokio::test]
async fn after_a_kill_the_file_is_sent_as_it_was() {
    let house = House::new(ROSE).await;
    put(&house, "agents/main/workspace/a.txt", b"as it was");
    let broken = house
        .telegram
        .fail("sendDocument", Fault::Html(502))
        .until_dropped();
    let process = house.spawn().await;
    house.model.enqueue(send("a.txt", None));
    house.model.enqueue(Script::text("here"));
    house.telegram.dm(ALICE).says("send it").await;
    house.telegram.wait_for_calls("sendDocument", 1).await;
    process.kill().await;
    drop(broken);
    put(&house, "agents/main/workspace/a.txt", b"changed");
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state = 'sent'", "2")
        .await;
    let texts: Vec<_> = house
        .telegram
        .sent()
        .iter()
        .map(|sent| sent.document["text"].clone())
        .collect();
    assert_eq!(texts, [Value::Null, json!("as it was")]);
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_full_workspace_takes_no_files_of_people() {
    let house = House::new("[access]\ndms = \"open\"\n[agents.main]\nworkspace_mb = 0\n").await;
    let gateway = house.open().await;
    house.telegram.keeps_file("f", b"abc");
    let document = json!({ "file_id": "f", "file_unique_id": "f", "file_name": "a.txt" });
    house
        .telegram
        .dm(CAROL)
        .says("")
        .without("text")
        .with("document", document)
        .await;
    house.settled(&gateway).await;
    assert_eq!(
        house.telegram.dm(CAROL).texts(),
        ["re: [document a.txt, not saved: the workspace is full]"]
    );
    gateway.shutdown().await;
}

/// The demo model can use tools, so files can be tried without an account anywhere.
#[tokio::test]
async fn the_terminal_is_told_where_the_file_is() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("config.toml"), "").expect("it can be written");
    let (channel, mut terminal) = LocalChannel::new();
    let gateway = Gateway::start_local(Home::new(home.path()), Arc::new(channel))
        .await
        .expect("it starts");
    let place: parlor::domain::SessionKey = "local:home".parse().expect("a key");
    for line in [
        r#"use file_write {"path": "a.md", "content": "hello"}"#,
        r#"use file_send {"path": "a.md", "caption": "a note"}"#,
    ] {
        assert!(terminal.say(place.clone(), line.to_owned()).await);
        gateway.settled().await;
    }
    let mut shown = Vec::new();
    while let Ok(next) = terminal.screen.try_recv() {
        if let Shown::Whole(Whole {
            speaker: None,
            text,
            ..
        }) = next
        {
            shown.push(text.replace(&home.path().display().to_string(), "HOME"));
        }
    }
    assert_eq!(
        shown,
        ["A file for you (a note): HOME/agents/main/workspace/a.md"]
    );
    gateway.shutdown().await;
}

/// S3.2, S2.47
#[tokio::test]
async fn names_in_the_config_that_nothing_has_are_shown_with_the_nearest() {
    let home = tempfile::tempdir().expect("a folder");
    let config = r#"
[risk_profiles.careful]
deny = ["web_fetsh"]
[agents.rose]
risk_profile = "carefull"
tools = { allow = ["file_raed", "juggle"] }
access = { read = ["rosa", "rose"] }
[shared_paths.handbook]
write = ["roze"]
[access.tools]
guest = "everything"
"#;
    std::fs::write(home.path().join("config.toml"), config).expect("it can be written");
    let output = parlor(home.path())
        .args(["config", "check"])
        .output()
        .await
        .expect("it runs");
    let told = String::from_utf8(output.stderr)
        .expect("text")
        .replace(&home.path().display().to_string(), "HOME");
    assert_snapshot!(told, @r#"
    error: unknown tool `web_fetsh`
     --> HOME/config.toml:3:9
      |
    3 | deny = ["web_fetsh"]
      |         ^^^^^^^^^^^ no tool has this name
      |
      = help: did you mean `web_fetch`?

    error: unknown risk profile `carefull`
     --> HOME/config.toml:5:16
      |
    5 | risk_profile = "carefull"
      |                ^^^^^^^^^^ this file has no [risk_profiles.carefull]
      |
      = help: did you mean `careful`?

    error: unknown tool `file_raed`
     --> HOME/config.toml:6:20
      |
    6 | tools = { allow = ["file_raed", "juggle"] }
      |                    ^^^^^^^^^^^ no tool has this name
      |
      = help: did you mean `file_read`?

    error: unknown tool `juggle`
     --> HOME/config.toml:6:33
      |
    6 | tools = { allow = ["file_raed", "juggle"] }
      |                                 ^^^^^^^^ no tool has this name
      |
      = help: the tools are now, skill, web_fetch, file_read, file_write, file_edit, file_list, file_search, file_delete, file_send, spawn, agent_send, message_send, schedule, memory_search, memory_save, memory_note, memory_edit, transcript_search

    error: unknown agent `rosa`
     --> HOME/config.toml:7:20
      |
    7 | access = { read = ["rosa", "rose"] }
      |                    ^^^^^^ no agent has this id
      |
      = help: did you mean `rose`? If not, add a section [agents.rosa]

    error: `rose` needs no access to itself
     --> HOME/config.toml:7:28
      |
    7 | access = { read = ["rosa", "rose"] }
      |                            ^^^^^^ this is the agent's own id
      |
      = help: delete this name; an agent always has its own workspace

    error: unknown agent `roze`
     --> HOME/config.toml:9:10
      |
    9 | write = ["roze"]
      |          ^^^^^^ no agent has this id
      |
      = help: did you mean `rose`? If not, add a section [agents.roze]

    error: `guest` cannot be `everything`
      --> HOME/config.toml:11:9
       |
    11 | guest = "everything"
       |         ^^^^^^^^^^^^ not one of the choices
       |
       = help: the choices are `look`, `change`, `reach`

    8 problems in config.toml.
    "#);
}

/// S2.13, S3.2, S3.11
#[tokio::test]
async fn agent_info_tells_the_tools_and_which_rule_refuses_the_others() {
    let home = tempfile::tempdir().expect("a folder");
    let config = r#"
[risk_profiles.careful]
allow = ["now", "web_fetch", "file_read", "file_write", "file_edit", "file_delete"]
deny = ["file_edit"]
max_risk = "change"
[agents.rose]
risk_profile = "careful"
tools = { deny = ["file_delete"] }
access = { read = ["main"] }
[shared_paths.handbook]
write = ["rose"]
"#;
    std::fs::write(home.path().join("config.toml"), config).expect("it can be written");
    let output = parlor(home.path())
        .args(["agent", "info", "rose"])
        .output()
        .await
        .expect("it runs");
    let told = String::from_utf8(output.stdout).expect("text");
    let about_tools = |line: &&str| {
        ["tools", "refused: file_", "refused: web_", "also"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let lines: Vec<&str> = told.lines().filter(about_tools).collect();
    assert_snapshot!(lines.join("\n"), @"
    tools when an owner asks: now, file_read, file_write
    tools when an admin asks: now, file_read, file_write
    tools when a member asks: now, file_read, file_write
    tools when a guest asks: now, file_read
    refused: web_fetch: the risk profile `careful` stops at `change`, and this is a `reach` tool
    refused: file_edit: the risk profile `careful` denies it
    refused: file_list: the risk profile `careful` does not allow it
    refused: file_search: the risk profile `careful` does not allow it
    refused: file_delete: the agent's `tools.deny` names it
    refused: file_send: the risk profile `careful` does not allow it
    also reaches: @main/ (read)
    also reaches: shared/handbook/ (read and write)
    ");
}

/// What a tool wants sent is written with its result: a kill between the two neither loses nor
/// repeats it.
#[tokio::test]
async fn a_kill_before_the_answer_sends_the_file_once() {
    let house = House::new(ROSE).await;
    put(&house, "agents/main/workspace/a.bin", b"abc");
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(send("a.bin", None));
    house.model.enqueue(Script::text("never seen").held());
    alice.says("send it").await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    house.model.enqueue(Script::text("Here it is."));
    let process = house.spawn().await;
    alice.wait_for_sent(2).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(alice.texts(), ["Here it is.", ""]);
    assert_eq!(house.telegram.calls("sendDocument").len(), 1);
    assert_eq!(house.model.journal().len(), 3, "the tool ran once");
    process.stop().await;
}

/// S6.6
#[tokio::test]
async fn a_folder_outside_the_home_is_open_to_its_agents_and_nothing_beside_it() {
    let around = tempfile::TempDir::new().expect("a folder");
    let around = around.path().canonicalize().expect("it is there");
    let outside = around.join("handbook");
    std::fs::create_dir(&outside).expect("it can be made");
    std::fs::write(outside.join("rules.md"), "Be kind.").expect("it can be written");
    std::fs::write(around.join("secret.md"), "hunter2").expect("it can be written");
    std::os::unix::fs::symlink(around.join("secret.md"), outside.join("link.md")).expect("a link");
    std::os::unix::fs::symlink(&around, outside.join("up")).expect("a link");
    let shared = format!(
        "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n[agents.rose]\n[agents.ada]\n[agents.main]\n\
         [shared_paths.handbook]\npath = \"{}\"\nread = [\"ada\"]\nwrite = [\"rose\"]\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:102\"\nagent = \"ada\"\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:103\"\nagent = \"main\"\n",
        outside.display()
    );
    let house = House::new(&shared).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (rose, ada, main) = (
        forum.topic(101, "Rose"),
        forum.topic(102, "Ada"),
        forum.topic(103, "Main"),
    );
    let mut told = Vec::new();
    for (name, topic, calls) in [
        (
            "rose",
            &rose,
            vec![
                ("file_read", json!({ "path": "shared/handbook/rules.md" })),
                (
                    "file_write",
                    json!({ "path": "shared/handbook/new.md", "content": "Be brief." }),
                ),
                (
                    "file_read",
                    json!({ "path": "shared/handbook/../secret.md" }),
                ),
                ("file_read", json!({ "path": "shared/handbook/link.md" })),
                (
                    "file_read",
                    json!({ "path": "shared/handbook/up/secret.md" }),
                ),
                (
                    "file_write",
                    json!({ "path": "shared/handbook/up/secret.md", "content": "x" }),
                ),
                (
                    "file_write",
                    json!({ "path": "shared/handbook/link.md", "content": "x" }),
                ),
                ("file_list", json!({ "path": "shared/handbook" })),
            ],
        ),
        (
            "ada",
            &ada,
            vec![
                ("file_read", json!({ "path": "shared/handbook/new.md" })),
                (
                    "file_write",
                    json!({ "path": "shared/handbook/new.md", "content": "x" }),
                ),
            ],
        ),
        (
            "main",
            &main,
            vec![
                ("file_read", json!({ "path": "shared/handbook/rules.md" })),
                ("file_list", json!({})),
            ],
        ),
    ] {
        for (number, (tool, arguments)) in calls.into_iter().enumerate() {
            house.model.enqueue(Script::tool_call(tool, arguments));
            topic.says(ALICE, "go on").await;
            let text = topic.wait_for_sent(number + 1).await.text;
            told.push(format!("{name} {tool}: {}", text.replace('\n', " | ")));
        }
    }
    let all = told.join("\n");
    assert!(!all.contains("hunter2"), "{all}");
    assert!(told[0].contains("Be kind."), "{all}");
    assert!(told[1].contains("Wrote 9 bytes"), "{all}");
    assert!(told[7].contains("rules.md"), "{all}");
    assert!(told[8].contains("Be brief."), "{all}");
    for refused in [2, 3, 4, 5, 6, 9, 10] {
        let text = &told[refused];
        let did = ["Wrote", "Be kind", "Be brief"];
        assert!(!did.iter().any(|did| text.contains(did)), "{text}");
    }
    assert!(!told[11].contains("handbook"), "{all}");
    let secret = std::fs::read_to_string(around.join("secret.md")).expect("it is there");
    let new = std::fs::read_to_string(outside.join("new.md")).expect("it is there");
    assert_eq!((secret.as_str(), new.as_str()), ("hunter2", "Be brief."));
    house.close(gateway).await;
}
