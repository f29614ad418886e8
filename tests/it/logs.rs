//! The log: an agent in each line, a file of it, JSON, and `parlor logs`.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};
use crate::support::house::{Process, parlor};

const TEAM: &str = "[access]\nowners = [\"telegram:111\"]\nrequire_mention = false\ngroups = \"open\"\n\
    [agents.main]\n[agents.rose]\nwho = \"guest\"\n[agents.coder]\nwho = \"guest\"\n\
    [[bindings]]\nmatch = \"telegram:topic:-1001:101\"\nagent = \"rose\"\n\
    [[bindings]]\nmatch = \"telegram:topic:-1001:102\"\nagent = \"coder\"\n";
const FILE: &str = "[log]\nfile = \"logs/parlor.log\"\n";
const JSON: &str = "[log]\nformat = \"json\"\nfile = \"logs/parlor.log\"\n";

async fn house(log: &str) -> House {
    House::new(&format!("{TEAM}{log}")).await
}

fn start(house: &House, level: &str) -> Process {
    let mut command = parlor(house.home.path());
    command.arg("run").env("PARLOR_LOG", level);
    Process::start_as(command, house.home.path())
}

fn file(house: &House) -> String {
    std::fs::read_to_string(house.home.path().join("logs/parlor.log")).expect("a log file")
}

/// Rose has a subagent, and Coder uses a tool, both at once.
async fn both_at_once(house: &House) {
    let forum = house.telegram.forum(-1001);
    let (rose, coder) = (
        forum.topic(101, "zinnober-plan"),
        forum.topic(102, "zinnober-code"),
    );
    house.model.answer_with(|request| {
        let text = request.last_text();
        if request.results().is_empty() && text.contains("count apples") {
            Script::tool_call("file_read", json!({ "path": "none.md" }))
        } else if request.results().is_empty() && text.contains("ask a subagent") {
            Script::tool_call("spawn", json!({ "task": "count apples" }))
        } else if request.results().is_empty() && text.contains("use a tool") {
            Script::tool_call("file_read", json!({ "path": "none.md" }))
        } else {
            Script::text("done")
        }
    });
    rose.says(ALICE, "ask a subagent").await;
    coder.says(BOB, "use a tool").await;
    rose.wait_for_sent(1).await;
    coder.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
}

/// S3.25, S3.26
#[tokio::test]
async fn a_search_for_an_agent_finds_all_its_lines_and_no_others() {
    let house = house(FILE).await;
    let process = start(&house, "trace");
    both_at_once(&house).await;
    for agent in ["rose", "coder"] {
        process.wait_for_log(&format!("{agent} answered")).await;
    }
    let log = process.log();
    // The last line may be half written.
    let log = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    assert_eq!(process.stop().await, 0);
    for line in log.lines() {
        let head: Vec<&str> = line.split_whitespace().take(3).collect();
        assert!(
            ["[system]", "[rose]", "[coder]", "[main]"].contains(&head[2]),
            "{line}"
        );
    }
    let of = |agent: &str| -> Vec<&str> {
        let bracket = format!("[{agent}]");
        log.lines().filter(|line| line.contains(&bracket)).collect()
    };
    for (agent, place, other) in [("rose", 101, 102), ("coder", 102, 101)] {
        let lines = of(agent);
        for words in ["begins", "tool called", "the turn is over", "answered"] {
            assert!(
                lines.iter().any(|line| line.contains(words)),
                "{words}: {lines:#?}"
            );
        }
        let (place, other) = (
            format!("telegram:topic:-1001:{place}"),
            format!("telegram:topic:-1001:{other}"),
        );
        for line in log.lines() {
            let is_ours = lines.contains(&line);
            assert!(!is_ours || !line.contains(&other), "{line}");
            assert!(is_ours || !line.contains(&place), "{line}");
        }
    }
    // The lines of the subagent are Rose's too, with her as the parent.
    let rose = of("rose");
    let child = rose
        .iter()
        .find(|line| line.contains("tool called") && line.contains("session=child:"))
        .expect("a line of the subagent");
    assert!(
        child.contains(" parent=rose ")
            && child.contains("parent.session=telegram:topic:-1001:101"),
        "{child}"
    );
    let whole = file(&house);
    assert!(
        log.lines()
            .all(|line| whole.lines().any(|kept| kept == line)),
        "the file has every line"
    );
}

