//! What the bot may do, and what is refused in which words.

use insta::{assert_json_snapshot, assert_snapshot};
use serde_json::{Value, json};

use super::{Bot, body};
use crate::support::fake_telegram::{ALICE, BOB, FakeTelegram, Journal, Outcome, PARLOR_BOT};

const FORUM: i64 = -1001;

#[tokio::test]
async fn methods_are_found_in_any_case_and_journaled_as_documented() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);

    for spelling in ["getMe", "GetMe", "getme"] {
        assert_eq!(
            bot.call(spelling, json!({})).await["result"]["username"],
            "parlor_bot"
        );
    }

    assert_eq!(telegram.wait_for_calls("getMe", 3).await.method, "getMe");
    assert_eq!(
        bot.refusal("getStarGifts", json!({})).await,
        "404 Not Found: method not found"
    );
    let outcomes: Vec<Outcome> = telegram.journal().iter().map(|call| call.outcome).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Status(200),
            Outcome::Status(200),
            Outcome::Status(200),
            Outcome::Status(404)
        ]
    );
}

#[tokio::test]
async fn get_me_has_every_field_that_teloxide_needs() {
    let telegram = FakeTelegram::start().await;
    telegram.set_me("can_read_all_group_messages", false);

    let me = Bot::new(&telegram).call("getMe", json!({})).await["result"].to_string();

    let me: teloxide::types::Me = serde_json::from_str(&me).expect("teloxide parses it");
    assert_eq!(me.username(), "parlor_bot");
    assert_eq!(me.user.id.0 as i64, PARLOR_BOT.id);
    assert!(!me.can_read_all_group_messages);
}

#[tokio::test]
async fn a_wrong_token_is_unauthorized() {
    let telegram = FakeTelegram::start().await;
    let stranger = Bot::with_token(&telegram, "123456:OTHER-TOKEN");

    assert_eq!(
        stranger.refusal("getMe", json!({})).await,
        "401 Unauthorized"
    );
}

#[tokio::test]
async fn every_encoding_of_the_parameters_is_understood() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    telegram.dm(ALICE);
    let post = || bot.client.post(format!("{}/sendMessage", bot.base));

    let urlencoded = post().header("content-type", "application/x-www-form-urlencoded");
    body(
        urlencoded
            .body("chat_id=111&text=42+is+it&entities=[{\"type\":\"bold\",\"offset\":0,\"length\":2}]")
            .send()
            .await
            .unwrap(),
    )
    .await;
    let multipart = post().header("content-type", "multipart/form-data; boundary=B");
    let parts = "--B\r\ncontent-disposition: form-data; name=\"chat_id\"\r\n\r\n111\r\n\
                 --B\r\ncontent-disposition: form-data; name=\"text\"\r\n\r\n42\r\n\
                 --B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nabc\r\n--B--\r\n";
    body(multipart.body(parts).send().await.unwrap()).await;
    body(
        bot.client
            .get(format!("{}/sendMessage?chat_id=111&text=query", bot.base))
            .send()
            .await
            .unwrap(),
    )
    .await;

    assert_eq!(
        telegram.texts_in(ALICE.id, None),
        ["42 is it", "42", "query"]
    );
    assert_eq!(
        telegram.sent()[0].entities,
        [json!({ "type": "bold", "offset": 0, "length": 2 })]
    );
    assert_json_snapshot!(*telegram.calls("sendMessage")[1].params, @r#"
    {
      "chat_id": 111,
      "text": "42",
      "file": {
        "file_name": "a.txt",
        "size": 3,
        "text": "abc"
      }
    }
    "#);
}

#[tokio::test]
async fn a_message_to_a_topic_comes_back_as_the_chat_shows_it() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    telegram.forum(FORUM).topic(101, "Rose");

    let entities = json!([{ "type": "bold", "offset": 0, "length": 5 }]);
    let params = json!({ "chat_id": FORUM, "message_thread_id": 101, "text": "hello", "entities": entities });
    let answer = bot.call("sendMessage", params).await;

    assert_json_snapshot!(answer["result"], { ".**.date" => 0, ".reply_to_message" => "[creation of the topic]" }, @r#"
    {
      "message_id": 1001,
      "from": {
        "id": 123456,
        "is_bot": true,
        "first_name": "Parlor",
        "username": "parlor_bot"
      },
      "chat": {
        "id": -1001,
        "type": "supergroup",
        "title": "Chat -1001",
        "is_forum": true
      },
      "date": 0,
      "message_thread_id": 101,
      "is_topic_message": true,
      "reply_to_message": "[creation of the topic]",
      "text": "hello",
      "entities": [
        {
          "type": "bold",
          "offset": 0,
          "length": 5
        }
      ]
    }
    "#);
    let _parses: teloxide::types::Message =
        serde_json::from_str(&answer["result"].to_string()).expect("teloxide parses it");
}

