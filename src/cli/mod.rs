//! The command line, a file for each verb. Data goes to stdout, everything else to stderr. Exit 0
//! is fine, 1 failed, 2 wrong use.

mod actor;
mod agent;
mod agent_tools;
mod allow;
mod approvals;
mod ask;
mod audit;
mod backup;
mod candidates;
mod chat;
mod color;
mod completions;
mod config;
mod dashboard;
mod database;
mod doctor;
mod examples;
mod export;
mod failed;
mod fitting;
mod forget;
mod habits;
mod import;
mod init;
mod interrupts;
mod job;
mod json;
mod logs;
mod man;
mod markdown;
mod meant_place;
mod memory;
mod missing;
mod near_misses;
mod new;
mod operator;
mod pair;
mod pausing;
mod people;
mod pin;
mod print;
mod queue;
mod recall;
mod reload;
mod remember;
mod restore;
mod route;
mod run;
mod running_config;
mod security;
mod sessions;
mod setup;
mod skill;
mod status;
mod stop;
mod table;
mod token;
mod truth;
mod usage;
mod version;
mod work_on;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::backups;
use crate::config::LoadError;
use crate::home::Home;
use crate::operations::names;
use crate::{open_files, sandbox, telemetry};

use color::{Color, Style};
use print::{Manner, data, data_json, data_json_text, note, question};

/// Options that each verb has stand apart in its help.
const EVERYWHERE: &str = "Options everywhere";

/// One bot, a room for every agent.
#[derive(Parser)]
#[command(name = "parlor", version = version::SHORT, about, max_term_width = 80)]
struct Arguments {
    /// Folder with config, agents and data [default: ~/.parlor]
    #[arg(
        long,
        global = true,
        env = "PARLOR_HOME",
        hide_env_values = true,
        value_name = "DIR",
        help_heading = EVERYWHERE
    )]
    home: Option<PathBuf>,

    /// Colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "WHEN",
        help_heading = EVERYWHERE
    )]
    color: Color,

    /// Print results and errors only: no remarks, no warnings
    #[arg(long, short, global = true, help_heading = EVERYWHERE)]
    quiet: bool,

    /// Log more: -v for debugging, -vv for everything
    #[arg(long, short, global = true, action = ArgAction::Count, help_heading = EVERYWHERE)]
    verbose: u8,

    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the gateway until Ctrl-C (the default without a command)
    Run(run::Arguments),
    /// Talk to the agents in this terminal
    Chat(chat::Arguments),
    /// Ask one question and print the answer, for scripts
    Ask(ask::Arguments),
    /// Write a home folder with three agents; existing files are kept
    Init(init::Arguments),
    /// Connect a model and a bot, step by step
    Setup(setup::Arguments),
    /// Check config.toml, show every setting, print a schema for editors
    Config(config::Arguments),
    /// Explain who answers where
    #[command(subcommand)]
    Route(route::Verb),
    /// List, add, change and remove agents
    #[command(visible_alias = "agents")]
    Agent(agent::Arguments),
    /// Bring agents in from OpenClaw, Hermes, ZeroClaw, Moltis or Signet
    Import(import::Arguments),
    /// Write agents and bindings for OpenClaw
    #[command(subcommand)]
    Export(export::Verb),
    /// List skills, and check how they are written
    #[command(visible_alias = "skills")]
    Skill(skill::Arguments),
    /// Give an agent something to remember
    Remember(remember::Arguments),
    /// Search memories: those of an agent, or the global ones
    Recall(recall::Arguments),
    /// Delete a saved memory of an agent
    Forget(forget::Arguments),
    /// List, export and import memories
    #[command(visible_alias = "memories")]
    Memory(memory::Arguments),
    /// Let people in by their code, list them, take it back
    Pair(pair::Arguments),
    /// List, show, search, copy and move conversations
    #[command(visible_alias = "session")]
    Sessions(sessions::Arguments),
    /// List people, give them roles, link their ids
    People(people::Arguments),
    /// Raise a limit of an agent, a person or the house for today
    Allow(allow::Arguments),
    /// Pause work that nobody waits for
    Pause(pausing::Arguments),
    /// Go on with paused work
    Resume(pausing::Arguments),
    /// Look for things that are more open than they may seem
    Security(security::Arguments),
    /// List messages that could not be delivered, resend or drop them
    Failed(failed::Arguments),
    /// List calls of tools that wait for a yes or no, and decide
    Approvals(approvals::Arguments),
    /// Show tokens and costs by agent, place, person and model
    Usage(usage::Arguments),
    /// Show whether the gateway runs, what it does, and what is wrong
    Status(status::Arguments),
    /// Give a place to an agent, or take that back
    Pin(pin::Arguments),
    /// Begin a new conversation in a place
    New(new::Arguments),
    /// Stop the answers under way
    Stop(stop::Arguments),
    /// Show the answers under way and the messages that wait
    Queue(queue::Arguments),
    /// List, run, pause, add and remove jobs
    #[command(visible_alias = "jobs")]
    Job(job::Arguments),
    /// Have the running gateway read config.toml, tokens and keys anew
    Reload(reload::Arguments),
    /// Open the dashboard of the running gateway in a browser
    Dashboard(dashboard::Arguments),
    /// Make, list and revoke tokens for the HTTP API
    #[command(visible_alias = "tokens")]
    Token(token::Arguments),
    /// Show lines of the log file, of one agent, place or message
    Logs(logs::Arguments),
    /// Show who changed what: switches, bindings, people, reloads
    Audit(audit::Arguments),
    /// Look at everything, and tell what is wrong with the fix for each
    Doctor(doctor::Arguments),
    /// Write everything into one file, also while the gateway runs
    Backup(backup::Arguments),
    /// Bring everything back from a backup; what is there is kept aside
    Restore(restore::Arguments),
    /// Show version, commit, database schema and platform
    Version(version::Arguments),
    /// Print the completion script of a shell
    Completions(completions::Arguments),
    /// Print the manual page, or write a page for every verb
    Man(man::Arguments),
}

