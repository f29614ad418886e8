//! The clock of the machine jumps. What is stored with a time is moved instead, which is the same
//! to whoever reads it.

use std::time::Duration;

use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_telegram::{ALICE, Fault};

const OPEN: &str = "[access]\ndms = \"open\"\n";
const WAITING: &str = "SELECT count(*) FROM outbox WHERE state = 'waiting' AND error IS NOT NULL";

/// All times in the store are so much later than the clock: it went back.
fn clock_goes_back_twelve_hours(house: &House) {
    house
        .tell("UPDATE outbox SET created_at = created_at + 43200000, not_before = iif(not_before > 0, not_before + 43200000, 0)");
    house.tell("UPDATE chat_waits SET until = until + 43200000");
}

fn clock_goes_forward_two_days(house: &House) {
    house.tell(
        "UPDATE outbox SET created_at = created_at - 172800000, not_before = iif(not_before > 0, not_before - 172800000, 0)",
    );
    house.tell("UPDATE chat_waits SET until = until - 172800000");
}

#[tokio::test]
async fn a_wait_is_no_longer_than_it_was_asked_for_when_the_clock_goes_back() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(2))
        .once();
    alice.says("hello").await;
    house.wait_until_stored(WAITING, "1").await;
    clock_goes_back_twelve_hours(&house);
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    house.close(gateway).await;
}

/// Who starts after the jump knows only what is stored.
#[tokio::test]
async fn a_wait_is_no_longer_than_it_was_asked_for_after_a_restart_either() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(3))
        .once();
    alice.says("hello").await;
    house.wait_until_stored(WAITING, "1").await;
    process.kill().await;
    clock_goes_back_twelve_hours(&house);
    let process = house.spawn().await;
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    let calls = house.telegram.calls("sendMessage");
    assert!(
        calls[1].at - calls[0].at >= Duration::from_secs(3),
        "and no shorter"
    );
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent")
        .await;
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_row_is_not_too_old_because_the_clock_went_forward() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house
        .telegram
        .fail("sendMessage", Fault::Unauthorized)
        .times(3);
    alice.says("hello").await;
    house.wait_until_stored(WAITING, "1").await;
    clock_goes_forward_two_days(&house);
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    house.close(gateway).await;
}

/// The time that a row was really tried for counts, over restarts too.
#[tokio::test]
async fn a_row_that_was_tried_for_a_day_is_given_up() {
    let mut house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .telegram
        .fail("sendMessage", Fault::Unauthorized)
        .times(3);
    house.telegram.dm(ALICE).says("hello").await;
    house.wait_until_stored(WAITING, "1").await;
    house.tell("UPDATE outbox SET tried_ms = 86400000");
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "failed")
        .await;
    assert_eq!(
        house.ask("SELECT error FROM outbox"),
        "Telegram answered 401: Unauthorized"
    );
    gateway.shutdown().await;
    house.leave_leftovers();
}

/// Our clock is two days ahead of Discord's, so everything there looks too old to be caught up
/// with.
#[tokio::test]
async fn what_was_missed_on_discord_is_caught_up_with_by_discords_own_clock() {
    let rules = "[access]\nrequire_mention = false\n[[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n";
    let house = House::new(rules).await;
    let discord = house.add_discord("").await;
    discord.set_back(Duration::from_secs(2 * 24 * 60 * 60));
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    general.says(fake_discord::BOB, "one").await;
    assert_eq!(general.wait_for_sent(1).await.text, "re: one");
    gateway.shutdown().await;
    general.says(fake_discord::BOB, "two").await;
    let gateway = house.open_with(&discord).await;
    assert_eq!(general.wait_for_sent(2).await.text, "re: two");
    gateway.settled().await;
    gateway.shutdown().await;
}
