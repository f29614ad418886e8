//! The story of a turn over HTTP and by `/trace`: every stage, the prompt by section, and whose eyes
//! it is for.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::admin_door::Site;
use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault, Place};
use crate::support::http::Call;
use crate::webhook::free_address;

/// Words that only some may see.
const QUESTION: &str = "what does the secret garden cost?";

async fn get(site: &Site, token: &str, path: &str) -> Value {
    let call = Call::get(&format!("/api/v1{path}")).token(token);
    let answer = site.send(call).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

async fn all_sent(house: &House) {
    let open = "SELECT count(*) FROM outbox WHERE state <> 'sent'";
    house.wait_until_stored(open, "0").await;
}

/// The newest turn, with the eyes of this token.
async fn newest(site: &Site, token: &str) -> Value {
    let listed = get(site, token, "/turns?limit=1").await;
    let id = &listed["items"][0]["id"];
    get(site, token, &format!("/turns/{id}")).await
}

/// The stages in order. How long a message waits depends on the machine, so waits are left out.
fn kinds(turn: &Value) -> Vec<&str> {
    let events = turn["timeline"].as_array().expect("a timeline").iter();
    let kinds = events.map(|event| event["kind"].as_str().expect("a kind"));
    kinds
        .filter(|kind| !matches!(*kind, "queued" | "slot"))
        .collect()
}

fn events<'a>(turn: &'a Value, kind: &str) -> Vec<&'a Value> {
    let events = turn["timeline"].as_array().expect("a timeline").iter();
    events.filter(|event| event["kind"] == kind).collect()
}

fn section<'a>(turn: &'a Value, name: &str) -> &'a Value {
    let sections = turn["prompt"]["sections"].as_array().expect("sections");
    let mut found = sections.iter().filter(|section| section["name"] == name);
    found.next().unwrap_or_else(|| panic!("{name}: {turn:#}"))
}

fn garden(house: &House) -> Place {
    house.telegram.forum(-1001).topic(101, "Garden")
}

/// Every stage of a turn with a tool, and its prompt for those who may read it.
#[tokio::test]
async fn a_turn_has_its_stages_and_its_prompt() {
    let site = Site::open("").await;
    let (admin, read) = (site.token("admin").await, site.token("read").await);
    let topic = garden(&site.house);
    topic.says(ALICE, "hello").await;
    topic.wait_for_sent(1).await;
    all_sent(&site.house).await;
    site.house
        .model
        .enqueue(Script::tool_call("now", json!({})));
    site.house.model.enqueue(Script::text("Nothing at all."));
    topic.says(ALICE, QUESTION).await;
    topic.wait_for_sent(2).await;
    all_sent(&site.house).await;
    let turn = newest(&site, &admin).await;
    assert_eq!(
        kinds(&turn),
        [
            "received", "prepared", "called", "tool", "called", "ended", "sent"
        ],
        "{turn:#}"
    );
    assert_eq!(turn["agent"]["id"], "rose");
    assert_eq!(turn["outcome"], "answered");
    assert_eq!(turn["read"], json!(["an owner's words"]), "labels");
    for call in events(&turn, "called") {
        assert_eq!(call["model"], "fake/any");
        assert!(
            call["took_ms"].is_number() && call["first_ms"].is_number(),
            "{call}"
        );
        assert!(call["tokens"]["input"].as_u64() > Some(0), "{call}");
        assert_eq!(call["error"], Value::Null);
    }
    let tool = events(&turn, "tool")[0];
    assert_eq!((&tool["tool"], &tool["round"]), (&json!("now"), &json!(1)));
    assert!(tool["result_bytes"].as_u64() > Some(5), "{tool}");
    assert!(tool["took_ms"].is_number(), "{tool}");
    assert_eq!(events(&turn, "sent")[0]["state"], "sent");
    assert_eq!(turn["prompt"]["words"], "shown");
    let question = section(&turn, "Question");
    let text = question["text"].as_str().expect("words");
    assert!(text.contains(QUESTION), "{question}");
    assert!(question["tokens"].as_u64() > Some(5), "{question}");
    let conversation = &section(&turn, "Conversation")["difference"];
    assert!(conversation.to_string().contains("+"), "{conversation}");
    assert!(conversation.to_string().contains("hello"), "{conversation}");
    assert_eq!(
        section(&turn, "Name and house rules")["difference"],
        json!([])
    );
    assert!(
        section(&turn, "Rounds of tools")["text"]
            .to_string()
            .contains("→ now")
    );
    section(&turn, "Tools");
    // Others see sizes, and nobody's words.
    let seen = newest(&site, &read).await;
    assert_eq!(seen["prompt"]["words"], "hidden");
    assert_eq!(section(&seen, "Question")["tokens"], question["tokens"]);
    assert_eq!(section(&seen, "Question")["text"], Value::Null);
    assert!(!seen.to_string().contains("secret garden"), "{seen:#}");
    for (scope, token) in [("admin", &admin), ("read", &read)] {
        let page = Call::get(&format!("/turns/{}", turn["id"])).token(token);
        let page = site.send(page).await;
        assert_eq!(page.status, 200, "{page:?}");
        let has_words = page.body.contains("secret garden");
        assert_eq!(has_words, scope == "admin", "the page for {scope}");
    }
    site.stop().await;
}

