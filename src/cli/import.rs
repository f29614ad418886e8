//! `parlor import`: brings agents, memories, bindings, people and conversations of another system in.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::operator::{Operator, odd_reply};
use super::{Failure, Outcome, data, data_json, note, question};
use crate::home::Home;
use crate::moving::{Item, Kind, Report, State, System, Wish};
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// The system to bring agents from
    #[arg(value_enum)]
    system: Given,
    /// Its folder [default: where it is usually]
    folder: Option<PathBuf>,
    /// Carry the plan out without asking
    #[arg(long, short)]
    yes: bool,
    /// Bring tokens and keys too, into files of secrets/
    #[arg(long)]
    with_secrets: bool,
    /// Give an agent another id: OLD=NEW
    #[arg(long = "as", value_name = "OLD=NEW")]
    names: Vec<String>,
    /// The account whose bot moves in, where there are several
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// Keep memories global that all agents saw there
    #[arg(long)]
    global: bool,
    /// Bring memories too that were noted by the way
    #[arg(long)]
    all: bool,
    /// The folder with the config, if it is apart (Moltis)
    #[arg(long, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// Print the plan or the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Given {
    Openclaw,
    Hermes,
    Zeroclaw,
    Moltis,
    Signet,
}

impl Given {
    fn system(self) -> System {
        match self {
            Given::Openclaw => System::OpenClaw,
            Given::Hermes => System::Hermes,
            Given::Zeroclaw => System::ZeroClaw,
            Given::Moltis => System::Moltis,
            Given::Signet => System::Signet,
        }
    }

    /// The variable that moves its folder, and the folder in the user's own.
    fn usual(self) -> (&'static str, &'static str) {
        match self {
            Given::Openclaw => ("OPENCLAW_STATE_DIR", ".openclaw"),
            Given::Hermes => ("HERMES_HOME", ".hermes"),
            Given::Zeroclaw => ("ZEROCLAW_CONFIG_DIR", ".zeroclaw"),
            Given::Moltis => ("MOLTIS_DATA_DIR", ".moltis"),
            Given::Signet => ("SIGNET_PATH", ".agents"),
        }
    }
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let mut wish = wish(&arguments)?;
    let mut operator = Operator::open(&home, false).await?;
    // A plan is shown before anything is done, unless the person said yes before.
    if arguments.yes {
        wish.only_look = false;
        let report = ask(&mut operator, wish).await?;
        return tell(&report, arguments.json);
    }
    let report = ask(&mut operator, wish.clone()).await?;
    tell(&report, arguments.json)?;
    let is_asked = !arguments.json && std::io::stdin().is_terminal();
    if report.count(State::New) + report.count(State::Conflict) == 0 || !is_asked {
        return Ok(());
    }
    question(format_args!("Carry this out? [y/N] "));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    if !matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        note(format_args!("Nothing was changed."));
        return Ok(());
    }
    wish.only_look = false;
    tell(&ask(&mut operator, wish).await?, false)
}

fn wish(arguments: &Arguments) -> Result<Wish, Failure> {
    let names = arguments.names.iter().map(|pair| {
        let pair = pair.split_once('=');
        let pair = pair.map(|(old, new)| (old.to_owned(), new.to_owned()));
        pair.ok_or_else(|| Failure::WrongUse("write it like --as main=claw".into()))
    });
    let (variable, usual) = arguments.system.usual();
    let named = arguments.folder.clone();
    let named = named.or_else(|| std::env::var_os(variable).map(PathBuf::from));
    let folder = named.or_else(|| Some(std::env::home_dir()?.join(usual)));
    let folder = folder.ok_or_else(|| Failure::WrongUse("name the folder".into()))?;
    // The gateway has a working folder of its own.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let config_folder = arguments
        .config_dir
        .clone()
        .or_else(|| match arguments.system {
            Given::Moltis if arguments.folder.is_none() => {
                let named = std::env::var_os("MOLTIS_CONFIG_DIR").map(PathBuf::from);
                named.or_else(|| Some(std::env::home_dir()?.join(".config/moltis")))
            }
            _ => None,
        });
    Ok(Wish {
        system: arguments.system.system(),
        folder: absolute(folder),
        config_folder: config_folder.map(absolute),
        account: arguments.account.clone(),
        names: names.collect::<Result<_, _>>()?,
        with_secrets: arguments.with_secrets,
        keep_global: arguments.global,
        everything: arguments.all,
        only_look: true,
    })
}

