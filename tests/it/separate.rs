//! `switch = "separate"`: in a place that several agents answer in, each reads only the part it
//! took part in.

use insta::assert_snapshot;
use parlor::gateway::Gateway;
use serde_json::json;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB, Place};

const TOP: &str = "switch = \"separate\"";
const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
groups = "open"
require_mention = false
[agents.rose]
[agents.ada]
"#;

struct Room {
    house: House,
    gateway: Gateway,
    place: Place,
}

impl Room {
    async fn new(team: &str) -> Self {
        let house = House::with_top(TOP, team).await;
        // Nothing of what is asked is in an answer.
        house
            .model
            .answer_with(|request| Script::text(format!("{} answers.", name_of(request))));
        let gateway = house.open().await;
        let place = house.telegram.forum(-1001).topic(5, "A room");
        Room {
            house,
            gateway,
            place,
        }
    }

    async fn says(&self, text: &str) {
        self.place.says(ALICE, text).await;
        self.house.settled(&self.gateway).await;
    }

    /// What the model was last asked, and as whom.
    fn heard(&self) -> String {
        let request = self.house.model.last_request();
        let lines = request
            .messages
            .iter()
            .map(|(role, text)| format!("{role}: {text}"));
        std::iter::once(name_of(&request))
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n---\n")
    }

    async fn restart(self, top: &str, team: &str) -> Self {
        let Room {
            house,
            gateway,
            place,
        } = self;
        house.close(gateway).await;
        house.configure(top, team);
        let gateway = house.open().await;
        Room {
            house,
            gateway,
            place,
        }
    }

    async fn end(self) {
        self.house.settled(&self.gateway).await;
        self.gateway.shutdown().await;
    }
}

fn name_of(request: &Request) -> String {
    let first = request.system.lines().next().unwrap_or_default();
    first
        .trim_start_matches("You are ")
        .split(" (")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// S1.26: by /agent, for one message, and back again. No agent reads the marks, and the transcript
/// has them all.
#[tokio::test]
async fn each_agent_finds_its_own_part_again() {
    let room = Room::new(TEAM).await;
    room.says("keep the milk in mind").await;
    room.says("/agent rose").await;
    room.says("a poem about the sea").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] a poem about the sea
    ");
    room.says("/agent ada once").await;
    room.says("compile the kernel").await;
    assert_snapshot!(room.heard(), @"
    Ada
    ---
    user: [Alice] compile the kernel
    ");
    room.says("one more verse").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] a poem about the sea
    ---
    assistant: Rose answers.
    ---
    user: [Alice] one more verse
    ");
    room.says("/agent reset").await;
    room.says("what was it").await;
    assert_snapshot!(room.heard(), @"
    Main
    ---
    user: [Alice] keep the milk in mind
    ---
    assistant: Main answers.
    ---
    user: [Alice] what was it
    ");
    let marks = "SELECT group_concat(text, char(10)) FROM (SELECT text FROM messages WHERE kind = 'handoff' ORDER BY id)";
    assert_snapshot!(room.house.ask(marks), @"
    from main to rose
    from rose to ada
    from rose to main
    ");
    room.end().await;
}

/// A binding that changes and an agent that goes switch a place too.
#[tokio::test]
async fn a_changed_binding_and_a_dropped_pin_hand_nothing_over() {
    let room = Room::new(TEAM).await;
    room.says("keep the milk in mind").await;
    let bound = "[[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"rose\"\n";
    let room = room.restart(TOP, &format!("{TEAM}{bound}")).await;
    room.says("a poem about the sea").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] a poem about the sea
    ");
    room.says("/agent ada").await;
    room.says("compile the kernel").await;
    let room = room
        .restart(
            TOP,
            &format!("{}{bound}", TEAM.replace("[agents.ada]\n", "")),
        )
        .await;
    room.says("one more verse").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] a poem about the sea
    ---
    assistant: Rose answers.
    ---
    user: [Alice] one more verse
    ");
    // The whole of it is still there for a house that hands over.
    let room = room.restart("", TEAM).await;
    room.says("and now").await;
    let heard = room.heard();
    for said in [
        "keep the milk",
        "the sea",
        "[@ada] Ada answers.",
        "[@rose] Rose answers.",
    ] {
        assert!(heard.contains(said), "{said}: {heard}");
    }
    room.end().await;
}

