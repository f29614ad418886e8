//! `parlor chat`: a conversation in this terminal, through the same inbox, router, lane and outbox
//! as any platform.

mod editor;
mod host;
mod live;
mod opening;
mod pipe;
mod screen;
mod talk;
mod texts;
mod topics;
mod words;

use std::io::{IsTerminal, stdin};
use std::path::Path;

use clap::Args;
use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};

use super::interrupts::Interrupts;
use super::{Failure, Outcome, print};
use crate::agents::ensure_home;
use crate::channels::local::{Audience, Terminal};
use crate::domain::SessionKey;
use crate::home::Home;
use crate::operations::terminal::PlaceWish;
use screen::Screen;
use talk::Talk;
use words::Words;

pub(super) use host::Host;
pub(super) use opening::Opening;
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
    let has_person = stdin().is_terminal() && print::is_seen();
    let opening = Opening {
        home: home.clone(),
        agent: arguments.agent,
        audience: match has_person {
            true => Audience::Person,
            false => Audience::Pipe,
        },
    };
    let wish = PlaceWish::This(place);
    if has_person {
        let (host, terminal, place) = opening.open(&wish, false).await?;
        let created = created.is_some().then(|| home.path());
        return at_a_terminal(opening, host, terminal, place, created).await;
    }
    let interrupts = Interrupts::new()?;
    let (host, terminal, place) = opening.open(&wish, false).await?;
    pipe::run(host, terminal, place, interrupts).await
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
