//! What people see besides answers: commands, the command line, packages and the log.

use std::io::Read;
use std::path::Path;

use parlor::commands::SPECS;
use serde_json::json;

use super::{KEY, ROWS_OF_ADA, SECRET, TEAM, Walls};
use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, User};
use crate::support::house::{ask, parlor};

/// What is written in Rose's topic. `None`: nobody has thought about the command yet.
fn commands(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "agent" => &[
            "/agent",
            "/agent vault",
            "/agent rose",
            "/agent why",
            "/agent for 1h rose",
            "/agent pause vault",
            "/agent restart rose",
        ],
        "agents" => &["/agents"],
        "model" => &["/model", "/model vault"],
        "models" => &["/models"],
        "whoami" => &["/whoami"],
        "new" => &["/new"],
        "stop" => &["/stop", "/stop all"],
        "queue" => &["/queue", "/queue clear"],
        "status" => &["/status"],
        "usage" => &["/usage", "/usage 30d"],
        "skills" => &["/skills"],
        "memory" => &["/memory", "/memory ada"],
        "remember" => &["/remember roses are red"],
        // The first twelve memories are Ada's.
        "forget" => &[
            "/forget vault code",
            "/forget 1",
            "/forget 1 yes",
            "/forget 12 yes",
        ],
        "help" => &["/help"],
        "reload" => &["/reload"],
        "bind" => &["/bind vault", "/bind rose"],
        "unbind" => &["/unbind", "/bind rose"],
        "audit" => &["/audit", "/audit 100", "/audit before 999"],
        "approvals" => &["/approvals"],
        "approve" => &["/approve 1"],
        "refuse" => &["/refuse 1"],
        "doctor" => &["/doctor"],
        "trace" => &["/trace"],
        "dashboard" => &["/dashboard"],
        "retry" => &["/retry"],
        "deliver" => &["/deliver", "/deliver off", "/deliver on"],
        "pair" => &[
            "/pair",
            "/pair ABCD-EFGH",
            "/pair ABCD-EFGH yes",
            "/pair ABCD-EFGH no",
        ],
        "unpair" => &["/unpair telegram:222"],
        "people" => &["/people", "/people show telegram:111"],
        "allow" => &["/allow vault 7 tokens today"],
        "pause" => &["/pause background"],
        "resume" => &["/resume background"],
        "jobs" => &["/jobs", "/jobs pause 1", "/jobs remove 1"],
        _ => return None,
    })
}

/// S1.61 by commands. Ada is in the middle of something meanwhile, and more waits for her.
#[tokio::test]
async fn no_command_shows_anything_of_another_agent() {
    let walls = Walls::new(TEAM).await;
    let before = walls.house.ask(ROWS_OF_ADA);
    walls.house.model.hold();
    let asked = walls.house.model.journal().len();
    walls
        .ada
        .says(ALICE, &format!("the vault again, {SECRET}"))
        .await;
    walls.house.model.wait_for_requests(asked + 1).await;
    walls
        .ada
        .says(ALICE, &format!("and once more {SECRET}"))
        .await;
    let mut sent = walls.rose.texts().len();
    for spec in SPECS {
        let texts = commands(spec.name)
            .unwrap_or_else(|| panic!("/{} has no case in walls/outside.rs", spec.name));
        for (text, person) in texts.iter().flat_map(|text| [(text, ALICE), (text, BOB)]) {
            walls.rose.says(person, text).await;
            sent += 1;
            let told = walls.rose.wait_for_sent(sent).await;
            assert!(!format!("{told:?}").contains(SECRET), "{text}: {told:?}");
        }
    }
    walls.house.model.release();
    walls.house.settled(&walls.gateway).await;
    assert_eq!(
        walls.house.ask(ROWS_OF_ADA),
        before,
        "nobody made Ada forget"
    );
    walls.rose_knows_nothing("commands");
    walls.end().await;
}

