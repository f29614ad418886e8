//! `/forget`: shows memories, and deletes the confirmed memory.

use super::memory::{item, memory, reader};
use super::parse::ForgetWish;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::agents::memory::Entry;
use crate::agents::{Memory, Reader};
use crate::channels::Choice;
use crate::domain::UserError;

/// Memories to choose from.
const MOST_SHOWN: usize = 5;
/// Memories to look through: memories from files and of other agents are skipped, because this
/// command cannot delete them.
const MOST_FOUND: u32 = 50;

pub(super) async fn run(wish: ForgetWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    let (memory, reader) = (memory(context)?, reader(context));
    if reader.role() == Role::Guest && !reader.is_private() {
        return Err(UserError::new("Only people I know can have something forgotten here.").into());
    }
    match wish {
        ForgetWish::Find(text) => {
            let entries = memory.search(&reader, &text, MOST_FOUND).await?;
            Ok(found(&memory, &reader, &entries)?)
        }
        ForgetWish::Show(id) => Ok(shown(&[one(&memory, &reader, id).await?])),
        ForgetWish::Confirmed(id) => {
            let entry = one(&memory, &reader, id).await?;
            let forgetting = memory.forgetting(&reader, std::slice::from_ref(&entry));
            let reply = format!("{} forgot this:\n{}", memory.agent().label(), item(&entry));
            Ok(Outcome::of(reply, Effect::Forget(forgetting)))
        }
    }
}

async fn one(memory: &Memory, reader: &Reader, id: i64) -> Result<Entry, CommandError> {
    let label = memory.agent().label();
    match memory.own(reader, id).await? {
        Some(entry) if memory.may_forget(reader, &entry) => Ok(entry),
        Some(_) => Err(UserError::new(OF_OTHERS).into()),
        None => Err(UserError::new(format!("{label} saved nothing with the number {id}.")).into()),
    }
}

fn found(memory: &Memory, reader: &Reader, entries: &[Entry]) -> Result<Outcome, UserError> {
    let is_own = |entry: &&Entry| entry.owner == memory.agent().uid;
    let own: Vec<Entry> = entries
        .iter()
        .filter(|entry| memory.may_forget(reader, entry))
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
    let of_others = entries
        .iter()
        .filter(is_own)
        .any(|entry| entry.path.is_none());
    Err(UserError::new(match in_file {
        _ if of_others => OF_OTHERS.to_owned(),
        Some(path) => format!(
            "{label} saved nothing like that, but {path} has it. Ask the agent to change its file."
        ),
        None => format!("{label} saved nothing like that."),
    }))
}

/// The answer about memories that the person sees but did not have saved.
const OF_OTHERS: &str = "Somebody else had that remembered. An owner can have it forgotten.";

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
