//! Where a measurement takes place: both fakes, a home folder that points at them, and the
//! program's process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::fake_model::{Dialect, FakeModel};
use super::fake_telegram::{ALICE, FakeTelegram, OTHER_BOT, Place};
use super::milliseconds;

/// The team that ships and seven more.
pub(crate) const AGENTS: [&str; 10] = [
    "main", "rose", "ada", "bo", "cleo", "dan", "eva", "finn", "gil", "hana",
];

/// Calls that belong to no turn.
const OF_THE_START: [&str; 5] = [
    "getUpdates",
    "getMe",
    "setMyCommands",
    "getChat",
    "getChatMember",
];

const FORUM: i64 = -1_001_234_567_890;
const FIRST_TOPIC: i64 = 101;
const TOKEN_VARIABLE: &str = "PARLOR_FOOTPRINT_TOKEN";
/// A process that was asked to end and has not by then is killed.
const MOST_TIME_TO_END: Duration = Duration::from_secs(15);
/// Memory counts as settled when it reads the same this often in a row, or after the most samples.
const EQUAL_SAMPLES: usize = 5;
const MOST_SAMPLES: usize = 50;
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// What Linux counts processor time in, on every machine it runs on.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) struct Scene {
    pub(crate) telegram: FakeTelegram,
    pub(crate) model: FakeModel,
    topics: Vec<Place>,
    program: PathBuf,
    home: TempDir,
}

pub(crate) struct CallsPerTurn {
    pub(crate) model: f64,
    /// Without polls and what is asked once per start.
    pub(crate) telegram: f64,
}

impl Scene {
    /// A forum with so many topics, each bound to one of the agents.
    pub(crate) async fn set(program: &Path, topics: usize) -> Self {
        let (telegram, model) = (FakeTelegram::start().await, FakeModel::start().await);
        let home =
            TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is writable");
        let forum = telegram.forum(FORUM);
        let topics = (FIRST_TOPIC..)
            .take(topics)
            .map(|id| forum.topic(id, &format!("Topic {id}")))
            .collect();
        let scene = Scene {
            telegram,
            model,
            topics,
            program: program.to_owned(),
            home,
        };
        scene
            .command("init")
            .stderr(Stdio::null())
            .status()
            .await
            .expect("the home folder can be written");
        fs::write(scene.home.path().join("config.toml"), scene.config())
            .expect("the home folder is writable");
        scene
    }

    /// Runs the program until its first poll has come.
    pub(crate) async fn start(&self) -> Gateway {
        let polls = self.telegram.calls("getUpdates").len();
        let log = fs::File::create(self.log()).expect("the home folder is writable");
        let mut command = self.command("run");
        command
            .env(TOKEN_VARIABLE, self.telegram.token())
            .stderr(log);
        let began = Instant::now();
        let process = command.spawn().expect("the program can be started");
        let poll = self.telegram.wait_for_calls("getUpdates", polls + 1).await;
        Gateway {
            process,
            first_poll_after: poll.at - began,
        }
    }

    pub(crate) async fn say_in(&self, topic: usize, text: &str) {
        self.topics[topic].says(ALICE, text).await;
    }

    /// Brings an update that nobody answers, and waits until the program has asked for the next
    /// one.
    pub(crate) async fn second_poll_pending(&self) {
        self.topics[0].says(OTHER_BOT, "beep").await;
        self.telegram.all_confirmed().await;
    }

    /// A figure for answers that were apologies would be worth nothing.
    pub(crate) fn check_answers(&self, turns: usize) {
        let answers = self.telegram.sent();
        assert_eq!(answers.len(), turns);
        assert!(
            answers.iter().all(|answer| answer.text.starts_with("re: ")),
            "not every message was answered"
        );
    }

    pub(crate) fn calls_per_turn(&self, turns: usize) -> CallsPerTurn {
        let counts = |method: &str| !OF_THE_START.contains(&method);
        let telegram = self
            .telegram
            .journal()
            .iter()
            .filter(|call| counts(&call.method))
            .count();
        CallsPerTurn {
            model: self.model.journal().len() as f64 / turns as f64,
            telegram: telegram as f64 / turns as f64,
        }
    }