/// S3.19, S4.16, S1.61 by recall: many rows of Ada's would rank better than the one that Rose has.
#[tokio::test]
async fn nothing_is_recalled_from_another_agent_however_well_it_fits() {
    let walls = Walls::new(TEAM).await;
    walls
        .says(
            &walls.rose,
            "/remember Somewhere among many other words there is a vault",
        )
        .await;
    walls
        .says(&walls.rose, "what is the vault code, the vault code")
        .await;
    let asked = walls.read_by("Rose").pop().expect("asked");
    let reminder = asked
        .messages
        .iter()
        .find(|(_, text)| text.contains("[From memory"))
        .expect("a reminder");
    let recalled: Vec<&str> = reminder
        .1
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    assert_eq!(recalled.len(), 1, "{recalled:?}");
    assert_eq!(
        asked.api_key.as_deref(),
        Some(KEY),
        "the provider gets its key, and only in its place"
    );
    walls.rose_knows_nothing("recall");
    walls.end().await;
}

/// A provider may repeat what it was sent in its errors. Neither chat nor `agent info` does.
#[tokio::test]
async fn what_a_provider_says_about_an_error_is_told_to_nobody() {
    let walls = Walls::new(TEAM).await;
    // The owner is told in private that the provider refuses.
    let owner = walls.house.telegram.dm(ALICE);
    let body =
        json!({ "error": { "message": format!("cannot read: {SECRET} with {KEY}") } }).to_string();
    for code in [400, 401, 403, 404, 413, 422] {
        walls.house.model.enqueue(Script::status(code, &body));
        walls.says(&walls.rose, "hello").await;
    }
    walls.house.model.enqueue(Script::ErrorInStream {
        after: "I".into(),
        kind: "server_error".into(),
        message: body,
    });
    walls.says(&walls.rose, "hello").await;
    let told = walls.rose.texts();
    assert!(
        told.len() >= 7
            && told
                .iter()
                .all(|text| !text.contains(SECRET) && !text.contains(KEY)),
        "{told:?}"
    );
    let info = run(walls.house.home.path(), &["agent", "info", "rose"])
        .await
        .stdout;
    assert!(!info.contains(SECRET) && !info.contains(KEY), "{info}");
    let told = owner.texts();
    assert!(
        !told.is_empty() && told.iter().all(|text| !text.contains(KEY)),
        "{told:?}"
    );
    walls.end().await;
}

/// What is asked about Rose on the command line, and about nobody in particular.
const VERBS: &[&[&str]] = &[
    &["recall", "--agent", "rose", "vault"],
    &[
        "recall",
        "--agent",
        "rose",
        "--explain",
        "--limit",
        "100",
        "the",
        "vault",
        "code",
    ],
    &["recall", "vault"],
    &["recall", "--json", "vault"],
    &["memory", "list", "--agent", "rose"],
    &["memory", "list"],
    &["memory", "list", "--json"],
    &["memory", "export", "--agent", "rose"],
    &[
        "memory", "export", "--agent", "rose", "--format", "markdown",
    ],
    &["memory", "versions", "--agent", "rose"],
    &["agent", "list"],
    &["agent", "list", "--json"],
    &["agent", "info", "rose"],
    &["agent", "prompt", "rose"],
    &["agent", "agents-md", "rose"],
    &["export", "openclaw", "-"],
    // The house itself is no source.
    &["import", "openclaw", "."],
    &["import", "signet", "/nowhere"],
    &["agent", "archive", "list"],
    &["skill", "list", "--agent", "rose"],
    &["skill", "check"],
    &["usage", "30d"],
    &["usage", "30d", "--json"],
    &["failed", "list"],
    &["audit"],
    &["audit", "--agent", "rose", "--json"],
    &["route", "explain", "telegram:topic:-1001:201"],
    &["sessions", "list"],
    &["sessions", "list", "--json"],
    &["sessions", "list", "--agent", "rose"],
    &["sessions", "show", "telegram:topic:-1001:201"],
    &[
        "sessions",
        "show",
        "telegram:topic:-1001:201",
        "--all",
        "--raw",
    ],
    &["sessions", "export", "telegram:topic:-1001:201", "--all"],
    &["sessions", "search", "--agent", "rose", "vault"],
    &["config", "check"],
    &["config", "show"],
    &["config", "show", "--json"],
    &["doctor"],
    &["doctor", "--json"],
    &["doctor", "--state"],
    &["security", "check"],
    &["security", "check", "--json"],
    &["pair", "list"],
    &["people", "list"],
    &["people", "list", "--json"],
    &["people", "show", "telegram:111"],
    &["status"],
    &["status", "--json"],
    &["approvals"],
    &["approvals", "list", "--all", "--json"],
    &["queue"],
    &["queue", "--json"],
    &["job"],
    &["job", "list", "--json"],
];

