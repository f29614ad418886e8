//! A place is given to an agent from outside the chat: by a pin, or by a line in config.toml. What
//! stood there before comes back, so that it can be undone.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Operations, Refusal, Request, bindings};
use crate::domain::SessionKey;
use crate::records::audit::Actor;
use crate::routing::pins;

/// Where the agent of a place is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// As `/agent` does.
    Pin,
    /// As `/bind` does, in config.toml.
    Binding,
}

impl Operations {
    /// Gives a place to an agent, or back to the rules. Returns the agent that was written there
    /// before in the same way.
    pub(crate) async fn give_place(
        &self,
        actor: &Actor,
        place: SessionKey,
        agent: Option<&str>,
        way: Way,
    ) -> Result<Option<String>, Refusal> {
        match way {
            Way::Pin => self.pin_place(actor, place, agent).await,
            Way::Binding => self.bind_place(actor, &place, agent).await,
        }
    }

    async fn pin_place(
        &self,
        actor: &Actor,
        place: SessionKey,
        agent: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        let key = place.clone();
        let read = move |connection: &Connection| pins::from_chat(connection, &key);
        let before = self.db.read(read).await?.pin;
        let before = before.map(|pin| pin.agent.to_string());
        let request = match agent {
            Some(agent) => Request::Pin {
                place,
                agent: agent.to_owned(),
            },
            None => Request::Unpin { place },
        };
        self.run(actor, request).await?;
        Ok(before)
    }

    async fn bind_place(
        &self,
        actor: &Actor,
        place: &SessionKey,
        agent: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        let binding = match agent {
            Some(agent) => Some(bindings::bind(self, actor, place, agent).await?),
            None => bindings::unbind(self, actor, place).await?,
        };
        Ok(binding.and_then(|binding| match binding.changed {
            true => binding.before,
            false => binding.agent,
        }))
    }
}
