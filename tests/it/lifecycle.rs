//! Starting, stopping, being killed, and being in the way of another process.

use std::path::Path;

use crate::cli::run_with_input;
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_telegram::{ALICE, Fault};
use crate::support::house::{Process, ask, parlor};
use crate::tenants::files;

const OPEN: &str = "[access]\ndms = \"open\"\n";

/// S4.7
#[tokio::test]
async fn a_second_process_says_which_one_holds_the_home() {
    let house = House::new(OPEN).await;
    let first = house.spawn().await;
    let second = parlor(house.home.path()).arg("run").output().await;
    let second = second.expect("it starts");
    assert_eq!(second.status.code(), Some(1));
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    let expected = format!(
        "error: Parlor is already running on {} (pid {}). Stop that one first, or use another folder with --home\n",
        house.home.path().display(),
        first.pid()
    );
    assert_eq!(told, expected);
    assert_eq!(first.stop().await, 0);
    let again = house.spawn().await;
    assert_eq!(again.stop().await, 0, "the lock went with its process");
}

#[tokio::test]
async fn sigterm_lets_a_running_turn_finish() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    house.model.hold();
    house.telegram.dm(ALICE).says("hello").await;
    house.model.wait_for_open(1).await;
    house.telegram.all_confirmed().await;
    let stopping = tokio::spawn(process.stop());
    house.model.release();
    assert_eq!(stopping.await.expect("joined"), 0);
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
}

#[tokio::test]
async fn a_message_sent_while_nobody_ran_is_answered_at_the_next_start() {
    let house = House::new(OPEN).await;
    house.telegram.dm(ALICE).says("anybody home?").await;
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: anybody home?"]);
    gateway.shutdown().await;
}

/// The batch is on disk before the poll that confirms it.
#[tokio::test]
async fn a_kill_right_after_receiving_loses_nothing() {
    let house = House::new(OPEN).await;
    house.model.hold();
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.all_confirmed().await;
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'waiting'"),
        "1",
        "confirmed, so it is stored"
    );
    process.kill().await;
    house.model.release();
    let process = house.spawn().await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
}

#[tokio::test]
async fn a_token_that_telegram_refuses_ends_with_a_reason_and_without_the_token() {
    let house = House::new(OPEN).await;
    house.write("secrets/telegram", "999:WRONG-TOKEN");
    let process = Process::start(house.home.path(), &["run"]);
    let log = house.home.path().join("test.log");
    assert_eq!(process.exit_code().await, 1);
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.ends_with(
        "error: Telegram does not accept the bot token. Get a valid one from @BotFather and store it where [telegram] token points. `parlor reload` has a running gateway read it; a new environment variable needs a new start\n"
    ), "{log}");
    assert!(!log.contains("WRONG-TOKEN"), "{log}");
}

#[tokio::test]
async fn troubles_on_the_wire_never_log_the_token() {
    let house = House::new(OPEN).await;
    let faults = [Fault::Html(502), Fault::DroppedBefore, Fault::InvalidJson];
    for fault in faults {
        house.telegram.fail("getMe", fault).once();
    }
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    let log = process.log();
    assert!(log.contains("asking Telegram who we are"), "{log}");
    assert!(
        !log.contains("TEST-TOKEN") && !log.contains("hello"),
        "{log}"
    );
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_webhook_in_the_way_is_removed() {
    let house = House::new(OPEN).await;
    house.telegram.set_webhook("https://example.org/hook");
    let gateway = house.open().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(house.telegram.calls("deleteWebhook").len(), 1);
    house.close(gateway).await;
}

/// S1.53: on a fresh machine, one command makes a home and invites to the web chat.
#[tokio::test]
async fn a_first_start_makes_a_home_and_prints_one_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let first = Process::start(home, &["run"]);
    first.wait_for_log(" dashboard` gives another").await;
    let told = first.log().replace(&home.display().to_string(), "HOME");
    assert!(
        told.contains("A home for your agents was made in HOME."),
        "{told}"
    );
    assert!(
        told.contains("Talk to your agents in the browser:"),
        "{told}"
    );
    assert_eq!(told.matches("/enter?code=").count(), 1, "{told}");
    assert!(
        told.contains("`parlor --home HOME dashboard` gives another."),
        "{told}"
    );
    first.stop().await;
    assert!(home.join("agents/main/SOUL.md").exists());
    std::fs::write(home.join("agents/main/SOUL.md"), "mine now").expect("writes");
    std::fs::remove_file(home.join("agents/rose/SOUL.md")).expect("removes");
    let second = Process::start(home, &["run"]);
    second
        .wait_for_log_lines("the admin listener is on", 2)
        .await;
    assert_eq!(
        second.log().matches("/enter?code=").count(),
        1,
        "the log of a service gets no key"
    );
    second.stop().await;
    assert_eq!(
        std::fs::read_to_string(home.join("agents/main/SOUL.md")).expect("reads"),
        "mine now"
    );
    assert!(
        !home.join("agents/rose/SOUL.md").exists(),
        "a second start changes nothing"
    );
}

#[tokio::test]
async fn a_start_without_any_channel_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    std::fs::write(home.join("config.toml"), "[web]\nenabled = false\n").expect("writes");
    let first = parlor(home).arg("run").output().await.expect("it starts");
    assert_eq!(first.status.code(), Some(1));
    let told = String::from_utf8_lossy(&first.stderr).replace(&home.display().to_string(), "HOME");
    // A word about the rights of the folder may come first.
    let (_, told) = told.split_once("error: ").expect("an error");
    insta::assert_snapshot!(told, @"
    there is nothing to connect to: HOME/config.toml switches the web chat off, and has neither [telegram] nor [discord].
    - For the web chat, delete `enabled = false` under [web].
    - To try the agents here, run `parlor chat`.
    - `parlor setup` connects a model and a bot, step by step. Then `parlor run` starts.
    ");
}