/// Those that the help lists.
pub(super) fn verbs(help: &str) -> Vec<String> {
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let verbs: Vec<String> = listed
        .filter_map(|line| Some(line.strip_prefix("  ")?.split(' ').next()?.to_owned()))
        .collect();
    assert!(verbs.len() > 5, "{help}");
    verbs
}

async fn nothing_on_the_command_line(home: &Path, verbs: &[&[&str]]) {
    for arguments in verbs {
        let ran = run(home, arguments).await;
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            !told.contains("unrecognized") && !told.contains("unexpected argument"),
            "{arguments:?}: {told}"
        );
        assert!(
            !told.contains(SECRET) && !told.contains(KEY),
            "{arguments:?}: {told}"
        );
    }
}

/// What tells nothing about agents, and what only changes something.
const OTHER_VERBS: &[&str] = &[
    "run",
    "chat",
    "ask",
    "init",
    "setup",
    "remember",
    "forget",
    "allow",
    "pause",
    "resume",
    "pin",
    "new",
    "stop",
    "reload",
    // Keys to the HTTP door, and nobody's words.
    "dashboard",
    "token",
    "help",
    // Has a wall of its own: no form of it has words of anybody.
    "logs",
    "version",
    "completions",
    "man",
    // Both have everything in a file, and print nothing of it.
    "backup",
    "restore",
];

/// S0.2, S1.61 on the command line: who asks about one agent hears of one agent.
#[tokio::test]
async fn the_command_line_keeps_agents_apart() {
    let walls = Walls::new(TEAM).await;
    walls.says(&walls.rose, "hello").await;
    let home = walls.house.home.path();
    for verb in verbs(&run(home, &["--help"]).await.stdout) {
        let has_case = VERBS.iter().any(|arguments| arguments[0] == verb)
            || OTHER_VERBS.contains(&verb.as_str());
        assert!(
            has_case,
            "`parlor {verb}` has no case in walls/outside.rs: could it show something of another agent?"
        );
    }
    nothing_on_the_command_line(home, VERBS).await;
    let of_ada = run(home, &["recall", "--agent", "ada", "vault"])
        .await
        .stdout;
    assert!(
        of_ada.contains(SECRET),
        "there is something to find: {of_ada}"
    );
    walls.end().await;
}

