//! Sources that somebody has prepared, or that are broken: each odd thing is named, and the rest is
//! carried.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::Source;
use crate::cli::fresh_home;
use crate::support::house::ask;
use crate::tenants::config;

/// Links out of the folder, pipes, names that are no text, huge files, ids that fold into one, names
/// that are reserved, paths in ids.
#[tokio::test]
async fn odd_things_are_named_and_the_rest_is_carried() {
    let home = fresh_home().await;
    let home = home.path();
    let elsewhere = tempfile::tempdir().expect("a folder");
    fs::write(elsewhere.path().join("secret"), "not for agents").expect("writes");
    let source = Source::new(".openclaw");
    source.write(
        "openclaw.json",
        r#"{ agents: { entries: { "Night_Desk": {}, "night desk": {}, system: {}, "../../evil": {}, "": {}, odd: { identity: { name: "x\u0000y\"]\n[access]" } } } },
             "$include": "../outside.json" }"#,
    );
    source.write("workspace-Night_Desk/SOUL.md", "one\n");
    source.write("workspace-night desk/SOUL.md", "two\n");
    source.write("workspace-odd/IDENTITY.md", "- **Name:** fine\n");
    let odd = source.path().join("workspace-odd");
    symlink(elsewhere.path().join("secret"), odd.join("SOUL.md")).expect("links");
    symlink(elsewhere.path(), odd.join("memory")).expect("links");
    fs::create_dir(odd.join("skills")).expect("makes");
    symlink(elsewhere.path(), odd.join("skills/linked")).expect("links");
    source.write(
        "workspace-odd/skills/good/SKILL.md",
        "---\nname: good\ndescription: Good\n---\nx\n",
    );
    fs::write(
        odd.join("skills/good").join(OsStr::from_bytes(b"\xff\xfe")),
        "x",
    )
    .expect("writes");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        odd.join("USER.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    fs::File::create(odd.join("MEMORY.md"))
        .expect("makes")
        .set_len(100 * 1024 * 1024)
        .expect("a hole");
    fs::write(odd.join("AGENTS.md"), b"\xff not text").expect("writes");
    source.database(
        "agents/odd/agent/openclaw-agent.sqlite",
        r#"CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB);
           INSERT INTO transcript_events VALUES ('a', 1, '{"type":"message","message":{"role":"user","content":"kept"}}', NULL),
             ('a', 2, '{"type":"message"', NULL), ('a', 3, NULL, x'28b52ffd00'), ('a', 4, NULL, NULL), ('a', 'x', '{}', NULL);"#,
    );
    source.write(
        "agents/late/agent/openclaw-agent.sqlite",
        "this is no database at all, but it is long enough to look at",
    );
    let report = source.report(home, &["--yes"]).await;
    let agents = report.lines("agent");
    insta::assert_snapshot!(agents, @"
    done: Night_Desk → night-desk (an id cannot be `Night_Desk` here; 1 file)
    done: night desk → night-desk-2 (`night-desk` is taken here; 1 file)
    done: system → system-2 (`system` is a reserved word and cannot be an agent id; nothing besides its settings)
    done: ../../evil → evil (an id cannot be `../../evil` here; nothing besides its settings)
    done:  → agent (an id cannot be `` here; nothing besides its settings)
    done: odd → odd (2 files, 1 skill)
    done: late → late (nothing besides its settings)
    ");
    let files = report.lines("file").replace(&source.text(), "SOURCE");
    insta::assert_snapshot!(files, @"
    skipped: ../outside.json →  (this included file cannot be read)
    skipped: SOURCE/workspace-odd/SOUL.md →  (it is a link or no plain file, and links are not followed)
    skipped: SOURCE/workspace-odd/USER.md →  (it is a link or no plain file, and links are not followed)
    skipped: SOURCE/workspace-odd/memory →  (it is a link or no plain file, and links are not followed)
    skipped: SOURCE/workspace-odd/skills/linked →  (it is a link or no plain file, and links are not followed)
    skipped: SOURCE/workspace-odd/skills/good/�� →  (its name is not UTF-8)
    skipped: SOURCE/agents/odd/agent/openclaw-agent.sqlite →  (4 rows of the table transcript_events cannot be read)
    skipped: SOURCE/agents/late/agent/openclaw-agent.sqlite →  (this database cannot be read: file is not a database)
    skipped: SOURCE/workspace-odd/MEMORY.md →  (it has 104857600 bytes, and at most 16777216 are read)
    ");
    let everything = ask(
        home,
        "SELECT coalesce(group_concat(text), '') FROM messages",
    );
    assert_eq!(everything, "kept");
    let mut open = vec![home.join("agents")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("reads").flatten() {
            let path = entry.path();
            assert!(!path.is_symlink(), "{path:?}");
            if path.is_dir() {
                open.push(path);
            } else {
                let text = fs::read(&path).expect("reads");
                assert!(
                    !String::from_utf8_lossy(&text).contains("not for agents"),
                    "{path:?}"
                );
            }
        }
    }
    let written = config(home);
    assert!(!written.contains("\n[access]\n\"") && written.matches("\n[access]").count() <= 1);
}

/// A failure in the middle leaves the agents before it, nothing of the one that failed, and says so.
#[tokio::test]
async fn a_failure_is_named_and_leaves_nothing_half_made() {
    let home = fresh_home().await;
    let home = home.path();
    crate::tenants::fine(home, &["agent", "list"]).await;
    let source = Source::new(".openclaw");
    source.write(
        "openclaw.json",
        "{ agents: { entries: { one: {}, two: {}, three: {} } } }",
    );
    for name in ["one", "two", "three"] {
        source.write(&format!("workspace-{name}/SOUL.md"), name);
    }
    let connection = rusqlite::Connection::open(home.join("parlor.db")).expect("opens");
    connection
        .execute_batch("CREATE TRIGGER breaks BEFORE INSERT ON agents WHEN new.slug = 'two' BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END;")
        .expect("a trigger");
    let ran = source.import(home, &["--yes"]).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout
            .contains("Could not be carried:\n  agent        two → two"),
        "{}",
        ran.stdout
    );
    assert!(home.join("agents/one/SOUL.md").exists() && home.join("agents/three/SOUL.md").exists());
    assert!(!home.join("agents/two").exists());
    assert!(!config(home).contains("[agents.two]"));
    connection
        .execute_batch("DROP TRIGGER breaks")
        .expect("drops");
    let again = source.report(home, &["--yes"]).await;
    assert_eq!(again.count("done"), 1, "{:#}", again.0);
    assert!(home.join("agents/two/SOUL.md").exists());
}
