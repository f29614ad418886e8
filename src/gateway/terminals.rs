//! Terminals of other processes: `parlor chat` and `parlor ask` join this gateway through
//! `parlor.sock` and talk as in a process of their own.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::at_the_terminal::{self, is_in_room};
use super::socket::Order;
use super::{Gateway, GatewayState};
use crate::access::Standing;
use crate::channels::local::{self, Audience, LocalChannel, Shown, Terminal, Voice};
use crate::channels::{Channel, Intake};
use crate::commands::{self, Parsed};
use crate::delivery::outbox;
use crate::domain::{AgentId, Inbound, MessageId, Origin, Platform, SessionKey, nearest};
use crate::operations::terminal::{
    FromTerminal, PlaceWish, QUESTIONS, Scene, ToTerminal, TurnReport, Visitor,
};
use crate::operations::{Event, Refusal};
use crate::records::inbox;
use crate::routing::Visit;
use crate::routing::pins::StandIns;
use crate::storage::StoreError;

/// How often open lines are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// The same for the only line of a process, which ends with its answer.
const LOOK_OFTEN: Duration = Duration::from_millis(10);
/// Looks at the lines that are open when the gateway has written its last answer.
const LAST_LOOKS: u32 = 50;
/// Lines that are in the inbox and not counted yet. When full, the visitor waits.
const QUEUE: usize = 64;

/// The visitors of a gateway.
pub(super) struct Terminals {
    channel: Arc<LocalChannel>,
    stand_ins: StandIns,
    /// The gateway is that of a `parlor chat` or `parlor ask`, and ends with it.
    is_chat: bool,
    /// A plain lock: sections are short, and none awaits.
    present: Mutex<HashMap<String, Present>>,
}

/// A visitor who is here.
struct Present {
    voice: Voice,
    home_place: SessionKey,
    agent: Option<AgentId>,
    /// Places where the visitor's agent answers.
    taken: HashSet<SessionKey>,
    said: mpsc::Sender<Said>,
}

/// A line in the inbox.
struct Said {
    place: SessionKey,
    message: MessageId,
}

impl Terminals {
    /// Terminals of a gateway that runs for itself.
    pub(super) fn new(stand_ins: StandIns) -> Self {
        Terminals {
            channel: Arc::new(LocalChannel::without_terminals()),
            stand_ins,
            is_chat: false,
            present: Mutex::default(),
        }
    }

    /// Terminals beside that of the chat which has the gateway.
    pub(super) fn beside(stand_ins: StandIns, channel: Arc<LocalChannel>) -> Self {
        Terminals {
            channel,
            stand_ins,
            is_chat: true,
            present: Mutex::default(),
        }
    }

    /// The channel that no platform of the gateway is: that of a chat is one of its platforms.
    pub(super) fn own_channel(&self) -> Option<Arc<dyn Channel>> {
        let channel: Arc<dyn Channel> = self.channel.clone();
        (!self.is_chat).then_some(channel)
    }

    /// Whether the gateway is that of a chat.
    pub(super) fn are_of_a_chat(&self) -> bool {
        self.is_chat
    }

    /// Whether the gateway is there for a single question, and leaves messages from before to others.
    pub(super) fn are_of_a_question(&self) -> bool {
        self.channel.is_for_a_question()
    }

    /// Tells a person of a line from before whose turn comes now.
    pub(super) async fn take_up(&self, line: &Inbound) {
        if is_talk(line) {
            self.channel.take_up(line).await;
        }
    }

    pub(super) fn are_there(&self) -> bool {
        !self.present().is_empty()
    }