/// S1.61 by export. Also not of those whose memories she reads.
#[tokio::test]
async fn a_package_has_nothing_of_another_agent() {
    let walls = Walls::new(&TEAM.replace(
        "[agents.rose]\n",
        "[agents.rose]\nread_memory_from = [\"ada\"]\n",
    ))
    .await;
    // Both have spoken here, and Ada has said it aloud.
    let place = walls.house.telegram.forum(-1001).topic(301, "Both");
    walls.says(&place, "/agent ada").await;
    walls
        .house
        .model
        .enqueue(Script::text(format!("It is {SECRET}.")));
    walls.says(&place, "the code please").await;
    walls.says(&place, "/agent rose").await;
    walls.house.model.enqueue(Script::text("Roses are red."));
    walls.says(&place, "a poem please").await;
    let home = walls.house.home.path();
    let package = home.join("rose.tar.gz");
    let ran = run(
        home,
        &[
            "agent",
            "export",
            "rose",
            "--output",
            package.to_str().expect("text"),
        ],
    )
    .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(format!("{}{}", ran.stdout, ran.stderr), @"
    rose is in HOME/rose.tar.gz: 6 files, 0 memories, 3 messages.
    left out, because it is a link or no plain file: skills/link
    left out, because it is a link or no plain file: skills/poems/link.md
    left out, because it is a link or no plain file: workspace/deep/hard.md
    left out, because it is a link or no plain file: workspace/far.md
    left out, because it is a link or no plain file: workspace/hard.md
    left out, because it is a link or no plain file: workspace/link
    left out, because it is a link or no plain file: workspace/link.md
    The file has everything that people wrote to it. Keep it as safe as the home folder.
    ");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&package).expect("it is there"))
        .read_to_end(&mut bytes)
        .expect("it unpacks");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("Roses are red.") && text.contains("a folder of Rose's own"));
    assert!(!text.contains(SECRET) && !text.contains(KEY));
    walls.end().await;
}

/// S0.19, S1.16, S1.17: the next one of that name begins with nothing.
#[tokio::test]
async fn a_new_agent_knows_nothing_of_a_removed_one_of_the_same_name() {
    let walls = Walls::new(TEAM).await;
    walls
        .says(&walls.rose, "/remember --agent A poem about a vault")
        .await;
    let Walls { house, gateway, .. } = walls;
    house.close(gateway).await;
    let home = house.home.path();
    for arguments in [
        &["agent", "remove", "ada"][..],
        &["agent", "add", "ada", "--personality", "Quiet."],
    ] {
        let ran = run(home, arguments).await;
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    }
    let verbs: &[&[&str]] = &[
        &["recall", "--agent", "ada", "vault"],
        &["memory", "list", "--agent", "ada"],
        &["memory", "export"],
        &["memory", "versions", "--agent", "ada"],
        &["agent", "prompt", "ada"],
        &["agent", "info", "ada"],
        &["agent", "list"],
        &["skill", "list", "--agent", "ada"],
    ];
    nothing_on_the_command_line(home, verbs).await;
    assert_eq!(
        ask(
            home,
            "SELECT count(*) FROM memories WHERE visibility = 'archived' AND source = 'saved'"
        ),
        "12",
        "they are kept"
    );

    assert!(
        run(home, &["recall", "--agent", "rose", "vault"])
            .await
            .stdout
            .ends_with(": A poem about a vault\n"),
        "hers stay"
    );

    let asked = house.model.journal().len();
    let gateway = house.open().await;
    let place = house.telegram.forum(-1001).topic(401, "New");
    place.says(ALICE, "/agent ada").await;
    let calls = [
        ("memory_search", json!({ "query": "vault" })),
        ("file_list", json!({})),
        ("file_read", json!({ "path": "vault.md" })),
        ("skill", json!({ "name": "vault" })),
        ("transcript_search", json!({ "words": "vault" })),
    ];
    house.model.enqueue(Script::ToolCalls(
        calls
            .map(|(name, arguments)| (name.to_owned(), arguments))
            .to_vec(),
    ));
    place.says(ALICE, "what is the vault code").await;
    house.settled(&gateway).await;
    let journal = house.model.journal();
    assert!(journal.len() > asked + 1 && journal[asked].system.starts_with("You are Ada"));
    for request in &journal[asked..] {
        assert!(!request.raw.to_string().contains(SECRET), "{}", request.raw);
    }
    gateway.shutdown().await;
}

/// The real program with everything it can log: no words of people, agents, tools or memories, and
/// no key.
#[tokio::test]
async fn the_log_has_no_words_of_anybody() {
    let log = log_of_everything("").await;
    for expected in ["tool called", "the turn failed", "refused:", "queued"] {
        assert!(
            log.contains(expected),
            "this log would show it, {expected}: {log}"
        );
    }
}

