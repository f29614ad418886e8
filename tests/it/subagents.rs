//! Subagents: what they get, what comes back, and what a stop or a kill leaves of them.

use serde_json::{Value, json};

use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::ALICE;

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\n";

fn spawn(task: &str, more: Value) -> (String, Value) {
    let mut arguments = json!({ "task": task });
    let more = more.as_object().expect("an object").clone();
    arguments.as_object_mut().expect("an object").extend(more);
    ("spawn".to_owned(), arguments)
}

fn three() -> Script {
    Script::ToolCalls(
        ["apples", "pears", "plums"]
            .map(|fruit| spawn(&format!("count {fruit}"), json!({})))
            .to_vec(),
    )
}

/// S2.23, S2.24, S3.6, S3.7
#[tokio::test]
async fn three_work_at_once_and_their_results_are_the_results_of_the_calls() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(three());
    for fruit in ["apples", "pears", "plums"] {
        house.model.enqueue_when(
            &format!("count {fruit}"),
            Script::text(format!("7 {fruit}")).held(),
        );
    }
    house.model.enqueue(Script::text("All counted."));
    alice.says("count the fruit").await;
    house.model.wait_for_open(3).await;
    assert_eq!(
        house.ask("SELECT group_concat(state) FROM subagents"),
        "running,running,running"
    );
    assert!(house.telegram.calls("sendMessage").is_empty());
    house.model.release();
    house.settled(&gateway).await;

    assert_eq!(alice.texts(), ["All counted."]);
    let journal = house.model.journal();
    assert_eq!((journal.len(), house.model.most_at_once()), (5, 3));
    assert_eq!(
        journal[4].results(),
        ["7 apples", "7 pears", "7 plums"],
        "in the order of the calls"
    );
    insta::assert_snapshot!(house.model.asked_about("count pears")[0].last_text(), @"
    [You work for @main now. Nobody else reads this: your answer goes to that agent as the result of the task that follows. Do it completely, and answer with what came of it.]

    count pears
    ");
    for tool in ["spawn", "agent_send", "message_send", "file_send"] {
        assert!(
            journal[0].tools.contains(&tool.to_owned())
                && !journal[1].tools.contains(&tool.to_owned()),
            "{tool}"
        );
    }
    let rules = |request: &Request| {
        let lines = request.system.lines().skip(2);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rules(&journal[1]), rules(&journal[0]), "the same agent");
    assert!(journal[1].system.contains("You speak with another agent"));
    let stored =
        "SELECT count(*) FROM messages JOIN subagents ON subagents.place_id = messages.place_id
                  WHERE parent_place_id = (SELECT id FROM places WHERE key = 'telegram:dm:111')";
    assert_eq!(
        house.ask(stored),
        "6",
        "a task and a result each, in their own sessions"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE place_id = (SELECT id FROM places WHERE key = 'telegram:dm:111')"),
        "2"
    );
    assert_eq!(
        house.ask("SELECT sum(input_tokens) FROM turns"),
        "525",
        "every call counts once"
    );
    gateway.shutdown().await;
}

/// Whoever waits for others has time for people, more than once.
#[tokio::test]
async fn people_are_answered_while_subagents_work() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(three());
    for fruit in ["apples", "pears", "plums"] {
        house.model.enqueue_when(
            &format!("count {fruit}"),
            Script::text(format!("7 {fruit}")).held(),
        );
    }
    house.model.enqueue_when("what time", Script::text("Noon."));
    house
        .model
        .enqueue_when("which day", Script::text("Monday."));
    house.model.enqueue(Script::text("All counted."));
    alice.says("count the fruit").await;
    house.model.wait_for_open(3).await;
    alice.says("what time is it").await;
    assert_eq!(alice.wait_for_sent(1).await.text, "Noon.");
    alice.says("which day is it").await;
    assert_eq!(alice.wait_for_sent(2).await.text, "Monday.");
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["Noon.", "Monday.", "All counted."]);
    let last = house.model.last_request();
    assert_eq!(
        last.results(),
        ["7 apples", "7 pears", "7 plums"],
        "in the order of the calls"
    );
    let (first, second) = (
        last.last_text().find("what time is it"),
        last.last_text().find("which day is it"),
    );
    assert!(
        first.is_some() && first < second,
        "after the results, in their order: {}",
        last.last_text()
    );
    assert_eq!(
        house.ask("SELECT sum(input_tokens) FROM turns"),
        "735",
        "every call counts once"
    );
    assert_eq!(house.ask("SELECT sum(input_tokens) FROM spending"), "735");
    gateway.shutdown().await;
}