    fn present(&self) -> MutexGuard<'_, HashMap<String, Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seats a visitor. A visitor who wants to be alone gets a place that no other has.
    fn seat(
        &self,
        visitor: Visitor,
        agent: Option<AgentId>,
        said: mpsc::Sender<Said>,
    ) -> Result<(SessionKey, Terminal), Refusal> {
        let mut present = self.present();
        // The `parlor ask` that has this gateway is no visitor, and has the first of these places.
        let has_host = |place: &SessionKey| {
            self.are_of_a_question() && matches!(place, SessionKey::Local { topic: None, .. })
        };
        let is_free = |place: &SessionKey| {
            let mut others = present.values();
            matches!(visitor.place, PlaceWish::This(_))
                || (!has_host(place) && others.all(|other| other.home_place != *place))
        };
        let choices = visitor.place.choices();
        let place = choices.and_then(|mut choices| choices.find(is_free));
        let place = place.ok_or_else(|| Refusal::failed(TOO_MANY))?;
        let SessionKey::Local { room, .. } = &place else {
            return Err(Refusal::wrong_use("a terminal talks in places of its own"));
        };
        let terminal = self.channel.open(Some(room.clone()), visitor.audience);
        let newcomer = Present {
            voice: terminal.voice.clone(),
            home_place: place.clone(),
            agent,
            taken: HashSet::new(),
            said,
        };
        present.insert(visitor.client, newcomer);
        Ok((place, terminal))
    }

    /// The place that the visitor's agent answers in from now on, if that is news.
    fn take_place(&self, client: &str, place: &SessionKey) -> bool {
        let mut present = self.present();
        let Some(visitor) = present.get_mut(client) else {
            return false;
        };
        match &visitor.agent {
            Some(agent) if visitor.taken.insert(place.clone()) => {
                self.stand_ins
                    .set(place.clone(), at_the_terminal::pin(agent.clone()));
                true
            }
            _ => false,
        }
    }

    fn leave(&self, client: &str) -> HashSet<SessionKey> {
        let left = self.present().remove(client);
        let taken = left.map(|visitor| visitor.taken).unwrap_or_default();
        taken.iter().for_each(|place| self.stand_ins.clear(place));
        taken
    }
}

/// Takes in lines until the gateway stops. Not counted among the platforms: a gateway without any of
/// them has nothing to do.
pub(super) async fn listen(channel: Arc<dyn Channel>, intake: Intake, stop: CancellationToken) {
    if let Err(error) = channel.listen(intake, stop).await {
        tracing::error!("terminals are not heard any more: {error}");
    }
}

/// Serves a visitor until the visitor leaves.
pub(super) async fn serve(
    state: &Arc<GatewayState>,
    visitor: Visitor,
    order: &Order,
) -> Result<(), Refusal> {
    let terminals = &state.terminals;
    let agent = match &visitor.agent {
        Some(word) => Some(known_agent(state, &visitor.place, word)?),
        None => None,
    };
    let (client, audience) = (visitor.client.clone(), visitor.audience);
    let (said, mut lines) = mpsc::channel(QUEUE);
    let (place, mut terminal) = terminals.seat(visitor, agent, said)?;
    let _leaving = Leaving {
        state,
        terminals,
        client: client.clone(),
    };
    let is_chat = terminals.is_chat;
    let seated = Scene::Seated {
        place: place.clone(),
        is_chat,
    };
    if !tell(order, seated).await {
        return Ok(());
    }
    if audience == Audience::Person {
        tell_of_lines_from_before(state, &place, order).await?;
    }
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut open = Open {
        state,
        lines: Vec::new(),
        count: 0,
        ends_with_visitor: audience == Audience::Question,
    };
    loop {
        tokio::select! {
            biased;
            Some(shown) = terminal.screen.recv() => {
                if !tell(order, Scene::Shown(shown)).await {
                    return Ok(());
                }
            }
            Some(said) = lines.recv() => {
                open.lines.push(said);
                open.count += 1;
            }
            _ = looks.tick(), if !open.lines.is_empty() => open.look(order, &mut terminal).await,
            () = state.hang_up.cancelled() => {
                // Everything that could be answered is answered.
                open.last_looks(order, &mut terminal).await;
                return Ok(());
            }
        }
    }
}

/// The lines of a visitor that are not answered yet.
struct Open<'a> {
    state: &'a Arc<GatewayState>,
    lines: Vec<Said>,
    /// All lines so far.
    count: u64,
    /// Nobody waits for the answers when the visitor is gone.
    ends_with_visitor: bool,
}

