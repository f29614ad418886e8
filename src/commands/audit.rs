//! `/audit`: the last changes that people have made, for owners and admins.

use chrono::Local;
use rusqlite::Connection;

use super::parse::AuditWish;
use super::texts::audit as texts;
use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::channels::Choice;
use crate::domain::UserError;
use crate::operations::names::Names;
use crate::records::audit::{self, Wanted};

/// Entries of a page.
const PAGE: u32 = 20;
/// The most entries of a reply.
const MOST: u32 = 100;

pub(super) async fn run(wish: AuditWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new(texts::NEEDS_ADMIN).into());
    }
    let (count, before) = match wish {
        AuditWish::Latest(count) => (count.unwrap_or(PAGE).clamp(1, MOST), None),
        AuditWish::Before(id) => (PAGE, Some(id)),
    };
    let place = &context.inbound.origin.key;
    // Others read along in a shared place, so they see its own entries only.
    let here = (!place.is_private()).then(|| place.to_string());
    let wanted = Wanted {
        place: here.clone(),
        before,
        ..Wanted::default()
    };
    // An entry beyond the wanted number tells whether older entries exist.
    let read = move |connection: &Connection| audit::latest(connection, &wanted, count + 1);
    let mut entries = context.services.db.read(read).await?;
    let has_more = entries.len() > count as usize;
    entries.truncate(count as usize);
    let older = entries.last().filter(|_| has_more).map(|last| Choice {
        label: texts::OLDER.to_owned(),
        command: format!("/audit before {}", last.id),
    });
    let names = Names::load(&context.services.db, Some(&context.snapshot.config)).await?;
    let told = texts::audit(&entries, here.is_some(), &Local, &names);
    let outcome = Outcome::say(told).offering(older.into_iter().collect());
    Ok(match wish {
        AuditWish::Before(_) => outcome.in_place(),
        AuditWish::Latest(_) => outcome,
    })
}
