//! Acts on an agent that was paused, resumed, restarted or cleared from a chat, once the rows say so.

use super::GatewayState;
use crate::domain::{AgentUid, Inbound};
use crate::operations;
use crate::records::audit::Actor;
use crate::tenants::Steering;

impl GatewayState {
    /// Call after the commit.
    pub(super) fn steered(&self, steering: Steering, agent: AgentUid, by: &Inbound) {
        operations::take_effect(&self.services.sessions, steering, agent, &Actor::of(by));
    }
}
