//! Sends that the platform may have taken although it did not say so: made once more, and never a
//! third time.

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_discord::{self, Route};
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, Fault};

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";
const ANSWER: &str = "This answer takes its time, so that one can see it being written, piece by piece, up to its end.";
/// Not one of these says that the message was not taken.
const IN_DOUBT: [Fault; 5] = [
    Fault::HtmlAfter(502),
    Fault::HtmlAfter(504),
    Fault::HtmlAfter(500),
    Fault::HtmlAfter(403),
    Fault::RefusedAfter(500, "Internal Server Error"),
];

#[tokio::test]
async fn a_send_that_was_taken_but_answered_with_an_error_is_there_twice_at_most() {
    let check = async |fault: Fault| {
        let mut house = House::new(OPEN).await;
        // Nobody can know that the failed sends arrived.
        house.give_up(Promise::SentOnce);
        let gateway = house.open().await;
        let alice = house.telegram.dm(ALICE);
        house.telegram.fail("sendMessage", fault).times(5);
        alice.says("hello").await;
        house
            .wait_until_stored("SELECT count(*) FROM outbox WHERE state = 'failed'", "1")
            .await;
        assert_eq!(alice.texts(), ["re: hello", "re: hello"], "{fault:?}");
        assert_eq!(
            house.ask("SELECT error FROM outbox"),
            "sent twice, and neither answer was seen",
            "{fault:?}"
        );
        gateway.shutdown().await;
        house.leave_leftovers();
    };
    let [one, two, three, four, five] = IN_DOUBT;
    tokio::join!(
        check(one),
        check(two),
        check(three),
        check(four),
        check(five)
    );
}

/// The one repetition is not spent on a server that is down: it is made when something else was
/// answered.
#[tokio::test]
async fn the_one_repetition_waits_until_the_platform_answers_again() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.hold();
    alice.says("hello").await;
    house.model.wait_for_open(1).await;
    let outage = house
        .telegram
        .fail(crate::support::fake_telegram::ANY_METHOD, Fault::Html(502))
        .until_dropped();
    house.model.release();
    house.telegram.wait_for_calls("sendMessage", 1).await;
    // Who we are is asked to find out whether Telegram answers at all.
    house.telegram.wait_for_calls("getMe", 3).await;
    assert_eq!(
        house.telegram.calls("sendMessage").len(),
        1,
        "not repeated while nothing else is answered"
    );
    drop(outage);
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["re: hello"]);
    assert_eq!(house.telegram.calls("sendMessage").len(), 2);
    gateway.shutdown().await;
}

/// A second sign that somebody types comes after more than four seconds: time enough for another
/// preview.
#[tokio::test]
async fn a_preview_that_was_taken_but_answered_with_an_error_is_not_repeated() {
    let house = House::new(OPEN).await;
    // Nobody can know that the failed sends arrived.
    house.give_up(Promise::SentOnce);
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    let fault = house
        .telegram
        .fail("sendMessage", Fault::HtmlAfter(502))
        .until_dropped();
    house.model.enqueue(Script::Pauses {
        text: ANSWER.into(),
        after: vec![12],
    });
    group.says(ALICE, "tell me").await;
    house.telegram.wait_for_calls("sendMessage", 1).await;
    let signs = house.telegram.calls("sendChatAction").len();
    house
        .telegram
        .wait_for_calls("sendChatAction", signs + 2)
        .await;
    assert_eq!(house.telegram.calls("sendMessage").len(), 1);
    drop(fault);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        group.texts(),
        [
            "This answer takes its time, so that one can see it being",
            ANSWER
        ]
    );
    gateway.shutdown().await;
}

/// Discord tells the repetition of a preview from a new one, so what it shows already is found
/// again and finished.
#[tokio::test]
async fn a_preview_on_discord_whose_answer_was_lost_is_finished_in_the_same_message() {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    discord
        .fail(Route::CreateMessage, fake_discord::Fault::HtmlAfter(502))
        .once();
    house.model.enqueue(Script::Pauses {
        text: ANSWER.into(),
        after: vec![12],
    });
    general.says(fake_discord::BOB, "tell me").await;
    house
        .wait_until_stored("SELECT count(*) FROM preview_messages", "1")
        .await;
    house.model.release();
    gateway.settled().await;
    assert_eq!(general.texts(), [ANSWER]);
    gateway.shutdown().await;
}

/// A kill in the middle of a call to Discord costs nothing: the nonce makes the second call the
/// same message, and none is counted.
#[tokio::test]
async fn a_kill_in_the_middle_of_a_send_to_discord_repeats_nothing_that_is_seen() {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("streaming = false").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let process = house.spawn().await;
    discord.connected().await;
    let hold = discord.hold_answers(Route::CreateMessage);
    general.says(fake_discord::BOB, "hello").await;
    discord.wait_for_calls(Route::CreateMessage, 1).await;
    process.kill().await;
    hold.release();
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent")
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(general.texts(), ["re: hello"]);
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE repeated = 1"),
        "0"
    );
}

/// A kill repeats every call that is being made, so there are never more of them than this.
#[tokio::test]
async fn a_slow_platform_has_a_bounded_number_of_sends_in_flight() {
    const MOST_IN_FLIGHT: usize = 32;
    let house = House::new(OPEN).await;
    house.open().await.shutdown().await;
    for user in 1..=40 {
        let place = house.place_id(&format!("telegram:group:-{user}:111"));
        house.tell(&format!(
            "INSERT INTO outbox (place_id, kind, part, created_at) VALUES
             ({place}, 'notice', '{{\"text\":\"hello\",\"entities\":[]}}', 0)"
        ));
        house.telegram.group(-user);
    }
    let hold = house.telegram.hold("sendMessage");
    let gateway = house.open().await;
    house
        .telegram
        .wait_for_calls("sendMessage", MOST_IN_FLIGHT)
        .await;
    // An answer to this needs a call as well, so it is in line behind the others when its row is
    // there.
    house.telegram.dm(ALICE).says("/whoami").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox", "41")
        .await;
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE state = 'sending'"),
        MOST_IN_FLIGHT.to_string()
    );
    assert_eq!(house.telegram.calls("sendMessage").len(), MOST_IN_FLIGHT);
    hold.release();
    house.close(gateway).await;
}
