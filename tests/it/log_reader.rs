//! A reader of the log that stops reading.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::support::House;
use crate::support::fake_telegram::ALICE;
use crate::support::house::parlor;

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\n";
/// The smallest pipe there is. Each message leaves a line of two hundred bytes at least.
const PIPE_BYTES: usize = 4096;
const MESSAGES: usize = 80;

#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let house = House::new(OPEN).await;
    let mut command = parlor(house.home.path());
    command
        .arg("run")
        .env("PARLOR_LOG", "trace")
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().expect("the binary starts");
    let mut unread = child.stderr.take().expect("piped");
    rustix::pipe::fcntl_setpipe_size(&unread, PIPE_BYTES).expect("pipes can be made small");
    let alice = house.telegram.dm(ALICE);
    for number in 1..=MESSAGES {
        alice.says(&format!("message {number}")).await;
        let answered =
            tokio::time::timeout(Duration::from_secs(20), alice.wait_for_sent(number)).await;
        assert!(answered.is_ok(), "message {number} is answered");
    }
    house.telegram.all_confirmed().await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let pid = child.id().expect("it runs").to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .await
            .expect("kill is there")
            .success()
    );
    let ended = tokio::time::timeout(Duration::from_secs(20), child.wait()).await;
    assert_eq!(ended.expect("it ends").expect("it ends").code(), Some(0));
    let mut log = Vec::new();
    unread
        .read_to_end(&mut log)
        .await
        .expect("what was written can be read");
    assert!(
        (PIPE_BYTES / 2..=PIPE_BYTES).contains(&log.len()),
        "the pipe was full: {} bytes",
        log.len()
    );
}

/// The last words come out, also when the program ends at once.
#[tokio::test]
async fn the_reason_of_an_end_is_always_written() {
    let house = House::new(OPEN).await;
    house.write("secrets/telegram", "999:WRONG-TOKEN");
    for _ in 0..5 {
        let ended = parlor(house.home.path())
            .arg("run")
            .output()
            .await
            .expect("it starts");
        assert_eq!(ended.status.code(), Some(1));
        let log = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            log.lines().last().is_some_and(
                |last| last.starts_with("error: Telegram does not accept the bot token.")
            ),
            "{log}"
        );
    }
}
