//! The work behind a page or a list does not grow with the house: the same number of statements for
//! ten places and for hundreds, and none that reads all messages or all turns.

use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use tempfile::TempDir;

use super::house::{House, Settings};
use super::session_list::{self, Wanted};
use super::{known_people, names, place_tree};
use crate::config::Secrets;
use crate::delivery::outbox;
use crate::delivery::undelivered::{self, Which};
use crate::domain::{AgentId, AgentUid};
use crate::home::{CheckedConfig, Home};
use crate::records::ledger::{self, By, Period};
use crate::records::{self, audit, turn_log};
use crate::storage::Db;
use crate::tenants::health::{self, Patient};

const CONFIG: &str = "
default_model = \"fake/x\"
[providers.fake]
kind = \"openai\"
base_url = \"http://127.0.0.1:9/v1\"
[access]
owners = [\"telegram:111\"]
[agents.main]
[agents.rose]
[[bindings]]
match = \"telegram:group:-1001\"
agent = \"rose\"
";
const MAIN: &str = "00000000-0000-0000-0000-000000000001";
const NOW: i64 = 1_800_000_000_000;
/// Lines of a list.
const LIMIT: usize = 5;

/// `?1` topics of groups with ten each, and as many private chats and Discord threads. Everywhere two
/// messages, a turn, spending and a pin.
const ROWS: &str = "
INSERT INTO agents (uid, slug, created_at) VALUES
    ('00000000-0000-0000-0000-000000000001', 'main', 0), ('00000000-0000-0000-0000-000000000002', 'rose', 0);
WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < COUNT),
    keys (key) AS (SELECT 'telegram:topic:' || (-1001 - n / 10) || ':' || (n + 1) FROM up
                   UNION ALL SELECT 'telegram:dm:' || n FROM up
                   UNION ALL SELECT 'discord:thread:' || (5000 + n / 10) || ':' || (90000 + n) FROM up)
INSERT INTO places (key, name, active_at, created_at) SELECT key, 'Place ' || key, 1799999000000, 1 FROM keys;
INSERT INTO messages (place_id, conversation, kind, person, person_name, text, created_at)
    SELECT id, 1, 'person', 'telegram:' || id, 'Person ' || id, 'hello', 5 FROM places
    UNION ALL SELECT id, 1, 'agent', 'telegram:' || id, NULL, 'hello', 6 FROM places;
INSERT INTO speakers (person, name, said_at) SELECT 'telegram:' || id, 'Person ' || id, 5 FROM places;
INSERT INTO people (id, name, paired_at, created_at) SELECT 'telegram:' || id, 'Person ' || id, 5, 5 FROM places;
INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome)
    SELECT 0, id, '00000000-0000-0000-0000-000000000001', 'fake/x', 'default agent', 5, 1799999999000, 'answered' FROM places;
INSERT INTO spending (day, agent_uid, place_id, person, model, turns)
    SELECT '2027-01-15', '00000000-0000-0000-0000-000000000001', id, 'telegram:' || id, 'fake/x', 1 FROM places;
INSERT INTO budgets (day, spender, tokens) SELECT '2027-01-15', 'person:telegram:' || id, 7 FROM places;
INSERT INTO pins (place_id, agent_uid, set_by, set_at)
    SELECT id, '00000000-0000-0000-0000-000000000002', 'telegram:111', 5 FROM places WHERE id % 3 = 0;
INSERT INTO pins (place_id, once, agent_uid, set_by, set_at)
    SELECT id, 1, '00000000-0000-0000-0000-000000000001', 'telegram:111', 6 FROM places WHERE id % 4 = 0;
INSERT INTO timed_pins (place_id, agent_uid, set_by, set_at, until, origin)
    SELECT id, '00000000-0000-0000-0000-000000000001', 'telegram:111', 7, 4000000000000 * (id % 2), '{}' FROM places WHERE id % 5 = 0;
INSERT INTO openings (place_id, opened_by, opened_at) SELECT id, 'telegram:111', 5 FROM places WHERE id % 2 = 0;
INSERT INTO delivery_off (place_id, set_by, set_at) SELECT id, 'telegram:111', 5 FROM places WHERE id % 7 = 0;
INSERT INTO outbox (place_id, kind, part, state, error, created_at) SELECT id, 'final', '{}', 'failed', 'gone', 5 FROM places;
INSERT INTO audit (at, actor, place_id, action) SELECT 5, 'cli', id, 'switch' FROM places;
";

/// A home with a database, looked at over one connection that notes its statements.
struct Site {
    _folder: TempDir,
    house: House,
    connection: Connection,
    statements: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn with(places: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), CONFIG).unwrap();
        let path = folder.path().join("parlor.db");
        let db = Db::open(&path).await.unwrap();
        let rows = ROWS.replace("COUNT", &places.to_string());
        let fill = move |tx: &rusqlite::Transaction<'_>| tx.execute_batch(&rows);
        db.write(fill).await.unwrap();
        let home = Home::new(folder.path());
        let checked = CheckedConfig::load(&home, Secrets::WherePresent).unwrap();
        let house = House::load(&db, checked.config, checked.table);
        let house = house.await.unwrap();
        let mut connection = Connection::open(&path).unwrap();
        let statements = Arc::new(Mutex::new(Vec::new()));
        let noted = statements.clone();
        let note = move |event: TraceEvent<'_>| {
            if let TraceEvent::Stmt(_, sql) = event {
                noted.lock().unwrap().push(sql.to_owned());
            }
        };
        connection
            .trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note))
            .unwrap();
        Site {
            _folder: folder,
            house,
            connection,
            statements,
        }
    }

    /// The statements of a look.
    fn statements_of(&self, look: Look) -> Vec<String> {
        self.statements.lock().unwrap().clear();
        look(&self.house, &self.connection).unwrap();
        std::mem::take(&mut *self.statements.lock().unwrap())
    }

    /// Tables that a statement reads from one end to the other.
    fn read_through(&self, sql: &str) -> Vec<String> {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = self.connection.prepare(&explain).unwrap();
        let blanks = vec![rusqlite::types::Null; statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(blanks), |row| {
            row.get::<_, String>("detail")
        });
        let steps: Vec<String> = steps.unwrap().map(Result::unwrap).collect();
        let scans = steps.iter().filter_map(|step| step.strip_prefix("SCAN "));
        scans.map(str::to_owned).collect()
    }
}

