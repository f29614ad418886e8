//! Hermes: profiles, routes, chains of sessions, rows of another profile in the first database.

use insta::assert_snapshot;

use super::{Source, state};
use crate::cli::fresh_home;
use crate::support::house::ask;
use crate::tenants::{config, fine};

const CONFIG: &str = r#"
_config_version: 33
model: { default: claude-opus-4.6, provider: anthropic }
multiplex_profiles: true
profile_routes:
  - { name: all of it, platform: telegram, chat_id: "-1001", profile: coder }
  - { name: the topic, platform: telegram, chat_id: -1001, thread_id: 7, profile: rose }
  - { name: garden, platform: discord, guild_id: "8001", profile: coder }
  - { name: nobody, platform: telegram, chat_id: "55", profile: gone }
  - { name: off, platform: telegram, chat_id: "-1002", profile: rose, enabled: false }
telegram: { require_mention: false, allow_admin_from: [111], channel_prompts: { "-1001": "be brief" } }
personalities: { pirate: arr }
"#;

/// Older databases lack columns; this one has neither `rewind_count` nor `archived`.
const STATE: &str = r#"
    CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT,
        thread_id TEXT, origin_json TEXT, parent_session_id TEXT, started_at REAL, profile_name TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL, observed INTEGER, active INTEGER);
    INSERT INTO sessions VALUES
        ('dm', 'telegram', '111', 'agent:main:telegram:dm:111', '111', 'dm', NULL, NULL, NULL, 1788000000.5, NULL),
        ('t1', 'telegram', '111', 'agent:rose:telegram:group:-1001:7', '-1001', 'group', '7', NULL, NULL, 1788000001.0, 'rose'),
        ('t2', 'telegram', '111', 'agent:rose:telegram:group:-1001:7', '-1001', 'group', '7', NULL, 't1', 1788000002.0, 'rose'),
        ('cli', 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1788000003.0, NULL),
        ('job', 'cron', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1788000004.0, NULL);
    INSERT INTO messages (session_id, role, content, timestamp, observed, active) VALUES
        ('dm', 'user', 'hello', 1788000000.5, 0, 1), ('dm', 'assistant', 'hi', 1788000001, 0, 1),
        ('dm', 'user', 'taken back', 1788000002, 0, 0), ('dm', 'tool', 'ok', 1788000002, 0, 1),
        ('t1', 'user', 'in the topic', 1788000003, 0, 1), ('t1', 'user', 'overheard', 1788000003, 1, 1),
        ('t2', 'assistant', 'after the compaction', 1788000004, 0, 1), ('cli', 'user', 'at the terminal', 1788000005, 0, 1),
        ('job', 'user', 'scheduled', 1788000006, 0, 1);
    INSERT INTO messages (session_id, role, content, timestamp, observed, active)
        VALUES ('t2', 'user', char(0) || 'json:[{"type":"text","text":"with a picture"},{"type":"image_url"}]', 1788000005, 0, 1);"#;

