//! A platform that is back after an outage: one call that works ends the waits of all the others.

use std::time::Duration;

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, Fault};

const OPEN: &str = "[access]\ndms = \"open\"\n";

/// The third failed poll in a row is followed by a wait of four seconds.
#[tokio::test]
async fn a_send_that_works_ends_the_wait_of_the_poller() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house.model.hold();
    let alice = house.telegram.dm(ALICE);
    let polls = house.telegram.calls("getUpdates").len();
    house.telegram.fail("getUpdates", Fault::Html(502)).times(3);
    alice.says("hello").await;
    house.model.wait_for_open(1).await;
    let last_failure = house.telegram.wait_for_calls("getUpdates", polls + 3).await;
    house.model.release();
    alice.wait_for_sent(1).await;
    let next = house.telegram.wait_for_calls("getUpdates", polls + 4).await;
    assert!(
        next.at - last_failure.at < Duration::from_secs(3),
        "{:?}",
        next.at - last_failure.at
    );
    house.close(gateway).await;
}

/// The third failed send in a row is followed by a wait of four seconds, which another place's
/// message ends.
#[tokio::test]
async fn a_call_that_works_ends_the_waits_of_sends() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house
        .telegram
        .fail("sendMessage", Fault::Unauthorized)
        .only_in(ALICE.id)
        .times(3);
    alice.says("hello").await;
    let third = house.telegram.wait_for_calls("sendMessage", 3).await;
    bob.says("quick").await;
    bob.wait_for_sent(1).await;
    alice.wait_for_sent(1).await;
    let calls = house.telegram.calls("sendMessage");
    let fourth = calls
        .iter()
        .rfind(|call| call.params["chat_id"] == ALICE.id)
        .expect("it was sent");
    assert!(
        fourth.at - third.at < Duration::from_secs(3),
        "{:?}",
        fourth.at - third.at
    );
    house.close(gateway).await;
}
