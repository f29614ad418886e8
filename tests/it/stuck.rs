//! One message that cannot be sent while everything else can: it is set aside, listed, and keeps
//! nobody waiting.

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_telegram::{ALICE, ANY_METHOD, BOB, Fault};
use crate::support::house::parlor;

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\n";
const BROKEN: Fault = Fault::Refused(500, "Internal Server Error");
const REASON: &str = "Telegram answered 500: Internal Server Error";

/// A row of Bob's chat, as an earlier process left it there after trying for ten minutes.
fn left_behind(house: &House, text: &str, target: Option<i64>, inbox_id: i64) {
    let target = target.map_or("NULL".to_owned(), |target| target.to_string());
    let place = house.place_id("telegram:dm:222");
    house.tell(&format!(
        "INSERT INTO outbox (place_id, kind, part, created_at, target, inbox_id, tried_ms) VALUES
         ({place}, 'final', '{{\"text\":\"{text}\",\"entities\":[]}}', 1, {target}, {inbox_id}, 600000)"
    ));
}

async fn run(house: &House, arguments: &[&str]) -> String {
    let output = parlor(house.home.path())
        .args(arguments)
        .output()
        .await
        .expect("the binary starts");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// An edit that is always answered with 500 is set aside with the later parts of its answer, and
/// the next answer goes on.
#[tokio::test]
async fn a_row_that_is_stuck_is_set_aside_with_its_answer_and_others_go_on() {
    let house = House::new(OPEN).await;
    // A row that is set aside goes out later.
    house.give_up(Promise::InOrder);
    house.open().await.shutdown().await;
    let (owner, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    left_behind(&house, "part one", Some(77), 1);
    left_behind(&house, "part two", None, 1);
    left_behind(&house, "another answer", None, 2);
    let fault = house
        .telegram
        .fail("editMessageText", BROKEN)
        .until_dropped();
    let gateway = house.open().await;
    assert_eq!(bob.wait_for_sent(1).await.text, "another answer");
    gateway.settled().await;
    let failed = "SELECT group_concat(id || ' ' || error, '; ') FROM outbox WHERE state = 'failed'";
    assert_eq!(
        house.ask(failed),
        format!("1 {REASON}; 2 the part before it could not be sent")
    );
    let listed = run(&house, &["failed"]).await;
    assert!(
        listed.contains(REASON) && listed.contains("the part before it could not be sent"),
        "{listed}"
    );

    insta::assert_snapshot!(owner.texts().join("\n"), @"I could not send one answer in telegram:dm:222: Telegram answered 500: Internal Server Error. It is kept, and the others go on. /retry there or here sends it again; parlor failed lists it, and parlor failed drop lets go of it.");

    drop(fault);
    house
        .telegram
        .fail(
            "editMessageText",
            Fault::Refused(400, "Bad Request: message to edit not found"),
        )
        .once();
    owner.says("/retry").await;
    bob.wait_for_sent(3).await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts(), ["another answer", "part one", "part two"]);
    gateway.shutdown().await;
}

/// On Telegram such a send is made twice, because it may have arrived. Then it is out of the way.
#[tokio::test]
async fn a_message_that_is_always_answered_with_an_error_keeps_nobody_waiting() {
    let mut house = House::new(OPEN).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    house.telegram.fail("sendMessage", BROKEN).times(2);
    bob.says("first").await;
    house.telegram.wait_for_calls("sendMessage", 1).await;
    bob.says("second").await;
    assert_eq!(bob.wait_for_sent(1).await.text, "re: second");
    house.settled(&gateway).await;
    let listed = run(&house, &["failed"]).await;
    assert!(
        listed.contains("sent twice, and neither answer was seen"),
        "{listed}"
    );
    gateway.shutdown().await;
    house.leave_leftovers();
}

/// While nothing at all is answered, no row is to blame: they wait in order, and go out in order.
#[tokio::test]
async fn a_row_is_not_set_aside_because_the_platform_is_down() {
    let house = House::new(OPEN).await;
    house.open().await.shutdown().await;
    let bob = house.telegram.dm(BOB);
    left_behind(&house, "one", Some(77), 1);
    left_behind(&house, "two", None, 2);
    let outage = house.telegram.fail(ANY_METHOD, BROKEN).until_dropped();
    let gateway = house.open().await;
    house.telegram.wait_for_calls("editMessageText", 3).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE state = 'failed'"),
        "0"
    );
    house
        .telegram
        .fail(
            "editMessageText",
            Fault::Refused(400, "Bad Request: message to edit not found"),
        )
        .once();
    drop(outage);
    bob.wait_for_sent(2).await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts(), ["one", "two"]);
    gateway.shutdown().await;
}