/// What people say among themselves is heard by the agent that the place belongs to then.
#[tokio::test]
async fn talk_among_people_is_of_the_part_of_whoever_was_there() {
    let room = Room::new(&TEAM.replace("require_mention = false", "require_mention = true")).await;
    room.place.says(BOB, "the harbour is closed").await;
    room.says("/agent rose").await;
    room.place.says(BOB, "I like lilacs").await;
    room.house.settled(&room.gateway).await;
    room.says("@parlor_bot what do you think").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Bob] I like lilacs

    [Alice] what do you think
    ");
    room.says("/agent reset").await;
    room.says("@parlor_bot and you").await;
    assert_snapshot!(room.heard(), @"
    Main
    ---
    user: [Bob] the harbour is closed

    [Alice] and you
    ");
    room.end().await;
}

/// Talk that waits behind an answer is still of the agent that had the place when people talked.
#[tokio::test]
async fn talk_that_waits_keeps_its_hearer() {
    let room = Room::new(&TEAM.replace("require_mention = false", "require_mention = true")).await;
    room.house.model.hold();
    room.place.says(ALICE, "@parlor_bot think").await;
    room.house.model.wait_for_open(1).await;
    room.place.says(BOB, "the harbour is closed").await;
    let arrived = "SELECT count(*) FROM inbox WHERE payload LIKE '%harbour%' AND state = 'waiting'";
    room.house.wait_until_stored(arrived, "1").await;
    room.place.says(ALICE, "/agent rose").await;
    let switched = "SELECT count(*) FROM pins";
    room.house.wait_until_stored(switched, "1").await;
    room.house.model.release();
    room.house.settled(&room.gateway).await;
    room.says("@parlor_bot what do you think").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] what do you think
    ");
    room.says("/agent reset").await;
    room.says("@parlor_bot and you").await;
    let heard = room.heard();
    assert!(heard.contains("[Bob] the harbour is closed"), "{heard}");
    room.end().await;
}

/// An edit and a reaction are about something that one agent knows, whoever answers by then.
#[tokio::test]
async fn edits_and_reactions_belong_to_what_they_are_about() {
    let room = Room::new(TEAM).await;
    room.house.model.enqueue(Script::text("Quicksilver it is."));
    let asked = room.place.says(ALICE, "meet at eigth").await;
    let answer = room.place.wait_for_sent(1).await;
    room.house.settled(&room.gateway).await;
    room.says("/agent rose").await;
    room.place.edits(asked.message_id, "meet at eight").await;
    room.place.reacts(BOB, answer.message_id, "👍").await;
    room.house.settled(&room.gateway).await;
    room.says("a poem").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] a poem
    ");
    room.says("/agent reset").await;
    room.says("when").await;
    assert_snapshot!(room.heard(), @"
    Main
    ---
    user: [Alice] meet at eigth
    ---
    assistant: Quicksilver it is.
    ---
    user: [Alice] [edited] meet at eight

    [Bob] [reacted 👍 to “Quicksilver it is.”]

    [Alice] when
    ");
    room.end().await;
}

/// S2.16: what came of a subagent is told to the agent that wanted it, and only to that one.
#[tokio::test]
async fn the_end_of_a_run_is_told_to_who_wanted_it() {
    let room = Room::new(TEAM).await;
    let spawn = (
        "spawn".to_owned(),
        json!({ "task": "count the lamps", "wait": false }),
    );
    room.house
        .model
        .enqueue_when("watch the lamps", Script::ToolCalls(vec![spawn]));
    room.house
        .model
        .enqueue_when("count the lamps", Script::text("Seven lamps."));
    room.says("watch the lamps").await;
    assert_eq!(
        room.place.texts(),
        ["Main answers."],
        "the end of the subagent is said to nobody"
    );
    room.says("/agent rose").await;
    room.says("a poem").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] a poem
    ");
    room.says("/agent reset").await;
    room.says("any news").await;
    let heard = room.heard();
    assert!(
        heard.contains("[@agent:main] finished") && heard.contains("Seven lamps."),
        "{heard}"
    );
    room.end().await;
}

