//! What only a running gateway knows about a place: its connection, its models, and the pace of
//! people. For verbs that run beside the gateway.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::house::person_of;
use super::{Operations, Refusal};
use crate::access::Role;
use crate::answering::{Faltering, Obstacle};
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::domain::{AgentId, PersonId, SessionKey};
use crate::storage::StoreError;
use crate::turn::budget::Over;

/// A person in a place, and the agent that would answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) place: SessionKey,
    /// None for anybody with the role.
    pub(crate) person: Option<PersonId>,
    /// With the agent.
    pub(crate) role: Role,
    pub(crate) agent: AgentId,
    /// The agent's models, the first one first.
    pub(crate) lineup: Vec<ModelRef>,
    pub(crate) needs_mention: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Present {
    pub(crate) over: Option<Over>,
    pub(crate) faltering: Option<Faltering>,
    pub(crate) obstacles: Vec<Obstacle>,
}

/// None where no gateway runs.
pub(super) async fn look(
    operations: &Operations,
    asked: &Asked,
) -> Result<Option<Present>, Refusal> {
    let Some(live) = &operations.live else {
        return Ok(None);
    };
    let snapshot = live.snapshots.current();
    let person = asked.person.clone();
    let person = person.unwrap_or_else(|| person_of(&asked.place));
    let over = match snapshot.registry.get(&asked.agent) {
        Some(agent) => {
            let over = live
                .sessions
                .over_now(&snapshot, agent, &person, asked.role);
            over.await?
        }
        None => None,
    };
    Ok(Some(Present {
        over,
        faltering: Faltering::now(&snapshot.models, &asked.lineup),
        obstacles: operations.obstacles(&asked.place, &person, asked.needs_mention),
    }))
}

impl Operations {
    /// What keeps answers from a place, as far as only this process knows.
    fn obstacles(
        &self,
        place: &SessionKey,
        person: &PersonId,
        needs_mention: bool,
    ) -> Vec<Obstacle> {
        let Some(live) = &self.live else {
            return Vec::new();
        };
        let mut found = Obstacle::live(&live.delivery, place, needs_mention);
        let trouble = self.db.trouble();
        found.extend(trouble.map(|trouble| Obstacle::NotStored {
            reason: trouble.to_string(),
        }));
        let wait = (live.wait_of)(person).map(|wait| i64::try_from(wait.as_millis()));
        found.extend(wait.map(|wait| Obstacle::TooFast {
            until: now_ms().saturating_add(wait.unwrap_or(0)),
        }));
        found
    }

    /// Everything that keeps answers from a place.
    pub(crate) async fn all_obstacles(
        &self,
        place: &SessionKey,
        person: &PersonId,
        needs_mention: bool,
    ) -> Result<Vec<Obstacle>, StoreError> {
        let mut found = self.obstacles(place, person, needs_mention);
        let place = place.clone();
        let read = move |connection: &Connection| Obstacle::stored(connection, &place);
        found.extend(self.db.read(read).await?);
        Ok(found)
    }
}
