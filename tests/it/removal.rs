//! Words that people had removed are gone from every file of the home, not only from the tables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::cli::{fresh_home, run, run_with_input};
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, Fault};
use crate::tenants::fine;

/// The index has a number before each word, cuts endings off, and leaves a beginning out that the
/// word before has too; a part of the middle is in every form.
const WORD: &str = "Zqvorblexian";
const PART: &[u8] = b"vorblex";

/// Files of the home with the word, in any case.
fn found(home: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![home.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let is_in_name = path.to_string_lossy().to_lowercase().contains("vorblex");
                let bytes = bytes.to_ascii_lowercase();
                if is_in_name || bytes.windows(PART.len()).any(|window| window == PART) {
                    found.push(path.strip_prefix(home).expect("inside").to_owned());
                }
            }
        }
    }
    found.sort();
    found
}

/// Returns when no file has the word any more.
async fn wait_until_gone(home: &Path) {
    for _ in 0..200 {
        if found(home).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("still in {:?}", found(home));
}

const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
[[bindings]]
match = "telegram:topic:-1001:*"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1002:*"
agent = "main"
"#;

#[tokio::test]
async fn nothing_is_left_of_a_purged_agent() {
    let mut house = House::new(TEAM).await;
    // A purged agent takes its turns and answers along.
    house.give_up(Promise::AnsweredOnce);
    house.give_up(Promise::SentOnce);
    house.leave_leftovers();
    house.write("agents/rose/SOUL.md", &format!("A {WORD} gardener."));
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Roses");
    // Rows of others stand between, so that pages are split and moved.
    let other = house.telegram.forum(-1002).topic(6, "Work");
    let mut answers = 0;
    for round in 0..12 {
        topic
            .says(
                ALICE,
                &format!(
                    "/remember {WORD} number {round} {}",
                    "tea ".repeat(round * 9)
                ),
            )
            .await;
        topic.wait_for_sent(round + 1).await;
        house
            .model
            .enqueue(Script::text("A plain answer. ".repeat(round * 13 + 1)));
        other
            .says(ALICE, &"plain words ".repeat(round * 11 + 1))
            .await;
        answers += 1;
        other.wait_for_sent(answers).await;
    }
    let call = |name: &str, arguments| (name.to_owned(), arguments);
    house.model.enqueue(Script::ToolCalls(vec![
        call(
            "file_write",
            json!({ "path": format!("{WORD}.md"), "content": WORD.repeat(100) }),
        ),
        call("memory_note", json!({ "text": format!("a {WORD} note") })),
        call(
            "memory_edit",
            json!({ "action": "add", "text": format!("{WORD} first") }),
        ),
        call(
            "memory_edit",
            json!({ "action": "add", "text": format!("{WORD} second") }),
        ),
        call("memory_search", json!({ "query": WORD })),
        call("file_send", json!({ "path": format!("{WORD}.md") })),
    ]));
    house
        .model
        .enqueue(Script::text(format!("The {WORD} answer.")));
    house
        .telegram
        .fail(
            "sendDocument",
            Fault::Refused(403, "Forbidden: bot was kicked"),
        )
        .once();
    topic.says(ALICE, &format!("tell me of {WORD}")).await;
    topic.wait_for_sent(13).await;
    house.close(gateway).await;
    let before = found(house.home.path());
    assert!(
        before.len() > 4 && before.contains(&PathBuf::from("parlor.db")),
        "{before:?}"
    );
    fine(house.home.path(), &["agent", "purge", "rose", "--yes"]).await;
    assert_eq!(found(house.home.path()), [] as [PathBuf; 0]);
    assert_eq!(
        house.ask("SELECT count(*) FROM messages"),
        "24",
        "main's are there"
    );
    fine(house.home.path(), &["config", "check"]).await;
}

/// The same for one that was removed first, and for one that came in a package.
#[tokio::test]
async fn nothing_is_left_of_a_removed_or_imported_agent() {
    let home = fresh_home().await;
    let talk = format!("/agent rose\nhello {WORD}\n/remember {WORD} tea\n");
    run_with_input(home.path(), &["chat"], &talk).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let package = elsewhere.path().join("rose.tar.gz");
    let package = package.to_str().expect("text");
    fine(home.path(), &["agent", "export", "rose", "-o", package]).await;
    fine(home.path(), &["agent", "import", package, "--as", "rosa"]).await;
    fine(home.path(), &["agent", "remove", "rose"]).await;
    assert!(!found(home.path()).is_empty());
    fine(home.path(), &["agent", "purge", "rose", "--yes"]).await;
    assert!(!found(home.path()).is_empty(), "rosa still has it");
    fine(home.path(), &["agent", "purge", "rosa", "--yes"]).await;
    assert_eq!(found(home.path()), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn a_forgotten_memory_leaves_every_file_while_the_gateway_runs() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Roses");
    for round in 0..20 {
        let word = if round == 7 { WORD } else { "harmless" };
        topic
            .says(
                ALICE,
                &format!("/remember {word} {}", "tea ".repeat(round * 17)),
            )
            .await;
        topic.wait_for_sent(round + 1).await;
    }
    house.settled(&gateway).await;
    assert!(!found(house.home.path()).is_empty());
    topic.says(ALICE, "/forget 8 yes").await;
    topic.wait_for_sent(21).await;
    wait_until_gone(house.home.path()).await;
    topic.says(ALICE, "/memory").await;
    let told = topic.wait_for_sent(22).await;
    assert!(told.text.contains("19"), "{}", told.text);
    house.close(gateway).await;
    assert_eq!(found(house.home.path()), [] as [PathBuf; 0]);
}

/// A process that ends right after the command has no time to wait for.
#[tokio::test]
async fn a_memory_forgotten_right_before_the_end_is_gone() {
    let home = fresh_home().await;
    let saved = run_with_input(home.path(), &["chat"], &format!("/remember {WORD} tea\n")).await;
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    assert!(!found(home.path()).is_empty());
    let forgot = run_with_input(home.path(), &["chat"], "/forget 1 yes\n").await;
    assert!(
        forgot.stdout.contains("has forgotten this"),
        "{}",
        forgot.stdout
    );
    assert_eq!(found(home.path()), [] as [PathBuf; 0]);
    assert_eq!(run(home.path(), &["recall", "tea"]).await.stdout, "");
}

#[tokio::test]
async fn the_words_of_a_deleted_message_leave_every_file() {
    let house = House::new(
        "[access]\nowners = [\"discord:111\"]\nrequire_mention = false\n[[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n",
    )
    .await;
    let discord = house.add_discord("").await;
    let guild = discord.guild(8001, "Garden");
    let thread = guild.text_channel(8101, "general").thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    let mut secret = None;
    for round in 0..10 {
        house
            .model
            .enqueue(Script::text("Noted. ".repeat(round * 40 + 1)));
        let word = if round == 4 { WORD } else { "harmless" };
        let text = format!("my password is {word} {}", "tea ".repeat(round * 20));
        let said = thread.says(fake_discord::BOB, &text).await;
        thread.wait_for_sent(round + 1).await;
        if round == 4 {
            secret = Some(said.message_id);
        }
    }
    gateway.settled().await;
    assert!(!found(house.home.path()).is_empty());
    thread.deletes(secret.expect("one was said")).await;
    wait_until_gone(house.home.path()).await;
    gateway.shutdown().await;
    assert_eq!(found(house.home.path()), [] as [PathBuf; 0]);
}
