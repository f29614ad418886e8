//! The gateway that a terminal talks to: one of its own in this process, or the one that runs
//! already, over `parlor.sock`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::channels::local::{self, Far, Terminal};
use crate::cli::Failure;
use crate::cli::operator::{Line, odd_reply, told};
use crate::domain::{MessageId, SessionKey};
use crate::gateway::Gateway;
use crate::home::Home;
use crate::operations::terminal::{
    FromTerminal, Scene, ToTerminal, Topic, TurnReport, Visitor, Who,
};
use crate::operations::{Event, Reply, Request, Subject};

/// A gateway that has just begun opens its socket within this time.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Turns of lines that are answered.
type Turns = Arc<Mutex<HashMap<MessageId, TurnReport>>>;

/// Why the last line was not taken.
type Refusal = Arc<Mutex<Option<String>>>;

/// A plain lock: sections are a look-up or an insert, and none awaits.
fn locked(turns: &Turns) -> MutexGuard<'_, HashMap<MessageId, TurnReport>> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(in crate::cli) enum Host {
    Own(Box<Gateway>),
    Running(Running),
}

/// The gateway of another process.
pub(in crate::cli) struct Running {
    client: String,
    home: Home,
    /// Lines in the inbox of the gateway.
    said: Arc<AtomicU64>,
    refusal: Refusal,
    /// How many lines are known to be answered.
    answered: watch::Receiver<u64>,
    turns: Turns,
    /// The gateway is that of another chat.
    is_chat: bool,
    /// Set once the gateway is gone.
    gone: watch::Receiver<bool>,
    tasks: [JoinHandle<()>; 2],
}

