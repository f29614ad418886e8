//! `/models` and `/model`: what people can choose, what they get, and how long it lasts.

use insta::assert_snapshot;
use parlor::gateway::Gateway;
use serde_json::Value;

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, Place, buttons};
use crate::support::house::parlor;

/// A name that no button has room for.
const LONG: &str = "a-model-with-a-name-that-is-far-too-long-for-any-button";

/// Begins inside of `[providers.fake]`.
const TEAM: &str = r#"
models = ["big", "a-model-with-a-name-that-is-far-too-long-for-any-button"]
[access]
owners = ["telegram:111"]
require_mention = false
groups = "open"
[agents.main]
emoji = "☕"
fallback = ["fake/spare"]
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
model = "demo"
[[bindings]]
match = "telegram:group:-1001"
agent = "main"
[[bindings]]
match = "telegram:topic:-1001:9"
agent = "rose"
locked = true
"#;

struct Talk {
    house: House,
    gateway: Option<Gateway>,
    place: Place,
    said: usize,
}

impl Talk {
    async fn in_topic(topic: i64) -> Self {
        let house = House::new(TEAM).await;
        let gateway = Some(house.open().await);
        let place = house.telegram.forum(-1001).topic(topic, "A topic");
        Talk {
            house,
            gateway,
            place,
            said: 0,
        }
    }

    async fn says(&mut self, who: crate::support::fake_telegram::User, text: &str) -> String {
        self.place.says(who, text).await;
        self.next().await
    }

    async fn bob(&mut self, text: &str) -> String {
        self.says(BOB, text).await
    }

    async fn next(&mut self) -> String {
        self.said += 1;
        self.place.wait_for_sent(self.said).await.text
    }

    async fn presses(&mut self, label: &str) -> String {
        let shown = self.place.wait_for_sent(self.said).await;
        let (_, data) = buttons(&shown.reply_markup)
            .into_iter()
            .find(|(text, _)| text == label)
            .expect("the button is there");
        assert!(data.len() <= 64, "{data}");
        self.place.presses(BOB, shown.message_id, &data).await;
        let at = self.said - 1;
        let is_changed = |texts: &[String]| texts.get(at).is_some_and(|text| *text != shown.text);
        self.place.wait_for("a change", is_changed).await;
        self.place.texts()[at].clone()
    }

    async fn stop(&mut self) {
        let gateway = self.gateway.take().expect("it runs");
        self.house.close(gateway).await;
    }

    async fn restart(&mut self) {
        self.stop().await;
        self.gateway = Some(self.house.open().await);
    }

    /// The model that was asked last.
    fn asked(&self) -> String {
        self.house.model.last_request().model
    }
}