/// S1.52: a chat is the one verb that starts on a machine where nothing is set up.
#[tokio::test]
async fn a_first_start_makes_home_agent_and_database_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("new");
    let first = run_with_input(&home, &["chat"], "hello\n").await;
    assert!(
        first.code == 0 && first.stdout.starts_with("You said: “hello”"),
        "{}",
        first.stdout
    );
    let known = || {
        ask(
            &home,
            "SELECT group_concat(slug || ' ' || hex(uid) || ' ' || created_at) FROM agents ORDER BY slug",
        )
    };
    let (made, agents) = (files(&home), known());
    let second = run_with_input(&home, &["chat"], "").await;
    assert_eq!(
        (second.code, second.stdout.as_str(), second.stderr.as_str()),
        (0, "", "")
    );
    assert!(
        made.contains_key(Path::new("agents/main/SOUL.md")) && agents.contains("main "),
        "{:?} {agents}",
        made.keys()
    );
    assert_eq!(
        (files(&home), known()),
        (made, agents),
        "a second start changes nothing"
    );
    assert_eq!(
        ask(&home, "SELECT count(*) FROM messages"),
        "2",
        "and keeps what was said"
    );
}

/// What waits for Telegram is not spent by a chat in the terminal.
#[tokio::test]
async fn a_local_chat_leaves_telegrams_messages_for_telegram() {
    let house = House::new(OPEN).await;
    house.model.hold();
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.model.wait_for_open(1).await;
    process.kill().await;
    house.model.release();
    let chat = parlor(house.home.path())
        .arg("chat")
        .output()
        .await
        .expect("it runs");
    assert_eq!((chat.status.code(), chat.stdout.len()), (Some(0), 0));
    assert_eq!(house.ask("SELECT state FROM inbox"), "waiting");
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    gateway.shutdown().await;
}

/// A hundred and one messages were taken in before the kill; none is refused after it.
#[tokio::test]
async fn what_was_taken_in_is_not_refused_after_a_restart() {
    let house = House::new(OPEN).await;
    house.model.hold();
    let process = house.spawn().await;
    for n in 0..101 {
        house.telegram.dm(ALICE).says(&format!("number {n}")).await;
    }
    house.telegram.all_confirmed().await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "101")
        .await;
    process.kill().await;
    house.model.release();
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts().len(), 101);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_waiting_row_that_cannot_be_read_stops_nobody() {
    let house = House::new(OPEN).await;
    house.open().await.shutdown().await;
    let place = house.place_id("telegram:dm:111");
    house.tell(&format!(
        "INSERT INTO inbox (platform, update_id, place_id, state, payload, received_at)
         VALUES ('telegram', 'x', {place}, 'waiting', '{{\"from\": \"another age\"}}', 0),
                ('telegram', 'y', {place}, 'waiting', NULL, 0)"
    ));
    house.telegram.dm(ALICE).says("hello").await;
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'failed' AND outcome = 'unreadable'"),
        "2"
    );
    gateway.shutdown().await;
}

/// A copy of the one file is a copy of everything, once the process has stopped.
#[tokio::test]
async fn a_stopped_gateway_leaves_one_whole_file() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
    let copy = tempfile::tempdir().expect("a folder");
    std::fs::copy(
        house.home.path().join("parlor.db"),
        copy.path().join("parlor.db"),
    )
    .expect("copies");
    assert_eq!(
        crate::support::house::ask(copy.path(), "SELECT count(*) FROM messages"),
        "2"
    );
}

/// Only Telegram itself can withdraw a token.
#[tokio::test]
async fn a_page_of_html_instead_of_updates_does_not_end_listening() {
    let house = House::new(OPEN).await;
    house.telegram.fail("getUpdates", Fault::Html(404)).once();
    house.telegram.fail("getMe", Fault::Html(401)).once();
    let gateway = house.open().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    house.close(gateway).await;
}

#[tokio::test]
async fn a_webhook_that_comes_back_is_removed_without_haste() {
    let house = House::new(OPEN).await;
    let active = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
    let refused = house
        .telegram
        .fail("getUpdates", Fault::Refused(409, active))
        .until_dropped();
    let gateway = house.open().await;
    house.telegram.wait_for_calls("getUpdates", 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(
        house.telegram.calls("getUpdates").len() <= 3,
        "{} polls",
        house.telegram.calls("getUpdates").len()
    );
    drop(refused);
    gateway.shutdown().await;
}

/// S4.7
#[tokio::test]
async fn another_poller_is_told_once_and_messages_are_still_answered() {
    let (house, mut other) = (House::new(OPEN).await, House::new(OPEN).await);
    // The other gateway sends to the same chat.
    house.give_up(Promise::SentOnce);
    other.leave_leftovers();
    std::fs::copy(
        house.home.path().join("config.toml"),
        other.home.path().join("config.toml"),
    )
    .expect("copies");
    let (first, second) = (
        house.spawn().await,
        Process::start(other.home.path(), &["run"]),
    );
    first
        .wait_for_log("another program uses this bot token")
        .await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    second
        .wait_for_log("another program uses this bot token")
        .await;
    let polls = house.telegram.calls("getUpdates").len();
    assert!(polls < 20, "{polls} polls, which is not slow");
    for process in [first, second] {
        let told = process
            .log()
            .matches("another program uses this bot token")
            .count();
        assert_eq!(told, 1, "{}", process.log());
        assert_eq!(process.stop().await, 0);
    }
}
