//! Approvals: tools that ask, and people who say yes or no.

use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::{Value, json};

use parlor::gateway::Gateway;

use crate::admin_door::Site;
use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Place, SentMessage, User, buttons};
use crate::support::house::{Process, parlor};
use crate::support::http::Call;

const DORA: User = User::person(444, "Dora");

/// Alice owns the house, Dora is an admin, Bob and Carol are members.
const HOUSE: &str = r#"
[access]
owners = ["telegram:111"]
dms = "open"
groups = "open"
require_mention = false
[people.dora]
ids = ["telegram:444"]
role = "admin"
[people.bob]
ids = ["telegram:222"]
role = "member"
[people.carol]
ids = ["telegram:333"]
role = "member"
[agents.main]
tools = { ask = ["file_write"] }
"#;

/// Writes a file when somebody says `write`, and then says what the tool said.
fn writer(request: &Request) -> Script {
    let (role, text) = request.messages.last().expect("a message");
    let results = request.results();
    match role.as_str() {
        _ if role == "tool" || goes_on(text) => {
            let last = results.last().unwrap_or(&"nothing");
            Script::text(format!("the tool said: {last}"))
        }
        _ if text.ends_with("how are you") => Script::text("Fine."),
        _ if text.ends_with("write it") => Script::tool_call(
            "file_write",
            json!({ "path": "a.md", "content": "tea\nand milk" }),
        ),
        _ if text.ends_with("write two") => {
            Script::tool_call("file_write", json!({ "path": "b.md", "content": "cake" }))
        }
        _ => Script::text(format!("re: {text}")),
    }
}

/// Whether the model is told to go on with a parked task.
fn goes_on(text: &str) -> bool {
    text.contains("put aside") || text.contains("While you were at this")
}

struct Scene {
    house: House,
    gateway: Gateway,
}

impl Scene {
    async fn new(rest: &str) -> Self {
        let house = House::new(rest).await;
        house.model.answer_with(writer);
        let gateway = house.open().await;
        Scene { house, gateway }
    }

    async fn says(&self, place: &Place, by: User, text: &str) {
        place.says(by, text).await;
        self.settled().await;
    }

    async fn settled(&self) {
        self.house.settled(&self.gateway).await;
    }

    fn dm(&self, user: User) -> Place {
        self.house.telegram.dm(user).place().clone()
    }

    fn topic(&self) -> Place {
        self.house.telegram.forum(-1001).topic(101, "Desk")
    }

    /// A private chat that the bot can write to.
    async fn acquainted(&self, user: User) -> Place {
        let chat = self.dm(user);
        self.says(&chat, user, "/start").await;
        chat
    }

    /// The message with these buttons in a place, as it looks now.
    fn question(&self, place: &Place) -> SentMessage {
        question(&self.house, place)
    }

    async fn presses(&self, place: &Place, by: User, message: &SentMessage, label: &str) {
        press(place, by, message, label).await;
        self.settled().await;
    }

    fn wrote(&self) -> bool {
        file(&self.house, "a.md").exists()
    }

    fn states(&self) -> String {
        self.house
            .ask("SELECT coalesce(group_concat(state, ' '), '') FROM approvals")
    }

    /// The text that the person was shown for their press alone.
    fn popup(&self) -> String {
        let calls = self.house.telegram.calls("answerCallbackQuery");
        let mut texts = calls.iter().filter_map(|call| call.params["text"].as_str());
        texts.next_back().unwrap_or_default().to_owned()
    }

    async fn end(self) {
        self.house.close(self.gateway).await;
    }
}

fn file(house: &House, name: &str) -> PathBuf {
    house.home.path().join("agents/main/workspace").join(name)
}

fn of(house: &House, place: &Place) -> Vec<SentMessage> {
    let sent = house.telegram.sent();
    sent.into_iter()
        .filter(|sent| sent.chat_id == place.chat_id && sent.text.contains("to run"))
        .collect()
}

fn question(house: &House, place: &Place) -> SentMessage {
    of(house, place).pop().expect("a question")
}

async fn press(place: &Place, by: User, message: &SentMessage, label: &str) {
    let offered = buttons(&message.reply_markup);
    let found = offered.into_iter().find(|(known, _)| known == label);
    let data = found.expect("the button is there").1;
    place.presses(by, message.message_id, &data).await;
}

