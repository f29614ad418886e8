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
use super::server::{self, Server};
use super::{floors, milliseconds};

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

/// In the prompt of a summary.
const OF_A_SUMMARY: &str = "You write a summary";

const FORUM: i64 = -1_001_234_567_890;
/// A forum in which nobody speaks.
pub(crate) const OTHER_FORUM: i64 = -1_009_876_543_210;
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
    /// In the place of the forum.
    pub(crate) server: Option<Server>,
    contender: Contender,
    home: TempDir,
}

/// A program that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Contender {
    Parlor(PathBuf),
    /// See [`crate::floors`].
    DurableFloor,
    BareFloor,
}

/// The platform of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Telegram,
    Discord,
}

/// The size of a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) on: On,
    /// In one forum, each bound to one of the agents.
    pub(crate) topics: usize,
    pub(crate) agents: usize,
    /// Bindings of places that never speak.
    pub(crate) other_bindings: usize,
}

impl Size {
    pub(crate) fn topics(topics: usize) -> Self {
        Size {
            on: On::Telegram,
            topics,
            agents: AGENTS.len(),
            other_bindings: 0,
        }
    }
}

fn agent(number: usize) -> String {
    AGENTS
        .get(number)
        .map_or_else(|| format!("agent-{number}"), |agent| (*agent).to_owned())
}

/// A job of main, for the config.
pub(crate) fn job(number: usize, when: &str) -> String {
    format!("\n[[agents.main.jobs]]\nname = \"job-{number}\"\n{when}\nprompt = \"Say hello.\"\n")
}

pub(crate) struct CallsPerTurn {
    pub(crate) model: f64,
    /// Without polls and what is asked once per start.
    pub(crate) telegram: f64,
}

impl Scene {
    /// A forum with so many topics, each bound to one of ten agents.
    pub(crate) async fn set(program: &Path, topics: usize) -> Self {
        Self::of(Contender::Parlor(program.to_owned()), Size::topics(topics)).await
    }

    pub(crate) async fn of(contender: Contender, size: Size) -> Self {
        let (telegram, model) = (FakeTelegram::start().await, FakeModel::start().await);
        let home =
            TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is writable");
        let forum = telegram.forum(FORUM);
        let topics = (FIRST_TOPIC..)
            .take(size.topics)
            .map(|id| forum.topic(id, &format!("Topic {id}")))
            .collect();
        let server = match size.on {
            On::Telegram => None,
            On::Discord => Some(Server::open(size.topics).await),
        };
        let scene = Scene {
            telegram,
            model,
            topics,
            server,
            contender,
            home,
        };
        if let Contender::Parlor(program) = &scene.contender {
            scene.make_home(program, size).await;
        }
        scene
    }

