//! Few files may be open at once: what is done about it, and what is said.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::cli::fresh_home;
use crate::support::House;
use crate::support::fake_telegram::ALICE;
use crate::support::house::{Process, parlor};

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\n";

/// The binary with limits of its own; `limits` is shell.
fn limited(home: &Path, limits: &str, verb: &str) -> Command {
    let binary = parlor(home).as_std().get_program().to_owned();
    let mut command = Command::new("sh");
    command
        .env_clear()
        .env("PARLOR_HOME", home)
        .env("USER", "ann")
        .stdin(Stdio::null());
    command
        .arg("-c")
        .arg(format!("{limits}; exec \"$0\" {verb}"))
        .arg(binary);
    command
}

#[tokio::test]
async fn the_limit_is_raised_as_far_as_it_goes() {
    if !Path::new("/proc/self/limits").exists() {
        return eprintln!("skipped: there is no /proc here");
    }
    let house = House::new(OPEN).await;
    let process = Process::start_as(
        limited(house.home.path(), "ulimit -Sn 100; ulimit -Hn 500", "run"),
        house.home.path(),
    );
    house.telegram.wait_for_calls("getUpdates", 1).await;
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", process.pid())).expect("it runs");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("the kernel tells it");
    assert_eq!(line.split_whitespace().nth(3), Some("500"), "{line}");
    assert_eq!(process.stop().await, 0);
}

/// The first file that cannot be opened is another with each limit, and the sentence is about the
/// limit each time.
#[tokio::test]
async fn too_many_open_files_are_told_as_that() {
    let home = fresh_home().await;
    let mut told = Vec::new();
    for most in 4..40 {
        let ended = limited(home.path(), &format!("ulimit -n {most}"), "chat")
            .output()
            .await
            .expect("it starts");
        let stderr = String::from_utf8_lossy(&ended.stderr)
            .replace(&home.path().display().to_string(), "HOME");
        assert!(
            !stderr.contains("write access") && !stderr.contains("read-only"),
            "with {most}: {stderr}"
        );
        if ended.status.code() == Some(1) {
            assert!(stderr.contains("open files"), "with {most}: {stderr}");
            told.push(stderr);
        }
    }
    let store = told.iter().find(|text| text.contains("the database"));
    insta::assert_snapshot!(store.map_or("", |text| text.as_str()), @"error: the database cannot be opened: this process has too many open files. Allow this user more (`ulimit -n`, or LimitNOFILE= in a systemd unit)");
}

/// Many answers at once share what may be open.
#[tokio::test]
async fn a_low_limit_slows_answers_down_and_loses_none() {
    let house = House::new(
        "[access]\nowners = [\"telegram:111\"]\ngroups = \"open\"\nrequire_mention = false\n",
    )
    .await;
    let process = Process::start_as(
        limited(house.home.path(), "ulimit -n 80", "run"),
        house.home.path(),
    );
    house.telegram.wait_for_calls("getUpdates", 1).await;
    let hold = house.telegram.hold("sendMessage");
    let forum = house.telegram.forum(-1001);
    for topic in 0..100 {
        forum
            .topic(100 + topic, "A topic")
            .says(ALICE, &format!("question {topic}"))
            .await;
    }
    house.telegram.all_confirmed().await;
    hold.release();
    house.telegram.wait_for_sent(100).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let log = process.log();
    assert!(!log.contains("open files"), "{log}");
    assert_eq!(process.stop().await, 0);
    assert_eq!(house.telegram.sent().len(), 100, "each once");
}