type Look = fn(&House, &Connection) -> rusqlite::Result<()>;

fn sessions(house: &House, connection: &Connection, wanted: Wanted) -> rusqlite::Result<()> {
    let wanted = Wanted {
        limit: LIMIT,
        ..wanted
    };
    let page = session_list::list(connection, house, &wanted)?;
    assert_eq!(page.sessions.len(), LIMIT);
    Ok(())
}

/// Every page and list that names places, people or agents.
const LOOKS: [(&str, Look); 10] = [
    ("the house", |house, connection| {
        place_tree::grown(connection, house).map(drop)
    }),
    ("names", |_, connection| names::stored(connection).map(drop)),
    ("sessions", |house, connection| {
        sessions(house, connection, Wanted::default())
    }),
    ("sessions of an agent", |house, connection| {
        let agent = AgentId::parse("rose").ok();
        let wanted = Wanted {
            agent,
            ..Wanted::default()
        };
        sessions(house, connection, wanted)
    }),
    ("sessions behind another", |house, connection| {
        let behind = Some("telegram:dm:9".parse().unwrap());
        let wanted = Wanted {
            behind,
            ..Wanted::default()
        };
        sessions(house, connection, wanted)
    }),
    ("people", |house, connection| {
        let wanted = known_people::Wanted {
            limit: LIMIT,
            ..known_people::Wanted::default()
        };
        let page = known_people::page(connection, &house.config.access, &wanted, NOW)?;
        assert_eq!((page.people.len(), page.has_more), (LIMIT, true));
        Ok(())
    }),
    ("everybody", |house, connection| {
        known_people::list(connection, &house.config.access, NOW).map(drop)
    }),
    ("usage", |_, connection| {
        By::ALL.into_iter().try_for_each(|by| {
            let lines = ledger::report(connection, by, Period::Month, None, NOW)?;
            assert!(!lines.is_empty());
            Ok(())
        })
    }),
    ("delivery and audit", |_, connection| {
        undelivered::list(connection, &Which::All)?;
        audit::latest(connection, &audit::Wanted::default(), 50).map(drop)
    }),
    ("overview", |house, connection| {
        let agents = [Patient {
            uid: MAIN.parse::<AgentUid>().unwrap(),
            id: AgentId::parse("main").unwrap(),
            models: health::Seen::Told(Vec::new()),
        }];
        let running = std::collections::HashMap::new();
        turn_log::count_since(connection, NOW - 1_000_000)?;
        outbox::troubles(connection, NOW)?;
        health::of(connection, &agents, &house.table, &running, NOW).map(drop)
    }),
];

#[tokio::test]
async fn a_larger_house_needs_no_more_statements() {
    let (small, large) = (Site::with(20).await, Site::with(300).await);
    for (name, look) in LOOKS {
        let (few, many) = (small.statements_of(look), large.statements_of(look));
        assert!(!few.is_empty(), "{name} was not noted");
        assert_eq!(few.len(), many.len(), "statements of {name}");
    }
}

#[tokio::test]
async fn no_list_reads_all_messages_or_all_turns() {
    let site = Site::with(20).await;
    for (name, look) in LOOKS {
        for sql in site.statements_of(look) {
            let scans = site.read_through(&sql);
            let mut growing = scans.iter().filter(|step| {
                let table = step.split(' ').next().unwrap_or_default();
                // The indexes of the inbox have the open rows alone.
                let is_of_open_rows = step.contains("INDEX inbox_");
                ["messages", "turns", "inbox"].contains(&table) && !is_of_open_rows
            });
            assert_eq!(growing.next(), None, "{name}: {sql}");
        }
    }
}

#[tokio::test]
async fn many_places_are_judged_as_one_is() {
    let site = Site::with(20).await;
    let settings = Settings::load(&site.connection).unwrap();
    let places = records::sessions::with_rows(&site.connection).unwrap();
    for place in &places {
        let one = site.house.holder(&site.connection, place).unwrap();
        let among = site.house.holder_among(&settings, &place.key, Some(place));
        assert_eq!(format!("{one:?}"), format!("{:?}", among.unwrap()));
    }
    assert_eq!(places.len(), 60);
}

#[tokio::test]
async fn the_parts_of_a_list_have_every_session_once() {
    let site = Site::with(20).await;
    let (mut keys, mut behind) = (Vec::new(), None);
    loop {
        let wanted = Wanted {
            limit: 7,
            behind,
            ..Wanted::default()
        };
        let page = session_list::list(&site.connection, &site.house, &wanted).unwrap();
        keys.extend(page.sessions.iter().map(|line| line.place.id.clone()));
        if !page.has_more {
            break;
        }
        behind = keys.last().map(|key| key.parse().unwrap());
    }
    assert_eq!(keys.len(), 60);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 60);
}
