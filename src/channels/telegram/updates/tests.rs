//! Batches with broken updates in them, written by hand and mutated at random: the honest ones come
//! out, in order.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

use super::*;

/// Numbers of updates that could be read, with `!` before those of the others.
fn numbers(body: &[u8]) -> String {
    let Some(Answer { updates, cut_off }) = read_answer(body) else {
        return "no answer".into();
    };
    let shown = |update: &Update| {
        let number = update
            .number
            .map_or("?".to_owned(), |number| number.to_string());
        if update.content.is_ok() {
            number
        } else {
            format!("!{number}")
        }
    };
    let mut all: Vec<String> = updates.iter().map(shown).collect();
    all.extend(cut_off.iter().map(|update| format!("{}…", shown(update))));
    all.join(" ")
}

/// An answer with this piece between two honest updates, whose numbers come first and last.
fn between(piece: &[u8]) -> Vec<u8> {
    [
        br#"{"ok":true,"result":[{"update_id":1,"message":{"text":"a"}},"#,
        piece,
        br#",{"message":{"text":"z"},"update_id":9}]}"#,
    ]
    .concat()
}

#[test]
fn every_kind_of_broken_update_is_known_by_its_number() {
    let deep = format!(
        "{{\"update_id\":5,\"message\":{}1{}}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    let pieces: [&[u8]; 12] = [
        br#"{"update_id":5,"message":{"text":"\ud800"}}"#,
        br#"{"update_id":5,"message":{"text":"\u12"}}"#,
        br#"{"update_id":5,"message":{"text":"abc\"}}"#,
        br#"{"message":{"text":"abc\"}, "update_id" : 5}"#,
        deep.as_bytes(),
        br#"{"update_id":5,"message":{"date":1e400}}"#,
        b"{\"update_id\":5,\"message\":{\"text\":\"a\x01b\"}}",
        b"{\"update_id\":5,\"message\":{\"text\":\"\xff\xfe\"}}",
        br#"{"update_id":5,"message":{"text":"a"}"#,
        br#"{"update_id":5,"message":{"text":"a"}}}"#,
        br#"{"update_id":5,"message":{"entities":[{"a":1},{"b":2}],"text":NaN}}"#,
        br#"{"update_id":5,"message":{"text":"}},{\"update_id\":7}","n":-}}"#,
    ];
    for piece in pieces {
        assert_eq!(
            numbers(&between(piece)),
            "1 !5 9",
            "{}",
            String::from_utf8_lossy(piece)
        );
        let alone = [br#"{"ok":true,"result":["#, piece, b"]}"].concat();
        assert_eq!(numbers(&alone), "!5", "{}", String::from_utf8_lossy(piece));
        assert_eq!(read_one(piece).number, Some(5));
        assert!(read_one(piece).content.is_err());
    }
    assert_eq!(
        numbers(&between(
            br#"{"update_id":5,"x":"\"},{"update_id":6,"x":"\"}"#
        )),
        "1 !5 !6 9"
    );
}

#[test]
fn only_whole_numbers_that_an_offset_may_have_are_numbers() {
    let check = |update: &str, expected: &str| {
        assert_eq!(
            numbers(&between(update.as_bytes())),
            format!("1 {expected} 9"),
            "{update}"
        );
    };
    check(r#"{"update_id":0}"#, "0");
    check(
        r#"{"update_id":18446744073709551615}"#,
        "18446744073709551615",
    );
    check(r#"{"update_id":18446744073709551616}"#, "!?");
    check(r#"{"update_id":-5}"#, "!?");
    check(r#"{"update_id":5.5}"#, "!?");
    check(r#"{"update_id":"5"}"#, "!?");
    check(r#"{"message":{"update_id":5}}"#, "!?");
    check("null", "!?");
}

#[test]
fn only_an_answer_with_a_list_is_cut() {
    let check =
        |body: &str, expected: &str| assert_eq!(numbers(body.as_bytes()), expected, "{body}");
    check(r#" { "ok" : true , "result" : [ {"update_id":1} ] } "#, "1");
    check(
        r#"{"description":null,"result":[{"update_id":1}],"ok":true}"#,
        "1",
    );
    check(r#"{"ok":true,"result":[]}"#, "");
    check(r#"{"ok":false,"result":[{"update_id":1}]}"#, "no answer");
    check(
        r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#,
        "no answer",
    );
    check(r#"{"ok":true,"result":true}"#, "no answer");
    check("<html>[]</html>", "no answer");
    check("", "no answer");
    check(
        r#"{"ok":true,"result":[{"update_id":1},{"update_id":2,"m"#,
        "1 !2…",
    );
    check(r#"{"ok":true,"result":[{"update_id":12"#, "!?…");
}

#[test]
fn the_same_update_has_the_same_key_and_another_one_has_not() {
    let message = |change: serde_json::Value| {
        let mut message = json!({ "message_id": 5, "date": 10, "chat": { "id": 7, "type": "private" }, "from": { "id": 7 }, "text": "hi" });
        message
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        message
    };
    let key = |update: serde_json::Value| read_one(update.to_string().as_bytes()).key();
    let known = key(json!({ "update_id": 3, "message": message(json!({})) }));
    assert!(known.starts_with("3:"), "{known}");
    // In another order, and with what a newer server adds.
    assert_eq!(
        key(json!({ "message": message(json!({})), "update_id": 3 })),
        known
    );
    assert_eq!(
        key(json!({ "update_id": 3, "message": message(json!({ "new_field": 1 })) })),
        known
    );
    for other in [
        json!({ "message_id": 6 }),
        json!({ "date": 11 }),
        json!({ "chat": { "id": 8 } }),
        json!({ "text": "ho" }),
    ] {
        assert_ne!(
            key(json!({ "update_id": 3, "message": message(other.clone()) })),
            known,
            "{other}"
        );
    }
    assert_ne!(
        key(json!({ "update_id": 4, "message": message(json!({})) })),
        known
    );
    assert_ne!(
        key(json!({ "update_id": 3, "edited_message": message(json!({})) })),
        known
    );
    let press =
        |id: &str| key(json!({ "update_id": 3, "callback_query": { "id": id, "data": "x" } }));
    assert_eq!(press("a"), press("a"));
    assert_ne!(press("a"), press("b"));
    let broken = |text: &str| {
        read_one(format!("{{\"update_id\":3,\"text\":\"{text}\\ud800\"}}").as_bytes()).key()
    };
    assert_eq!(broken("a"), broken("a"));
    assert_ne!(broken("a"), broken("b"));
}

fn honest() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        ".{0,30}",
        Just(r#"}},{"update_id":77,"message":{"#.to_owned()),
        Just(r#"\","#.to_owned())
    ];
    (text, any::<bool>(), any::<bool>(), 0..4_usize).prop_map(
        |(text, comes_first, is_spaced, depth)| {
            let mut content = json!(text);
            for _ in 0..depth {
                content = json!([{ "text": content }, { "a": [1, null] }]);
            }
            let update = if comes_first {
                json!({ "update_id": 0, "message": content })
            } else {
                json!({ "message": content, "update_id": 0 })
            };
            if is_spaced {
                serde_json::to_string_pretty(&update).unwrap()
            } else {
                update.to_string()
            }
        },
    )
}

fn numbered(update: &str, number: usize) -> String {
    let key = if update.contains("\"update_id\": 0") {
        "\"update_id\": "
    } else {
        "\"update_id\":"
    };
    update.replacen(&format!("{key}0"), &format!("{key}{number}"), 1)
}

/// How an update is spoiled.
#[derive(Debug, Clone)]
enum Spoiled {
    Replaced(Index, u8),
    Inserted(Index, &'static [u8]),
    Removed(Index),
    /// The rest is missing.
    Short(Index),
}

fn spoiled() -> impl Strategy<Value = Spoiled> {
    let inserts: &[&[u8]] = &[
        b"\"", b"\\", b"\\\"", b"\\ud800", b"\\u1", b"{", b"}", b"[", b"]", b"\x00", b"\x1f",
        b"\xff", b"1e400", b"}}", b"]}",
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Spoiled::Replaced(at, byte)),
        (any::<Index>(), select(inserts)).prop_map(|(at, bytes)| Spoiled::Inserted(at, bytes)),
        any::<Index>().prop_map(Spoiled::Removed),
        any::<Index>().prop_map(Spoiled::Short),
    ]
}

fn spoil(update: &str, how: &Spoiled) -> Vec<u8> {
    let mut bytes = update.as_bytes().to_vec();
    match how {
        Spoiled::Replaced(at, byte) => bytes[at.index(update.len())] = *byte,
        Spoiled::Inserted(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
        }
        Spoiled::Removed(at) => drop(bytes.remove(at.index(update.len()))),
        Spoiled::Short(at) => bytes.truncate(at.index(update.len())),
    }
    bytes
}

proptest! {
    #[test]
    fn honest_updates_come_out_in_order(pieces in prop::collection::vec((honest(), prop::option::weighted(0.3, spoiled())), 1..12)) {
        let mut expected = Vec::new();
        let mut list: Vec<Vec<u8>> = Vec::new();
        for (number, (update, how)) in pieces.iter().enumerate() {
            let update = numbered(update, number);
            list.push(match how {
                Some(how) => spoil(&update, how),
                None => update.clone().into_bytes(),
            });
            expected.extend(how.is_none().then(|| serde_json::from_str::<Value>(&update).expect("it is honest")));
        }
        let body = [br#"{"ok":true,"result":["#, list.join(&b","[..]).as_slice(), b"]}"].concat();
        let answer = read_answer(&body).expect("the envelope is whole");
        let mut read = answer.updates.iter().filter_map(|update| update.content.as_ref().ok());
        // A spoiled update may still be readable, so there may be more.
        let missing = expected.iter().find(|honest| !read.any(|update| update == *honest));
        prop_assert!(missing.is_none(), "{missing:?} is missing from {}", String::from_utf8_lossy(&body));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), noise in "[\\[\\]{}\",:\\\\u0-9a-z ]{0,80}") {
        for body in [bytes.clone(), noise.clone().into_bytes(), between(&bytes), between(noise.as_bytes())] {
            read_answer(&body);
            read_one(&body).key();
        }
    }
}
