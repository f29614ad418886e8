//! Changes of agents that were killed in the middle: whoever comes next finishes or undoes them.

use std::path::Path;

use tempfile::TempDir;

use crate::cli::{fresh_home, run, run_with_input};
use crate::leftovers::without_rose;
use crate::support::house::ask;
use crate::tenants::{config, counts, files, fine, lived_in};

/// What the config and the store were at some moment.
struct Moment {
    config: String,
    store: Vec<(String, Vec<u8>)>,
}

fn is_store(name: &str) -> bool {
    name.starts_with("parlor.db")
}

fn names(home: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(home).expect("reads").flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

impl Moment {
    fn of(home: &Path) -> Self {
        let store = names(home).into_iter().filter(|name| is_store(name));
        let store = store
            .map(|name| {
                (
                    name.clone(),
                    std::fs::read(home.join(&name)).expect("reads"),
                )
            })
            .collect();
        Moment {
            config: config(home),
            store,
        }
    }

    fn put_back_store(&self, home: &Path) {
        for name in names(home).into_iter().filter(|name| is_store(name)) {
            std::fs::remove_file(home.join(name)).expect("goes");
        }
        for (name, bytes) in &self.store {
            std::fs::write(home.join(name), bytes).expect("writes");
        }
    }

    fn put_back_config(&self, home: &Path) {
        std::fs::write(home.join("config.toml"), &self.config).expect("writes");
    }
}

/// As it stands when the process is killed.
fn note(home: &Path, json: &str) {
    std::fs::write(home.join("unfinished.json"), json).expect("writes");
}

fn only_archive(home: &Path) -> String {
    let mut all = names(&home.join("archive"));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn move_folder(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("moves");
}

fn uid_of_rose(home: &Path) -> String {
    ask(
        home,
        "SELECT uid FROM agents WHERE coalesce(archived_id, slug) = 'rose'",
    )
}

/// A start of the gateway, which settles what it finds.
async fn start(home: &Path) {
    let chat = run_with_input(home, &["chat"], "").await;
    assert_eq!(chat.code, 0, "{}", chat.stderr);
    assert!(!home.join("unfinished.json").exists());
}

/// Rose was being removed; `steps` of: folder moved, config written.
async fn killed_while_removing(steps: usize) -> TempDir {
    let home = lived_in().await;
    let (path, before) = (home.path(), Moment::of(home.path()));
    let uid = uid_of_rose(path);
    fine(path, &["agent", "remove", "rose"]).await;
    let archive = only_archive(path);
    before.put_back_store(path);
    if steps < 2 {
        before.put_back_config(path);
    }
    if steps < 1 {
        move_folder(
            &path.join("archive").join(&archive).join("files"),
            &path.join("agents/rose"),
        );
    }
    note(
        path,
        &format!(r#"{{"change":"remove","id":"rose","uid":"{uid}","archive":"{archive}"}}"#),
    );
    home
}

#[tokio::test]
async fn a_removal_that_was_killed_before_the_config_was_written_has_not_happened() {
    let untouched = lived_in().await;
    for steps in [0, 1] {
        let home = killed_while_removing(steps).await;
        start(home.path()).await;
        assert_eq!(
            files(&home.path().join("agents")).len(),
            files(&untouched.path().join("agents")).len()
        );
        assert_eq!(files(&home.path().join("archive")).len(), 0);
        assert_eq!(
            ask(
                home.path(),
                "SELECT count(*) FROM memories WHERE visibility = 'archived'"
            ),
            "0"
        );
        assert!(
            fine(home.path(), &["agent", "prompt", "rose"])
                .await
                .contains("Likes short words.")
        );
    }
}

#[tokio::test]
async fn a_removal_that_was_killed_after_the_config_was_written_is_finished() {
    let home = killed_while_removing(2).await;
    let before = counts(home.path());
    start(home.path()).await;
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM agents WHERE slug = 'rose'"
        ),
        "0"
    );
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM memories WHERE visibility <> 'archived'"
        ),
        "0"
    );
    fine(home.path(), &["agent", "restore", "rose"]).await;
    assert_eq!(counts(home.path()), before);
    assert!(
        fine(home.path(), &["agent", "prompt", "rose"])
            .await
            .contains("Likes short words.")
    );
}