/// S2.5
#[tokio::test]
async fn models_are_listed_with_what_they_are_here() {
    let mut talk = Talk::in_topic(5).await;
    assert_snapshot!(talk.bob("/models").await, @"
    ☕ Main can use:
    • fake/any (default) ← used here
    • fake/spare (fallback)
    • fake/big
    • fake/a-model-with-a-name-that-is-far-too-long-for-any-button

    /model fake/spare switches to that one.
    ");
    assert_snapshot!(talk.bob("/model").await, @"
    ☕ Main uses fake/any here (the default model).
    /model fake/spare switches to that one.
    ");
    talk.bob("/model fake/big").await;
    assert_snapshot!(talk.bob("/models").await, @"
    ☕ Main can use:
    • fake/any (default)
    • fake/spare (fallback)
    • fake/big ← chosen here
    • fake/a-model-with-a-name-that-is-far-too-long-for-any-button

    /model reset goes back to fake/any.
    ");
    talk.bob("/agent rose").await;
    assert_snapshot!(talk.bob("/model").await, @"
    🌹 Rose uses fake/big here (chosen here with /model).
    /model reset goes back to demo.
    ");
    talk.stop().await;
}

/// S2.6
#[tokio::test]
async fn a_chosen_model_lasts_until_reset_or_new_also_over_a_restart() {
    let mut talk = Talk::in_topic(5).await;
    assert_snapshot!(talk.bob("/model FAKE/big").await, @"☕ Main uses fake/big here from now on. /model reset or /new undoes that.");
    assert_snapshot!(talk.bob("/model fake/big").await, @"☕ Main already uses fake/big here.");
    assert_snapshot!(talk.bob("/model big").await, @"☕ Main already uses fake/big here.");
    talk.restart().await;
    talk.bob("hello").await;
    assert_eq!(talk.asked(), "big");
    assert_eq!(
        talk.house
            .ask("SELECT model FROM turns ORDER BY id DESC LIMIT 1"),
        "fake/big"
    );
    let gateway = talk.gateway.as_ref().expect("it is open");
    talk.house.settled(gateway).await;
    assert_snapshot!(talk.bob("/status").await, @"
    ☕ Main answers here. An owner gave this topic to Main.
    ☕ Main uses fake/big here.
    This conversation has 2 messages.
    You have used 112 tokens today.

    Nothing is being written here, and nothing waits.
    ");
    assert!(
        talk.bob("/whoami")
            .await
            .contains("☕ Main uses fake/big here.")
    );
    let elsewhere = talk.house.telegram.forum(-1001).topic(6, "Elsewhere");
    elsewhere.says(BOB, "hello").await;
    elsewhere.wait_for_sent(1).await;
    assert_eq!(talk.asked(), "any", "another place");

    assert_snapshot!(talk.bob("/model reset").await, @"☕ Main uses fake/any here again (the default model).");
    talk.bob("hello").await;
    assert_eq!(talk.asked(), "any");
    assert_snapshot!(talk.bob("/model reset").await, @"No model was chosen here. ☕ Main uses fake/any (the default model).");

    talk.bob("/model fake/spare").await;
    assert_snapshot!(talk.bob("/new").await, @"
    A fresh conversation begins here. What was said before is kept, but I no longer look at it.
    ☕ Main uses fake/any again.
    ");
    talk.bob("hello").await;
    assert_eq!(talk.asked(), "any");
    assert_eq!(talk.house.ask("SELECT count(*) FROM model_overrides"), "0");
    talk.stop().await;
}

#[tokio::test]
async fn a_model_that_is_not_there_is_answered_with_those_that_are() {
    let mut talk = Talk::in_topic(5).await;
    assert_snapshot!(talk.bob("/model fake/bgi").await, @"☕ Main has no model fake/bgi. Did you mean /model fake/big? /models lists all of them.");
    assert_snapshot!(talk.bob("/model openai/gpt-5.4").await, @"☕ Main has no model openai/gpt-5.4. It can use fake/any, fake/spare, fake/big, fake/a-model-with-a-name-that-is-far-too-long-for-any-button.");
    assert_snapshot!(talk.bob("/model #0123").await, @"That model is no longer offered. /models lists the others.");
    assert_eq!(talk.house.ask("SELECT count(*) FROM model_overrides"), "0");
    talk.stop().await;
}

#[tokio::test]
async fn a_locked_place_keeps_its_model_but_for_owners() {
    let mut talk = Talk::in_topic(9).await;
    assert_snapshot!(talk.bob("/model fake/big").await, @"This place is locked; only an owner or admin can change its model.");
    assert_snapshot!(talk.bob("/model reset").await, @"This place is locked; only an owner or admin can change its model.");
    assert_snapshot!(talk.says(ALICE, "/model fake/big").await, @"🌹 Rose uses fake/big here from now on. /model reset or /new undoes that.");
    talk.bob("hello").await;
    assert_eq!(talk.asked(), "big");
    talk.stop().await;
}

#[tokio::test]
async fn a_press_chooses_like_the_command_also_after_a_restart() {
    let mut talk = Talk::in_topic(5).await;
    talk.bob("/models").await;
    let shown = talk.place.wait_for_sent(talk.said).await;
    let labels: Vec<String> = buttons(&shown.reply_markup)
        .into_iter()
        .map(|(label, _)| label)
        .collect();
    assert_eq!(
        labels,
        ["fake/spare", "fake/big", &format!("fake/{LONG}")],
        "all but the one in use"
    );
    talk.restart().await;
    assert_snapshot!(talk.presses(&format!("fake/{LONG}")).await, @"
    ☕ Main uses fake/a-model-with-a-name-that-is-far-too-long-for-any-button here from now on. /model reset or /new undoes that.
    Pressed by Bob.
    ");
    talk.bob("hello").await;
    assert_eq!(talk.asked(), LONG);
    talk.bob("/model").await;
    assert_snapshot!(talk.presses("↩ reset").await, @"
    ☕ Main uses fake/any here again (the default model).
    Pressed by Bob.
    ");
    talk.stop().await;
}

/// The operator took the model away, so neither an old button nor an old choice counts, and both
/// say so.
#[tokio::test]
async fn what_is_no_longer_offered_says_so() {
    let mut talk = Talk::in_topic(5).await;
    talk.bob("/models").await;
    let list = talk.place.wait_for_sent(talk.said).await;
    let long = buttons(&list.reply_markup).pop().expect("a button").1;
    talk.bob("/model fake/big").await;
    talk.stop().await;
    talk.house
        .configure("", &TEAM.replacen("models = ", "#", 1));
    talk.gateway = Some(talk.house.open().await);
    talk.place.presses(BOB, list.message_id, &long).await;
    let answered = talk
        .house
        .telegram
        .wait_for_calls("answerCallbackQuery", 1)
        .await;
    assert_snapshot!(answered.params["text"].as_str().unwrap_or_default(), @"That model is no longer offered. /models lists the others.");
    assert_snapshot!(talk.bob("/model").await, @"
    ☕ Main uses fake/any here (the default model).
    /model fake/spare switches to that one.
    fake/big was chosen here, but it is no longer offered.
    ");
    talk.bob("hello").await;
    assert_eq!(talk.asked(), "any");
    talk.stop().await;
}

#[tokio::test]
async fn a_group_takes_its_model_along_when_it_becomes_a_supergroup() {
    // An owner would be told, and has no chat here.
    let house = House::new(&TEAM.replace("owners = [\"telegram:111\"]\n", "")).await;
    let gateway = house.open().await;
    let group = house.telegram.group(-15);
    group.says(BOB, "/model fake/big").await;
    group.wait_for_sent(1).await;
    group.migrates_to(-1006).await;
    house.settled(&gateway).await;
    let group = house.telegram.supergroup(-1006);
    group.says(BOB, "hello").await;
    house.settled(&gateway).await;
    assert_eq!(house.model.last_request().model, "big");
    gateway.shutdown().await;
}

/// S2.7
#[tokio::test]
async fn explain_tells_the_model_and_who_decided() {
    let mut talk = Talk::in_topic(5).await;
    talk.bob("/model fake/big").await;
    talk.stop().await;
    let settings = "[agents.main]\ntemperature = 0.3\nmax_tokens = 900\nreasoning = \"low\"";
    talk.house
        .configure("", &TEAM.replace("[agents.main]", settings));
    let explain = async |arguments: &[&str]| {
        let run = parlor(talk.house.home.path())
            .args(["route", "explain", "telegram:topic:-1001:5"])
            .args(arguments)
            .output();
        String::from_utf8(run.await.expect("it starts").stdout).expect("text")
    };
    let text = explain(&["--all"]).await;
    assert_snapshot!(text.split_once("\n\nmodel").map(|(_, model)| format!("model{model}")).unwrap_or(text), @"
    model: fake/big (chosen here with /model)
    fallback: fake/any, fake/spare
    temperature: 0.3
    max_tokens: 900
    reasoning: low
    tools: now, skill, file_read, file_list, file_search, memory_search, transcript_search
    without web_fetch, file_send, agent_send, message_send: a guest may use tools up to `look` (`[access.tools]`), and this is a `reach` tool (access.tools.guest, default)
    without file_write, file_edit, file_delete, spawn, schedule, memory_save, memory_note, memory_edit: a guest may use tools up to `look` (`[access.tools]`), and this is a `change` tool (access.tools.guest, default)
    skills: none (agents.main.skills, not set)
    memory: on (agents.main.memory, default); what is saved is for the place
    recalls: memories of Main, memories for telegram:topic:-1001:5, global memories
    finds: memories of Main, memories for telegram:topic:-1001:5, global memories
    limit agents.main.limits.max_steps: 40 (default)
    limit agents.main.limits.max_minutes: 30 (default)
    ");
    let json: Value = serde_json::from_str(&explain(&["--json"]).await).expect("JSON");
    assert_eq!(
        (&json["route"]["agent"], &json["model"]["source"]),
        (&"main".into(), &"override".into())
    );
    assert_eq!(
        json["model"]["fallback"],
        serde_json::json!(["fake/any", "fake/spare"])
    );
}

/// S2.39
#[tokio::test]
async fn an_agents_settings_reach_its_model() {
    let settings = "[agents.main]\ntemperature = 0.3\nmax_tokens = 900\nreasoning = \"low\"";
    let house = House::new(&TEAM.replace("[agents.main]", settings)).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "A topic");
    topic.says(BOB, "hello").await;
    house.settled(&gateway).await;
    let raw = house.model.last_request().raw;
    assert_eq!(
        (
            &raw["temperature"],
            &raw["max_tokens"],
            &raw["reasoning_effort"]
        ),
        (&0.3.into(), &900.into(), &"low".into())
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_small_window_holds_the_newest_of_a_long_talk() {
    let house = House::new(&format!("context_tokens = 4_000\n{}", TEAM.trim_start())).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "A topic");
    house
        .model
        .answer_with(|_| crate::support::fake_model::Script::text("Yes."));
    for word in ["first", "second", "third", "fourth"] {
        topic
            .says(BOB, &format!("{word} {}", "lorem ipsum ".repeat(250)))
            .await;
        house.settled(&gateway).await;
    }
    let read: String = house
        .model
        .last_request()
        .messages
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert!(
        read.contains("fourth") && read.contains("third") && !read.contains("first"),
        "{} characters",
        read.len()
    );
    gateway.shutdown().await;
}