pub(super) fn source() -> Source {
    let source = Source::new(".hermes");
    source.write("config.yaml", CONFIG);
    source.write(".env", "TELEGRAM_BOT_TOKEN=1:hidden\nTELEGRAM_ALLOWED_USERS=111,@bob\nANTHROPIC_API_KEY=sk-hidden\nDISCORD_ALLOWED_ROLES=77\n");
    source.write("SOUL.md", "I am Hermes.\n");
    source.write(
        "memories/MEMORY.md",
        "Likes tea.\n§\nHas a cat\nnamed Tom.\n§\nLives in Bonn.\n",
    );
    source.write("memories/USER.md", "Ann.\n");
    source.write(
        "skills/research/arxiv/SKILL.md",
        "---\nname: arxiv\ndescription: Papers\n---\nRead.\n",
    );
    source.write("skills/research/arxiv/data/list.txt", "x\n");
    source.write(
        "skills/.archive/old/SKILL.md",
        "---\nname: old\ndescription: Old\n---\n",
    );
    source.write(
        "platforms/pairing/telegram-approved.json",
        r#"{"222":{"user_name":"Bob","approved_at":1788000000}}"#,
    );
    source.write("cron/jobs.json", r#"{"jobs":[{"id":"a1","name":"Mail","prompt":"x","schedule":{"kind":"cron","expr":"0 8 * * *"}},{"id":"a2","name":"Script","script":"run.sh"}]}"#);
    source.write("profiles/coder/SOUL.md", "Coder.\n");
    source.write("profiles/rose/SOUL.md", "Rose.\n");
    source.write(
        "profiles/rose/config.yaml",
        "memory: { memory_enabled: false, provider: mem0 }\nmodel: [broken",
    );
    drop(source.database("state.db", STATE));
    source
}

/// S4.10, S4.45
#[tokio::test]
async fn profiles_become_agents_with_memory_soul_and_skills() {
    let (home, source) = (fresh_home().await, source());
    let home = home.path();
    let report = source.report(home, &["--yes", "--as", "rose=lily"]).await;
    assert_snapshot!(report.lines("agent"), @"
    done: default → main (main is here already, and gets what it does not have)
    done: coder → coder (1 file)
    done: rose → lily (1 file; set in [agents.lily] what it needs of: name)
    ");
    assert_snapshot!(report.lines("binding"), @"
    done: route the topic → telegram:topic:-1001:7 → lily ()
    done: route all of it → telegram:group:-1001 → coder ()
    skipped: route nobody →  (no agent `gone` is carried)
    done: route garden → discord:guild:8001 → coder ()
    skipped: route 4 →  (it is switched off there)
    ");
    assert_snapshot!(report.lines("conversation"), @"
    done: agent:main:telegram:dm:111 → telegram:dm:111 (2 messages)
    done: cli →  (1 message, kept with main for exports: it was held in no place of Telegram or Discord)
    done: agent:rose:telegram:group:-1001:7 → telegram:topic:-1001:7 (3 messages)
    skipped: default: 3 rows of tools, and of talk among people →  (the words of people to the agent, and its own, are carried)
    ");
    assert_snapshot!(report.lines("person"), @"
    done: telegram:222 → member ()
    done: telegram:111 → member ()
    skipped: telegram: @bob →  (only a person's number can be carried)
    ");
    assert_snapshot!(report.lines("schedule"), @"
    manual: default: Mail →  (it comes as the job `mail`, at rest: look at it, then give it a place and `enabled = true`)
    skipped: default: Script →  (it runs a program, and a job gives a task to an agent; it is kept in workspace/imported/hermes/schedules.json)
    ");
    assert_snapshot!(report.lines("secret"), @"
    manual: TELEGRAM_BOT_TOKEN in .env →  (set TELEGRAM_BOT_TOKEN and name it in [telegram], or import with --with-secrets)
    manual: ANTHROPIC_API_KEY in .env →  (set ANTHROPIC_API_KEY and name it in [providers.anthropic], or import with --with-secrets)
    ");
    assert!(!report.0.to_string().contains("hidden"));
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap_or_default();
    assert_eq!(read("agents/main/SOUL.md"), "I am Hermes.\n");
    assert_eq!(
        read("agents/main/MEMORY.md"),
        "Likes tea.\n\nHas a cat\nnamed Tom.\n\nLives in Bonn.\n"
    );
    assert_eq!(read("agents/main/skills/arxiv/data/list.txt"), "x\n");
    assert!(!home.join("agents/main/skills/old").exists());
    assert_eq!(read("agents/lily/SOUL.md"), "Rose.\n");
    let added = config(home);
    assert!(added.contains("match = \"telegram:topic:-1001:7\"\nagent = \"lily\"\nusers = [\"telegram:111\", \"telegram:222\"]"), "{added}");
    assert!(
        added.contains("match = \"discord:guild:8001\"\nagent = \"coder\"\nroles = [\"77\"]"),
        "{added}"
    );
    let said = "SELECT group_concat(text, '; ') FROM messages JOIN places ON places.id = place_id WHERE key = ";
    assert_snapshot!(ask(home, &format!("{said} 'telegram:topic:-1001:7'")), @"
    in the topic; after the compaction; with a picture
    [picture]
    ");
    assert_snapshot!(ask(home, &format!("{said} 'telegram:dm:111'")), @"hello; hi");
    fine(home, &["config", "check"]).await;
    let before = state(home);
    source.report(home, &["--yes"]).await;
    assert_eq!(state(home), before);
}

/// A damaged search index makes every statement fail.
#[tokio::test]
async fn a_broken_schema_is_named_with_the_remedy() {
    let (home, source) = (fresh_home().await, source());
    let database = source.database("state.db", "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE nonsense'); PRAGMA writable_schema = OFF;");
    drop(database);
    let report = source.report(home.path(), &["--yes"]).await;
    assert!(
        report
            .lines("file")
            .contains("let its own program repair it first"),
        "{}",
        report.lines("file")
    );
    assert!(
        home.path().join("agents/coder/SOUL.md").exists(),
        "the rest is carried"
    );
}