/// A model that cannot answer, its fallback, and what it costs.
#[tokio::test]
async fn a_failed_call_and_its_fallback_are_told_apart() {
    let keys = "[providers.fake.prices]\nsecond = { input = 2.0, output = 4.0 }\n[agents.rose]\nfallback = [\"fake/second\"]\n";
    let site = with_agents(keys).await;
    let admin = site.token("admin").await;
    site.house.model.enqueue(Script::status(400, "{}"));
    site.house.model.enqueue(Script::text("Here."));
    let topic = garden(&site.house);
    topic.says(ALICE, "anybody?").await;
    topic.wait_for_sent(1).await;
    all_sent(&site.house).await;
    let turn = newest(&site, &admin).await;
    let calls = events(&turn, "called");
    assert_eq!(calls.len(), 2, "{turn:#}");
    assert_eq!(
        (&calls[0]["model"], &calls[1]["model"]),
        (&json!("fake/any"), &json!("fake/second"))
    );
    assert!(
        calls[0]["error"].is_string() && calls[1]["error"].is_null(),
        "{turn:#}"
    );
    assert!(calls[1]["cost_micros"].as_u64() > Some(0), "{turn:#}");
    assert_eq!(turn["cost_micros"], calls[1]["cost_micros"]);
    site.stop().await;
}

/// A site whose agents have these keys.
async fn with_agents(keys: &str) -> Site {
    let address = free_address();
    let house = House::new(&format!(
        "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n[admin]\nlisten = \"{address}\"\n{keys}\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n"
    ))
    .await;
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    Site {
        house,
        address,
        process,
    }
}

/// The platform says wait, and the story says how long.
#[tokio::test]
async fn a_wait_that_the_platform_asked_for_is_told() {
    let site = Site::open("").await;
    let admin = site.token("admin").await;
    let topic = garden(&site.house);
    site.house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(1))
        .once();
    topic.says(ALICE, "hello").await;
    topic.wait_for_sent(1).await;
    all_sent(&site.house).await;
    let turn = newest(&site, &admin).await;
    let sent = events(&turn, "sent")[0];
    assert_eq!(
        (&sent["tries"], &sent["asked_to_wait_ms"]),
        (&json!(2), &json!(1000))
    );
    site.stop().await;
}

/// What a message waited for: the turn before it.
#[tokio::test]
async fn a_message_names_the_turn_it_waited_for() {
    let site = Site::open("").await;
    let admin = site.token("admin").await;
    let topic = garden(&site.house);
    site.house.model.hold();
    topic.says(ALICE, "one").await;
    site.house.model.wait_for_open(1).await;
    topic.says(ALICE, "two").await;
    site.house.all_in_their_lanes().await;
    site.house.model.release();
    topic.wait_for_sent(2).await;
    all_sent(&site.house).await;
    let first = site.house.ask("SELECT min(inbox_id) FROM turns");
    let turn = newest(&site, &admin).await;
    let queued = events(&turn, "queued");
    assert_eq!(queued.len(), 1, "{turn:#}");
    assert_eq!(queued[0]["turns"].to_string(), format!("[{first}]"));
    site.stop().await;
}

