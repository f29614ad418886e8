//! `/forget`: shows memories, and deletes the confirmed memory.

use super::memory::{is_guest, item, memory};
use super::parse::ForgetWish;
use super::{CommandError, Context, Effect, Outcome};
use crate::agents::Memory;
use crate::agents::memory::Entry;
use crate::channels::Choice;
use crate::domain::UserError;

/// Memories to choose from.
const MOST_SHOWN: usize = 5;
/// Memories to look through: memories from files and of other agents are skipped, because this
/// command cannot delete them.
const MOST_FOUND: u32 = 50;

pub(super) async fn run(wish: ForgetWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    let memory = memory(context)?;
    if is_guest(context) {
        return Err(UserError::new("Only people I know can have something forgotten.").into());
    }
    match wish {
        ForgetWish::Find(text) => Ok(found(&memory, &memory.search(&text, MOST_FOUND).await?)?),
        ForgetWish::Show(id) => Ok(shown(&[one(&memory, id).await?])),
        ForgetWish::Confirmed(id) => {
            let entry = one(&memory, id).await?;
            let forgetting = memory.forgetting(std::slice::from_ref(&entry));
            let reply = format!("{} forgot this:\n{}", memory.agent().label(), item(&entry));
            Ok(Outcome::of(reply, Effect::Forget(forgetting)))
        }
    }
}

async fn one(memory: &Memory, id: i64) -> Result<Entry, CommandError> {
    let own = memory.own(id).await?;
    own.ok_or_else(|| {
        UserError::new(format!(
            "{} saved nothing with the number {id}.",
            memory.agent().label()
        ))
        .into()
    })
}

fn found(memory: &Memory, entries: &[Entry]) -> Result<Outcome, UserError> {
    let is_own = |entry: &&Entry| entry.owner == memory.agent().uid;
    let own: Vec<Entry> = entries
        .iter()
        .filter(is_own)
        .filter(|entry| entry.path.is_none())
        .take(MOST_SHOWN)
        .cloned()
        .collect();
    if !own.is_empty() {
        return Ok(shown(&own));
    }
    let label = memory.agent().label();
    let in_file = entries
        .iter()
        .filter(is_own)
        .find_map(|entry| entry.path.as_deref());
    Err(UserError::new(match in_file {
        Some(path) => format!(
            "{label} saved nothing like that, but {path} has it. Ask the agent to change its file."
        ),
        None => format!("{label} saved nothing like that."),
    }))
}

fn shown(entries: &[Entry]) -> Outcome {
    let list = entries.iter().map(item).collect::<Vec<_>>().join("\n");
    let choices = entries.iter().map(|entry| Choice {
        label: format!("Forget {}", entry.id),
        command: format!("/forget {} yes", entry.id),
    });
    let first = entries.first().map_or(0, |entry| entry.id);
    Outcome::say(format!(
        "{list}\n\nNothing is forgotten yet. `/forget {first} yes` does it."
    ))
    .offering(choices.collect())
}