/// A line for each message, with its rule, its ids and the time in each stage.
#[tokio::test]
async fn a_message_leaves_one_line_with_the_time_of_each_stage() {
    let house = house("").await;
    let process = house.spawn().await;
    both_at_once(&house).await;
    process.wait_for_log("rose answered").await;
    process.wait_for_log("coder answered").await;
    let log = process.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("coder answered"))
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    let (_, line) = lines[0].split_once("INFO ").expect("a level");
    let digits = line.split(' ').map(|word| match word.split_once('=') {
        Some((
            name @ ("seconds" | "tokens" | "stored" | "queued" | "slot" | "model" | "tools"
            | "written" | "sent"),
            _,
        )) => format!("{name}=N"),
        _ => word.to_owned(),
    });
    assert_snapshot!(digits.collect::<Vec<_>>().join(" "), @r#"[coder] coder answered session=telegram:topic:-1001:102 person=telegram:222 rule="config.toml line 23: exact topic telegram:topic:-1001:102" seconds=N tokens=N stored=N queued=N slot=N model=N tools=N written=N sent=N ref=2"#);
    assert_eq!(process.stop().await, 0);
}

/// S3.27, S6.11
#[tokio::test]
async fn every_line_of_json_can_be_read_and_a_child_names_its_parent() {
    let house = house(JSON).await;
    let process = start(&house, "trace");
    both_at_once(&house).await;
    process.wait_for_log("rose answered").await;
    process.wait_for_log("coder answered").await;
    assert_eq!(process.stop().await, 0);
    let log = file(&house);
    let read: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for line in &read {
        let object = line.as_object().expect("an object");
        for key in ["time", "level", "agent", "message"] {
            assert!(object.contains_key(key), "{line}");
        }
    }
    let find = |words: &str, agent: &str| {
        read.iter()
            .find(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(words))
                    && line["agent"] == agent
            })
            .unwrap_or_else(|| panic!("no {words} of {agent}: {log}"))
    };
    let answered = find("answered", "coder");
    assert_eq!(answered["session"], "telegram:topic:-1001:102");
    assert!(
        answered["ref"].is_u64() && answered["model"].is_f64() && answered["sent"].is_f64(),
        "{answered}"
    );
    let child = read
        .iter()
        .find(|line| line["message"] == "tool called" && line["parent"] == "rose")
        .expect("a line of the subagent");
    assert_eq!(child["agent"], "rose");
    assert_eq!(child["parent.session"], "telegram:topic:-1001:101");
    for name in ["zinnober", "Alice", "Bob", "apples"] {
        assert!(!log.contains(name), "{name}");
    }
    // Lines before the config was read are for people.
    let stderr = std::fs::read_to_string(house.home.path().join("test.log")).expect("text");
    assert!(stderr.lines().filter(|line| line.starts_with('{')).count() > 10);
}

#[tokio::test]
async fn a_new_day_begins_a_new_file_for_the_owner_alone() {
    let house = house(FILE).await;
    let yesterday = "2026-01-01T10:00:00+00:00  INFO [rose] rose answered ref=7\n";
    house.write("logs/parlor.log", yesterday);
    let path = house.home.path().join("logs/parlor.log");
    std::fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_modified(SystemTime::now() - Duration::from_secs(26 * 60 * 60)))
        .expect("the time can be set");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let process = house.spawn().await;
    process.wait_for_log("connected as").await;
    assert_eq!(process.stop().await, 0);
    let read = |name: &str| {
        std::fs::read_to_string(house.home.path().join("logs").join(name)).expect("a file")
    };
    assert_eq!(read("parlor.log.1"), yesterday);
    assert!(read("parlor.log").contains("[system] connected as"));
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
    let home = house.home.path();
    let all = run(home, &["logs"]).await;
    assert!(
        all.stdout.starts_with(yesterday.trim_end()),
        "{}",
        all.stdout
    );
    assert!(all.stdout.contains("connected as"));
    let today = run(home, &["logs", "--since", "1h"]).await;
    assert!(
        !today.stdout.contains("ref=7") && today.stdout.contains("connected as"),
        "{}",
        today.stdout
    );
}