impl Open<'_> {
    /// Tells the visitor when all is answered. Lines that cannot be looked at now are looked at
    /// again.
    async fn look(&mut self, order: &Order, terminal: &mut Terminal) {
        let is_answered = are_answered(self.state, &self.lines).await;
        while let Ok(shown) = terminal.screen.try_recv() {
            tell(order, Scene::Shown(shown)).await;
        }
        if self.lines.is_empty() || !is_answered.unwrap_or(false) {
            return;
        }
        let lines = std::mem::take(&mut self.lines);
        let turns = self.turns(&lines).await;
        let rest = Scene::Rest {
            lines: self.count,
            turns,
        };
        tell(order, rest).await;
    }

    /// The lane of an answered line is free a moment after its answer is sent.
    async fn last_looks(&mut self, order: &Order, terminal: &mut Terminal) {
        for _ in 0..LAST_LOOKS {
            self.look(order, terminal).await;
            if self.lines.is_empty() {
                return;
            }
            tokio::time::sleep(LOOK_OFTEN).await;
        }
    }

    /// Turns that cannot be looked at now are asked for by the visitor.
    async fn turns(&self, lines: &[Said]) -> Vec<(MessageId, TurnReport)> {
        let mut turns = Vec::new();
        for line in lines {
            if let Ok(Some(turn)) = self.state.turn_of(&line.message).await {
                turns.push((line.message.clone(), turn));
            }
        }
        turns
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.ends_with_visitor || self.lines.is_empty() {
            return;
        }
        let lines: Vec<MessageId> = self.lines.drain(..).map(|line| line.message).collect();
        let state = self.state.clone();
        self.state.clients.spawn(async move {
            if let Err(error) = state.cancel(&lines).await {
                tracing::warn!("a question that nobody waits for was not cancelled: {error}");
            }
        });
    }
}

/// Tells a visitor of the lines of earlier visitors that are not answered yet.
async fn tell_of_lines_from_before(
    state: &GatewayState,
    here: &SessionKey,
    order: &Order,
) -> Result<(), Refusal> {
    let read = |connection: &Connection| inbox::waiting(connection, 0, i64::MAX, MOST_FROM_BEFORE);
    let waiting = state.services.db.read(read).await?;
    let lines = waiting.into_iter().filter_map(|row| row.inbound.ok());
    let channel = &state.terminals.channel;
    for line in lines.filter(|line| is_talk(line) && is_in_room(&line.origin.key, here)) {
        if channel.is_asked_here(&line.message) {
            continue;
        }
        let taken_up = Shown::TakenUp {
            place: line.origin.key,
            text: line.text,
        };
        tell(order, Scene::Shown(taken_up)).await;
    }
    Ok(())
}

/// Waiting messages that are looked at for a visitor.
const MOST_FROM_BEFORE: u32 = 500;

fn is_talk(line: &Inbound) -> bool {
    line.extras.internal.is_none() && commands::parse(&line.text) == Parsed::Talk
}

/// Whether a line was a question of `parlor ask` without a topic.
pub(super) fn is_question(line: &Inbound) -> bool {
    matches!(&line.origin.key, SessionKey::Local { room, .. } if room.as_str() == QUESTIONS)
}

/// False when nobody reads any more.
async fn tell(order: &Order, scene: Scene) -> bool {
    order.event(Event::Terminal(scene)).await.is_ok()
}

/// Frees the seat, and takes the visitor's agent back.
struct Leaving<'a> {
    state: &'a GatewayState,
    terminals: &'a Terminals,
    client: String,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        for place in self.terminals.leave(&self.client) {
            self.state.pins.changed(&place);
        }
    }
}

impl Gateway {
    /// Returns when a line is answered, and nothing waits to be sent to its place.
    pub(crate) async fn answered_line(&self, place: &SessionKey, line: &MessageId) {
        let lines = [Said {
            place: place.clone(),
            message: line.clone(),
        }];
        // A line that cannot be looked at now is looked at again.
        while !are_answered(&self.state, &lines).await.unwrap_or(false) {
            tokio::time::sleep(LOOK_OFTEN).await;
        }
    }
}