/// A task that makes room for newer messages leaves its slot to the subagents that run in it.
#[tokio::test]
async fn a_parked_parent_leaves_its_slot_to_its_subagents() {
    let house = House::with_top("max_running = 1\n", OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(three());
    for fruit in ["apples", "pears", "plums"] {
        let counted = Script::text(format!("7 {fruit}")).held();
        house.model.enqueue_when(&format!("count {fruit}"), counted);
    }
    house.model.enqueue_when("what time", Script::text("Noon."));
    house.model.enqueue(Script::text("All counted."));
    alice.says("count the fruit").await;
    house.model.wait_for_open(3).await;
    alice.says("what time is it").await;
    let parked = "SELECT count(*) FROM open_turns WHERE parked = 1";
    house.wait_until_stored(parked, "1").await;
    // Long enough for a turn that has a slot to ask the model.
    for count in 1..=5 {
        alice.says("/whoami").await;
        alice.wait_for_sent(count).await;
    }
    assert_eq!(house.model.open_now(), 3);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.model.most_at_once(), 3);
    let mut answers = alice.texts().split_off(5);
    answers.sort();
    assert_eq!(answers, ["All counted.", "Noon."]);
    gateway.shutdown().await;
}

/// S2.16, S2.25, S2.26, S2.27, S2.28
#[tokio::test]
async fn one_that_is_not_waited_for_is_told_about_in_the_next_turn_only() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(Script::ToolCalls(vec![spawn(
        "read the news",
        json!({ "wait": false }),
    )]));
    house.model.enqueue_when(
        "read the news",
        Script::text("Nothing happened today.").held(),
    );
    house
        .model
        .enqueue_when("It has begun", Script::text("On it."));
    alice.says("keep me posted").await;
    assert_eq!(alice.wait_for_sent(1).await.text, "On it.");
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let calls = || {
        house
            .telegram
            .journal()
            .into_iter()
            .filter(|call| call.method != "getUpdates")
            .count()
    };
    let before = calls();
    house.model.release();
    gateway.settled().await;
    assert_eq!(calls(), before, "no platform hears of it");

    let line = "SELECT text FROM messages WHERE place_id = (SELECT id FROM places WHERE key = 'telegram:dm:111') AND kind = 'handoff'";
    assert_eq!(house.ask(line), "[@agent:main] finished");
    let meta: Value =
        serde_json::from_str(&house.ask(&line.replace("text", "meta_json"))).expect("JSON");
    assert_eq!(
        (&meta["task"], &meta["result"]),
        (&json!("read the news"), &json!("Nothing happened today."))
    );
    assert_eq!(
        (&meta["hop"], &meta["trace_id"], &meta["idempotency_key"]),
        (&json!(1), &json!("inbox-1"), &json!("1-0-0"))
    );
    assert_eq!(
        meta["source"],
        json!({ "agent": "main", "session": "child:1-0-0" })
    );
    assert_eq!(meta["stats"]["steps"], 1);

    house.model.enqueue_when("any news", Script::text("None."));
    alice.says("any news").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(house.model.last_request().last_text(), @"
    [@agent:main] finished

    [A task that you gave to @main is done. Nobody here has seen it yet. The task:]

    [you] read the news

    Nothing happened today.

    any news
    ");
    alice.says("and now").await;
    house.settled(&gateway).await;
    let last = house.model.last_request();
    assert!(
        !last
            .messages
            .iter()
            .any(|(_, text)| text.contains("Nobody here has seen it yet")),
        "{:?}",
        last.messages
    );
    let stored = "SELECT count(*) FROM messages WHERE place_id = (SELECT id FROM places WHERE key = 'telegram:dm:111') AND text LIKE '%Nobody here has seen%'";
    assert_eq!(house.ask(stored), "0");
    gateway.shutdown().await;
}

