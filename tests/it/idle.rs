//! What many agents and many conversations cost the real program while nobody writes. Reads
//! `/proc`; elsewhere there is nothing to see.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_telegram::{ALICE, OTHER_BOT};
use crate::support::house::Process;

const OPEN: &str =
    "[access]\nowners = [\"telegram:111\"]\ngroups = \"open\"\nrequire_mention = false\n";

/// Memory counts as settled when it reads the same this often in a row.
const EQUAL_SAMPLES: usize = 5;
const MOST_SAMPLES: usize = 50;

/// A config with `main` and so many agents more, each with a topic of its own.
fn team_of(more: usize) -> String {
    let agent = |number| {
        format!(
            "[agents.a{number}]\n[[bindings]]\nmatch = \"telegram:topic:-1001:{number}\"\nagent = \"a{number}\"\n"
        )
    };
    format!(
        "{OPEN}[agents.main]\n{}",
        (100..100 + more).map(agent).collect::<String>()
    )
}

/// The agents as an operator has them: with a folder, a soul and a memory.
fn furnish(house: &House, more: usize) {
    for number in 100..100 + more {
        house.write(
            &format!("agents/a{number}/SOUL.md"),
            &"Useful first, pleasant second.\n".repeat(20),
        );
        house.write(
            &format!("agents/a{number}/MEMORY.md"),
            &"Ann likes tea.\n".repeat(50),
        );
    }
}

fn has_proc() -> bool {
    Path::new("/proc/self/status").exists() && std::fs::read_to_string("/proc/self/io").is_ok()
}

fn proc(process: &Process, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{file}", process.pid()))
        .expect("the program is running")
}

