//! The identity files in the home folder are the operator's: agents inherit them, and nothing but
//! `init` ever writes one.

use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{TEAM, Walls};
use crate::cli::run;
use crate::support::fake_model::Script;

const FILES: [&str; 4] = ["IDENTITY.md", "SOUL.md", "AGENTS.md", "USER.md"];

/// Each with its text and the time it was written; also whether the one that was not there still is
/// not.
fn state(home: &Path) -> Vec<(String, SystemTime)> {
    assert!(!home.join("TOOLS.md").exists(), "nobody makes one");
    let one = |file: &str| {
        let path = home.join(file);
        (
            std::fs::read_to_string(&path).expect("reads"),
            path.metadata()
                .and_then(|data| data.modified())
                .expect("a time"),
        )
    };
    FILES.map(one).to_vec()
}

/// Every tool that changes something, at every way to a root file.
fn tries(home: &Path) -> Vec<(String, Value)> {
    let paths = |file: &str| {
        let absolute = home.join(file).display().to_string();
        [
            file.to_owned(),
            format!("../{file}"),
            format!("../../{file}"),
            format!("../../../{file}"),
            absolute,
            format!("root/{file}"),
        ]
    };
    let mut calls = Vec::new();
    for path in FILES
        .iter()
        .chain(&["TOOLS.md"])
        .flat_map(|file| paths(file))
    {
        calls.push((
            "file_write".to_owned(),
            json!({ "path": path, "content": "taken over" }),
        ));
        calls.push((
            "file_edit".to_owned(),
            json!({ "path": path, "old": "house", "new": "taken over" }),
        ));
        calls.push(("file_delete".to_owned(), json!({ "path": path })));
    }
    calls.push((
        "memory_edit".to_owned(),
        json!({ "action": "add", "text": "SOUL.md: taken over" }),
    ));
    calls.push((
        "memory_note".to_owned(),
        json!({ "text": "taken over", "path": "../../SOUL.md" }),
    ));
    calls
}

/// S1.55, and more: there is no way to have `USER.md` written from a chat either.
#[tokio::test]
async fn nothing_writes_the_root_identity_files() {
    let walls = Walls::new(TEAM).await;
    let home = walls.house.home.path().to_owned();
    for file in FILES {
        walls.house.write(file, &format!("{file} of the house\n"));
    }
    std::os::unix::fs::symlink(&home, home.join("agents/rose/workspace/root")).expect("a link");
    let before = state(&home);
    for calls in tries(&home).chunks(40) {
        walls
            .house
            .model
            .enqueue_when("take over", Script::ToolCalls(calls.to_vec()));
        walls.says(&walls.rose, "take over").await;
        assert_eq!(
            walls.results().len(),
            calls.len(),
            "every call was answered"
        );
        assert_eq!(state(&home), before);
    }
    for text in [
        "/remember the soul of the house",
        "/new",
        "/agent ada",
        "/agent reset",
        "/forget soul",
    ] {
        walls.says(&walls.rose, text).await;
    }
    let asked = walls.read_by("Rose").pop().expect("she was asked");
    assert!(
        asked.system.contains("USER.md of the house"),
        "she inherits them: {}",
        asked.system
    );
    let Walls { house, gateway, .. } = walls;
    house.close(gateway).await;
    let verbs: [&[&str]; 8] = [
        &["agent", "add", "dot"],
        &["agent", "clone", "rose", "lily"],
        &["agent", "rename", "dot", "spot"],
        &["agent", "default", "spot"],
        &["agent", "remove", "rose"],
        &["agent", "restore", "rose"],
        &["agent", "purge", "lily", "--yes"],
        &["memory", "export"],
    ];
    for arguments in verbs {
        let ran = run(&home, arguments).await;
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    }
    house.open().await.shutdown().await;
    assert_eq!(state(&home), before);
}