/// S2.16: asked to report, the parent is woken and answers where it was asked.
#[tokio::test]
async fn one_that_is_to_be_reported_wakes_its_parent() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(Script::ToolCalls(vec![spawn(
        "read the news",
        json!({ "report": true }),
    )]));
    house
        .model
        .enqueue_when("Tell the people here", Script::text("Nothing new, Alice."));
    house
        .model
        .enqueue_when("It has begun", Script::text("On it."));
    house.model.enqueue_when(
        "read the news",
        Script::text("Nothing happened today.").held(),
    );
    alice.says("tell me when you have read the news").await;
    assert_eq!(alice.wait_for_sent(1).await.text, "On it.");
    house.model.wait_for_open(1).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["On it.", "Nothing new, Alice."]);
    let told = house.model.asked_about("Tell the people here");
    insta::assert_snapshot!(told[0].last_text(), @"
    [@agent:main] finished

    [A task that you gave to @main is done. Tell the people here what came of it. The task:]

    [you] read the news

    Nothing happened today.
    ");
    assert_eq!(
        house.ask(
            "SELECT group_concat(text, '|') FROM (SELECT text FROM messages WHERE place_id = (SELECT id FROM places WHERE key = 'telegram:dm:111') ORDER BY id)"
        ),
        "tell me when you have read the news|On it.|[@agent:main] finished|Nothing new, Alice."
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM subagents WHERE seen = 0"),
        "0"
    );
    gateway.shutdown().await;
}

/// S2.42: what has ended is not done again, what has not goes on, and nothing is told twice.
#[tokio::test]
async fn a_kill_costs_no_finished_subagent() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(three());
    house
        .model
        .enqueue_when("count apples", Script::text("7 apples"));
    house
        .model
        .enqueue_when("count pears", Script::text("7 pears"));
    house
        .model
        .enqueue_when("count plums", Script::text("never seen").held());
    alice.says("count the fruit").await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM subagents WHERE state = 'finished'",
            "2",
        )
        .await;
    house.model.wait_for_requests(4).await;
    process.kill().await;
    house
        .model
        .enqueue_when("count plums", Script::text("7 plums"));
    house.model.enqueue(Script::text("All counted."));
    let process = house.spawn().await;
    alice.wait_for_sent(1).await;
    assert_eq!(alice.texts(), ["All counted."]);
    let asked = ["apples", "pears", "plums"]
        .map(|fruit| house.model.asked_about(&format!("count {fruit}")).len());
    assert_eq!(asked, [1, 1, 2]);
    assert_eq!(
        house.model.last_request().results(),
        ["7 apples", "7 pears", "7 plums"]
    );
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM open_turns", "0")
        .await;
    process.stop().await;
}

/// What a subagent has used that was over before a kill counts like what others use after it.
#[tokio::test]
async fn a_kill_takes_nothing_off_what_subagents_have_used() {
    for is_killed in [false, true] {
        let house = House::new(&format!("{OPEN}[agents.main.limits]\nmax_steps = 5\n")).await;
        let mut process = house.spawn().await;
        let alice = house.telegram.dm(ALICE);
        house.model.enqueue(three());
        house
            .model
            .enqueue_when("count apples", Script::text("7 apples"));
        house
            .model
            .enqueue_when("count pears", Script::text("7 pears"));
        house
            .model
            .enqueue_when("count plums", Script::text("7 plums").held());
        alice.says("count the fruit").await;
        house
            .wait_until_stored(
                "SELECT count(*) FROM tool_calls WHERE result IS NOT NULL",
                "2",
            )
            .await;
        house.model.wait_for_requests(4).await;
        if is_killed {
            process.kill().await;
            house
                .model
                .enqueue_when("count plums", Script::text("7 plums"));
            house.model.enqueue(Script::tool_call("now", json!({})));
            process = house.spawn().await;
        } else {
            house.model.enqueue(Script::tool_call("now", json!({})));
            house.model.release();
        }
        let told = alice.wait_for_sent(1).await.text;
        assert!(
            told.starts_with("I didn't get to an answer in "),
            "killed: {is_killed}, {told}"
        );
        house
            .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
            .await;
        process.stop().await;
    }
}

