use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::edit::{EditError, replaced};
use crate::access::Role;
use crate::agents::{Agent, Registry};
use crate::config::{Secrets, Source, draft};
use crate::domain::{AgentUid, SessionKey};
use crate::models::ToolCall;
use crate::sandbox::in_process;
use crate::tools::tests::without_marks;
use crate::tools::{Effect, Outcome, Results, Scope, ToolBox};

/// Two agents and a shared folder. Rose may read Ada's files; Ada may change Rose's.
struct House {
    home: TempDir,
    registry: Registry,
}

const CONFIG: &str = r#"
[agents.rose]
workspace_mb = 1
access = { read = ["ada"] }
[agents.ada]
access = { write = ["rose"] }
[agents.bob]
[shared_paths.handbook]
read = ["rose"]
write = ["ada"]
"#;

fn house() -> House {
    let home = tempfile::tempdir().unwrap();
    let source = Source {
        path: "config.toml".into(),
        text: CONFIG.into(),
    };
    let config = draft(source, home.path(), Secrets::WherePresent)
        .finish()
        .unwrap();
    let uids = config
        .agents
        .iter()
        .map(|agent| (agent.id.clone(), AgentUid(uuid::Uuid::new_v4())))
        .collect();
    let registry = Registry::new(&config, home.path(), &uids);
    House { home, registry }
}

impl House {
    fn agent(&self, id: &str) -> Arc<Agent> {
        self.registry.find(id).unwrap().clone()
    }

    async fn outcome(&self, id: &str, tool: &str, arguments: serde_json::Value) -> Outcome {
        self.outcome_for(Role::Owner, id, tool, arguments).await
    }

