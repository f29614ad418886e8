//! What can be seen by reading: that the code has one way for each thing, and that the book says
//! what is promised.

use std::path::Path;

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ALICE;

/// The source without its tests, by path below `src/`.
fn source() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut open) = (Vec::new(), vec![root.clone()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a folder").flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(&root)
                .expect("below it")
                .to_string_lossy()
                .into_owned();
            let is_test = name.ends_with("tests.rs") || name.contains("tests/");
            match path.is_dir() {
                true => open.push(path),
                false if is_test => {}
                false => files.push((
                    name,
                    without_tests(&std::fs::read_to_string(&path).expect("text")),
                )),
            }
        }
    }
    assert!(
        files.len() > 100,
        "{} files are too few to say anything",
        files.len()
    );
    files.sort();
    files
}

fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Files that have one of these words in them.
fn files_with(words: &[&str]) -> Vec<String> {
    let has = |(_, text): &(String, String)| words.iter().any(|word| text.contains(word));
    source()
        .into_iter()
        .filter(has)
        .map(|(name, _)| name)
        .collect()
}

/// S2.46, the same seen from the store: whoever asked, a turn is about a row of the inbox.
#[tokio::test]
async fn every_turn_is_about_a_row_of_the_inbox() {
    let house = House::new(
        "[access]\nowners = [\"telegram:111\"]\n[agents.main]\n[agents.ada]\n[peer_groups.desk]\nmembers = [\"main\", \"ada\"]\n",
    )
    .await;
    let gateway = house.open().await;
    let calls = [
        ("spawn", json!({ "task": "count apples" })),
        (
            "agent_send",
            json!({ "agent": "ada", "text": "count pears" }),
        ),
        ("spawn", json!({ "task": "count plums", "report": true })),
    ];
    house.model.enqueue_when(
        "go on",
        Script::ToolCalls(
            calls
                .map(|(name, arguments)| (name.to_owned(), arguments))
                .to_vec(),
        ),
    );
    house.model.reply_when("count ", "seven");
    house.telegram.dm(ALICE).says("go on").await;
    house.settled(&gateway).await;
    let turns = house.ask("SELECT count(*) FROM turns");
    assert!(
        turns.parse::<u32>().expect("a number") >= 5,
        "{turns}: one of a person, three that it asked for, one report"
    );
    assert_eq!(
        house.ask(
            "SELECT count(DISTINCT inbox.id) FROM turns JOIN inbox ON inbox.id = turns.inbox_id"
        ),
        turns
    );
    gateway.shutdown().await;
}

/// S0.40 for memories and skills: a tool has the agent of its turn in its scope and can look up no
/// other. Only an operator asks for memories of nobody in particular, on the command line or by the API.
#[test]
fn nothing_in_a_turn_reaches_a_memory_or_a_skill_without_its_agent() {
    let rows = files_with(&[
        "FROM memories",
        "INTO memories",
        "UPDATE memories",
        "JOIN memories",
    ]);
    assert!(
        rows.iter().all(|name| name.starts_with("agents/memory/")),
        "{rows:?} reach rows past the scope"
    );
    assert_eq!(
        files_with(&["Scope::Global"]),
        [
            "agents/memory/scope.rs",
            "cli/memory.rs",
            "cli/recall.rs",
            "operations/memories.rs"
        ]
    );
    // Exports and `parlor forget` are the operator's; everything else reads for a person and a place.
    assert_eq!(
        files_with(&[".everything("]),
        [
            "cli/memory.rs",
            "operations/forgetting.rs",
            "operations/memories.rs",
            "tenants/export_import.rs"
        ]
    );
    assert_eq!(
        files_with(&["Reader::operator("]),
        [
            "cli/memory.rs",
            "cli/remember.rs",
            "doctor/security.rs",
            "operations/forgetting.rs",
            "operations/memories.rs"
        ]
    );
    let in_a_turn = |name: &String| name.starts_with("tools/") || name.starts_with("turn/");
    let looking_up: Vec<String> = files_with(&["Registry"])
        .into_iter()
        .filter(in_a_turn)
        .collect();
    assert_eq!(
        looking_up,
        [] as [&str; 0],
        "an agent that was looked up may be another one"
    );
    assert_eq!(arguments_of("memories.of("), ["agent", "&scope.agent"]);
    assert_eq!(arguments_of("skills::read("), ["&agent"]);
}

/// The first argument of each call on the way of a turn.
fn arguments_of(call: &str) -> Vec<String> {
    let on_the_way = |name: &str| {
        ["answering/", "subagents/", "tools/", "turn/"]
            .iter()
            .any(|room| name.starts_with(room))
    };
    let files = source().into_iter().filter(|(name, _)| on_the_way(name));
    let arguments = |(_, text): (String, String)| {
        // A call may stand on several lines.
        let text: String = text.split_whitespace().collect();
        let after = text
            .split(call)
            .skip(1)
            .map(|rest| rest.split([',', ')']).next().unwrap_or_default().to_owned());
        after.collect::<Vec<String>>()
    };
    files.flat_map(arguments).collect()
}

/// S0.57
#[test]
fn the_book_states_the_trust_model() {
    // As one line, however it is wrapped.
    let security = include_str!("../../docs/src/security.md")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let told = "Agents are kept apart by the process, not by encryption. They share one process, one database and one system user.";
    assert!(security.contains(told));
}
