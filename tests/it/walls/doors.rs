//! Doors: what the operator opens is open, as far as it says, and marked with whose it is.
//! Otherwise the walls would prove nothing.

use serde_json::{Value, json};

use super::{SECRET, TEAM, Walls, tries};
use crate::support::fake_model::Script;

fn opened(keys: &str, rest: &str) -> String {
    format!(
        "{}{rest}",
        TEAM.replace("[agents.rose]\n", &format!("[agents.rose]\n{keys}\n"))
    )
}

async fn rose_calls(walls: &Walls, calls: Vec<(&str, Value)>) -> Vec<String> {
    let calls = calls
        .into_iter()
        .map(|(name, arguments)| (name.to_owned(), arguments))
        .collect();
    walls
        .house
        .model
        .enqueue_when("go on", Script::ToolCalls(calls));
    walls.says(&walls.rose, "go on").await;
    walls.results()
}

/// The secret is where Ada's own tools find it.
#[tokio::test]
async fn ada_herself_finds_all_of_it() {
    let walls = Walls::new(TEAM).await;
    let calls = [
        ("file_read", json!({ "path": "vault.md" })),
        ("file_search", json!({ "pattern": "vault" })),
        ("memory_search", json!({ "query": "vault" })),
        ("skill", json!({ "name": "vault" })),
        ("transcript_search", json!({ "words": "vault" })),
    ];
    let count = calls.len();
    walls.house.model.enqueue(Script::ToolCalls(
        calls
            .map(|(name, arguments)| (name.to_owned(), arguments))
            .to_vec(),
    ));
    walls.says(&walls.ada, "look for the vault").await;
    let asked = walls.read_by("Ada").pop().expect("asked");
    let found = asked
        .messages
        .iter()
        .filter(|(role, text)| role == "tool" && text.contains(SECRET));
    assert_eq!(found.count(), count, "{:?}", asked.messages);
    assert!(asked.system.contains(SECRET));
    walls.end().await;
}

