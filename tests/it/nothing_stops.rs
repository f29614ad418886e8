//! A statement that can never work costs the one message it belongs to. The next message there and
//! everybody else's are answered, also after a restart with the fault still there.

use parlor::commands::SPECS;
use parlor::gateway::Gateway;
use serde_json::json;

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_discord as discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault, Place};

const TEAM: &str = r#"models = ["big"]
[access]
owners = ["telegram:111", "discord:111"]
dms = "open"
groups = "open"
require_mention = true
[agents.main]
[agents.rose]
[peer_groups.desk]
members = ["main", "rose"]
"#;

/// A house with a running gateway, and Alice in her private chat.
struct Scene {
    house: House,
    gateway: Option<Gateway>,
    here: Place,
    questions: usize,
}

impl Scene {
    async fn new() -> Self {
        let mut house = House::new(TEAM).await;
        // A row that cannot be written in the end may stay behind.
        house.leave_leftovers();
        let (here, gateway) = (house.telegram.dm(ALICE).place().clone(), house.open().await);
        Scene {
            house,
            gateway: Some(gateway),
            here,
            questions: 0,
        }
    }

    /// A scene in which a statement can never work.
    async fn breaking(statement: &str) -> Self {
        let scene = Scene::new().await;
        scene.house.breaks(statement);
        scene
    }

    async fn says(&self, text: &str) {
        self.here.says(ALICE, text).await;
    }

    /// Waits until this text was sent or put into a message here.
    async fn sees(&self, text: &str) {
        let here = &self.here;
        here.wait_for(&format!("a text with {text:?}"), |texts| {
            texts.iter().any(|known| known.contains(text))
        })
        .await;
    }

    /// Waits for the next apology here, and looks up its row.
    async fn is_told(&self) -> String {
        let told = "so it gets no answer";
        self.sees(told).await;
        let texts = self.here.texts();
        let apology = texts
            .iter()
            .rfind(|text| text.contains(told))
            .expect("it was just there");
        let reference = apology
            .split_once("(ref ")
            .and_then(|(_, rest)| rest.split_once(')'))
            .expect("it has a reference")
            .0;
        reference.to_owned()
    }

    /// The message with this reference is closed, and its row says the same.
    fn is_closed(&self, reference: &str) {
        let row = self.house.ask(&format!(
            "SELECT state || ' ' || outcome FROM inbox WHERE id = {reference}"
        ));
        assert!(
            row.starts_with(&format!("failed ref {reference}: ")),
            "{row}"
        );
    }

    /// Alice here and Bob elsewhere are answered.
    async fn both_are_answered(&mut self) {
        self.questions += 1;
        let question = format!("question {}", self.questions);
        let bob = self.house.telegram.dm(BOB);
        bob.says(&question).await;
        bob.place()
            .wait_for("Bob's answer", |texts| {
                texts.contains(&format!("re: {question}"))
            })
            .await;
        self.here.says(ALICE, &question).await;
        // A question without an answer may stand before it.
        self.here
            .wait_for("Alice's answer", |texts| {
                texts
                    .iter()
                    .any(|text| text.starts_with("re: ") && text.ends_with(&question))
            })
            .await;
    }

    async fn restarts(&mut self) {
        let gateway = self.gateway.take().expect("it runs");
        gateway.shutdown().await;
        self.gateway = Some(self.house.open().await);
    }

    /// The house goes on, before and after a restart.
    async fn goes_on(&mut self) {
        self.both_are_answered().await;
        self.restarts().await;
        self.both_are_answered().await;
    }

    async fn ends(mut self) {
        let gateway = self.gateway.take().expect("it runs");
        self.house.settled(&gateway).await;
        gateway.shutdown().await;
    }

    /// Alice is told about her message, its row is closed, and the house goes on.
    async fn costs_one_message(mut self) {
        let reference = self.is_told().await;
        self.is_closed(&reference);
        self.goes_on().await;
        self.ends().await;
    }
}

/// The reply of a command that changes nothing.
const REPLY: &str = "INSERT ON outbox WHEN NEW.kind = 'command'";

