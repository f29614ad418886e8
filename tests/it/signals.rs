//! Signals and jumps of the clock in the middle of work.

use std::time::{Duration, Instant};

use crate::support::House;
use crate::support::crowd::Crowd;
use crate::support::fake_telegram::ALICE;
use crate::support::house::Process;

const PATIENCE: Duration = Duration::from_secs(60);
const OPEN: &str = "[access]\ndms = \"open\"\n";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A laptop that sleeps: connections die meanwhile, and messages pile up.
#[tokio::test]
async fn a_process_that_stood_still_for_a_while_goes_on() {
    let mut crowd = Crowd::new(6).await;
    let process = crowd.house.spawn().await;
    crowd.discord.connected().await;
    for spot in 0..crowd.spots.len() {
        crowd.says(spot, "use a tool").await;
    }
    process.signal("STOP").await;
    crowd.discord.drop_connections();
    for spot in 0..crowd.spots.len() {
        crowd.says(spot, "please").await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    process.signal("CONT").await;
    crowd.quiet(PATIENCE).await;
    assert_eq!(process.stop().await, 0);
    crowd.check();
}

/// A model that does not answer keeps the process for ten seconds, and the question is kept.
#[tokio::test]
async fn sigterm_waits_ten_seconds_for_a_turn_that_does_not_end() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.hold();
    alice.says("hello").await;
    house.model.wait_for_open(1).await;
    house.telegram.all_confirmed().await;
    let began = Instant::now();
    assert_eq!(process.stop().await, 0);
    let took = began.elapsed();
    let expected = Duration::from_secs(9)..Duration::from_secs(25);
    assert!(expected.contains(&took), "{took:?}");
    house.model.release();
    let process = house.spawn().await;
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    let states = "SELECT group_concat(state) FROM outbox";
    house.wait_until_stored(states, "sent").await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(alice.texts(), ["re: hello"]);
}

/// The times in the store are moved instead of the clock, which is the same to the next process.
#[tokio::test]
async fn what_waits_is_answered_once_after_the_clock_jumped_by_a_day() {
    for by in [DAY_MS, -DAY_MS] {
        let mut crowd = Crowd::new(4).await;
        let process = crowd.house.spawn().await;
        crowd.discord.connected().await;
        for spot in 0..crowd.spots.len() {
            crowd.says(spot, "please").await;
        }
        crowd.quiet(PATIENCE).await;
        // No answer comes before the kill.
        crowd.house.model.delay(Duration::from_secs(20));
        let asked = crowd.house.model.journal().len();
        for spot in 0..crowd.spots.len() {
            crowd.says(spot, "use a tool").await;
        }
        crowd.house.model.wait_for_requests(asked + 1).await;
        process.kill().await;
        for column in [
            "inbox SET received_at = received_at",
            "outbox SET created_at = created_at",
            "messages SET created_at = created_at",
        ] {
            crowd.house.tell(&format!("UPDATE {column} + {by}"));
        }
        crowd.house.model.delay(Duration::ZERO);
        let process = Process::start(crowd.house.home.path(), &["run"]);
        crowd.quiet(PATIENCE).await;
        assert_eq!(process.stop().await, 0);
        crowd.check();
    }
}