/// The reference in the chat finds its line.
#[tokio::test]
async fn a_reference_shown_in_chat_finds_its_lines() {
    let house = house(FILE).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    alice.says("fine").await;
    alice.wait_for_sent(1).await;
    house.model.enqueue(Script::status(500, "broken"));
    house.model.enqueue(Script::status(400, "no"));
    alice.says("not fine").await;
    let told = alice.wait_for_sent(2).await.text;
    let reference: String = told
        .split("ref ")
        .nth(1)
        .expect("a reference")
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    process.wait_for_log("the turn failed").await;
    process.wait_for_log("main gave no answer").await;
    let home = house.home.path();
    let found = run(home, &["logs", "--ref", &reference]).await;
    assert!(
        found.stdout.contains("the turn failed") && found.stdout.contains("gave no answer"),
        "{}",
        found.stdout
    );
    assert!(!found.stdout.contains("main answered"), "{}", found.stdout);
    let as_json = run(
        home,
        &["logs", "--ref", &reference, "--agent", "main", "--json"],
    )
    .await;
    let lines: Vec<Value> = serde_json::from_str(&as_json.stdout).expect("a list");
    assert!(
        lines.len() >= 2
            && lines
                .iter()
                .all(|line| line["ref"].as_u64() == reference.parse().ok()),
        "{lines:#?}"
    );
    let place = run(home, &["logs", "--place", "telegram:dm:111"]).await;
    assert!(place.stdout.contains("main answered") && !place.stdout.contains("connected as"));
    let system = run(home, &["logs", "--agent", "system"]).await;
    assert!(system.stdout.contains("connected as") && !system.stdout.contains("main answered"));
    assert_eq!(
        run(home, &["logs", "--ref", "999"]).await.stderr,
        "No line of HOME/logs/parlor.log matches.\n"
    );
    assert_eq!(process.stop().await, 0);
}

