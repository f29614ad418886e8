//! Signet: identities that fall back to the root's, memories of an early and of a late database.

use insta::assert_snapshot;

use super::{Source, state};
use crate::cli::fresh_home;
use crate::support::house::ask;
use crate::tenants::{config, fine};

const CONFIG: &str = "
version: 1
schema: signet/v1
agent: { name: house }
agents:
  roster:
    - { name: dot, skills: [], memory: { read_policy: { type: group, group: team } } }
    - { name: violet, skills: [good], read_policy: group, policy_group: team }
";

pub(super) const LATE: &str = "
    CREATE TABLE memories (id TEXT PRIMARY KEY, type TEXT, content TEXT, tags TEXT, source_type TEXT, created_at TEXT, pinned INTEGER,
        is_deleted INTEGER, agent_id TEXT DEFAULT 'default', visibility TEXT DEFAULT 'global', memory_kind TEXT, stale_at TEXT);
    INSERT INTO memories (id, content, created_at, pinned, is_deleted, agent_id, visibility, memory_kind, source_type, stale_at) VALUES
        ('1', 'critical: never call at night', '2026-03-01T10:00:00Z', 1, 0, 'default', 'global', NULL, NULL, NULL),
        ('2', 'deleted', '2026-03-01T10:00:00Z', 0, 1, 'default', 'global', NULL, NULL, NULL),
        ('3', 'archived', '2026-03-01T10:00:00Z', 0, 0, 'default', 'archived', NULL, NULL, NULL),
        ('4', 'of dot alone', '2026-03-01T10:00:00Z', 0, 0, 'dot', 'private', NULL, NULL, NULL),
        ('5', 'the same words', '2026-03-01T10:00:00Z', 0, 0, 'dot', 'private', NULL, NULL, NULL),
        ('6', 'the same words', '2026-03-01T10:00:00Z', 0, 0, 'violet', 'private', NULL, NULL, NULL),
        ('7', 'by the way', '2026-03-01T10:00:00Z', 0, 0, 'default', 'private', 'episodic', NULL, NULL),
        ('8', 'out of date', '2026-03-01T10:00:00Z', 0, 0, 'default', 'private', NULL, NULL, '2026-04-01'),
        ('9', 'of nobody', '2026-03-01T10:00:00Z', 0, 0, 'gone', 'private', NULL, NULL, NULL);
    CREATE TABLE scheduled_tasks (id TEXT, name TEXT, prompt TEXT, cron_expression TEXT);
    INSERT INTO scheduled_tasks VALUES ('1', 'Tidy', 'tidy up', '0 3 * * *');";

/// Before there were agents in it.
const EARLY: &str = "
    CREATE TABLE memories (id TEXT PRIMARY KEY, type TEXT, content TEXT, tags TEXT, created_at TEXT, pinned INTEGER);
    INSERT INTO memories VALUES ('1', 'fact', 'early words', 'a,b', '2026-03-01 10:00:00', 0);";

pub(super) fn source(database: &str) -> Source {
    let source = Source::new(".signet");
    source.write("agent.yaml", CONFIG);
    source.write("SOUL.md", "Root.\n");
    source.write("AGENTS.md", "Rules.\n");
    source.write("MEMORY.md", "Generated.\n");
    source.write("agents/dot/SOUL.md", "Dot.\n");
    source.write("agents/dot/workspace/AGENTS.md", "assembled\n");
    source.write(
        "skills/good/SKILL.md",
        "---\nname: good\ndescription: Good\n---\n",
    );
    drop(source.database("memory/memories.db", database));
    source
}

/// S4.45
#[tokio::test]
async fn identities_memories_and_skills_move_in() {
    let (home, source) = (fresh_home().await, source(LATE));
    let home = home.path();
    let first = source.report(home, &["--yes"]).await;
    assert_snapshot!(first.lines("agent"), @"
    done: default → main (main is here already, and gets what it does not have)
    done: dot → dot (2 files, 2 memories; set in [agents.dot] what it needs of: read_memory_from)
    done: violet → violet (2 files, 1 skill, 1 memory; set in [agents.violet] what it needs of: read_memory_from)
    ");
    assert_snapshot!(first.lines("memory"), @"
    manual: default →  (1 memory was seen by all agents there and by this one alone here; --global keeps that)
    done: default → main (1 memory)
    skipped: 3 memories →  (deleted, archived or out of date there)
    skipped: 1 memory →  (noted by the way; --all brings them)
    skipped: 1 memory →  (their agent is not there)
    ");
    assert_snapshot!(first.lines("schedule"), @"manual: default: Tidy →  (it comes as the job `tidy`, at rest: look at it, then give it a place and `enabled = true`)");
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap_or_default();
    assert_eq!(read("agents/dot/SOUL.md"), "Dot.\n");
    assert_eq!(read("agents/dot/AGENTS.md"), "Rules.\n");
    assert!(
        !home.join("agents/dot/MEMORY.md").exists(),
        "what the root remembers is not Dot's"
    );
    assert_eq!(read("agents/violet/SOUL.md"), "Root.\n");
    assert!(
        !home.join("agents/dot/skills").exists() && home.join("agents/violet/skills/good").exists()
    );
    let written = config(home);
    assert!(
        written.contains("[agents.dot]\nname = \"dot\"\nwho = \"owner\"\nskills = []"),
        "{written}"
    );
    let texts = "SELECT group_concat(slug || ' ' || visibility || ' ' || text, '; ') FROM (SELECT * FROM memories JOIN agents ON uid = agent_uid WHERE source = 'saved' ORDER BY slug, text)";
    assert_snapshot!(ask(home, texts), @"dot private of dot alone; dot private the same words; main private critical: never call at night; violet private the same words");
    fine(home, &["config", "check"]).await;
    let before = state(home);
    source.report(home, &["--yes"]).await;
    assert_eq!(state(home), before);
    source.report(home, &["--yes", "--all"]).await;
    assert_eq!(
        ask(
            home,
            "SELECT count(*) FROM memories WHERE text = 'by the way'"
        ),
        "1"
    );
}

#[tokio::test]
async fn an_early_database_without_agents_is_read_and_global_memories_can_stay_so() {
    let (home, source) = (fresh_home().await, source(EARLY));
    source.report(home.path(), &["--yes", "--global"]).await;
    let row = "SELECT slug || ' ' || visibility || ' ' || text FROM memories JOIN agents ON uid = agent_uid WHERE source = 'saved'";
    assert_eq!(ask(home.path(), row), "main global early words");
}
