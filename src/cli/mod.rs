//! The command line, a file for each verb. Data goes to stdout, everything else to stderr. Exit 0
//! is fine, 1 failed, 2 wrong use.

mod agent;
mod agent_tools;
mod chat;
mod config_check;
mod failed;
mod init;
mod memory;
mod pair;
mod print;
mod recall;
mod remember;
mod route;
mod run;
mod screen;
mod security;
mod skill;
mod usage;
mod work_on;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::home::Home;
use crate::{open_files, sandbox, telemetry};

use print::{data, data_json, data_json_text, note, question};

/// One bot, a room for every agent.
#[derive(Parser)]
#[command(name = "parlor", version, about, disable_help_subcommand = true)]
struct Arguments {
    /// The home folder, which has everything; ~/.parlor unless named
    #[arg(
        long,
        global = true,
        env = "PARLOR_HOME",
        hide_env_values = true,
        value_name = "DIR"
    )]
    home: Option<PathBuf>,

    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the gateway, until Ctrl-C or SIGTERM (also without any verb)
    Run(run::Arguments),
    /// Talk to the agents in this terminal
    Chat(chat::Arguments),
    /// Write a home folder with the team that ships; keeps every file that is there
    Init,
    /// Check the config
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Explain routing
    #[command(subcommand)]
    Route(route::Verb),
    /// Look at agents, add, change and remove them
    #[command(subcommand)]
    Agent(agent::Verb),
    /// Look at skills: who has which, and whether they are written well
    #[command(subcommand)]
    Skill(skill::Verb),
    /// Have an agent remember something
    Remember(remember::Arguments),
    /// Find what an agent remembers, or without an agent what is global
    Recall(recall::Arguments),
    /// List, export and import memories; earlier versions of MEMORY.md
    #[command(subcommand)]
    Memory(memory::Verb),
    /// Let a person in with the code the bot told, list people, take a pairing back
    Pair(pair::Arguments),
    /// Look for what is more open than it may seem
    #[command(subcommand)]
    Security(security::Verb),
    /// Look at what could not be delivered, or have it sent again
    Failed(failed::Arguments),
    /// Tell what was used, and what it cost where prices are known
    Usage(usage::Arguments),
}

#[derive(Subcommand)]
enum ConfigVerb {
    /// Tell everything that is wrong with config.toml, at once; does not need the secrets
    Check,
}

/// The failure of a verb; the text goes to stderr.
type Outcome = Result<(), Failure>;

#[derive(Debug)]
enum Failure {
    /// Exit 1.
    Failed(String),
    /// Exit 2: the command line names an unknown thing.
    WrongUse(String),
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            if !text.contains(&next.to_string()) {
                text = format!("{text}: {next}");
            }
            cause = next.source();
        }
        Failure::Failed(text)
    }
}

/// Every verb with its arguments, as data. Feeds the book's reference.
pub fn command() -> clap::Command {
    Arguments::command()
}

pub fn main() -> ExitCode {
    if let Some(code) = work_on::if_asked() {
        return code;
    }
    sandbox::use_this_program();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => {
            print::usage(&told);
            return ExitCode::from(if told.use_stderr() { 2 } else { 0 });
        }
    };
    match dispatch(arguments) {
        Ok(()) => {
            telemetry::flush();
            ExitCode::SUCCESS
        }
        Err(Failure::Failed(text)) => {
            telemetry::say(&told(&text));
            ExitCode::FAILURE
        }
        Err(Failure::WrongUse(text)) => {
            telemetry::say(&told(&text));
            ExitCode::from(2)
        }
    }
}

/// Reports bring their own heading.
fn told(text: &str) -> String {
    if text.starts_with("error") {
        text.to_owned()
    } else {
        format!("error: {text}")
    }
}

fn dispatch(arguments: Arguments) -> Outcome {
    open_files::raise_limit();
    let home = home(arguments.home)?;
    match arguments
        .verb
        .unwrap_or_else(|| Verb::Run(run::Arguments::default()))
    {
        Verb::Run(arguments) => {
            keep_memory_private();
            on_runtime(LevelFilter::INFO, run::run(home, arguments))
        }
        Verb::Chat(arguments) => {
            keep_memory_private();
            on_runtime(LevelFilter::ERROR, chat::run(home, arguments))
        }
        Verb::Init => init::run(&home),
        Verb::Config(ConfigVerb::Check) => config_check::run(&home),
        Verb::Route(verb) => on_runtime(LevelFilter::WARN, route::run(home, verb)),
        Verb::Agent(verb) => on_runtime(LevelFilter::WARN, agent::run(home, verb)),
        Verb::Skill(verb) => on_runtime(LevelFilter::ERROR, skill::run(home, verb)),
        Verb::Remember(arguments) => on_runtime(LevelFilter::WARN, remember::run(home, arguments)),
        Verb::Recall(arguments) => on_runtime(LevelFilter::WARN, recall::run(home, arguments)),
        Verb::Memory(verb) => on_runtime(LevelFilter::WARN, memory::run(home, verb)),
        Verb::Security(verb) => on_runtime(LevelFilter::WARN, security::run(home, verb)),
        Verb::Pair(arguments) => on_runtime(LevelFilter::WARN, pair::run(home, arguments)),
        Verb::Failed(arguments) => on_runtime(LevelFilter::WARN, failed::run(home, arguments)),
        Verb::Usage(arguments) => on_runtime(LevelFilter::WARN, usage::run(home, arguments)),
    }
}

/// Set by a person who debugs.
const ALLOW_DEBUGGER: &str = "PARLOR_ALLOW_DEBUGGER";

/// No core files, and no look into the memory by other programs of this user: secrets and
/// conversations are in there. Verbs that end at once keep the system's ways.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    if std::env::var_os(ALLOW_DEBUGGER).is_none() {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // An old kernel that refuses leaves all as before.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Threads for work without blocking calls; more threads would only cost memory.
const MOST_WORKERS: usize = 4;
/// Threads for files, name lookups and the terminal. When all are busy, further calls wait.
const MOST_BLOCKING: usize = 16;

fn on_runtime(level: LevelFilter, work: impl Future<Output = Outcome>) -> Outcome {
    telemetry::start(level);
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_WORKERS);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime
        .worker_threads(workers)
        .max_blocking_threads(MOST_BLOCKING)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(work);
    // A thread may still be blocked in a read of the terminal.
    runtime.shutdown_background();
    outcome
}

fn home(given: Option<PathBuf>) -> Result<Home, Failure> {
    let beside_the_user = || {
        std::env::home_dir()
            .filter(|home| !home.as_os_str().is_empty())
            .map(|home| home.join(".parlor"))
    };
    let path = given.or_else(beside_the_user);
    path.map(Home::new).ok_or_else(|| {
        Failure::WrongUse("no home folder is known; name one with --home DIR".into())
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn the_memory_of_a_gateway_is_private() {
        super::keep_memory_private();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    }
}