/// The same for programs, and in a file.
#[tokio::test]
async fn no_form_of_the_log_has_words_of_anybody() {
    let log = log_of_everything("[log]\nformat = \"json\"\nfile = \"logs/parlor.log\"\n").await;
    assert!(
        log.matches("\"message\":\"tool called\"").count() > 10,
        "on stderr and in the file: {log}"
    );
}

/// Everything that the real program logs of a busy house, on stderr and in the file if there is one.
async fn log_of_everything(settings: &str) -> String {
    let house = House::new(&format!("{TEAM}{settings}")).await;
    super::plant(&house);
    house
        .model
        .answer_with(|_| Script::text(format!("I see, {SECRET}.")));
    let log = house.home.path().join("debug.log");
    let mut command = parlor(house.home.path());
    command
        .arg("run")
        .env("PARLOR_LOG", "trace")
        .stderr(std::fs::File::create(&log).expect("a file"))
        .kill_on_drop(true);
    let mut process = command.spawn().expect("it starts");
    let ada = house.telegram.forum(-1001).topic(101, "Ada");
    let calls = [
        ("file_read", json!({ "path": "vault.md" })),
        ("file_read", json!({ "path": format!("../{SECRET}") })),
        (
            "file_write",
            json!({ "path": format!("{SECRET}.md"), "content": SECRET }),
        ),
        ("memory_search", json!({ "query": "vault" })),
        ("memory_save", json!({ "text": SECRET })),
        (
            "memory_save",
            json!({ "text": SECRET, "visibility": SECRET }),
        ),
        ("memory_note", json!({ "text": SECRET })),
        (
            "web_fetch",
            json!({ "url": format!("http://127.0.0.1/{SECRET}") }),
        ),
        ("skill", json!({ "name": SECRET })),
        (SECRET, json!({})),
    ];
    house.model.enqueue(Script::ToolCalls(
        calls
            .map(|(name, arguments)| (name.to_owned(), arguments))
            .to_vec(),
    ));
    ada.says(ALICE, &format!("the vault code {SECRET}")).await;
    ada.wait_for_sent(1).await;
    house
        .model
        .enqueue(Script::status(400, &format!("{SECRET} {KEY}")));
    ada.says(ALICE, &format!("again {SECRET}")).await;
    ada.wait_for_sent(2).await;
    house.model.enqueue(Script::tool_call(
        "file_write",
        json!({ "path": "x.md", "content": SECRET }),
    ));
    ada.says(BOB, &format!("a guest says {SECRET}")).await;
    ada.wait_for_sent(3).await;
    ada.says(ALICE, &format!("/remember {SECRET}")).await;
    ada.wait_for_sent(4).await;
    ada.says(ALICE, &format!("/agent {SECRET}")).await;
    ada.wait_for_sent(5).await;
    // Names of topics, of people and of files, and a file that is not fetched.
    let named = house.telegram.forum(-1001).topic(777, SECRET);
    named.says(ALICE, "/agent rose").await;
    named.wait_for_sent(1).await;
    let mallory = User::person(BOB.id, SECRET);
    named.says(mallory, "@parlor_bot hello").await;
    named.wait_for_sent(2).await;
    let document =
        json!({ "file_id": "gone", "file_unique_id": "g", "file_name": format!("{SECRET}.pdf") });
    let sent = named.says(ALICE, "").without("text");
    sent.with("document", document)
        .with("caption", json!("@parlor_bot look"))
        .await;
    named.wait_for_sent(3).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let pid = process.id().expect("it runs").to_string();
    assert!(
        tokio::process::Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .await
            .expect("kill is there")
            .success()
    );
    assert!(process.wait().await.expect("it ends").success());

    let kept = std::fs::read_to_string(house.home.path().join("logs/parlor.log"));
    let log = std::fs::read_to_string(log).expect("text") + &kept.unwrap_or_default();
    for words in [SECRET, KEY, house.telegram.token()] {
        let line = log.lines().find(|line| line.contains(words));
        assert_eq!(line, None);
    }
    log
}