/// A line that uses the command, and its statement that breaks. What the command needs is put into
/// the store first.
fn broken_command(house: &House, name: &str) -> (&'static str, &'static str) {
    match name {
        "agent" => ("/agent rose", "INSERT ON pins"),
        "model" => ("/model fake/big", "INSERT ON model_overrides"),
        "new" => {
            // As a package brought it: the next number is none any more.
            house.tell("UPDATE places SET conversation = 9223372036854775807 WHERE key = 'telegram:dm:111'");
            ("/new", "DELETE ON keys")
        }
        "stop" => {
            house.model.hold();
            (
                "/stop",
                "INSERT ON decisions WHEN NEW.what = 'stopped on request'",
            )
        }
        "remember" => ("/remember tea at four", "INSERT ON memories"),
        "forget" => {
            house.tell(
                "INSERT INTO memories (agent_uid, visibility, source, text, created_at)
                 SELECT uid, 'private', 'saved', 'tea at four', 0 FROM agents WHERE slug = 'main'",
            );
            ("/forget 1 yes", "DELETE ON memories")
        }
        "retry" => {
            let place = house.place_id("telegram:dm:111");
            house.tell(&format!(
                "INSERT INTO outbox (place_id, kind, part, state, error, created_at)
                 VALUES ({place}, 'final', '{{\"text\":\"late\",\"entities\":[]}}', 'failed', 'gone', 0)"
            ));
            ("/retry", "UPDATE ON outbox WHEN OLD.state = 'failed'")
        }
        "deliver" => ("/deliver off", "INSERT ON delivery_off"),
        "pair" => {
            house.tell(
                "INSERT INTO people (id, name, code, code_until, created_at)
                 VALUES ('telegram:333', 'Carol', 'ABCD2345', unixepoch() * 1000 + 1800000, unixepoch() * 1000)",
            );
            ("/pair ABCD2345 yes", "UPDATE ON people")
        }
        "unpair" => {
            house.tell(
                "INSERT INTO people (id, name, paired_at, paired_by, created_at)
                 VALUES ('telegram:444', 'Dan', 1, 'cli', 1)",
            );
            ("/unpair telegram:444", "DELETE ON people")
        }
        "agents" => ("/agents", REPLY),
        "models" => ("/models", REPLY),
        "whoami" => ("/whoami", REPLY),
        "queue" => ("/queue", REPLY),
        "status" => ("/status", REPLY),
        "usage" => ("/usage", REPLY),
        "skills" => ("/skills", REPLY),
        "memory" => ("/memory", REPLY),
        "help" => ("/help", REPLY),
        "reload" => ("/reload", REPLY),
        "bind" => ("/bind rose", REPLY),
        "unbind" => ("/unbind", REPLY),
        "audit" => ("/audit", REPLY),
        "doctor" => ("/doctor", REPLY),
        "jobs" => ("/jobs", REPLY),
        "approvals" => ("/approvals", REPLY),
        "approve" | "refuse" => {
            let place = house.place_id("telegram:dm:111");
            let id = if name == "approve" { 1 } else { 2 };
            house.tell(&format!(
                "INSERT INTO approvals (id, inbox_id, round, number, place_id, agent_uid, tool, arguments, hash, why, labels,
                                        person, person_name, role, least, asked_at, expires_at)
                 SELECT {id}, 999, 0, 0, {place}, uid, 'now', '', '', '', 0, 'telegram:111', 'Alice', 'owner', 'owner', 0, 9000000000000
                 FROM agents WHERE slug = 'main'"
            ));
            let line = if id == 1 { "/approve 1" } else { "/refuse 2" };
            (line, "UPDATE ON approvals")
        }
        "trace" => ("/trace", REPLY),
        "dashboard" => ("/dashboard", REPLY),
        "people" => ("/people role telegram:444 admin", "INSERT ON person_roles"),
        "allow" => ("/allow main 7 tokens today", REPLY),
        "pause" => ("/pause background", "INSERT ON pauses"),
        "resume" => {
            house.tell("INSERT INTO pauses (what, set_by, set_at) VALUES ('background', 'cli', 1)");
            ("/resume background", "DELETE ON pauses")
        }
        other => panic!("/{other} needs a line here: what of it can break?"),
    }
}

