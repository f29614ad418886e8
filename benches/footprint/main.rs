//! What the gateway costs in time, memory, processor and calls: the real program between a fake
//! Telegram and a fake model.
//!
//! The fakes run in this process and share the machine with the program, so times are upper bounds.
//! A missed target is told and not punished: the figures depend on the machine. `--json PATH` says
//! where they are written, `--program PATH` measures another build.

#![expect(clippy::print_stdout, reason = "a benchmark talks to its terminal")]

mod report;
mod scene;

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

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use report::{Figure, Unit};
use scene::{Memory, Scene};

/// Everything together; a machine that needs longer has another problem.
const MOST_TIME: Duration = Duration::from_secs(600);
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
const CROWD_MODEL: Duration = Duration::from_secs(1);
const AGENTS: usize = scene::AGENTS.len();

fn main() {
    let options = Options::read();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("the process can start threads");
    let figures = runtime
        .block_on(async { tokio::time::timeout(MOST_TIME, measure(&options.program)).await });
    let figures = figures.unwrap_or_else(|_| panic!("not done after {MOST_TIME:?}"));
    print!("{}", report::table(&figures));
    report::write(&figures, &options.json);
    println!("\nwritten to {}", options.json.display());
}

struct Options {
    program: PathBuf,
    json: PathBuf,
}

impl Options {
    fn read() -> Self {
        let mut options = Options {
            program: env!("CARGO_BIN_EXE_parlor").into(),
            json: build_folder().join("footprint.json"),
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
                // Cargo says so to every benchmark.
                "--bench" => {}
                other => {
                    panic!("unknown argument {other}; there are --json PATH and --program PATH")
                }
            }
        }
        options
    }
}

fn build_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the folder for temporary files is inside the build folder")
}

async fn measure(program: &Path) -> Vec<Figure> {
    let mut figures = vec![binary_size(program), disk_sync()];
    let scenes: [(&str, Measurement); 6] = [
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
