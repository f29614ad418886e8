//! `parlor chat`: a conversation in this terminal, through the same inbox, router, lane and outbox
//! as any platform.

use std::io::{IsTerminal, stdin};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;

use clap::Args;
use tokio::sync::mpsc;

use super::screen::Screen;
use super::{Failure, Outcome, print};
use crate::access::Standing;
use crate::agents::ensure_home;
use crate::channels::local::{self, LocalChannel, Terminal};
use crate::config::Secrets;
use crate::domain::{LocalName, Origin, SessionKey};
use crate::gateway::Gateway;
use crate::home::{CheckedConfig, Home};
use crate::routing::Visit;
use crate::storage::Db;

#[derive(Args)]
pub(super) struct Arguments {
    /// The topic to talk in; /topic changes it later
    #[arg(long)]
    topic: Option<String>,
    /// Give the place to this agent first, as /agent does
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
    let place = place(&arguments.room, arguments.topic.as_deref())?;
    let created = ensure_home(home.path())?;
    if arguments.new_database {
        home.begin_anew()?;
    }
    if let Some(agent) = &arguments.agent {
        check_agent(&home, agent, &place).await?;
    }
    let (channel, terminal) = LocalChannel::new();
    let gateway = Gateway::start_local(home.clone(), Arc::new(channel)).await?;
    let interactive = stdin().is_terminal() && print::is_seen();
    let mut chat = Chat {
        gateway,
        terminal,
        screen: Screen::new(interactive),
        place,
    };
    if interactive {
        chat.screen.welcome(created.is_some().then(|| home.path()));
    }
    let first = arguments.agent.map(|agent| format!("/agent {agent}"));
    let talked = match chat.say_first(first).await {
        Ok(()) if interactive => chat.talk().await,
        Ok(()) => chat.read_lines().await,
        failed => failed,
    };
    chat.leave().await;
    talked
}

/// A script must not be answered by another agent than it asked for, so an unknown agent ends the
/// chat before it begins, and so does an agent that is closed to the terminal.
async fn check_agent(home: &Home, word: &str, place: &SessionKey) -> Outcome {
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
    checked
        .table
        .may_switch(&agent.id, visit)
        .map_err(|closed| {
            Failure::Failed(format!(
                "{closed}, and you are not among them. Add \"owner\" to `who` under [agents.{}]",
                agent.id
            ))
        })
}

fn place(room: &str, topic: Option<&str>) -> Result<SessionKey, Failure> {
    let name = |what: &str, text: &str| {
        text.parse::<LocalName>().map_err(|()| {
            Failure::WrongUse(format!(
                "a {what} is written with a-z, 0-9, - and _, not `{text}`"
            ))
        })
    };
    let topic = topic.map(|topic| name("topic", topic)).transpose()?;
    Ok(SessionKey::Local {
        room: name("room", room)?,
        topic,
    })
}

struct Chat {
    gateway: Gateway,
    terminal: Terminal,
    screen: Screen,
    place: SessionKey,
}

impl Chat {
    async fn say_first(&mut self, line: Option<String>) -> Outcome {
        match line {
            Some(line) => self.say(line).await,
            None => Ok(()),
        }
    }

    /// Lines from an editor, until the person leaves.
    async fn talk(&mut self) -> Outcome {
        let (asks, mut lines) = line_editor()?;
        loop {
            if asks.send(prompt(&self.place)).await.is_err() {
                return Ok(());
            }
            let line = tokio::select! {
                line = lines.recv() => line,
                reason = self.gateway.deserted() => return Err(Failure::Failed(reason)),
            };
            let Some(line) = line else { return Ok(()) };
            if self.take(line).await?.is_break() {
                return Ok(());
            }
        }
    }

    /// Piped lines: each line is a message, and is answered before the next line is read.
    async fn read_lines(&mut self) -> Outcome {
        let mut lines =
            tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(tokio::io::stdin()));
        while let Some(line) = lines.next_line().await? {
            if self.take(line).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Breaks when the person leaves.
    async fn take(&mut self, line: String) -> Result<ControlFlow<()>, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["/quit" | "/exit"] => return Ok(ControlFlow::Break(())),
            ["/help"] => {
                self.say(line).await?;
                self.screen.note(HERE_TOO);
            }
            ["/topic"] => self.go(None),
            // Several words are no topic; the refusal names them all.
            ["/topic", words @ ..] => self.go(Some(&words.join(" "))),
            _ => self.say(line).await?,
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Walking to another topic is the terminal's own business: the gateway only sees where a line
    /// was written.
    fn go(&mut self, topic: Option<&str>) {
        let SessionKey::Local { room, .. } = &self.place else {
            return;
        };
        match place(room.as_str(), topic) {
            Ok(place) => {
                self.place = place;
                self.screen.note(&format!("You are in {} now.", self.place));
            }
            Err(Failure::Failed(text) | Failure::WrongUse(text)) => {
                self.screen.note(&format!("{text}."));
            }
        }
    }

    /// Prints messages until the line is answered. Summaries are made meanwhile and keep no line
    /// waiting.
    async fn say(&mut self, line: String) -> Outcome {
        if !self.terminal.say(self.place.clone(), line).await {
            self.screen
                .note("The gateway does not take messages any more.");
            return Ok(());
        }
        loop {
            tokio::select! {
                biased;
                Some(shown) = self.terminal.screen.recv() => self.screen.show(shown, &self.place),
                reason = self.gateway.deserted() => return Err(Failure::Failed(reason)),
                () = self.gateway.answered() => break,
            }
        }
        while let Ok(shown) = self.terminal.screen.try_recv() {
            self.screen.show(shown, &self.place);
        }
        Ok(())
    }

    /// Ends the gateway, and prints the last messages.
    async fn leave(self) {
        let Chat {
            gateway,
            mut terminal,
            mut screen,
            place,
        } = self;
        if gateway.is_summing_up() {
            screen.remark(SUMMING_UP);
        }
        let mut ending = pin!(gateway.shutdown());
        loop {
            tokio::select! {
                biased;
                Some(shown) = terminal.screen.recv() => screen.show(shown, &place),
                () = &mut ending => break,
            }
        }
        while let Ok(shown) = terminal.screen.try_recv() {
            screen.show(shown, &place);
        }
    }
}

/// The terminal's own commands, added to the gateway's list.
const HERE_TOO: &str =
    "In this terminal also: /topic NAME walks to another topic, /topic alone back, /quit leaves.";

const SUMMING_UP: &str = "The conversation is being summed up; this takes ten seconds at most.";

fn prompt(place: &SessionKey) -> String {
    match place {
        SessionKey::Local {
            topic: Some(topic), ..
        } => format!("{topic} › "),
        _ => "› ".to_owned(),
    }
}

/// The editor blocks, so a thread of its own runs the editor: a prompt goes in, a line comes out.
fn line_editor() -> Result<(mpsc::Sender<String>, mpsc::Receiver<String>), Failure> {
    let (asks, mut prompts) = mpsc::channel::<String>(1);
    let (typed, lines) = mpsc::channel(1);
    let mut editor = rustyline::DefaultEditor::new()?;
    std::thread::spawn(move || {
        while let Some(prompt) = prompts.blocking_recv() {
            // Ctrl-C and Ctrl-D both end the chat, by ending the lines.
            let Ok(line) = editor.readline(&prompt) else {
                return;
            };
            // A line is sent even if the editor's history cannot take the line.
            drop(editor.add_history_entry(&line));
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    Ok((asks, lines))
}
