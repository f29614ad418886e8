//! `parlor security check`: what is open to guests, and to other users of the machine.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::cli::{fresh_home, run};

#[tokio::test]
async fn a_fresh_home_has_nothing_open() {
    let home = fresh_home().await;
    let checked = run(home.path(), &["security", "check"]).await;
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    assert_eq!(checked.stdout, "Nothing is more open than it should be.\n");
}

#[tokio::test]
async fn an_open_house_is_told_with_the_fixes_and_fails() {
    let home = fresh_home().await;
    let path = home.path().join("config.toml");
    let written = std::fs::read_to_string(&path).expect("a config");
    let open = format!("{written}\n[access]\ndms = \"open\"\n[access.tools]\nguest = \"reach\"\n");
    std::fs::write(&path, open).expect("writes");
    let saved = run(
        home.path(),
        &["remember", "--agent", "main", "the safe is blue"],
    )
    .await;
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    std::fs::create_dir_all(home.path().join("secrets")).expect("makes");
    let secret = home.path().join("secrets/telegram");
    std::fs::write(&secret, "123:abc").expect("writes");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).expect("sets");
    // A closed home keeps others out of all its files.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("sets");
    let checked = run(home.path(), &["security", "check", "--json"]).await;
    assert_eq!(checked.code, 1, "{}{}", checked.stdout, checked.stderr);
    let found: Vec<Value> = serde_json::from_str(&checked.stdout).expect("JSON");
    let checks: Vec<&str> = found
        .iter()
        .filter_map(|found| found["check"].as_str())
        .collect();
    for expected in ["modes", "open-agent", "guest-tools", "dms-open"] {
        assert!(checks.contains(&expected), "{expected} in {checks:?}");
    }
    assert!(
        found
            .iter()
            .all(|found| found["fix"].as_str().is_some_and(|fix| !fix.is_empty())),
        "each has a fix"
    );
    assert!(
        !checked.stdout.contains("the safe is blue"),
        "no words of memories are shown"
    );
}