/// A part that is refused surely did not arrive, so the parts behind it would stand there without
/// their beginning.
#[tokio::test]
async fn an_answer_is_not_shown_without_its_beginning() {
    let mut house = House::new(OPEN).await;
    house.open().await.shutdown().await;
    let bob = house.telegram.dm(BOB);
    left_behind(&house, "part one", None, 1);
    left_behind(&house, "part two", None, 1);
    left_behind(&house, "another answer", None, 2);
    house
        .telegram
        .fail(
            "sendMessage",
            Fault::Refused(400, "Bad Request: message is too strange"),
        )
        .once();
    let gateway = house.open().await;
    bob.wait_for_sent(1).await;
    gateway.settled().await;
    assert_eq!(bob.texts(), ["another answer"]);
    gateway.shutdown().await;

    let bare = run(&house, &["failed", "drop"]).await;
    assert!(
        bare.starts_with("error: `parlor failed drop` needs "),
        "{bare}"
    );
    assert_eq!(
        run(&house, &["failed", "drop", "99"]).await,
        "error: no undelivered message has this number or place\nhint: `parlor failed` lists undelivered messages\n"
    );
    assert_eq!(
        run(&house, &["failed", "drop", "1"]).await,
        "1 message is deleted. Nobody will get it.\n"
    );
    assert_eq!(
        house.ask("SELECT group_concat(id) FROM outbox WHERE state = 'failed'"),
        "2"
    );
    assert_eq!(
        run(&house, &["failed", "drop", "all"]).await,
        "1 message is deleted. Nobody will get it.\n"
    );
    assert_eq!(
        run(&house, &["failed"]).await,
        "Everything was delivered.\n"
    );
    house.leave_leftovers();
}

/// What waits for long is counted where operators look, long before it is given up.
#[tokio::test]
async fn rows_that_wait_for_long_are_counted() {
    let mut house = House::new(OPEN).await;
    house.open().await.shutdown().await;
    house.tell(
        "INSERT INTO chat_waits (platform, chat, until, wait_ms) VALUES
        ('telegram', 222, CAST(unixepoch('subsec') * 1000 AS INTEGER) + 600000, 600000)",
    );
    let place = house.place_id("telegram:dm:222");
    house.tell(&format!(
        "INSERT INTO outbox (place_id, kind, part, created_at, error, repeated) VALUES ({place}, 'final',
         '{{\"text\":\"late\",\"entities\":[]}}', CAST(unixepoch('subsec') * 1000 AS INTEGER) - 61000, 'asked to wait', 1)"
    ));
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    alice.says("/status").await;
    let status = alice.wait_for_sent(1).await.text;
    let (_, counts) = status.split_once("For owners").expect("an owner asked");
    insta::assert_snapshot!(counts, @"
     and admins:
    • The gateway has been up for 0 minutes.
    • Nothing was asked in the last 24 hours.
    • 1 message not sent for more than a minute.
    • 1 message may have arrived twice, because the platform's receipt got lost.
    • Main: ready.
    ");
    house
        .wait_until_stored(
            "SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending')",
            "1",
        )
        .await;
    let listed = run(&house, &["failed"]).await;
    insta::assert_snapshot!(listed, @r"
    Nothing was given up.
    1 message has waited for more than a minute and is still being tried; the oldest is for telegram:dm:222: asked to wait.
    1 message was sent twice, because its first answer was lost; it may be there twice.
    ");
    house.leave_leftovers();
    gateway.shutdown().await;

    let waits = "1 answer waits to be sent; it goes out at the next `parlor run`.";
    for verb in ["failed", "status", "doctor"] {
        let told = run(&house, &[verb]).await;
        assert!(told.contains(waits), "{verb}: {told}");
    }
}
