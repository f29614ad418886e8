//! The JSON of an update in each situation, and that teloxide reads it.

use insta::assert_snapshot;
use serde_json::{Value, json};
use teloxide::types::{Message, Update, UpdateKind};

use super::Bot;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Dm, FakeTelegram, OTHER_BOT, Place, User};

const CHAT: i64 = -1001;

#[tokio::test]
async fn message_in_a_named_topic() {
    let telegram = FakeTelegram::start().await;
    let rose = telegram.forum(CHAT).topic(101, "Rose");
    let said = rose.says(ALICE, "hello").await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},
      "date": 0,
      "message_thread_id": 101,
      "is_topic_message": true,
      "reply_to_message": {"message_id":101,"from":{"id":333,"is_bot":false,"first_name":"Carol","language_code":"en"},"chat":{"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},"date":0,"message_thread_id":101,"is_topic_message":true,"forum_topic_created":{"name":"Rose","icon_color":7322096}},
      "text": "hello"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, said.update_id),
        seen("hello", Some(101), true)
    );
}

#[tokio::test]
async fn reply_in_a_named_topic() {
    let telegram = FakeTelegram::start().await;
    let rose = telegram.forum(CHAT).topic(101, "Rose");
    let said = rose.says(ALICE, "hello").await;
    let reply = rose
        .says(BOB, "hello yourself")
        .replying_to(said.message_id)
        .await;

    assert_snapshot!(json_of(&telegram, reply.update_id), @r#"
    { "update_id": 10002, "message": {
      "message_id": 1002,
      "from": {"id":222,"is_bot":false,"first_name":"Bob","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},
      "date": 0,
      "message_thread_id": 101,
      "is_topic_message": true,
      "reply_to_message": {"message_id":1001,"from":{"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},"chat":{"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},"date":0,"message_thread_id":101,"is_topic_message":true,"text":"hello"},
      "text": "hello yourself"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, reply.update_id),
        seen("hello yourself", Some(101), true)
    );
}

#[tokio::test]
async fn message_and_reply_in_general() {
    let telegram = FakeTelegram::start().await;
    let general = telegram.forum(CHAT);
    let said = general.says(ALICE, "hello").await;
    let reply = general.says(BOB, "hi").replying_to(said.message_id).await;
    let deeper = general
        .says(ALICE, "ho")
        .replying_to(reply.message_id)
        .await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},
      "date": 0,
      "text": "hello"
    } }
    "#);
    assert_snapshot!(json_of(&telegram, deeper.update_id), @r#"
    { "update_id": 10003, "message": {
      "message_id": 1003,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},
      "date": 0,
      "message_thread_id": 1001,
      "reply_to_message": {"message_id":1002,"from":{"id":222,"is_bot":false,"first_name":"Bob","language_code":"en"},"chat":{"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},"date":0,"message_thread_id":1001,"text":"hi"},
      "text": "ho"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, said.update_id),
        seen("hello", None, false)
    );
    assert_eq!(
        teloxide_sees(&telegram, deeper.update_id),
        seen("ho", Some(said.message_id), false)
    );
}

#[tokio::test]
async fn reply_in_a_plain_supergroup() {
    let telegram = FakeTelegram::start().await;
    let group = telegram.supergroup(CHAT);
    let said = group.says(ALICE, "hello").await;
    let reply = group.says(BOB, "hi").replying_to(said.message_id).await;

    assert_snapshot!(json_of(&telegram, reply.update_id), @r#"
    { "update_id": 10002, "message": {
      "message_id": 1002,
      "from": {"id":222,"is_bot":false,"first_name":"Bob","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001"},
      "date": 0,
      "message_thread_id": 1001,
      "reply_to_message": {"message_id":1001,"from":{"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},"chat":{"id":-1001,"type":"supergroup","title":"Chat -1001"},"date":0,"text":"hello"},
      "text": "hi"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, reply.update_id),
        seen("hi", Some(said.message_id), false)
    );
}

#[tokio::test]
async fn reply_in_a_basic_group_to_the_bot() {
    let telegram = FakeTelegram::start().await;
    let group = telegram.group(-5);
    let from_bot = Bot::new(&telegram)
        .send(json!({ "chat_id": -5, "text": "I am here" }))
        .await;
    let reply = group.says(ALICE, "good").replying_to(from_bot).await;

    assert_snapshot!(json_of(&telegram, reply.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1002,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-5,"type":"group","title":"Chat -5","all_members_are_administrators":true},
      "date": 0,
      "reply_to_message": {"message_id":1001,"from":{"id":123456,"is_bot":true,"first_name":"Parlor","username":"parlor_bot"},"chat":{"id":-5,"type":"group","title":"Chat -5","all_members_are_administrators":true},"date":0,"text":"I am here"},
      "text": "good"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, reply.update_id),
        seen("good", None, false)
    );
}

#[tokio::test]
async fn message_in_a_private_chat_and_in_a_private_topic() {
    let telegram = FakeTelegram::start().await;
    let dm: Dm = telegram.private_chat(ALICE);
    let plain = dm.says("hello").await;
    let topic = dm.topic(7, "Plans").says("hello").await;

    assert_snapshot!(json_of(&telegram, plain.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":111,"type":"private","first_name":"Alice"},
      "date": 0,
      "text": "hello"
    } }
    "#);
    assert_snapshot!(json_of(&telegram, topic.update_id), @r#"
    { "update_id": 10002, "message": {
      "message_id": 1002,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":111,"type":"private","first_name":"Alice"},
      "date": 0,
      "message_thread_id": 7,
      "is_topic_message": true,
      "text": "hello"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, plain.update_id),
        seen("hello", None, false)
    );
    assert_eq!(
        teloxide_sees(&telegram, topic.update_id),
        seen("hello", Some(7), true)
    );
}

#[tokio::test]
async fn mentions_and_commands_are_marked_in_utf16_units() {
    let telegram = FakeTelegram::start().await;
    let group = telegram.group(-5);
    let entities = async |text: &str| {
        let said = group.says(ALICE, text).await;
        teloxide_sees(&telegram, said.update_id);
        let update: Value = serde_json::from_str(&telegram.update(said.update_id)).unwrap();
        update["message"]["entities"].to_string()
    };

    assert_snapshot!(entities("👋 @parlor_bot, hi").await, @r#"[{"type":"mention","offset":3,"length":11}]"#);
    assert_snapshot!(entities("/agent@parlor_bot scribe").await, @r#"[{"type":"bot_command","offset":0,"length":17}]"#);
    assert_snapshot!(entities("try /help or mail me@example.org and/or wait").await, @r#"[{"type":"bot_command","offset":4,"length":5}]"#);
    assert_snapshot!(entities("nothing / @ here").await, @"null");
}

#[tokio::test]
async fn mention_of_somebody_without_a_username() {
    let telegram = FakeTelegram::start().await;
    let said = telegram
        .group(-5)
        .says(ALICE, "ask Bob")
        .mentioning("Bob", BOB)
        .await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-5,"type":"group","title":"Chat -5","all_members_are_administrators":true},
      "date": 0,
      "text": "ask Bob",
      "entities": [{"type":"text_mention","user":{"id":222,"is_bot":false,"first_name":"Bob","language_code":"en"},"offset":4,"length":3}]
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, said.update_id),
        seen("ask Bob", None, false)
    );
}

#[tokio::test]
async fn entity_that_teloxide_does_not_know_hides_the_text() {
    let telegram = FakeTelegram::start().await;
    let said = telegram
        .dm(ALICE)
        .says("meet at 10:00")
        .marking("10:00", "date_time")
        .await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":111,"type":"private","first_name":"Alice"},
      "date": 0,
      "text": "meet at 10:00",
      "entities": [{"type":"date_time","offset":8,"length":5}]
    } }
    "#);
    assert_eq!(
        teloxide_message(&telegram, said.update_id).text(),
        None,
        "this is the trap the shape is for"
    );
}

#[tokio::test]
async fn edited_message() {
    let telegram = FakeTelegram::start().await;
    let dm = telegram.dm(ALICE);
    let said = dm.says("/helo").await;
    let edited = dm.edits(said.message_id, "help me").await;

    assert_snapshot!(json_of(&telegram, edited.update_id), @r#"
    { "update_id": 10002, "edited_message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":111,"type":"private","first_name":"Alice"},
      "date": 0,
      "text": "help me",
      "edit_date": 0
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, edited.update_id),
        seen("help me", None, false)
    );
}

#[tokio::test]
async fn channel_post() {
    let telegram = FakeTelegram::start().await;
    let post = telegram.channel(-1009).posts("news").await;

    assert_snapshot!(json_of(&telegram, post.update_id), @r#"
    { "update_id": 10001, "channel_post": {
      "message_id": 1001,
      "sender_chat": {"id":-1009,"type":"channel","title":"Chat -1009"},
      "chat": {"id":-1009,"type":"channel","title":"Chat -1009"},
      "date": 0,
      "text": "news"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, post.update_id),
        seen("news", None, false)
    );
}

#[tokio::test]
async fn message_of_another_bot() {
    let telegram = FakeTelegram::start().await;
    let said = telegram.supergroup(CHAT).says(OTHER_BOT, "beep").await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":444,"is_bot":true,"first_name":"Other","username":"other_bot"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001"},
      "date": 0,
      "text": "beep"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, said.update_id),
        seen("beep", None, false)
    );
}

