//! OpenClaw: JSON5 with an include, topics, rows that are compressed, put away or not merged yet.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use rusqlite::{Connection, params};
use serde_json::json;

use super::{Source, state};
use crate::cli::{fresh_home, run, run_with_input};
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ALICE;
use crate::support::house::{Process, ask};
use crate::tenants::{config, fine};

const CONFIG: &str = r#"{
  // Agents are beside.
  "$include": "./agents.json5",
  channels: {
    telegram: {
      botToken: "${TELEGRAM_BOT_TOKEN}",
      dmPolicy: 'pairing',
      allowFrom: ["tg:111", 222, "@carol"],
      groupPolicy: "allowlist",
      groupAllowFrom: ["111"],
      groups: {
        "-1001": {
          requireMention: false,
          topics: { "1": { agentId: "main" }, "3": { agentId: "rose" }, "*": { agentId: "desk" } },
        },
        "-1002": { enabled: false },
      },
    },
    discord: {
      token: { source: "env", id: "DISCORD_TOKEN" },
      guilds: { "8001": { channels: { "9001": { requireMention: true, users: ["555"] }, general: {} } } },
    },
    slack: { token: "xoxb" },
  },
  bindings: [
    { agentId: "rose", match: { channel: "telegram", peer: { kind: "direct", id: "222" } } },
    { agentId: "rose", match: { channel: "telegram", peer: { kind: "direct", id: 222 } } },
    { agentId: "desk", match: { channel: "discord", peer: { kind: "channel", id: "9001" } } },
    { agentId: "desk", match: { channel: "discord", guildId: "8001", roles: ["77"] } },
    { agentId: "rose", type: "acp", match: { channel: "telegram" } },
    { agentId: "nobody", match: { channel: "telegram", peer: { kind: "direct", id: "111" } } },
    { agentId: "rose", match: { channel: "telegram", accountId: "second" } },
    { agentId: "rose", match: { channel: "telegram", peer: { kind: "group", id: "-1009" } } },
  ],
  commands: { ownerAllowFrom: ["telegram:111"] },
  session: { identityLinks: { ann: ["telegram:111", "discord:555"] } },
  hooks: {},
  models: { providers: { anthropic: { api: "anthropic-messages", apiKey: "sk-ant-hidden" } } },
}"#;

const AGENTS: &str = r#"{
  agents: {
    defaults: { model: { primary: "anthropic/claude-opus-4.6", fallbacks: ["openai/gpt-5.4"] } },
    entries: {
      main: {},
      rose: {
        identity: { name: "Rose Red", emoji: "🥀" },
        skills: ["invoices"],
        tools: { allow: ["read", "exec"], deny: ["write"] },
      },
      desk: { workspace: "/home/somebody/else/desk-files", tools: { profile: "minimal" } },
    },
  },
}"#;

const SCHEMA: &str = "
    CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, created_via TEXT, archived_at INTEGER) STRICT;
    CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, primary_conversation_id TEXT, started_at INTEGER) STRICT;
    CREATE TABLE conversations (conversation_id TEXT PRIMARY KEY, channel TEXT, kind TEXT, peer_id TEXT, thread_id TEXT) STRICT;
    CREATE TABLE session_conversations (session_id TEXT, conversation_id TEXT, role TEXT) STRICT;
    CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, PRIMARY KEY (session_id, seq)) STRICT;
    CREATE TABLE session_transcript_active_events (session_id TEXT, active_position INTEGER, event_seq INTEGER) STRICT;
    CREATE TABLE session_transcript_cold_archives (session_id TEXT, archive_name TEXT, storage TEXT, archive_blob BLOB) STRICT;
    INSERT INTO session_nodes VALUES
        ('agent:rose:telegram:group:-1001:topic:3', 'channel', NULL), ('agent:rose:old', 'channel', 1),
        ('agent:rose:spawned', 'spawn', NULL), ('agent:rose:main', 'channel', NULL);
    INSERT INTO session_windows VALUES
        ('s-topic', 'agent:rose:telegram:group:-1001:topic:3', 'c1', 1), ('s-cold', 'agent:rose:old', 'c2', 2),
        ('s-spawn', 'agent:rose:spawned', NULL, 3), ('s-main', 'agent:rose:main', 'c2', 4);
    INSERT INTO conversations VALUES
        ('c1', 'telegram', 'group', '-1001', '3'), ('c2', 'telegram', 'direct', '222', NULL), ('c3', 'telegram', 'direct', '111', NULL);
    INSERT INTO session_conversations VALUES
        ('s-topic', 'c1', 'primary'), ('s-cold', 'c2', 'primary'), ('s-main', 'c2', 'primary'), ('s-main', 'c3', 'participant');";

