//! Verbs of the command line with and without a running gateway, and the socket between them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use parlor::home::Home;
use serde_json::{Value, json};

use crate::cli::{Ran, run};
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, Fault};
use crate::support::house::Process;

const TOPIC: &str = "telegram:topic:-1001:5";

/// Alice owns the house, and Rose has a topic.
const TEAM: &str = "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\n\
     [agents.main]\n[agents.rose]\nname = \"Rose\"\n[agents.ada]\nname = \"Ada\"\n\
     [[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"rose\"\n";

/// A house in which Rose has answered once, and remembers something.
async fn lived_in() -> House {
    let house = House::new(TEAM).await;
    house.model.answer_with(|_| Script::text("Yes."));
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(ALICE, "hi").await;
    house.close(gateway).await;
    fine(
        house.home.path(),
        &["remember", "-a", "rose", "Tea at four"],
    )
    .await;
    house
}

async fn fine(home: &Path, arguments: &[&str]) -> String {
    let ran = run(home, arguments).await;
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

/// Names of archives have the time in them.
fn timeless(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        words.push(match word.find("-2") {
            Some(at) if digits >= 14 => format!("{}-TIME", &word[..at]),
            _ => word.to_owned(),
        });
    }
    words.join(" ")
}

/// Every verb that changes something, each with the state that the ones before have left.
const VERBS: &[&[&str]] = &[
    &["agent", "add", "dot", "--name", "Dot"],
    &["agent", "add", "dot"],
    &["agent", "add", "odd", "--model", "nobody/x"],
    &["agent", "clone", "dot", "spot"],
    &["agent", "default", "dot"],
    &["agent", "default", "dot"],
    &["agent", "remove", "dot"],
    &["agent", "default", "main"],
    &["agent", "rename", "rose", "lily"],
    &["agent", "rename", "rose", "tulip"],
    &["agent", "remove", "spot"],
    &["agent", "restore", "spot", "--as", "spot2"],
    &["agent", "remove", "spot2"],
    &["agent", "purge", "spot2", "--yes"],
    &["agent", "purge", "spot2", "--yes"],
    &["agent", "import", "PACKAGE", "--as", "poppy"],
    &["agent", "import", "nothing"],
    &["pin", TOPIC, "ada"],
    &["pin", TOPIC, "ada"],
    &["pin", TOPIC, "nobody"],
    &["pin", TOPIC, "--reset"],
    &["pin", TOPIC, "--reset"],
    &["new", TOPIC],
    &["new", "telegram:topic:-1009:9"],
    &["stop"],
    &["stop", TOPIC],
    &["queue"],
    &["queue", "--clear", "--all"],
    &["forget", "-a", "lily", "99"],
    &["forget", "-a", "lily", "1"],
    &["failed", "drop", "all"],
    &["failed", "retry"],
];

#[tokio::test]
async fn every_verb_does_the_same_with_and_without_a_gateway() {
    let (without, with) = (lived_in().await, lived_in().await);
    let gateway = with.open().await;
    let package = |house: &House| house.home.path().join("ada.tar.gz").display().to_string();
    for house in [&without, &with] {
        let file = package(house);
        fine(house.home.path(), &["agent", "export", "ada", "-o", &file]).await;
    }
    for verb in VERBS {
        let mut ran: Vec<(i32, String, String)> = Vec::new();
        for house in [&without, &with] {
            let file = package(house);
            let words = verb.iter().map(|word| {
                if *word == "PACKAGE" {
                    file.as_str()
                } else {
                    word
                }
            });
            let words: Vec<&str> = words.collect();
            let Ran {
                code,
                stdout,
                stderr,
            } = run(house.home.path(), &words).await;
            let errors = if code == 0 { String::new() } else { stderr };
            ran.push((code, timeless(&stdout), timeless(&errors)));
        }
        assert_eq!(ran[0], ran[1], "{verb:?}");
        let configs = [&without, &with].map(|house| {
            let text = fs::read_to_string(house.home.path().join("config.toml")).expect("reads");
            let urls = text.lines().filter(|line| !line.contains("_url"));
            urls.collect::<Vec<_>>().join("\n")
        });
        assert_eq!(configs[0], configs[1], "{verb:?}");
        let audit = "SELECT group_concat(action || coalesce(agent, '') || coalesce(after, ''), ',') FROM audit WHERE actor = 'cli'";
        assert_eq!(without.ask(audit), with.ask(audit), "{verb:?}");
    }
    with.close(gateway).await;
}