/// The round that was left for people is gone on with by the next process, with what had ended by
/// then.
#[tokio::test]
async fn a_kill_while_people_are_answered_costs_no_finished_subagent() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(three());
    house
        .model
        .enqueue_when("count apples", Script::text("7 apples"));
    house
        .model
        .enqueue_when("count pears", Script::text("never seen").held());
    house
        .model
        .enqueue_when("count plums", Script::text("never seen").held());
    house
        .model
        .enqueue_when("what time", Script::text("never seen either").held());
    alice.says("count the fruit").await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM subagents WHERE state = 'finished'",
            "1",
        )
        .await;
    house.model.wait_for_requests(4).await;
    alice.says("what time is it").await;
    house.model.wait_for_requests(5).await;
    assert_eq!(house.ask("SELECT parked FROM open_turns"), "1");
    process.kill().await;
    house
        .model
        .enqueue_when("count pears", Script::text("7 pears"));
    house
        .model
        .enqueue_when("count plums", Script::text("7 plums"));
    house.model.enqueue_when("what time", Script::text("Noon."));
    house
        .model
        .enqueue_when("7 plums", Script::text("All counted."));
    house
        .model
        .enqueue_when("what time is it", Script::text("All counted."));
    let process = house.spawn().await;
    alice.wait_for_sent(2).await;
    let mut texts = alice.texts();
    texts.sort_unstable();
    assert_eq!(texts, ["All counted.", "Noon."]);
    let asked = ["apples", "pears", "plums"]
        .map(|fruit| house.model.asked_about(&format!("count {fruit}")).len());
    assert_eq!(asked, [1, 2, 2]);
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM open_turns", "0")
        .await;
    process.stop().await;
}

/// A kill after the parent's turn is over: the run goes on by itself and is still told about.
#[tokio::test]
async fn a_kill_leaves_a_report_that_is_still_made() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(Script::ToolCalls(vec![spawn(
        "read the news",
        json!({ "report": true }),
    )]));
    house
        .model
        .enqueue_when("It has begun", Script::text("On it."));
    house
        .model
        .enqueue_when("read the news", Script::text("never seen").held());
    alice.says("tell me the news").await;
    alice.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    house.model.wait_for_requests(3).await;
    process.kill().await;
    house
        .model
        .enqueue_when("Tell the people here", Script::text("Nothing new, Alice."));
    house
        .model
        .enqueue_when("read the news", Script::text("Nothing happened today."));
    let process = house.spawn().await;
    alice.wait_for_sent(2).await;
    assert_eq!(alice.texts(), ["On it.", "Nothing new, Alice."]);
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE text = '[@agent:main] finished'"),
        "1"
    );
    process.stop().await;
}

/// A run goes on with the rights that its person has now, and not with those they had when they
/// asked.
#[tokio::test]
async fn a_run_of_somebody_who_is_no_owner_any_more_has_no_owners_tools() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(Script::ToolCalls(vec![spawn(
        "read the news",
        json!({ "report": true }),
    )]));
    house
        .model
        .enqueue_when("It has begun", Script::text("On it."));
    house
        .model
        .enqueue_when("read the news", Script::text("never seen").held());
    alice.says("tell me the news").await;
    alice.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    house.model.wait_for_requests(3).await;
    process.kill().await;
    house.configure("", "[access]\ndms = \"open\"\n");
    house
        .model
        .enqueue_when("Tell the people here", Script::text("Nothing new, Alice."));
    house
        .model
        .enqueue_when("read the news", Script::text("Nothing happened today."));
    let gateway = house.open().await;
    house.settled(&gateway).await;
    let can_write: Vec<bool> = house
        .model
        .journal()
        .iter()
        .map(|request| request.tools.contains(&"file_write".to_owned()))
        .collect();
    assert_eq!(
        can_write,
        [true, true, true, false, false],
        "the run, and the turn that tells of it"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn stop_ends_a_task_with_its_subagents() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(three());
    for fruit in ["apples", "pears", "plums"] {
        house
            .model
            .enqueue_when(&format!("count {fruit}"), Script::text("never seen").held());
    }
    alice.says("count the fruit").await;
    house.model.wait_for_open(3).await;
    alice.says("/queue").await;
    let queue = alice.wait_for_sent(1).await.text;
    assert!(
        queue.contains("A subagent has worked for 0 s on “count pears” (@main)."),
        "{queue}"
    );
    alice.says("/status").await;
    let status = alice.wait_for_sent(2).await.text;
    assert!(status.contains("count plums"), "{status}");
    alice.says("/stop").await;
    assert_eq!(alice.wait_for_sent(3).await.text, "Stopped.");
    house.model.wait_for_open(0).await;
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT group_concat(state) FROM subagents"),
        "stopped,stopped,stopped"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE kind = 'handoff' AND text LIKE '[@agent%'"),
        "0"
    );
    alice.says("hello").await;
    house.settled(&gateway).await;
    assert!(
        alice
            .texts()
            .last()
            .is_some_and(|text| text.ends_with("hello")),
        "the place goes on"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn stop_ends_a_subagent_whose_parent_has_ended() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(Script::ToolCalls(vec![spawn(
        "read the news",
        json!({ "report": true }),
    )]));
    house
        .model
        .enqueue_when("It has begun", Script::text("On it."));
    house
        .model
        .enqueue_when("read the news", Script::text("never seen").held());
    alice.says("tell me the news").await;
    alice.wait_for_sent(1).await;
    house.model.wait_for_requests(3).await;
    alice.says("/stop").await;
    assert_eq!(alice.wait_for_sent(2).await.text, "Stopped.");
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT state FROM subagents"), "stopped");
    alice.says("/stop").await;
    assert_eq!(
        alice.wait_for_sent(3).await.text,
        "Nothing is being written here."
    );
    house.close(gateway).await;
}