#[tokio::test]
async fn a_reply_lands_in_the_topic_of_its_message() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let asked = telegram
        .forum(FORUM)
        .topic(101, "Rose")
        .says(ALICE, "what?")
        .await;

    bot.send(json!({ "chat_id": FORUM, "text": "that", "reply_parameters": { "message_id": asked.message_id } })).await;

    let sent = telegram
        .forum(FORUM)
        .topic(101, "Rose")
        .wait_for_sent(1)
        .await;
    assert_eq!(
        (sent.thread, sent.reply_to),
        (Some(101), Some(asked.message_id))
    );
}

#[tokio::test]
async fn message_ids_grow_in_each_chat() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let asked = telegram.dm(ALICE).says("hi").await.message_id;
    telegram.group(-5);

    assert_eq!(
        bot.send(json!({ "chat_id": ALICE.id, "text": "hi" })).await,
        asked + 1
    );
    assert_eq!(
        bot.send(json!({ "chat_id": ALICE.id, "text": "hi" })).await,
        asked + 2
    );
    assert_eq!(
        bot.send(json!({ "chat_id": -5, "text": "hi" })).await,
        asked
    );
}

#[tokio::test]
async fn what_the_real_server_refuses_is_refused() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let forum = telegram.forum(FORUM);
    forum.topic(102, "Closed").closes_topic(ALICE).await;
    forum.topic(103, "Deleted").deletes_topic();
    telegram.dm(ALICE);
    telegram.supergroup(-1002);

    let to = |chat_id: i64, more: Value| {
        let mut params = json!({ "chat_id": chat_id, "text": "hello" });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };
    let entity = |offset: i64, length: i64| {
        to(
            FORUM,
            json!({ "text": "a👋", "entities": [{ "type": "bold", "offset": offset, "length": length }] }),
        )
    };
    let cases = [
        to(-9, json!({})),
        json!({ "text": "hello" }),
        to(FORUM, json!({ "text": " \n" })),
        to(FORUM, json!({ "text": "👋".repeat(2049) })),
        to(FORUM, json!({ "message_thread_id": 1 })),
        to(FORUM, json!({ "message_thread_id": 999 })),
        to(FORUM, json!({ "message_thread_id": 102 })),
        to(FORUM, json!({ "message_thread_id": 103 })),
        to(ALICE.id, json!({ "message_thread_id": 7 })),
        to(FORUM, json!({ "reply_parameters": { "message_id": 7 } })),
        to(
            FORUM,
            json!({ "entities": [{ "type": "sparkle", "offset": 0, "length": 1 }] }),
        ),
        to(
            FORUM,
            json!({ "reply_markup": { "inline_keyboard": [[{ "text": "Yes", "callback_data": "y".repeat(65) }]] } }),
        ),
        entity(0, 0),
        entity(3, 1),
        entity(0, 4),
        entity(2, 1),
        entity(0, 2),
    ];
    let mut refusals = Vec::new();
    for params in cases {
        refusals.push(bot.refusal("sendMessage", params).await);
    }
    assert_snapshot!(refusals.join("\n"), @"
    400 Bad Request: chat not found
    400 Bad Request: chat_id is empty
    400 Bad Request: message text is empty
    400 Bad Request: message is too long
    400 Bad Request: message thread not found
    400 Bad Request: message thread not found
    400 Bad Request: TOPIC_CLOSED
    400 Bad Request: message thread not found
    400 Bad Request: message thread not found
    400 Bad Request: message to be replied not found
    400 Bad Request: can't parse MessageEntity: Unsupported type specified
    400 Bad Request: BUTTON_DATA_INVALID
    400 Bad Request: entity has an invalid offset or length
    400 Bad Request: entity begins after the end of the text at UTF-16 offset 3
    400 Bad Request: entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 4
    400 Bad Request: entity begins in a middle of a UTF-16 symbol at UTF-16 offset 2
    400 Bad Request: entity ends in a middle of a UTF-16 symbol at UTF-16 offset 2
    ");
    assert!(telegram.sent().is_empty());

    bot.send(to(-1002, json!({ "message_thread_id": 999 })))
        .await;
    bot.send(to(FORUM, json!({ "text": "👋".repeat(2048) })))
        .await;
    bot.send(to(
        FORUM,
        json!({ "reply_parameters": { "message_id": 7, "allow_sending_without_reply": true } }),
    ))
    .await;
    forum.topic(102, "Closed").reopens_topic(ALICE).await;
    bot.send(to(FORUM, json!({ "message_thread_id": 102 })))
        .await;
    assert_eq!(telegram.wait_for_sent(4).await.thread, Some(102));
}