/// S4.40: one process, one log; `parlor logs -a` shows the lines of one agent, and a place is found by
/// its name.
#[tokio::test]
async fn the_lines_of_an_agent_and_of_a_place_are_found_by_name() {
    let house = house(FILE).await;
    let process = start(&house, "info");
    both_at_once(&house).await;
    for agent in ["rose", "coder"] {
        process.wait_for_log(&format!("{agent} answered")).await;
    }
    assert_eq!(process.stop().await, 0);
    let home = house.home.path();
    let lines = async |words: &[&str]| {
        let ran = run(home, &[&["logs"], words].concat()).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    for (agent, topic, other) in [
        ("rose", "zinnober-plan", "coder answered"),
        ("coder", "Zinnober-Code", "rose answered"),
    ] {
        let of_agent = lines(&["-a", agent]).await;
        let answered = format!("{agent} answered");
        assert!(of_agent.contains(&answered), "{of_agent}");
        let bracket = format!("[{agent}]");
        assert!(
            of_agent.lines().all(|line| line.contains(&bracket)),
            "{of_agent}"
        );
        let of_place = lines(&["--place", topic]).await;
        assert!(
            of_place.contains(&answered) && !of_place.contains(other),
            "{of_place}"
        );
        let path = format!("Chat -1001/{topic}");
        assert_eq!(lines(&["--place", &path]).await, of_place);
    }
    let none = run(home, &["logs", "--place", "zinober-plan"]).await;
    assert_eq!(none.code, 2);
    assert_snapshot!(none.stderr, @"
    error: no place is called `zinober-plan`. Did you mean Chat -1001/zinnober-plan (telegram:topic:-1001:101)?
    hint: `parlor sessions` lists places, `parlor sessions list --ignored` those where nobody answers
    ");
}

/// The follower sees lines as they come, over a new beginning of the file too.
#[tokio::test]
async fn followed_lines_come_as_they_are_written() {
    use tokio::io::{AsyncBufReadExt, BufReader};

    let house = house(FILE).await;
    house.write(
        "logs/parlor.log",
        "2026-01-01T10:00:00+00:00  INFO [rose] first\n",
    );
    let mut command = parlor(house.home.path());
    command
        .args(["logs", "--follow", "--agent", "rose"])
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next = async || {
        let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
        line.expect("in time").expect("readable").expect("a line")
    };
    assert!(next().await.ends_with("[rose] first"));
    let path = house.home.path().join("logs/parlor.log");
    let append = |text: &str| {
        use std::io::Write;
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("written");
    };
    append(
        "2026-01-01T10:00:01+00:00  INFO [ada] other\n2026-01-01T10:00:01+00:00  INFO [rose] second\n",
    );
    assert!(next().await.ends_with("[rose] second"));
    std::fs::rename(&path, house.home.path().join("logs/parlor.log.1")).expect("moved");
    append("2026-01-01T10:00:02+00:00  INFO [rose] third\n");
    assert!(next().await.ends_with("[rose] third"));
}

#[tokio::test]
async fn without_a_file_it_is_said_how_to_have_one() {
    let house = house("").await;
    let ran = run(house.home.path(), &["logs"]).await;
    assert_eq!(ran.code, 1);
    assert_snapshot!(ran.stderr, @r#"
    error: config.toml names no log file, so there is nothing to read
    hint: to keep one from now on, add to config.toml:

    [log]
    file = "logs/parlor.log"

    A gateway that systemd runs has its lines in the journal: journalctl -u parlor
    "#);
    let house = self::house(FILE).await;
    let ran = run(house.home.path(), &["logs"]).await;
    assert_snapshot!(ran.stderr, @"error: there is no log file HOME/logs/parlor.log yet. `parlor run` writes it.");
}

/// A reference from the chat leads to its cause without a log file too, beside a running gateway.
#[tokio::test]
async fn without_a_file_a_reference_is_looked_up_in_the_database() {
    let house = house("").await;
    let process = start(&house, "info");
    let alice = house.telegram.dm(ALICE);
    house
        .model
        .enqueue(Script::status(404, r#"{"error":"model 'any' not found"}"#));
    alice.says("hello").await;
    alice.wait_for_sent(1).await;
    process.wait_for_log("the turn failed (ref 1)").await;
    let told = run(house.home.path(), &["logs", "--ref", "1"]).await;
    assert_eq!(told.code, 0, "{}", told.stderr);
    let first = told.stdout.lines().next().unwrap_or_default();
    assert_snapshot!(first, @"Main gave no answer: the model provider refused: no such model (404). It was asked because it is the default agent.");
    assert!(!told.stdout.contains("hello"), "{}", told.stdout);
    assert_snapshot!(told.stderr, @r#"This is from the database: config.toml names no log file. With `file = "logs/parlor.log"` under [log] the lines are kept too."#);
    let unknown = run(house.home.path(), &["logs", "--ref", "77"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""));
    let first = unknown.stderr.lines().next().unwrap_or_default();
    assert_snapshot!(first, @"error: nothing is kept about a message with the reference 77");
}

/// Format, level and file count when the config is saved.
#[tokio::test]
async fn the_log_follows_the_config() {
    let house = house("").await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    alice.says("one").await;
    process.wait_for_log("main answered").await;
    assert!(!process.log().contains("[main] queued"));
    house.configure("", &format!("{TEAM}{JSON}level = \"debug\"\n"));
    process.hang_up().await;
    process.wait_for_log("\"message\":\"reload\"").await;
    alice.says("two").await;
    process.wait_for_log("\"message\":\"main answered\"").await;
    let kept = file(&house);
    assert!(
        kept.contains("\"message\":\"queued\"") && kept.lines().all(|line| line.starts_with('{')),
        "{kept}"
    );
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}

/// A file that cannot be written stops nothing, and is told.
#[tokio::test]
async fn a_log_file_that_cannot_be_written_stops_nothing() {
    let house = house(FILE).await;
    house.write("logs", "in the way");
    let process = house.spawn().await;
    process.wait_for_log("cannot be written").await;
    let alice = house.telegram.dm(ALICE);
    alice.says("hello").await;
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
}
