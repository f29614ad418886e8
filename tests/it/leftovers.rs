//! Homes that somebody has worked on by hand, and files as people write them.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::cli::{fresh_home, run, run_with_input};
use crate::support::house::ask;
use crate::tenants::{config, counts, files, fine, lived_in};

/// Her table and folder were deleted, as an operator does who does not know better.
pub(crate) async fn without_rose() -> tempfile::TempDir {
    let home = lived_in().await;
    let text = config(home.path())
        .replace("[agents.rose]\nname = \"Rose\"\nemoji = \"🌹\"\n", "")
        .replace("agent = \"rose\"", "agent = \"ada\"");
    assert!(!text.contains("rose"), "{text}");
    std::fs::write(home.path().join("config.toml"), text).expect("writes");
    std::fs::remove_dir_all(home.path().join("agents/rose")).expect("goes");
    home
}

/// S0.23
#[tokio::test]
async fn an_agent_that_only_the_store_has_is_listed_and_can_be_adopted() {
    let home = without_rose().await;
    assert_snapshot!(fine(home.path(), &["agent", "list"]).await, @"
    ID    NAME     MODEL  SKILLS  PLACES  MEMORIES  STATE
    main  ☕ Main  demo        1       0         0  default
    ada   🛠️ Ada   demo        2       4         0
    rose                       0       0         2  not in config.toml any more; `parlor agent adopt rose` adds it again
    ");
    assert_snapshot!(fine(home.path(), &["agent", "adopt", "rose"]).await, @"rose is in config.toml, with what the database has of it.");
    assert!(
        fine(home.path(), &["memory", "list", "--agent", "rose"])
            .await
            .contains("a secret of rose")
    );
    assert_eq!(
        run(home.path(), &["agent", "adopt", "nobody"]).await.code,
        2
    );
}

#[tokio::test]
async fn a_new_agent_tells_what_an_earlier_one_left() {
    let home = without_rose().await;
    assert_snapshot!(fine(home.path(), &["agent", "add", "rose"]).await, @"
    created agents/rose/IDENTITY.md
    created agents/rose/SOUL.md
    created agents/rose/MEMORY.md
    Rose (rose) is in config.toml.
    An earlier rose left data behind: 2 memories, 2 messages, 1 pin. They belong to this one now.
    ");
}

#[tokio::test]
async fn what_is_left_of_an_agent_can_be_put_aside_and_purged() {
    let home = without_rose().await;
    let before = counts(home.path());
    assert!(
        fine(home.path(), &["agent", "remove", "rose"])
            .await
            .starts_with("rose is archived.")
    );
    assert_eq!(counts(home.path()), before);
    fine(home.path(), &["agent", "restore", "rose"]).await;
    assert!(config(home.path()).contains("[agents.rose]\n"));
    fine(home.path(), &["agent", "purge", "rose", "--yes"]).await;
    assert_eq!(ask(home.path(), "SELECT count(*) FROM memories"), "0");
    std::fs::create_dir(home.path().join("agents/eve")).expect("makes");
    std::fs::write(home.path().join("agents/eve/SOUL.md"), "hers").expect("writes");
    fine(home.path(), &["agent", "purge", "eve", "--yes"]).await;
    assert!(!home.path().join("agents/eve").exists());
}

/// A clone remembers nothing, also when the store remembers one of its id.
#[tokio::test]
async fn a_clone_does_not_inherit_from_the_store() {
    let home = without_rose().await;
    fine(home.path(), &["agent", "clone", "ada", "rose"]).await;
    assert_eq!(
        fine(home.path(), &["memory", "list", "--agent", "rose"]).await,
        ""
    );
}

#[tokio::test]
async fn what_cannot_be_written_leaves_no_folder() {
    let home = fresh_home().await;
    let path = home.path().join("config.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).expect("sets");
    let before = files(home.path());
    for arguments in [
        &["agent", "add", "dot"][..],
        &["agent", "clone", "rose", "dot"],
        &["agent", "rename", "rose", "dot"],
        &["agent", "remove", "rose"],
    ] {
        let refused = run(home.path(), arguments).await;
        assert_eq!(refused.code, 1, "{arguments:?}");
        assert!(
            refused
                .stderr
                .contains("config.toml is read-only, so it was not changed"),
            "{}",
            refused.stderr
        );
    }
    let mut after = files(home.path());
    after.retain(|name, _| !name.ends_with("config.lock"));
    assert_eq!(after, before);
}

/// S3.31: however the agent is written, its folder goes where its key goes.
#[tokio::test]
async fn agents_without_a_table_of_their_own_live_as_the_others_do() {
    for form in [
        "agents.rose.name = \"Rosalind\" # hers\r\nagents.main = {}\r\n",
        "\u{feff}[agents]\nrose = { name = \"Rosalind\" } # hers\n",
    ] {
        let home = fresh_home().await;
        std::fs::write(home.path().join("config.toml"), form).expect("writes");
        fine(home.path(), &["agent", "rename", "rose", "rosa"]).await;
        assert!(
            home.path().join("agents/rosa/SOUL.md").exists()
                && !home.path().join("agents/rose").exists()
        );
        fine(home.path(), &["agent", "remove", "rosa"]).await;
        fine(home.path(), &["agent", "restore", "rosa"]).await;
        assert!(
            fine(home.path(), &["agent", "info", "rosa"])
                .await
                .starts_with("Rosalind (rosa)\n")
        );
        assert!(config(home.path()).contains("# hers"));
        assert_eq!(run(home.path(), &["config", "check"]).await.code, 0);
    }
}

/// Whoever reads an agent's memory does so again when it is back.
#[tokio::test]
async fn lists_that_named_an_agent_name_it_again() {
    let home = fresh_home().await;
    let text = config(home.path())
        + "\n[shared_paths.handbook]\nread = [\"rose\", \"ada\"]\n\n[peer_groups.desk]\nmembers = [\"main\", \"rose\", \"ada\"]\n";
    std::fs::write(home.path().join("config.toml"), &text).expect("writes");
    let removed = fine(home.path(), &["agent", "remove", "rose"]).await;
    let lists: Vec<&str> = removed
        .lines()
        .filter(|line| line.starts_with("no longer named"))
        .collect();
    assert_snapshot!(lists.join("\n"), @"
    no longer named in: shared_paths.handbook.read
    no longer named in: peer_groups.desk.members
    ");
    fine(home.path(), &["agent", "restore", "rose"]).await;
    assert!(
        config(home.path()).contains("read = [\"ada\", \"rose\"]")
            && config(home.path()).contains("members = [\"main\", \"ada\", \"rose\"]")
    );
    fine(home.path(), &["agent", "remove", "rose"]).await;
    std::fs::write(
        home.path().join("config.toml"),
        config(home.path()).replace("[peer_groups.desk]\nmembers = [\"main\", \"ada\"]\n", ""),
    )
    .expect("writes");
    assert_snapshot!(fine(home.path(), &["agent", "restore", "rose"]).await, @"
    rose is back, with 0 memories, 0 messages, 0 pins.
    not named again, because it does not fit any more: peer_groups.desk.members
    ");
}

#[tokio::test]
async fn an_earlier_agent_of_the_same_id_is_not_mistaken_for_the_one_in_use() {
    let home = fresh_home().await;
    for _ in 0..2 {
        fine(home.path(), &["agent", "add", "dot"]).await;
        fine(home.path(), &["agent", "remove", "dot"]).await;
    }
    fine(home.path(), &["agent", "add", "dot"]).await;
    let refused = run(home.path(), &["agent", "purge", "dot", "--yes"]).await;
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.starts_with(
        "error: dot is in use, and one of that id was removed earlier. Name the earlier one: dot-"
    ));
    let name = std::fs::read_dir(home.path().join("archive"))
        .expect("reads")
        .flatten()
        .next()
        .expect("one")
        .file_name();
    let name = name.to_str().expect("text");
    let asked = run_with_input(home.path(), &["agent", "purge", name], "dot\n").await;
    assert!(
        asked.stderr.starts_with(&format!(
            "This deletes dot of archive/{name} for good: 3 files, "
        )),
        "{}",
        asked.stderr
    );
    assert!(config(home.path()).contains("[agents.dot]"));
}

/// What a package cannot say is told, and what it says to everybody too.
#[tokio::test]
async fn an_import_tells_which_memories_were_everybodys() {
    let source = lived_in().await;
    let package = source.path().join("rose.tar.gz");
    let package = package.to_str().expect("text");
    fine(source.path(), &["agent", "export", "rose", "-o", package]).await;
    let home = fresh_home().await;
    assert_snapshot!(fine(home.path(), &["agent", "import", package, "--as", "rosa"]).await, @"
    rosa is in config.toml, with 4 files, 2 memories, 4 messages.
    1 memory was global at home and is private to rosa here. `--global` lets every agent find it.
    The messages, from 2 places, are kept for the next export. No place and no agent shows them.
    not taken over into [agents.rosa]: name. Set them there if you need them.
    ");
}

/// A file that counts only in part says so.
#[tokio::test]
async fn info_tells_which_files_are_not_read_as_they_are() {
    let home = fresh_home().await;
    std::fs::write(
        home.path().join("agents/rose/MEMORY.md"),
        "a line of text\n".repeat(5000),
    )
    .expect("writes");
    std::fs::write(home.path().join("agents/rose/SOUL.md"), b"caf\xe9").expect("writes");
    let info = fine(home.path(), &["agent", "info", "rose"]).await;
    let files: Vec<&str> = info
        .lines()
        .filter(|line| line.contains(".md: own"))
        .collect();
    assert_snapshot!(files.join("\n"), @"
    IDENTITY.md: own
    SOUL.md: own (it is not UTF-8, so parts of it are shown as �)
    MEMORY.md: own (only its first 16 KiB are read)
    ");
}

#[tokio::test]
async fn what_is_missing_is_told_without_data() {
    let home = fresh_home().await;
    let empty = run(home.path(), &["memory", "list"]).await;
    assert_eq!((empty.code, empty.stdout.as_str()), (0, ""));
    assert_snapshot!(empty.stderr, @"Main has no memories yet. `parlor remember` adds one.");
    assert_eq!(
        run(home.path(), &["recall", "--limit", "0", "x"])
            .await
            .code,
        2
    );
    assert_eq!(run(home.path(), &["remember", " "]).await.code, 2);
    let no_id = run(home.path(), &["agent", "add"]).await;
    assert_eq!(no_id.code, 2);
    assert_snapshot!(no_id.stderr, @"
    error: the id of the new agent is missing
    hint: write it like `parlor agent add night-desk`
    ");
    std::fs::remove_file(home.path().join("config.toml")).expect("goes");
    std::os::unix::fs::symlink("/nowhere/config.toml", home.path().join("config.toml"))
        .expect("links");
    assert_snapshot!(run(home.path(), &["agent", "list"]).await.stderr, @"error: HOME/config.toml is a link to a file that does not exist. Put the file back, or delete the link and run `parlor init`.");
}