/// The gateway needs no second look: the next message is answered by the change.
#[tokio::test]
async fn a_running_gateway_uses_a_change_at_once() {
    let house = lived_in().await;
    // A purged agent takes its turns and answers along.
    house.give_up(Promise::AnsweredOnce);
    house.give_up(Promise::SentOnce);
    let home = house.home.path();
    let gateway = house.open().await;
    house.model.answer_with(|request| {
        let name = ["Rose", "Ada", "Dot", "Main"]
            .into_iter()
            .find(|name| request.system.starts_with(&format!("You are {name}")));
        Script::text(name.unwrap_or("Nobody"))
    });
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let said = async |words: &[&str]| {
        fine(home, words).await;
        topic.says(ALICE, "who?").await;
        house.settled(&gateway).await;
        topic.texts().pop().expect("an answer")
    };
    assert_eq!(said(&["agent", "rename", "rose", "lily"]).await, "Rose");
    assert_eq!(said(&["pin", TOPIC, "ada"]).await, "Ada");
    assert_eq!(said(&["pin", TOPIC, "--reset"]).await, "Rose");
    fine(home, &["agent", "add", "dot", "--name", "Dot"]).await;
    assert_eq!(said(&["pin", TOPIC, "dot"]).await, "Dot");
    assert_eq!(
        said(&["agent", "rename", "dot", "spot"]).await,
        "Dot",
        "its pin follows"
    );
    assert_eq!(
        said(&["agent", "remove", "spot"]).await,
        "Rose",
        "its pin counts no more"
    );
    assert_eq!(
        said(&["agent", "restore", "spot"]).await,
        "Dot",
        "and counts again"
    );
    assert_eq!(said(&["agent", "purge", "spot", "--yes"]).await, "Rose");
    house.close(gateway).await;
}

#[tokio::test]
async fn an_agent_removed_during_its_turn_stops_and_says_so() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (topic, desk) = (forum.topic(5, "Five"), house.telegram.dm(ALICE));
    house.model.hold();
    topic.says(ALICE, "a long one").await;
    desk.says("another long one").await;
    house.model.wait_for_open(2).await;
    fine(house.home.path(), &["agent", "remove", "rose"]).await;
    house.model.wait_for_disconnect().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_snapshot!(topic.texts().join("\n"), @"Rose is no longer here, so this answer was stopped. /agent tells who answers now.");
    assert_eq!(desk.texts().len(), 1, "others are answered");
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'waiting'"),
        "0"
    );
    house.close(gateway).await;
}

/// Files that the turn writes after the change are the renamed agent's.
#[tokio::test]
async fn an_agent_renamed_during_its_turn_finishes_it() {
    let house = House::new(TEAM).await;
    let home = house.home.path();
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let note = json!({ "path": "note.md", "content": "kept" });
    house
        .model
        .enqueue(Script::tool_call("file_write", note).held());
    house.model.enqueue(Script::text("Written."));
    topic.says(ALICE, "write it down").await;
    house.model.wait_for_open(1).await;
    fine(home, &["agent", "rename", "rose", "lily"]).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Written."]);
    let written = fs::read_to_string(home.join("agents/lily/workspace/note.md"));
    assert_eq!(written.expect("the file is there"), "kept");
    house.close(gateway).await;
    assert!(
        fs::symlink_metadata(home.join("agents/rose")).is_err(),
        "no link is left"
    );
}

