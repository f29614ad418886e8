//! `/pair` and `/unpair`: an owner or admin sees waiting guests, lets a person in, and undoes this.

use super::parse::PairWish;
use super::texts::people as texts;
use super::{CommandError, Context, Effect, Outcome, first_minute};
use crate::access::Role;
use crate::access::people::{self, Acquaintance, Decided, Decider, Decision, Member, Waiting};
use crate::channels::Choice;
use crate::clock::now_ms;
use crate::domain::{PersonId, UserError};
use crate::operations::known_people::{self, Looking};

/// Members in the list.
const MOST_LISTED: u32 = 30;

pub(super) async fn run(wish: PairWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    match wish {
        PairWish::List => list(context).await,
        PairWish::Show(code) => {
            only_in_private(context)?;
            let known = match guest_of(context, &code).await? {
                Guest::Waits(known) => known,
                Guest::Decided(told) => return Ok(*told),
            };
            let choices = first_minute::decisions(&code);
            let shown = Outcome::say(first_minute::shown(&known, &code)).offering(choices);
            Ok(shown.about_guest(code.to_uppercase()))
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
    /// Another admin was faster, or the code expired.
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

pub(super) async fn revoke(who: String, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new("Only an owner or admin can put people out.").into());
    }
    let person = meant(who, context).await?;
    let wanted = person.clone();
    let db = &context.services.db;
    let config = context.snapshot.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        let member = people::member(connection, &wanted)?;
        let left = known_people::without_code(connection, &config.access, &wanted, now_ms())?;
        Ok((member, left))
    };
    let (member, left) = db.read(read).await?;
    match member {
        None => Err(UserError::new(texts::not_let_in(&left)).into()),
        Some(Acquaintance { name, .. }) => {
            let reply = texts::put_out(&left);
            Ok(Outcome::of(reply, Effect::Revoke { person, name }))
        }
    }
}

/// The id of a person who is named by an id, or by the name that config.toml gives them.
async fn meant(who: String, context: &Context<'_>) -> Result<PersonId, CommandError> {
    if let Ok(id) = who.parse() {
        return Ok(id);
    }
    // The answer to a name may tell an id.
    only_in_private(context)?;
    let config = context.snapshot.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        let looking = Looking::ToChange;
        known_people::find(connection, &config.access, &who, looking, now_ms())
    };
    let known = context.services.db.read(read).await??;
    Ok(known.main().clone())
}

/// Codes and ids are private.
fn only_in_private(context: &Context<'_>) -> Result<(), UserError> {
    match context.inbound.origin.key.is_private() {
        true => Ok(()),
        false => Err(UserError::new(texts::IN_PRIVATE)),
    }
}

fn refuse_others(context: &Context<'_>) -> Result<(), UserError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new("Only an owner or admin can let people in."));
    }
    Ok(())
}

async fn list(context: &Context<'_>) -> Result<Outcome, CommandError> {
    only_in_private(context)?;
    let now = now_ms();
    let read = move |connection: &rusqlite::Connection| {
        Ok((
            people::waiting(connection, now)?,
            people::members(connection, MOST_LISTED)?,
            people::turned_away(connection, now)?,
        ))
    };
    let (waiting, members, turned_away) = context.services.db.read(read).await?;
    let choices = waiting.iter().map(|waiting| Choice {
        label: format!("Who is {}?", waiting.code),
        command: format!("/pair {}", waiting.code),
    });
    let choices = choices.collect();
    Ok(Outcome::say(listed(&waiting, &members, &turned_away, now)).offering(choices))
}

fn listed(
    waiting: &[Waiting],
    members: &[Member],
    turned_away: &[Acquaintance],
    now: i64,
) -> String {
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
    let turned_away = turned_away
        .iter()
        .map(|known| format!("- {} (`{}`)", known.name, known.person));
    let turned_away: Vec<String> = turned_away.collect();
    let turned_away = match turned_away.as_slice() {
        [] => String::new(),
        people => format!(
            "\n\nTurned away today (an owner's `/people role ID member` lets them in all the same):\n{}",
            people.join("\n")
        ),
    };
    format!(
        "{}\n\n{}{turned_away}",
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