#[tokio::test]
async fn a_command_that_can_never_be_carried_out_costs_only_itself() {
    let mut scene = Scene::new().await;
    scene.both_are_answered().await;
    for spec in SPECS {
        let (line, statement) = broken_command(&scene.house, spec.name);
        if spec.name == "stop" {
            scene.says("take your time").await;
            scene.house.model.wait_for_open(1).await;
        }
        scene.house.breaks(statement);
        let before = scene.here.texts().len();
        scene.says(line).await;
        let told = scene.here.wait_for_sent(before + 1).await.text;
        assert!(
            told.starts_with("Something broke with this message (ref "),
            "{line}: {told}"
        );
        let reference = scene.is_told().await;
        scene.is_closed(&reference);
        scene.house.model.release();
        scene.goes_on().await;
        scene.house.works_again();
        scene.house.tell("UPDATE places SET conversation = 1");
        scene
            .house
            .tell("DELETE FROM outbox WHERE state = 'failed'");
    }
    insta::assert_snapshot!(
        scene.here.texts().iter().find(|text| text.contains("broke")).expect("one did"),
        @"Something broke with this message (ref 3), so it gets no answer. Please send it again; if that breaks too, tell the operator the reference."
    );
    scene.ends().await;
}

/// Not even the row itself can be closed: it is taken up by every start, and holds up nobody.
#[tokio::test]
async fn a_command_whose_row_can_never_be_closed_costs_only_itself() {
    let mut scene = Scene::breaking("UPDATE ON inbox WHEN OLD.payload LIKE '%\"text\":\"/%'").await;
    for spec in SPECS {
        let before = scene.here.texts().len();
        scene.says(&format!("/{}", spec.name)).await;
        scene.here.wait_for_sent(before + 1).await;
    }
    let waiting = "SELECT count(*) FROM inbox WHERE state = 'waiting'";
    scene
        .house
        .wait_until_stored(waiting, &SPECS.len().to_string())
        .await;
    scene.both_are_answered().await;
    scene.restarts().await;
    scene.both_are_answered().await;
    assert_eq!(scene.house.ask(waiting), SPECS.len().to_string());
    scene.house.works_again();
    scene.restarts().await;
    scene.house.wait_until_stored(waiting, "0").await;
    scene.ends().await;
}

/// What a message of a turn does to the store, from its first row to its last.
#[tokio::test]
async fn a_turn_whose_end_can_never_be_written_costs_only_itself() {
    for statement in [
        // The answer.
        "INSERT ON messages WHEN NEW.text = 're: poison'",
        // The question, which the apology's transaction writes as well.
        "INSERT ON messages WHEN NEW.text = 'poison'",
        "INSERT ON turns WHEN NEW.inbox_id = 1",
        "INSERT ON spending WHEN (SELECT count(*) FROM inbox) = 1",
        "INSERT ON outbox WHEN NEW.part LIKE '%\"re: poison\"%'",
        "UPDATE ON inbox WHEN OLD.id = 1 AND NEW.state = 'done'",
    ] {
        let scene = Scene::breaking(statement).await;
        scene.says("poison").await;
        scene.costs_one_message().await;
    }
}

#[tokio::test]
async fn a_round_that_can_never_be_written_costs_only_its_turn() {
    for statement in [
        "INSERT ON open_turns",
        "INSERT ON rounds",
        "INSERT ON tool_calls",
        "UPDATE ON tool_calls",
        "INSERT ON budgets WHEN EXISTS (SELECT 1 FROM open_turns)",
    ] {
        let scene = Scene::breaking(statement).await;
        scene
            .house
            .model
            .enqueue_when("what time", Script::tool_call("now", json!({})));
        scene.says("what time is it").await;
        scene.costs_one_message().await;
    }
}

#[tokio::test]
async fn a_turn_that_can_never_be_parked_costs_only_itself() {
    let scene = Scene::breaking("UPDATE ON open_turns").await;
    scene
        .house
        .model
        .enqueue(Script::tool_call("now", json!({})).held());
    scene.says("write the report").await;
    scene.house.model.wait_for_open(1).await;
    scene.says("which colour is it").await;
    scene.house.telegram.all_confirmed().await;
    scene.house.all_in_their_lanes().await;
    scene.house.model.release();
    scene.sees("which colour is it").await;
    scene.costs_one_message().await;
}

