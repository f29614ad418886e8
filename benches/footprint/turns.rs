//! What the kernel counts for a turn: processor time in the program and in the kernel, context
//! switches of each thread, and calls that write.
//!
//! For profilers, another program can be attached meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::scene::{Contender, Gateway, Scene, Size};
use super::{PLAIN, TURN_TOPICS, milliseconds};

const WARM_UP: usize = 50;
/// How many are in flight, and how many messages there are in all: the kernel counts processor time in hundredths of a second.
const LOADS: [(usize, usize); 2] = [(1, 300), (8, 3000)];
/// An attached program needs a moment until it sees everything.
const UNTIL_ATTACHED: Duration = Duration::from_secs(2);

/// `attach` is a command that gets the number of the process as its last argument, such as
/// `strace -f -c -o calls.txt -p`.
pub(crate) async fn measure(program: &Path, attach: Option<&str>) {
    let contenders = [
        ("Parlor", Contender::Parlor(program.to_owned())),
        ("the durable floor", Contender::DurableFloor),
    ];
    for (name, contender) in contenders {
        let scene = Scene::of(contender, Size::topics(TURN_TOPICS)).await;
        scene.start().await.stop().await;
        let gateway = scene.start().await;
        scene.exchange(WARM_UP).await;
        let mut turns = WARM_UP;
        for (in_flight, messages) in LOADS {
            println!("\n{name}, {in_flight} in flight");
            let attached = attach_to(&gateway, attach).await;
            let (before, began) = (Counts::of(&gateway), Instant::now());
            exchange(&scene, messages, in_flight).await;
            let seconds = began.elapsed();
            let counted = Counts::of(&gateway).since(&before);
            if let Some(attached) = attached {
                detach(attached).await;
            }
            turns += messages;
            print(&counted, seconds, messages);
        }
        gateway.stop().await;
        scene.check_answers(turns);
    }
}

async fn exchange(scene: &Scene, messages: usize, in_flight: usize) {
    if in_flight == 1 {
        return scene.exchange(messages).await;
    }
    let already = scene.telegram.sent().len();
    for number in 0..messages {
        if let Some(over) = number.checked_sub(in_flight) {
            scene.telegram.wait_for_sent(already + over + 1).await;
        }
        scene.say_in(number % TURN_TOPICS, PLAIN).await;
    }
    scene.telegram.wait_for_sent(already + messages).await;
}

async fn attach_to(gateway: &Gateway, attach: Option<&str>) -> Option<Child> {
    let mut words = attach?.split_whitespace();
    let child = Command::new(words.next()?)
        .args(words)
        .arg(gateway.pid().to_string())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program to attach can be started");
    tokio::time::sleep(UNTIL_ATTACHED).await;
    Some(child)
}

async fn detach(mut attached: Child) {
    let pid = attached.id().expect("it still runs");
    let asked = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -INT {pid}"))
        .status()
        .await;
    asked.expect("there is a shell");
    attached.wait().await.expect("it can be waited for");
}

fn print(counted: &Counts, took: Duration, messages: usize) {
    let each = |count: u64| count as f64 / messages as f64;
    println!(
        "  {:.2} ms, of it {:.2} ms in the kernel; {:.0} turns in a second",
        each(counted.user + counted.system) * MILLISECONDS_PER_TICK,
        each(counted.system) * MILLISECONDS_PER_TICK,
        messages as f64 * 1000.0 / milliseconds(took),
    );
    println!(
        "  {:.1} calls that write, {:.1} that read; {:.1} KiB written to files",
        each(counted.writes),
        each(counted.reads),
        each(counted.bytes) / 1024.0
    );
    println!(
        "  {:.1} context switches",
        each(counted.switches.values().sum())
    );
    for (thread, switches) in &counted.switches {
        println!("    {thread} {:.1}", each(*switches));
    }
}

/// What Linux counts processor time in, on every machine it runs on.
const MILLISECONDS_PER_TICK: f64 = 10.0;

#[derive(Default)]
struct Counts {
    /// Ticks.
    user: u64,
    system: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    /// By the names of threads.
    switches: BTreeMap<String, u64>,
}

impl Counts {
    fn of(gateway: &Gateway) -> Self {
        let mut counts = Counts::default();
        let stat = gateway.proc("stat");
        let (_, fields) = stat
            .rsplit_once(')')
            .expect("the name stands in parentheses");
        let mut ticks = fields.split_whitespace().skip(11).map(number);
        counts.user = ticks.next().expect("there are times");
        counts.system = ticks.next().expect("there are times");
        let io = gateway.proc("io");
        counts.reads = field(&io, "syscr:");
        counts.writes = field(&io, "syscw:");
        counts.bytes = field(&io, "write_bytes:");
        let threads = fs::read_dir(format!("/proc/{}/task", gateway.pid()));
        for thread in threads.expect("the program is running").flatten() {
            // A thread may have ended meanwhile.
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else {
                continue;
            };
            let name = text(&status, "Name:").to_owned();
            *counts.switches.entry(name).or_default() += field(&status, "voluntary_ctxt_switches:")
                + field(&status, "nonvoluntary_ctxt_switches:");
        }
        counts
    }

    fn since(mut self, before: &Counts) -> Self {
        self.user -= before.user;
        self.system -= before.system;
        self.reads -= before.reads;
        self.writes -= before.writes;
        self.bytes -= before.bytes;
        for (thread, switches) in &mut self.switches {
            let earlier = before.switches.get(thread).copied().unwrap_or_default();
            *switches = switches.saturating_sub(earlier);
        }
        self
    }
}

fn text<'a>(lines: &'a str, name: &str) -> &'a str {
    let line = lines.lines().find_map(|line| line.strip_prefix(name));
    line.expect("Linux tells it of each process").trim()
}

fn field(lines: &str, name: &str) -> u64 {
    number(text(lines, name))
}

fn number(text: &str) -> u64 {
    text.parse().expect("counts are numbers")
}
