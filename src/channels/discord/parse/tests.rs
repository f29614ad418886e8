use proptest::prelude::*;
use serde_json::json;

use super::*;

const ME: DiscordId = DiscordId(1);

fn read_in(raw: &Value, around: &Surroundings) -> Read {
    let nicknames = Nicknames::new(&["parlor".to_owned()]);
    let (group_sessions, gather) = (GroupSessions::PerUser, Duration::ZERO);
    Reader {
        me: ME,
        group_sessions,
        nicknames: &nicknames,
        gather,
    }
    .message(raw, around, None)
}

fn in_server() -> Surroundings {
    Surroundings {
        server: Some(DiscordId(8)),
        category: Some(DiscordId(9)),
        ..Surroundings::default()
    }
}

fn message(change: Value) -> Value {
    let mut whole = json!({
        "id": "4194304000", "channel_id": "30", "type": 0, "content": "hello", "member": { "roles": ["77"], "nick": "Al" },
        "author": { "id": "111", "username": "alice", "global_name": "Alice" }, "mentions": [], "attachments": [],
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    whole
}

fn only(read: Read) -> Inbound {
    match read {
        Read::Messages(mut messages) if messages.len() == 1 => messages.remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_place_is_a_dm_a_thread_or_a_channel() {
    let check = |around: &Surroundings, expected: &str| {
        assert_eq!(
            only(read_in(&message(json!({})), around))
                .origin
                .key
                .to_string(),
            expected
        );
    };
    check(&Surroundings::default(), "discord:dm:111");
    check(&in_server(), "discord:channel:30:111");
    check(
        &Surroundings {
            thread_of: Some(DiscordId(20)),
            ..in_server()
        },
        "discord:thread:20:30",
    );
    let origin = only(read_in(&message(json!({})), &in_server())).origin;
    assert_eq!(
        (origin.server, origin.category, origin.roles),
        (Some(DiscordId(8)), Some(DiscordId(9)), vec![DiscordId(77)])
    );
}

#[test]
fn people_are_told_from_machines() {
    let check = |change: Value, is_a_person: bool| {
        let read = read_in(&message(change.clone()), &in_server());
        assert_eq!(matches!(read, Read::Messages(_)), is_a_person, "{change}");
    };
    check(json!({}), true);
    check(json!({ "type": 19 }), true);
    for kind in [1, 6, 7, 18, 20, 21] {
        check(json!({ "type": kind }), false);
    }
    check(
        json!({ "author": { "id": "1", "username": "parlor" } }),
        false,
    );
    check(
        json!({ "author": { "id": "5", "username": "other", "bot": true } }),
        false,
    );
    check(json!({ "webhook_id": "5" }), false);
    check(json!({ "webhook_id": null }), true);
}

#[test]
fn a_message_turns_to_us_by_name_by_reply_or_not_at_all() {
    let check = |change: Value, text: &str, addressed: Addressed| {
        let inbound = only(read_in(&message(change.clone()), &in_server()));
        assert_eq!(
            (inbound.text.as_str(), inbound.addressed),
            (text, addressed),
            "{change}"
        );
    };
    let me = json!([{ "id": "1", "username": "parlor" }]);
    check(json!({}), "hello", Addressed::NotAtAll);
    check(
        json!({ "content": "<@1> hello", "mentions": me }),
        "hello",
        Addressed::ByMention,
    );
    check(
        json!({ "content": "<@!1>, /agent rose", "mentions": me }),
        "/agent rose",
        Addressed::ByMention,
    );
    check(
        json!({ "content": "so <@1> what", "mentions": me }),
        "so @parlor what",
        Addressed::ByMention,
    );
    check(
        json!({ "content": "<@1>", "mentions": me }),
        "@parlor",
        Addressed::ByMention,
    );
    check(
        json!({ "content": "Parlor?" }),
        "Parlor?",
        Addressed::ByMention,
    );
    check(
        json!({ "content": "<@12> hello" }),
        "<@12> hello",
        Addressed::NotAtAll,
    );
    check(
        json!({ "type": 19, "referenced_message": { "author": { "id": "1" } } }),
        "hello",
        Addressed::ByReply,
    );
    check(
        json!({ "type": 19, "referenced_message": { "author": { "id": "5" } } }),
        "hello",
        Addressed::NotAtAll,
    );
    let passed_on = json!([{ "message": { "content": "<@1> news" } }]);
    check(
        json!({ "content": "", "message_snapshots": passed_on }),
        "<@1> news",
        Addressed::NotAtAll,
    );
}

#[test]
fn several_files_are_one_message_in_several() {
    let file = |name: &str| json!({ "filename": name, "size": 1, "url": "u" });
    let raw =
        message(json!({ "content": "look", "attachments": [file("a"), file("b"), file("c")] }));
    let Read::Messages(messages) = read_in(&raw, &in_server()) else {
        panic!()
    };
    let ids: Vec<&str> = messages
        .iter()
        .map(|message| message.update_id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "message:4194304000",
            "message:4194304000:1",
            "message:4194304000:2"
        ]
    );
    assert!(messages[0].is_one_with(&messages[1]) && messages[1].is_one_with(&messages[2]));
    assert_eq!(messages[2].in_short(), "[document c, 1 B]");
}

#[test]
fn what_cannot_be_seen_is_told_from_what_cannot_be_read() {
    assert_eq!(
        read_in(&message(json!({ "content": "" })), &in_server()),
        Read::Empty
    );
    assert!(matches!(
        read_in(&message(json!({ "content": null })), &in_server()),
        Read::Unreadable(_)
    ));
    assert!(matches!(
        read_in(&message(json!({ "author": {} })), &in_server()),
        Read::Unreadable(_)
    ));
    let embed = only(read_in(
        &message(json!({ "content": "", "embeds": [{ "title": "x" }] })),
        &in_server(),
    ));
    assert_eq!(embed.text, WITHOUT_TEXT);
}

#[test]
fn ids_tell_their_time() {
    let id = first_id_at(1_790_000_000_000);
    assert_eq!(sent_at(id), 1_790_000_000_000);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[0-9]{0,22}".prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// Fields that a hostile or future server could fill with anything.
const FIELDS: [&str; 18] = [
    "id",
    "channel_id",
    "type",
    "content",
    "member",
    "author",
    "mentions",
    "attachments",
    "embeds",
    "sticker_items",
    "poll",
    "message_reference",
    "referenced_message",
    "message_snapshots",
    "edited_timestamp",
    "webhook_id",
    "emoji",
    "flags",
];

proptest! {
    #[test]
    fn no_message_can_make_it_panic(whole in any_json(), field in prop::sample::select(&FIELDS[..]), value in any_json()) {
        read_in(&whole, &in_server());
        let mut changed = serde_json::Map::new();
        changed.insert(field.to_owned(), value);
        let changed = message(Value::Object(changed));
        read_in(&changed, &in_server());
        let nicknames = Nicknames::new(&[]);
        let reader = Reader { me: ME, group_sessions: GroupSessions::Shared, nicknames: &nicknames, gather: Duration::ZERO };
        reader.reaction(&whole, &in_server());
        reader.reaction(&changed, &Surroundings::default());
    }
}