/// What cannot be read is the trouble of the place it belongs to.
#[tokio::test]
async fn a_turn_that_can_never_be_prepared_costs_only_itself() {
    let poison = "CAST(x'ff' AS TEXT)";
    for row in [
        format!(
            "INSERT INTO messages (place_id, conversation, kind, text, created_at) VALUES (:place, 1, 'person', {poison}, 0)"
        ),
        format!(
            "INSERT INTO model_overrides (place_id, model, set_by, set_at) VALUES (:place, {poison}, 'x', 0)"
        ),
    ] {
        let mut scene = Scene::new().await;
        let topic = scene.house.telegram.forum(-1001).topic(7, "Seven");
        let place = scene.house.place_id("telegram:topic:-1001:7");
        scene.house.tell(&row.replace(":place", &place.to_string()));
        topic.says(ALICE, "@parlor_bot hello").await;
        topic
            .wait_for("an apology", |texts| {
                texts
                    .iter()
                    .any(|text| text.starts_with("Something broke with this message (ref 1)"))
            })
            .await;
        scene.is_closed("1");
        scene.goes_on().await;
        scene.ends().await;
    }
}

/// Not even the row of the message can be closed.
#[tokio::test]
async fn a_turn_whose_row_can_never_be_closed_is_told_and_left_to_the_next_start() {
    let mut scene = Scene::breaking("UPDATE ON inbox WHEN OLD.id = 1").await;
    scene.says("poison").await;
    scene.is_told().await;
    scene.goes_on().await;
    let waiting = "SELECT state FROM inbox WHERE id = 1";
    assert_eq!(scene.house.ask(waiting), "waiting");
    scene.house.works_again();
    scene.restarts().await;
    scene.house.wait_until_stored(waiting, "done").await;
    scene.sees("re: poison").await;
    scene.ends().await;
}

#[tokio::test]
async fn a_subagent_that_can_never_be_begun_costs_only_its_turn() {
    for tool in [
        Script::tool_call("spawn", json!({ "task": "count apples" })),
        Script::tool_call(
            "agent_send",
            json!({ "agent": "rose", "text": "count apples" }),
        ),
    ] {
        let scene = Scene::breaking("INSERT ON subagents").await;
        scene.house.model.enqueue_when("have them counted", tool);
        scene.says("have them counted").await;
        scene.costs_one_message().await;
    }
}

/// The turn that waits is told, and answers.
#[tokio::test]
async fn a_subagent_whose_end_can_never_be_written_keeps_nobody_waiting() {
    for statement in [
        "INSERT ON messages WHEN NEW.text LIKE '%count apples%'",
        "UPDATE OF state ON subagents",
        "UPDATE ON inbox WHEN OLD.platform = 'internal'",
    ] {
        for tool in [
            Script::tool_call("spawn", json!({ "task": "count apples" })),
            Script::tool_call(
                "agent_send",
                json!({ "agent": "rose", "text": "count apples" }),
            ),
        ] {
            let mut scene = Scene::breaking(statement).await;
            scene.house.model.enqueue_when("have them counted", tool);
            scene
                .house
                .model
                .enqueue_when("count apples", Script::text("Seven."));
            scene.house.model.enqueue_when(
                "came to no result",
                Script::text("Nobody could count them."),
            );
            scene.says("have them counted").await;
            scene.sees("Nobody could count them.").await;
            scene.goes_on().await;
            scene.ends().await;
        }
    }
}

#[tokio::test]
async fn a_note_that_can_never_be_kept_costs_only_itself() {
    let mut scene = Scene::breaking(
        "INSERT ON messages WHEN NEW.around LIKE '%edited%' OR NEW.around LIKE '%reaction%'",
    )
    .await;
    let asked = scene.here.says(ALICE, "frist").await;
    let answer = scene.here.wait_for_sent(1).await;
    scene
        .house
        .settled(scene.gateway.as_ref().expect("it runs"))
        .await;
    scene.here.edits(asked.message_id, "first").await;
    scene.here.reacts(ALICE, answer.message_id, "👍").await;
    let failed = "SELECT count(*) FROM inbox WHERE state = 'failed' AND outcome LIKE 'ref %'";
    scene.house.wait_until_stored(failed, "2").await;
    scene.goes_on().await;
    assert!(
        !scene.here.texts().iter().any(|text| text.contains("broke")),
        "nobody waits for an answer to these"
    );
    scene.ends().await;
}