    async fn outcome_for(
        &self,
        role: Role,
        id: &str,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Outcome {
        self.outcome_of("telegram:7", role, id, tool, arguments)
            .await
    }

    async fn outcome_of(
        &self,
        person: &str,
        role: Role,
        id: &str,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Outcome {
        self.asked((person, role), "telegram:dm:7", id, tool, arguments)
            .await
    }

    async fn asked_by(
        &self,
        role: Role,
        place: &str,
        id: &str,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Outcome {
        self.asked(("telegram:7", role), place, id, tool, arguments)
            .await
    }

    async fn asked(
        &self,
        (person, role): (&str, Role),
        place: &str,
        id: &str,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Outcome {
        let agent = self.agent(id);
        let place: SessionKey = place.parse().unwrap();
        let scope = Scope {
            agent: agent.clone(),
            place,
            former_place: None,
            person: person.parse().unwrap(),
            ids: vec![person.parse().unwrap(), "discord:8".parse().unwrap()],
            role,
            owns_house: role == Role::Owner,
            parent: None,
            told_in: None,
            is_job: false,
            people: Default::default(),
            results: Arc::new(Results::new(self.home.path())),
            read: Default::default(),
        };
        let call = ToolCall {
            id: "1".into(),
            name: tool.into(),
            arguments,
        };
        ToolBox::standard()
            .view(&agent, role)
            .call(&scope, &call)
            .await
    }

    async fn rose(&self, tool: &str, arguments: serde_json::Value) -> String {
        let told = self.outcome("rose", tool, arguments).await.text;
        without_marks(&self.agent("rose"), &told)
    }

    fn at(&self, agent: &str, path: &str) -> std::path::PathBuf {
        self.agent(agent).files.own().root().join(path)
    }

    fn put(&self, agent: &str, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(agent, path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

#[tokio::test]
async fn files_are_written_read_edited_listed_found_and_deleted() {
    let house = house();
    assert_eq!(
        house
            .rose(
                "file_write",
                json!({"path": "notes/a.md", "content": "one\ntwo\n"})
            )
            .await,
        "Wrote 8 bytes to `notes/a.md`."
    );
    assert_eq!(
        house.rose("file_read", json!({"path": "notes/a.md"})).await,
        "one\ntwo\n"
    );
    assert_eq!(
        house
            .rose(
                "file_read",
                json!({"path": "notes/a.md", "start_line": 2, "lines": 1})
            )
            .await,
        "two\n"
    );
    assert_eq!(
        house
            .rose(
                "file_edit",
                json!({"path": "notes/a.md", "old": "two", "new": "2"})
            )
            .await,
        "Replaced it in `notes/a.md`."
    );
    assert_eq!(
        house.rose("file_list", json!({})).await,
        "notes/\n[also open to you: @ada/ (read), shared/handbook/ (read)]"
    );
    assert_eq!(
        house.rose("file_list", json!({"path": "notes"})).await,
        "notes/a.md  6"
    );
    assert_eq!(
        house.rose("file_search", json!({"glob": "*.md"})).await,
        "notes/a.md"
    );
    assert_eq!(
        house.rose("file_search", json!({"pattern": "^\\d"})).await,
        "notes/a.md:2: 2"
    );
    assert_eq!(
        house
            .rose(
                "file_search",
                json!({"path": "notes/a.md", "pattern": "(?i)ONE"})
            )
            .await,
        "notes/a.md:1: one"
    );
    assert_eq!(
        house
            .rose("file_delete", json!({"path": "notes/a.md"}))
            .await,
        "Deleted `notes/a.md`."
    );
    assert_eq!(
        house.rose("file_read", json!({"path": "notes/a.md"})).await,
        "`notes/a.md` is not there."
    );
    assert_eq!(
        house.rose("file_list", json!({"path": "notes"})).await,
        "(nothing is in it)"
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_said_plainly() {
    let house = house();
    house.put("rose", "a.md", "x x");
    let check = async |tool: &str, arguments: serde_json::Value, expected: &str| {
        assert_eq!(
            house.rose(tool, arguments.clone()).await,
            expected,
            "{tool} {arguments}"
        );
    };
    check(
        "file_read",
        json!({}),
        "The arguments do not fit: missing field `path`. Nothing was done.",
    )
    .await;
    check(
        "file_edit",
        json!({"path": "a.md", "old": "x", "new": "y"}),
        "`a.md` is unchanged: `old` is in it 2 times. Give more of what is around it, or set `all`.",
    )
    .await;
    check(
        "file_edit",
        json!({"path": "a.md", "old": "z", "new": "y"}),
        "`a.md` is unchanged: `old` is not in it. Read the file again: it must match exactly, spaces and line breaks included.",
    )
    .await;
    check(
        "file_edit",
        json!({"path": "b.md", "old": "z", "new": "y"}),
        "`b.md` is not there.",
    )
    .await;
    check(
        "file_search",
        json!({"pattern": "("}),
        "The pattern does not work: regex parse error:\n    (\n    ^\nerror: unclosed group",
    )
    .await;
    check(
        "file_search",
        json!({"glob": "["}),
        "The glob does not work: error parsing glob '[': unclosed character class; missing ']'.",
    )
    .await;
    check(
        "file_search",
        json!({}),
        "Give a `glob`, a `pattern`, or both.",
    )
    .await;
    check(
        "file_list",
        json!({"path": "a.md"}),
        "`a.md` is not a folder, or goes through something that is none.",
    )
    .await;
    check(
        "file_write",
        json!({"path": "b", "content": "x".repeat(1_100_000)}),
        "`b` does not fit: the workspace may hold 1 MB and has 1 MB in it. Delete something first.",
    )
    .await;
    check(
        "file_delete",
        json!({"path": "."}),
        "`.` is a folder, not a file.",
    )
    .await;
}

/// S3.11, S3.12, S3.14, S4.32: one row for each kind of tool.
#[tokio::test]
async fn a_sibling_is_reached_as_far_as_the_access_list_says() {
    let house = house();
    for (agent, path) in [("ada", "a.md"), ("rose", "r.md"), ("bob", "b.md")] {
        house.put(agent, path, "words");
    }
    std::fs::create_dir_all(house.home.path().join("shared/handbook")).unwrap();
    std::fs::write(
        house.home.path().join("shared/handbook/rules.md"),
        "be kind",
    )
    .unwrap();
    let arguments = |tool: &str, path: &str| match tool {
        "file_write" => json!({"path": path, "content": "new"}),
        "file_edit" => json!({"path": path, "old": "w", "new": "W"}),
        "file_search" => json!({"path": path, "pattern": "."}),
        _ => json!({"path": path}),
    };
    let said = async |agent: &str, tool: &str, path: &str| {
        let told = house.outcome(agent, tool, arguments(tool, path)).await.text;
        without_marks(&house.agent(agent), &told)
    };

    for tool in ["file_read", "file_search", "file_send"] {
        assert!(
            !said("rose", tool, "@ada/a.md").await.contains("not open"),
            "{tool}"
        );
        assert!(
            !said("rose", tool, "shared/handbook/rules.md")
                .await
                .contains("not open"),
            "{tool}"
        );
        assert!(
            !said("ada", tool, "@rose/r.md").await.contains("not open"),
            "{tool}"
        );
        assert!(
            said("rose", tool, "@bob/b.md")
                .await
                .starts_with("`@bob` is not open to you."),
            "{tool}"
        );
        assert!(
            said("bob", tool, "@rose/r.md")
                .await
                .starts_with("`@rose` is not open to you. Only your own"),
            "{tool}"
        );
        assert!(
            said("bob", tool, "shared/handbook/rules.md")
                .await
                .contains("not open"),
            "{tool}"
        );
    }
    assert_eq!(said("rose", "file_list", "@ada").await, "@ada/a.md  5");
    assert_eq!(
        said("rose", "file_search", "@ada").await,
        "@ada/a.md:1: words"
    );
    for tool in ["file_write", "file_edit", "file_delete"] {
        assert!(
            said("rose", tool, "@ada/a.md")
                .await
                .starts_with("`@ada` is open to you for reading only"),
            "{tool}"
        );
        assert!(
            said("rose", tool, "shared/handbook/rules.md")
                .await
                .contains("reading only"),
            "{tool}"
        );
        assert!(
            said("bob", tool, "@ada/a.md").await.contains("not open"),
            "{tool}"
        );
    }
    assert_eq!(
        said("ada", "file_edit", "@rose/r.md").await,
        "Replaced it in `@rose/r.md`."
    );
    assert_eq!(
        said("ada", "file_write", "shared/handbook/new.md").await,
        "Wrote 3 bytes to `shared/handbook/new.md`."
    );
    assert_eq!(
        said("ada", "file_delete", "@rose/r.md").await,
        "Deleted `@rose/r.md`."
    );
    assert_eq!(
        std::fs::read_to_string(house.at("ada", "a.md")).unwrap(),
        "words"
    );
    assert!(
        house.home.path().join("shared/handbook/new.md").exists()
            && !house.at("rose", "r.md").exists()
    );
}

/// S1.2, S4.28: identity, soul and memory are beside the workspace, and so is everything of another
/// agent.
#[tokio::test]
async fn no_tool_reads_what_is_beside_the_workspace() {
    let house = house();
    house.put("rose", "x", "x");
    for file in [
        "agents/rose/SOUL.md",
        "agents/rose/MEMORY.md",
        "agents/bob/SOUL.md",
        "agents/bob/workspace/b.md",
        "config.toml",
    ] {
        let path = house.home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "SECRET").unwrap();
    }
    std::os::unix::fs::symlink("../../bob/workspace", house.at("rose", "bob")).unwrap();
    std::os::unix::fs::symlink("../SOUL.md", house.at("rose", "soul")).unwrap();
    let absolute = house.home.path().join("config.toml").display().to_string();
    for path in [
        "../SOUL.md",
        "../MEMORY.md",
        "../../bob/SOUL.md",
        "bob/b.md",
        "soul",
        "@bob/b.md",
        "@ada/../SOUL.md",
        &absolute,
        ".",
    ] {
        for tool in [
            "file_read",
            "file_list",
            "file_search",
            "file_send",
            "file_write",
            "file_edit",
            "file_delete",
        ] {
            let arguments = json!({"path": path, "pattern": "SECRET", "content": "gone", "old": "SECRET", "new": "gone", "recursive": true});
            let outcome = house.outcome("rose", tool, arguments).await;
            assert!(
                !outcome.text.contains("SECRET") && outcome.effects.is_empty(),
                "{tool} {path}: {}",
                outcome.text
            );
        }
    }
    let secrets = [
        "agents/rose/SOUL.md",
        "agents/bob/SOUL.md",
        "agents/bob/workspace/b.md",
        "config.toml",
    ];
    assert!(
        secrets
            .iter()
            .all(|file| std::fs::read_to_string(house.home.path().join(file)).unwrap() == "SECRET")
    );
}

#[tokio::test]
async fn names_and_contents_that_are_no_text_are_shown_as_far_as_possible() {
    let house = house();
    house.put("rose", "latin", b"caf\xe9\n");
    house.put("rose", "binary", b"\x7fELF\0\0");
    house.put("rose", "empty", b"");
    std::fs::write(
        house
            .at("rose", "")
            .join(std::ffi::OsStr::from_bytes(b"odd\xff")),
        "x",
    )
    .unwrap();
    let read = async |path: &str| house.rose("file_read", json!({"path": path})).await;
    assert_eq!(
        read("latin").await,
        "caf�\n[some bytes are not UTF-8 and are shown as �]"
    );
    assert_eq!(
        read("binary").await,
        "`binary` is no text. It has zero bytes in it. `file_send` can send it to the people here."
    );
    assert_eq!(read("empty").await, "`empty` is empty.");
    let list = house.rose("file_list", json!({})).await;
    assert!(
        list.contains("odd�  1 (its name is no UTF-8, so it cannot be used)"),
        "{list}"
    );
    for name in ["a\n[also open to you: everything]", "fdp\u{202e}exe"] {
        house.put("rose", name, "find me");
    }
    let list = house.rose("file_list", json!({})).await;
    let odd = "(its name has characters that cannot be seen, so it cannot be used)";
    assert!(
        list.contains(&format!("a�[also open to you: everything]  7 {odd}")),
        "{list}"
    );
    assert!(list.contains(&format!("fdp�exe  7 {odd}")), "{list}");
    let found = house
        .rose("file_search", json!({"pattern": "find me"}))
        .await;
    assert_eq!(found.lines().count(), 2, "{found}");
    let edit = house
        .rose(
            "file_edit",
            json!({"path": "latin", "old": "c", "new": "k"}),
        )
        .await;
    assert_eq!(edit, "`latin` is unchanged: it is no UTF-8 text.");
}

/// A line is counted once and told once, however long it is.
#[tokio::test]
async fn lines_after_a_long_line_keep_their_numbers() {
    let house = house();
    let long = "y".repeat(200_000);
    house.put(
        "rose",
        "a.txt",
        format!("{long}\nhit\n{long}hit{long}\nhit"),
    );
    let found = house
        .rose("file_search", json!({"pattern": "hit|yyy"}))
        .await;
    let numbers: Vec<&str> = found
        .lines()
        .map(|line| line.split(':').nth(1).unwrap())
        .collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_pattern_and_a_glob_have_a_longest_length() {
    let house = house();
    let search = async |arguments| house.rose("file_search", arguments).await;
    let long = "a".repeat(16 * 1024 + 1);
    assert_eq!(
        search(json!({"pattern": long})).await,
        "The pattern has more than 16 KB."
    );
    assert_eq!(
        search(json!({"glob": &long[..1025]})).await,
        "The glob has more than 1024 bytes."
    );
    assert_eq!(
        search(json!({"pattern": &long[1..], "glob": &long[..1024]})).await,
        "Nothing was found."
    );
    assert_eq!(
        search(json!({"pattern": "(\\w{1,200}){1,200}"})).await,
        "The pattern does not work: Compiled regex exceeds size limit of 1048576 bytes."
    );
    let arguments = json!({"path": "a", "content": "a".repeat(2 * 1024 * 1024)});
    assert_eq!(
        house.rose("file_write", arguments).await,
        "The tool `file_write` was not run: its arguments have more than 2 MB. Call it with less."
    );
}

/// A guest has as many searches going as a round may have, and none of them ends.
#[tokio::test]
async fn searches_of_a_guest_keep_no_other_agent_waiting() {
    let house = house();
    let needle = uuid::Uuid::new_v4().to_string();
    let held = in_process::hold(&needle);
    for agent in ["rose", "ada"] {
        house.put(agent, "notes.md", "roses\n");
    }
    let guest = |_| {
        house.outcome_for(
            Role::Guest,
            "rose",
            "file_search",
            json!({"pattern": needle}),
        )
    };
    let searches = futures_util::future::join_all((0..64).map(guest));
    let others = async {
        held.has_one().await;
        let list = house.outcome("ada", "file_list", json!({})).await;
        assert!(list.text.starts_with("notes.md  6\n"), "{}", list.text);
        // Heavy calls too, and those of the guest's own agent for other people.
        for agent in ["ada", "rose", "bob"] {
            let search = json!({"pattern": "roses|nothing"});
            let found = house.outcome(agent, "file_search", search).await.text;
            assert!(found.starts_with("notes.md:1") || agent == "bob", "{found}");
        }
        held.open();
    };
    let all = futures_util::future::join(searches, others);
    let (found, ()) = tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .expect("nothing waits for the guest");
    assert!(
        found
            .iter()
            .all(|outcome| outcome.text == "Nothing was found.")
    );
    assert_eq!(held.most_inside(), 1, "a guest has a search at a time");
}

/// Guests are many, and one person can be many guests.
#[tokio::test]
async fn all_guests_together_leave_room_for_others() {
    let house = house();
    let needle = uuid::Uuid::new_v4().to_string();
    let held = in_process::hold(&needle);
    let search = json!({"pattern": needle});
    let guest = async |number: usize| {
        let agent = ["rose", "ada", "bob"][number % 3];
        let person = format!("telegram:{}", 1000 + number);
        house
            .outcome_of(&person, Role::Guest, agent, "file_search", search.clone())
            .await
    };
    let searches = futures_util::future::join_all((0..12).map(guest));
    let others = async {
        held.has_one().await;
        for agent in ["rose", "ada", "bob"] {
            house
                .outcome(agent, "file_search", json!({"pattern": "x"}))
                .await;
        }
        held.open();
    };
    let all = futures_util::future::join(searches, others);
    let ended = tokio::time::timeout(Duration::from_secs(60), all).await;
    assert!(ended.is_ok(), "owners wait for guests");
    assert!(held.most_inside() <= 2, "{}", held.most_inside());
}

#[tokio::test]
async fn searches_and_lists_are_bounded() {
    let house = house();
    for number in 0..400 {
        house.put("rose", &format!("many/{number:03}.txt"), "hit\nhit\n");
    }
    house.put("rose", "one-line", "y".repeat(900_000) + "hit");
    let list = house.rose("file_list", json!({"path": "many"})).await;
    assert!(
        list.ends_with(
            "many/299.txt  8\n[cut: 100 more not shown; list one of the folders, or search]"
        ),
        "{list}"
    );
    let found = house.rose("file_search", json!({"pattern": "hit"})).await;
    assert!(
        found.ends_with("many/049.txt:2: hit\n[stopped early: there are more than 100 results; search more narrowly]"),
        "{found}"
    );
    let long = house
        .rose("file_search", json!({"pattern": "y{3}", "glob": "one-*"}))
        .await;
    assert!(
        long.len() < 300 && long.starts_with("one-line:1: yyy"),
        "{long}"
    );
    // The offset of a far piece is found without reading what is before it.
    std::fs::File::create(house.at("rose", "huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let huge = house
        .rose(
            "file_read",
            json!({"path": "huge", "offset": 1_u64 << 39, "length": 10}),
        )
        .await;
    assert!(huge.starts_with("`huge` is no text."), "{huge}");
    let far = house
        .rose("file_read", json!({"path": "huge", "start_line": 9}))
        .await;
    assert_eq!(
        far,
        "[lines are counted up to 64 MB; read further on with offset]"
    );
}

#[tokio::test]
async fn a_file_is_sent_as_it_was_when_it_was_asked_for() {
    let house = house();
    house.put("rose", "pictures/rose.png", b"\x89PNG\r\n\x1a\n...");
    let outcome = house
        .outcome(
            "rose",
            "file_send",
            json!({"path": "pictures/rose.png", "caption": " A rose "}),
        )
        .await;
    assert_eq!(
        outcome.text,
        "`pictures/rose.png` (11 bytes) will be sent after your answer."
    );
    house.put("rose", "pictures/rose.png", "changed");
    let [Effect::SendFile(file)] = &outcome.effects[..] else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (
            file.name.as_str(),
            file.media_type.as_str(),
            file.caption.as_deref()
        ),
        ("rose.png", "image/png", Some("A rose"))
    );
    let copy = crate::channels::outgoing::folder(house.home.path()).join(&file.stored);
    assert_eq!(std::fs::read(copy).unwrap(), b"\x89PNG\r\n\x1a\n...");

    std::fs::File::create(house.at("rose", "huge"))
        .unwrap()
        .set_len(60_000_000)
        .unwrap();
    house.put("rose", "empty", "");
    let said = async |path: &str| house.rose("file_send", json!({"path": path})).await;
    assert_eq!(
        said("huge").await,
        "`huge` is too large: 60000000 bytes, and 50000000 are possible."
    );
    assert_eq!(said("empty").await, "`empty` was not sent: it is empty.");
    assert_eq!(
        said("pictures").await,
        "`pictures` is a folder, not a file."
    );
    assert!(
        said("../MEMORY.md")
            .await
            .contains("leads out of the workspace")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..Default::default() })]

    #[test]
    fn an_edit_changes_one_place_and_nothing_else(before in "[ab\n é]{0,12}", old in "[ab\n é]{0,4}", after in "[ab\n é]{0,12}", new in "[abc]{0,4}") {
        let text = format!("{before}{old}{after}");
        match replaced(&text, &old, &new, false) {
            Ok((changed, count)) => {
                prop_assert_eq!(count, 1);
                prop_assert_eq!(changed, format!("{before}{new}{after}"));
            }
            Err(EditError::NothingToFind) => prop_assert!(old.is_empty()),
            Err(EditError::NothingToDo) => prop_assert_eq!(&old, &new),
            Err(EditError::Ambiguous(_)) => {
                let places = (0..text.len()).filter(|at| text.as_bytes()[*at..].starts_with(old.as_bytes())).count();
                prop_assert!(places > 1, "{:?} in {:?}", old, text);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn an_edit_of_all_leaves_none(text in "[ab]{0,30}", old in "[ab]{1,3}") {
        match replaced(&text, &old, "-", true) {
            Ok((changed, count)) => {
                prop_assert!(!changed.contains(&old));
                prop_assert_eq!(changed.matches('-').count(), count);
            }
            Err(error) => prop_assert_eq!((error, text.contains(&old)), (EditError::NotFound, false)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

    /// Whatever a model writes, a tool answers in words and leaves nothing outside of the
    /// workspace.
    #[test]
    fn no_argument_breaks_a_tool(
        path in "\\PC{0,20}|[a-c./@\0\n-]{0,12}|(shared|@ada|\\.\\.|a)(/[a-c.]{1,3}){0,3}",
        text in any::<String>(),
        number in any::<i64>(),
    ) {
        let house = house();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let arguments = [
            json!({ "path": path, "content": text, "old": text, "new": "x", "pattern": text, "glob": path, "caption": text }),
            json!({ "path": path, "start_line": number, "lines": number, "recursive": true, "pattern": ".", "content": number }),
            json!({ "path": path, "offset": number, "length": number, "old": number }),
            json!(text),
        ];
        for arguments in arguments {
            for (tool, _) in ToolBox::standard().names().filter(|(tool, _)| tool.starts_with("file_")) {
                let said = runtime.block_on(house.rose(tool, arguments.clone()));
                prop_assert!(!said.is_empty() && !said.contains("broke"), "{} {}: {}", tool, arguments, said);
            }
        }
        let beside: Vec<_> = std::fs::read_dir(house.home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        prop_assert!(beside.iter().all(|name| ["agents", "shared", "outgoing"].iter().any(|known| name == known)), "{:?}", beside);
    }
}

/// Finding 5: what people sent is for their place and for owners, by every file tool and also by
/// links and in other agents' workspaces.
#[tokio::test]
async fn files_of_people_are_seen_in_their_place_and_by_owners_alone() {
    let house = house();
    for agent in ["rose", "ada"] {
        let workspace = house.home.path().join(format!("agents/{agent}/workspace"));
        for place in [
            "telegram.dm.5",
            "telegram.dm.7",
            "discord.dm.8",
            "telegram.topic.-100.7",
        ] {
            let folder = workspace.join("inbox").join(place);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("letter.txt"), format!("words of {place}")).unwrap();
        }
        std::fs::write(workspace.join("inbox/2026-01-01-1-old.txt"), "words of old").unwrap();
        std::fs::write(workspace.join("notes.txt"), "words of the agent").unwrap();
        std::os::unix::fs::symlink("inbox/telegram.dm.5", workspace.join("link")).unwrap();
        std::os::unix::fs::symlink(".", workspace.join("round")).unwrap();
    }
    let found = async |role, place: &str| {
        let mut found = Vec::new();
        for (prefix, arguments) in [
            ("", json!({ "pattern": "words of" })),
            ("@ada/", json!({ "pattern": "words of", "path": "@ada" })),
        ] {
            let told = house
                .asked_by(role, place, "rose", "file_search", arguments)
                .await
                .text;
            let of = told
                .lines()
                .filter_map(|line| line.split_once("words of "))
                .map(|(_, whose)| format!("{prefix}{whose}"));
            found.extend(of);
        }
        found.sort();
        found.join(" ")
    };
    let all = "@ada/discord.dm.8 @ada/old @ada/telegram.dm.5 @ada/telegram.dm.7 @ada/telegram.topic.-100.7 @ada/the agent \
               discord.dm.8 old telegram.dm.5 telegram.dm.7 telegram.topic.-100.7 the agent";
    assert_eq!(found(Role::Owner, "telegram:dm:7").await, all);
    for role in [Role::Guest, Role::Member, Role::Admin] {
        assert_eq!(
            found(role, "telegram:dm:7").await,
            "@ada/discord.dm.8 @ada/telegram.dm.7 @ada/the agent discord.dm.8 telegram.dm.7 the agent"
        );
        assert_eq!(
            found(role, "telegram:topic:-100:7").await,
            "@ada/telegram.topic.-100.7 @ada/the agent telegram.topic.-100.7 the agent"
        );
    }
    let foreign = [
        "inbox/telegram.dm.5/letter.txt",
        "./inbox/telegram.dm.5/letter.txt",
        "link/letter.txt",
        "round/inbox/telegram.dm.5/letter.txt",
        "round/round/link/letter.txt",
        "inbox/2026-01-01-1-old.txt",
        "@ada/inbox/telegram.dm.5/letter.txt",
        "@ada/link/letter.txt",
    ];
    for path in foreign {
        for (tool, more) in [
            ("file_read", json!({})),
            ("file_list", json!({})),
            ("file_search", json!({ "pattern": "words" })),
            ("file_send", json!({})),
            ("file_write", json!({ "content": "x" })),
            ("file_edit", json!({ "old": "words", "new": "x" })),
            ("file_delete", json!({})),
        ] {
            let mut arguments = json!({ "path": path });
            arguments
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let outcome = house
                .asked_by(Role::Admin, "telegram:dm:7", "rose", tool, arguments)
                .await;
            assert!(
                !outcome.text.contains("words of")
                    && outcome.effects.is_empty()
                    && !outcome.text.contains("letter.txt  "),
                "{tool} {path}: {}",
                outcome.text
            );
            let refused = outcome.text.contains("belongs to another place")
                || outcome.text.contains("for reading only");
            assert!(refused, "{tool} {path}: {}", outcome.text);
        }
    }
    let listed = house
        .asked_by(
            Role::Member,
            "telegram:dm:7",
            "rose",
            "file_list",
            json!({ "recursive": true }),
        )
        .await
        .text;
    assert!(
        !listed.contains("dm.5")
            && !listed.contains("old")
            && listed.contains("inbox/telegram.dm.7/letter.txt"),
        "{listed}"
    );
    let through_a_link = house
        .asked_by(
            Role::Member,
            "telegram:dm:7",
            "rose",
            "file_list",
            json!({ "path": "round/inbox" }),
        )
        .await
        .text;
    assert!(
        !through_a_link.contains("dm.5") && through_a_link.contains("dm.7"),
        "{through_a_link}"
    );
    for agent in ["rose", "ada"] {
        let letter = house.home.path().join(format!(
            "agents/{agent}/workspace/inbox/telegram.dm.5/letter.txt"
        ));
        assert_eq!(
            std::fs::read_to_string(letter).unwrap(),
            "words of telegram.dm.5"
        );
    }
}
