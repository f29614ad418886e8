//! `parlor chat`: a conversation in this terminal, through the same inbox, router, lane and outbox
//! as any platform.

mod editor;
mod host;
mod live;
mod pipe;
mod screen;
mod talk;
mod texts;
mod topics;
mod words;

use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use tokio::time::{Instant, sleep};

use super::{Failure, Outcome, note, print};
use crate::access::Standing;
use crate::agents::ensure_home;
use crate::channels::local::{self, LocalChannel, Terminal};
use crate::config::Secrets;
use crate::domain::{AgentId, Origin, SessionKey};
use crate::gateway::Gateway;
use crate::home::{CheckedConfig, Home};
use crate::operations::terminal::PlaceWish;
use crate::routing::Visit;
use crate::storage::Db;
use screen::Screen;
use talk::Talk;
use words::Words;

pub(super) use host::Host;
pub(super) use topics::place;

#[derive(Args)]
pub(super) struct Arguments {
    #[arg(hide = true)]
    words: Vec<String>,
    /// The topic to talk in; /topic changes it later
    #[arg(long)]
    topic: Option<String>,
    /// This agent answers, until you leave; nothing is pinned
    #[arg(long, short)]
    agent: Option<String>,
    /// The room, for a chat apart from the usual one
    #[arg(long, default_value = "home")]
    room: String,
    /// Begin with an empty database where there was one that is gone; never touches one that is
    /// there
    #[arg(long)]
    new_database: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    if !arguments.words.is_empty() {
        let missed = "the lines of a chat are typed at its prompt, or piped in";
        return Err(Failure::WrongUse(missed.into())
            .hint("`parlor ask` takes a question and prints its answer"));
    }
    let place = place(&arguments.room, arguments.topic.as_deref())?;
    let created = ensure_home(home.path())?;
    if arguments.new_database {
        home.begin_anew()?;
    }
    let wish = PlaceWish::This(place);
    let (host, terminal, place) = open(&home, wish, arguments.agent.as_deref()).await?;
    if stdin().is_terminal() && print::is_seen() {
        let created = created.is_some().then(|| home.path());
        let opening = Opening {
            home: home.clone(),
            agent: arguments.agent,
        };
        return at_a_terminal(opening, host, terminal, place, created).await;
    }
    pipe::run(host, terminal, place).await
}

/// Joins the gateway that runs on this home, else starts one with the terminal alone. `agent`
/// answers every line of this terminal.
pub(super) async fn open(
    home: &Home,
    wish: PlaceWish,
    agent: Option<&str>,
) -> Result<(Host, Terminal, SessionKey), Failure> {
    if let Some(joined) = Host::join(home, wish.clone(), agent).await? {
        return Ok(joined);
    }
    let place = wish.choices().and_then(|mut choices| choices.next());
    let place = place.ok_or_else(|| Failure::WrongUse("there is no such room".into()))?;
    let agent = match agent {
        Some(agent) => Some(known_agent(home, agent, &place).await?),
        None => None,
    };
    let (channel, terminal) = LocalChannel::new();
    let gateway = Gateway::start_local_with(home.clone(), Arc::new(channel), agent).await?;
    for missing in gateway.missing_keys() {
        note(format_args!("note: {missing}"));
    }
    Ok((Host::Own(Box::new(gateway)), terminal, place))
}

/// A chat that has the gateway may take this long to end, after its terminal is gone.
const OTHER_CHAT_ENDS: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The way into a gateway, for a chat that has to open once more.
struct Opening {
    home: Home,
    agent: Option<String>,
}

impl Opening {
    /// Opens once more after the chat that had the gateway has ended.
    async fn again(&self, place: &SessionKey) -> Result<(Host, Terminal), Failure> {
        let patience = Instant::now() + OTHER_CHAT_ENDS;
        loop {
            let wish = PlaceWish::This(place.clone());
            match open(&self.home, wish, self.agent.as_deref()).await {
                Ok((host, terminal, _)) => return Ok((host, terminal)),
                Err(_) if self.home.is_running() && Instant::now() < patience => {
                    sleep(LOOK_AGAIN).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

async fn at_a_terminal(
    opening: Opening,
    host: Host,
    terminal: Terminal,
    place: SessionKey,
    created: Option<&Path>,
) -> Outcome {
    let topics = host.topics(&place).await?;
    let words = Words {
        agents: host.agent_ids().await?,
        topics: topics.into_iter().filter_map(|topic| topic.name).collect(),
    };
    let before = tcgetattr(stdin());
    let (prompt, live) = match editor::start(opening.home.path(), words)? {
        Some((prompt, live)) => (prompt, Some(live)),
        None => (editor::start_plain(), None),
    };
    if let (Some(_), Ok(before)) = (&live, &before) {
        keep_keys(before.clone());
    }
    let talk = Talk::new(opening, host, terminal, Screen::new(live), prompt, place);
    let talked = talk.run(created).await;
    // The editor may still be reading, when the gateway gave up.
    if let Ok(before) = before {
        let _ = tcsetattr(stdin(), SetArg::TCSADRAIN, &before);
    }
    talked
}

/// Keys that are typed between two prompts stay keys: the system neither shows them nor makes
/// signals or an end of the input of them.
fn keep_keys(mut terminal: Termios) {
    use LocalFlags as Flags;
    terminal
        .local_flags
        .remove(Flags::ICANON | Flags::ECHO | Flags::ISIG | Flags::IEXTEN);
    terminal.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
    terminal.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    // Without it, only keys between two prompts are at risk.
    let _ = tcsetattr(stdin(), SetArg::TCSADRAIN, &terminal);
}

/// A person must not be answered by another agent than asked for, so an unknown agent ends the chat
/// before it begins, and so does an agent that is closed to the terminal.
async fn known_agent(home: &Home, word: &str, place: &SessionKey) -> Result<AgentId, Failure> {
    let checked = CheckedConfig::load(home, Secrets::WherePresent)?;
    let db = Db::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    let agent = super::agent::find(&registry, word)?;
    let (access, origin) = (
        &checked.config.access,
        Origin::new(place.clone(), local::person()),
    );
    let visit = Visit {
        access,
        origin: &origin,
        standing: &Standing::of(access, &origin.person, false),
    };
    let allowed = checked.table.may_switch(&agent.id, visit);
    allowed.map_err(|closed| {
        Failure::Failed(format!(
            "{closed}, and you are not among them. Add \"owner\" to `who` under [agents.{}]",
            agent.id
        ))
    })?;
    Ok(agent.id.clone())
}