#[tokio::test]
async fn edits_show_in_the_chat_and_must_change_something() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let asked = telegram.dm(ALICE).says("hi").await.message_id;
    let keyboard = json!({ "inline_keyboard": [[{ "text": "Yes", "callback_data": "yes" }]] });
    let message_id = bot
        .send(json!({ "chat_id": ALICE.id, "text": "one", "reply_markup": keyboard }))
        .await;
    assert_eq!(telegram.sent()[0].reply_markup, keyboard);
    let edit = |message_id: i64, text: &str| json!({ "chat_id": ALICE.id, "message_id": message_id, "text": text });

    let answer = bot.call("editMessageText", edit(message_id, "two")).await;
    assert_eq!(
        (&answer["result"]["text"], &answer["result"]["reply_markup"]),
        (&json!("two"), &Value::Null)
    );
    assert_eq!(telegram.texts_in(ALICE.id, None), ["two"]);

    let mut refusals = Vec::new();
    for params in [
        edit(message_id, "two"),
        edit(message_id, ""),
        edit(asked, "two"),
        edit(77, "two"),
    ] {
        refusals.push(bot.refusal("editMessageText", params).await);
    }
    assert_snapshot!(refusals.join("\n"), @"
    400 Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message
    400 Bad Request: message text is empty
    400 Bad Request: message can't be edited
    400 Bad Request: message to edit not found
    ");
}

#[tokio::test]
async fn deleted_messages_leave_the_chat_but_not_the_journal() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    telegram.dm(ALICE);
    let message_id = bot
        .send(json!({ "chat_id": ALICE.id, "text": "oops" }))
        .await;

    let params = json!({ "chat_id": ALICE.id, "message_id": message_id });
    bot.call("deleteMessage", params.clone()).await;

    assert!(telegram.texts_in(ALICE.id, None).is_empty());
    assert!(telegram.sent()[0].deleted);
    assert_eq!(
        bot.refusal("deleteMessage", params).await,
        "400 Bad Request: message to delete not found"
    );
}

#[tokio::test]
async fn a_reaction_replaces_the_last_one_and_must_be_an_allowed_emoji() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let message_id = telegram.dm(ALICE).says("hi").await.message_id;
    let react = |emoji: &[&str]| {
        let reactions: Vec<Value> = emoji
            .iter()
            .map(|emoji| json!({ "type": "emoji", "emoji": emoji }))
            .collect();
        json!({ "chat_id": ALICE.id, "message_id": message_id, "reaction": reactions })
    };

    bot.call("setMessageReaction", react(&["👀"])).await;
    assert_eq!(
        telegram.reaction_to(ALICE.id, message_id).as_deref(),
        Some("👀")
    );
    assert_eq!(
        bot.refusal("setMessageReaction", react(&["✅"])).await,
        "400 Bad Request: REACTION_INVALID"
    );
    assert_eq!(
        bot.refusal("setMessageReaction", react(&["👀", "👍"]))
            .await,
        "400 Bad Request: REACTIONS_TOO_MANY"
    );
    bot.call("setMessageReaction", react(&[])).await;
    assert_eq!(telegram.reaction_to(ALICE.id, message_id), None);
}

#[tokio::test]
async fn chat_actions_and_drafts_obey_the_rules_of_their_place() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    telegram.forum(FORUM);
    telegram.dm(ALICE).topic(7, "Plans");
    let typing = |chat_id: i64, thread: i64| json!({ "chat_id": chat_id, "message_thread_id": thread, "action": "typing" });
    let draft = |chat_id: i64, draft_id: i64| json!({ "chat_id": chat_id, "draft_id": draft_id, "text": "" });

    bot.call("sendChatAction", typing(ALICE.id, 7)).await;
    assert_eq!(
        bot.refusal("sendChatAction", typing(FORUM, 9)).await,
        "400 Bad Request: message thread not found"
    );
    let params = json!({ "chat_id": FORUM, "action": "thinking" });
    assert_eq!(
        bot.refusal("sendChatAction", params).await,
        "400 Bad Request: wrong parameter action in request"
    );
    assert_eq!(
        bot.call("sendMessageDraft", draft(ALICE.id, 1)).await["result"],
        true
    );
    assert_eq!(
        bot.refusal("sendMessageDraft", draft(ALICE.id, 0)).await,
        "400 Bad Request: RANDOM_ID_INVALID"
    );
    assert_eq!(
        bot.refusal("sendMessageDraft", draft(FORUM, 1)).await,
        "400 Bad Request: TEXTDRAFT_PEER_INVALID"
    );
}

