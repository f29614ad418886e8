//! `parlor setup`: a model, a bot, its owner, its places, and a service, each asked for or given by
//! a flag.

mod terminal;

use std::io::{IsTerminal, stdin};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::import::Given;
use super::operator::{Operator, odd_reply};
use super::{Failure, Outcome, data_json, meant_place, note};
use crate::domain::{AgentId, PersonId, SessionKey};
use crate::home::Home;
use crate::operations::{Reply, Request};
use crate::setup::{
    self, AgentWish, ImportWish, Keeper, Nobody, Part, PlatformWish, ServiceWish, Stop, Wishes,
};
use terminal::AtTerminal;

/// The exit code after Ctrl-C.
const INTERRUPTED: i32 = 130;

#[derive(Args)]
pub(super) struct Arguments {
    /// Model of the agents: provider/model, or demo
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Address of the model's server, if it is not the usual one
    #[arg(long, value_name = "URL", requires = "model")]
    model_url: Option<String>,
    /// Environment variable with the key of the model's server
    #[arg(long, value_name = "NAME", requires = "model")]
    model_key_env: Option<String>,
    /// Environment variable with the token of the Telegram bot
    #[arg(long, value_name = "NAME")]
    telegram_token_env: Option<String>,
    /// File with the token of the Telegram bot, mode 600
    #[arg(long, value_name = "FILE", conflicts_with = "telegram_token_env")]
    telegram_token_file: Option<PathBuf>,
    /// Address of a Bot API server of your own
    #[arg(long, value_name = "URL")]
    telegram_api_url: Option<String>,
    /// Environment variable with the token of the Discord bot
    #[arg(long, value_name = "NAME")]
    discord_token_env: Option<String>,
    /// File with the token of the Discord bot, mode 600
    #[arg(long, value_name = "FILE", conflicts_with = "discord_token_env")]
    discord_token_file: Option<PathBuf>,
    /// Address of a proxy in front of Discord
    #[arg(long, value_name = "URL")]
    discord_api_url: Option<String>,
    /// Owner, such as telegram:12345678; may be given several times
    #[arg(long = "owner", value_name = "PERSON", value_parser = person)]
    owners: Vec<PersonId>,
    /// Name of a new agent; may be given several times
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Manner of a new agent, as NAME=TEXT
    #[arg(long = "personality", value_name = "NAME=TEXT", requires = "agents", value_parser = of_name)]
    personalities: Vec<(String, String)>,
    /// Skills of a new agent, as NAME=SKILL,SKILL [default: all]
    #[arg(long = "skills", value_name = "NAME=SKILLS", requires = "agents", value_parser = of_name)]
    skills: Vec<(String, String)>,
    /// Place and its agent, as PLACE=AGENT; may be given several times
    #[arg(long = "bind", value_name = "PLACE=AGENT", value_parser = binding)]
    bindings: Vec<(SessionKey, AgentId)>,
    /// Bring the agents of another system
    #[arg(long, value_enum, value_name = "SYSTEM")]
    import: Option<Given>,
    /// Its folder, or an archive of it [default: where it is usually]
    #[arg(long, value_name = "PATH", requires = "import")]
    import_from: Option<PathBuf>,
    /// Bring its tokens and keys too, into files of secrets/
    #[arg(long, requires = "import")]
    with_secrets: bool,
    /// Have systemd keep the gateway running
    #[arg(long, value_enum, value_name = "WHOSE")]
    service: Option<Service>,
    /// Ask about this part only
    #[arg(long, value_enum, value_name = "PART")]
    add: Option<Added>,
    /// Ask nothing: take the flags, and what is offered otherwise
    #[arg(long, short)]
    yes: bool,
    /// Print the changes as JSON, and write nothing
    #[arg(long)]
    plan: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Service {
    /// A service of this user
    User,
    /// A service of the system, for root
    System,
    /// No service
    None,
}

#[derive(Clone, Copy, ValueEnum)]
enum Added {
    /// New agents: name, personality, skills, place
    Agents,
    /// Another model
    Model,
    Telegram,
    Discord,
    /// Places and their agents
    Places,
    /// Agents of another system
    Import,
    /// A unit of systemd
    Service,
}

const EMPTY_PLAN: &str = "Nothing would change: the plan follows the flags of setup, such as --model and --bind; `parlor help setup` lists them.";

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let (yes, plan) = (arguments.yes, arguments.plan);
    let wishes = wishes(arguments)?;
    if plan {
        let changes = setup::plan(&home, wishes).await.map_err(told)?;
        if changes.is_empty() {
            note(format_args!("{EMPTY_PLAN}"));
        }
        return data_json(&json!({ "changes": changes }));
    }
    let ending = if yes {
        let mut nobody = Nobody {
            tell: |line: &str| note(format_args!("{line}")),
        };
        setup::run(&home, wishes, Vec::new(), &mut nobody).await
    } else if stdin().is_terminal() {
        let heard = meant_place::ignored(&home).await;
        setup::run(&home, wishes, heard, &mut AtTerminal::default()).await
    } else {
        return Err(
            Failure::WrongUse("setup asks questions, and this is no terminal".into())
                .hint("give the answers by flags, with --yes; `parlor help setup` lists them"),
        );
    };
    let ending = ending.map_err(told)?;
    if !ending.changes.is_empty() {
        reload(&home).await?;
    } else if !ending.runs_here {
        note(format_args!("Nothing was changed."));
    }
    note(format_args!("\n{}", ending.next));
    match ending.runs_here {
        true => Err(become_gateway(&home)),
        false => Ok(()),
    }
}

