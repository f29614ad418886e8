//! Acts on an agent that was paused, resumed, restarted or cleared, once the rows say so.

use super::GatewayState;
use crate::clock::now_ms;
use crate::domain::{AgentUid, Inbound};
use crate::records::agent_pauses::Pause;
use crate::records::audit::Actor;
use crate::tenants::Steering;

impl GatewayState {
    /// Call after the commit.
    pub(super) fn steered(&self, steering: Steering, agent: AgentUid, by: &Inbound) {
        let sessions = &self.services.sessions;
        match steering {
            Steering::Pause if sessions.pause_of(agent).is_some() => {}
            Steering::Pause => {
                let pause = Pause::by(&Actor::of(by), now_ms());
                sessions.pause_changed(agent, Some(pause));
            }
            Steering::Resume => sessions.pause_changed(agent, None),
            Steering::Restart => {
                let turns = sessions.begin_again(agent);
                tracing::info!(agent.uid = %agent, "restarted; {turns} turns begin again");
            }
            // The models chosen for the old conversations went with them.
            Steering::Reset => sessions.moved(),
        }
    }
}