/// A clone remembers nothing, also one that the config had before the store.
#[tokio::test]
async fn a_clone_that_was_killed_does_not_inherit_from_the_store() {
    let home = without_rose().await;
    let (path, before) = (home.path(), Moment::of(home.path()));
    fine(path, &["agent", "clone", "ada", "rose"]).await;
    before.put_back_store(path);
    note(
        path,
        r#"{"change":"clone","id":"rose","uid":"01900000-0000-7000-8000-000000000001"}"#,
    );
    start(path).await;
    assert_eq!(fine(path, &["memory", "list", "--agent", "rose"]).await, "");
    assert_eq!(
        ask(path, "SELECT uid FROM agents WHERE slug = 'rose'"),
        "01900000-0000-7000-8000-000000000001"
    );
}

/// The config says nothing about what is left of an agent. Then the archive tells how far its
/// removal had come.
#[tokio::test]
async fn a_removal_of_what_is_left_of_an_agent_loses_nothing_when_it_is_killed() {
    for is_filled in [false, true] {
        let home = lived_in().await;
        let path = home.path();
        fine(path, &["agent", "remove", "rose"]).await;
        let without_rose = config(path);
        fine(path, &["agent", "restore", "rose"]).await;
        std::fs::write(path.join("config.toml"), &without_rose).expect("writes");
        let (before, kept, uid) = (Moment::of(path), counts(path), uid_of_rose(path));
        let rose = files(&path.join("agents/rose")).len();
        fine(path, &["agent", "remove", "rose"]).await;
        let archive = only_archive(path);
        let folder = path.join("archive").join(&archive);
        before.put_back_store(path);
        move_folder(&folder.join("files"), &path.join("agents/rose"));
        if !is_filled {
            std::fs::remove_dir_all(&folder).expect("goes");
            std::fs::create_dir(&folder).expect("makes");
        }
        note(
            path,
            &format!(r#"{{"change":"remove","id":"rose","uid":"{uid}","archive":"{archive}"}}"#),
        );
        start(path).await;
        assert_eq!(
            path.join("agents/rose").exists(),
            !is_filled,
            "all of it is there, or all of it is in the archive"
        );
        if !is_filled {
            assert_eq!(names(&path.join("archive")), [""; 0]);
            fine(path, &["agent", "remove", "rose"]).await;
        }
        fine(path, &["agent", "restore", "rose"]).await;
        assert_eq!(counts(path), kept, "filled: {is_filled}");
        assert_eq!(files(&path.join("agents/rose")).len(), rose);
    }
}

/// The next change settles as well as the next start does. Without that, this purge would have
/// taken the living one's rows.
#[tokio::test]
async fn what_is_left_of_a_removal_cannot_destroy_the_agent() {
    let home = killed_while_removing(1).await;
    let archive = only_archive(home.path());
    let before = counts(home.path());
    let refused = run(home.path(), &["agent", "purge", &archive, "--yes"]).await;
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert_eq!(counts(home.path()), before);
    assert!(home.path().join("agents/rose/MEMORY.md").exists());
}

/// A copy of an archive, put back by hand when its agent was restored already.
#[tokio::test]
async fn an_archive_of_an_agent_in_use_is_refused() {
    let home = lived_in().await;
    fine(home.path(), &["agent", "remove", "rose"]).await;
    let archive = only_archive(home.path());
    let folder = home.path().join("archive").join(&archive);
    let kept: Vec<_> = ["agent.json", "config.toml"]
        .map(|name| (name, std::fs::read(folder.join(name)).expect("reads")))
        .into();
    fine(home.path(), &["agent", "restore", "rose"]).await;
    std::fs::create_dir(&folder).expect("makes");
    for (name, bytes) in kept {
        std::fs::write(folder.join(name), bytes).expect("writes");
    }
    let before = counts(home.path());
    for verb in [
        &["agent", "purge", &archive, "--yes"][..],
        &["agent", "restore", &archive, "--as", "rosa"],
    ] {
        let refused = run(home.path(), verb).await;
        assert_eq!(refused.code, 1);
        let told = format!(
            "error: the agent of archive/{archive} is in use, as rose. If nothing in that folder is needed, delete it by hand\n"
        );
        assert_eq!(refused.stderr, told);
    }
    assert_eq!(counts(home.path()), before);
}

#[tokio::test]
async fn a_return_that_was_killed_is_undone_or_finished_as_the_config_says() {
    for config_written in [false, true] {
        let home = lived_in().await;
        let (path, uid) = (home.path(), uid_of_rose(home.path()));
        let rows = counts(path);
        fine(path, &["agent", "remove", "rose"]).await;
        let (archive, removed) = (only_archive(path), Moment::of(path));
        let folder = path.join("archive").join(&archive);
        let kept: Vec<_> = ["agent.json", "config.toml"]
            .map(|name| (name, std::fs::read(folder.join(name)).expect("reads")))
            .into();
        fine(path, &["agent", "restore", "rose"]).await;
        removed.put_back_store(path);
        if !config_written {
            removed.put_back_config(path);
        }
        std::fs::create_dir(&folder).expect("makes");
        for (name, bytes) in kept {
            std::fs::write(folder.join(name), bytes).expect("writes");
        }
        note(
            path,
            &format!(r#"{{"change":"restore","id":"rose","uid":"{uid}","archive":"{archive}"}}"#),
        );
        start(path).await;
        assert_eq!(folder.join("files/SOUL.md").exists(), !config_written);
        assert_eq!(folder.exists(), !config_written);
        if !config_written {
            fine(path, &["agent", "restore", "rose"]).await;
        }
        assert_eq!(counts(path), rows);
        assert_eq!(
            ask(
                path,
                "SELECT count(*) FROM memories WHERE visibility = 'archived'"
            ),
            "0"
        );
        assert!(
            fine(path, &["agent", "prompt", "rose"])
                .await
                .contains("Likes short words.")
        );
    }
}

#[tokio::test]
async fn a_rename_that_was_killed_is_undone_or_finished_as_the_config_says() {
    for (config_written, id) in [(false, "rose"), (true, "rosa")] {
        let home = lived_in().await;
        let (path, before) = (home.path(), Moment::of(home.path()));
        let (rows, uid) = (counts(path), uid_of_rose(path));
        fine(path, &["agent", "rename", "rose", "rosa"]).await;
        before.put_back_store(path);
        if !config_written {
            before.put_back_config(path);
        }
        note(path, r#"{"change":"rename","from":"rose","to":"rosa"}"#);
        start(path).await;
        assert_eq!(
            ask(
                path,
                &format!("SELECT slug FROM agents WHERE uid = '{uid}'")
            ),
            id
        );
        assert_eq!(counts(path), rows);
        assert!(
            fine(path, &["agent", "prompt", id])
                .await
                .contains("Likes short words.")
        );
    }
}

#[tokio::test]
async fn an_import_that_was_killed_leaves_nothing_and_can_be_made_again() {
    let source = lived_in().await;
    let package = source.path().join("rose.tar.gz");
    let package = package.to_str().expect("text");
    fine(source.path(), &["agent", "export", "rose", "-o", package]).await;
    for config_written in [false, true] {
        let home = fresh_home().await;
        let path = home.path();
        fine(path, &["agent", "list"]).await;
        let before = Moment::of(path);
        fine(path, &["agent", "import", package, "--as", "rosa"]).await;
        before.put_back_store(path);
        if !config_written {
            before.put_back_config(path);
        }
        std::fs::create_dir(path.join(".incoming-1")).expect("makes");
        note(
            path,
            r#"{"change":"import","id":"rosa","uid":"01234567-89ab-7def-8123-456789abcdef"}"#,
        );
        start(path).await;
        assert_eq!(config(path), before.config);
        assert!(!path.join("agents/rosa").exists());
        fine(path, &["agent", "import", package, "--as", "rosa"]).await;
        assert!(!path.join(".incoming-1").exists());
        assert_eq!(
            ask(
                path,
                "SELECT count(*) FROM memories WHERE visibility <> 'archived'"
            ),
            "2"
        );
    }
}

/// A note that was being written: nothing had begun.
#[tokio::test]
async fn half_a_note_means_nothing() {
    let home = lived_in().await;
    note(home.path(), r#"{"change":"rem"#);
    start(home.path()).await;
    assert!(
        fine(home.path(), &["agent", "prompt", "rose"])
            .await
            .contains("Likes short words.")
    );
}