#[tokio::test]
async fn stop_and_queue_reach_the_running_turns() {
    let house = House::new(TEAM).await;
    let home = house.home.path();
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.hold();
    topic.says(ALICE, "one").await;
    house.model.wait_for_open(1).await;
    topic.says(ALICE, "two").await;
    house.telegram.all_confirmed().await;
    house.all_in_their_lanes().await;
    let queue: Value = serde_json::from_str(&fine(home, &["queue", "--json"]).await).expect("JSON");
    let states: Vec<&str> = queue
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["state"].as_str())
        .collect();
    assert_eq!(states, ["running", "waiting"]);
    assert_eq!(queue[0]["agent"]["id"], "rose");
    assert_eq!(queue[0]["place"], json!({ "id": TOPIC, "name": "Five" }));
    assert_snapshot!(fine(home, &["queue", "--clear", "--all"]).await, @"1 waiting message is dropped.");
    assert_snapshot!(fine(home, &["stop", TOPIC]).await, @"1 answer is stopped, and its place is told.");
    assert_snapshot!(fine(home, &["stop"]).await, @"Nothing is being answered.");
    house.model.release();
    house.settled(&gateway).await;
    assert_snapshot!(topic.texts().join("\n"), @"
    The operator has dropped the messages that waited here. Please send yours again if it still matters.
    The operator has stopped this answer.
    ");
    house.close(gateway).await;
}

/// What waits for a paused agent is listed with that agent, and a pin from the shell with its
/// operator.
#[tokio::test]
async fn the_queue_names_the_agent_that_is_waited_for() {
    let mut house = House::new(TEAM).await;
    let home = house.home.path();
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    fine(home, &["agent", "pause", "rose"]).await;
    topic.says(ALICE, "one").await;
    house.telegram.all_confirmed().await;
    house.all_in_their_lanes().await;
    let queue: Value = serde_json::from_str(&fine(home, &["queue", "--json"]).await).expect("JSON");
    assert_eq!(
        (
            &queue[0]["agent"]["id"],
            &queue[0]["state"],
            &queue[0]["paused"]
        ),
        (&json!("rose"), &json!("waiting"), &json!(true))
    );
    let listed = fine(home, &["queue"]).await;
    assert!(listed.contains("rose"), "{listed}");
    fine(home, &["pin", "Five", "main"]).await;
    let login = house.ask("SELECT name FROM audit WHERE action = 'switch'");
    assert_eq!(
        house.ask("SELECT set_by_name FROM pins"),
        format!("{login} at the command line")
    );
    house.leave_leftovers();
    house.close(gateway).await;
}

/// Prices that nobody wrote down are not zero, and a person's own stop is no error.
#[tokio::test]
async fn status_tells_unknown_prices_and_no_stop_as_an_error() {
    let house = House::new(TEAM).await;
    let home = house.home.path();
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(ALICE, "hi").await;
    house.settled(&gateway).await;
    house.model.hold();
    topic.says(ALICE, "a long one").await;
    house.model.wait_for_open(1).await;
    topic.says(ALICE, "/stop").await;
    topic.wait_for_sent(2).await;
    house.model.release();
    house.settled(&gateway).await;
    let status: Value =
        serde_json::from_str(&fine(home, &["status", "--json"]).await).expect("JSON");
    let agents = status["agents"].as_array().expect("a list");
    let rose = agents
        .iter()
        .find(|agent| agent["agent"]["id"] == "rose")
        .expect("she is listed");
    assert_eq!(
        (&rose["unpriced_today"], &rose["last_error"]),
        (&json!(true), &json!(null))
    );
    assert!(fine(home, &["status"]).await.contains("price unknown"));
    house.close(gateway).await;
}

#[tokio::test]
async fn a_retry_is_sent_at_once_by_a_running_gateway() {
    let house = lived_in().await;
    let home = house.home.path();
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house
        .telegram
        .fail("sendMessage", Fault::Refused(400, "Bad Request: not now"))
        .once();
    topic.says(ALICE, "again").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state = 'failed'", "1")
        .await;
    let before = topic.texts().len();
    assert_snapshot!(fine(home, &["failed", "retry"]).await, @"1 message is being sent again.");
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(topic.texts()[before..], ["Yes."]);
    house.close(gateway).await;
}

