//! The database's files lost, replaced or mixed up, while the gateway runs and before it starts.

use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;

use crate::cli::{Ran, run, run_with_input};
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_telegram::ALICE;
use crate::support::house::{Process, ask};

const OWNED: &str = "[access]\nowners = [\"telegram:111\"]\n";

/// A gateway that does not end by then goes on for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that has answered once, and what happens to its files while it runs.
struct Used {
    house: House,
    process: Process,
}

impl Used {
    async fn new() -> Self {
        let mut house = House::new(OWNED).await;
        house.leave_leftovers();
        // The last words go out without the store.
        house.give_up(Promise::SentOnce);
        let process = house.spawn().await;
        house.telegram.dm(ALICE).says("hello").await;
        house.telegram.dm(ALICE).wait_for_sent(1).await;
        house
            .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
            .await;
        Used { house, process }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.house.home.path().join(name)
    }

    /// The gateway notices by itself, tells the owner, and ends. Returns what it told in the chat
    /// and in the end.
    async fn ends(self) -> (House, String, String) {
        let log = self.path("test.log");
        let ended = tokio::time::timeout(PATIENCE, self.process.exit_code()).await;
        assert_eq!(ended.expect("it ends by itself"), 1);
        let told = self.house.telegram.dm(ALICE).wait_for_sent(2).await.text;
        let log = std::fs::read_to_string(log).expect("a log");
        let last = log.lines().last().unwrap_or_default().to_owned();
        let place = self.house.home.path().display().to_string();
        (
            self.house,
            told.replace(&place, "HOME"),
            last.replace(&place, "HOME"),
        )
    }
}

async fn refused(home: &Path) -> String {
    let Ran { code, stderr, .. } = run(home, &["chat"]).await;
    assert_eq!(code, 1, "{stderr}");
    stderr
}

/// The message that nobody took stays with Telegram, and is answered once the saved copy is back in
/// its place.
async fn goes_on_with(house: &House, answers: &[&str]) {
    let process = house.spawn().await;
    house.telegram.dm(ALICE).wait_for_sent(answers.len()).await;
    house.telegram.all_confirmed().await;
    assert_eq!(process.stop().await, 0);
    let place = house.home.path().display().to_string();
    let texts: Vec<String> = house
        .telegram
        .dm(ALICE)
        .texts()
        .iter()
        .map(|text| text.replace(&place, "HOME"))
        .collect();
    assert_eq!(texts, answers);
}

#[tokio::test]
async fn a_database_that_is_deleted_while_the_gateway_runs_is_saved_and_told() {
    let used = Used::new().await;
    std::fs::remove_file(used.path("parlor.db")).expect("goes");
    let (house, told, last) = used.ends().await;
    assert_snapshot!(told, @"I have to stop: HOME/parlor.db was removed while Parlor ran. Everything that Parlor had is saved in HOME/parlor.db.saved. Put that in the place of HOME/parlor.db and start again. Messages that come meanwhile are kept by their platform, and I answer them then.");
    assert_snapshot!(last, @"error: HOME/parlor.db was removed while Parlor ran. Everything that Parlor had is saved in HOME/parlor.db.saved. Put that in the place of HOME/parlor.db and start again");
    house.telegram.dm(ALICE).says("still there?").await;
    assert_snapshot!(refused(house.home.path()).await, @"error: HOME/parlor.db is missing, and this home has had one with conversations and memories in it. HOME/parlor.db.saved has what Parlor saved: put it there. To begin with an empty one: `parlor run --new-database`");
    std::fs::rename(
        house.home.path().join("parlor.db.saved"),
        house.home.path().join("parlor.db"),
    )
    .expect("moves");
    goes_on_with(&house, &["re: hello", &told, "re: still there?"]).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM messages"),
        "4",
        "with what was said before"
    );
}

#[tokio::test]
async fn a_database_that_is_replaced_while_the_gateway_runs_is_noticed() {
    let used = Used::new().await;
    std::fs::copy(used.path("parlor.db"), used.path("other.db")).expect("copies");
    std::fs::rename(used.path("other.db"), used.path("parlor.db")).expect("moves");
    let (_, told, last) = used.ends().await;
    assert_snapshot!(told, @"I have to stop: HOME/parlor.db was replaced by another file while Parlor ran. Everything that Parlor had is saved in HOME/parlor.db.saved. Put that in the place of HOME/parlor.db and start again. Messages that come meanwhile are kept by their platform, and I answer them then.");
    assert_snapshot!(last, @"error: HOME/parlor.db was replaced by another file while Parlor ran. Everything that Parlor had is saved in HOME/parlor.db.saved. Put that in the place of HOME/parlor.db and start again");
}

