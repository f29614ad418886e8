//! How long a recall takes, and that it does not depend on how much others remember.
//!
//! `MEMORY_AGENTS` and `MEMORY_ROWS` (per agent) set the size. The aim, 10 ms for 95 of 100
//! questions, is for 100 agents with 100,000 each; writing those takes a while.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parlor::agents::memory::{Reader, Saving, Scope};
use parlor::agents::{Agent, Memories, Memory, Registry, agent_rows};
use parlor::config::{self, Secrets, Source, Visibility};
use parlor::storage::Db;

/// Different words of the whole house. The n-th is as frequent as 1/n, as in real texts.
const VOCABULARY: f64 = 20_000.0;
const WORDS_PER_ROW: usize = 20;
const GLOBAL_ROWS: usize = 1000;
const ROWS_PER_COMMIT: usize = 5000;
const QUESTIONS: usize = 400;
const LIMIT: u32 = 12;

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let (agents, rows) = (size("MEMORY_AGENTS", 10), size("MEMORY_ROWS", 20_000));
    let alone = house("one agent", 1, rows).await;
    let among = house("the same among others", agents, rows).await;
    println!(
        "\nwith {} rows of others, against alone",
        (agents - 1) * rows
    );
    for (among, alone) in among.iter().zip(&alone) {
        println!(
            "{:<28} p50 × {:.2}  p95 × {:.2}",
            among.name,
            ratio(among.p(50), alone.p(50)),
            ratio(among.p(95), alone.p(95))
        );
    }
}

/// A store with so many agents, and how long the first of them takes to remember.
async fn house(title: &str, agents: usize, rows: usize) -> Vec<Kind> {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("parlor.db");
    let db = Db::open(&path).await.expect("a database");
    let registry = registry(home.path(), &db, agents).await;
    let memories = Memories::new(db.clone());
    let started = Instant::now();
    let mut chance = Chance(7);
    fill(
        &db,
        &memories,
        &registry.all()[..1],
        GLOBAL_ROWS,
        Visibility::Global,
        &mut chance,
    )
    .await;
    fill(
        &db,
        &memories,
        &registry.all()[1..],
        rows,
        Visibility::Private,
        &mut chance,
    )
    .await;
    let megabytes = std::fs::metadata(path).map_or(0, |file| file.len()) / 1_000_000;
    println!(
        "{title}: {agents} × {rows} rows and {GLOBAL_ROWS} global ones, {megabytes} MB, written in {} s",
        started.elapsed().as_secs()
    );
    let measured = measure(&memories, &registry.all()[1]).await;
    measured.iter().for_each(Kind::print);
    measured
}

fn size(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
        .max(2)
}

async fn registry(home: &std::path::Path, db: &Db, agents: usize) -> Registry {
    let text: String = (1..=agents)
        .map(|number| format!("[agents.agent-{number}]\n"))
        .collect();
    let source = Source {
        path: "config.toml".into(),
        text,
    };
    let config = config::draft(source, home, Secrets::WherePresent)
        .finish()
        .expect("a config");
    let ids: Vec<_> = config.agents.iter().map(|agent| agent.id.clone()).collect();
    db.write(move |tx| agent_rows::add(tx, &ids, 1))
        .await
        .expect("agents are written");
    let known = db.read(agent_rows::load).await.expect("agents are read");
    let uids: HashMap<_, _> = known
        .into_iter()
        .map(|(id, known)| (id, known.uid))
        .collect();
    Registry::new(&config, home, &uids)
}

/// The agents take turns, as they do in a house, so that the rows of each are spread over the whole
/// file.
async fn fill(
    db: &Db,
    memories: &Memories,
    agents: &[Arc<Agent>],
    rows: usize,
    visibility: Visibility,
    chance: &mut Chance,
) {
    let handles: Vec<Memory> = agents
        .iter()
        .map(|agent| memories.of(agent).expect("memory is on"))
        .collect();
    let mut left = rows * agents.len();
    let mut turns = handles.iter().cycle();
    while left > 0 {
        let portion = left.min(ROWS_PER_COMMIT);
        left -= portion;
        let save = |memory: &Memory, chance: &mut Chance| {
            memory
                .saving(
                    &Reader::operator(&[], None),
                    &chance.words(WORDS_PER_ROW, 0.0),
                    Some(visibility),
                )
                .expect("a memory")
        };
        let mut writers: Vec<&Memory> = turns.by_ref().take(portion).collect();
        // Those of one agent together, because the index likes that within a commit.
        writers.sort_by_key(|memory| memory.agent().id.clone());
        let all: Vec<Saving> = writers
            .into_iter()
            .map(|memory| save(memory, chance))
            .collect();
        let write = move |tx: &rusqlite::Transaction<'_>| {
            all.iter().try_for_each(|saving| saving.write(tx).map(drop))
        };
        db.write(write).await.expect("rows are written");
    }
}