#[tokio::test]
async fn reload_needs_a_gateway_and_tells_what_changed() {
    let mut house = House::new(TEAM).await;
    let home = house.home.path();
    let nobody = run(home, &["reload"]).await;
    assert_eq!(nobody.code, 1);
    assert_snapshot!(nobody.stderr, @"
    error: no gateway runs on HOME, so there is nothing to reload
    hint: the next start reads config.toml; `parlor config check` looks at it now
    ");
    let gateway = house.open().await;
    assert_snapshot!(fine(home, &["reload"]).await, @"The config is reloaded. Nothing in it has changed.");
    house.configure("", &format!("{TEAM}[agents.dot]\n"));
    let json: Value = serde_json::from_str(&fine(home, &["reload", "--json"]).await).expect("JSON");
    assert_eq!(json["reconnected"], json!([]));
    house.configure("", "[agents.ada");
    let broken = run(home, &["reload"]).await;
    assert_eq!(broken.code, 1);
    assert!(
        broken.stderr.contains("the running config stays as it was"),
        "{}",
        broken.stderr
    );
    house.configure("", TEAM);
    fine(home, &["reload"]).await;
    house.close(gateway).await;
    // Owners are told about the file whenever its watcher has seen it.
    house.leave_leftovers();
}

#[tokio::test]
async fn status_tells_what_is_up_and_what_is_down() {
    let mut house = lived_in().await;
    let home = house.home.path();
    let nobody = run(home, &["status"]).await;
    assert_eq!(nobody.code, 1);
    assert!(
        nobody
            .stdout
            .starts_with("No gateway runs on HOME. `parlor run` starts one.\n"),
        "{}",
        nobody.stdout
    );
    let gateway = house.open().await;
    house.model.hold();
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(ALICE, "a long one").await;
    house.model.wait_for_open(1).await;
    let status: Value =
        serde_json::from_str(&fine(home, &["status", "--json"]).await).expect("JSON");
    assert_eq!(
        (&status["running"], &status["down"]),
        (&json!(true), &json!(false))
    );
    let telegram = &status["platforms"][0];
    assert_eq!(
        (&telegram["platform"], &telegram["state"]),
        (&json!("telegram"), &json!("connected"))
    );
    assert!(telegram["last_update_at"].is_string());
    assert_eq!(status["turns"][0]["agent"]["id"], "rose");
    assert_eq!(status["turns"][0]["place"]["id"], TOPIC);
    let rose = status["agents"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|agent| agent["agent"]["id"] == "rose");
    assert_eq!(rose.expect("she is listed")["state"], "busy");
    assert_eq!(
        (&status["config"]["differs"], &status["config"]["problem"]),
        (&json!(false), &json!(null))
    );
    house.model.release();
    house.settled(&gateway).await;

    house.configure("", "[agents.ada");
    let _ = run(home, &["reload"]).await;
    let broken = run(home, &["status", "--json"]).await;
    assert_eq!(broken.code, 1);
    let status: Value = serde_json::from_str(&broken.stdout).expect("JSON");
    assert_eq!(status["config"]["differs"], true);
    assert!(status["config"]["problem"].is_string());
    house.configure("", TEAM);
    fine(home, &["reload"]).await;
    house.close(gateway).await;
    // Owners are told about the file whenever its watcher has seen it.
    house.leave_leftovers();
}

/// A connection by hand.
struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    fn connect(home: &Path) -> Self {
        let stream = UnixStream::connect(home.join("parlor.sock")).expect("it connects");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("it can be set");
        Client {
            stream: BufReader::new(stream),
        }
    }

    fn greeted(home: &Path) -> Self {
        let mut client = Client::connect(home);
        let greeting = client.read().expect("a greeting");
        assert_eq!(greeting["protocol"], 1);
        client
    }

    fn write(&mut self, text: &str) {
        self.stream
            .get_mut()
            .write_all(text.as_bytes())
            .expect("it writes");
    }

    /// None at the end of the connection.
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("JSON")),
        }
    }
}