#[tokio::test]
async fn an_edit_that_can_never_replace_its_message_costs_only_itself() {
    let mut scene =
        Scene::breaking("UPDATE OF payload ON inbox WHEN NEW.payload LIKE '%second%'").await;
    scene
        .house
        .model
        .enqueue_when("first", Script::text("done").held());
    scene.says("first").await;
    let second = scene.here.says(ALICE, "secnd").await;
    scene.house.model.wait_for_open(1).await;
    scene.house.all_in_their_lanes().await;
    scene.here.edits(second.message_id, "second").await;
    let failed = "SELECT count(*) FROM inbox WHERE state = 'failed' AND outcome LIKE 'ref %'";
    scene.house.wait_until_stored(failed, "1").await;
    scene.house.model.release();
    scene.goes_on().await;
    scene.ends().await;
}

#[tokio::test]
async fn talk_that_can_never_be_kept_costs_only_itself() {
    let mut scene = Scene::breaking("UPDATE OF observed ON messages").await;
    let group = scene.house.telegram.forum(-1001).topic(7, "Seven");
    group.says(BOB, "just talking").await;
    let failed = "SELECT count(*) FROM inbox WHERE state = 'failed' AND outcome LIKE 'ref %'";
    scene.house.wait_until_stored(failed, "1").await;
    group.says(BOB, "@parlor_bot are you there").await;
    group.wait_for("an answer", |texts| texts.len() == 1).await;
    assert!(group.texts()[0].starts_with("re: "), "{:?}", group.texts());
    scene.goes_on().await;
    scene.ends().await;
}

#[tokio::test]
async fn a_message_that_can_never_be_stored_costs_only_itself() {
    // The second of them cannot even be noted as failed.
    for (statement, reference) in [
        ("INSERT ON inbox WHEN NEW.payload LIKE '%poison%'", "1"),
        (
            "INSERT ON inbox WHEN NEW.update_id LIKE '%:10001%'",
            "10001",
        ),
    ] {
        let mut scene = Scene::breaking(statement).await;
        scene.says("poison").await;
        let told = scene.is_told().await;
        assert!(told.contains(reference), "{told}");
        scene.goes_on().await;
        scene.ends().await;
    }
}

/// Messages that come in one go with it are stored, each once.
#[tokio::test]
async fn a_message_that_can_never_be_stored_takes_no_other_of_its_batch_along() {
    let mut scene = Scene::breaking("INSERT ON inbox WHEN NEW.payload LIKE '%poison%'").await;
    let polling = scene.house.telegram.hold("getUpdates");
    let bob = scene.house.telegram.dm(BOB);
    bob.says("one").await;
    scene.says("poison").await;
    bob.says("two").await;
    polling.release();
    scene.is_told().await;
    bob.place()
        .wait_for("both answers", |texts| {
            texts.contains(&"re: one".to_owned()) && texts.iter().any(|text| text.ends_with("two"))
        })
        .await;
    assert_eq!(scene.house.ask("SELECT count(*) FROM inbox"), "3");
    scene.goes_on().await;
    scene.ends().await;
}

#[tokio::test]
async fn a_move_that_can_never_be_stored_costs_only_itself_and_is_told_to_the_owners() {
    let mut scene = Scene::breaking("INSERT ON chat_aliases").await;
    let group = scene.house.telegram.group(-5);
    group.says(BOB, "@parlor_bot hello").await;
    group.wait_for_sent(1).await;
    let new = group.migrates_to(-1005).await;
    scene.sees("could not be taken along").await;
    new.says(BOB, "@parlor_bot still there").await;
    new.wait_for("an answer", |texts| {
        texts.iter().any(|text| text.ends_with("still there"))
    })
    .await;
    scene.goes_on().await;
    insta::assert_snapshot!(
        scene.here.texts()[0],
        @"The group telegram:group:-5 is now the supergroup telegram:group:-1005, but its conversations could not be taken along; the log says why. Bind telegram:group:-1005 in config.toml to go on there with a fresh conversation."
    );
    scene.ends().await;
}