/// A line such as `VmRSS:  14000 kB`.
fn number(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("the kernel tells it");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

/// In KiB, once it no longer changes.
async fn settled_memory(process: &Process) -> u64 {
    let read = || number(&proc(process, "status"), "VmRSS:");
    let (mut last, mut equal) = (read(), 1);
    for _ in 0..MOST_SAMPLES {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = read();
        equal = if now == last { equal + 1 } else { 1 };
        last = now;
        if equal == EQUAL_SAMPLES {
            break;
        }
    }
    last
}

fn sockets(process: &Process) -> usize {
    let folder =
        std::fs::read_dir(format!("/proc/{}/fd", process.pid())).expect("the program is running");
    let targets = folder
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

struct Idle {
    memory_kib: u64,
    sockets: usize,
}

/// On both platforms, after an update that nobody answers, with the next poll under way.
async fn idle_with(more: usize) -> Idle {
    let house = House::new(&team_of(more)).await;
    furnish(&house, more);
    let discord = house.add_discord("").await;
    let process = house.spawn().await;
    discord.connected().await;
    house
        .telegram
        .forum(-1001)
        .topic(100, "First")
        .says(OTHER_BOT, "beep")
        .await;
    house.telegram.all_confirmed().await;
    let memory_kib = settled_memory(&process).await;
    let idle = Idle {
        memory_kib,
        sockets: sockets(&process),
    };
    assert_eq!(
        (discord.identifies().len(), discord.connections()),
        (1, 1),
        "one session on Discord"
    );
    let polls = house.telegram.calls("getUpdates");
    let open = polls.iter().filter(|poll| poll.answered.is_none()).count();
    assert_eq!(open, 1, "one poll at a time on Telegram");
    assert_eq!(
        house.ask("SELECT count(*) FROM agents"),
        (more + 1).to_string(),
        "all of them are there"
    );
    assert_eq!(process.stop().await, 0);
    idle
}

/// S4.6, S4.8, S4.4, S4.31: fifty agents more cost less than 20 MB, no socket, no poll and no
/// session.
#[tokio::test]
async fn fifty_idle_agents_cost_little_memory_and_no_connection() {
    if !has_proc() {
        return eprintln!("skipped: there is no /proc here");
    }
    let (one, many) = (idle_with(0).await, idle_with(50).await);
    let more = many.memory_kib.saturating_sub(one.memory_kib);
    assert!(
        more < 20_000_000 / 1024,
        "{} KiB with one agent, {} KiB with fifty more",
        one.memory_kib,
        many.memory_kib
    );
    // Calls of the start run side by side, so there are a few connections more or less. One for
    // each agent would be fifty.
    assert!(
        many.sockets < one.sockets + 10,
        "{} sockets with one agent, {} with fifty more",
        one.sockets,
        many.sockets
    );
}

/// Conversations as they are after months: closed, with pins, models, names, turns and everything
/// that was sent.
const SESSIONS: &str = "
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO places (key, name, created_at, active_at) SELECT 'telegram:topic:-1002:' || i, 'Topic ' || i, i, i FROM n;
    INSERT INTO pins (place_id, agent_uid, set_by, set_at)
        SELECT id, (SELECT uid FROM agents WHERE slug = 'main'), 'telegram:111', 1 FROM places;
    INSERT INTO model_overrides (place_id, model, set_by, set_at) SELECT id, 'fake/any', 'telegram:111', 1 FROM places;
    INSERT INTO messages (place_id, conversation, kind, person, person_name, text, created_at)
        SELECT id, 1, 'person', 'telegram:111', 'Alice', 'something that was said long ago', 1 FROM places;
    INSERT INTO inbox (platform, update_id, place_id, state, outcome, received_at, closed_at)
        SELECT 'telegram', 'old-' || created_at, id, 'done', 'answered', unixepoch() * 1000, unixepoch() * 1000 FROM places;
    INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome)
        SELECT created_at, id, (SELECT uid FROM agents WHERE slug = 'main'), 'fake/any', 'default_agent', 1, 2, 'answered' FROM places;
    INSERT INTO outbox (place_id, kind, part, state, created_at, sent_at)
        SELECT id, 'final', '{\"text\": \"an answer that was sent long ago\"}', 'sent', unixepoch() * 1000, unixepoch() * 1000 FROM places;
    INSERT INTO people (id, name, paired_at, created_at) SELECT 'telegram:' || (1000 + created_at), 'Somebody', 1, 1 FROM places;
    INSERT INTO discord_seen (channel, message, seen_at) SELECT created_at, 1, 1 FROM places;
";

/// Bytes that the program has read from files until it has answered somebody.
async fn read_until_the_first_answer(house: &House) -> u64 {
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    let before = alice.texts().len();
    alice.says("hello").await;
    alice.wait_for_sent(before + 1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let read = number(&proc(&process, "io"), "rchar:");
    assert_eq!(process.stop().await, 0);
    read
}

/// S1.56: a start looks at what is open, and at nothing else. What it reads is counted, because
/// time depends on the machine.
#[tokio::test]
async fn a_start_reads_no_more_with_twenty_thousand_conversations() {
    if !has_proc() {
        return eprintln!("skipped: there is no /proc here");
    }
    let house = House::new(OPEN).await;
    // Most rows are made up.
    house.give_up(Promise::AnsweredOnce);
    read_until_the_first_answer(&house).await;
    let few = read_until_the_first_answer(&house).await;
    let connection =
        Connection::open(house.home.path().join("parlor.db")).expect("the database opens");
    connection
        .execute_batch(&format!("BEGIN; {SESSIONS} COMMIT;"))
        .expect("the rows fit");
    drop(connection);
    let size = std::fs::metadata(house.home.path().join("parlor.db"))
        .expect("it is there")
        .len();
    assert!(
        size > 12_000_000,
        "{size} bytes would be too little to notice"
    );
    let many = read_until_the_first_answer(&house).await;
    // A lookup reads a page or two more in a tree that is one level deeper.
    assert!(
        many < few + 500_000,
        "{few} bytes were read before, {many} with a database of {size}"
    );
}