/// The socket blocks, so its tests have threads of their own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work)
        .await
        .expect("the client is content")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_private_and_goes_with_its_gateway() {
    let house = House::new(TEAM).await;
    let path = house.home.path().join("parlor.sock");
    fs::write(&path, "left by somebody").expect("writes");
    let gateway = house.open().await;
    let file = fs::metadata(&path).expect("there is a socket");
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    house.close(gateway).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_of_a_killed_gateway_is_replaced() {
    let house = House::new(TEAM).await;
    let home = house.home.path();
    house.spawn().await.kill().await;
    assert!(home.join("parlor.sock").exists());
    let alone = run(home, &["agent", "rename", "rose", "lily"]).await;
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    let process = house.spawn().await;
    fine(home, &["agent", "rename", "lily", "rose"]).await;
    assert_eq!(run(home, &["status"]).await.code, 0);
    assert_eq!(process.stop().await, 0);
}

/// Only root can become another user, so the test needs root.
#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_not_let_in() {
    if !nix_is_root() {
        return;
    }
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    for path in [home.clone(), home.join("parlor.sock")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("the mode is set");
    }
    let other = home.clone();
    let heard = std::thread::spawn(move || {
        // Of this thread alone.
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
        let mut client = Client::connect(&other);
        client.read()
    });
    let heard = apart(move || heard.join().expect("the other user is content")).await;
    assert_eq!(heard, None, "not even a greeting");
    let own = apart(move || Client::greeted(&home)).await;
    drop(own);
    house.close(gateway).await;
}

fn nix_is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whatever a client sends, the gateway goes on for the others.
#[tokio::test(flavor = "multi_thread")]
async fn odd_clients_do_no_harm() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    let ends = async |text: String| {
        let home = home.clone();
        apart(move || {
            let mut client = Client::greeted(&home);
            client.write(&text);
            let said = client.read().expect("a reason");
            assert_eq!(client.read(), None, "the connection ends");
            said["bye"]["reason"].as_str().expect("a reason").to_owned()
        })
        .await
    };
    assert_snapshot!(ends("nonsense\n".into()).await, @"a frame cannot be read: expected value at line 1 column 1");
    let unknown = ends("{\"ask\":{\"id\":1,\"request\":{\"burn\":{}}}}\n".into()).await;
    assert!(
        unknown.starts_with("a frame cannot be read: unknown variant `burn`"),
        "{unknown}"
    );
    assert_snapshot!(ends(format!("\"{}\n", "x".repeat(1024 * 1024))).await, @"a frame has more than 1048576 bytes");
    // A client that asks and leaves, one that says nothing, one that never reads.
    let silent = apart({
        let home = home.clone();
        move || {
            let mut gone = Client::greeted(&home);
            gone.write("{\"ask\":{\"id\":1,\"request\":\"status\"}}\n");
            drop(gone);
            let mut deaf = Client::greeted(&home);
            for id in 1..=8 {
                deaf.write(&format!(
                    "{{\"ask\":{{\"id\":{id},\"request\":{{\"watch\":\"status\"}}}}}}\n"
                ));
            }
            deaf.write("{\"ask\":{\"id\":9,\"request\":\"status\"}}\n");
            (Client::connect(&home), deaf)
        }
    })
    .await;
    fine(house.home.path(), &["status"]).await;
    let refused = apart(move || {
        let (silent, mut deaf) = silent;
        let refused =
            std::iter::from_fn(|| deaf.read()).find(|frame| frame.get("refused").is_some());
        drop(silent);
        refused.expect("the ninth is refused")
    })
    .await;
    assert_eq!(refused["refused"]["id"], 9);
    house.close(gateway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_clients_than_there_is_room_for_are_told() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    let told = apart({
        let home = home.clone();
        move || {
            let mut clients: Vec<Client> = (0..16).map(|_| Client::greeted(&home)).collect();
            let mut late = Client::greeted(&home);
            let told = late.read().expect("a reason");
            clients.clear();
            told["bye"]["reason"].as_str().expect("a reason").to_owned()
        }
    })
    .await;
    assert_snapshot!(told, @"too many programs talk to the gateway right now");
    house.close(gateway).await;
}

