//! `/remember`: adds a memory to the agent here.

use super::memory::{memory, reader};
use super::texts::memory as texts;
use super::{CommandError, Context, Effect, Outcome};
use crate::agents::memory::NotSaved;
use crate::config::Visibility;
use crate::domain::UserError;

pub(super) async fn run(
    text: &str,
    visibility: Option<Visibility>,
    context: &Context<'_>,
) -> Result<Outcome, CommandError> {
    let (memory, reader) = (memory(context)?, reader(context));
    let saving = memory.saving(&reader, text, visibility).map_err(told)?;
    memory.room_for(&saving).await?.map_err(told)?;
    let reply = texts::saved(&memory.agent().label(), saving.visibility());
    Ok(Outcome::of(reply, Effect::Remember(saving)))
}

fn told(not_saved: NotSaved) -> UserError {
    UserError::new(texts::not_saved(&not_saved))
}
