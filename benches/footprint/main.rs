//! What the gateway costs in time, memory, processor and calls: the real program between a fake
//! Telegram and a fake model.
//!
//! The fakes run in this process and share the machine with the program, so times are upper bounds.
//! A missed target is told and not punished: the figures depend on the machine.
//!
//! - `--json PATH` says where the figures are written, `--program PATH` measures another build.
//! - `--floors` measures Parlor beside its floors and nothing else, `--growth` only how a message's
//!   cost grows with what is stored. `--quick` makes both short.
//! - `--large-house` measures the house with 10,000 sessions alone.
//! - `--plot PATH` writes the growth as SVG.
//! - `--turns` tells what the kernel counts for a turn; `--attach COMMAND` has a program such as
//!   `strace -f -c -o calls.txt -p` look on.
//! - `--walk` measures nothing: it takes the program once through a start and some turns, for a
//!   profiler.

#![expect(clippy::print_stdout, reason = "a benchmark talks to its terminal")]

mod compare;
mod floors;
mod growth;
mod large_house;
mod plot;
mod report;
mod scene;
mod server;
mod turns;

#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the tests, which use all of it"
)]
#[path = "../../tests/it/support/fake_discord/mod.rs"]
mod fake_discord;
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../../tests/it/support/fake_model/mod.rs"]
mod fake_model;
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the tests, which use all of it"
)]
#[path = "../../tests/it/support/fake_telegram/mod.rs"]
mod fake_telegram;
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../../tests/it/support/faults.rs"]
mod faults;
/// Where the fakes find each other.
mod support {
    pub(crate) use super::{fake_telegram, faults};
}

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use report::{Figure, Report, Unit};
use scene::{Memory, Scene};

/// Everything together; a machine that needs longer has another problem.
const MOST_TIME: Duration = Duration::from_secs(3600);
const STARTS: usize = 15;
/// Of everything else that needs a process of its own.
const RUNS: usize = 3;
const SINGLE_MESSAGES: usize = 300;
/// Between two messages, so that the last one's rows are all written before the next one comes.
const PAUSE: Duration = Duration::from_millis(20);
const TURNS: usize = 1000;
const TURNS_AT_ONCE: usize = 10;
const TURN_TOPICS: usize = 100;
const CROWD: usize = 500;
const IDLE_JOBS: usize = 10_000;
const IDLE_TIME: Duration = Duration::from_secs(30);
const DUE_JOBS: usize = 1_000;
const CROWD_MODEL: Duration = Duration::from_secs(1);
const AGENTS: usize = scene::AGENTS.len();

fn main() {
    let options = Options::read();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("the process can start threads");
    if let Some(kind) = options.floor {
        return runtime.block_on(floors::run(kind));
    }
    raise_file_limit();
    if options.is_large_house {
        let figures = runtime.block_on(large_house::measure(&options.program));
        print!("{}", report::table(&figures));
        return;
    }
    if options.is_turns {
        let attach = options.attach.as_deref();
        return runtime.block_on(turns::measure(&options.program, attach));
    }
    if options.is_walk {
        return runtime.block_on(walk(&options.program));
    }
    let report =
        runtime.block_on(async { tokio::time::timeout(MOST_TIME, measure_chosen(&options)).await });
    let report = report.unwrap_or_else(|_| panic!("not done after {MOST_TIME:?}"));
    print(&report);
    report::write(&report, &options.json);
    println!("\nwritten to {}", options.json.display());
    if let Some(path) = &options.plot {
        std::fs::write(path, plot::svg(&report.growth))
            .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
    }
}

/// Thousands of chats at once are thousands of connections to the fakes.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit).expect("a process may use its whole limit");
}

async fn measure_chosen(options: &Options) -> Report {
    let (program, mut report) = (&options.program, Report::default());
    let (comparing, growing) = if options.is_quick {
        (&compare::QUICK, &growth::QUICK)
    } else {
        (&compare::FULL, &growth::FULL)
    };
    let is_all = !options.is_floors && !options.is_growth;
    if is_all {
        report.figures = measure(program).await;
    }
    if is_all || options.is_floors {
        report.comparisons = compare::compare(program, comparing).await;
    }
    if is_all || options.is_growth {
        report.growth = growth::measure(program, growing).await;
    }
    report
}

fn print(report: &Report) {
    if !report.figures.is_empty() {
        print!("{}", report::table(&report.figures));
    }
    if !report.comparisons.is_empty() {
        print!("{}", report::comparison_table(&report.comparisons));
    }
    if !report.growth.is_empty() {
        print!("{}", growth::table(&report.growth));
    }
}