/// One request, several frames, until the client has enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_until_it_is_stopped() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let home = house.home.path().to_owned();
    let frames = apart(move || {
        let mut client = Client::greeted(&home);
        client.write("{\"ask\":{\"id\":7,\"request\":{\"watch\":\"status\"}}}\n");
        let first = client.read().expect("an event");
        client.write("{\"ask\":{\"id\":8,\"request\":{\"queue\":{\"place\":null}}}}\n");
        let (mut events, mut replies) = (0, 0);
        while replies == 0 || events == 0 {
            let frame = client.read().expect("more");
            events += usize::from(frame.get("event").is_some());
            replies += usize::from(frame.get("reply").is_some());
        }
        client.write("{\"stop\":{\"id\":7}}\n");
        let end = std::iter::from_fn(|| client.read()).find(|frame| frame.get("event").is_none());
        (first["event"]["id"].clone(), end)
    })
    .await;
    assert_eq!(frames, (json!(7), Some(json!({ "end": { "id": 7 } }))));
    house.close(gateway).await;
}

/// The gateway dies with the verb half done; the home is whole, and the next start works.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_killed_during_a_verb_leaves_a_whole_home() {
    let house = lived_in().await;
    let home = house.home.path().to_owned();
    let process = house.spawn().await;
    // Changes of agents wait for this lock.
    let lock = fs::File::create(home.join("config.lock")).expect("it can be made");
    lock.lock().expect("it can be had");
    let mut client = apart({
        let home = home.clone();
        move || {
            let mut client = Client::greeted(&home);
            client.write(
                "{\"ask\":{\"id\":1,\"request\":{\"agent\":{\"remove\":{\"agent\":\"rose\"}}}}}\n",
            );
            client.write("{\"ask\":{\"id\":2,\"request\":{\"queue\":{\"place\":null}}}}\n");
            let second = client
                .read()
                .expect("the second does not wait for the first");
            assert_eq!(second["reply"]["id"], 2);
            client
        }
    })
    .await;
    process.kill().await;
    assert_eq!(apart(move || client.read()).await, None);
    drop(lock);
    fine(&home, &["agent", "info", "rose"]).await;
    let process = house.spawn().await;
    fine(&home, &["agent", "remove", "rose"]).await;
    assert_eq!(process.stop().await, 0);
}

/// What the verb itself says then.
#[tokio::test(flavor = "multi_thread")]
async fn a_verb_tells_when_its_gateway_goes_away() {
    let house = House::new(TEAM).await;
    let home = house.home.path().to_owned();
    let _lock = Home::new(&home).lock().expect("nobody else works here");
    let listener = std::os::unix::net::UnixListener::bind(home.join("parlor.sock")).expect("binds");
    let serving = std::thread::spawn(move || {
        for greeting in [
            json!({ "parlor": "0.1.0", "protocol": 1, "pid": 1 }),
            json!({ "parlor": "9.0.0", "protocol": 9, "pid": 1 }),
        ] {
            let (mut stream, _) = listener.accept().expect("a client");
            writeln!(stream, "{greeting}").expect("it writes");
            let _ = stream.read(&mut [0; 16]);
        }
    });
    let cut = run(&home, &["new", TOPIC]).await;
    let newer = run(&home, &["new", TOPIC]).await;
    assert_eq!((cut.code, newer.code), (1, 1));
    assert_snapshot!(cut.stderr, @"error: the gateway ended before it answered, so this may or may not have been done");
    assert_snapshot!(newer.stderr, @"
    error: the running gateway is Parlor 9.0.0, and this program is 0.1.0
    hint: restart the gateway, so that both are the same
    ");
    apart(move || serving.join().expect("the server is content")).await;
}

/// `status --watch` without a terminal prints once.
#[tokio::test]
async fn watching_needs_a_terminal() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    house.telegram.dm(ALICE).says("/whoami").await;
    house.settled(&gateway).await;
    let out = fine(house.home.path(), &["status", "--watch"]).await;
    assert!(out.contains("Telegram is connected"), "{out}");
    house.close(gateway).await;
}