fn event(id: &str, role: &str, text: &str) -> String {
    let content = json!([{ "type": "text", "text": text }, { "type": "toolCall", "id": "t", "name": "exec" }]);
    let content = match role {
        "assistant" => content,
        _ => json!(text),
    };
    json!({ "type": "message", "id": id, "timestamp": "2026-09-01T10:00:00Z",
            "message": { "role": role, "content": content, "timestamp": 1_788_000_000_000_i64 } })
    .to_string()
}

fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

fn add(database: &Connection, session: &str, seq: i64, text: &str) {
    let sql = "INSERT INTO transcript_events (session_id, seq, event_json, event_zstd) VALUES (?1, ?2, ?3, ?4)";
    let (plain, packed) = match text.len() > 1024 {
        true => (None, Some(zstd(text))),
        false => (Some(text), None),
    };
    database
        .execute(sql, params![session, seq, plain, packed])
        .expect("writes");
}

/// Three agents, topics, people, conversations in every form.
pub(super) fn source() -> Source {
    let source = Source::new(".openclaw");
    source.write("openclaw.json", CONFIG);
    source.write("agents.json5", AGENTS);
    source.write(".env", "# tokens\nTELEGRAM_BOT_TOKEN='123:hidden-token'\n");
    source.write("workspace/SOUL.md", "I am the old main.\n");
    source.write("workspace/memory/2026-08-01.md", "- a day\n");
    source.write("workspace/memory/ideas.md", "- an idea\n");
    source.write("workspace/code.py", "print()\n");
    source.write("workspace-rose/SOUL.md", "Roses are red.\n");
    source.write(
        "workspace-rose/IDENTITY.md",
        "- **Creature:** fox\n- **Emoji:** (choose)\n",
    );
    source.write("workspace-rose/MEMORY.md", "Likes tea.\n");
    source.write("workspace-rose/HEARTBEAT.md", "tick\n");
    source.write(
        "workspace-rose/skills/Own Tricks/SKILL.md",
        "---\nname: own-tricks\ndescription: x\n---\nHi\n",
    );
    source.write(
        "skills/invoices/SKILL.md",
        "---\nname: invoices\ndescription: Writes invoices\n---\nDo it.\n",
    );
    source.write("skills/invoices/forms/a.txt", "form\n");
    source.write(
        "skills/other/SKILL.md",
        "---\nname: other\ndescription: Other\n---\nNo.\n",
    );
    source.write("desk-files/SOUL.md", "Desk.\n");
    let rose = source.database("agents/rose/agent/openclaw-agent.sqlite", SCHEMA);
    add(&rose, "s-topic", 0, r#"{"type":"session","id":"s-topic"}"#);
    add(
        &rose,
        "s-topic",
        1,
        &event("e1", "user", "before the reset"),
    );
    add(
        &rose,
        "s-topic",
        2,
        r#"{"type":"reset","firstKeptEntryId":null}"#,
    );
    add(
        &rose,
        "s-topic",
        3,
        &event("e2", "user", "[Telegram Ann] hello Rose"),
    );
    add(
        &rose,
        "s-topic",
        4,
        &event(
            "e3",
            "assistant",
            &format!("a long answer {}", "x".repeat(3000)),
        ),
    );
    add(
        &rose,
        "s-topic",
        5,
        r#"{"type":"compaction","summary":"They said hello.","firstKeptEntryId":"e5"}"#,
    );
    add(&rose, "s-topic", 6, &event("e5", "user", "and then?"));
    add(
        &rose,
        "s-topic",
        7,
        r#"{"type":"message","id":"e6","message":{"role":"toolResult","content":"ok"}}"#,
    );
    let cold = format!(
        "{}\n{}\n",
        event("a", "user", "a cold question"),
        event("b", "assistant", "a cold answer")
    );
    rose.execute(
        "INSERT INTO session_transcript_cold_archives VALUES ('s-cold', 'x.jsonl.zst', 'sqlite', ?1)",
        [zstd(&cold)],
    )
    .expect("writes");
    add(&rose, "s-spawn", 0, &event("z", "user", "internal"));
    add(
        &rose,
        "s-main",
        0,
        &event("m", "user", "shared among people"),
    );
    drop(rose);
    source.database(
        "state/openclaw.sqlite",
        r#"CREATE TABLE channel_pairing_allow_entries (channel_key TEXT, account_id TEXT, entry TEXT, sort_order INTEGER);
           INSERT INTO channel_pairing_allow_entries VALUES ('telegram', 'default', '333', 0), ('slack', 'default', 'U1', 1);
           CREATE TABLE cron_jobs (job_id TEXT, agent_id TEXT, name TEXT, job_json TEXT, sort_order INTEGER);
           INSERT INTO cron_jobs VALUES
             ('1', 'rose', 'Morning', '{"id":"1","name":"Morning","agentId":"rose","schedule":{"kind":"cron","expr":"0 8 * * *","tz":"Europe/Berlin"}}', 0),
             ('2', 'main', 'Heartbeat (main)', '{"id":"2","name":"Heartbeat (main)","agentId":"main"}', 1),
             ('3', 'gone', 'Lost', '{"id":"3","name":"Lost","agentId":"gone"}', 2);"#,
    );
    source
}

/// S1.54, S4.45, S0.47
#[tokio::test]
async fn a_plan_comes_first_and_changes_nothing() {
    let (home, source) = (fresh_home().await, source());
    fine(home.path(), &["agent", "list"]).await;
    let before = state(home.path());
    let plan = source.import(home.path(), &[]).await;
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    assert_eq!(state(home.path()), before);
    assert_snapshot!(plan.stdout, @r#"
    OpenClaw in SOURCE

    Would be carried:
      agent        main → main (main is here already, and gets what it does not have)
      agent        rose → rose-2 (`rose` is taken here; 5 files, 1 skill; set in [agents.rose-2] what it needs of: fallback, model)
      agent        desk → desk (1 file, 2 skills; set in [agents.desk] what it needs of: fallback, model)
      file         SOURCE/workspace/SOUL.md → agents/main/SOUL.md
      file         SOURCE/workspace/memory/2026-08-01.md → agents/main/memory/2026-08-01.md
      file         SOURCE/workspace/memory/ideas.md → agents/main/workspace/imported/openclaw/memory/ideas.md
      skill        SOURCE/skills/invoices/SKILL.md → agents/main/skills/invoices/SKILL.md
      skill        SOURCE/skills/invoices/forms/a.txt → agents/main/skills/invoices/forms/a.txt
      skill        SOURCE/skills/other/SKILL.md → agents/main/skills/other/SKILL.md
      binding      bindings[0] → telegram:dm:222 → rose-2
      binding      bindings[2] → discord:channel:9001 → desk
      binding      channels.telegram.groups.-1001 → telegram:group:-1001 → main
      binding      channels.telegram.groups.-1001.topics.1 → telegram:topic:-1001:1 → main
      binding      channels.telegram.groups.-1001.topics.3 → telegram:topic:-1001:3 → rose-2
      binding      channels.telegram.groups.-1001.topics.* → telegram:topic:-1001:* → desk
      person       telegram:111 → member
      person       telegram:222 → member
      person       telegram:333 → member
      conversation agent:rose:telegram:group:-1001:topic:3 → telegram:topic:-1001:3 (3 messages)
      conversation agent:rose:old → telegram:dm:222 (2 messages)
      conversation agent:rose:main (1 message, kept with rose-2 for exports: several people wrote in it from their own chats)

    For you to do:
      file         SOURCE/workspace (1 other file or folder in it, besides its identity; copy what main needs into its workspace)
      person       ann ([people.<name>] with ids = ["telegram:111", "discord:555"] makes this one person)
      secret       channels.telegram (set TELEGRAM_BOT_TOKEN and name it in [telegram], or import with --with-secrets)
      secret       channels.discord (set DISCORD_TOKEN and name it in [discord])
      secret       models.providers.anthropic (set ANTHROPIC_API_KEY and name it in [providers.anthropic], or import with --with-secrets)
      setting      main: model = "anthropic/claude-opus-4.6" (write it into [agents.main] if you want it)
      setting      main: fallback = ["openai/gpt-5.4"] (write it into [agents.main] if you want it)
      setting      telegram:111 (an owner there; write the id into [access] owners if that is right here)

    Not carried:
      binding      bindings[1] → telegram:dm:222 → rose-2 (a rule above is for the same places)
      binding      bindings[5] (no agent `nobody` is carried)
      binding      bindings[3] (only some channels of the server are open there; each has a rule of its own)
      binding      bindings[4] (it is for another program (acp))
      binding      bindings[6] (it is for another bot, `second`)
      binding      bindings[7] (the group is not in channels.telegram.groups, so nobody is answered there)
      binding      channels.telegram.groups.-1002 (it is switched off there)
      binding      channels.discord.guilds.8001.channels.general (a channel is known by its number here)
      person       telegram: @carol (only a person's number can be carried)
      conversation rose: 1 session (the system held them with itself)
      conversation rose: 3 calls and results of tools (the words of people and agents are carried)
      schedule     Lost (no agent `gone` is there)
      schedule     rose: Morning (it has no task in words; it is kept in workspace/imported/openclaw/schedules.json)
      setting      rose: tools exec (there are no such tools here)
      setting      hooks (there are no hooks here)

    Nothing was changed. --yes carries the plan out.
    "#);
}

/// S0.48, S0.49, S4.45
#[tokio::test]
async fn agents_topics_people_and_conversations_move_in() {
    let (home, source) = (fresh_home().await, source());
    let home = home.path();
    let before = config(home);
    let report = source.report(home, &["--yes"]).await;
    assert_snapshot!(report.lines("agent"), @"
    done: main → main (main is here already, and gets what it does not have)
    done: rose → rose-2 (`rose` is taken here; 5 files, 1 skill; set in [agents.rose-2] what it needs of: fallback, model)
    done: desk → desk (1 file, 2 skills; set in [agents.desk] what it needs of: fallback, model)
    ");
    assert_snapshot!(report.lines("conversation"), @"
    done: agent:rose:telegram:group:-1001:topic:3 → telegram:topic:-1001:3 (3 messages)
    done: agent:rose:old → telegram:dm:222 (2 messages)
    done: agent:rose:main →  (1 message, kept with rose-2 for exports: several people wrote in it from their own chats)
    skipped: rose: 1 session →  (the system held them with itself)
    skipped: rose: 3 calls and results of tools →  (the words of people and agents are carried)
    ");
    assert_snapshot!(report.lines("file"), @"
    done: SOURCE/workspace/SOUL.md → agents/main/SOUL.md ()
    done: SOURCE/workspace/memory/2026-08-01.md → agents/main/memory/2026-08-01.md ()
    done: SOURCE/workspace/memory/ideas.md → agents/main/workspace/imported/openclaw/memory/ideas.md ()
    manual: SOURCE/workspace →  (1 other file or folder in it, besides its identity; copy what main needs into its workspace)
    ");
    let after = config(home);
    assert!(
        after.starts_with(before.split("\n[").next().expect("a head")),
        "comments stay"
    );
    let added: Vec<&str> = after
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_snapshot!(added.join("\n"), @r#"
    [agents.rose-2]
    name = "Rose Red"
    emoji = "🥀"
    creature = "fox"
    who = "owner"
    skills = ["invoices"]
    tools = { allow = ["file_read"], deny = ["file_write"] }
    [agents.desk]
    max_risk = "look"
    who = "owner"
    match = "telegram:dm:222"
    agent = "rose-2"
    match = "discord:channel:9001"
    agent = "desk"
    users = ["discord:555"]
    require_mention = true
    match = "telegram:group:-1001"
    users = ["telegram:111"]
    require_mention = false
    match = "telegram:topic:-1001:1"
    users = ["telegram:111"]
    require_mention = false
    match = "telegram:topic:-1001:3"
    agent = "rose-2"
    users = ["telegram:111"]
    require_mention = false
    match = "telegram:topic:-1001:*"
    agent = "desk"
    users = ["telegram:111"]
    require_mention = false
    "#);
    // Rose's own files, and only the skill of her list.
    let read = |path: &str| fs::read_to_string(home.join(path)).unwrap_or_default();
    assert_eq!(read("agents/rose-2/SOUL.md"), "Roses are red.\n");
    assert_eq!(read("agents/rose-2/skills/invoices/forms/a.txt"), "form\n");
    assert!(!home.join("agents/rose-2/skills/other").exists());
    assert!(read("agents/rose-2/workspace/imported/openclaw/schedules.json").contains("Morning"));
    assert_eq!(read("agents/desk/SOUL.md"), "Desk.\n");
    // The shipped soul of main was nobody's, so the old main's is there now.
    assert_eq!(read("agents/main/SOUL.md"), "I am the old main.\n");
    assert_eq!(read("agents/main/memory/2026-08-01.md"), "- a day\n");
    let said = "SELECT group_concat(kind || ' ' || substr(text, 1, 24), '; ') FROM messages JOIN places ON places.id = place_id WHERE key = ";
    assert_snapshot!(ask(home, &format!("{said} 'telegram:topic:-1001:3'")), @"person [Telegram Ann] hello Ros; agent a long answer xxxxxxxxxx; person and then?");
    assert_snapshot!(ask(home, &format!("{said} 'telegram:dm:222'")), @"person a cold question; agent a cold answer");
    assert_eq!(
        ask(
            home,
            "SELECT group_concat(text) FROM summaries WHERE part = ''"
        ),
        "They said hello."
    );
    assert_eq!(
        ask(
            home,
            "SELECT count(*) FROM messages WHERE labels IS NOT 128"
        ),
        "0",
        "all are imported words"
    );
    assert_snapshot!(ask(home, "SELECT group_concat(id) FROM (SELECT id FROM people WHERE paired_at IS NOT NULL ORDER BY id)"), @"telegram:111,telegram:222,telegram:333");
    assert!(
        !after.contains("telegram:111\", \"telegram")
            && !after.contains("owners = [\"telegram:111\"]"),
        "nobody becomes an owner"
    );
    assert_snapshot!(ask(home, "SELECT group_concat(action || ' ' || coalesce(agent, subject), '; ') FROM audit"), @"agent import main; agent import rose-2; agent import desk; bind rose-2; bind desk; bind main; bind main; bind rose-2; bind desk; pair telegram:111; pair telegram:222; pair telegram:333");
    assert!(
        !home.join("secrets").exists(),
        "no secret without --with-secrets"
    );
    fine(home, &["config", "check"]).await;
    let leftovers = fs::read_dir(home).expect("reads").flatten();
    let leftovers: Vec<_> = leftovers
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".moving"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_later_additions_come() {
    let (home, source) = (fresh_home().await, source());
    let home = home.path();
    source.report(home, &["--yes"]).await;
    let before = state(home);
    let again = source.import(home, &["--yes"]).await;
    assert_eq!(again.code, 0);
    assert!(
        again
            .stdout
            .contains("Nothing was changed: everything that can be carried is here."),
        "{}",
        again.stdout
    );
    assert_eq!(state(home), before);
    // A message more, a file changed there, a file changed here, a new agent.
    let rose = Connection::open(
        source
            .path()
            .join("agents/rose/agent/openclaw-agent.sqlite"),
    )
    .expect("opens");
    add(
        &rose,
        "s-topic",
        8,
        &event("e7", "assistant", "Then we had tea."),
    );
    drop(rose);
    source.write("workspace-rose/SOUL.md", "Roses are blue.\n");
    source.write("workspace-rose/MEMORY.md", "Likes coffee.\n");
    source.write("agents/late/agent/none", "");
    source.write("workspace-late/SOUL.md", "Late.\n");
    fs::write(home.join("agents/rose-2/MEMORY.md"), "Mine now.\n").expect("writes");
    let report = source.report(home, &["--yes"]).await;
    assert_eq!(report.count("done"), 3, "{:#}", report.0);
    let read = |path: &str| fs::read_to_string(home.join(path)).expect("a file");
    assert_eq!(read("agents/rose-2/SOUL.md"), "Roses are blue.\n");
    assert_eq!(read("agents/rose-2/MEMORY.md"), "Mine now.\n");
    assert_eq!(
        read("agents/rose-2/workspace/imported/openclaw/MEMORY.md"),
        "Likes coffee.\n"
    );
    assert_eq!(read("agents/late/SOUL.md"), "Late.\n");
    assert_eq!(
        ask(
            home,
            "SELECT text FROM messages JOIN places ON places.id = place_id WHERE key = 'telegram:topic:-1001:3' ORDER BY messages.id DESC LIMIT 1"
        ),
        "Then we had tea."
    );
    let last = state(home);
    source.report(home, &["--yes"]).await;
    assert_eq!(state(home), last);
}

/// What a running program has written is in the WAL, and the file alone is old.
#[tokio::test]
async fn rows_that_are_not_merged_yet_are_read_and_a_running_source_is_named() {
    let (home, source) = (fresh_home().await, source());
    let path = source
        .path()
        .join("agents/rose/agent/openclaw-agent.sqlite");
    let rose = Connection::open(&path).expect("opens");
    rose.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;")
        .expect("a WAL");
    add(
        &rose,
        "s-topic",
        8,
        &event("e7", "assistant", "only in the WAL"),
    );
    assert!(path.with_extension("sqlite-wal").exists());
    let report = source.report(home.path(), &["--yes"]).await;
    assert_eq!(
        ask(
            home.path(),
            "SELECT count(*) FROM messages WHERE text = 'only in the WAL'"
        ),
        "1"
    );
    let running = &report.0["running"];
    assert_eq!(running[0]["pid"], std::process::id(), "{running}");
    drop(rose);
}

/// Tokens come only when asked for, into files that nobody else reads.
#[tokio::test]
async fn secrets_come_only_when_asked_for() {
    let (home, source) = (fresh_home().await, source());
    let home = home.path();
    let without = source.import(home, &["--yes", "--json"]).await;
    assert!(!without.stdout.contains("hidden"), "{}", without.stdout);
    let report = source.report(home, &["--yes", "--with-secrets"]).await;
    assert_snapshot!(report.lines("secret"), @"
    done: channels.telegram → secrets/telegram (used by [telegram])
    manual: channels.discord →  (set DISCORD_TOKEN and name it in [discord])
    done: models.providers.anthropic → secrets/anthropic (used by [providers.anthropic])
    ");
    assert!(!report.0.to_string().contains("hidden"));
    let secret = home.join("secrets/telegram");
    assert_eq!(
        fs::read_to_string(&secret).expect("a secret"),
        "123:hidden-token"
    );
    assert_eq!(
        fs::metadata(&secret).expect("a file").permissions().mode() & 0o777,
        0o600
    );
    let written = config(home);
    assert!(
        written.contains("[telegram]\ntoken = { file = \"secrets/telegram\" }"),
        "{written}"
    );
    assert!(!written.contains("hidden"));
    let before = state(home);
    source.report(home, &["--yes", "--with-secrets"]).await;
    assert_eq!(state(home), before);
}

/// The same conversation in the older form: a list of agents, an index and JSONL files.
#[tokio::test]
async fn older_files_are_read_too() {
    let home = fresh_home().await;
    let source = Source::new(".openclaw");
    source.write("openclaw.json", r#"{"agents":{"list":[{"id":"main"},{"id":"Rose"},{"name":"no id"}]},
        "bindings":[{"agentId":"Rose","match":{"channel":"telegram","peer":{"kind":"group","id":"-1001:topic:3"}}}],
        "channels":{"telegram":{"groupPolicy":"open"}}}"#);
    source.write("agents/Rose/sessions/sessions.json", r#"{"agent:Rose:main":{"sessionId":"one","chatType":"group","deliveryContext":{"channel":"telegram","to":"telegram:-1001:topic:3"}}}"#);
    let lines = [
        r#"{"type":"session","id":"one"}"#.to_owned(),
        event("a", "user", "hello from a file"),
        "this line is broken".to_owned(),
        event("b", "assistant", "hi"),
    ];
    source.write("agents/Rose/sessions/one.jsonl", &lines.join("\n"));
    source.write(
        "agents/Rose/sessions/gone.jsonl.deleted",
        &event("a", "user", "deleted"),
    );
    source.write(
        "agents/Rose/sessions/lost.jsonl",
        &event("a", "user", "nobody names me"),
    );
    let report = source
        .report(home.path(), &["--yes", "--as", "Rose=red"])
        .await;
    assert_snapshot!(report.lines("conversation"), @"
    done: lost.jsonl →  (1 message, kept with red for exports: its place cannot be told)
    done: agent:Rose:main → telegram:topic:-1001:3 (2 messages)
    skipped: Rose: 1 call or result of a tool →  (the words of people and agents are carried)
    ");
    assert_snapshot!(report.lines("agent"), @"
    done: main → main (main is here already, and gets what it does not have)
    done: Rose → red (nothing besides its settings)
    skipped: agents.list →  (an entry has no id)
    ");
    let said = "SELECT group_concat(text) FROM messages JOIN places ON places.id = place_id WHERE key = 'telegram:topic:-1001:3'";
    assert_eq!(ask(home.path(), said), "hello from a file,hi");
}

/// A person asks the imported agent in its topic, and it knows what was said before.
#[tokio::test]
async fn a_running_gateway_takes_the_agents_in() {
    let house = House::new("[access]\nowners = [\"telegram:111\"]\n[agents.main]\n").await;
    house.model.answer_with(|_| Script::text("Yes."));
    let gateway = house.open().await;
    let source = source();
    let report = source.report(house.home.path(), &["--yes"]).await;
    assert_snapshot!(report.lines("agent"), @"
    done: main → main (main is here already, and gets what it does not have)
    done: rose → rose (5 files, 1 skill; set in [agents.rose] what it needs of: fallback, model)
    done: desk → desk (1 file, 2 skills; set in [agents.desk] what it needs of: fallback, model)
    ");
    let topic = house.telegram.forum(-1001).topic(3, "Three");
    topic.says(ALICE, "do you know me?").await;
    house.settled(&gateway).await;
    let asked = format!("{:?}", house.model.journal().pop().expect("asked"));
    assert!(asked.contains("Roses are red."), "{asked}");
    assert!(
        asked.contains("and then?") && asked.contains("They said hello."),
        "{asked}"
    );
    // A person who is not on the source's list is not answered there.
    let before = house.model.journal().len();
    topic
        .says(crate::support::fake_telegram::BOB, "@parlor_bot and me?")
        .await;
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), before);
    // The place has gone on here: what comes there later is not mixed in.
    let rose = Connection::open(
        source
            .path()
            .join("agents/rose/agent/openclaw-agent.sqlite"),
    )
    .expect("opens");
    add(&rose, "s-topic", 8, &event("e7", "assistant", "too late"));
    drop(rose);
    let report = source.report(house.home.path(), &["--yes"]).await;
    assert!(
        report
            .lines("conversation")
            .contains("the place has gone on here")
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE text = 'too late'"),
        "0"
    );
    house.close(gateway).await;
}

/// Whatever moment the process is killed at, the next import ends in the same state.
#[tokio::test]
async fn an_import_that_is_killed_and_run_again_ends_in_the_same_state() {
    let (source, whole) = (source(), fresh_home().await);
    source.report(whole.path(), &["--yes"]).await;
    let expected = essence(whole.path());
    for wait in [0, 30, 60, 90, 120, 150, 200, 300] {
        let home = fresh_home().await;
        let process = Process::start(
            home.path(),
            &["import", "openclaw", &source.text(), "--yes"],
        );
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
        process.kill().await;
        let again = source.import(home.path(), &["--yes"]).await;
        assert_eq!(
            again.code, 0,
            "after {wait} ms: {}{}",
            again.stderr, again.stdout
        );
        assert_eq!(essence(home.path()), expected, "after {wait} ms");
    }
}

/// Files and words, without times and uids.
fn essence(home: &Path) -> (Vec<(std::path::PathBuf, Vec<u8>)>, String) {
    let (mut files, _) = state(home);
    files.retain(|name, _| name.starts_with("agents") || name.ends_with("config.toml"));
    let words = ask(
        home,
        "SELECT group_concat(key || text) FROM (SELECT key, text FROM messages JOIN places ON places.id = place_id
         WHERE key NOT GLOB 'import:*' ORDER BY key, messages.id)",
    );
    let rows = ask(
        home,
        "SELECT (SELECT count(*) FROM messages) || ' ' || (SELECT count(*) FROM imports) || ' ' || (SELECT count(*) FROM people)
         || ' ' || (SELECT count(*) FROM agents) || ' ' || (SELECT group_concat(slug) FROM (SELECT slug FROM agents ORDER BY slug))",
    );
    (files.into_iter().collect(), words + &rows)
}

#[tokio::test]
async fn at_a_terminal_the_plan_is_asked_about() {
    let (home, source) = (fresh_home().await, source());
    // Input that is no terminal is no yes.
    let ran = run_with_input(home.path(), &["import", "openclaw", &source.text()], "y\n").await;
    assert_eq!(ran.code, 0);
    assert!(
        ran.stdout
            .contains("Nothing was changed. --yes carries the plan out.")
    );
    assert!(!home.path().join("agents/desk").exists());
    let wrong = run(home.path(), &["import", "openclaw", "/nowhere/at/all"]).await;
    assert_eq!(
        (wrong.code, wrong.stderr.trim()),
        (2, "error: there is no folder /nowhere/at/all")
    );
    let empty = tempfile::tempdir().expect("a folder");
    let path = empty.path().display().to_string();
    let none = run(home.path(), &["import", "openclaw", &path]).await;
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("has nothing of OpenClaw"),
        "{}",
        none.stderr
    );
    let own = home.path().display().to_string();
    let own = run(home.path(), &["import", "openclaw", &own]).await;
    assert!(own.stderr.contains("the home of Parlor"), "{}", own.stderr);
}