struct Options {
    program: PathBuf,
    json: PathBuf,
    plot: Option<PathBuf>,
    is_floors: bool,
    is_growth: bool,
    is_quick: bool,
    is_walk: bool,
    is_turns: bool,
    attach: Option<String>,
    is_large_house: bool,
    /// This process is one of the floors.
    floor: Option<floors::Kind>,
}

impl Options {
    fn read() -> Self {
        let mut options = Options {
            program: env!("CARGO_BIN_EXE_parlor").into(),
            json: build_folder().join("footprint.json"),
            plot: None,
            is_floors: false,
            is_growth: false,
            is_quick: false,
            is_walk: false,
            is_turns: false,
            attach: None,
            is_large_house: false,
            floor: None,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut path = || {
                PathBuf::from(
                    arguments
                        .next()
                        .unwrap_or_else(|| panic!("{argument} needs a path")),
                )
            };
            match argument.as_str() {
                "--json" => options.json = path(),
                "--program" => options.program = path(),
                "--plot" => options.plot = Some(path()),
                "--floors" => options.is_floors = true,
                "--growth" => options.is_growth = true,
                "--quick" => options.is_quick = true,
                "--walk" => options.is_walk = true,
                "--turns" => options.is_turns = true,
                "--attach" => options.attach = arguments.next(),
                "--large-house" => options.is_large_house = true,
                "--floor=bare" => options.floor = Some(floors::Kind::Bare),
                "--floor=durable" => options.floor = Some(floors::Kind::Durable),
                // Cargo says so to every benchmark.
                "--bench" => {}
                other => panic!("unknown argument {other}; {ARGUMENTS}"),
            }
        }
        options
    }
}

const ARGUMENTS: &str = "there are --json PATH, --program PATH, --floors, --growth, --quick, --large-house, --plot PATH, --turns, --attach COMMAND and --walk";

fn build_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the folder for temporary files is inside the build folder")
}

async fn measure(program: &Path) -> Vec<Figure> {
    let mut figures = vec![binary_size(program), disk_sync()];
    let scenes: [(&str, Measurement); 9] = [
        ("starts", |program| Box::pin(start(program))),
        ("idle memory", |program| Box::pin(idle(program))),
        ("the first request", |program| {
            Box::pin(first_request(program))
        }),
        ("single messages", |program| {
            Box::pin(single_messages(program))
        }),
        ("a thousand turns", |program| {
            Box::pin(thousand_turns(program))
        }),
        ("five hundred topics", |program| Box::pin(crowd(program))),
        ("idle jobs", |program| Box::pin(idle_jobs(program))),
        ("due jobs", |program| Box::pin(due_jobs(program))),
        ("a house with 10,000 sessions", |program| {
            Box::pin(large_house::measure(program))
        }),
    ];
    for (name, measurement) in scenes {
        let began = Instant::now();
        figures.extend(measurement(program).await);
        println!("measured {name} in {:.1} s", began.elapsed().as_secs_f64());
    }
    figures
}

type Measurement =
    for<'a> fn(&'a Path) -> std::pin::Pin<Box<dyn Future<Output = Vec<Figure>> + 'a>>;

fn binary_size(program: &Path) -> Figure {
    let bytes = program.metadata().expect("the program is built").len();
    Figure::new("binary", "size of the stripped program", Unit::Mebibytes)
        .samples([mebibytes(bytes)])
}

/// Not ours, but in most of the other times: what a commit costs on this disk.
fn disk_sync() -> Figure {
    const PAGE: [u8; 4096] = [7; 4096];
    let mut file =
        tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is writable");
    let synced_write = |_| {
        // A disk in a hurry answers faster than one that was left alone.
        std::thread::sleep(Duration::from_millis(5));
        milliseconds(timed(|| rewrite(&mut file, &PAGE)))
    };
    let samples: Vec<f64> = (0..100).map(synced_write).collect();
    Figure::new(
        "disk_sync",
        "this disk: one synced write of a page",
        Unit::Milliseconds,
    )
    .samples(samples)
}