    /// For messages that came one at a time: milliseconds on the way in and on the way out.
    pub(crate) fn overheads(&self) -> (Vec<f64>, Vec<f64>) {
        let requests = self.model.journal();
        let handed_over = self
            .telegram
            .calls("getUpdates")
            .into_iter()
            .filter_map(|poll| poll.answered);
        let inward = handed_over
            .zip(&requests)
            .map(|(answered, request)| milliseconds(request.arrived - answered));
        let sends = self.telegram.calls("sendMessage");
        let outward = sends.iter().zip(&requests).map(|(send, request)| {
            milliseconds(
                send.at
                    - request
                        .answered
                        .expect("a message was sent, so the model had answered"),
            )
        });
        (inward.collect(), outward.collect())
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(verb)
            .arg("--home")
            .arg(self.home.path())
            .env_remove("PARLOR_LOG");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("parlor.log")
    }

    fn config(&self) -> String {
        let mut config = format!(
            r#"default_model = "fake/x"

[telegram]
token = {{ env = "{TOKEN_VARIABLE}" }}
api_url = "{}"
limits = {{ per_second = 0, chat_per_second = 0, group_per_minute = 0 }}

[providers.fake]
kind = "openai"
base_url = "{}"

[access]
# Other roles are limited to a few messages a minute.
owners = ["telegram:111"]
require_mention = false
"#,
            self.telegram.api_url(),
            self.model.base_url(Dialect::OpenAi),
        );
        config.extend(AGENTS.iter().map(|agent| format!("\n[agents.{agent}]\n")));
        let owners = (FIRST_TOPIC..)
            .zip(AGENTS.iter().cycle())
            .take(self.topics.len());
        let binding = |(topic, agent)| {
            format!(
                "\n[[bindings]]\nmatch = \"telegram:topic:{FORUM}:{topic}\"\nagent = \"{agent}\"\n"
            )
        };
        config.extend(owners.map(binding));
        config
    }
}

impl Drop for Scene {
    /// What the program said last helps when a measurement failed.
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(log) = fs::read_to_string(self.log())
        {
            let lines: Vec<_> = log.lines().collect();
            println!(
                "the program's last lines:\n{}",
                lines[lines.len().saturating_sub(20)..].join("\n")
            );
        }
    }
}

/// What the kernel says is in memory for the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) resident_bytes: u64,
    /// Without the pages of the program's file, which the kernel shares and drops when it needs
    /// room.
    pub(crate) private_bytes: u64,
}

/// The running program; killed when dropped.
pub(crate) struct Gateway {
    process: Child,
    pub(crate) first_poll_after: Duration,
}

impl Gateway {
    /// Asks the program to end, as a service manager does.
    pub(crate) async fn stop(mut self) {
        // The shell's own `kill`, because not every machine has the program.
        let asked = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -TERM {}", self.pid()))
            .status()
            .await;
        asked.expect("there is a shell");
        let ended = tokio::time::timeout(MOST_TIME_TO_END, self.process.wait()).await;
        let status = ended
            .expect("the program ends when asked to")
            .expect("the process can be waited for");
        assert!(status.success(), "the program ended with {status}");
    }

    /// Read once it no longer changes.
    pub(crate) async fn settled_memory(&self) -> Memory {
        let mut last = self.memory();
        let mut equal = 1;
        for _ in 0..MOST_SAMPLES {
            tokio::time::sleep(SAMPLE_EVERY).await;
            let now = self.memory();
            equal = if now == last { equal + 1 } else { 1 };
            last = now;
            if equal == EQUAL_SAMPLES {
                break;
            }
        }
        last
    }

    /// Of all threads, in user and kernel mode, since the start.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let stat = self.proc("stat");
        // The second field is the program's name and may contain anything; fields 14 and 15 are the
        // times.
        let (_, fields) = stat
            .rsplit_once(')')
            .expect("the name stands in parentheses");
        let ticks = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<f64>().expect("times are numbers"));
        ticks.sum::<f64>() / TICKS_PER_SECOND
    }

    fn memory(&self) -> Memory {
        let status = self.proc("status");
        let bytes = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .expect("a running process has memory");
            let kibibytes: u64 = line
                .trim()
                .trim_end_matches(" kB")
                .parse()
                .expect("sizes are numbers");
            kibibytes * 1024
        };
        Memory {
            resident_bytes: bytes("VmRSS:"),
            private_bytes: bytes("RssAnon:"),
        }
    }

    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.pid())).expect("the program is running")
    }

    fn pid(&self) -> u32 {
        self.process.id().expect("the program is running")
    }
}
