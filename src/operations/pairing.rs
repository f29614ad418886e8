//! People who wait to be let in, and the operator's answer.

use rusqlite::{Connection, Transaction};
use serde::Serialize;
use utoipa::ToSchema;

use super::named::{Moment, Named};
use super::{Operations, Refusal, RefusalKind};
use crate::access::people::{self, Decider, Decision};
use crate::clock::now_ms;
use crate::domain::PersonId;
use crate::records::audit::{self, Action, Actor, Change};

/// Somebody with a code.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Waiting {
    pub(crate) person: Named,
    pub(crate) code: String,
    pub(crate) until: Moment,
}

/// Somebody who was let in.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LetIn {
    pub(crate) person: Named,
    pub(crate) by: String,
    pub(crate) since: Moment,
}

/// The list of both.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Guestbook {
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) let_in: Vec<LetIn>,
}

pub(crate) async fn guestbook(operations: &Operations) -> Result<Guestbook, Refusal> {
    let read = |connection: &Connection| {
        Ok((
            people::waiting(connection, now_ms())?,
            people::members(connection, u32::MAX)?,
        ))
    };
    let (waiting, members) = operations.db.read(read).await?;
    let waiting = waiting.into_iter().map(|waiting| Waiting {
        person: Named::new(&waiting.person, Some(&waiting.name)),
        code: waiting.code,
        until: Moment(waiting.until),
    });
    let let_in = members.into_iter().map(|member| LetIn {
        person: Named::new(&member.person, Some(&member.name)),
        by: member.by,
        since: Moment(member.since),
    });
    Ok(Guestbook {
        waiting: waiting.collect(),
        let_in: let_in.collect(),
    })
}

/// Lets the person with this code in, or turns them away. None for a code that is not open.
pub(crate) async fn decide(
    operations: &Operations,
    actor: &Actor,
    code: String,
    decision: Decision,
) -> Result<Option<Named>, Refusal> {
    let by = actor.clone();
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        let grantor = by.grantor(now);
        let decider = Decider {
            name: grantor.name.unwrap_or_else(|| grantor.id.clone()),
            id: grantor.id,
        };
        let decided = people::decide(tx, &code, decision, &decider, now)?;
        if let Some(known) = decided.as_ref().filter(|_| decision.lets_in()) {
            let change = Change::new(Action::Pair).about(&known.person);
            audit::note(tx, &by, &change, now)?;
        }
        Ok(decided)
    };
    let decided = operations.db.write(write).await?;
    Ok(decided.map(|known| Named::new(&known.person, Some(&known.name))))
}

/// Makes somebody who was let in a guest again.
pub(crate) async fn revoke(
    operations: &Operations,
    actor: &Actor,
    person: PersonId,
) -> Result<Named, Refusal> {
    let (by, text) = (actor.clone(), person.to_string());
    let write = move |tx: &Transaction<'_>| {
        let revoked = people::revoke(tx, &person)?;
        if let Some(known) = &revoked {
            let change = Change::new(Action::Unpair).about(&known.person);
            audit::note(tx, &by, &change, now_ms())?;
        }
        Ok(revoked)
    };
    let revoked = operations.db.write(write).await?;
    let revoked = revoked.map(|known| Named::new(&known.person, Some(&known.name)));
    revoked.ok_or_else(|| Refusal {
        kind: RefusalKind::Conflict,
        ..Refusal::failed(format!(
            "{text} was not let in with a code; owners and people with a role are in config.toml"
        ))
    })
}