#[tokio::test]
async fn commands_are_kept_by_scope() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let commands = json!([{ "command": "help", "description": "Shows help" }]);

    let with_slash = json!([{ "command": "/help", "description": "Shows help" }]);
    bot.call("setMyCommands", json!({ "commands": with_slash }))
        .await;
    assert_eq!(
        bot.call("getMyCommands", json!({})).await["result"],
        commands
    );
    assert_eq!(
        bot.call(
            "getMyCommands",
            json!({ "scope": { "type": "all_group_chats" } })
        )
        .await["result"],
        json!([])
    );
    assert_eq!(telegram.commands(), commands);

    let bad_name = json!({ "commands": [{ "command": "Help", "description": "Shows help" }] });
    assert_eq!(
        bot.refusal("setMyCommands", bad_name).await,
        "400 Bad Request: BOT_COMMAND_INVALID"
    );
    bot.call("deleteMyCommands", json!({})).await;
    assert_eq!(telegram.commands(), json!([]));
}

#[tokio::test]
async fn a_callback_query_can_be_answered_once() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let dm = telegram.dm(ALICE);
    let message_id = bot
        .send(json!({ "chat_id": ALICE.id, "text": "Sure?" }))
        .await;
    let pressed = dm.presses(message_id, "yes").await;
    let update: Value = serde_json::from_str(&telegram.update(pressed.update_id)).unwrap();
    let answer = json!({ "callback_query_id": update["callback_query"]["id"] });

    bot.call("answerCallbackQuery", answer.clone()).await;
    assert_snapshot!(bot.refusal("answerCallbackQuery", answer).await, @"400 Bad Request: query is too old and response timeout expired or query ID is invalid");
}

#[tokio::test]
async fn a_chat_that_threw_the_bot_out_answers_403() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    telegram.dm(ALICE).blocks_bot().await;
    telegram.group(-5).removes_bot(BOB).await;
    telegram.supergroup(-1002).removes_bot(BOB).await;

    let mut refusals = Vec::new();
    for chat_id in [ALICE.id, -5, -1002] {
        refusals.push(
            bot.refusal(
                "sendMessage",
                json!({ "chat_id": chat_id, "text": "hello?" }),
            )
            .await,
        );
    }
    assert_snapshot!(refusals.join("\n"), @"
    403 Forbidden: bot was blocked by the user
    403 Forbidden: bot was kicked from the group chat
    403 Forbidden: bot was kicked from the supergroup chat
    ");

    telegram.group(-5).adds_bot(BOB).await;
    bot.send(json!({ "chat_id": -5, "text": "hello again" }))
        .await;
}

#[tokio::test]
async fn a_migrated_group_points_to_its_new_id() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let old = telegram.group(-5);
    let new = old.migrates_to(-1005).await;

    let answer = bot
        .call(
            "sendMessage",
            json!({ "chat_id": old.chat_id, "text": "hello" }),
        )
        .await;

    assert_json_snapshot!(answer, @r#"
    {
      "ok": false,
      "error_code": 400,
      "description": "Bad Request: group chat was upgraded to a supergroup chat",
      "parameters": {
        "migrate_to_chat_id": -1005
      }
    }
    "#);
    bot.send(json!({ "chat_id": new.chat_id, "text": "hello" }))
        .await;
}

#[tokio::test]
async fn a_test_can_wait_for_anything_in_the_journal() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let dm = telegram.dm(ALICE);
    let sending = tokio::spawn(async move {
        bot.send(json!({ "chat_id": ALICE.id, "text": "done" }))
            .await
    });

    let is_done = |journal: &Journal| {
        journal.texts_in(ALICE.id, None) == ["done"]
            && journal
                .calls("sendMessage")
                .all(|call| call.outcome == Outcome::Status(200))
    };
    telegram.wait_until(is_done).await;

    sending.await.expect("the message is sent");
    assert_eq!(dm.wait_for_sent(1).await.text, "done");
    assert_eq!(dm.texts(), ["done"]);
    assert_eq!(dm.place().texts(), ["done"]);
    assert!(telegram.calls("sendMessage")[0].at.elapsed().as_secs() < 60);
}