#[tokio::test]
async fn a_database_that_is_emptied_while_the_gateway_runs_is_noticed() {
    let used = Used::new().await;
    std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(used.path("parlor.db"))
        .expect("empties");
    let (house, told, last) = used.ends().await;
    assert_snapshot!(told, @"I have to stop: HOME/parlor.db was emptied or overwritten while Parlor ran. Put a copy of it back, move HOME/parlor.db-wal away, and start again. Messages that come meanwhile are kept by their platform, and I answer them then.");
    assert_snapshot!(last, @"error: HOME/parlor.db was emptied or overwritten while Parlor ran. Put a copy of it back, move HOME/parlor.db-wal away, and start again");
    assert_snapshot!(refused(house.home.path()).await, @"error: HOME/parlor.db is empty, and this home has had one with conversations and memories in it. Put it back, or a copy of it. To begin with an empty one: `parlor run --new-database`");
}

/// A message that comes at the moment is not taken, however soon the loss is noticed.
#[tokio::test]
async fn nothing_is_acknowledged_once_the_database_is_gone() {
    let used = Used::new().await;
    std::fs::remove_file(used.path("parlor.db")).expect("goes");
    used.house
        .telegram
        .dm(ALICE)
        .says("did you get this?")
        .await;
    let (house, told, _) = used.ends().await;
    std::fs::rename(
        house.home.path().join("parlor.db.saved"),
        house.home.path().join("parlor.db"),
    )
    .expect("moves");
    goes_on_with(&house, &["re: hello", &told, "re: did you get this?"]).await;
}

#[tokio::test]
async fn a_log_that_is_deleted_while_the_gateway_runs_loses_nothing() {
    let used = Used::new().await;
    std::fs::remove_file(used.path("parlor.db-wal")).expect("goes");
    let (house, told, last) = used.ends().await;
    assert_snapshot!(told, @"I have to stop: HOME/parlor.db-wal or HOME/parlor.db-shm was removed while Parlor ran. Everything was put into HOME/parlor.db. Start again. Messages that come meanwhile are kept by their platform, and I answer them then.");
    assert_snapshot!(last, @"error: HOME/parlor.db-wal or HOME/parlor.db-shm was removed while Parlor ran. Everything was put into HOME/parlor.db. Start again");
    house.telegram.dm(ALICE).says("still there?").await;
    goes_on_with(&house, &["re: hello", &told, "re: still there?"]).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM messages"),
        "4",
        "with what was said before"
    );
}

/// A home that talked once, with its files as they were then.
async fn talked() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    say(home.path(), "hello").await;
    home
}

async fn say(home: &Path, text: &str) {
    let chat = run_with_input(home, &["chat"], &format!("{text}\n")).await;
    assert_eq!(chat.code, 0, "{}", chat.stderr);
}

#[tokio::test]
async fn an_empty_database_is_not_made_in_the_place_of_one_that_is_gone() {
    let home = talked().await;
    std::fs::remove_file(home.path().join("parlor.db")).expect("goes");
    let refused = run(home.path(), &["agent", "list"]).await;
    assert_eq!(refused.code, 1);
    assert_snapshot!(refused.stderr, @"error: HOME/parlor.db is missing, and this home has had one with conversations and memories in it. Put it back, or a copy of it. To begin with an empty one: `parlor run --new-database`");
    assert!(!home.path().join("parlor.db").exists(), "nothing was made");
    let begun = run_with_input(home.path(), &["chat", "--new-database"], "hello\n").await;
    assert_eq!(begun.code, 0, "{}", begun.stderr);
    assert_eq!(ask(home.path(), "SELECT count(*) FROM messages"), "2");
    say(home.path(), "hello again").await;
    assert_eq!(
        ask(home.path(), "SELECT count(*) FROM messages"),
        "4",
        "it is asked for once, and never empties one that is there"
    );
    let again = run_with_input(home.path(), &["chat", "--new-database"], "hello\n").await;
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(ask(home.path(), "SELECT count(*) FROM messages"), "6");
}

