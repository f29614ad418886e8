//! `/pair` and `/unpair`: an owner or admin sees who waits, lets a person in, and takes that back.

use super::parse::PairWish;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::access::people::{self, Member, Waiting};
use crate::channels::Choice;
use crate::clock::now_ms;
use crate::domain::{PersonId, UserError};

/// Members in the list.
const MOST_LISTED: u32 = 30;

pub(super) async fn run(wish: PairWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    match wish {
        PairWish::List => list(context).await,
        PairWish::Show(code) => {
            let known = waiting(context, &code).await?;
            let reply = format!(
                "{} (`{}`) has this code. Nobody is let in yet: `/pair {code} yes` does it.",
                known.name, known.person
            );
            let choice = Choice {
                label: "Let in".into(),
                command: format!("/pair {code} yes"),
            };
            Ok(Outcome::say(reply).offering(vec![choice]))
        }
        PairWish::Confirmed(code) => {
            let known = waiting(context, &code).await?;
            let reply = format!(
                "{} (`{}`) may now write to me. `/unpair {}` takes it back.",
                known.name, known.person, known.person
            );
            Ok(Outcome::of(reply, Effect::Approve { code }))
        }
    }
}

pub(super) async fn revoke(
    person: PersonId,
    context: &Context<'_>,
) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    let wanted = person.clone();
    let db = &context.services.db;
    let found = db
        .read(move |connection| people::member(connection, &wanted))
        .await?;
    let Some(known) = found else {
        return Err(UserError::new(format!(
            "`{person}` was not let in with a code. Owners and people with a role are in config.toml; `/pair` lists the others."
        ))
        .into());
    };
    let reply = format!(
        "{} (`{person}`) is a guest again. What was said stays; a new code lets the person in again.",
        known.name
    );
    Ok(Outcome::of(reply, Effect::Revoke(person)))
}

fn refuse_others(context: &Context<'_>) -> Result<(), UserError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new("Only an owner or admin can let people in."));
    }
    Ok(())
}

async fn waiting(context: &Context<'_>, code: &str) -> Result<people::Acquaintance, CommandError> {
    let code = code.to_owned();
    let found = context
        .services
        .db
        .read(move |connection| people::of_code(connection, &code, now_ms()))
        .await?;
    found.ok_or_else(|| UserError::new(NO_SUCH_CODE).into())
}

async fn list(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let now = now_ms();
    let read = move |connection: &rusqlite::Connection| {
        Ok((
            people::waiting(connection, now)?,
            people::members(connection, MOST_LISTED)?,
        ))
    };
    let (waiting, members) = context.services.db.read(read).await?;
    let choices = waiting.iter().map(|waiting| Choice {
        label: format!("Who is {}?", waiting.code),
        command: format!("/pair {}", waiting.code),
    });
    let choices = choices.collect();
    Ok(Outcome::say(listed(&waiting, &members, now)).offering(choices))
}

fn listed(waiting: &[Waiting], members: &[Member], now: i64) -> String {
    let codes = waiting.iter().map(|waiting| {
        let minutes = (waiting.until - now) / 60_000;
        format!(
            "- {} (`{}`): `/pair {}`, for {minutes} more minutes",
            waiting.name, waiting.person, waiting.code
        )
    });
    let members = members
        .iter()
        .map(|member| format!("- {} (`{}`)", member.name, member.person));
    let section = |heading: &str, lines: Vec<String>, none: &str| match lines.as_slice() {
        [] => none.to_owned(),
        lines => format!("{heading}\n{}", lines.join("\n")),
    };
    format!(
        "{}\n\n{}",
        section(
            "Waiting to be let in:",
            codes.collect(),
            "Nobody waits to be let in."
        ),
        section(
            "Let in, the latest first (`/unpair ID` takes it back):",
            members.collect(),
            "Nobody was let in with a code yet."
        )
    )
}

const NO_SUCH_CODE: &str = "No code like that is open. A code counts for one hour; the person gets a new one by writing to the bot again.";