/// The time until which the question stands is another at each run, and of another day within an hour
/// of midnight.
fn timeless(text: &str) -> String {
    let time = regex::Regex::new(r"(\b\d{1,2} [A-Z][a-z]+, )?\b\d\d:\d\d\b").expect("a pattern");
    time.replace_all(text, "TIME").into_owned()
}

#[tokio::test]
async fn an_allowed_call_runs_once_with_what_was_shown() {
    let scene = Scene::new(HOUSE).await;
    let alice = scene.acquainted(ALICE).await;
    scene.says(&alice, ALICE, "write it").await;
    let asked = scene.question(&alice);
    assert_snapshot!(timeless(&asked.text), @"
    Main asks to run file_write for Alice (owner):

    path: a.md
    content: tea
      and milk

    It asks because the agent's tools.ask names it.

    An owner decides until TIME: /approve 1 or /refuse 1. No answer is a no.
    ");
    assert_eq!(
        buttons(&asked.reply_markup)
            .iter()
            .map(|(label, _)| label.as_str())
            .collect::<Vec<_>>(),
        ["Allow", "Refuse"]
    );
    assert!(!scene.wrote(), "nothing was done yet");
    scene.presses(&alice, ALICE, &asked, "Allow").await;
    assert!(scene.wrote());
    let now = scene.question(&alice);
    assert_snapshot!(now.text, @"
    Main asked to run file_write for Alice (owner):

    path: a.md
    content: tea
      and milk

    Allowed by Alice.
    ");
    assert_eq!(buttons(&now.reply_markup), []);
    assert!(
        alice
            .texts()
            .last()
            .unwrap()
            .starts_with("the tool said: Wrote")
    );
    assert_eq!(scene.states(), "allowed");
    let audited = "SELECT count(*) FROM audit WHERE action = 'approval allow'";
    assert_eq!(scene.house.ask(audited), "1");
    // The same button again, from before it was gone.
    std::fs::remove_file(file(&scene.house, "a.md")).expect("it was there");
    scene.presses(&alice, ALICE, &asked, "Allow").await;
    scene.presses(&alice, ALICE, &asked, "Refuse").await;
    assert!(!scene.wrote(), "once");
    assert_eq!(scene.question(&alice).text, now.text);
    scene.end().await;
}

#[tokio::test]
async fn a_refused_call_is_not_run_and_the_turn_goes_on() {
    let scene = Scene::new(HOUSE).await;
    let alice = scene.acquainted(ALICE).await;
    scene.says(&alice, ALICE, "write it").await;
    let asked = scene.question(&alice);
    scene.presses(&alice, ALICE, &asked, "Refuse").await;
    assert!(!scene.wrote());
    assert_snapshot!(alice.texts().last().unwrap(), @"the tool said: The tool file_write was not run: Alice said no. Go on without it, and do not ask again for the same.");
    assert!(scene.question(&alice).text.ends_with("Refused by Alice."));
    assert_eq!(scene.states(), "refused");
    scene.end().await;
}

#[tokio::test]
async fn no_answer_in_time_is_a_no() {
    let scene = Scene::new(&format!("{HOUSE}[approvals]\nexpires_minutes = 5\n")).await;
    let alice = scene.acquainted(ALICE).await;
    scene.says(&alice, ALICE, "write it").await;
    let minutes = scene
        .house
        .ask("SELECT (expires_at - asked_at) / 60000 FROM approvals");
    assert_eq!(minutes, "5");
    // The clock jumps.
    scene.house.tell("UPDATE approvals SET expires_at = 1");
    alice
        .wait_for("the turn goes on", |texts| {
            texts
                .last()
                .is_some_and(|text| text.starts_with("the tool said"))
        })
        .await;
    scene.settled().await;
    assert_snapshot!(alice.texts().last().unwrap(), @"the tool said: The tool file_write was not run: it needs a person's approval, and nobody decided in time. Go on without it, and do not ask again for the same.");
    assert!(!scene.wrote());
    assert_eq!(scene.states(), "expired");
    let asked = scene.question(&alice);
    assert!(
        asked
            .text
            .ends_with("Nobody decided in time, so it was not run."),
        "{}",
        asked.text
    );
    assert_eq!(buttons(&asked.reply_markup), []);
    scene.end().await;
}

/// The person asks, and somebody with more rights decides.
#[tokio::test]
async fn a_member_asks_and_an_admin_decides() {
    let scene = Scene::new(HOUSE).await;
    let (alice, topic) = (scene.acquainted(ALICE).await, scene.topic());
    scene.says(&topic, BOB, "write it").await;
    let asked = scene.question(&topic);
    assert!(
        asked.text.contains("An admin or an owner decides"),
        "{}",
        asked.text
    );
    let private = scene.question(&alice);
    assert_snapshot!(timeless(&private.text), @"
    Main asks to run file_write for Bob (member) in telegram:topic:-1001:101:

    path: a.md
    content: tea
      and milk

    It asks because the agent's tools.ask names it.

    An admin or an owner decides until TIME: /approve 1 or /refuse 1. No answer is a no.
    ");
    for by in [BOB, CAROL] {
        for label in ["Allow", "Refuse"] {
            scene.presses(&topic, by, &asked, label).await;
            assert_eq!(scene.popup(), "Only an admin or an owner may decide this.");
            scene.says(&topic, by, "/approve 1").await;
            scene.says(&topic, by, "/refuse 1").await;
            assert_eq!(
                scene.states(),
                "waiting",
                "{} pressed {label}",
                by.first_name
            );
        }
    }
    scene.presses(&topic, DORA, &asked, "Allow").await;
    assert!(scene.wrote());
    assert!(scene.question(&topic).text.ends_with("Allowed by Dora."));
    let private = scene.question(&alice);
    assert!(
        private.text.ends_with("Allowed by Dora."),
        "{}",
        private.text
    );
    assert_eq!(buttons(&private.reply_markup), [], "every message shows it");
    scene.end().await;
}

/// Nobody decides about a call for somebody with more rights.
#[tokio::test]
async fn an_owners_call_is_an_owners_to_allow() {
    let by_members = format!("{HOUSE}[approvals]\nby = \"member\"\n");
    let scene = Scene::new(&by_members).await;
    let topic = scene.topic();
    scene.says(&topic, ALICE, "write it").await;
    let asked = scene.question(&topic);
    assert!(asked.text.contains("An owner decides"), "{}", asked.text);
    for by in [BOB, DORA] {
        scene.presses(&topic, by, &asked, "Allow").await;
        assert_eq!(scene.popup(), "Only an owner may decide this.");
    }
    assert_eq!(scene.states(), "waiting");
    scene.presses(&topic, ALICE, &asked, "Allow").await;
    assert!(scene.wrote());
    // A member's call is any member's to allow there, and nowhere else.
    scene.says(&topic, BOB, "write two").await;
    let other = scene.dm(CAROL);
    scene.says(&other, CAROL, "/approve 2").await;
    assert_eq!(scene.states(), "allowed waiting");
    scene.says(&topic, CAROL, "/approve 2").await;
    assert_eq!(scene.states(), "allowed allowed");
    scene.end().await;
}

/// Members of a plain group have conversations of their own, and all of them see the buttons.
#[tokio::test]
async fn in_a_plain_group_others_can_press_too() {
    let scene = Scene::new(HOUSE).await;
    let group = scene.house.telegram.group(-77);
    scene.says(&group, BOB, "write it").await;
    let asked = scene.question(&group);
    scene.presses(&group, CAROL, &asked, "Allow").await;
    assert_eq!(scene.popup(), "Only an admin or an owner may decide this.");
    scene.presses(&group, ALICE, &asked, "Allow").await;
    assert!(scene.wrote());
    assert!(scene.question(&group).text.ends_with("Allowed by Alice."));
    scene.end().await;
}

#[tokio::test]
async fn newer_messages_are_answered_while_a_call_waits() {
    let scene = Scene::new(HOUSE).await;
    let alice = scene.acquainted(ALICE).await;
    scene.says(&alice, ALICE, "write it").await;
    scene.says(&alice, ALICE, "how are you").await;
    assert_eq!(alice.texts().last().unwrap(), "Fine.");
    scene.says(&alice, ALICE, "write two").await;
    assert_eq!(scene.states(), "waiting waiting");
    scene.says(&alice, ALICE, "/approvals").await;
    let listed = alice.texts().pop().unwrap_or_default();
    for words in ["file_write", "path: a.md", "path: b.md", "Alice (owner)"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    // The older one is decided first, and goes on at once.
    scene.says(&alice, ALICE, "/approve 1").await;
    assert!(scene.wrote());
    assert_eq!(scene.states(), "allowed waiting");
    scene.says(&alice, ALICE, "/refuse 2").await;
    scene.says(&alice, ALICE, "/approve 2").await;
    assert_snapshot!(alice.texts().last().unwrap(), @"Approval 2 waits no longer: Refused by Alice.");
    assert!(!file(&scene.house, "b.md").exists());
    scene.says(&alice, ALICE, "/approve 77").await;
    assert_snapshot!(alice.texts().last().unwrap(), @"There is no approval 77. /approvals lists those that wait.");
    scene.end().await;
}

#[tokio::test]
async fn stop_and_new_take_the_question_back() {
    let scene = Scene::new(HOUSE).await;
    let alice = scene.acquainted(ALICE).await;
    for (number, command) in ["/stop", "/new"].iter().enumerate() {
        scene.says(&alice, ALICE, "write it").await;
        let asked = scene.question(&alice);
        scene.says(&alice, ALICE, command).await;
        alice
            .wait_for("the message says so", |texts| {
                texts
                    .iter()
                    .filter(|text| text.contains("was taken back, so"))
                    .count()
                    > number
            })
            .await;
        scene.settled().await;
        assert!(
            !scene
                .house
                .ask("SELECT group_concat(state) FROM approvals")
                .contains("waiting")
        );
        scene.presses(&alice, ALICE, &asked, "Allow").await;
        assert!(!scene.wrote(), "{command}");
    }
    assert_eq!(scene.house.ask("SELECT count(*) FROM open_turns"), "0");
    scene.end().await;
}

#[tokio::test]
async fn after_untrusted_words_a_call_that_reaches_out_asks() {
    let rules = HOUSE.replace(
        "tools = { ask = [\"file_write\"] }",
        "after_untrusted = \"ask\"\nwho = \"guest\"",
    );
    let scene = Scene::new(&rules).await;
    let topic = scene.topic();
    scene.house.model.answer_with(|request| {
        let (_, text) = request.messages.last().expect("a message");
        match text.ends_with("tell them") {
            true => Script::tool_call(
                "message_send",
                json!({ "place": "telegram:topic:-1001:102", "text": "hi" }),
            ),
            false => writer(request),
        }
    });
    let other = scene.house.telegram.forum(-1001).topic(102, "Other");
    scene.says(&other, ALICE, "hello").await;
    scene.says(&topic, ALICE, "tell them").await;
    assert_eq!(scene.states(), "", "an owner's own words are trusted");
    scene.says(&topic, BOB, "obey me").await;
    scene.says(&topic, ALICE, "tell them").await;
    let asked = scene.question(&topic);
    assert!(
        asked.text.contains("It has read a member's words."),
        "{}",
        asked.text
    );
    let sent = other.texts().len();
    scene.presses(&topic, ALICE, &asked, "Allow").await;
    assert_eq!(other.texts().len(), sent + 1);
    scene.end().await;
}

/// A turn that nobody watches asks the people who may decide, in their private chats.
#[tokio::test]
async fn a_subagents_call_is_asked_in_private() {
    let scene = Scene::new(HOUSE).await;
    let (alice, topic) = (scene.acquainted(ALICE).await, scene.topic());
    scene.house.model.answer_with(|request| {
        let (_, text) = request.messages.last().expect("a message");
        match text.ends_with("hand it down") {
            true => Script::tool_call("spawn", json!({ "task": "write it", "wait": true })),
            false => writer(request),
        }
    });
    topic.says(BOB, "hand it down").await;
    alice
        .wait_for("a question", |texts| {
            texts.iter().any(|text| text.contains("asks to run"))
        })
        .await;
    let asked = scene.question(&alice);
    assert_snapshot!(timeless(&asked.text), @"
    Main asks to run file_write for bob (member) in telegram:topic:-1001:101:

    path: a.md
    content: tea
      and milk

    It asks because the agent's tools.ask names it.

    An admin or an owner decides until TIME: /approve 1 or /refuse 1. No answer is a no.
    ");
    assert!(of(&scene.house, &topic).is_empty());
    scene.presses(&alice, ALICE, &asked, "Allow").await;
    assert!(scene.wrote());
    scene.end().await;
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_call_is_refused_at_once() {
    let scene = Scene::new(HOUSE).await;
    let bob = scene.dm(BOB);
    scene.says(&bob, BOB, "write it").await;
    assert_snapshot!(bob.texts().last().unwrap(), @"the tool said: The tool file_write was not run: it needs the approval of a person who is at least an admin, and no such person can be reached. Go on without it.");
    assert_eq!(scene.states(), "");
    // In a private chat nobody else presses a button, so there is none.
    let alice = scene.acquainted(ALICE).await;
    scene.says(&bob, BOB, "write it").await;
    let asked = scene.question(&bob);
    assert!(
        asked.text.contains("An admin or an owner was asked"),
        "{}",
        asked.text
    );
    assert_eq!(buttons(&asked.reply_markup), []);
    let asked = scene.question(&alice);
    scene.presses(&alice, ALICE, &asked, "Allow").await;
    assert!(scene.wrote());
    assert!(scene.question(&bob).text.ends_with("Allowed by Alice."));
    scene.end().await;
}

/// A model that asks without end is refused, and so is a tool that is denied as well.
#[tokio::test]
async fn a_place_has_so_many_open_questions_and_no_more() {
    let rules = HOUSE.replace(
        "ask = [\"file_write\"]",
        "ask = [\"file_write\", \"now\"], deny = [\"now\"]",
    );
    let scene = Scene::new(&rules).await;
    let alice = scene.acquainted(ALICE).await;
    for _ in 0..6 {
        scene.says(&alice, ALICE, "write it").await;
    }
    assert_eq!(scene.states(), ["waiting"; 5].join(" "));
    assert_snapshot!(alice.texts().last().unwrap(), @"the tool said: The tool file_write was not run: it needs a person's approval, and too many such questions are open already. Go on without it.");
    let offered = scene.house.model.last_request().tools;
    assert!(offered.contains(&"file_write".to_owned()) && !offered.contains(&"now".to_owned()));
    scene.says(&alice, ALICE, "/stop").await;
    scene
        .house
        .tell("UPDATE approvals SET expires_at = 1 WHERE state = 'waiting'");
    scene
        .house
        .wait_until_stored(
            "SELECT count(*) FROM approvals WHERE state = 'waiting'",
            "0",
        )
        .await;
    scene.settled().await;
    scene.end().await;
}

/// Starts a gateway that is killed at this point.
fn start(house: &House, armed: Option<&str>) -> Process {
    let mut command = parlor(house.home.path());
    command.arg("run");
    if let Some(armed) = armed {
        command.env("PARLOR_FAIL_POINT", armed);
    }
    Process::start_as(command, house.home.path())
}

#[tokio::test]
async fn a_question_outlives_a_kill_and_a_later_yes_runs_the_call_once() {
    let house = House::new(HOUSE).await;
    house.model.answer_with(writer);
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE).place().clone();
    alice.says(ALICE, "write it").await;
    alice
        .wait_for("a question", |texts| {
            texts.iter().any(|text| text.contains("asks to run"))
        })
        .await;
    house
        .wait_until_stored("SELECT parked FROM open_turns", "1")
        .await;
    // Killed before the question counts as sent, the gateway would ask a second time, as promised.
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.kill().await;
    let process = house.spawn().await;
    alice.says(ALICE, "how are you").await;
    alice
        .wait_for("an answer meanwhile", |texts| {
            texts.last().unwrap() == "Fine."
        })
        .await;
    let asked = question(&house, &alice);
    press(&alice, ALICE, &asked, "Allow").await;
    alice
        .wait_for("the turn goes on", |texts| {
            texts
                .iter()
                .any(|text| text.starts_with("the tool said: Wrote"))
        })
        .await;
    assert!(file(&house, "a.md").exists());
    house
        .wait_until_stored("SELECT state || told FROM approvals", "allowed1")
        .await;
    assert_eq!(of(&house, &alice).len(), 1, "it was asked once");
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// At whichever of these moments it is killed, the call runs at most once, and the turn ends.
#[tokio::test]
async fn killed_around_a_decision_the_call_runs_at_most_once() {
    for (point, runs) in [
        ("approval_asked.before", false),
        ("approval_asked.after", true),
        ("approval_decided.before", true),
        ("approval_decided.after", true),
        ("approval_begun.before", true),
        ("approval_begun.after", false),
    ] {
        let house = House::new(HOUSE).await;
        house.model.answer_with(writer);
        let armed = format!("{point}:1");
        let process = start(&house, Some(&armed));
        let alice = house.telegram.dm(ALICE).place().clone();
        alice.says(ALICE, "write it").await;
        let is_asked = |texts: &[String]| texts.iter().any(|text| text.contains("asks to run"));
        if !point.starts_with("approval_asked") {
            alice.wait_for("a question", is_asked).await;
            press(&alice, ALICE, &question(&house, &alice), "Allow").await;
        }
        process.ended().await;
        let process = start(&house, None);
        if point == "approval_asked.after" {
            alice.wait_for("a question", is_asked).await;
            press(&alice, ALICE, &question(&house, &alice), "Allow").await;
        }
        alice
            .wait_for("the turn ends", |texts| {
                texts.iter().any(|text| text.starts_with("the tool said"))
            })
            .await;
        assert_eq!(file(&house, "a.md").exists(), runs, "{point}");
        let told = alice.texts();
        let interrupted = told.iter().any(|text| text.contains("Interrupted"));
        assert_eq!(interrupted, !runs, "{point}: {told:?}");
        house
            .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
            .await;
        assert_eq!(process.stop().await, 0, "{point}");
    }
}

#[tokio::test]
async fn other_arguments_than_those_that_were_shown_are_not_run() {
    let house = House::new(HOUSE).await;
    house.model.answer_with(writer);
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE).place().clone();
    alice.says(ALICE, "write it").await;
    house.settled(&gateway).await;
    house.close(gateway).await;
    house.tell("UPDATE tool_calls SET arguments = '{\"path\":\"a.md\",\"content\":\"poison\"}'");
    let gateway = house.open().await;
    house.settled(&gateway).await;
    press(&alice, ALICE, &question(&house, &alice), "Allow").await;
    house.settled(&gateway).await;
    assert!(!file(&house, "a.md").exists());
    assert_snapshot!(alice.texts().last().unwrap(), @"the tool said: The tool file_write was not run: its arguments are not those that were allowed.");
    house.close(gateway).await;
}

#[tokio::test]
async fn on_discord_it_is_asked_and_decided_too() {
    use crate::support::fake_discord::{ALICE, BOB};
    let rules = HOUSE
        .replace("owners = [\"telegram:111\"]", "owners = [\"discord:111\"]")
        .replace("telegram:222", "discord:222");
    let (house, discord, garden) = House::with_garden("", &rules).await;
    house.model.answer_with(writer);
    let thread = garden.text_channel(8101, "general").thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    thread.says(ALICE, "write it").await;
    let asked = thread.wait_for_sent(1).await;
    gateway.settled().await;
    assert!(asked.text.contains("An owner decides"), "{}", asked.text);
    let payload = |label: &str| -> String {
        let parts = asked.json["components"][0]["components"].clone();
        let parts = parts.as_array().cloned().unwrap_or_default();
        let found = parts.iter().find(|part| part["label"] == label);
        let id = found.expect("the button")["custom_id"].clone();
        id.as_str().unwrap_or_default().to_owned()
    };
    let refused = thread
        .presses(BOB, asked.message_id, &payload("Allow"))
        .await;
    refused.first().await;
    gateway.settled().await;
    assert_eq!(house.ask("SELECT state FROM approvals"), "waiting");
    thread
        .presses(ALICE, asked.message_id, &payload("Allow"))
        .await;
    house
        .wait_until_stored("SELECT state FROM approvals", "allowed")
        .await;
    gateway.settled().await;
    assert!(file(&house, "a.md").exists());
    let id = asked.message_id.to_string();
    let messages = thread.messages();
    let now = messages
        .iter()
        .find(|message| message["id"].as_str() == Some(&id))
        .expect("it is there");
    let text = now["content"].as_str().unwrap_or_default();
    assert!(text.ends_with("Allowed by Alice."), "{text}");
    assert_eq!(now["components"], json!([]));
    house.close(gateway).await;
}

/// By the command line, with a gateway and without one.
#[tokio::test]
async fn the_command_line_lists_and_decides() {
    let house = House::new(HOUSE).await;
    house.model.answer_with(writer);
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE).place().clone();
    alice.says(ALICE, "write it").await;
    house
        .wait_until_stored("SELECT count(*) FROM open_turns WHERE parked = 1", "1")
        .await;
    let home = house.home.path();
    let listed = run(home, &["approvals"]).await.stdout;
    assert!(
        listed.contains("file_write") && listed.contains("Alice"),
        "{listed}"
    );
    let listed: Value =
        serde_json::from_str(&run(home, &["approvals", "--json"]).await.stdout).expect("JSON");
    assert_eq!(listed[0]["state"], "waiting");
    assert_eq!(
        listed[0]["arguments"],
        "path: a.md\ncontent: tea\n  and milk"
    );
    let unknown = run(home, &["approvals", "allow", "77"]).await;
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let login = run(home, &["approvals", "allow", "1"]).await.stdout;
    let (told, _) = login.rsplit_once(' ').expect("a name at the end");
    assert_snapshot!(told, @"file_write, approval 1: Allowed by");
    alice
        .wait_for("the turn goes on", |texts| {
            texts
                .iter()
                .any(|text| text.starts_with("the tool said: Wrote"))
        })
        .await;
    let again = run(home, &["approvals", "refuse", "1"]).await;
    assert!(again.stderr.contains("waits no longer"), "{}", again.stderr);
    assert_eq!(again.code, 1);
    alice.says(ALICE, "write two").await;
    house
        .wait_until_stored("SELECT count(*) FROM open_turns WHERE parked = 1", "1")
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(run(home, &["approvals", "allow", "2"]).await.code, 0);
    let process = house.spawn().await;
    alice
        .wait_for("it goes on after the start", |texts| {
            let done = texts
                .iter()
                .filter(|text| text.starts_with("the tool said: Wrote"));
            done.count() == 2
        })
        .await;
    assert!(file(&house, "b.md").exists());
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// By HTTP: the scope operate decides like an admin, admin like an owner.
#[tokio::test]
async fn the_http_api_lists_and_decides() {
    let site = Site::open("").await;
    let asking = site.house.config().replace(
        "[agents.rose]\n",
        "[agents.rose]\ntools = { ask = [\"file_write\"] }\n",
    );
    site.house.write("config.toml", &asking);
    assert_eq!(run(site.home(), &["reload"]).await.code, 0);
    site.house.model.answer_with(writer);
    let topic = site.house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(ALICE, "write it").await;
    let parked = "SELECT count(*) FROM open_turns WHERE parked = 1";
    site.house.wait_until_stored(parked, "1").await;
    let (operate, admin) = (site.token("operate").await, site.token("admin").await);
    let call = async |method: &str, path: &str, token: &str| {
        let call = Call::new(method, &format!("/api/v1/approvals{path}"));
        site.send(call.token(token)).await
    };
    let listed = call("GET", "?state=waiting", &operate).await.json();
    assert_eq!(listed["items"][0]["tool"], "file_write");
    assert_eq!(listed["items"][0]["least_role"], "owner");
    assert_eq!(call("GET", "/1", &operate).await.json()["state"], "waiting");
    assert_eq!(
        call("GET", "?state=allowed", &operate).await.json()["items"],
        json!([])
    );
    assert_eq!(call("GET", "?state=perhaps", &operate).await.status, 400);
    assert_eq!(call("GET", "/77", &operate).await.status, 404);
    assert_eq!(call("POST", "/77/allow", &operate).await.status, 404);
    let beyond = call("POST", "/1/allow", &operate).await;
    assert_eq!(beyond.status, 403, "an owner asked: {beyond:?}");
    let allowed = call("POST", "/1/allow", &admin).await;
    assert_eq!(allowed.status, 200, "{allowed:?}");
    assert_eq!(allowed.json()["outcome"], "Allowed by admin.");
    for path in ["/1/allow", "/1/refuse"] {
        assert_eq!(call("POST", path, &admin).await.status, 409);
    }
    topic
        .wait_for("the turn goes on", |texts| {
            texts
                .iter()
                .any(|text| text.starts_with("the tool said: Wrote"))
        })
        .await;
    let written = site.home().join("agents/rose/workspace/a.md");
    assert!(written.exists());
    site.house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    site.process.stop().await;
}
