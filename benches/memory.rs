//! How long a recall takes, and that it does not depend on how much others remember.
//!
//! `MEMORY_AGENTS` and `MEMORY_ROWS` (per agent) set the size; the README's figures are those of 100 agents with 100,000 each.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parlor::agents::memory::transfer::Carried;
use parlor::agents::memory::{Provenance, Scope};
use parlor::agents::{Agent, Memories, Registry, roster};
use parlor::config::{self, Secrets, Source, Visibility};
use parlor::storage::Db;

/// Different words of the whole house. The n-th is as frequent as 1/n, as in real texts.
const VOCABULARY: f64 = 20_000.0;
const WORDS_PER_ROW: usize = 20;
const GLOBAL_ROWS: usize = 1000;
const QUESTIONS: usize = 400;
const LIMIT: u32 = 12;

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let (agents, rows) = (size("MEMORY_AGENTS", 10), size("MEMORY_ROWS", 20_000));
    let home = tempfile::tempdir().expect("a folder");
    let db = Db::open(&home.path().join("parlor.db")).await.expect("a database");
    let registry = registry(home.path(), &db, agents).await;
    let memories = Memories::new(db);
    let mut chance = Chance(7);

    fill(&memories, &registry.all()[0], GLOBAL_ROWS, Visibility::Global, &mut chance).await;
    fill(&memories, &registry.all()[1], rows, Visibility::Private, &mut chance).await;
    let alone = measure(&memories, &registry.all()[1]).await;
    println!("1 agent with {rows} rows, {GLOBAL_ROWS} global rows");
    alone.iter().for_each(Kind::print);

    let started = Instant::now();
    for agent in &registry.all()[2..] {
        fill(&memories, agent, rows, Visibility::Private, &mut chance).await;
    }
    let others = (agents - 1) * rows;
    println!("\n{agents} agents with {rows} rows each (the others' were written in {} s)", started.elapsed().as_secs());
    let among = measure(&memories, &registry.all()[1]).await;
    among.iter().for_each(Kind::print);

    println!("\nthe same agent with {others} rows of others, against alone");
    for (among, alone) in among.iter().zip(&alone) {
        println!("{:<28} p50 × {:.2}  p95 × {:.2}", among.name, ratio(among.p(50), alone.p(50)), ratio(among.p(95), alone.p(95)));
    }
    let bytes = std::fs::metadata(home.path().join("parlor.db")).map_or(0, |file| file.len());
    println!("\nthe database has {} MB", bytes / 1_000_000);
}

fn size(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default).max(2)
}

async fn registry(home: &std::path::Path, db: &Db, agents: usize) -> Registry {
    let text: String = (1..=agents).map(|number| format!("[agents.agent-{number}]\n")).collect();
    let source = Source { path: "config.toml".into(), text };
    let config = config::draft(source, home, Secrets::WherePresent).finish().expect("a config");
    let ids: Vec<_> = config.agents.iter().map(|agent| agent.id.clone()).collect();
    db.write(move |tx| roster::add(tx, &ids, 1)).await.expect("agents are written");
    let known = db.read(roster::load).await.expect("agents are read");
    let uids: HashMap<_, _> = known.into_iter().map(|(id, known)| (id, known.uid)).collect();
    Registry::new(&config, home, &uids)
}

async fn fill(memories: &Memories, agent: &Arc<Agent>, rows: usize, visibility: Visibility, chance: &mut Chance) {
    let memory = memories.of(agent).expect("memory is on");
    let row = |number: usize, chance: &mut Chance| Carried {
        agent: agent.id.clone(),
        visibility,
        text: chance.words(WORDS_PER_ROW, 0.0),
        said: Provenance::default(),
        created_at: i64::try_from(number).expect("a small number"),
    };
    let all = (0..rows).map(|number| row(number, chance)).collect();
    memory.import(all).await.expect("rows are written");
}

/// Questions of one kind with their times, sorted.
struct Kind {
    name: &'static str,
    times: Vec<Duration>,
}

impl Kind {
    fn p(&self, percent: usize) -> Duration {
        self.times[(self.times.len() - 1) * percent / 100]
    }

    fn print(&self) {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        println!("{:<28} p50 {:6.2} ms  p95 {:6.2} ms", self.name, millis(self.p(50)), millis(self.p(95)));
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
        ("three very common words", |chance| format!("{} {} {}", word(0), word(1 + chance.below(3)), word(4 + chance.below(4)))),
    ];
    let mut measured = Vec::new();
    for (name, ask) in kinds {
        let mut times = Vec::new();
        for _ in 0..QUESTIONS {
            let text = ask(&mut chance);
            let started = Instant::now();
            let found = memories.search(Scope::Of(agent), &text, LIMIT).await.expect("a search");
            times.push(started.elapsed());
            assert!(found.len() <= LIMIT as usize);
        }
        measured.push(Kind { name, times });
    }
    let all = measured.iter().flat_map(|kind| kind.times.clone()).collect();
    measured.push(Kind { name: "all of these", times: all });
    measured.iter_mut().for_each(|kind| kind.times.sort_unstable());
    measured
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// The same numbers in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 33)
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.next() % u64::from(end)).expect("smaller than a u32")
    }

    /// Words by their frequency; `least` leaves out the most frequent, as a share of the (logarithmic) scale.
    fn words(&mut self, count: usize, least: f64) -> String {
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            let share = least + (1.0 - least) * f64::from(self.below(1 << 30)) / f64::from(1 << 30);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of a word, from 0 to 20,000")]
            let rank = VOCABULARY.powf(share) as u32 - 1;
            words.push(word(rank));
        }
        words.join(" ")
    }
}

/// A word that can be spoken, another for each rank.
fn word(rank: u32) -> String {
    const SYLLABLES: [&str; 20] =
        ["ba", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "da", "fe", "gi", "ho", "ju", "la", "me", "ni", "po", "ru"];
    let mut rest = rank + 400;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[(rest % 20) as usize]);
        rest /= 20;
    }
    word
}
