//! The home folder is everything: it can be moved, and nothing of it is anywhere else.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ALICE;
use crate::support::house::{Process, ask, parlor, wait_until_stored};

const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
[agents.ada]
[shared_paths.handbook]
write = ["rose"]
[[bindings]]
match = "telegram:topic:-1001:*"
agent = "main"
"#;

/// Where a program might be tempted to write besides its home.
struct Elsewhere {
    folders: TempDir,
}

impl Elsewhere {
    const NAMES: [&str; 5] = ["home", "work", "temporary", "xdg-state", "xdg-config"];

    fn new() -> Self {
        let folders = tempfile::tempdir().expect("a folder");
        Self::NAMES
            .iter()
            .for_each(|name| std::fs::create_dir(folders.path().join(name)).expect("a folder"));
        Elsewhere { folders }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.folders.path().join(name)
    }

    fn start(&self, home: &Path) -> Process {
        let mut command = parlor(home);
        command
            .arg("run")
            .current_dir(self.folder("work"))
            .env("HOME", self.folder("home"))
            .env("TMPDIR", self.folder("temporary"));
        command
            .env("XDG_STATE_HOME", self.folder("xdg-state"))
            .env("XDG_CONFIG_HOME", self.folder("xdg-config"));
        Process::start_as(command, home)
    }

    fn is_empty(&self) -> bool {
        let empty = |name: &str| {
            std::fs::read_dir(self.folder(name))
                .expect("it is there")
                .next()
                .is_none()
        };
        Self::NAMES.iter().all(|name| empty(name))
    }
}

fn call(name: &str, arguments: serde_json::Value) -> (String, serde_json::Value) {
    (name.to_owned(), arguments)
}

/// Every file below a folder whose name ends like this.
fn ending(folder: &Path, end: &str) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => open.push(path),
                false if path.to_string_lossy().ends_with(end) => {
                    found.push(entry.file_name().to_string_lossy().into_owned());
                }
                false => {}
            }
        }
    }
    found
}

/// S3.1, S4.2; S0.57: three agents, and one database. What is not in an agent's folder is in there,
/// under its uid.
///
/// The process is killed with a question under way, the folder gets another path, and everything
/// goes on.
#[tokio::test]
async fn a_home_that_was_moved_goes_on_where_it_stopped() {
    let house = House::new(TEAM).await;
    let skill = "---\nname: poems\ndescription: How poems are made.\n---\nIn short lines.\n";
    house.write("agents/rose/skills/poems/SKILL.md", skill);
    house.write("agents/rose/SOUL.md", "Every sentence pays its rent.");
    let elsewhere = Elsewhere::new();
    let process = elsewhere.start(house.home.path());
    let topic = house.telegram.forum(-1001).topic(5, "Roses");
    topic.says(ALICE, "/agent rose").await;
    topic.wait_for_sent(1).await;
    topic.says(ALICE, "/remember Ann likes green tea").await;
    topic.wait_for_sent(2).await;
    house.model.enqueue(Script::ToolCalls(vec![
        call(
            "file_write",
            json!({ "path": "draft.md", "content": "roses are red" }),
        ),
        call(
            "file_write",
            json!({ "path": "shared/handbook/a.md", "content": "for everybody" }),
        ),
        call("memory_note", json!({ "text": "wrote a draft" })),
        call(
            "memory_edit",
            json!({ "action": "add", "text": "Ann reads drafts on Fridays." }),
        ),
    ]));
    house.model.enqueue(Script::text("It is written."));
    topic.says(ALICE, "write a draft").await;
    topic.wait_for_sent(3).await;
    house
        .model
        .enqueue_when("read it out", Script::text("lost with the process").held());
    topic.says(ALICE, "read it out").await;
    house.model.wait_for_open(1).await;
    house.telegram.all_confirmed().await;
    process.kill().await;

    let old = house.home.path().to_owned();
    let parent = tempfile::tempdir().expect("a folder");
    let new = parent.path().join("somewhere else");
    std::fs::rename(&old, &new).expect("it can be moved");
    let asked = house.model.journal().len();
    house.model.release();
    house.model.enqueue_when(
        "read it out",
        Script::ToolCalls(vec![
            call("file_read", json!({ "path": "draft.md" })),
            call("file_read", json!({ "path": "shared/handbook/a.md" })),
            call("memory_search", json!({ "query": "green" })),
            call("memory_search", json!({ "query": "wrote" })),
            call("skill", json!({ "name": "poems" })),
        ]),
    );
    let process = elsewhere.start(&new);
    topic.wait_for_sent(4).await;
    let request = house.model.last_request();
    assert!(house.model.journal().len() > asked, "it was asked again");
    assert!(
        request.system.starts_with("You are Rose") && request.system.contains("pays its rent"),
        "{}",
        request.system
    );
    assert!(
        request.system.contains("Ann reads drafts on Fridays."),
        "{}",
        request.system
    );
    let results: Vec<&str> = request
        .messages
        .iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text.as_str())
        .collect();
    for (result, expected) in results.iter().zip([
        "roses are red",
        "for everybody",
        "green tea",
        "wrote a draft",
        "In short lines.",
    ]) {
        assert!(result.contains(expected), "{expected}: {results:?}");
    }
    assert_eq!(results.len(), 5);
    let said: Vec<&str> = request
        .messages
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(
        said.contains(&"It is written."),
        "the conversation goes on: {said:?}"
    );
    wait_until_stored(
        &new,
        "SELECT count(*) FROM outbox WHERE state <> 'sent'",
        "0",
    )
    .await;
    assert_eq!(process.stop().await, 0);

    assert!(!old.exists(), "nothing is made where the home was");
    assert!(elsewhere.is_empty(), "nothing is written anywhere else");
    assert_eq!(
        ending(&new, ".db"),
        ["parlor.db"],
        "one database for all agents"
    );
    let rose = new.join("agents/rose");
    for part in [
        "SOUL.md",
        "MEMORY.md",
        "memory",
        "skills/poems/SKILL.md",
        "workspace/draft.md",
    ] {
        assert!(rose.join(part).exists(), "{part} is in the agent's folder");
    }
    let of_rose = |table: &str| {
        ask(
            &new,
            &format!(
                "SELECT count(*) FROM {table} t JOIN agents a ON a.uid = t.agent_uid WHERE a.slug = 'rose'"
            ),
        )
    };
    assert_eq!(
        (of_rose("pins"), of_rose("turns"), of_rose("messages")),
        ("1".into(), "2".into(), "2".into())
    );
}
