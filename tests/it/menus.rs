//! Telegram's command menu, and buttons that are pressed instead of written.

use serde_json::Value;

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, Fault, buttons};

const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
[[bindings]]
match = "telegram:group:-1001"
agent = "main"
[[bindings]]
match = "telegram:topic:-1001:9"
agent = "main"
locked = true
"#;

/// S1.25 for Telegram.
#[tokio::test]
async fn a_press_switches_like_the_command_also_after_a_restart() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(ALICE, "/agents").await;
    let list = topic.wait_for_sent(1).await;
    let offered = buttons(&list.reply_markup);
    assert_eq!(
        offered
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["🌹 Rose"],
        "not the one who answers already"
    );
    assert!(offered[0].1.len() <= 64);
    house.close(gateway).await;

    let gateway = house.open().await;
    topic.presses(BOB, list.message_id, &offered[0].1).await;
    let changed = house.telegram.wait_for_calls("editMessageText", 1).await;
    assert_eq!(changed.params["message_id"], list.message_id);
    assert_eq!(
        changed.params["text"],
        "🌹 Rose answers here from now on. /agent reset undoes that.\nPressed by Bob.",
        "in the place of the list"
    );
    let offered = buttons(&changed.params["reply_markup"]);
    assert_eq!(
        offered
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["Main", "↩ undo the switch"],
        "as things are now"
    );
    let answered = house
        .telegram
        .wait_for_calls("answerCallbackQuery", 1)
        .await;
    assert_eq!(answered.params["text"], Value::Null, "only the clock ends");
    topic.says(BOB, "/agent").await;
    let shown = topic.wait_for_sent(2).await;
    assert!(
        shown
            .text
            .starts_with("🌹 Rose answers here. You chose Rose just now."),
        "{}",
        shown.text
    );
    let offered = buttons(&shown.reply_markup);
    assert_eq!(
        offered
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["Main", "↩ undo the switch"]
    );
    topic.presses(BOB, shown.message_id, &offered[1].1).await;
    let changed = house.telegram.wait_for_calls("editMessageText", 2).await;
    assert_eq!(changed.params["message_id"], shown.message_id);
    let text = changed.params["text"].as_str().unwrap_or_default();
    assert!(
        text.starts_with("The switch is undone. Main answers here."),
        "{text}"
    );
    assert_eq!(buttons(&changed.params["reply_markup"])[0].0, "🌹 Rose");
    house.close(gateway).await;
}

#[tokio::test]
async fn a_button_we_did_not_make_for_this_place_does_nothing_and_says_so() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let (here, there) = (
        house.telegram.forum(-1001).topic(5, "Five"),
        house.telegram.forum(-1001).topic(6, "Six"),
    );
    here.says(ALICE, "/agents").await;
    let list = here.wait_for_sent(1).await;
    there.says(ALICE, "/agents").await;
    let other = there.wait_for_sent(1).await;
    let good = buttons(&list.reply_markup)[0].1.clone();
    for forged in [
        good.replace("rose", "main"),
        "x".into(),
        String::new(),
        "0000000000000000/agent rose".into(),
    ] {
        here.presses(ALICE, list.message_id, &forged).await;
    }
    there.presses(ALICE, other.message_id, &good).await;
    let last = house
        .telegram
        .wait_for_calls("answerCallbackQuery", 5)
        .await;
    assert_eq!(
        last.params["text"],
        "This button is from another time. Write the command instead."
    );
    house.settled(&gateway).await;
    assert_eq!(
        (here.texts().len(), there.texts().len()),
        (1, 1),
        "nothing was said and nothing was switched"
    );
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    gateway.shutdown().await;
}

/// A press is checked as the written command would be.
#[tokio::test]
async fn a_press_is_no_way_around_a_lock() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let locked = house.telegram.forum(-1001).topic(9, "Nine");
    locked.says(ALICE, "/agents").await;
    let list = locked.wait_for_sent(1).await;
    locked
        .presses(BOB, list.message_id, &buttons(&list.reply_markup)[0].1)
        .await;
    let answered = house
        .telegram
        .wait_for_calls("answerCallbackQuery", 1)
        .await;
    assert_eq!(
        (&answered.params["text"], &answered.params["show_alert"]),
        (
            &Value::from("This place is locked to Main; only an owner or admin can switch it."),
            &Value::from(true)
        ),
        "for Bob alone"
    );
    house.settled(&gateway).await;
    assert_eq!(locked.texts().len(), 1, "{:?}", locked.texts());
    house.close(gateway).await;
}

/// Telegram takes no late answer; then the refusal is said in the place.
#[tokio::test]
async fn a_refusal_that_comes_too_late_for_a_pop_up_is_a_message() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let locked = house.telegram.forum(-1001).topic(9, "Nine");
    locked.says(ALICE, "/agents").await;
    let list = locked.wait_for_sent(1).await;
    house
        .telegram
        .fail(
            "answerCallbackQuery",
            Fault::Refused(
                400,
                "Bad Request: query is too old and response timeout expired or query ID is invalid",
            ),
        )
        .once();
    locked
        .presses(BOB, list.message_id, &buttons(&list.reply_markup)[0].1)
        .await;
    assert_eq!(
        locked.wait_for_sent(2).await.text,
        "This place is locked to Main; only an owner or admin can switch it."
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn the_menu_is_told_once_and_again_only_when_it_changed() {
    let house = House::new(TEAM).await;
    let told = || house.telegram.calls("setMyCommands");
    let gateway = house.open().await;
    house.telegram.wait_for_calls("setMyCommands", 3).await;
    house
        .wait_until_stored("SELECT count(*) FROM telegram_menus", "3")
        .await;
    gateway.shutdown().await;
    let scopes: Vec<Value> = told()
        .iter()
        .map(|call| call.params["scope"]["type"].clone())
        .collect();
    assert_eq!(scopes, ["all_private_chats", "all_group_chats", "chat"]);
    let names = |call: usize| -> Vec<String> {
        let commands = told()[call].params["commands"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        commands
            .iter()
            .map(|entry| entry["command"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        names(0),
        [
            "agent", "agents", "model", "models", "whoami", "new", "stop", "queue", "status",
            "usage", "skills", "memory", "remember", "forget", "help"
        ]
    );
    assert_eq!(
        names(2).last().map(String::as_str),
        Some("resume"),
        "owners see more"
    );

    house.open().await.shutdown().await;
    house.tell("UPDATE telegram_menus SET menu = 'of an older version' WHERE scope LIKE '%group%'");
    let gateway = house.open().await;
    house.telegram.wait_for_calls("setMyCommands", 4).await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM telegram_menus WHERE menu LIKE 'of%'",
            "0",
        )
        .await;
    gateway.shutdown().await;
    assert_eq!(told().len(), 4, "only the one that changed");
}

#[tokio::test]
async fn a_menu_that_cannot_be_set_is_in_nobodys_way() {
    let house = House::new(TEAM).await;
    house
        .telegram
        .fail(
            "setMyCommands",
            Fault::Refused(400, "Bad Request: BOT_COMMAND_INVALID"),
        )
        .times(3);
    let gateway = house.open().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    house.close(gateway).await;
}