    async fn make_home(&self, program: &Path, size: Size) {
        let mut init = self.command(program);
        init.arg("init").arg("--home").arg(self.home.path());
        let status = init.stderr(Stdio::null()).status().await;
        status.expect("the home folder can be written");
        fs::write(self.home.path().join("config.toml"), self.config(size))
            .expect("the home folder is writable");
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home.path().join("parlor.db")
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs the program until its first poll has come.
    pub(crate) async fn start(&self) -> Gateway {
        let polls = self.telegram.calls("getUpdates").len();
        let log = fs::File::create(self.log()).expect("the home folder is writable");
        let mut command = self.run_command();
        command.stderr(log);
        let began = Instant::now();
        let process = command.spawn().expect("the program can be started");
        if let Some(server) = &self.server {
            server.connected().await;
            return Gateway {
                process,
                first_poll_after: began.elapsed(),
            };
        }
        let poll = self.telegram.wait_for_calls("getUpdates", polls + 1).await;
        Gateway {
            process,
            first_poll_after: poll.at - began,
        }
    }

    /// Before the start.
    pub(crate) fn add_to_config(&self, text: &str) {
        let path = self.home.path().join("config.toml");
        let config = fs::read_to_string(&path).expect("there is a config");
        fs::write(path, config + text).expect("the home folder is writable");
    }

    /// Runs statements on the database of a home whose gateway is off.
    pub(crate) fn fill(&self, sql: &str) {
        let store = rusqlite::Connection::open(self.home.path().join("parlor.db"));
        let store = store.expect("there is a database");
        store.execute_batch(sql).expect("the rows fit the schema");
    }

    /// A new token for the HTTP API, with all rights.
    pub(crate) async fn token(&self, program: &Path) -> String {
        let mut command = self.command(program);
        command.args(["token", "create", "footprint", "--scope", "admin", "--json"]);
        command.arg("--home").arg(self.home.path());
        let made = command.stdout(Stdio::piped()).output().await;
        let made = made.expect("the program can be started").stdout;
        let made: serde_json::Value = serde_json::from_slice(&made).expect("a key");
        made["token"].as_str().expect("a token").to_owned()
    }

    /// A number in the database.
    pub(crate) fn ask(&self, sql: &str) -> i64 {
        let store = rusqlite::Connection::open(self.database());
        let store = store.expect("there is a database");
        store
            .busy_timeout(Duration::from_secs(5))
            .expect("it waits");
        store
            .query_row(sql, [], |row| row.get(0))
            .expect("a number")
    }

    pub(crate) async fn wait_for_jobs(&self, sql: &str, count: usize) {
        while usize::try_from(self.ask(sql)) != Ok(count) {
            tokio::time::sleep(SAMPLE_EVERY).await;
        }
    }

    pub(crate) async fn say_in(&self, topic: usize, text: &str) {
        self.topics[topic].says(ALICE, text).await;
    }

    pub(crate) fn topic_count(&self) -> usize {
        self.topics.len()
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
        let mut requests = self.model.journal();
        // Long conversations are summed up beside the answers.
        requests.retain(|request| !request.system.contains(OF_A_SUMMARY));
        if let Some(server) = &self.server {
            return server.overheads(&requests);
        }
        let polls = self.telegram.calls("getUpdates").into_iter();
        let handed_over: Vec<_> = polls.filter_map(|poll| poll.answered).collect();
        // Polls without an update are answered too, such as the first of a start.
        let inward = requests.iter().filter_map(|request| {
            let before = handed_over.partition_point(|answered| *answered <= request.arrived);
            let last = handed_over.get(before.checked_sub(1)?)?;
            Some(milliseconds(request.arrived - *last))
        });
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

    fn run_command(&self) -> Command {
        let floor = |kind: &str| {
            let itself = std::env::current_exe().expect("this program has a file");
            let mut command = self.command(&itself);
            let (api_url, token) = (self.telegram.api_url(), self.telegram.token());
            command
                .arg(format!("--floor={kind}"))
                .env(floors::HOME_VARIABLE, self.home.path())
                .env(floors::TELEGRAM_VARIABLE, format!("{api_url}/bot{token}"))
                .env(floors::MODEL_VARIABLE, self.model.base_url(Dialect::OpenAi));
            command
        };
        match &self.contender {
            Contender::Parlor(program) => {
                let mut command = self.command(program);
                command.arg("run").arg("--home").arg(self.home.path());
                command.env(TOKEN_VARIABLE, self.telegram.token());
                if let Some(server) = &self.server {
                    command.env(server::TOKEN_VARIABLE, server.token());
                }
                command
            }
            Contender::DurableFloor => floor("durable"),
            Contender::BareFloor => floor("bare"),
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_remove("PARLOR_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("parlor.log")
    }

    fn config(&self, size: Size) -> String {
        let platform = self
            .server
            .as_ref()
            .map_or_else(|| self.telegram_table(), Server::table);
        let mut config = format!(
            r#"default_model = "fake/x"

{platform}
[providers.fake]
kind = "openai"
base_url = "{}"

[access]
# Other roles are limited to a few messages a minute.
owners = ["telegram:111", "discord:111"]
require_mention = false
"#,
            self.model.base_url(Dialect::OpenAi),
        );
        let agents: Vec<String> = (0..size.agents).map(agent).collect();
        config.extend(agents.iter().map(|agent| format!("\n[agents.{agent}]\n")));
        let bindings = |count: usize, place: &dyn Fn(usize) -> String| {
            let bound = (0..count).zip(agents.iter().cycle());
            bound
                .map(|(number, agent)| {
                    let place = place(number);
                    format!("\n[[bindings]]\nmatch = \"{place}\"\nagent = \"{agent}\"\n")
                })
                .collect::<String>()
        };
        let topic = |forum: i64| {
            move |number: usize| {
                format!(
                    "telegram:topic:{forum}:{}",
                    FIRST_TOPIC + i64::try_from(number).expect("a small number")
                )
            }
        };
        match size.on {
            On::Telegram => {
                config += &bindings(size.topics, &topic(FORUM));
                config += &bindings(size.other_bindings, &topic(OTHER_FORUM));
            }
            On::Discord => {
                config += &bindings(size.topics, &Server::place);
                config += &bindings(size.other_bindings, &Server::other_place);
            }
        }
        config
    }

    fn telegram_table(&self) -> String {
        format!(
            "[telegram]\ntoken = {{ env = \"{TOKEN_VARIABLE}\" }}\napi_url = \"{}\"\n\
             limits = {{ per_second = 0, chat_per_second = 0, group_per_minute = 0 }}\n",
            self.telegram.api_url()
        )
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

    /// The most that was resident at once since the start.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        bytes_in(&self.proc("status"), "VmHWM:")
    }

    fn memory(&self) -> Memory {
        let status = self.proc("status");
        Memory {
            resident_bytes: bytes_in(&status, "VmRSS:"),
            private_bytes: bytes_in(&status, "RssAnon:"),
        }
    }

    pub(crate) fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.pid())).expect("the program is running")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id().expect("the program is running")
    }
}

/// A size in what the kernel says about a process.
fn bytes_in(status: &str, name: &str) -> u64 {
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
}