/// /new ends the part of everyone, and /status counts that of the agent that answers.
#[tokio::test]
async fn new_ends_everyones_part_and_status_counts_one() {
    let room = Room::new(TEAM).await;
    room.says("keep the milk in mind").await;
    room.says("/agent rose").await;
    room.says("a poem").await;
    room.says("another").await;
    room.says("/status").await;
    let status = room.place.texts().pop().expect("a status");
    assert!(
        status.contains("This conversation has 4 messages"),
        "{status}"
    );
    room.says("/new").await;
    room.says("hello").await;
    assert_snapshot!(room.heard(), @"
    Rose
    ---
    user: [Alice] hello
    ");
    room.says("/agent reset").await;
    room.says("hello to you").await;
    assert_snapshot!(room.heard(), @"
    Main
    ---
    user: [Alice] hello to you
    ");
    room.end().await;
}

/// S4.27: a package has what the agent took part in.
#[tokio::test]
async fn an_exported_agent_takes_along_its_own_part() {
    let room = Room::new(TEAM).await;
    room.says("keep the milk in mind").await;
    room.says("/agent rose").await;
    room.says("a poem about the sea").await;
    let Room { house, gateway, .. } = room;
    house.close(gateway).await;
    let package = house.home.path().join("rose.tar.gz");
    let path = package.to_str().expect("a path");
    let exported = run(
        house.home.path(),
        &["agent", "export", "rose", "--output", path],
    )
    .await;
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let other = crate::cli::fresh_home().await;
    let removed = run(other.path(), &["agent", "remove", "rose"]).await;
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    let imported = run(other.path(), &["agent", "import", path]).await;
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let said = "SELECT group_concat(text || (part_uid IS (SELECT uid FROM agents WHERE slug = 'rose')), '|') FROM messages";
    assert_eq!(
        crate::support::house::ask(other.path(), said),
        "a poem about the sea1|Rose answers.1"
    );
}

/// A task that was put aside and whose agent is gone is asked anew, because its successor was never
/// shown the question.
#[tokio::test]
async fn a_task_of_an_agent_that_is_gone_is_asked_anew() {
    let bound = "[[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"ada\"\n";
    let house = House::with_top(TOP, &format!("{TEAM}{bound}")).await;
    let process = house.spawn().await;
    let place = house.telegram.forum(-1001).topic(5, "A room");
    house.model.enqueue_when(
        "count the vaults",
        Script::tool_call("now", json!({})).held(),
    );
    house
        .model
        .enqueue_when("which colour", Script::text("never seen").held());
    place.says(ALICE, "count the vaults").await;
    house.model.wait_for_open(1).await;
    place.says(ALICE, "which colour").await;
    house.all_in_their_lanes().await;
    house.model.release();
    house
        .wait_until_stored("SELECT count(*) FROM open_turns WHERE parked = 1", "1")
        .await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    house.configure(TOP, &TEAM.replace("[agents.ada]\n", ""));
    house
        .model
        .answer_with(|request| Script::text(format!("{} answers.", name_of(request))));
    let gateway = house.open().await;
    house.settled(&gateway).await;
    let room = Room {
        house,
        gateway,
        place,
    };
    room.says("and now").await;
    assert_snapshot!(room.heard(), @"
    Main
    ---
    user: [Alice] count the vaults
    ---
    assistant: Main answers.
    ---
    user: [Alice] which colour
    ---
    assistant: Main answers.
    ---
    user: [Alice] and now
    ");
    room.end().await;
}

/// Of another's part, too much said there is no reason to wait.
#[tokio::test]
async fn nobody_waits_for_the_summary_of_anothers_part() {
    let house = House::with_top(TOP, &format!("context_tokens = 3000\n{TEAM}")).await;
    let is_summary = |request: &Request| request.last_text().contains("[Sum all of this up");
    house
        .model
        .answer_with(move |request| match is_summary(request) {
            true => Script::text("They talked.").held(),
            false => Script::text("much to say about that. ".repeat(30)),
        });
    let gateway = house.open().await;
    let place = house.telegram.forum(-1001).topic(5, "A room");
    let mut answers = 0;
    while !house.model.journal().iter().any(is_summary) {
        answers += 1;
        assert!(answers < 20, "it was never summed up");
        place
            .says(
                ALICE,
                &format!("question {answers}, {}", "with many words ".repeat(10)),
            )
            .await;
        place.wait_for_sent(answers).await;
        house
            .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
            .await;
    }
    place.says(ALICE, "/agent rose").await;
    place
        .says(
            ALICE,
            &format!("a long story: {}", "with many words ".repeat(300)),
        )
        .await;
    place.wait_for_sent(answers + 2).await;
    for (more, text) in [(3, "and now"), (4, "and then")] {
        place.says(ALICE, text).await;
        place.wait_for_sent(answers + more).await;
    }
    // Rose's part is long by now too, and is summed up beside the other.
    house.model.wait_for_open(2).await;
    let journal = house.model.journal();
    let summing: Vec<&Request> = journal
        .iter()
        .filter(|request| is_summary(request))
        .collect();
    assert!(
        summing[0].system.starts_with("You are Main")
            && summing[1].system.starts_with("You are Rose")
    );
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM summaries"), "2");
    gateway.shutdown().await;
}