#[tokio::test]
async fn a_file_that_can_never_be_noted_costs_only_its_message() {
    for statement in [
        "INSERT ON messages WHEN NEW.around LIKE '%saved as%'",
        "INSERT ON outbox WHEN NEW.file IS NOT NULL",
    ] {
        let scene = Scene::breaking(statement).await;
        scene.house.telegram.keeps_file("f", b"abc");
        scene.house.write("agents/main/workspace/a.txt", "abc");
        scene.house.model.enqueue_when(
            "plan",
            Script::tool_call("file_send", json!({ "path": "a.txt" })),
        );
        scene
            .here
            .says(ALICE, "")
            .without("text")
            .with("caption", json!("the plan"))
            .with(
                "document",
                json!({ "file_id": "f", "file_unique_id": "f", "file_name": "a.txt", "file_size": 3 }),
            )
            .await;
        scene.costs_one_message().await;
    }
}

/// A row that was sent and cannot be marked so is not sent again, not even after a restart.
#[tokio::test]
async fn an_answer_whose_state_can_never_be_written_holds_up_nothing() {
    for (statement, sent) in [
        // Sent by the same transaction that writes it; then it is the turn that fails.
        (
            "UPDATE ON outbox WHEN NEW.state = 'sent' AND OLD.part LIKE '%\"re: poison\"%'",
            1,
        ),
        (
            "UPDATE ON outbox WHEN OLD.state = 'sending' AND OLD.part LIKE '%\"re: poison\"%'",
            1,
        ),
    ] {
        let mut scene = Scene::breaking(statement).await;
        // The store never learns that the answer was sent.
        scene.house.give_up(Promise::SentOnce);
        scene.says("poison").await;
        scene.sees("re: poison").await;
        scene.goes_on().await;
        let answers = scene
            .here
            .texts()
            .iter()
            .filter(|text| *text == "re: poison")
            .count();
        assert_eq!(answers, sent, "{statement}");
        scene.ends().await;
    }
}

/// The reply to a command waits in the outbox like any row; nothing about it can be written.
#[tokio::test]
async fn a_row_of_the_outbox_that_can_never_change_holds_up_nothing() {
    for (statement, state, told) in [
        (
            "UPDATE ON outbox WHEN NEW.state = 'sending' AND OLD.kind = 'command'",
            "failed",
            true,
        ),
        (
            "UPDATE ON outbox WHEN OLD.kind = 'command'",
            "waiting",
            false,
        ),
    ] {
        let mut scene = Scene::breaking(statement).await;
        scene.says("/whoami").await;
        scene.goes_on().await;
        let row = "SELECT state FROM outbox WHERE kind = 'command'";
        assert_eq!(scene.house.ask(row), state);
        let notice = "it was not sent, because its state could not be stored";
        let texts = scene.here.texts();
        assert_eq!(texts.iter().any(|text| text.contains(notice)), told);
        scene.ends().await;
    }
}

/// An answer left in the middle of its call cannot be reopened by the next start.
#[tokio::test]
async fn a_row_that_can_never_be_reopened_does_not_keep_the_next_start_from_going_on() {
    let mut scene = Scene::new().await;
    let place = scene.house.place_id("telegram:dm:111");
    scene.house.tell(&format!(
        "INSERT INTO outbox (place_id, kind, part, state, created_at)
         VALUES ({place}, 'final', '{{\"text\":\"half\",\"entities\":[]}}', 'sending', 0)"
    ));
    scene.house.breaks("UPDATE ON outbox WHEN OLD.id = 1");
    scene.restarts().await;
    scene.goes_on().await;
    assert!(!scene.here.texts().contains(&"half".to_owned()));
    scene.ends().await;
}

