//! Turns at a time: jobs of the config, of people and of operators, heartbeats and hooks.

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};
use crate::webhook::free_address;

/// Alice owns the house, and Rose has a topic. `jobs` are hers.
fn with_jobs(jobs: &str) -> String {
    format!(
        "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n\
         [agents.main]\n[agents.rose]\nname = \"Rose\"\n{jobs}\n\
         [[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"rose\"\n"
    )
}

/// A job of every hour, which is not due while a test runs.
fn hourly(name: &str) -> String {
    let minute = (chrono::Timelike::minute(&chrono::Utc::now()) + 30) % 60;
    format!(
        "[[agents.rose.jobs]]\nname = \"{name}\"\ncron = \"{minute} * * * *\"\ntime_zone = \"UTC\"\nprompt = \"Plan the day.\"\n\
         place = \"telegram:topic:-1001:5\"\n"
    )
}

/// A moment so many seconds from now, as a config has it.
fn soon(seconds: i64) -> String {
    let at = chrono::Utc::now() + chrono::TimeDelta::seconds(seconds);
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn once(seconds: i64, more: &str) -> String {
    let at = soon(seconds);
    format!(
        "[[agents.rose.jobs]]\nname = \"plan\"\nat = \"{at}\"\nprompt = \"Plan the day.\"\nplace = \"telegram:topic:-1001:5\"\n{more}\n"
    )
}

async fn fine(home: &Path, arguments: &[&str]) -> String {
    let ran = run(home, arguments).await;
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

async fn in_json(home: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"][..]].concat();
    serde_json::from_str(&fine(home, &arguments).await).expect("JSON")
}

const STATES: &str = "SELECT coalesce(group_concat(state), '') FROM job_runs";
const JOB_ROWS: &str = "SELECT count(*) FROM inbox WHERE update_id LIKE 'job-%'";

/// S1.60, S4.26: the job has the identity of its agent, and its answer goes to its topic.
#[tokio::test]
async fn a_job_runs_at_its_time_as_its_agent_and_answers_in_its_place() {
    let house = House::new(&with_jobs(&once(5, ""))).await;
    house.model.answer_with(|_| Script::text("First tea."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    assert_eq!(topic.wait_for_sent(1).await.text, "First tea.");
    let asked = house.model.last_request();
    assert!(asked.system.starts_with("You are Rose"), "{}", asked.system);
    assert!(
        asked.last_text().contains("Plan the day."),
        "{}",
        asked.last_text()
    );
    assert!(asked.has("This is your job"), "nobody has written");
    assert!(
        !asked.tools.contains(&"schedule".to_owned()),
        "a job makes no jobs"
    );
    house.wait_until_stored(STATES, "done").await;
    let session = "SELECT group_concat(kind) FROM messages JOIN places ON places.id = place_id WHERE key = 'cron:rose:plan'";
    assert_eq!(house.ask(session), "person,agent");
    // The conversation in the topic knows nothing of it.
    topic.says(ALICE, "hi").await;
    house.settled(&gateway).await;
    assert!(!house.model.last_request().has("First tea."));
    house.close(gateway).await;
}

#[tokio::test]
async fn a_job_in_the_conversation_of_its_place_can_be_answered() {
    let house = House::new(&with_jobs(&once(5, "context = \"place\""))).await;
    house.model.answer_with(|_| Script::text("Tea or coffee?"));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    topic.wait_for_sent(1).await;
    house.wait_until_stored(STATES, "done").await;
    topic.says(ALICE, "Tea.").await;
    house.settled(&gateway).await;
    assert!(house.model.last_request().has("Tea or coffee?"));
    house.close(gateway).await;
}

/// The gateway was off for ten hours: what is stored is older than it was.
fn off_for_ten_hours(house: &House) {
    house.tell("UPDATE jobs SET handled_upto = handled_upto - 36000000");
}

#[tokio::test]
async fn missed_runs_are_skipped_or_made_up_for_once_and_never_come_in_a_burst() {
    let both = format!("{}{}missed = \"once\"\n", hourly("plan"), hourly("tidy"));
    let house = House::new(&with_jobs(&both)).await;
    house.model.answer_with(|_| Script::text("Late."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    house
        .wait_until_stored("SELECT count(*) FROM jobs", "2")
        .await;
    house.close(gateway).await;
    off_for_ten_hours(&house);
    let gateway = house.open().await;
    topic.wait_for_sent(1).await;
    let rows = "SELECT group_concat(name || ' ' || state || ' ' || missed || ' ' || coalesce(reason, ''), ' | ' ORDER BY name) FROM job_runs JOIN jobs ON jobs.id = job_id";
    house
        .wait_until_stored(
            rows,
            "plan skipped 9 missed while the gateway was off | tidy done 9 late: the gateway was off",
        )
        .await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Late."]);
    house.close(gateway).await;
}

/// SIGKILL while the model answers: the slot is taken, and its turn goes on after the start.
#[tokio::test]
async fn a_kill_in_the_middle_of_a_run_gives_one_answer() {
    let house = House::new(&with_jobs(&once(5, "missed = \"once\""))).await;
    house.model.answer_with(|_| Script::text("First tea."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.hold();
    let process = house.spawn().await;
    house.model.wait_for_open(1).await;
    process.kill().await;
    house.model.release();
    let process = house.spawn().await;
    assert_eq!(topic.wait_for_sent(1).await.text, "First tea.");
    house.wait_until_stored(STATES, "done").await;
    assert_eq!(house.ask(JOB_ROWS), "1");
    assert_eq!(process.stop().await, 0);
    let process = house.spawn().await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(
        (topic.texts().len(), house.ask(JOB_ROWS)),
        (1, "1".to_owned())
    );
}

/// The clock went back: the slot comes a second time, and its row keeps it from a second run.
#[tokio::test]
async fn a_slot_that_comes_again_is_not_run_again() {
    let house = House::new(&with_jobs(&once(5, "missed = \"once\""))).await;
    house.model.answer_with(|_| Script::text("First tea."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    topic.wait_for_sent(1).await;
    house.wait_until_stored(STATES, "done").await;
    house.close(gateway).await;
    house.tell("UPDATE jobs SET handled_upto = 0");
    let gateway = house.open().await;
    house
        .wait_until_stored("SELECT count(*) FROM jobs WHERE handled_upto = 0", "0")
        .await;
    house.close(gateway).await;
    assert_eq!(
        (topic.texts().len(), house.ask(JOB_ROWS)),
        (1, "1".to_owned())
    );
}

#[tokio::test]
async fn a_job_that_fails_again_and_again_is_paused_and_its_owner_told_once() {
    let house = House::new(&with_jobs(&hourly("plan"))).await;
    house.model.answer_with(|_| Script::status(400, "no"));
    let (topic, alice) = (
        house.telegram.forum(-1001).topic(5, "Five"),
        house.telegram.dm(ALICE),
    );
    let process = house.spawn().await;
    let home = house.home.path();
    for times in 1..=5 {
        fine(home, &["job", "run", "rose/plan"]).await;
        house
            .wait_until_stored(
                "SELECT count(*) FROM job_runs WHERE state = 'failed'",
                &times.to_string(),
            )
            .await;
    }
    let told = alice.wait_for_sent(1).await.text;
    assert!(
        told.starts_with("I have paused the job plan of Rose: it failed 5 times in a row"),
        "{told}"
    );
    let shown = in_json(home, &["job", "show", "plan"]).await;
    assert_eq!(
        (&shown["paused"], shown["runs"].as_array().map(Vec::len)),
        (&json!(true), Some(5))
    );
    assert_eq!(topic.texts().len(), 0, "nobody there has asked");
    house.model.answer_with(|_| Script::text("Fine."));
    fine(home, &["job", "resume", "plan"]).await;
    fine(home, &["job", "run", "plan"]).await;
    assert_eq!(topic.wait_for_sent(1).await.text, "Fine.");
    assert_eq!(alice.texts().len(), 1);
    assert_eq!(process.stop().await, 0);
}

/// A deleted topic: the answer cannot be sent, and the job does not try for ever.
#[tokio::test]
async fn a_job_whose_place_is_lost_is_paused() {
    let minute = hourly("plan")
        .lines()
        .find(|line| line.starts_with("cron"))
        .unwrap()
        .to_owned();
    let often = hourly("plan").replace(&minute, "every = \"10s\"");
    let mut house = House::new(&with_jobs(&often)).await;
    house.leave_leftovers();
    house.model.answer_with(|_| Script::text("Tea."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house
        .telegram
        .fail("sendMessage", Fault::ThreadNotFound)
        .once();
    let gateway = house.open().await;
    let paused = "SELECT coalesce(max(paused_why), '') FROM jobs";
    house
        .wait_until_stored(paused, "its answers cannot be sent: the topic is gone")
        .await;
    assert_eq!(topic.texts().len(), 0);
    assert_eq!(
        house.ask("SELECT group_concat(state) FROM job_runs"),
        "undelivered,skipped"
    );
    house.close(gateway).await;
}

/// The people of a chat have jobs made, in their own words.
#[tokio::test]
async fn a_person_has_a_reminder_made_and_is_reminded() {
    let house = House::new(&with_jobs("")).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let add =
        json!({ "action": "add", "task": "Remind Alice of the tea.", "name": "tea", "in": "3s" });
    house.model.enqueue(Script::tool_call("schedule", add));
    house.model.enqueue(Script::text("I will."));
    alice.says("remind me of the tea").await;
    let sent = alice.wait_for_sent(2).await;
    assert_eq!(sent.text, "I will.");
    assert!(
        alice.texts()[0].starts_with("⏰ The job tea is set for "),
        "{:?}",
        alice.texts()
    );
    alice.says("/jobs").await;
    house.model.reply_when("Remind Alice of the tea.", "Tea!");
    assert!(
        alice.wait_for_sent(3).await.text.contains("tea"),
        "{:?}",
        alice.texts()
    );
    assert_eq!(alice.wait_for_sent(4).await.text, "Tea!");
    house
        .wait_until_stored("SELECT count(*) FROM jobs WHERE ended_at IS NOT NULL", "1")
        .await;
    alice.says("/jobs").await;
    assert!(
        alice.wait_for_sent(5).await.text.contains("no jobs here"),
        "{:?}",
        alice.texts()
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn jobs_of_people_have_limits() {
    let house = House::new(&with_jobs("")).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let ask = |arguments: Value| {
        house
            .model
            .enqueue(Script::tool_call("schedule", arguments));
        house.model.enqueue(Script::text("Done."));
    };
    let refusals = [
        (
            json!({ "action": "add", "task": "x", "every": "1m" }),
            "more often than every 15m",
        ),
        (
            json!({ "action": "add", "task": "x", "cron": "* * * * *" }),
            "more often than every 15m",
        ),
        (
            json!({ "action": "add", "task": "x", "at": "2020-01-01 10:00" }),
            "that time is over",
        ),
        (
            json!({ "action": "add", "task": "x" }),
            "say exactly one of",
        ),
        (
            json!({ "action": "add", "task": "x", "every": "1h", "time_zone": "Mars" }),
            "no time zone is called",
        ),
        (
            json!({ "action": "remove", "name": "nothing" }),
            "no job of this person",
        ),
    ];
    for (number, (arguments, expected)) in refusals.into_iter().enumerate() {
        ask(arguments);
        alice.says("please").await;
        alice.wait_for_sent(number + 1).await;
        let results = house.model.last_request();
        assert!(results.has(expected), "{expected}: {:?}", results.results());
    }
    assert_eq!(house.ask("SELECT count(*) FROM jobs"), "0");
    house.close(gateway).await;
}

/// A job of somebody who is no longer a member stops and says so.
#[tokio::test]
async fn a_job_of_a_person_who_lost_their_rights_is_paused() {
    let house = House::new(&with_jobs(
        "[people.bob]\nids = [\"telegram:222\"]\nrole = \"member\"\n",
    ))
    .await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    let add = json!({ "action": "add", "task": "Tea.", "name": "tea", "in": "3s" });
    house.model.enqueue(Script::tool_call("schedule", add));
    house.model.enqueue(Script::text("I will."));
    bob.says("remind me of the tea").await;
    bob.wait_for_sent(2).await;
    house.configure("", &with_jobs(""));
    gateway.reload("a test").await;
    let told = alice.wait_for_sent(1).await.text;
    assert!(
        told.contains("the person who made it is no longer a member"),
        "{told}"
    );
    assert_eq!(bob.texts().len(), 2);
    house.close(gateway).await;
}

#[tokio::test]
async fn a_heartbeat_without_news_sends_nothing() {
    let heartbeat = "[agents.rose.heartbeat]\nevery = \"1h\"\nplace = \"telegram:topic:-1001:5\"\n";
    let house = House::new(&with_jobs(heartbeat)).await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    let refused = run(&home, &["job", "run", "rose/heartbeat"]).await;
    assert!(
        refused.stderr.contains("HEARTBEAT.md is not there"),
        "{}",
        refused.stderr
    );
    house.write("agents/rose/HEARTBEAT.md", "# List\n");
    let refused = run(&home, &["job", "run", "rose/heartbeat"]).await;
    assert!(
        refused.stderr.contains("HEARTBEAT.md is empty"),
        "{}",
        refused.stderr
    );
    house.write("agents/rose/HEARTBEAT.md", "# List\n- the mail\n");
    house.model.enqueue(Script::text("NOTHING"));
    fine(&home, &["job", "run", "rose/heartbeat"]).await;
    house
        .wait_until_stored("SELECT count(*) FROM job_runs WHERE state = 'nothing'", "1")
        .await;
    assert!(house.model.last_request().has("- the mail"));
    assert_eq!(topic.texts().len(), 0);
    house.model.enqueue(Script::text("The mail is full."));
    fine(&home, &["job", "run", "rose/heartbeat"]).await;
    assert_eq!(topic.wait_for_sent(1).await.text, "The mail is full.");
    house.close(gateway).await;
}

/// A job that comes once is kept over the pause; nothing is dropped in silence.
#[tokio::test]
async fn a_job_that_comes_once_waits_for_the_end_of_a_pause() {
    let house = House::new(&with_jobs(&once(5, ""))).await;
    house.model.answer_with(|_| Script::text("First tea."));
    let home = house.home.path().to_owned();
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    alice.says("/pause background").await;
    let told = alice.wait_for_sent(1).await.text;
    assert!(told.contains("the one job of the house rests"), "{told}");
    house
        .wait_until_stored(
            "SELECT coalesce(max(state || ' ' || reason), '') FROM job_runs",
            "queued waits: background work is paused",
        )
        .await;
    assert_eq!(topic.texts().len(), 0);
    let listed = in_json(&home, &["job", "list"]).await;
    assert_eq!(
        listed[0]["last"]["reason"],
        "waits: background work is paused"
    );
    alice.says("/resume background").await;
    assert_eq!(topic.wait_for_sent(1).await.text, "First tea.");
    house
        .wait_until_stored(
            "SELECT coalesce(max(state || ' ' || reason), '') FROM job_runs",
            "done late: it waited: background work is paused",
        )
        .await;
    house.close(gateway).await;
}

/// The words at the command line name the jobs too.
#[tokio::test]
async fn a_pause_at_the_command_line_says_how_many_jobs_rest() {
    let jobs = hourly("plan") + &hourly("tea");
    let house = House::new(&with_jobs(&jobs)).await;
    let home = house.home.path().to_owned();
    let told = fine(&home, &["pause", "background"]).await;
    assert!(told.contains("and the 2 jobs of the house rest"), "{told}");
}

/// Jobs are added, changed and removed while the gateway runs.
#[tokio::test]
async fn operators_add_list_pause_and_remove_jobs() {
    let house = House::new(&with_jobs(&hourly("plan"))).await;
    house.model.answer_with(|_| Script::text("Done."));
    let home = house.home.path().to_owned();
    fine(&home, &["job", "add", "tea", "Make tea.", "--every", "1h"]).await;
    let listed = in_json(&home, &["job", "list"]).await;
    let names = |listed: &Value| -> Vec<String> {
        let jobs = listed.as_array().into_iter().flatten();
        jobs.map(|job| {
            format!(
                "{}/{}",
                job["agent"]["id"].as_str().unwrap(),
                job["name"].as_str().unwrap()
            )
        })
        .collect()
    };
    // S1.60: without an agent, the default one.
    assert_eq!(names(&listed), ["main/tea", "rose/plan"]);
    let process = house.spawn().await;
    fine(&home, &["job", "run", "tea"]).await;
    house.wait_until_stored(STATES, "done").await;
    fine(&home, &["job", "pause", "main/tea"]).await;
    assert_eq!(
        in_json(&home, &["job", "show", "tea"]).await["paused"],
        json!(true)
    );
    let twice = run(&home, &["job", "pause", "tea"]).await;
    assert!(twice.stderr.contains("paused already"), "{}", twice.stderr);
    fine(&home, &["job", "remove", "tea"]).await;
    let config = run(&home, &["job", "remove", "plan"]).await;
    assert!(config.stderr.contains("config.toml"), "{}", config.stderr);
    assert_eq!(
        names(&in_json(&home, &["job", "list"]).await),
        ["rose/plan"]
    );
    let audit = "SELECT group_concat(action) FROM (SELECT action FROM audit WHERE action LIKE 'job%' ORDER BY id)";
    assert_eq!(house.ask(audit), "job add,job run,job pause,job remove");
    assert_eq!(process.stop().await, 0);
}

/// A renamed agent keeps its jobs and their conversations; a removed one has them again when it is
/// back.
#[tokio::test]
async fn jobs_go_with_their_agent() {
    let house = House::new(&with_jobs(&hourly("plan"))).await;
    house.model.answer_with(|_| Script::text("Done."));
    let home = house.home.path().to_owned();
    let process = house.spawn().await;
    fine(
        &home,
        &[
            "job",
            "add",
            "tea",
            "Make tea.",
            "--every",
            "1h",
            "--agent",
            "rose",
        ],
    )
    .await;
    fine(&home, &["job", "run", "rose/tea"]).await;
    house.wait_until_stored(STATES, "done").await;
    fine(&home, &["agent", "rename", "rose", "lily"]).await;
    let keys = "SELECT group_concat(key) FROM places WHERE key LIKE 'cron:%'";
    assert_eq!(house.ask(keys), "cron:lily:tea");
    fine(&home, &["job", "run", "lily/tea"]).await;
    house.wait_until_stored(STATES, "done,done").await;
    fine(&home, &["agent", "remove", "lily"]).await;
    assert_eq!(in_json(&home, &["job", "list"]).await, json!([]));
    fine(&home, &["agent", "restore", "lily"]).await;
    assert_eq!(
        in_json(&home, &["job", "list"])
            .await
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(process.stop().await, 0);
}

/// A saved config counts at once: the new job runs, the old one is gone.
#[tokio::test]
async fn a_saved_config_changes_jobs() {
    let house = House::new(&with_jobs(&hourly("plan"))).await;
    house.model.answer_with(|_| Script::text("Now."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let gateway = house.open().await;
    house
        .wait_until_stored("SELECT count(*) FROM jobs", "1")
        .await;
    house.configure("", &with_jobs(&once(5, "").replace("\"plan\"", "\"tidy\"")));
    gateway.reload("a test").await;
    assert_eq!(topic.wait_for_sent(1).await.text, "Now.");
    let names = "SELECT group_concat(name) FROM jobs WHERE ended_at IS NULL";
    assert_eq!(house.ask(names), "tidy");
    house.close(gateway).await;
}

#[tokio::test]
async fn a_job_answers_in_a_thread_of_discord() {
    let job = format!(
        "[[agents.main.jobs]]\nname = \"plan\"\nat = \"{}\"\nprompt = \"Plan.\"\nplace = \"discord:channel:8101\"\n\
         [[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n",
        soon(6)
    );
    let (house, discord, guild) = House::with_garden("", &with_jobs(&job)).await;
    house.model.answer_with(|_| Script::text("First tea."));
    guild.text_channel(8101, "plans");
    let gateway = house.open_with(&discord).await;
    assert_eq!(discord.wait_for_sent_in(8101, 1).await.text, "First tea.");
    house.wait_until_stored(STATES, "done").await;
    house.close(gateway).await;
}

async fn post(address: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the listener is there");
    let call = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    );
    stream
        .write_all(call.as_bytes())
        .await
        .expect("the call is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("a status"), body.to_owned())
}

#[tokio::test]
async fn a_hook_is_a_turn_written_down_before_its_caller_is_told() {
    let address = free_address();
    let hook = format!(
        "[admin]\nlisten = \"{address}\"\n\
         [hooks.builds]\nprompt = \"A build ended: {{{{body.status}}}}\"\ntoken = {{ file = \"secrets/hook\" }}\nagent = \"rose\"\n\
         place = \"telegram:topic:-1001:5\"\nper_minute = 4\nmax_kb = 1\n"
    );
    let house = House::new(&with_jobs(&hook)).await;
    house.write("secrets/hook", "a-token-of-the-builds");
    house
        .model
        .answer_with(|_| Script::text("The build is red."));
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let process = house.spawn().await;
    process
        .wait_for_log(&format!("the admin listener is on {address}"))
        .await;
    let (path, token) = (
        "/hooks/builds",
        "Authorization: Bearer a-token-of-the-builds\r\n",
    );
    let body = r#"{"status":"red"}"#;
    assert_eq!(post(&address, path, "", body).await.0, 401);
    assert_eq!(
        post(&address, path, "Authorization: Bearer x\r\n", body)
            .await
            .0,
        401
    );
    assert_eq!(post(&address, "/hooks/others", token, body).await.0, 401);
    assert_eq!(post(&address, path, token, &"x".repeat(2_000)).await.0, 413);
    let key = format!("{token}Idempotency-Key: 7\r\n");
    assert_eq!(post(&address, path, &key, body).await.0, 202);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE update_id = 'hook-builds-7'"),
        "1"
    );
    assert_eq!(post(&address, path, &key, body).await.0, 200);
    assert_eq!(topic.wait_for_sent(1).await.text, "The build is red.");
    let asked = house.model.last_request();
    assert!(asked.has("A build ended: red") && asked.system.starts_with("You are Rose"));
    for _ in 0..2 {
        assert_eq!(post(&address, path, &key, body).await.0, 200);
    }
    assert_eq!(post(&address, path, &key, body).await.0, 429);
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    assert_eq!(topic.texts().len(), 1);
    assert_eq!(process.stop().await, 0);
}