/// The gateway is killed while a tool's result waits for the model. The timeline has the gap and what
/// came after.
#[tokio::test]
async fn a_kill_in_the_middle_is_a_gap_and_the_story_goes_on() {
    let site = Site::open("").await;
    let admin = site.token("admin").await;
    let topic = garden(&site.house);
    site.house
        .model
        .enqueue(Script::tool_call("now", json!({})));
    site.house.model.enqueue(Script::text("never seen").held());
    topic.says(ALICE, "the time?").await;
    site.house.model.wait_for_requests(2).await;
    let id = site.house.ask("SELECT inbox_id FROM open_turns");
    let running = get(&site, &admin, &format!("/turns/{id}")).await;
    assert_eq!(running["state"], "running");
    assert_eq!(
        kinds(&running),
        ["received", "prepared", "called", "tool"],
        "{running:#}"
    );
    let Site {
        house,
        address,
        process,
    } = site;
    process.kill().await;
    house.model.enqueue(Script::text("Noon."));
    let process = house.spawn().await;
    process.wait_for_log("the admin listener is on").await;
    assert_eq!(topic.wait_for_sent(1).await.text, "Noon.");
    all_sent(&house).await;
    let site = Site {
        house,
        address,
        process,
    };
    let turn = get(&site, &admin, &format!("/turns/{id}")).await;
    assert_eq!(
        kinds(&turn),
        [
            "received", "prepared", "called", "tool", "away", "called", "ended", "sent"
        ],
        "{turn:#}"
    );
    assert!(
        events(&turn, "away")[0]["took_ms"].as_u64() > Some(0),
        "{turn:#}"
    );
    assert_eq!(turn["outcome"], "answered");
    site.stop().await;
}

const PROMPTS: &str = "SELECT count(*) FROM turn_notes WHERE prompt IS NOT NULL";

/// So many as the config says, for a place.
#[tokio::test]
async fn prompts_are_kept_as_long_as_the_config_says() {
    for (keys, kept) in [("prompts_kept = 2", "2"), ("prompts_kept = 0", "0")] {
        let site = Site::open(keys).await;
        let topic = garden(&site.house);
        for number in 1..=4 {
            topic.says(ALICE, &format!("message {number}")).await;
            topic.wait_for_sent(number).await;
        }
        all_sent(&site.house).await;
        assert_eq!(site.house.ask(PROMPTS), kept, "{keys}");
        assert_eq!(site.house.ask("SELECT count(*) FROM turn_notes"), "4");
        site.stop().await;
    }
    let house = House::new("[access]\ndms = \"open\"\n").await;
    let gateway = house.open().await;
    house.telegram.dm(ALICE).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(house.ask(PROMPTS), "0", "nobody could look at it");
    gateway.shutdown().await;
}

/// A forgotten memory is in no prompt, and in no byte of the home.
#[tokio::test]
async fn what_is_forgotten_leaves_the_prompts() {
    let site = Site::open("").await;
    let owner = site.house.telegram.dm(ALICE);
    owner
        .says("/remember the password of the shed is bluebell-17")
        .await;
    owner.wait_for_sent(1).await;
    owner.says("what is the password of the shed?").await;
    owner.wait_for_sent(2).await;
    all_sent(&site.house).await;
    let asked = site.house.model.last_request();
    assert!(asked.has("bluebell-17"), "it was recalled: {asked:?}");
    assert_eq!(site.house.ask(PROMPTS), "1");
    let id = site.house.ask("SELECT id FROM memories");
    owner.says(&format!("/forget {id} yes")).await;
    owner.wait_for_sent(3).await;
    assert_eq!(site.house.ask(PROMPTS), "0");
    // A turn that began after that keeps its prompt again.
    owner.says("and the colour?").await;
    owner.wait_for_sent(4).await;
    all_sent(&site.house).await;
    assert_eq!(site.house.ask(PROMPTS), "1");
    site.stop().await;
}

/// The words of a deleted message leave the prompts of its place.
#[tokio::test]
async fn a_deleted_message_leaves_the_prompts() {
    let address = free_address();
    let house = House::new(&format!(
        "[access]\nowners = [\"discord:111\"]\nrequire_mention = false\n[admin]\nlisten = \"{address}\"\n\
         [[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n"
    ))
    .await;
    let discord = house.add_discord("").await;
    let channel = discord.guild(8001, "Garden").text_channel(8101, "general");
    let thread = channel.thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
    let said = thread
        .says(fake_discord::ALICE, "a slip of the tongue")
        .await;
    thread.wait_for_sent(1).await;
    gateway.settled().await;
    assert_eq!(house.ask(PROMPTS), "1");
    thread.deletes(said.message_id).await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM messages WHERE deleted_at IS NOT NULL",
            "1",
        )
        .await;
    assert_eq!(house.ask(PROMPTS), "0");
    gateway.shutdown().await;
}

