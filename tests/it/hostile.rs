//! Thousands of mutated updates and events over the wire: types swapped, fields missing, huge numbers,
//! deep nesting, all of Unicode. The next honest message is answered, and memory stays bounded.
//! `PARLOR_MUTATED=10000` sends more of them, `PARLOR_SEED=7` makes others.

use serde_json::{Value, json};

use crate::fuzz::{corpus, setting};
use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_discord;
use crate::support::fake_telegram::CAROL;
use crate::support::house::Process;
use crate::support::seeded::Seeded;

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\n";
const MUTATED: u64 = 1000;
const SEED: u64 = 3;
/// Sent at once. The gateway is through with them before the next ones come.
const BATCH: u64 = 250;
/// What a process may hold more at the end than after the first batch. Places of made-up chats and what
/// an allocator keeps are a few megabytes; a leak of each payload would be a few hundred.
const MAY_GROW_KB: u64 = 48 * 1024;

/// A house that answers everybody, with made-up chats in which nothing can be sent.
async fn open_house() -> House {
    let mut house = House::new(OPEN).await;
    house.leave_leftovers();
    for promise in [Promise::SentOnce, Promise::InOrder, Promise::AnsweredOnce] {
        house.give_up(promise);
    }
    house
}

fn mutated(samples: &[Value], seeded: &mut Seeded, kept: &str) -> Value {
    let mut sample = seeded.pick(samples).clone();
    seeded.mutate_json(&mut sample, kept);
    sample
}

fn samples(target: &str) -> Vec<Value> {
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).expect("a sample is JSON");
    corpus(target).iter().map(read).collect()
}

/// Memory of the process in kilobytes, on systems that tell.
fn memory_kb(process: &Process) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns when no message waits for a turn.
async fn is_through(house: &House) {
    let looking = async {
        while house.ask("SELECT count(*) FROM inbox WHERE state = 'waiting'") != "0" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let patience = std::time::Duration::from_secs(120);
    let through = tokio::time::timeout(patience, looking).await;
    assert!(through.is_ok(), "messages still wait");
}

/// How much memory grew between the first batch and now.
struct Growth(Option<u64>);

impl Growth {
    fn check(&mut self, process: &Process, sent: u64) {
        let now = memory_kb(process);
        let first = *self.0.get_or_insert(now.unwrap_or_default());
        let grown = now.unwrap_or_default().saturating_sub(first);
        assert!(grown < MAY_GROW_KB, "{grown} KB more after {sent} updates");
    }
}

#[tokio::test]
async fn mutated_updates_of_telegram_cost_nobody_their_answer() {
    let house = open_house().await;
    let (samples, mut growth) = (samples("telegram_update"), Growth(None));
    let mut seeded = Seeded::new(setting("PARLOR_SEED", SEED));
    let process = house.spawn().await;
    let carol = house.telegram.dm(CAROL);
    let most = setting("PARLOR_MUTATED", MUTATED);
    for (round, sent) in (1..).zip((BATCH..=most).step_by(250)) {
        for _ in 0..BATCH {
            let mut update = mutated(&samples, &mut seeded, "update_id");
            update.as_object_mut().expect("kept").remove("update_id");
            house.telegram.push_raw(update);
        }
        house.telegram.all_confirmed().await;
        is_through(&house).await;
        carol.says(&format!("honest {round}")).await;
        carol.wait_for_sent(round).await;
        growth.check(&process, sent);
    }
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome LIKE '%panic%'"),
        "0"
    );
    assert!(!process.log().contains("panicked"), "{}", process.log());
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn mutated_events_of_discord_cost_nobody_their_answer() {
    let house = open_house().await;
    let discord = house.add_discord("").await;
    discord.guild(8001, "Garden").text_channel(8101, "general");
    let carol = discord.dm(fake_discord::CAROL);
    let (samples, mut growth) = (samples("discord_event"), Growth(None));
    let mut seeded = Seeded::new(setting("PARLOR_SEED", SEED));
    let process = house.spawn().await;
    discord.connected().await;
    let most = setting("PARLOR_MUTATED", MUTATED);
    for (round, sent) in (1..).zip((BATCH..=most).step_by(250)) {
        for number in 0..BATCH {
            let mut event = mutated(&samples, &mut seeded, "t");
            // Messages with the same number would be one message.
            if event["d"]["id"] == "1234567890123456789" {
                event["d"]["id"] = json!((sent * 1_000_000_007 + number).to_string());
            }
            let kind = event["t"].as_str().unwrap_or("MESSAGE_CREATE").to_owned();
            discord.dispatch_raw(None, &kind, event["d"].take());
        }
        carol.says(&format!("honest {round}")).await;
        is_through(&house).await;
        carol.wait_for_sent(round).await;
        growth.check(&process, sent);
    }
    assert!(!process.log().contains("panicked"), "{}", process.log());
    assert_eq!(process.stop().await, 0);
}
