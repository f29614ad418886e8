//! ZeroClaw: two bots, a wildcard, an encrypted token, memories of all categories.

use insta::assert_snapshot;

use super::{Source, state};
use crate::cli::fresh_home;
use crate::support::house::ask;
use crate::tenants::{config, fine};

const CONFIG: &str = r#"
schema_version = 3
[agents.alpha]
channels = ["telegram.home"]
model_provider = "anthropic.main"
risk_profile = "careful"
runtime_profile = "small"
skill_bundles = ["basics"]
cron_jobs = ["digest"]
[agents.alpha.workspace]
read_memory_from = ["beta"]
unrestricted_filesystem = true
[agents.beta]
channels = ["telegram.work", "discord.main"]
[agents.beta.memory]
backend = "none"
[agents.off]
enabled = false
[providers.models.anthropic.main]
api_key = "enc2:TOKEN"
model = "claude-opus-4.6"
[channels.telegram.home]
bot_token = "enc2:TOKEN"
[channels.telegram.work]
bot_token = "2:other"
[channels.discord.main]
bot_token = "d"
channel_ids = ["9001"]
mention_only = true
[peer_groups.family]
channel = "telegram.home"
agents = ["alpha"]
external_peers = ["111", "@bob", "*"]
[peer_groups.team]
channel = "discord"
external_peers = ["555"]
[risk_profiles.careful]
level = "supervised"
allowed_tools = ["file_read", "shell"]
[runtime_profiles.small]
max_tool_iterations = 5
max_cost_per_day_cents = 150
[skill_bundles.basics]
include = ["good"]
[cron.digest]
job_type = "agent"
prompt = "Sum up"
schedule = { kind = "cron", expr = "0 8 * * *", tz = "UTC" }
"#;

const SESSIONS: &str = "
    CREATE TABLE sessions (id INTEGER PRIMARY KEY, session_key TEXT, role TEXT, content TEXT, created_at TEXT);
    CREATE TABLE session_metadata (session_key TEXT PRIMARY KEY, agent_alias TEXT, channel_id TEXT, room_id TEXT, sender_id TEXT);
    INSERT INTO session_metadata VALUES
        ('telegram_home_111_111', 'alpha', 'telegram.home', '111', '111'),
        ('telegram_home_-1001_7_7_111', 'alpha', 'telegram.home', '-1001', '111'),
        ('telegram_home_-1001_7_7_222', 'alpha', 'telegram.home', '-1001', '222'),
        ('telegram_work_111_111', 'beta', 'telegram.work', '111', '111');
    INSERT INTO sessions (session_key, role, content, created_at) VALUES
        ('telegram_home_111_111', 'user', 'hello', '2026-08-01T10:00:00Z'), ('telegram_home_111_111', 'assistant', 'hi', '2026-08-01T10:00:01+00:00'),
        ('telegram_home_-1001_7_7_111', 'user', 'first', '2026-08-01T11:00:00Z'), ('telegram_home_-1001_7_7_222', 'user', 'second', '2026-08-01T11:00:01Z'),
        ('telegram_home_-1001_7_7_111', 'assistant', 'third', '2026-08-01T11:00:02Z'), ('telegram_work_111_111', 'user', 'at work', '2026-08-01T12:00:00Z'),
        ('old_flat_key', 'user', 'very old', '2026-01-01T12:00:00Z'), ('telegram_home_111_111', 'tool', 'x', '2026-08-01T12:00:00Z');";

const BRAIN: &str = "
    CREATE TABLE agents (id TEXT PRIMARY KEY, alias TEXT);
    CREATE TABLE memories (id TEXT PRIMARY KEY, key TEXT, content TEXT, category TEXT, created_at TEXT, superseded_by TEXT, agent_id TEXT);
    INSERT INTO agents VALUES ('1', 'alpha'), ('2', 'beta'), ('3', 'gone');
    INSERT INTO memories VALUES
        ('a', 'tea', 'Ann likes tea', 'core', '2026-08-01T10:00:00Z', NULL, '1'), ('b', 'city', 'Bonn', 'custom', '2026-08-01T10:00:00Z', NULL, '1'),
        ('c', 'd', 'A good day', 'daily', '2026-08-02T10:00:00Z', NULL, '1'), ('d', 'x', 'old', 'core', '2026-08-01T10:00:00Z', 'a', '1'),
        ('e', 'y', 'hello', 'conversation', '2026-08-01T10:00:00Z', NULL, '1'), ('f', 'z', 'of beta', 'core', '2026-08-01T10:00:00Z', NULL, '2'),
        ('g', 'g', 'lost', 'core', '2026-08-01T10:00:00Z', NULL, '3');";

/// The token `1:hidden` under the key of 32 bytes `k`.
fn sealed() -> String {
    use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &[b'k'; 32]).expect("a key"));
    let mut bytes = b"1:hidden".to_vec();
    let nonce = Nonce::assume_unique_for_key([7; 12]);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut bytes)
        .expect("seals");
    let all = [[7; 12].as_slice(), &bytes].concat();
    all.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn source() -> Source {
    let source = Source::new(".zeroclaw");
    source.write("config.toml", &CONFIG.replace("TOKEN", &sealed()));
    source.write(".secret_key", &"6b".repeat(32));
    source.write("agents/alpha/workspace/SOUL.md", "Alpha.\n");
    source.write("agents/alpha/workspace/memory/2026-08-01.md", "- a day\n");
    source.write("agents/beta/workspace/SOUL.md", "Beta.\n");
    source.write(
        "shared/skills/basics/good/SKILL.md",
        "---\nname: good\ndescription: Good\n---\n",
    );
    source.write(
        "shared/skills/basics/bad/SKILL.md",
        "---\nname: bad\ndescription: Bad\n---\n",
    );
    drop(source.database("data/sessions/sessions.db", SESSIONS));
    drop(source.database("data/memory/brain.db", BRAIN));
    drop(source.database(
        "data/cron/jobs.db",
        "CREATE TABLE cron_jobs (id TEXT, expression TEXT, prompt TEXT, name TEXT, agent_alias TEXT, source TEXT);
         INSERT INTO cron_jobs VALUES ('1', '* * * * *', 'x', 'Own', 'beta', 'imperative'), ('2', '', 'x', 'Declared', 'alpha', 'declarative'), ('3', '', 'x', 'Orphan', '', 'imperative');",
    ));
    source
}

