//! What Parlor adds to a message, while one thing grows: the conversation, bindings, agents,
//! memories, stored sessions. Each should cost the same at every size, or little more.

use std::collections::HashMap;
use std::path::Path;

use parlor::agents::memory::Saving;
use parlor::agents::{Memories, Reader, Registry, agent_rows};
use parlor::config::{self, Secrets, Source, Visibility};
use parlor::storage::Db;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::PLAIN;
use super::report::{median, percentile};
use super::scene::{AGENTS, Contender, OTHER_FORUM, On, Scene, Size};
use super::server::Server;

const TOPICS: usize = 10;
const WARM_UP: usize = 20;
const MEMORIES_PER_COMMIT: usize = 5000;
/// Messages of a topic before a home is filled: a question and its answer.
const MESSAGES_AT_FIRST: usize = 2;

/// How much is measured.
pub(crate) struct Effort {
    messages: usize,
    /// Sizes above this are left out.
    largest: usize,
}

pub(crate) const FULL: Effort = Effort {
    messages: 200,
    largest: usize::MAX,
};

/// For a look at whether everything works.
pub(crate) const QUICK: Effort = Effort {
    messages: 40,
    largest: 10_000,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growing {
    Transcript,
    Bindings,
    Agents,
    Memories,
    Sessions,
}

impl Growing {
    const ALL: [Growing; 5] = [
        Growing::Transcript,
        Growing::Bindings,
        Growing::Agents,
        Growing::Memories,
        Growing::Sessions,
    ];

    fn name(self) -> &'static str {
        match self {
            Growing::Transcript => "messages of the conversation",
            Growing::Bindings => "bindings",
            Growing::Agents => "agents",
            Growing::Memories => "memories of the agent",
            Growing::Sessions => "other sessions stored",
        }
    }

    fn sizes(self) -> &'static [usize] {
        match self {
            Growing::Transcript => &[10, 100, 1000, 10_000],
            Growing::Bindings => &[10, 100, 1000, 10_000, 100_000],
            Growing::Agents => &[1, 10, 100, 1000],
            Growing::Memories => &[1000, 10_000, 100_000, 1_000_000],
            Growing::Sessions => &[0, 100, 1000, 10_000, 100_000],
        }
    }

    fn scene_size(self, on: On, size: usize) -> Size {
        let usual = Size {
            on,
            ..Size::topics(TOPICS)
        };
        match self {
            Growing::Bindings => Size {
                other_bindings: size.saturating_sub(TOPICS),
                ..usual
            },
            Growing::Agents => Size {
                agents: size,
                ..usual
            },
            // All messages are for the one who remembers.
            Growing::Memories => Size { agents: 1, ..usual },
            Growing::Transcript | Growing::Sessions => usual,
        }
    }
}

/// One line of the plot.
pub(crate) struct Growth {
    growing: Growing,
    pub(crate) on: On,
    pub(crate) points: Vec<Point>,
}

pub(crate) struct Point {
    pub(crate) size: usize,
    /// Milliseconds.
    pub(crate) median: f64,
    p95: f64,
}

