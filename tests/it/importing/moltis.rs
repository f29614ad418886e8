//! Moltis: a main agent in the folder itself, histories under names in hexadecimal digits, overrides.

use insta::assert_snapshot;
use serde_json::json;

use super::{Source, state};
use crate::cli::fresh_home;
use crate::support::house::ask;
use crate::tenants::{config, fine};

const CONFIG: &str = r#"
[chat]
priority_models = ["openai/gpt-5.4"]
[channels.telegram.home]
token = "1:hidden"
dm_policy = "allowlist"
group_policy = "allowlist"
group_allowlist = ["-1001", "-1003"]
mention_mode = "always"
allowlist = ["111", "bob*"]
operators = ["111"]
agent_id = "main"
[channels.telegram.home.channel_overrides."-1001"]
agent_id = "rose"
[channels.telegram.home.channel_overrides."-1002"]
agent_id = "rose"
[channels.telegram.home.user_overrides."222"]
agent_id = "rose"
[agents.presets.rose]
tools = { deny = ["web_fetch", "exec"] }
skills = { allow = ["good"] }
[agents.presets.researcher]
model = "x"
[mcp.servers.a]
command = "x"
"#;

const DATABASE: &str = r#"
    CREATE TABLE agents (id TEXT PRIMARY KEY, name TEXT, emoji TEXT, creature TEXT, created_at INTEGER, is_default INTEGER);
    CREATE TABLE channels (channel_type TEXT, account_id TEXT, config TEXT, created_at INTEGER);
    CREATE TABLE sessions (key TEXT PRIMARY KEY, agent_id TEXT, channel_binding TEXT, updated_at INTEGER, parent_session_key TEXT, external_agent_kind TEXT);
    CREATE TABLE channel_sessions (channel_type TEXT, account_id TEXT, chat_id TEXT, thread_id TEXT, session_key TEXT);
    CREATE TABLE cron_jobs (id TEXT PRIMARY KEY, data TEXT);
    INSERT INTO agents VALUES ('main', 'Main', NULL, NULL, 1, 1), ('rose', 'Rosa', '🌺', 'fox', 2, 0);
    INSERT INTO channels VALUES ('discord', 'd1', 'enc:xyz', 1);
    INSERT INTO sessions VALUES
        ('telegram:home:-1001:7', 'rose', '{"channel_type":"telegram","account_id":"home","chat_id":"-1001","thread_id":"7"}', 1788000000000, NULL, NULL),
        ('session:LONG', 'main', '{"channel_type":"telegram","account_id":"home","chat_id":111}', 1788000001000, NULL, NULL),
        ('session:branch', 'main', '{"channel_type":"telegram","account_id":"home","chat_id":"111"}', 1788000002000, 'session:LONG', NULL),
        ('session:web', NULL, NULL, 1788000003000, NULL, NULL), ('session:codex', 'main', NULL, 1788000003000, NULL, 'codex');
    INSERT INTO channel_sessions VALUES ('telegram', 'home', '-1001', '7', 'telegram:home:-1001:7');
    INSERT INTO cron_jobs VALUES ('__heartbeat__', '{"id":"__heartbeat__"}'),
        ('1', '{"id":"1","name":"Daily","payload":{"kind":"agentTurn","message":"x","agent_id":"rose","deliver":true,"channel":"telegram","to":"-1001"}}');"#;

fn long() -> String {
    format!("session:{}", "long".repeat(20))
}

/// Every 120 digits a new folder; only the first begins with a k.
fn history(key: &str) -> String {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let parts: Vec<String> = hex
        .as_bytes()
        .chunks(120)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect();
    format!("sessions/v1/k{}/history.jsonl", parts.join("/"))
}

pub(super) fn source() -> Source {
    let source = Source::new(".moltis");
    source.write("moltis.toml", CONFIG);
    source.write("SOUL.md", "Root soul.\n");
    source.write("USER.md", "Ann.\n");
    source.write("agents/main/SOUL.md", "Main soul.\n");
    source.write(
        "agents/rose/IDENTITY.md",
        "---\nname: Rose\nemoji: 🌹\ntheme: gardener\n---\nHi\n",
    );
    source.write("agents/ghost.archived/SOUL.md", "gone\n");
    source.write(
        "skills/good/SKILL.md",
        "---\nname: good\ndescription: Good\n---\n",
    );
    drop(source.database("moltis.db", &DATABASE.replace("session:LONG", &long())));
    let line = |role: &str, content: serde_json::Value| {
        json!({ "role": role, "content": content, "created_at": 1_788_000_000_000_i64 }).to_string()
    };
    let parts = json!([{ "type": "text", "text": "look" }, { "type": "image_url", "image_url": { "url": "x" } }]);
    let topic = [
        line("user", json!("in the topic")),
        line("tool_result", json!("x")),
        line("assistant", json!("yes")),
        "broken".into(),
    ];
    source.write(&history("telegram:home:-1001:7"), &topic.join("\n"));
    source.write(
        &history(&long()),
        &[
            line("user", parts),
            line("assistant", json!("nice")),
            line("system", json!("s")),
        ]
        .join("\n"),
    );
    source.write(
        &history("session:branch"),
        &line("user", json!("on a branch")),
    );
    source.write(
        "sessions/session_web.jsonl",
        &line("user", json!("in the browser")),
    );
    source
}