/// Questions of one kind with their times, sorted.
struct Kind {
    name: &'static str,
    times: Vec<Duration>,
    /// What the processor spent on them: the same on a busy machine as on an idle one. Empty where
    /// the system does not tell.
    work: Vec<Duration>,
}

impl Kind {
    fn p(&self, percent: usize) -> Duration {
        let of = if self.work.is_empty() {
            &self.times
        } else {
            &self.work
        };
        of[(of.len() - 1) * percent / 100]
    }

    fn print(&self) {
        let of = |times: &[Duration], percent: usize| {
            times
                .get(times.len().saturating_sub(1) * percent / 100)
                .map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        let (times, work) = (&self.times, &self.work);
        println!(
            "{:<28} p50 {:6.2} ms  p95 {:6.2} ms   processor p50 {:6.2} ms  p95 {:6.2} ms",
            self.name,
            of(times, 50),
            of(times, 95),
            of(work, 50),
            of(work, 95)
        );
    }
}

/// Each kind of question, and all of them together.
async fn measure(memories: &Memories, agent: &Arc<Agent>) -> Vec<Kind> {
    let mut chance = Chance(11);
    type Ask = fn(&mut Chance) -> String;
    let kinds: [(&'static str, Ask); 4] = [
        ("a message of 12 words", |chance| chance.words(12, 0.0)),
        ("two rare words", |chance| chance.words(2, 0.6)),
        ("one very common word", |chance| word(chance.below(5))),
        ("three very common words", |chance| {
            format!(
                "{} {} {}",
                word(0),
                word(1 + chance.below(3)),
                word(4 + chance.below(4))
            )
        }),
    ];
    let reader = Reader::operator(&[], None);
    let mut measured = Vec::new();
    for (name, ask) in kinds {
        let (mut times, mut work) = (Vec::new(), Vec::new());
        for _ in 0..QUESTIONS {
            let text = ask(&mut chance);
            let (started, worked) = (Instant::now(), processor_time());
            let found = memories
                .search(Scope::Of(agent, &reader), &text, LIMIT)
                .await
                .expect("a search");
            times.push(started.elapsed());
            work.extend(
                processor_time()
                    .zip(worked)
                    .map(|(now, before)| now.saturating_sub(before)),
            );
            assert!(found.len() <= LIMIT as usize);
        }
        measured.push(Kind { name, times, work });
    }
    let all = measured
        .iter()
        .flat_map(|kind| kind.times.clone())
        .collect();
    let all_work = measured.iter().flat_map(|kind| kind.work.clone()).collect();
    measured.push(Kind {
        name: "all of these",
        times: all,
        work: all_work,
    });
    for kind in &mut measured {
        kind.times.sort_unstable();
        kind.work.sort_unstable();
    }
    measured
}

/// Of all threads of this process together, where Linux tells.
fn processor_time() -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(nanos.sum()))
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// The same numbers in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 33)
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.next() % u64::from(end)).expect("smaller than a u32")
    }

    /// Words by their frequency; `least` leaves out the most frequent, as a share of the
    /// (logarithmic) scale.
    fn words(&mut self, count: usize, least: f64) -> String {
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            let share = least + (1.0 - least) * f64::from(self.below(1 << 30)) / f64::from(1 << 30);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rank of a word, from 0 to 20,000"
            )]
            let rank = VOCABULARY.powf(share) as u32 - 1;
            words.push(word(rank));
        }
        words.join(" ")
    }
}

/// A word that can be spoken, another for each rank.
fn word(rank: u32) -> String {
    const SYLLABLES: [&str; 20] = [
        "ba", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "da", "fe", "gi", "ho", "ju",
        "la", "me", "ni", "po", "ru",
    ];
    let mut rest = rank + 400;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[(rest % 20) as usize]);
        rest /= 20;
    }
    word
}