#[tokio::test]
async fn message_of_an_anonymous_admin() {
    let telegram = FakeTelegram::start().await;
    let said = telegram.supergroup(CHAT).says_anonymously("order!").await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":1087968824,"is_bot":true,"first_name":"Group","username":"GroupAnonymousBot"},
      "sender_chat": {"id":-1001,"type":"supergroup","title":"Chat -1001"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001"},
      "date": 0,
      "text": "order!"
    } }
    "#);
    assert_eq!(
        teloxide_sees(&telegram, said.update_id),
        seen("order!", None, false)
    );
}

#[tokio::test]
async fn service_messages_of_topics() {
    let telegram = FakeTelegram::start().await;
    let topic: Place = telegram.forum(CHAT).creates_topic(ALICE, "Rose").await;
    let created = first_update(&telegram).await;
    let renamed = topic.renames_topic(ALICE, "Roses").await;
    let closed = topic.closes_topic(ALICE).await;
    let reopened = topic.reopens_topic(ALICE).await;

    assert_snapshot!(json_of(&telegram, created), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},
      "date": 0,
      "message_thread_id": 1001,
      "is_topic_message": true,
      "forum_topic_created": {"name":"Rose","icon_color":7322096}
    } }
    "#);
    assert_snapshot!(json_of(&telegram, closed.update_id), @r#"
    { "update_id": 10003, "message": {
      "message_id": 1003,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},
      "date": 0,
      "message_thread_id": 1001,
      "is_topic_message": true,
      "reply_to_message": {"message_id":1001,"from":{"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},"chat":{"id":-1001,"type":"supergroup","title":"Chat -1001","is_forum":true},"date":0,"message_thread_id":1001,"is_topic_message":true,"forum_topic_created":{"name":"Rose","icon_color":7322096}},
      "forum_topic_closed": {}
    } }
    "#);
    assert!(
        teloxide_message(&telegram, created)
            .forum_topic_created()
            .is_some()
    );
    assert!(
        teloxide_message(&telegram, renamed.update_id)
            .forum_topic_edited()
            .is_some()
    );
    assert!(
        teloxide_message(&telegram, closed.update_id)
            .forum_topic_closed()
            .is_some()
    );
    assert!(
        teloxide_message(&telegram, reopened.update_id)
            .forum_topic_reopened()
            .is_some()
    );
}

#[tokio::test]
async fn service_messages_of_members_and_migration() {
    let telegram = FakeTelegram::start().await;
    let group = telegram.group(-5);
    let dave = User::person(555, "Dave");
    let joined = group
        .service(CAROL, "new_chat_members", json!([dave.json()]))
        .await;
    group.migrates_to(CHAT).await;

    assert_snapshot!(json_of(&telegram, joined.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":333,"is_bot":false,"first_name":"Carol","language_code":"en"},
      "chat": {"id":-5,"type":"group","title":"Chat -5","all_members_are_administrators":true},
      "date": 0,
      "new_chat_members": [{"id":555,"is_bot":false,"first_name":"Dave","language_code":"en"}]
    } }
    "#);
    assert_snapshot!(json_of(&telegram, joined.update_id + 1), @r#"
    { "update_id": 10002, "message": {
      "message_id": 1002,
      "from": {"id":333,"is_bot":false,"first_name":"Carol","language_code":"en"},
      "chat": {"id":-5,"type":"group","title":"Chat -5","all_members_are_administrators":true},
      "date": 0,
      "migrate_to_chat_id": -1001
    } }
    "#);
    assert_snapshot!(json_of(&telegram, joined.update_id + 2), @r#"
    { "update_id": 10003, "message": {
      "message_id": 1001,
      "from": {"id":333,"is_bot":false,"first_name":"Carol","language_code":"en"},
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001"},
      "date": 0,
      "migrate_from_chat_id": -5
    } }
    "#);
    assert!(
        teloxide_message(&telegram, joined.update_id)
            .new_chat_members()
            .is_some()
    );
    assert!(
        teloxide_message(&telegram, joined.update_id + 1)
            .migrate_to_chat_id()
            .is_some()
    );
    assert!(
        teloxide_message(&telegram, joined.update_id + 2)
            .migrate_from_chat_id()
            .is_some()
    );
}

#[tokio::test]
async fn photo_with_a_caption() {
    let telegram = FakeTelegram::start().await;
    let photo = json!([{ "file_id": "F1", "file_unique_id": "U1", "width": 90, "height": 60, "file_size": 1200 }]);
    let said = telegram
        .dm(ALICE)
        .says("")
        .without("text")
        .with("photo", photo)
        .with("caption", json!("look"))
        .await;

    assert_snapshot!(json_of(&telegram, said.update_id), @r#"
    { "update_id": 10001, "message": {
      "message_id": 1001,
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "chat": {"id":111,"type":"private","first_name":"Alice"},
      "date": 0,
      "photo": [{"file_id":"F1","file_unique_id":"U1","width":90,"height":60,"file_size":1200}],
      "caption": "look"
    } }
    "#);
    assert_eq!(
        teloxide_message(&telegram, said.update_id).caption(),
        Some("look")
    );
}

#[tokio::test]
async fn changes_of_the_bots_membership() {
    let telegram = FakeTelegram::start().await;
    let group = telegram.supergroup(CHAT);
    let added = group.adds_bot(ALICE).await;
    let promoted = group.promotes_bot(ALICE).await;
    let removed = group.removes_bot(ALICE).await;

    assert_snapshot!(json_of(&telegram, removed.update_id), @r#"
    { "update_id": 10003, "my_chat_member": {
      "chat": {"id":-1001,"type":"supergroup","title":"Chat -1001"},
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "date": 0,
      "old_chat_member": {"user":{"id":123456,"is_bot":true,"first_name":"Parlor","username":"parlor_bot"},"status":"member"},
      "new_chat_member": {"user":{"id":123456,"is_bot":true,"first_name":"Parlor","username":"parlor_bot"},"status":"kicked","until_date":0}
    } }
    "#);
    for pushed in [added, promoted, removed] {
        assert!(matches!(
            teloxide_update(&telegram, pushed.update_id).kind,
            UpdateKind::MyChatMember(_)
        ));
    }
}

#[tokio::test]
async fn press_on_a_button() {
    let telegram = FakeTelegram::start().await;
    let group = telegram.group(-5);
    let keyboard = json!({ "inline_keyboard": [[{ "text": "Yes", "callback_data": "yes" }]] });
    let message_id = Bot::new(&telegram)
        .send(json!({ "chat_id": -5, "text": "Sure?", "reply_markup": keyboard }))
        .await;
    let pressed = group.presses(ALICE, message_id, "yes").await;

    assert_snapshot!(json_of(&telegram, pressed.update_id), @r#"
    { "update_id": 10001, "callback_query": {
      "id": "77000001",
      "from": {"id":111,"is_bot":false,"first_name":"Alice","language_code":"en"},
      "message": {"message_id":1001,"from":{"id":123456,"is_bot":true,"first_name":"Parlor","username":"parlor_bot"},"chat":{"id":-5,"type":"group","title":"Chat -5","all_members_are_administrators":true},"date":0,"text":"Sure?","reply_markup":{"inline_keyboard":[[{"text":"Yes","callback_data":"yes"}]]}},
      "chat_instance": "-5",
      "data": "yes"
    } }
    "#);
    assert!(matches!(
        teloxide_update(&telegram, pressed.update_id).kind,
        UpdateKind::CallbackQuery(_)
    ));
}

/// An update as delivered, with a line for each field of its content and all times set to zero.
fn json_of(telegram: &FakeTelegram, update_id: i64) -> String {
    let mut update: Value =
        serde_json::from_str(&telegram.update(update_id)).expect("an update is JSON");
    stop_clocks(&mut update);
    let fields = update.as_object().expect("an update is an object");
    let (kind, content) = fields
        .iter()
        .find(|(name, _)| *name != "update_id")
        .expect("an update has content");
    let lines: Vec<String> = content
        .as_object()
        .expect("content is an object")
        .iter()
        .map(|(name, value)| format!("  \"{name}\": {value}"))
        .collect();
    format!(
        "{{ \"update_id\": {update_id}, \"{kind}\": {{\n{}\n}} }}",
        lines.join(",\n")
    )
}

fn stop_clocks(value: &mut Value) {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(name, value)| match name.as_str() {
                "date" | "edit_date" => *value = 0.into(),
                _ => stop_clocks(value),
            }),
        Value::Array(items) => items.iter_mut().for_each(stop_clocks),
        _ => {}
    }
}

/// Text, thread and whether it is a topic message.
type Seen = (Option<String>, Option<i64>, bool);

fn seen(text: &str, thread: Option<i64>, is_topic_message: bool) -> Seen {
    (Some(text.to_owned()), thread, is_topic_message)
}

fn teloxide_sees(telegram: &FakeTelegram, update_id: i64) -> Seen {
    let message = teloxide_message(telegram, update_id);
    (
        message.text().map(str::to_owned),
        message.thread_id.map(|thread| thread.0.0.into()),
        message.is_topic_message,
    )
}

fn teloxide_message(telegram: &FakeTelegram, update_id: i64) -> Message {
    match teloxide_update(telegram, update_id).kind {
        UpdateKind::Message(message)
        | UpdateKind::EditedMessage(message)
        | UpdateKind::ChannelPost(message) => message,
        other => panic!("not a message: {other:?}"),
    }
}

fn teloxide_update(telegram: &FakeTelegram, update_id: i64) -> Update {
    serde_json::from_str(&telegram.update(update_id)).expect("teloxide parses it")
}

async fn first_update(telegram: &FakeTelegram) -> i64 {
    Bot::new(telegram).poll(json!({})).await[0]
}