/// This process becomes `parlor run`, with the log of a gateway. Returns only if it cannot.
fn become_gateway(home: &Home) -> Failure {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error.into(),
    };
    let mut gateway = Command::new(program);
    gateway.arg("--home").arg(home.path()).arg("run");
    gateway.exec().into()
}

/// Has a gateway that runs on the home take the changes in.
async fn reload(home: &Home) -> Outcome {
    if !home.is_running() {
        return Ok(());
    }
    let mut operator = Operator::open(home, true).await?;
    match operator.ask(Request::Reload).await? {
        Reply::Reloaded(_) => {
            note(format_args!("The running gateway has taken it in."));
            Ok(())
        }
        _ => Err(odd_reply()),
    }
}

fn told(stop: Stop) -> Failure {
    match stop {
        Stop::Interrupted => {
            note(format_args!("{STOPPED}"));
            std::process::exit(INTERRUPTED);
        }
        Stop::Failed(text) => Failure::Failed(text),
    }
}

fn wishes(given: Arguments) -> Result<Wishes, Failure> {
    let agents = new_agents(given.agents, &given.personalities, &given.skills)?;
    Ok(Wishes {
        agents,
        import: given.import.map(|system| ImportWish {
            system: system.system(),
            from: given.import_from,
            with_secrets: given.with_secrets,
        }),
        model: given.model,
        model_url: given.model_url,
        model_key: given.model_key_env.map(Keeper::Env),
        telegram: PlatformWish {
            token: keeper(given.telegram_token_env, given.telegram_token_file)?,
            api_url: given.telegram_api_url,
        },
        discord: PlatformWish {
            token: keeper(given.discord_token_env, given.discord_token_file)?,
            api_url: given.discord_api_url,
        },
        owners: given.owners,
        bindings: given.bindings,
        service: given.service.map(|service| match service {
            Service::User => ServiceWish::User,
            Service::System => ServiceWish::System,
            Service::None => ServiceWish::None,
        }),
        part: given.add.map(|part| match part {
            Added::Agents => Part::Agents,
            Added::Model => Part::Model,
            Added::Telegram => Part::Telegram,
            Added::Discord => Part::Discord,
            Added::Places => Part::Places,
            Added::Import => Part::Import,
            Added::Service => Part::Service,
        }),
    })
}

fn new_agents(
    names: Vec<String>,
    personalities: &[(String, String)],
    skills: &[(String, String)],
) -> Result<Vec<AgentWish>, Failure> {
    let mut described = personalities.iter().chain(skills).map(|(name, _)| name);
    if let Some(name) = described.find(|name| !names.contains(name)) {
        return Err(Failure::WrongUse(format!(
            "{name} is no new agent; name it with --agent too"
        )));
    }
    let of = |all: &[(String, String)], name: &str| {
        let mut own = all.iter().filter(|(of, _)| of == name);
        own.next_back().map(|(_, text)| text.clone())
    };
    let listed = |text: String| {
        let names = text.split(',').map(|name| name.trim().to_owned());
        names.filter(|name| !name.is_empty()).collect()
    };
    let agents = names.into_iter().map(|name| AgentWish {
        personality: of(personalities, &name),
        skills: of(skills, &name).map(listed),
        name,
    });
    Ok(agents.collect())
}

fn keeper(variable: Option<String>, file: Option<PathBuf>) -> Result<Option<Keeper>, Failure> {
    let file = file.map(std::path::absolute).transpose()?;
    let file = file.map(|path| Keeper::File(path.display().to_string()));
    Ok(variable.map(Keeper::Env).or(file))
}

fn person(text: &str) -> Result<PersonId, String> {
    let problem = "write it like telegram:12345678; @userinfobot tells your number";
    text.parse().map_err(|_| problem.to_owned())
}

/// `Night Desk=Calm, and awake.`
fn of_name(text: &str) -> Result<(String, String), String> {
    let (name, text) = text
        .split_once('=')
        .ok_or("write it like \"Night Desk=Calm, and awake.\"")?;
    Ok((name.to_owned(), text.to_owned()))
}

/// `telegram:topic:-1001:7=rose`.
fn binding(text: &str) -> Result<(SessionKey, AgentId), String> {
    let (place, agent) = text
        .rsplit_once('=')
        .ok_or("write it like telegram:topic:-1001234567890:7=rose")?;
    let place = place
        .parse::<SessionKey>()
        .map_err(|error| error.to_string())?;
    let agent = AgentId::parse(agent).map_err(|error| error.to_string())?;
    Ok((place, agent))
}

const STOPPED: &str = "\nStopped. The steps before are kept; `parlor setup` goes on with the rest.";
