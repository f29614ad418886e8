//! Histories made from a seed: people write, edit, stop and switch; the process is killed, stopped
//! and told to read its config again; calls are refused, limited and cut. In the end everything is
//! answered, once, in its place and in order.
//!
//! `scripts/soak --seed N` repeats one history.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::fail_points::told;
use crate::support::checker::Promise;
use crate::support::crowd::{Crowd, Due};
use crate::support::fake_discord::{self, routes::Route};
use crate::support::fake_telegram::Fault;
use crate::support::house::Process;

/// Tried in every check; `scripts/soak` tries more.
const HISTORIES: u64 = 16;
const STEPS: usize = 40;
const PLACES: usize = 8;
/// Histories at the same time. Most of a history is waiting.
const AT_ONCE: u64 = 2;
/// A line for so many histories, in a long run.
const TOLD_EACH: u64 = 100;
/// Everything is answered this long after the last fault, on a loaded machine.
const BOUND: Duration = Duration::from_secs(90);

/// SplitMix64: the same numbers from a seed on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides).expect("small");
        usize::try_from(self.roll() % sides).expect("small")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Step {
    Says(&'static str),
    Commands(&'static str),
    Stops,
    Edits,
    Reloads,
    Kill,
    Terminate,
    Telegram(&'static str, Fault),
    Discord(fake_discord::Fault),
    Disconnect,
    Wait,
}

/// What happens often is named often.
const STEPS_TO_CHOOSE: &[Step] = &[
    Step::Says("please"),
    Step::Says("please"),
    Step::Says("please"),
    Step::Says("please"),
    Step::Says("please"),
    Step::Says("please"),
    Step::Says("use a tool"),
    Step::Says("use a tool"),
    Step::Says("spawn"),
    Step::Says("slowly"),
    Step::Commands("/agent rose"),
    Step::Commands("/agent main"),
    Step::Commands("/new"),
    Step::Commands("/whoami"),
    Step::Stops,
    Step::Edits,
    Step::Reloads,
    Step::Kill,
    Step::Kill,
    Step::Terminate,
    Step::Telegram("sendMessage", Fault::RetryAfter(1)),
    Step::Telegram("sendMessage", Fault::DroppedBefore),
    Step::Telegram("sendMessage", Fault::DroppedAfter),
    Step::Telegram("sendMessage", Fault::HtmlAfter(502)),
    Step::Telegram("editMessageText", Fault::DroppedAfter),
    Step::Telegram("getUpdates", Fault::DroppedAfter),
    Step::Telegram("getUpdates", Fault::Html(502)),
    Step::Discord(fake_discord::Fault::RateLimited(0.5)),
    Step::Discord(fake_discord::Fault::DroppedBefore),
    Step::Discord(fake_discord::Fault::DroppedAfter),
    Step::Disconnect,
    Step::Wait,
    Step::Wait,
];

struct History {
    crowd: Crowd,
    process: Process,
    dice: Dice,
    /// The newest question of each place that nobody has edited: number, id and words.
    newest: Vec<Option<(u32, i64, &'static str)>>,
    /// Kills and calls without an answer, each of which may leave half of a slow answer behind.
    doubts: usize,
    reloads: usize,
}

impl History {
    async fn begin(seed: u64) -> Self {
        let mut crowd = Crowd::new(PLACES).await;
        let process = crowd.house.spawn().await;
        crowd.discord.connected().await;
        for spot in 0..crowd.spots.len() {
            crowd.says(spot, "please").await;
        }
        crowd.quiet(BOUND).await;
        History {
            newest: vec![None; crowd.spots.len()],
            crowd,
            process,
            dice: Dice(seed),
            doubts: 0,
            reloads: 0,
        }
    }

    async fn take(&mut self, step: Step) {
        let spot = self.dice.below(self.crowd.spots.len());
        match step {
            Step::Says(words) => {
                let (number, message) = self.crowd.says(spot, words).await;
                self.newest[spot] = Some((number, message, words));
            }
            Step::Commands(command) => {
                self.crowd.spots[spot].says(command).await;
            }
            Step::Stops => self.stops(spot).await,
            Step::Edits => self.edits(spot).await,
            Step::Reloads => self.reload().await,
            Step::Kill => self.restart(true).await,
            Step::Terminate => self.restart(false).await,
            Step::Telegram(method, fault) => {
                self.doubts += 1;
                self.crowd.house.telegram.fail(method, fault).once();
            }
            Step::Discord(fault) => self.crowd.discord.fail(Route::CreateMessage, fault).once(),
            Step::Disconnect => self.crowd.discord.drop_connections(),
            Step::Wait => {
                let millis = self.dice.below(200);
                tokio::time::sleep(Duration::from_millis(millis.try_into().expect("small"))).await;
            }
        }
    }

    /// Questions that have no answer yet may stay without one.
    async fn stops(&mut self, spot: usize) {
        for number in self.crowd.unanswered_in(spot) {
            self.crowd.said.get_mut(&number).expect("known").due = Due::Perhaps;
        }
        self.crowd.spots[spot].says("/stop").await;
        self.newest[spot] = None;
    }

    /// Only questions without tools, because an edited question may be asked again.
    async fn edits(&mut self, spot: usize) {
        let Some((number, message, "please")) = self.newest[spot].take() else {
            return;
        };
        let said = self.crowd.said.get_mut(&number).expect("known");
        said.due = Due::AtLeastOnce;
        self.crowd.spots[spot]
            .edits(message, &format!("m{number} pretty please"))
            .await;
    }

    async fn reload(&mut self) {
        self.reloads += 1;
        let house = &self.crowd.house;
        let config = house.config();
        let begin = config.find("name = \"Rose").expect("Rose has a name");
        let end = begin + config[begin..].find('\n').expect("a line");
        let renamed = format!(
            "{}name = \"Rose {}\"{}",
            &config[..begin],
            self.reloads,
            &config[end..]
        );
        house.write("config.toml", &renamed);
        // A process that has just begun knows no signals yet, and would end.
        self.process.wait_for_log("is up.").await;
        self.process.hang_up().await;
    }

    async fn restart(&mut self, is_kill: bool) {
        self.doubts += 1;
        let home = self.crowd.house.home.path();
        let signal = if is_kill { "KILL" } else { "TERM" };
        self.process.signal(signal).await;
        // A process that is told to stop may take its ten seconds.
        while !self.process.is_over() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.process = Process::start(home, &["run"]);
    }

    /// The faults have ended. Everything is answered within a bound, and all promises were kept.
    async fn end(self) {
        self.crowd.quiet(BOUND).await;
        // The last step may have begun this process, which knows no signals yet.
        self.process.wait_for_log("is up.").await;
        assert_eq!(self.process.stop().await, 0);
        self.crowd.check();
        let halves = self.crowd.halves();
        assert!(
            halves <= self.doubts,
            "{halves} halves\n{}",
            self.crowd.told()
        );
        if halves > 0 {
            self.crowd.house.give_up(Promise::SentOnce);
        }
        if self.crowd.gave_up_in_doubt() {
            self.crowd.house.give_up(Promise::NothingLeft);
        }
    }
}

async fn live(seed: u64) {
    let mut history = History::begin(seed).await;
    for _ in 0..STEPS {
        let step = history.dice.pick(STEPS_TO_CHOOSE);
        history.take(step).await;
    }
    history.end().await;
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_history_ends_with_every_message_answered_once() {
    let first = setting("PARLOR_SOAK_SEED").unwrap_or(1);
    let count = setting("PARLOR_SOAK_COUNT").unwrap_or(HISTORIES);
    let at_once = setting("PARLOR_SOAK_AT_ONCE").unwrap_or(AT_ONCE);
    let at_once = usize::try_from(at_once).expect("small");
    let (slots, mut running) = (Arc::new(Semaphore::new(at_once)), JoinSet::new());
    for seed in first..first + count {
        let slots = slots.clone();
        running.spawn(async move {
            let _slot = slots.acquire_owned().await.expect("never closed");
            let lived = tokio::spawn(live(seed)).await;
            lived
                .err()
                .map(|error| format!("scripts/soak --seed {seed} --count 1: {}", told(error)))
        });
    }
    let (mut ended, mut failures) = (0, Vec::new());
    while let Some(lived) = running.join_next().await {
        ended += 1;
        if let Some(failure) = lived.expect("its panic is a failure") {
            // Told at once, because a long run may be ended before its time.
            println!("{failure}\n");
            failures.push(failure);
        }
        if ended % TOLD_EACH == 0 {
            println!("{ended} of {count}, {} failed", failures.len());
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} failed\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