/// S4.45
#[tokio::test]
async fn agents_memories_and_the_chosen_bot_move_in() {
    let (home, source) = (fresh_home().await, source());
    let home = home.path();
    let report = source.report(home, &["--yes", "--with-secrets"]).await;
    assert_snapshot!(report.lines("agent"), @"
    done: alpha → alpha (3 files, 1 skill, 2 memories; set in [agents.alpha] what it needs of: read_memory_from, model)
    done: beta → beta (1 file, 1 memory)
    skipped: off →  (it is switched off there)
    ");
    assert_snapshot!(report.lines("binding"), @"
    done: telegram.home → telegram → alpha ()
    done: discord.main → discord → beta ()
    done: discord.main: channel 9001 → discord:channel:9001 → beta ()
    ");
    assert_snapshot!(report.lines("conversation"), @"
    done: old_flat_key →  (1 message, kept with alpha for exports: its place cannot be told from its name)
    done: telegram_home_111_111 → telegram:dm:111 (2 messages)
    done: telegram_home_-1001_7_7_111 → telegram:topic:-1001:7 (3 messages)
    done: telegram_work_111_111 →  (1 message, kept with beta for exports: it was held with another bot)
    ");
    assert_snapshot!(report.lines("memory"), @"
    skipped: 1 memory →  (they are copies of what was said)
    skipped: 1 memory →  (their agent is not there)
    ");
    assert_snapshot!(report.lines("person"), @"
    done: telegram:111 → member ()
    done: discord:555 → member ()
    skipped: peer_groups.family: @bob →  (only a person's number can be carried)
    skipped: peer_groups.family: * →  (everybody may write there; here [access] dms decides)
    ");
    assert_snapshot!(report.lines("schedule"), @"
    skipped: Orphan →  (it belongs to no agent)
    manual: alpha: digest →  (it comes as the job `digest`, at rest: look at it, then give it a place and `enabled = true`)
    manual: beta: Own →  (it comes as the job `own`, at rest: look at it, then give it a place and `enabled = true`)
    ");
    assert_snapshot!(report.lines("setting"), @"
    skipped: alpha: tools shell →  (there are no such tools here)
    skipped: alpha: workspace.unrestricted_filesystem →  (the operator of this house gives rights)
    skipped: channels.telegram.work →  (there is one bot for each platform here; --account work takes this one)
    ");
    let secret = std::fs::read_to_string(home.join("secrets/telegram")).expect("a secret");
    assert_eq!(secret, "1:hidden");
    let written = config(home);
    assert!(!written.contains("hidden"));
    let alpha = written
        .split("[agents.alpha]")
        .nth(1)
        .expect("alpha")
        .split("\n[")
        .next()
        .expect("a table");
    assert_snapshot!(alpha.trim(), @r#"
    max_risk = "change"
    skills = ["good"]
    tools = { allow = ["file_read"] }
    limits = { max_steps = 5, cost_per_day = 1.5 }
    jobs = [{ name = "digest", cron = "0 8 * * *", time_zone = "UTC", prompt = "Sum up", missed = "skip", enabled = false }]
    "#);
    let texts = "SELECT group_concat(text, '; ') FROM (SELECT text FROM memories JOIN agents ON uid = agent_uid WHERE source = 'saved' AND slug = ";
    assert_eq!(
        ask(home, &format!("{texts} 'alpha' ORDER BY text)")),
        "Ann likes tea; city: Bonn"
    );
    assert_eq!(
        ask(
            home,
            "SELECT group_concat(DISTINCT visibility) FROM memories WHERE source = 'saved'"
        ),
        "private"
    );
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap_or_default();
    assert_eq!(read("agents/alpha/memory/2026-08-02.md"), "- A good day\n");
    let said = "SELECT group_concat(coalesce(person, 'alpha') || ' ' || text, '; ') FROM messages JOIN places ON places.id = place_id WHERE key = ";
    assert_eq!(
        ask(home, &format!("{said} 'telegram:dm:111'")),
        "telegram:111 hello; alpha hi"
    );
    fine(home, &["config", "check"]).await;
    let before = state(home);
    source.report(home, &["--yes", "--with-secrets"]).await;
    assert_eq!(state(home), before);
}

#[tokio::test]
async fn another_bot_can_be_chosen_and_an_old_form_brings_identities_only() {
    let (home, source) = (fresh_home().await, source());
    let report = source.report(home.path(), &["--account", "work"]).await;
    assert!(
        report
            .lines("binding")
            .contains("telegram.work → telegram → beta"),
        "{}",
        report.lines("binding")
    );
    source.write("config.toml", "schema_version = 2\n[agents.alpha]\n");
    let report = source.report(home.path(), &["--yes"]).await;
    assert!(report.lines("setting").contains("not version 3"));
    assert_eq!(report.lines("binding"), "");
    assert!(home.path().join("agents/alpha/SOUL.md").exists());
}