#[tokio::test]
async fn an_emptied_database_is_not_filled_anew() {
    let home = talked().await;
    std::fs::write(home.path().join("parlor.db"), "").expect("empties");
    assert_snapshot!(refused(home.path()).await, @"error: HOME/parlor.db is empty, and this home has had one with conversations and memories in it. Put it back, or a copy of it. To begin with an empty one: `parlor run --new-database`");
}

/// SQLite removes a log that stands beside an empty database, and with it what is only there.
#[tokio::test]
async fn a_log_without_its_database_is_not_thrown_away() {
    let home = talked().await;
    std::fs::remove_file(home.path().join("parlor.db")).expect("goes");
    std::fs::remove_file(home.path().join("parlor.stamp")).expect("goes");
    std::fs::write(home.path().join("parlor.db-wal"), "what was said last").expect("writes");
    assert_snapshot!(refused(home.path()).await, @"error: HOME/parlor.db is missing, and this home has had one with conversations and memories in it. Put it back, or a copy of it. To begin with an empty one: `parlor run --new-database`");
    let begun = run_with_input(home.path(), &["chat", "--new-database"], "hello\n").await;
    assert_eq!(begun.code, 0, "{}", begun.stderr);
    assert_eq!(
        std::fs::read_to_string(home.path().join("parlor.db-wal.left")).expect("kept"),
        "what was said last"
    );
}

/// As it is when a copy is put back after a crash, beside the log of the crashed process.
#[tokio::test]
async fn an_older_copy_beside_a_newer_log_is_refused() {
    let used = Used::new().await;
    let Used { house, process } = used;
    let path = |name: &str| house.home.path().join(name);
    process.kill().await;
    let older = std::fs::read(path("parlor.db")).expect("reads");
    // The next process takes the log in and begins another one.
    let process = house.spawn().await;
    assert_eq!(process.stop().await, 0);
    let newer = std::fs::read(path("parlor.db")).expect("reads");
    assert_ne!(older, newer);
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("more").await;
    house.telegram.dm(ALICE).wait_for_sent(2).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.kill().await;
    let (whole, log) = (
        std::fs::read(path("parlor.db")).expect("reads"),
        std::fs::read(path("parlor.db-wal")).expect("reads"),
    );
    assert!(!log.is_empty());
    std::fs::write(path("parlor.db"), &older).expect("writes");
    assert_snapshot!(refused(house.home.path()).await.replace(&house.home.path().display().to_string(), "HOME"), @"error: HOME/parlor.db-wal does not belong to HOME/parlor.db, which is older or another one: together they would be neither. Put the database back that was there with it; or, to go on with this one, move HOME/parlor.db-wal away");
    assert_eq!(
        std::fs::read(path("parlor.db")).expect("reads"),
        older,
        "nothing was changed"
    );
    assert_eq!(
        std::fs::read(path("parlor.db-wal")).expect("reads"),
        log,
        "nothing was changed"
    );
    // Without the log, the copy is good.
    std::fs::rename(path("parlor.db-wal"), path("aside")).expect("moves");
    std::fs::remove_file(path("parlor.db-shm")).expect("goes");
    assert_eq!(run(house.home.path(), &["agent", "list"]).await.code, 0);
    // With the database that the log belongs to, nothing is lost.
    for name in ["parlor.db-wal", "parlor.db-shm"] {
        drop(std::fs::remove_file(path(name)));
    }
    std::fs::write(path("parlor.db"), &whole).expect("writes");
    std::fs::write(path("parlor.db-wal"), &log).expect("writes");
    assert_eq!(house.ask("SELECT count(*) FROM messages"), "4");
}

/// Agents and a config that somebody brought along have no database yet.
#[tokio::test]
async fn a_home_that_never_had_a_database_just_starts() {
    let home = crate::cli::fresh_home().await;
    std::fs::create_dir_all(home.path().join("agents/main/memory")).expect("makes");
    std::fs::write(home.path().join("agents/main/memory/2026-01-01.md"), "Tea.").expect("writes");
    say(home.path(), "hello").await;
}