/// S3.11, S4.5: her files, for reading; what she remembers stays hers.
#[tokio::test]
async fn read_access_opens_the_workspace_and_nothing_beside_it() {
    let walls = Walls::new(&opened("access = { read = [\"ada\"] }", "")).await;
    let told = rose_calls(
        &walls,
        vec![
            ("file_read", json!({ "path": "@ada/vault.md" })),
            (
                "file_write",
                json!({ "path": "@ada/vault.md", "content": "x" }),
            ),
            ("file_read", json!({ "path": "@ada/../MEMORY.md" })),
            (
                "file_read",
                json!({ "path": "../../ada/workspace/vault.md" }),
            ),
            ("memory_search", json!({ "query": "vault" })),
            ("skill", json!({ "name": "vault" })),
        ],
    )
    .await;
    insta::assert_snapshot!(told.join("\n---\n"), @"
    The vault code is zinnober4711.

    ---
    `@ada` is open to you for reading only, by the access list of the config. Nothing was changed.
    ---
    `@ada/../MEMORY.md` leads out of the workspace. Paths begin in your workspace and have no `..`, such as `notes/today.md`.
    ---
    `../../ada/workspace/vault.md` leads out of the workspace. Paths begin in your workspace and have no `..`, such as `notes/today.md`.
    ---
    Nothing in memory has any of these words.
    ---
    You have no skill `vault`. You have: poems.
    ");
    walls.end().await;
}

/// S3.12, S3.14
#[tokio::test]
async fn write_access_opens_the_workspace_both_ways() {
    let walls = Walls::new(&opened("access = { write = [\"ada\"] }", "")).await;
    let told = rose_calls(
        &walls,
        vec![
            (
                "file_write",
                json!({ "path": "@ada/from-rose.md", "content": "hello" }),
            ),
            (
                "file_write",
                json!({ "path": "@ada/../SOUL.md", "content": "hello" }),
            ),
        ],
    )
    .await;
    insta::assert_snapshot!(told.join("\n---\n"), @"
    Wrote 5 bytes to `@ada/from-rose.md`.
    ---
    `@ada/../SOUL.md` leads out of the workspace. Paths begin in your workspace and have no `..`, such as `notes/today.md`.
    ");
    let read = rose_calls(
        &walls,
        vec![("file_read", json!({ "path": "@ada/vault.md" }))],
    )
    .await;
    assert!(
        read.last().is_some_and(|text| text.contains(SECRET)),
        "{read:?}"
    );
    walls.end().await;
}

/// S3.19, S3.21: every row of hers is marked, her files and conversations stay shut.
#[tokio::test]
async fn what_is_read_from_another_memory_says_whose_it_is() {
    let walls = Walls::new(&opened("read_memory_from = [\"ada\"]", "")).await;
    let found = rose_calls(
        &walls,
        vec![("memory_search", json!({ "query": "vault", "limit": 30 }))],
    )
    .await
    .remove(0);
    assert!(
        found.contains("The vault code is") && found.contains("vault code, vault code: "),
        "files and rows: {found}"
    );
    assert!(
        found
            .lines()
            .all(|line| !line.contains(SECRET) || line.starts_with("- [ada] ")),
        "{found}"
    );
    walls.says(&walls.rose, "what is the vault code").await;
    let asked = walls.read_by("Rose").pop().expect("asked");
    let recalled = asked
        .messages
        .iter()
        .find(|(_, text)| text.contains("[From memory"))
        .expect("a reminder");
    let of_ada: Vec<&str> = recalled
        .1
        .lines()
        .filter(|line| line.contains(SECRET))
        .collect();
    assert!(
        !of_ada.is_empty() && of_ada.iter().all(|line| line.starts_with("- [ada] ")),
        "{}",
        recalled.1
    );

    let home = walls.house.home.path().to_owned();
    for tool in ["file_read", "file_search", "skill", "transcript_search"] {
        let calls = tries(tool, &home)
            .expect("a case")
            .into_iter()
            .map(|arguments| (tool, arguments))
            .collect();
        for told in rose_calls(&walls, calls).await {
            assert!(!told.contains(SECRET) || told == found, "{tool}: {told}");
        }
    }
    walls.end().await;
}

/// S0.2: whoever made it.
#[tokio::test]
async fn a_global_memory_is_for_everybody_and_says_whose_it_is() {
    let walls = Walls::new(TEAM).await;
    walls
        .says(&walls.ada, "/remember --global The vault opens at nine")
        .await;
    let found = rose_calls(&walls, vec![("memory_search", json!({ "query": "vault" }))])
        .await
        .remove(0);
    assert!(
        found.starts_with("- [ada] ") && found.ends_with(": The vault opens at nine"),
        "{found}"
    );
    walls.rose_knows_nothing("a global memory beside private ones");
    walls.end().await;
}

/// S4.5
#[tokio::test]
async fn a_shared_folder_is_for_those_it_names() {
    let rest = "[shared_paths.handbook]\nread = [\"rose\"]\nwrite = [\"ada\"]\n[shared_paths.private]\nwrite = [\"ada\"]\n";
    let walls = Walls::new(&opened("", rest)).await;
    walls.house.write("shared/handbook/a.md", "for both");
    walls.house.write("shared/private/a.md", SECRET);
    let told = rose_calls(
        &walls,
        vec![
            ("file_read", json!({ "path": "shared/handbook/a.md" })),
            (
                "file_write",
                json!({ "path": "shared/handbook/a.md", "content": "x" }),
            ),
            ("file_read", json!({ "path": "shared/private/a.md" })),
            (
                "file_read",
                json!({ "path": "shared/handbook/../private/a.md" }),
            ),
            ("file_list", json!({ "path": "shared" })),
        ],
    )
    .await;
    insta::assert_snapshot!(told.join("\n---\n"), @"
    for both
    ---
    `shared/handbook` is open to you for reading only, by the access list of the config. Nothing was changed.
    ---
    `shared/private` is not open to you. Open besides your own: `shared/handbook`.
    ---
    `shared/handbook/../private/a.md` leads out of the workspace. Paths begin in your workspace and have no `..`, such as `notes/today.md`.
    ---
    `shared` is not open to you. Open besides your own: `shared/handbook`.
    ");
    walls.rose_knows_nothing("a shared folder");
    walls.end().await;
}
