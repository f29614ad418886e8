//! `/forget`: shows memories, and deletes the confirmed memory.

use super::memory::{memory, reader};
use super::parse::ForgetWish;
use super::texts::memory as texts;
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
        return Err(UserError::new(texts::GUESTS_CANNOT_FORGET).into());
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
            let reply = texts::forgotten(&memory.agent().label(), &entry);
            let effect = Effect::Forget {
                agent: memory.agent().id.clone(),
                id,
                forgetting,
            };
            let outcome = Outcome::of(reply, effect);
            Ok(outcome.after_press(context, Vec::new))
        }
    }
}

async fn one(memory: &Memory, reader: &Reader, id: i64) -> Result<Entry, CommandError> {
    let label = memory.agent().label();
    match memory.own(reader, id).await? {
        Some(entry) if memory.may_forget(reader, &entry) => Ok(entry),
        Some(_) => Err(UserError::new(texts::OF_OTHERS).into()),
        None => Err(UserError::new(texts::no_such_number(&label, id)).into()),
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
    Err(UserError::new(match of_others {
        true => texts::OF_OTHERS.to_owned(),
        false => texts::nothing_like_that(&label, in_file),
    }))
}

fn shown(entries: &[Entry]) -> Outcome {
    let choices = entries.iter().map(|entry| Choice {
        label: format!("Forget {}", entry.id),
        command: format!("/forget {} yes", entry.id),
    });
    Outcome::say(texts::to_forget(entries)).offering(choices.collect())
}
