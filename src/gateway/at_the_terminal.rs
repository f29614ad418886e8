//! The gateway's facts for the terminal: who answers in a topic, which topics there are, and what
//! became of a line.

use rusqlite::{Connection, Transaction};

use super::{Gateway, GatewayState};
use crate::access::Standing;
use crate::agents::Agent;
use crate::channels::local;
use crate::clock::now_ms;
use crate::domain::{AgentId, MessageId, Origin, Platform, SessionKey};
use crate::operations::terminal::{Topic, TurnReport, Who};
use crate::operations::work;
use crate::records::inbox;
use crate::records::turn_log::{self, AnsweredTurn};
use crate::routing::{Pin, Visit, places};
use crate::storage::StoreError;
use crate::turn::budget;

/// The pin of an agent that answers for as long as the terminal is there.
pub(super) fn pin(agent: AgentId) -> Pin {
    Pin {
        agent,
        once: false,
        set_by: local::person(),
        set_by_name: None,
        set_at: now_ms(),
        until: None,
    }
}

impl Gateway {
    /// Whether terminals of other processes are here.
    pub(crate) fn has_visitors(&self) -> bool {
        self.state.terminals.are_there()
    }

    /// Whether the gateway is there for a single question.
    pub(crate) fn is_for_a_question(&self) -> bool {
        self.state.terminals.are_of_a_question()
    }

    pub(crate) async fn who_answers(&self, place: &SessionKey) -> Result<Who, StoreError> {
        self.state.who_answers(place).await
    }

    pub(crate) fn agent_ids(&self) -> Vec<String> {
        self.state.agent_ids()
    }

    pub(crate) async fn topics(&self, here: &SessionKey) -> Result<Vec<Topic>, StoreError> {
        self.state.topics(here).await
    }

    pub(crate) async fn turn_of(&self, line: &MessageId) -> Result<Option<TurnReport>, StoreError> {
        self.state.turn_of(line).await
    }

    /// Cancels a line for good.
    pub(crate) async fn cancel(&self, line: &MessageId) -> Result<(), StoreError> {
        self.state.cancel(std::slice::from_ref(line)).await
    }
}

impl GatewayState {
    /// The agent that answers the person at the terminal in a place.
    pub(super) async fn who_answers(&self, place: &SessionKey) -> Result<Who, StoreError> {
        let snapshot = self.services.snapshots.current();
        let (access, origin) = (
            &snapshot.config.access,
            Origin::new(place.clone(), local::person()),
        );
        let visit = Visit {
            access,
            origin: &origin,
            standing: &Standing::of(access, &origin.person, false),
        };
        let resolved = self.router.resolve(&snapshot.table, visit).await?;
        let agent = snapshot.agent_of(&resolved.route);
        Ok(Who {
            id: agent.id.clone(),
            label: agent.label(),
            is_paused: self.services.sessions.pause_of(agent.uid).is_some(),
        })
    }

    /// Ids of all agents, in the order of the config.
    pub(super) fn agent_ids(&self) -> Vec<String> {
        let id = |agent: &std::sync::Arc<Agent>| agent.id.to_string();
        let snapshot = self.services.snapshots.current();
        snapshot.registry.all().iter().map(id).collect()
    }

    /// The main chat of a room of the terminal, and its topics: those with a binding in the order of
    /// the config, then those in which somebody has written, and the one where the person is.
    pub(super) async fn topics(&self, here: &SessionKey) -> Result<Vec<Topic>, StoreError> {
        let snapshot = self.services.snapshots.current();
        let bound = snapshot.config.bindings.iter();
        let mut keys: Vec<SessionKey> = main_chat(here).into_iter().collect();
        keys.extend(bound.filter_map(|binding| binding.pattern.value.parse().ok()));
        let used = self.services.db.read(used_topics).await?;
        keys.extend(used);
        // Nobody may have written yet in the topic where the person is.
        keys.push(here.clone());
        let mut topics: Vec<Topic> = Vec::new();
        for key in keys.iter().filter(|key| is_in_room(key, here)) {
            let name = topic_name(key);
            if topics.iter().all(|topic| topic.name != name) {
                let agent = self.who_answers(key).await?;
                topics.push(Topic { name, agent });
            }
        }
        Ok(topics)
    }

    /// The turn of a line, once it has ended. None for a command, and where nobody took the line.
    pub(super) async fn turn_of(&self, line: &MessageId) -> Result<Option<TurnReport>, StoreError> {
        let id = line.0.clone();
        let found = self
            .services
            .db
            .read(move |connection| turn_log::of_update(connection, Platform::Local, &id))
            .await?;
        Ok(found.map(|turn| self.report(turn)))
    }

    /// Closes lines that nobody waits for, and ends their turns. Lines that are answered already stay
    /// so.
    pub(super) async fn cancel(&self, lines: &[MessageId]) -> Result<(), StoreError> {
        let ids: Vec<String> = lines.iter().map(|line| line.0.clone()).collect();
        let write = move |tx: &Transaction<'_>| {
            let rows = inbox::of_updates(tx, Platform::Local, &ids)?;
            let rows: Vec<(i64, SessionKey)> = rows
                .into_iter()
                .filter_map(|(id, place)| Some((id, place.parse().ok()?)))
                .collect();
            for (id, place) in &rows {
                work::call_off(tx, place, &[*id], now_ms())?;
            }
            Ok(rows)
        };
        for (id, place) in self.services.db.write(write).await? {
            let origin = Origin::new(place, local::person());
            self.services.sessions.halt(&origin, &[id]);
        }
        Ok(())
    }

    fn report(&self, turn: AnsweredTurn) -> TurnReport {
        let snapshot = self.services.snapshots.current();
        let agent = turn.agent.parse().ok();
        let agent = agent.and_then(|uid| snapshot.registry.by_uid(uid));
        let price = turn
            .model
            .parse()
            .ok()
            .and_then(|model| snapshot.config.price(&model));
        TurnReport {
            agent: agent.map(|agent| agent.id.clone()),
            cost: price.map(|price| budget::cost(&price, turn.usage).0),
            model: turn.model,
            outcome: turn.outcome,
            is_answered: turn.is_answered,
            input_tokens: turn.usage.input_tokens,
            cached_tokens: turn.usage.cached_tokens,
            output_tokens: turn.usage.output_tokens,
            took_ms: turn.took_ms,
        }
    }
}

fn used_topics(connection: &Connection) -> rusqlite::Result<Vec<SessionKey>> {
    places::on(connection, Platform::Local)
}

fn main_chat(here: &SessionKey) -> Option<SessionKey> {
    match here {
        SessionKey::Local { room, .. } => Some(SessionKey::Local {
            room: room.clone(),
            topic: None,
        }),
        _ => None,
    }
}

pub(super) fn is_in_room(key: &SessionKey, here: &SessionKey) -> bool {
    matches!((key, here), (SessionKey::Local { room, .. }, SessionKey::Local { room: own, .. }) if room == own)
}

fn topic_name(key: &SessionKey) -> Option<String> {
    match key {
        SessionKey::Local {
            topic: Some(topic), ..
        } => Some(topic.to_string()),
        _ => None,
    }
}