impl Growth {
    pub(crate) fn name(&self) -> String {
        match self.on {
            On::Telegram => self.growing.name().to_owned(),
            On::Discord => format!("{}, Discord", self.growing.name()),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let points = self
            .points
            .iter()
            .map(|point| json!({ "size": point.size, "median": point.median, "p95": point.p95 }));
        json!({ "what": self.name(), "unit": "ms", "points": points.collect::<Vec<_>>() })
    }

    /// The cost at the largest size, as a multiple of the cost at the smallest.
    fn ratio(&self) -> f64 {
        let ends = self.points.first().zip(self.points.last());
        ends.map_or(1.0, |(first, last)| last.median / first.median)
    }

    fn rows(&self) -> String {
        let points = self.points.iter().map(|point| {
            let (size, median, p95) = (point.size, point.median, point.p95);
            format!(
                "{:<42}{size:>10}{median:>10.2}{p95:>10.2} ms\n",
                self.name()
            )
        });
        let end = format!(
            "{:<42}{:>10}{:>9.2}×\n",
            "  largest against smallest",
            "",
            self.ratio()
        );
        points.collect::<String>() + &end
    }
}

pub(crate) fn table(growth: &[Growth]) -> String {
    let head = format!("\n{:<42}{:>10}{:>10}{:>10}\n", "", "size", "median", "p95");
    head + &growth.iter().map(Growth::rows).collect::<String>()
}

pub(crate) async fn measure(program: &Path, effort: &Effort) -> Vec<Growth> {
    let mut all = Vec::new();
    let on_both = [On::Telegram, On::Discord].map(|on| Growing::ALL.map(|growing| (on, growing)));
    for (on, growing) in on_both.into_iter().flatten() {
        let mut points = Vec::new();
        for size in growing
            .sizes()
            .iter()
            .filter(|size| **size <= effort.largest)
        {
            points.push(point(program, (on, growing), *size, effort.messages).await);
            println!("measured {size} {}, {on:?}", growing.name());
        }
        all.push(Growth {
            growing,
            on,
            points,
        });
    }
    all
}

async fn point(
    program: &Path,
    (on, growing): (On, Growing),
    size: usize,
    messages: usize,
) -> Point {
    let contender = Contender::Parlor(program.to_owned());
    let scene = Scene::of(contender, growing.scene_size(on, size)).await;
    let gateway = scene.start().await;
    scene.exchange(TOPICS).await;
    gateway.stop().await;
    match growing {
        Growing::Transcript => fill_transcript(&scene, size),
        Growing::Sessions => fill_sessions(&scene, size),
        Growing::Memories => fill_memories(&scene, size).await,
        Growing::Bindings | Growing::Agents => {}
    }
    let gateway = scene.start().await;
    scene.exchange(WARM_UP + messages).await;
    gateway.stop().await;
    let overhead: Vec<f64> = scene.overhead().skip(TOPICS + WARM_UP).collect();
    Point {
        size,
        median: median(&overhead),
        p95: percentile(&overhead, 95),
    }
}

/// Every topic gets so many messages.
fn fill_transcript(scene: &Scene, messages: usize) {
    let copies = (messages / MESSAGES_AT_FIRST).saturating_sub(1);
    let store = Connection::open(scene.database()).expect("there is a database");
    copy_rows(
        &store,
        "messages",
        copies,
        "true",
        &[("inbox_id", "-number")],
    );
}

/// Places of another forum, each with the conversation of the first topic.
fn fill_sessions(scene: &Scene, sessions: usize) {
    let store = Connection::open(scene.database()).expect("there is a database");
    let number = |sql: &str| -> i64 {
        let number = store.query_row(sql, [], |row| row.get(0));
        number.expect("a number")
    };
    let first = number("SELECT min(place_id) FROM messages");
    let last = number("SELECT max(id) FROM places");
    let key = match scene.server {
        None => format!("'telegram:topic:{OTHER_FORUM}:' || number"),
        Some(_) => Server::other_key(),
    };
    let place = format!("{last} + number");
    copy_rows(
        &store,
        "places",
        sessions,
        &format!("id = {first}"),
        &[("key", &key)],
    );
    let of_first = format!("place_id = {first}");
    let of_copy = [("place_id", place.as_str()), ("inbox_id", "-number")];
    copy_rows(&store, "messages", sessions, &of_first, &of_copy);
    copy_rows(&store, "turns", sessions, &of_first, &of_copy);
}

/// Inserts copies of rows. `changed` has columns with their SQL, in which `number` counts the
/// copies from one.
fn copy_rows(store: &Connection, table: &str, copies: usize, rows: &str, changed: &[(&str, &str)]) {
    if copies == 0 {
        return;
    }
    let columns = columns(store, table);
    let values = columns.iter().map(|column| {
        let change = changed.iter().find(|(name, _)| name == column);
        change.map_or(column.as_str(), |(_, sql)| *sql)
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let copied = store.execute_batch(&format!(
        "WITH RECURSIVE numbers (number) AS
             (VALUES (1) UNION ALL SELECT number + 1 FROM numbers WHERE number < {copies})
         INSERT INTO {table} ({}) SELECT {values} FROM numbers, {table} WHERE {rows} ORDER BY number, id",
        columns.join(", ")
    ));
    copied.unwrap_or_else(|error| panic!("filling {table}: {error}"));
}

/// Without the row's own number.
fn columns(store: &Connection, table: &str) -> Vec<String> {
    let sql = "SELECT name FROM pragma_table_info(?1) WHERE name <> 'id'";
    let mut names = store.prepare(sql).expect("SQLite tells its columns");
    let names = names.query_map([table], |row| row.get(0));
    let names = names.and_then(Iterator::collect);
    names.expect("SQLite tells its columns")
}

/// Of main, through Parlor's own code, because the index belongs to the rows.
async fn fill_memories(scene: &Scene, memories: usize) {
    let db = Db::open(&scene.database())
        .await
        .expect("there is a database");
    let path = scene.home().join("config.toml");
    let text = std::fs::read_to_string(&path).expect("there is a config");
    let draft = config::draft(Source { path, text }, scene.home(), Secrets::WherePresent);
    let config = draft.finish().expect("the config is right");
    let known = db.read(agent_rows::load).await.expect("there are agents");
    let uids: HashMap<_, _> = known.into_iter().map(|(id, row)| (id, row.uid)).collect();
    let registry = Registry::new(&config, scene.home(), &uids);
    let main = registry
        .all()
        .iter()
        .find(|agent| agent.id.as_str() == AGENTS[0]);
    let memory = Memories::new(db.clone()).of(main.expect("main is there"));
    let memory = memory.expect("memory is on");
    let reader = Reader::operator(&[], None);
    for from in (0..memories).step_by(MEMORIES_PER_COMMIT) {
        let numbers = from..memories.min(from + MEMORIES_PER_COMMIT);
        let save = |number| memory.saving(&reader, &memorable(number), Some(Visibility::Private));
        let rows: Vec<Saving> = numbers
            .map(|number| save(number).expect("a text can be remembered"))
            .collect();
        let write = move |tx: &rusqlite::Transaction<'_>| {
            rows.iter().try_for_each(|row| row.write(tx).map(drop))
        };
        db.write(write).await.expect("rows are written");
    }
}

/// Twelve words: two of the question, as everyday words are in many memories, and ten others.
fn memorable(number: usize) -> String {
    let asked: Vec<&str> = PLAIN.trim_end_matches('?').split(' ').collect();
    let of_question = [number % asked.len(), number / asked.len() % asked.len()];
    let of_question = of_question.map(|index| asked[index].to_owned());
    let others = (1..=10).map(|place| format!("w{}", number * place % 20_011));
    of_question
        .into_iter()
        .chain(others)
        .collect::<Vec<_>>()
        .join(" ")
}