async fn ask(operator: &mut Operator, wish: Wish) -> Result<Report, Failure> {
    match operator.ask(Request::Import(wish)).await? {
        Reply::Imported(report) => Ok(*report),
        _ => Err(odd_reply()),
    }
}

fn tell(report: &Report, json: bool) -> Outcome {
    if json {
        data_json(&serde_json::to_value(report)?)?;
    } else {
        tell_people(report);
    }
    match report.count(State::Failed) {
        0 => Ok(()),
        1 => Err(Failure::Failed(
            "1 thing could not be carried; import again to try it once more".into(),
        )),
        count => Err(Failure::Failed(format!(
            "{count} things could not be carried; import again to try them once more"
        ))),
    }
}

/// Kinds in the order of the report.
const KINDS: [Kind; 10] = [
    Kind::Agent,
    Kind::File,
    Kind::Skill,
    Kind::Memory,
    Kind::Binding,
    Kind::Person,
    Kind::Conversation,
    Kind::Secret,
    Kind::Schedule,
    Kind::Setting,
];
/// Lines of a group that are shown; the rest is counted.
const MOST_SHOWN: usize = 40;

fn tell_people(report: &Report) {
    let name = report.system.name();
    data(format_args!("{name} in {}", report.source));
    for program in &report.running {
        data(format_args!(
            "{} (pid {}) uses it right now. Stop it before this gateway talks for the same bot, and import again then.",
            program.name, program.pid
        ));
    }
    let groups: [(&str, &[State]); 6] = [
        ("Would be carried:", &[State::New]),
        ("Carried:", &[State::Done]),
        ("Here already, and different:", &[State::Conflict]),
        ("Could not be carried:", &[State::Failed]),
        ("For you to do:", &[State::Manual]),
        ("Not carried:", &[State::Skipped]),
    ];
    for (title, states) in groups {
        let items = report
            .items
            .iter()
            .filter(|item| states.contains(&item.state));
        tell_group(title, items.collect());
    }
    let same = report.count(State::Same);
    if same > 0 {
        data(format_args!(
            "\n{same} {} here already.",
            if same == 1 { "thing is" } else { "things are" }
        ));
    }
    if report.more > 0 {
        data(format_args!("{} more are not listed.", report.more));
    }
    let changed = report.count(State::Done);
    match (report.carried_out, changed) {
        (false, _) => data(format_args!(
            "\nNothing was changed. --yes carries the plan out."
        )),
        (true, 0) => data(format_args!(
            "\nNothing was changed: everything that can be carried is here."
        )),
        (true, _) => {}
    }
}

fn tell_group(title: &str, mut items: Vec<&Item>) {
    if items.is_empty() {
        return;
    }
    data(format_args!("\n{title}"));
    let place = |item: &Item| KINDS.iter().position(|kind| *kind == item.kind);
    items.sort_by_key(|item| place(item));
    for item in items.iter().take(MOST_SHOWN) {
        let target = item
            .target
            .as_ref()
            .map_or_else(String::new, |target| format!(" → {target}"));
        let why = item
            .why
            .as_ref()
            .map_or_else(String::new, |why| format!(" ({why})"));
        data(format_args!(
            "  {:<13}{}{target}{why}",
            item.kind.as_str(),
            item.source
        ));
    }
    let more = items.len().saturating_sub(MOST_SHOWN);
    if more > 0 {
        data(format_args!("  and {more} more; --json lists all"));
    }
}