/// S3.7
#[tokio::test]
async fn a_subagent_that_wants_one_of_its_own_hears_why_not() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house
        .model
        .enqueue(Script::ToolCalls(vec![spawn("count apples", json!({}))]));
    house.model.enqueue_when(
        "count apples",
        Script::ToolCalls(vec![spawn("count them", json!({}))]),
    );
    alice.says("count").await;
    house.settled(&gateway).await;
    let refused = house.model.asked_about("was not run");
    assert_eq!(
        refused[0].results(),
        ["The tool `spawn` was not run: a subagent cannot start another. Go on without it."]
    );
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "1");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_turn_starts_so_many_and_no_more() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let many = (0..10)
        .map(|number| spawn(&format!("part {number}"), json!({})))
        .collect();
    house
        .model
        .enqueue_when("divide it", Script::ToolCalls(many));
    house.model.reply_when("part ", "done");
    alice.says("divide it").await;
    house.settled(&gateway).await;
    let last = house.model.last_request();
    let results = last.results();
    assert_eq!(
        results.iter().filter(|result| **result == "done").count(),
        8
    );
    insta::assert_snapshot!(results.iter().find(|result| **result != "done").expect("a refusal"), @"Nothing was started: a turn may start 8, and this one has. Do the rest yourself or in your next turn.");
    gateway.shutdown().await;
}

/// S3.6, S3.16: neither more tools than the parent, nor more than the task says.
#[tokio::test]
async fn a_subagent_has_no_tool_that_its_parent_lacks() {
    let house = House::new(
        "[access]\nowners = [\"telegram:111\"]\n[agents.main]\ntools = { deny = [\"web_fetch\"] }\n[agents.ada]\n\
         [peer_groups.desk]\nmembers = [\"main\", \"ada\"]\n",
    )
    .await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let tools = json!({ "agent": "ada", "tools": ["now", "web_fetch", "file_read"] });
    house
        .model
        .enqueue(Script::ToolCalls(vec![spawn("look it up", tools)]));
    house.model.enqueue_when(
        "look it up",
        Script::tool_call("web_fetch", json!({ "url": "https://example.org" })),
    );
    alice.says("ask ada").await;
    house.settled(&gateway).await;
    let adas = house.model.asked_about("look it up");
    assert!(
        adas[0].system.starts_with("You are Ada"),
        "{}",
        adas[0].system
    );
    assert_eq!(adas[0].tools, ["now", "file_read"]);
    insta::assert_snapshot!(house.model.asked_about("was not run")[0].results()[0], @"The tool `web_fetch` was not run: the agent you work for may not use it: the agent's `tools.deny` names it. Go on without it.");
    gateway.shutdown().await;
}

/// S3.16
#[tokio::test]
async fn what_subagents_spend_counts_against_their_parent() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.answer_with(|request| {
        if request.last_text().contains("do your part") {
            return Script::text("done");
        }
        Script::ToolCalls(vec![spawn("do your part", json!({}))])
    });
    alice.says("go on for ever").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        ["I didn't get to an answer in 40 steps, so I stopped. A smaller question may help."]
    );
    let steps = "SELECT group_concat(steps) FROM (SELECT steps FROM turns WHERE place_id = (SELECT id FROM places WHERE key = 'telegram:dm:111'))";
    assert_eq!(house.ask(steps), "32", "eight of forty were its subagents'");
    gateway.shutdown().await;
}

