//! `/pair` and `/unpair`: an owner or admin sees who waits, lets a person in, and takes that back.

use super::parse::PairWish;
use super::{CommandError, Context, Effect, Outcome, first_minute};
use crate::access::Role;
use crate::access::people::{self, Acquaintance, Decided, Decider, Decision, Member, Waiting};
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
            let known = match guest_of(context, &code).await? {
                Guest::Waits(known) => known,
                Guest::Decided(told) => return Ok(*told),
            };
            let choices = first_minute::decisions(&code);
            Ok(Outcome::say(first_minute::shown(&known, &code)).offering(choices))
        }
        PairWish::LetIn(code) => decide(context, code, Decision::LetIn).await,
        PairWish::TurnAway(code) => decide(context, code, Decision::TurnedAway).await,
    }
}

async fn decide(
    context: &Context<'_>,
    code: String,
    decision: Decision,
) -> Result<Outcome, CommandError> {
    let known = match guest_of(context, &code).await? {
        Guest::Waits(known) => known,
        Guest::Decided(told) => return Ok(*told),
    };
    let reply = first_minute::decided(&Decided {
        known,
        code: code.clone(),
        decision,
        decider: Some(Decider {
            id: context.inbound.origin.person.to_string(),
            name: context.inbound.person_name.clone(),
        }),
        first_message: None,
    });
    Ok(Outcome::of(reply, Effect::Decide { code, decision }).in_place())
}

/// The guest with a code.
enum Guest {
    Waits(Acquaintance),
    /// Somebody else was faster, or nobody was fast enough.
    Decided(Box<Outcome>),
}

async fn guest_of(context: &Context<'_>, code: &str) -> Result<Guest, CommandError> {
    let code = code.to_owned();
    let read = move |connection: &rusqlite::Connection| {
        Ok((
            people::of_code(connection, &code, now_ms())?,
            people::decided(connection, &code)?,
        ))
    };
    match context.services.db.read(read).await? {
        (Some(known), _) => Ok(Guest::Waits(known)),
        (None, Some(decided)) => Ok(Guest::Decided(Box::new(
            Outcome::say(first_minute::decided(&decided)).in_place(),
        ))),
        (None, None) => Err(UserError::new(first_minute::NO_SUCH_CODE).into()),
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
    let name = known.name;
    Ok(Outcome::of(reply, Effect::Revoke { person, name }))
}

fn refuse_others(context: &Context<'_>) -> Result<(), UserError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new("Only an owner or admin can let people in."));
    }
    Ok(())
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