impl Verb {
    /// Whether the verb looks at a home at all.
    fn uses_home(&self) -> bool {
        !matches!(self, Verb::Version(_) | Verb::Completions(_) | Verb::Man(_))
    }

    /// Whether the verb works on a home that is there.
    fn needs_home(&self) -> bool {
        match self {
            Verb::Run(_)
            | Verb::Chat(_)
            | Verb::Ask(_)
            | Verb::Init(_)
            | Verb::Setup(_)
            | Verb::Config(_)
            | Verb::Restore(_)
            | Verb::Version(_)
            | Verb::Completions(_)
            | Verb::Man(_) => false,
            Verb::Skill(arguments) => !arguments.names_a_path(),
            _ => true,
        }
    }
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

impl Failure {
    /// A failure that the printed result tells already: nothing more is said, and the exit is 1.
    fn told() -> Self {
        Failure::Failed(String::new())
    }

    /// Adds what the person can do about it.
    fn hint(self, hint: impl std::fmt::Display) -> Self {
        let hinted = |text: String| format!("{text}{}{hint}", print::HINT);
        match self {
            Failure::Failed(text) => Failure::Failed(hinted(text)),
            Failure::WrongUse(text) => Failure::WrongUse(hinted(text)),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::WrongUse(_) => 2,
        }
    }
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

/// Every verb with its arguments and examples, as data. Feeds help, manual pages, completions and
/// the book's reference.
pub fn command() -> clap::Command {
    examples::with_examples(Arguments::command())
}

pub fn main() -> ExitCode {
    if let Some(code) = work_on::if_asked() {
        return code;
    }
    completions::if_asked();
    sandbox::use_this_program();
    if let Some(home) = home_typed() {
        print::name_home(&home);
    }
    let arguments = match read_arguments() {
        Ok(arguments) => arguments,
        Err(told) => {
            Color::among(std::env::args()).choose();
            choose_manner(false);
            return refuse(&without_odd_tip(told));
        }
    };
    arguments.color.choose();
    choose_manner(arguments.quiet);
    match dispatch(arguments).and_then(|()| written()) {
        Ok(()) => {
            telemetry::flush();
            ExitCode::SUCCESS
        }
        Err(failure) => end_with(failure),
    }
}

/// A chat whose words could not be written has failed, though its answers are stored.
fn written() -> Outcome {
    print::lost().map_or(Ok(()), |text| Err(Failure::Failed(text)))
}

fn read_arguments() -> Result<Arguments, clap::Error> {
    let mut command = command();
    let read = command
        .try_get_matches_from_mut(std::env::args_os())
        .map_err(without_environment)?;
    Arguments::from_arg_matches(&read).map_err(|error| error.format(&mut command))
}

/// The same mistake, told by a command that does not look at the environment: clap counts a home
/// from there as written by hand, and puts `--home` into its usage line.
fn without_environment(told: clap::Error) -> clap::Error {
    if !told.use_stderr() {
        return told;
    }
    let mut command = command().mut_arg("home", |home| home.env(None::<&'static str>));
    let again = command.try_get_matches_from_mut(std::env::args_os());
    again.err().unwrap_or(told)
}

/// The home in the words of the command line, also where they are wrong. A home from the environment
/// counts for the next command too.
fn home_typed() -> Option<String> {
    let words = std::env::args().take_while(|word| word != "--");
    let mut words = words.skip_while(|word| word != "--home" && !word.starts_with("--home="));
    match words.next()?.split_once('=') {
        Some((_, home)) => Some(home.to_owned()),
        None => words.next(),
    }
}

/// JSON is looked for in the words themselves, because an error of the command line is JSON too.
fn choose_manner(quiet: bool) {
    let mut words = std::env::args_os().take_while(|word| word != "--");
    print::choose(Manner {
        json: words.any(|word| word == "--json"),
        quiet,
    });
}

fn end_with(failure: Failure) -> ExitCode {
    let exit_code = failure.exit_code();
    let (Failure::Failed(text) | Failure::WrongUse(text)) = failure;
    print::failure(&told(&text), exit_code);
    ExitCode::from(exit_code)
}

/// Help and version come here too.
fn refuse(told: &clap::Error) -> ExitCode {
    if let Some(failure) = habit(told) {
        return end_with(failure);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(failure) = missing::failure(command(), told, &words) {
        return end_with(failure);
    }
    print::usage(told);
    ExitCode::from(if told.use_stderr() { 2 } else { 0 })
}

/// A verb that other programs have, or one that is misspelt.
fn habit(told: &clap::Error) -> Option<Failure> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (told.kind(), told.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let before = words.iter().position(|given| given == word)?.checked_sub(1);
    let noun = before.and_then(|at| words.get(at).map(String::as_str));
    let noun = noun.filter(|noun| command().find_subcommand(noun).is_some());
    let line = noun.map_or_else(|| word.clone(), |noun| format!("{noun} {word}"));
    let hint = habits::hint(noun, word).map(|hint| hint.replace(habits::CONFIG, &config_path()));
    let hint = hint.or_else(|| near_misses::hint(&command(), noun, word));
    let all = || match noun {
        Some(noun) => format!("`parlor help {noun}` lists what there is"),
        None => "`parlor help` lists all commands".to_owned(),
    };
    let hint = hint.unwrap_or_else(all);
    Some(Failure::WrongUse(format!("there is no `parlor {line}`")).hint(hint))
}

/// The config of the home that the command line means, also where the rest of it is wrong.
fn config_path() -> String {
    let named = home_typed().map(PathBuf::from);
    let named = named.or_else(|| std::env::var_os("PARLOR_HOME").map(PathBuf::from));
    let config = home_folder(named).map(|home| home.path().join("config.toml"));
    config.map_or_else(
        || "config.toml".to_owned(),
        |path| path.display().to_string(),
    )
}

/// A tip to write an unknown option behind `--`, where it would be taken for a word, helps nobody.
fn without_odd_tip(mut told: clap::Error) -> clap::Error {
    let is_odd = match told.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips
            .iter()
            .any(|tip| tip.to_string().contains("as a value")),
        _ => false,
    };
    if is_odd {
        told.remove(ContextKind::Suggested);
    }
    told
}

/// Reports bring their own heading.
fn told(text: &str) -> String {
    if text.is_empty() || text.starts_with("error") {
        text.to_owned()
    } else {
        format!("error: {text}")
    }
}

fn dispatch(arguments: Arguments) -> Outcome {
    open_files::raise_limit();
    let flag = level_asked(arguments.quiet, arguments.verbose);
    let home = home_folder(arguments.home).ok_or_else(|| {
        Failure::WrongUse("no home folder is known; name one with --home DIR".into())
    })?;
    let verb = arguments
        .verb
        .unwrap_or_else(|| Verb::Run(run::Arguments::default()));
    if verb.uses_home() {
        backups::settle(&home)?;
    }
    if verb.needs_home() {
        check_home(&home)?;
    }
    let (error, warn) = ((LevelFilter::ERROR, flag), (LevelFilter::WARN, flag));
    match verb {
        Verb::Run(arguments) => {
            keep_memory_private();
            on_runtime((LevelFilter::INFO, flag), run::run(home, arguments))
        }
        Verb::Chat(arguments) => {
            keep_memory_private();
            on_runtime(error, chat::run(home, arguments))
        }
        Verb::Ask(arguments) => {
            keep_memory_private();
            on_runtime(error, ask::run(home, arguments))
        }
        Verb::Init(arguments) => init::run(&home, &arguments),
        Verb::Setup(arguments) => {
            keep_memory_private();
            on_runtime(error, setup::run(home, arguments))
        }
        Verb::Config(arguments) => on_runtime(warn, config::run(home, arguments)),
        Verb::Route(verb) => on_runtime(warn, route::run(home, verb)),
        Verb::Agent(arguments) => on_runtime(warn, agent::run(home, arguments)),
        Verb::Export(verb) => export::run(&home, verb),
        Verb::Import(arguments) => on_runtime(warn, import::run(home, arguments)),
        Verb::Skill(arguments) => on_runtime(error, skill::run(home, arguments)),
        Verb::Remember(arguments) => on_runtime(warn, remember::run(home, arguments)),
        Verb::Recall(arguments) => on_runtime(warn, recall::run(home, arguments)),
        Verb::Memory(arguments) => on_runtime(warn, memory::run(home, arguments)),
        Verb::Security(arguments) => on_runtime(warn, security::run(home, arguments)),
        Verb::Sessions(arguments) => on_runtime(warn, sessions::run(home, arguments)),
        Verb::Pair(arguments) => on_runtime(warn, pair::run(home, arguments)),
        Verb::People(arguments) => on_runtime(warn, people::run(home, arguments)),
        Verb::Allow(arguments) => on_runtime(warn, allow::run(home, arguments)),
        Verb::Pause(arguments) => on_runtime(warn, pausing::pause(home, arguments)),
        Verb::Resume(arguments) => on_runtime(warn, pausing::resume(home, arguments)),
        Verb::Failed(arguments) => on_runtime(warn, failed::run(home, arguments)),
        Verb::Approvals(arguments) => on_runtime(warn, approvals::run(home, arguments)),
        Verb::Usage(arguments) => on_runtime(warn, usage::run(home, arguments)),
        Verb::Logs(arguments) => on_runtime(warn, logs::run(home, arguments)),
        Verb::Audit(arguments) => on_runtime(warn, audit::run(home, arguments)),
        Verb::Forget(arguments) => on_runtime(warn, forget::run(home, arguments)),
        Verb::Status(arguments) => on_runtime(warn, status::run(home, arguments)),
        Verb::Pin(arguments) => on_runtime(warn, pin::run(home, arguments)),
        Verb::New(arguments) => on_runtime(warn, new::run(home, arguments)),
        Verb::Stop(arguments) => on_runtime(warn, stop::run(home, arguments)),
        Verb::Queue(arguments) => on_runtime(warn, queue::run(home, arguments)),
        Verb::Job(arguments) => on_runtime(warn, job::run(home, arguments)),
        Verb::Reload(arguments) => on_runtime(warn, reload::run(home, arguments)),
        Verb::Dashboard(arguments) => on_runtime(warn, dashboard::run(home, arguments)),
        Verb::Token(arguments) => on_runtime(warn, token::run(home, arguments)),
        Verb::Doctor(arguments) => on_runtime(error, doctor::run(home, arguments)),
        Verb::Backup(arguments) => backup::run(&home, &arguments),
        Verb::Restore(arguments) => on_runtime(warn, restore::run(home, arguments)),
        Verb::Version(arguments) => version::run(&arguments),
        Verb::Completions(arguments) => completions::run(&arguments),
        Verb::Man(arguments) => man::run(&arguments),
    }
}

fn level_asked(quiet: bool, verbose: u8) -> Option<LevelFilter> {
    match (quiet, verbose) {
        (_, 2..) => Some(LevelFilter::TRACE),
        (_, 1) => Some(LevelFilter::DEBUG),
        (true, 0) => Some(LevelFilter::ERROR),
        (false, 0) => None,
    }
}

/// One message of all verbs where nothing is there yet.
fn check_home(home: &Home) -> Outcome {
    let config = home.path().join("config.toml");
    match std::fs::symlink_metadata(&config) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Failure::from(LoadError::NotEntered(config)))
        }
        Err(_) if home.database().exists() => Ok(()),
        Err(_) => Err(Failure::from(LoadError::Missing(config))),
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

fn on_runtime(
    (usual, flag): (LevelFilter, Option<LevelFilter>),
    work: impl Future<Output = Outcome>,
) -> Outcome {
    if let Some(remark) = telemetry::misread() {
        note(format_args!("note: {remark}"));
    }
    telemetry::start(usual, flag, Style::for_stderr().is_coloured());
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

/// The named folder, else the one of this user. None for a user without a folder.
fn home_folder(named: Option<PathBuf>) -> Option<Home> {
    let of_the_user = || {
        std::env::home_dir()
            .filter(|home| !home.as_os_str().is_empty())
            .map(|home| home.join(".parlor"))
    };
    named.or_else(of_the_user).map(Home::new)
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