/// A gateway and a verb that begin together do not keep each other from working.
#[tokio::test]
async fn a_verb_and_a_gateway_begin_together() {
    let house = lived_in().await;
    let home = house.home.path();
    let polls = house.telegram.calls("getUpdates").len();
    let process = Process::start(home, &["run"]);
    fine(home, &["pin", TOPIC, "ada"]).await;
    house.telegram.wait_for_calls("getUpdates", polls + 1).await;
    fine(home, &["pin", TOPIC, "--reset"]).await;
    assert_eq!(process.stop().await, 0);
}

/// The bot's token is replaced by one that Telegram does not know.
#[tokio::test]
async fn a_reload_with_a_refused_token_is_told_and_the_gateway_goes_on() {
    let house = House::new(TEAM).await;
    let process = house.spawn().await;
    let home = house.home.path();
    house.write(
        "secrets/telegram",
        "123456789:no-token-that-anybody-knows-00000000",
    );
    let ran = run(home, &["reload"]).await;
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert_snapshot!(ran.stderr, @"
    error: telegram does not take the new settings: Telegram does not accept the bot token. Get a valid one from @BotFather and store it where [telegram] token points. `parlor reload` has a running gateway read it; a new environment variable needs a new start
    hint: the gateway goes on without it, and tries again as soon as config.toml or a secret is changed and reloaded
    ");
    let again = run(home, &["reload"]).await;
    assert_eq!(again.code, 1, "{}", again.stdout);
    let told = again.stderr.lines().next().unwrap_or_default();
    assert_snapshot!(told, @"error: telegram is still off: Telegram does not accept the bot token. Get a valid one from @BotFather and store it where [telegram] token points. `parlor reload` has a running gateway read it; a new environment variable needs a new start");
    let status = run(home, &["status"]).await;
    assert_eq!(status.code, 1);
    assert!(
        status.stdout.contains("Telegram is down"),
        "{}",
        status.stdout
    );
    house.write("secrets/telegram", house.telegram.token());
    fine(home, &["reload"]).await;
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// Somebody is editing the file, and the gateway goes on with the text before.
#[tokio::test]
async fn verbs_work_beside_a_gateway_while_the_file_has_a_problem() {
    let house = lived_in().await;
    let alice = house.telegram.dm(ALICE);
    let process = house.spawn().await;
    let (home, text) = (house.home.path(), house.config());
    house.write(
        "config.toml",
        &text.replace("kind = \"openai\"", "kind = \"opnai\""),
    );
    for words in [
        &["route", "explain", TOPIC][..],
        &["sessions"],
        &["sessions", "show", TOPIC],
        &["people"],
        &["agent", "list"],
        &["agent", "info", "rose"],
        &["agent", "pause", "rose"],
        &["agent", "resume", "rose"],
        &["config", "show"],
        &["security", "check"],
        &["usage"],
        &["memory", "list", "-a", "rose"],
    ] {
        let ran = run(home, words).await;
        assert!(
            !ran.stderr.contains("opnai") && ran.stderr.contains("that the gateway runs with"),
            "{words:?}: {}",
            ran.stderr
        );
    }
    let listed = fine(home, &["agent", "list"]).await;
    assert!(listed.contains("Rose"), "{listed}");
    // The owner is told of the problem.
    alice.wait_for_sent(1).await;
    let unsent = "SELECT coalesce(group_concat(state || ' ' || coalesce(kind, '') || ' ' || coalesce(error, '')), '') FROM outbox
                  WHERE state <> 'sent'";
    house.wait_until_stored(unsent, "").await;
    assert_eq!(process.stop().await, 0);
    let ran = run(home, &["agent", "list"]).await;
    assert!(
        ran.code != 0 && ran.stderr.contains("opnai"),
        "{}",
        ran.stderr
    );
}