/// Rows that the start looks at before anything else.
#[tokio::test]
async fn a_start_goes_on_over_rows_that_can_never_be_read_or_changed() {
    let mut scene = Scene::new().await;
    let gateway = scene.gateway.take().expect("it runs");
    gateway.shutdown().await;
    let place = scene.house.place_id("telegram:dm:222");
    let house = &scene.house;
    house.tell("INSERT INTO inbox (platform, update_id, state, payload, received_at) VALUES ('telegram', 'x', 'waiting', CAST(x'ff' AS TEXT), 0)");
    house.tell(&format!(
        "INSERT INTO open_turns (inbox_id, place_id, agent_uid, members, question, read_upto, started_at)
         SELECT 1, {place}, uid, 'no list', 'what', 0, 0 FROM agents WHERE slug = 'main'"
    ));
    house.tell(&format!(
        "INSERT INTO subagents (run, relation, place_id, inbox_id, agent_uid, parent_place_id, parent_inbox_id, parent_uid, person, role, task,
                                max_steps, on_finish, hop, trace, started_at)
         SELECT '9-0-0', 'subagent', {place}, 99, uid, {place}, 98, uid, 'telegram:222', 'guest', 'x', 1, 'wait', 1, 't', 0
         FROM agents WHERE slug = 'main'"
    ));
    house.breaks("UPDATE ON subagents");
    scene.gateway = Some(scene.house.open().await);
    scene.goes_on().await;
    assert_eq!(
        scene.house.ask("SELECT outcome FROM inbox WHERE id = 1"),
        "unreadable"
    );
    scene.ends().await;
}

/// Full for a while: everything waits, nothing is lost, and nothing is told twice.
#[tokio::test]
async fn a_store_that_is_full_for_a_while_loses_nothing() {
    for statement in [
        "INSERT ON inbox",
        "INSERT ON turns",
        "INSERT ON messages",
        "UPDATE ON outbox",
    ] {
        let mut scene = Scene::new().await;
        scene.house.fills_up(statement);
        scene.says("hello").await;
        scene.house.telegram.dm(BOB).says("hi").await;
        // Longer than the tries of a statement that can never work.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(
            scene
                .house
                .ask("SELECT count(*) FROM inbox WHERE state = 'failed'"),
            "0"
        );
        scene.house.works_again();
        scene.sees("re: hello").await;
        scene.both_are_answered().await;
        assert_eq!(
            scene
                .here
                .texts()
                .iter()
                .filter(|text| text.contains("hello"))
                .count(),
            1,
            "{statement}"
        );
        scene.ends().await;
    }
}

/// A send that learns of a move asks for it to be followed, which never works.
#[tokio::test]
async fn a_send_into_a_group_that_moved_without_us_holds_up_nobody() {
    let mut scene = Scene::breaking("INSERT ON chat_aliases").await;
    let group = scene.house.telegram.group(-5);
    scene
        .house
        .telegram
        .fail("sendMessage", Fault::MigratedTo(-1005))
        .only_in(-5)
        .once();
    group.says(BOB, "@parlor_bot hello").await;
    scene.house.telegram.wait_for_calls("sendMessage", 1).await;
    scene.goes_on().await;
    scene.ends().await;
}

/// Words that people took back stay stored, which the operator reads in the log; and the other
/// deletions of the same event are carried out.
#[tokio::test]
async fn a_deletion_that_can_never_be_carried_out_costs_only_itself() {
    let open = TEAM.replace("require_mention = true", "require_mention = false");
    let mut house = House::new(&open).await;
    house.leave_leftovers();
    let discord = house.add_discord("").await;
    let thread = discord
        .guild(8001, "Garden")
        .text_channel(8101, "general")
        .thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    let mut said = Vec::new();
    for (count, text) in (1..).zip(["poison", "slip"]) {
        said.push(thread.says(discord::BOB, text).await.message_id);
        thread.wait_for_sent(count).await;
    }
    gateway.settled().await;
    house.breaks("UPDATE OF text ON messages WHEN OLD.text LIKE '%poison%'");
    thread.deletes_all(&said).await;
    house
        .wait_until_stored("SELECT count(*) FROM messages WHERE deleted_at > 0", "1")
        .await;
    thread.says(discord::BOB, "and now").await;
    thread.wait_for_sent(3).await;
    gateway.shutdown().await;
    let gateway = house.open_with(&discord).await;
    thread.says(discord::BOB, "and then").await;
    thread.wait_for_sent(4).await;
    gateway.shutdown().await;
}
