//! Manners: a person is told what they themselves can do, and buttons are for those they were given
//! to.

use crate::cli::run;
use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, buttons};

/// Alice owns the house, Rose answers everybody in Writing.
const HOUSE: &str = r#"
[access]
owners = ["telegram:111"]
[agents.main]
[agents.rose]
who = "guest"
[agents.ada]
who = "guest"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
require_mention = false
[[bindings]]
match = "telegram:group:-1002"
agent = "rose"
require_mention = false
"#;

/// What a person may type, right or wrong.
const LINES: [&str; 50] = [
    "/help",
    "/whoami",
    "/status",
    "/agent",
    "/agent why",
    "/agent rose",
    "/agent main",
    "/agent nobody",
    "/agent close",
    "/agent reset",
    "/agent pause rose",
    "/agents",
    "/models",
    "/model nothing",
    "/model reset",
    "/usage",
    "/usage 7d",
    "/memory",
    "/skills",
    "/queue",
    "/queue clear",
    "/stop",
    "/stop all",
    "/new",
    "/remember tea --global",
    "/remember",
    "/forget tea",
    "/forget 12",
    "/jobs",
    "/approvals",
    "/approve 7",
    "/refuse",
    "/retry",
    "/bind rose",
    "/unbind",
    "/allow house 5 today",
    "/pause background",
    "/resume background",
    "/reload",
    "/doctor",
    "/dashboard",
    "/audit",
    "/people",
    "/people role telegram:333 member",
    "/pair",
    "/unpair telegram:333",
    "/trace",
    "/deliver",
    "/deliver on",
    "/topic other",
];

const OWNERS_ONLY: [&str; 9] = [
    "/bind",
    "/unbind",
    "/allow",
    "/pause",
    "/resume",
    "/reload",
    "/doctor",
    "/dashboard",
    "/retry",
];
const NOT_FOR_MEMBERS: [&str; 6] = [
    "/audit", "/people", "/pair", "/unpair", "/trace", "/deliver",
];

/// Sentences that tell a reader to do something only others may do. A sentence that names the
/// owners or admins is fine: the reader can ask them.
fn beyond<'a>(role: &str, text: &'a str) -> Vec<&'a str> {
    let mut forbidden = OWNERS_ONLY.to_vec();
    if role != "admin" {
        forbidden.extend(NOT_FOR_MEMBERS);
        forbidden.extend(["config.toml", "parlor "]);
    }
    let names = |sentence: &&str| {
        let words = sentence.split(|sign: char| !(sign.is_alphanumeric() || "/._-".contains(sign)));
        let words: Vec<&str> = words.map(|word| word.trim_end_matches('.')).collect();
        forbidden
            .iter()
            .any(|what| words.contains(&what.trim_end()))
    };
    let asks_others = |sentence: &&str| {
        let sentence = sentence.to_lowercase();
        sentence.contains("owner") || sentence.contains("admin") || sentence.contains("operator")
    };
    let sentences = text.split(". ").flat_map(str::lines);
    sentences
        .filter(names)
        .filter(|sentence| !asks_others(sentence))
        .collect()
}

/// Every reply, for every role: the next step is one that the reader can take.
#[tokio::test]
async fn hints_go_beyond_the_rights_of_the_reader() {
    let mut found = Vec::new();
    for role in ["guest", "member", "admin"] {
        for delivery in ["/deliver on", "/deliver off"] {
            let house = House::new(HOUSE).await;
            let gateway = house.open().await;
            let topic = house.telegram.forum(-1001).topic(101, "Writing");
            if role != "guest" {
                let line = ["people", "role", "telegram:222", role];
                let ran = run(house.home.path(), &line).await;
                assert_eq!(ran.code, 0, "{}", ran.stderr);
            }
            topic.says(ALICE, delivery).await;
            house.settled(&gateway).await;
            for line in LINES {
                let before = topic.texts().len();
                topic.says(BOB, line).await;
                house.settled(&gateway).await;
                for text in topic.texts().iter().skip(before) {
                    let beyond = beyond(role, text);
                    found.extend(
                        beyond
                            .iter()
                            .map(|told| format!("{role}, {delivery}: {line}: {told}")),
                    );
                }
            }
            gateway.shutdown().await;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// In a plain group each member has a conversation of their own, so the message with the buttons is
/// one member's.
#[tokio::test]
async fn a_press_by_another_person_rewrites_somebody_elses_message() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1002);
    group.says(BOB, "/agents").await;
    let list = group.wait_for_sent(1).await;
    let (_, data) = buttons(&list.reply_markup).remove(0);
    let edits = || house.telegram.calls("editMessageText").len();
    group.presses(CAROL, list.message_id, &data).await;
    let answer = house
        .telegram
        .wait_for_calls("answerCallbackQuery", 1)
        .await;
    let told = answer.params["text"].as_str().unwrap_or_default();
    assert!(told.contains("for somebody else"), "{answer:?}");
    assert_eq!(answer.params["show_alert"], true, "{answer:?}");
    house.settled(&gateway).await;
    assert_eq!(
        (edits(), group.texts().len()),
        (0, 1),
        "nothing has changed"
    );
    group.presses(BOB, list.message_id, &data).await;
    house
        .telegram
        .wait_for_calls("answerCallbackQuery", 2)
        .await;
    house.settled(&gateway).await;
    assert!(edits() + group.texts().len() > 1, "Bob's press counts");
    house.close(gateway).await;
}