/// S4.45
#[tokio::test]
async fn agents_overrides_and_histories_move_in() {
    let (home, source) = (fresh_home().await, source());
    let home = home.path();
    assert!(
        history(&long()).matches('/').count() > 3,
        "the key spans two folders"
    );
    let report = source.report(home, &["--yes"]).await;
    assert_snapshot!(report.lines("agent"), @"
    done: main → main (main is here already, and gets what it does not have)
    done: rose → rose-2 (`rose` is taken here; 2 files, 1 skill; set in [agents.rose-2] what it needs of: model)
    skipped: ghost.archived →  (it was deleted there)
    skipped: preset researcher →  (it is a role of subagents, and no agent)
    ");
    assert_snapshot!(report.lines("binding"), @"
    done: channels.telegram.home: chat -1001 → telegram:group:-1001 → rose-2 ()
    done: channels.telegram.home: chat -1003 → telegram:group:-1003 → main ()
    done: channels.telegram.home: user 222 → telegram:user:222 → rose-2 ()
    done: channels.telegram.home → telegram → main ()
    skipped: channels.telegram.home: chat -1002 →  (the bot does not answer in that chat there)
    manual: channels.telegram.home: user 222 →  (name telegram:222 in `who` of the agent, which is closed here; a rule for a place counts more)
    ");
    assert_snapshot!(report.lines("conversation"), @"
    done: session:longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong → telegram:dm:111 (2 messages)
    done: session:branch →  (1 message, kept with main for exports: it is a branch of another)
    done: session:web →  (1 message, kept with main for exports: it was held in no place of Telegram or Discord)
    done: telegram:home:-1001:7 → telegram:topic:-1001:7 (2 messages)
    skipped: 1 result of a tool →  (the words of people and agents are carried)
    skipped: 1 session →  (they were held with another program)
    ");
    assert_snapshot!(report.lines("person"), @"
    done: telegram:111 → member ()
    skipped: telegram: bob* →  (only a person's number can be carried)
    ");
    assert_snapshot!(report.lines("schedule"), @"skipped: rose: Daily →  (its times are of a kind that is not known here; it is kept in workspace/imported/moltis/schedules.json)");
    assert_snapshot!(report.lines("setting"), @r#"
    manual: main: name = "Main" →  (write it into [agents.main] if you want it)
    manual: main: model = "openai/gpt-5.4" →  (write it into [agents.main] if you want it)
    manual: telegram:111 →  (an owner there; write the id into [access] owners if that is right here)
    skipped: rose: tools exec →  (there are no such tools here)
    skipped: discord account d1 →  (its settings are encrypted, or cannot be read)
    skipped: mcp →  (MCP servers are set up by hand here)
    "#);
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap_or_default();
    assert_eq!(read("agents/main/SOUL.md"), "Main soul.\n");
    assert_eq!(read("agents/main/USER.md"), "Ann.\n");
    let written = config(home);
    let rose = written
        .split("[agents.rose-2]")
        .nth(1)
        .expect("rose")
        .split("\n[")
        .next()
        .expect("a table");
    assert_snapshot!(rose.trim(), @r#"
    name = "Rosa"
    emoji = "🌺"
    creature = "fox"
    who = "owner"
    skills = ["good"]
    tools = { deny = ["web_fetch"] }

    # Places that belong to an agent. These are topics of the web chat and of the terminal chat; `/whoami` prints the key of any
    # other place.
    "#);
    let said = "SELECT group_concat(text, '; ') FROM messages JOIN places ON places.id = place_id WHERE key = ";
    assert_eq!(
        ask(home, &format!("{said} 'telegram:topic:-1001:7'")),
        "in the topic; yes"
    );
    assert_eq!(
        ask(home, &format!("{said} 'telegram:dm:111'")),
        "look\n[picture]; nice"
    );
    fine(home, &["config", "check"]).await;
    let before = state(home);
    source.report(home, &["--yes"]).await;
    assert_eq!(state(home), before);
}