fn rewrite(file: &mut File, page: &[u8]) {
    file.rewind().expect("a file can be rewound");
    file.write_all(page).expect("the disk has room");
    file.sync_data().expect("the disk works");
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// A first start, a second one, and turns with and without a wait for the model.
async fn walk(program: &Path) {
    const MESSAGES: usize = 20;
    let scene = Scene::set(program, AGENTS).await;
    scene.start().await.stop().await;
    let gateway = scene.start().await;
    for number in 0..MESSAGES {
        if number == MESSAGES / 2 {
            scene.model.delay(CROWD_MODEL);
        }
        scene.say_in(number % AGENTS, PLAIN).await;
        scene.telegram.wait_for_sent(number + 1).await;
    }
    gateway.stop().await;
    scene.check_answers(MESSAGES);
}

/// The process is new every time; its home and the program's pages are not.
async fn start(program: &Path) -> Vec<Figure> {
    let scene = Scene::set(program, AGENTS).await;
    scene.start().await.stop().await;
    let mut samples = Vec::new();
    for _ in 0..STARTS {
        let gateway = scene.start().await;
        samples.push(milliseconds(gateway.first_poll_after));
        gateway.stop().await;
    }
    vec![
        Figure::new(
            "start",
            "exec until the first getUpdates",
            Unit::Milliseconds,
        )
        .target(50.0)
        .samples(samples),
    ]
}

async fn idle(program: &Path) -> Vec<Figure> {
    let mut samples = Vec::new();
    for _ in 0..RUNS {
        let scene = Scene::set(program, AGENTS).await;
        let gateway = scene.start().await;
        scene.second_poll_pending().await;
        samples.push(gateway.settled_memory().await);
        gateway.stop().await;
    }
    let figure = Figure::new(
        "idle_memory",
        "resident memory, idle, 10 agents",
        Unit::Mebibytes,
    )
    .target(20.0);
    memory_figures(figure, "idle_private_memory", &samples).into()
}

/// The figure with its samples, and the part of them that is not the program's file.
fn memory_figures(resident: Figure, private_key: &'static str, samples: &[Memory]) -> [Figure; 2] {
    let private = Figure::new(
        private_key,
        "  of that, other than the program file",
        Unit::Mebibytes,
    );
    [
        resident.samples(
            samples
                .iter()
                .map(|memory| mebibytes(memory.resident_bytes)),
        ),
        private.samples(samples.iter().map(|memory| mebibytes(memory.private_bytes))),
    ]
}

async fn first_request(program: &Path) -> Vec<Figure> {
    let scene = Scene::set(program, AGENTS).await;
    let gateway = scene.start().await;
    scene.say_in(0, "Good morning!").await;
    scene.telegram.wait_for_sent(1).await;
    gateway.stop().await;
    let kibibytes = scene.model.last_request().bytes as f64 / 1024.0;
    vec![
        Figure::new(
            "first_request",
            "main's first model request",
            Unit::Kibibytes,
        )
        .target(8.0)
        .samples([kibibytes]),
    ]
}

/// What the gateway adds to a message: from the poll's answer to the model's request, and from the
/// model's answer to the sent message.
async fn single_messages(program: &Path) -> Vec<Figure> {
    const WARM_UP: usize = 20;
    let scene = Scene::set(program, AGENTS).await;
    let gateway = scene.start().await;
    for number in 0..WARM_UP + SINGLE_MESSAGES {
        scene.say_in(number % AGENTS, PLAIN).await;
        scene.telegram.wait_for_sent(number + 1).await;
        scene.telegram.all_confirmed().await;
        tokio::time::sleep(PAUSE).await;
    }
    gateway.stop().await;
    scene.check_answers(WARM_UP + SINGLE_MESSAGES);
    let calls = scene.calls_per_turn(WARM_UP + SINGLE_MESSAGES);
    let (inward, outward) = scene.overheads();
    let (inward, outward) = (&inward[WARM_UP..], &outward[WARM_UP..]);
    let together = inward
        .iter()
        .zip(outward)
        .map(|(inward, outward)| inward + outward);
    vec![
        Figure::new(
            "message_in",
            "a message: update to model request",
            Unit::Milliseconds,
        )
        .samples(inward.iter().copied()),
        Figure::new(
            "message_out",
            "a message: model answer to sendMessage",
            Unit::Milliseconds,
        )
        .samples(outward.iter().copied()),
        Figure::new("message", "a message: both together", Unit::Milliseconds)
            .target(3.0)
            .samples(together),
        Figure::new("model_calls", "model calls of a plain turn", Unit::Count)
            .target(1.0)
            .samples([calls.model]),
        Figure::new(
            "telegram_calls",
            "Telegram calls of a plain turn",
            Unit::Count,
        )
        .target(2.0)
        .samples([calls.telegram]),
    ]
}

async fn thousand_turns(program: &Path) -> Vec<Figure> {
    let (mut processor, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let scene = Scene::set(program, TURN_TOPICS).await;
        let gateway = scene.start().await;
        let before = gateway.processor_seconds();
        for wave in (0..TURNS).step_by(TURNS_AT_ONCE) {
            for number in wave..wave + TURNS_AT_ONCE {
                scene.say_in(number % TURN_TOPICS, PLAIN).await;
            }
            scene.telegram.wait_for_sent(wave + TURNS_AT_ONCE).await;
        }
        memory.push(gateway.settled_memory().await);
        processor.push(gateway.processor_seconds() - before);
        gateway.stop().await;
        scene.check_answers(TURNS);
    }
    let resident = Figure::new(
        "used_memory",
        "resident memory, idle after 1,000 turns",
        Unit::Mebibytes,
    )
    .target(20.0);
    let [resident, private] = memory_figures(resident, "used_private_memory", &memory);
    let processor = Figure::new("processor", "processor time of 1,000 turns", Unit::Seconds)
        .target(3.0)
        .samples(processor);
    vec![processor, resident, private]
}

/// Ten thousand jobs that wait for tomorrow.
async fn idle_jobs(program: &Path) -> Vec<Figure> {
    let scene = Scene::set(program, AGENTS).await;
    let jobs = (0..IDLE_JOBS).map(|number| {
        let (minute, hour) = (number % 60, number / 60 % 24);
        scene::job(number, &format!("cron = \"{minute} {hour} 1 1 *\""))
    });
    scene.add_to_config(&jobs.collect::<String>());
    let gateway = scene.start().await;
    scene
        .wait_for_jobs("SELECT count(*) FROM jobs", IDLE_JOBS)
        .await;
    let memory = gateway.settled_memory().await;
    let before = gateway.processor_seconds();
    tokio::time::sleep(IDLE_TIME).await;
    let processor = gateway.processor_seconds() - before;
    gateway.stop().await;
    let resident = Figure::new(
        "jobs_memory",
        "resident memory, idle, 10,000 jobs",
        Unit::Mebibytes,
    );
    let processor = Figure::new(
        "jobs_processor",
        "processor time of 10,000 idle jobs in 30 s",
        Unit::Seconds,
    )
    .target(0.1)
    .samples([processor]);
    let [resident, private] = memory_figures(resident, "jobs_private_memory", &[memory]);
    vec![processor, resident, private]
}

/// A thousand jobs of one second: until the last of them is queued.
async fn due_jobs(program: &Path) -> Vec<Figure> {
    let scene = Scene::set(program, AGENTS).await;
    let at = chrono::Utc::now() + chrono::TimeDelta::seconds(15);
    let at = at.format("at = \"%Y-%m-%dT%H:%M:%SZ\"").to_string();
    let jobs = (0..DUE_JOBS).map(|number| scene::job(number, &at));
    scene.add_to_config(&jobs.collect::<String>());
    let gateway = scene.start().await;
    scene
        .wait_for_jobs(
            "SELECT count(*) FROM job_runs WHERE state <> 'queued'",
            DUE_JOBS,
        )
        .await;
    let late = scene.ask("SELECT max(at - slot) FROM job_runs");
    gateway.stop().await;
    vec![
        Figure::new(
            "jobs_queued",
            "1,000 jobs of one second: until the last is queued",
            Unit::Milliseconds,
        )
        .target(1000.0)
        .samples([late as f64]),
    ]
}

/// All at once, against a model that takes a second. One turn goes ahead, so that connections and
/// files have been used.
async fn crowd(program: &Path) -> Vec<Figure> {
    let (mut waits, mut memory, mut telegram_calls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let scene = Scene::set(program, CROWD).await;
        let gateway = scene.start().await;
        scene.say_in(0, PLAIN).await;
        scene.telegram.wait_for_sent(1).await;
        scene.telegram.all_confirmed().await;
        scene.model.delay(CROWD_MODEL);

        let began = Instant::now();
        for topic in 0..CROWD {
            scene.say_in(topic, PLAIN).await;
        }
        scene.telegram.wait_for_sent(CROWD + 1).await;
        let last = scene
            .telegram
            .wait_for_calls("sendMessage", CROWD + 1)
            .await;
        waits.push((last.at - began).as_secs_f64());
        scene.check_answers(CROWD + 1);
        telegram_calls.push(scene.calls_per_turn(CROWD + 1).telegram);
        memory.push(gateway.settled_memory().await);
        gateway.stop().await;
    }
    let resident = Figure::new(
        "crowd_memory",
        "resident memory, idle after those",
        Unit::Mebibytes,
    );
    let mut figures = vec![
        Figure::new(
            "crowd",
            "500 topics at once, model takes 1 s",
            Unit::Seconds,
        )
        .target(1.3)
        .samples(waits),
        Figure::new(
            "slow_telegram_calls",
            "Telegram calls of such a turn",
            Unit::Count,
        )
        .target(2.0)
        .samples(telegram_calls),
    ];
    figures.extend(memory_figures(resident, "crowd_private_memory", &memory));
    figures
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

const PLAIN: &str =
    "Could you look over the plan for Saturday once more and tell me what we still have to buy?";