/// Whether the rows of these lines are closed, and nothing waits to be sent to their places.
async fn are_answered(state: &GatewayState, lines: &[Said]) -> Result<bool, StoreError> {
    let is_busy = |line: &Said| {
        let origin = Origin::new(line.place.clone(), local::person());
        state.services.sessions.depth(&origin) > 0
    };
    if lines.iter().any(is_busy) {
        return Ok(false);
    }
    let places: HashSet<SessionKey> = lines.iter().map(|line| line.place.clone()).collect();
    let ids: Vec<String> = lines.iter().map(|line| line.message.0.clone()).collect();
    let look = move |connection: &Connection| {
        if inbox::any_waits(connection, Platform::Local, &ids)? {
            return Ok(false);
        }
        let open = outbox::open_places(connection)?;
        Ok(open.into_iter().all(|(place, _)| !places.contains(&place)))
    };
    state.services.db.read(look).await
}

/// Carries out a request of a terminal.
pub(super) async fn answer(
    state: &GatewayState,
    request: FromTerminal,
) -> Result<ToTerminal, Refusal> {
    Ok(match request {
        FromTerminal::Say {
            client,
            place,
            message,
            text,
        } => say(state, &client, (place, message), text).await?,
        FromTerminal::Who { client, place } => {
            take_place(state, &client, &place);
            ToTerminal::Who(state.who_answers(&place).await?)
        }
        FromTerminal::Topics { place } => ToTerminal::Topics(state.topics(&place).await?),
        FromTerminal::Agents => ToTerminal::Agents(state.agent_ids()),
        FromTerminal::Turn { message } => ToTerminal::Turn(state.turn_of(&message).await?),
        FromTerminal::Cancel { message } => {
            state.cancel(&[message]).await?;
            ToTerminal::Cancelled
        }
    })
}

fn take_place(state: &GatewayState, client: &str, place: &SessionKey) {
    if state.terminals.take_place(client, place) {
        state.pins.changed(place);
    }
}

async fn say(
    state: &GatewayState,
    client: &str,
    (place, message): (SessionKey, MessageId),
    text: String,
) -> Result<ToTerminal, Refusal> {
    if !matches!(place, SessionKey::Local { .. }) {
        return Err(Refusal::wrong_use("a terminal talks in places of its own"));
    }
    take_place(state, client, &place);
    let present = {
        let present = state.terminals.present();
        let visitor = present.get(client);
        visitor.map(|visitor| (visitor.voice.clone(), visitor.said.clone()))
    };
    let Some((voice, said)) = present else {
        return Err(Refusal::failed("this terminal is not connected"));
    };
    if !voice.say(place.clone(), message.clone(), text).await {
        return Err(takes_no_more(state));
    }
    // A visitor who has left waits for no answer.
    drop(said.send(Said { place, message }).await);
    Ok(ToTerminal::Said)
}

/// A line that is not in the inbox, with the trouble of the store.
fn takes_no_more(state: &GatewayState) -> Refusal {
    let told = "the gateway takes no more messages";
    Refusal::failed(match state.services.db.trouble() {
        Some(trouble) => format!("{told}: {trouble}"),
        None => told.to_owned(),
    })
}

/// A person must not be answered by another agent than asked for.
fn known_agent(state: &GatewayState, place: &PlaceWish, word: &str) -> Result<AgentId, Refusal> {
    let snapshot = state.services.snapshots.current();
    let Some(agent) = snapshot.registry.find(word) else {
        let ids = snapshot
            .registry
            .all()
            .iter()
            .map(|agent| agent.id.as_str());
        return Err(Refusal::wrong_use(match nearest(word, ids.clone()) {
            Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
            None => format!(
                "no agent is called {word}. The agents are: {}",
                ids.collect::<Vec<_>>().join(", ")
            ),
        }));
    };
    let Some(place) = place.choices().and_then(|mut places| places.next()) else {
        return Err(Refusal::wrong_use("there is no such room"));
    };
    let (access, origin) = (&snapshot.config.access, Origin::new(place, local::person()));
    let visit = Visit {
        access,
        origin: &origin,
        standing: &Standing::of(access, &origin.person, false),
    };
    match snapshot.table.may_switch(&agent.id, visit) {
        Ok(_) => Ok(agent.id.clone()),
        Err(closed) => Err(Refusal::failed(format!(
            "{closed}, and you are not among them. Add \"owner\" to `who` under [agents.{}]",
            agent.id
        ))),
    }
}

const TOO_MANY: &str = "too many questions are asked at the same time; try again in a moment";