/// With `N` for each time, because times differ from run to run.
fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_unit = |word: &&str| matches!(word.trim_end_matches(['.', ',']), "ms" | "s");
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let told = words.iter().enumerate().map(|(at, word)| {
        match is_number(word) && words.get(at + 1).is_some_and(is_unit) {
            true => "N",
            false => *word,
        }
    });
    told.collect::<Vec<_>>().join(" ").replace("N s", "N ms")
}

/// As a reply to an answer, for owners and admins.
#[tokio::test]
async fn trace_tells_how_an_answer_came_about() {
    let site = Site::open("").await;
    let topic = garden(&site.house);
    site.house
        .model
        .enqueue(Script::tool_call("now", json!({})));
    site.house.model.enqueue(Script::text("Noon."));
    let asked = topic.says(ALICE, QUESTION).await;
    let answer = topic.wait_for_sent(1).await;
    topic.says(ALICE, "and tomorrow?").await;
    topic.wait_for_sent(2).await;
    all_sent(&site.house).await;
    let ids = site.house.ask("SELECT group_concat(inbox_id) FROM turns");
    let (first, last) = ids.split_once(',').expect("two turns");
    topic
        .says(ALICE, "/trace")
        .replying_to(answer.message_id)
        .await;
    let told = topic.wait_for_sent(3).await.text;
    let link = format!("http://{}/turns/{first}", site.address);
    assert!(told.ends_with(&link), "{told}");
    assert!(!told.contains("garden cost"), "nobody's words: {told}");
    let told = told.replace(&link, "[link]");
    let lines = told
        .lines()
        .filter(|line| !line.starts_with("Before and between: "));
    let told: Vec<String> = lines.map(without_times).collect();
    // The name of the day is part of the result.
    let told = (33..=36).fold(told.join("\n"), |told, bytes| {
        told.replace(&format!("({bytes} bytes)"), "(N bytes)")
    });
    assert_snapshot!(told, @"
    Rose answered N ms after the message, because of config.toml line 18: exact topic telegram:topic:-1001:101.
    Model: fake/any N ms, first sign after N ms · fake/any N ms, first sign after N ms
    Tokens: 210 read (180 from the cache), 14 written
    Tools: now N ms (N bytes)
    Delivery: sent in N ms
    It has read: an owner's words
    [link]
    ");
    topic.says(ALICE, "/trace").await;
    let told = topic.wait_for_sent(4).await.text;
    assert!(
        told.ends_with(&format!("/turns/{last}")),
        "the last one: {told}"
    );
    topic
        .says(ALICE, "/trace")
        .replying_to(asked.message_id)
        .await;
    let told = topic.wait_for_sent(5).await.text;
    assert_snapshot!(told, @"That message is none of my answers, or too old. Reply to an answer with /trace.");
    topic
        .says(BOB, "/trace")
        .replying_to(answer.message_id)
        .await;
    let told = topic.wait_for_sent(6).await.text;
    assert_snapshot!(told, @"Only owners and admins can see how an answer came about.");
    let elsewhere = site.house.telegram.dm(ALICE);
    elsewhere.says("/trace").await;
    assert_snapshot!(elsewhere.wait_for_sent(1).await.text, @"I haven't answered anything here yet. In other places, reply to an answer with /trace.");
    site.stop().await;
}

/// On Discord, as a reply and as a slash command.
#[tokio::test]
async fn trace_works_on_discord_too() {
    let house = House::new(
        "[access]\nowners = [\"discord:111\"]\nrequire_mention = false\n\
         [[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n",
    )
    .await;
    let discord = house.add_discord("").await;
    let channel = discord.guild(8001, "Garden").text_channel(8101, "general");
    let thread = channel.thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
    thread.says(fake_discord::ALICE, "hello").await;
    let answer = thread.wait_for_sent(1).await;
    gateway.settled().await;
    let reply = thread
        .says(fake_discord::ALICE, "/trace")
        .replying_to(answer.message_id);
    reply.await;
    let told = thread.wait_for_sent(2).await.text;
    assert!(
        told.starts_with("Main answered ") && told.contains(" after the message, because "),
        "{told}"
    );
    let reply = thread
        .says(fake_discord::BOB, "/trace")
        .replying_to(answer.message_id);
    reply.await;
    let told = thread.wait_for_sent(3).await.text;
    assert_eq!(
        told,
        "Only owners and admins can see how an answer came about."
    );
    gateway.shutdown().await;
}
