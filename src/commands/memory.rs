//! `/memory`: shows the memories of the agent here. Has the shared parts of all three memory
//! commands too.

use super::texts::memory as texts;
use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::agents::{Memory, Reader};
use crate::domain::UserError;

/// Memories in a list.
const NEWEST: u32 = 5;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let memory = memory(context)?;
    let reader = reader(context);
    let stats = memory.stats(&reader).await?;
    let newest = memory.newest(&reader, NEWEST).await?;
    let label = memory.agent().label();
    let may_forget = reader.role() > Role::Guest || reader.is_private();
    Ok(Outcome::say(texts::overview(
        &label, &stats, &newest, may_forget,
    )))
}

/// The memory of this place's agent.
pub(super) fn memory(context: &Context<'_>) -> Result<Memory, UserError> {
    let registry = &context.snapshot.registry;
    let agent = registry
        .get(&context.route.agent)
        .unwrap_or_else(|| registry.default_agent());
    let memory = context.services.memories.of(agent);
    memory.ok_or_else(|| UserError::new(texts::memory_off(&agent.label())))
}

/// The person and place that memories are read and saved for.
pub(super) fn reader(context: &Context<'_>) -> Reader {
    let origin = &context.inbound.origin;
    let ids = context.snapshot.config.access.people.ids_of(&origin.person);
    Reader::new(&origin.person, ids, &origin.key, context.role)
}