impl Host {
    /// Joins the gateway that runs on this home. None where none runs.
    pub(super) async fn join(
        home: &Home,
        visitor: Visitor,
    ) -> Result<Option<(Self, Terminal, SessionKey)>, Failure> {
        let Some(mut scenes) = reach(home).await? else {
            return Ok(None);
        };
        let client = visitor.client.clone();
        let stream = scenes.watch(Subject::Terminal(visitor)).await?;
        let (place, is_chat) = match scenes.event(stream).await? {
            Some(Event::Terminal(Scene::Seated { place, is_chat })) => (place, is_chat),
            _ => return Err(odd_reply()),
        };
        let (terminal, far) = Terminal::of_another_process();
        let Far { lines, screen } = far;
        let said = Arc::new(AtomicU64::new(0));
        let (answered, is_answered) = watch::channel(0);
        let (gone, is_gone) = watch::channel(false);
        let turns = Turns::default();
        let known_turns = turns.clone();
        let watching = async move {
            loop {
                match scenes.event(stream).await {
                    Ok(Some(Event::Terminal(Scene::Shown(shown)))) => {
                        // Nobody looks at a terminal that was closed.
                        drop(screen.send(shown).await);
                    }
                    Ok(Some(Event::Terminal(Scene::Rest { lines, turns }))) => {
                        locked(&known_turns).extend(turns);
                        answered.send_replace(lines);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => break,
                }
            }
            gone.send_replace(true);
        };
        let refusal = Refusal::default();
        let known = (said.clone(), refusal.clone());
        let saying = say(client.clone(), home.clone(), known, lines);
        let running = Running {
            client,
            home: home.clone(),
            said,
            refusal,
            answered: is_answered,
            turns,
            is_chat,
            gone: is_gone,
            tasks: [tokio::spawn(watching), tokio::spawn(saying)],
        };
        Ok(Some((Host::Running(running), terminal, place)))
    }

    pub(super) async fn who_answers(&self, place: &SessionKey) -> Result<Who, Failure> {
        match self {
            Host::Own(gateway) => Ok(gateway.who_answers(place).await?),
            Host::Running(running) => match running.ask(running.who(place)).await? {
                ToTerminal::Who(who) => Ok(who),
                _ => Err(odd_reply()),
            },
        }
    }

    pub(super) async fn topics(&self, place: &SessionKey) -> Result<Vec<Topic>, Failure> {
        match self {
            Host::Own(gateway) => Ok(gateway.topics(place).await?),
            Host::Running(running) => {
                let place = place.clone();
                match running.ask(FromTerminal::Topics { place }).await? {
                    ToTerminal::Topics(topics) => Ok(topics),
                    _ => Err(odd_reply()),
                }
            }
        }
    }

    pub(super) async fn agent_ids(&self) -> Result<Vec<String>, Failure> {
        match self {
            Host::Own(gateway) => Ok(gateway.agent_ids()),
            Host::Running(running) => match running.ask(FromTerminal::Agents).await? {
                ToTerminal::Agents(ids) => Ok(ids),
                _ => Err(odd_reply()),
            },
        }
    }

    pub(in crate::cli) async fn turn_of(
        &self,
        line: &MessageId,
    ) -> Result<Option<TurnReport>, Failure> {
        match self {
            Host::Own(gateway) => Ok(gateway.turn_of(line).await?),
            Host::Running(running) => {
                if let Some(turn) = locked(&running.turns).get(line) {
                    return Ok(Some(turn.clone()));
                }
                let message = line.clone();
                match running.ask(FromTerminal::Turn { message }).await? {
                    ToTerminal::Turn(turn) => Ok(turn),
                    _ => Err(odd_reply()),
                }
            }
        }
    }

    /// Cancels a line for good. A line that is answered already stays so.
    pub(in crate::cli) async fn cancel(&self, line: &MessageId) -> Result<(), Failure> {
        match self {
            Host::Own(gateway) => Ok(gateway.cancel(line).await?),
            Host::Running(running) => {
                let message = line.clone();
                running
                    .ask(FromTerminal::Cancel { message })
                    .await
                    .map(drop)
            }
        }
    }

    /// Returns when every line of this terminal that is in the inbox is answered.
    pub(in crate::cli) async fn answered(&self) {
        match self {
            Host::Own(gateway) => gateway.answered().await,
            Host::Running(running) => {
                let said = running.said.load(Ordering::SeqCst);
                let mut answered = running.answered.clone();
                // A gateway that is gone is told about by `deserted`.
                if answered.wait_for(|lines| *lines >= said).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Returns when this line is answered, whatever else the gateway has to do.
    pub(in crate::cli) async fn answered_line(&self, place: &SessionKey, line: &MessageId) {
        match self {
            Host::Own(gateway) => gateway.answered_line(place, line).await,
            Host::Running(_) => self.answered().await,
        }
    }

    /// Returns with the reason when no more lines are taken.
    pub(in crate::cli) async fn deserted(&self) -> String {
        match self {
            Host::Own(gateway) => gateway.deserted().await,
            Host::Running(running) => {
                let mut gone = running.gone.clone();
                drop(gone.wait_for(|is_gone| *is_gone).await);
                STOPPED.to_owned()
            }
        }
    }

    /// Why a line was not taken.
    pub(in crate::cli) fn refusal(&self) -> String {
        let known = match self {
            Host::Own(_) => None,
            Host::Running(running) => {
                let refusal = running.refusal.lock();
                refusal.unwrap_or_else(PoisonError::into_inner).clone()
            }
        };
        known.unwrap_or_else(|| TAKES_NO_MORE.to_owned())
    }

    /// Whether the gateway goes on without this terminal.
    pub(super) fn is_joined(&self) -> bool {
        matches!(self, Host::Running(_))
    }

    /// Whether the gateway is that of another chat, and ends with it.
    pub(in crate::cli) fn ends_with_a_chat(&self) -> bool {
        matches!(self, Host::Running(running) if running.is_chat)
    }

    /// Whether leaving takes a while because of a summary.
    pub(super) fn is_summing_up(&self) -> bool {
        match self {
            Host::Own(gateway) => gateway.is_summing_up(),
            Host::Running(_) => false,
        }
    }

    /// Leaves. A gateway of its own ends with the terminal; one that runs for others goes on, with
    /// the answers under way too.
    pub(in crate::cli) async fn leave(self) {
        match self {
            // Another chat takes the gateway over, and answers what is left. Other questions are
            // answered here, because asking them again would cost twice.
            Host::Own(gateway) if gateway.has_visitors() && !gateway.is_for_a_question() => {
                gateway.shutdown_at_once().await;
            }
            Host::Own(gateway) => gateway.shutdown().await,
            Host::Running(running) => running.leave(),
        }
    }

    /// The same without a wait for answers, which the next start goes on with.
    pub(in crate::cli) async fn leave_at_once(self) {
        match self {
            Host::Own(gateway) => gateway.shutdown_at_once().await,
            Host::Running(running) => running.leave(),
        }
    }
}

/// The running gateway. One that has just begun is waited for. None where none runs, or none that
/// listens.
async fn reach(home: &Home) -> Result<Option<Line>, Failure> {
    let patience = Instant::now() + PATIENCE;
    while home.is_running() && Instant::now() < patience {
        if let Some(line) = Line::open(home).await? {
            return Ok(Some(line));
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(None)
}

impl Running {
    fn leave(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    fn who(&self, place: &SessionKey) -> FromTerminal {
        FromTerminal::Who {
            client: self.client.clone(),
            place: place.clone(),
        }
    }

    async fn ask(&self, request: FromTerminal) -> Result<ToTerminal, Failure> {
        ask(&self.home, request).await
    }
}

/// Asks on a connection of its own: the gateway lets go of one that is silent for long.
async fn ask(home: &Home, request: FromTerminal) -> Result<ToTerminal, Failure> {
    let Some(mut line) = Line::open(home).await? else {
        return Err(Failure::Failed(STOPPED.into()));
    };
    match line.ask(Request::Terminal(request)).await?.map_err(told)? {
        Reply::Terminal(told) => Ok(told),
        _ => Err(odd_reply()),
    }
}

/// Takes lines to the gateway in their order.
async fn say(
    client: String,
    home: Home,
    (said, refusal): (Arc<AtomicU64>, Refusal),
    mut lines: mpsc::Receiver<local::Line>,
) {
    while let Some(line) = lines.recv().await {
        let request = FromTerminal::Say {
            client: client.clone(),
            place: line.place,
            message: line.message,
            text: line.text,
        };
        // A line that was not taken is told about by the missing word.
        match ask(&home, request).await {
            Ok(_) => {
                said.fetch_add(1, Ordering::SeqCst);
                // The person may be gone already.
                let _ = line.accepted.send(());
            }
            Err(Failure::Failed(reason) | Failure::WrongUse(reason)) => {
                *refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            }
        }
    }
}

const TAKES_NO_MORE: &str = "the gateway takes no more messages";
const STOPPED: &str = "the gateway has stopped before everything was answered";
