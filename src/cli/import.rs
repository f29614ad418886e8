//! `parlor import`: brings agents, memories, bindings, people and conversations of another system in.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::operator::{Operator, odd_reply};
use super::{Failure, Outcome, data, data_json, note, question};
use crate::home::Home;
use crate::moving::{Report, State, System, Wish, told};
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// The system to bring agents from
    #[arg(value_enum)]
    system: Given,
    /// Its folder, or an archive of it (.tar.gz, .zip) [default: where it is
    /// usually]
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
pub(super) enum Given {
    Openclaw,
    Hermes,
    Zeroclaw,
    Moltis,
    Signet,
}

impl Given {
    pub(super) fn system(self) -> System {
        match self {
            Given::Openclaw => System::OpenClaw,
            Given::Hermes => System::Hermes,
            Given::Zeroclaw => System::ZeroClaw,
            Given::Moltis => System::Moltis,
            Given::Signet => System::Signet,
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
    let has_work = report.count(State::New) + report.count(State::Conflict) > 0;
    let is_asked = has_work && !arguments.json && std::io::stdin().is_terminal();
    if !is_asked {
        return tell(&report, arguments.json);
    }
    data(format_args!("{}\n", told(&report)));
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
    let system = arguments.system.system();
    let folder = arguments.folder.clone().or_else(|| system.usual_folder());
    let folder = folder.ok_or_else(|| Failure::WrongUse("name the folder".into()))?;
    // The gateway has a working folder of its own.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let usual = || match arguments.folder.is_none() {
        true => system.usual_config_folder(),
        false => None,
    };
    let config_folder = arguments.config_dir.clone().or_else(usual);
    Ok(Wish {
        system,
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

fn tell_people(report: &Report) {
    data(format_args!("{}", told(report)));
    match (report.carried_out, report.count(State::Done)) {
        (false, _) => data(format_args!(
            "\nNothing was changed. --yes carries the plan out."
        )),
        (true, 0) => data(format_args!(
            "\nNothing was changed: everything that can be carried is here."
        )),
        (true, _) => {}
    }
}