/// S2.29, S3.27
#[tokio::test]
async fn what_a_subagent_does_is_logged_with_its_parent() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house
        .model
        .enqueue(Script::ToolCalls(vec![spawn("count apples", json!({}))]));
    house.model.enqueue_when(
        "count apples",
        Script::ToolCalls(vec![spawn("count them", json!({}))]),
    );
    alice.says("count").await;
    alice.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let log = process.log();
    let refusal = log
        .lines()
        .find(|line| line.contains("refused: a subagent cannot start another"))
        .expect("it is logged");
    for field in [
        "[main]",
        "parent=main",
        "parent.session=telegram:dm:111",
        "run=1-0-0",
    ] {
        assert!(refusal.contains(field), "{field} in {refusal}");
    }
    process.stop().await;
}

/// S6.3
#[tokio::test]
async fn the_announcement_has_status_files_label_and_tags() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let tags: Vec<String> = (0..20).map(|number| format!("tag {number}")).collect();
    let long = "a very long label ".repeat(20);
    house.model.enqueue(Script::ToolCalls(vec![
        spawn(
            "write the report",
            json!({ "wait": false, "label": " The\nreport ", "tags": ["weekly", " "] }),
        ),
        spawn(
            "fail at it",
            json!({ "wait": false, "label": long, "tags": tags }),
        ),
    ]));
    let write = |path: &str| {
        (
            "file_write".to_owned(),
            json!({ "path": path, "content": "x" }),
        )
    };
    house.model.enqueue_when(
        "write the report",
        Script::ToolCalls(vec![
            write("out/report.md"),
            write("out/report.md"),
            write("../x"),
        ]),
    );
    house
        .model
        .enqueue_when("Wrote 1 bytes", Script::text("It is written."));
    house
        .model
        .enqueue_when("fail at it", Script::status(400, "no"));
    house
        .model
        .enqueue_when("It has begun", Script::text("On it."));
    alice.says("go").await;
    house.settled(&gateway).await;
    let meta = |task: &str| -> Value {
        let sql = format!(
            "SELECT meta_json FROM messages WHERE kind = 'handoff' AND meta_json LIKE '%{task}%'"
        );
        serde_json::from_str(&house.ask(&sql)).expect("JSON")
    };
    let written = meta("write the report");
    assert_eq!(
        (
            &written["status"],
            &written["artifacts"],
            &written["label"],
            &written["tags"]
        ),
        (
            &json!("finished"),
            &json!(["out/report.md"]),
            &json!("The report"),
            &json!(["weekly"])
        )
    );
    let failed = meta("fail at it");
    assert_eq!(
        (&failed["status"], &failed["artifacts"]),
        (&json!("failed"), &json!([]))
    );
    assert_eq!(failed["label"].as_str().map(str::len), Some(80));
    assert_eq!(failed["tags"].as_array().map(Vec::len), Some(8));
    house.close(gateway).await;
}

/// S6.5: an end that nobody asked about in a week is not told any more.
#[tokio::test]
async fn an_old_announcement_is_not_told() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    for (days, is_told) in [(6, true), (8, false)] {
        house.model.enqueue(Script::ToolCalls(vec![spawn(
            "read the news",
            json!({ "wait": false }),
        )]));
        house
            .model
            .enqueue_when("read the news", Script::text("Nothing happened."));
        house
            .model
            .enqueue_when("It has begun", Script::text("On it."));
        alice.says("/new").await;
        alice.says("keep me posted").await;
        house.settled(&gateway).await;
        house.tell(&format!(
            "UPDATE subagents SET ended_at = ended_at - {days} * 24 * 60 * 60 * 1000 WHERE seen = 0"
        ));
        alice.says("any news").await;
        house.settled(&gateway).await;
        let told = house
            .model
            .last_request()
            .last_text()
            .contains("Nobody here has seen it yet");
        assert_eq!(told, is_told, "after {days} days");
    }
    house.close(gateway).await;
}
