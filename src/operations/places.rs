//! Places: given to an agent, given back to the config, begun anew.

use std::sync::Arc;

use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};

use super::agents::find_agent;
use super::{Operations, Refusal, opening};
use crate::access::people;
use crate::answering::{Question, who_answers};
use crate::channels::local;
use crate::clock::now_ms;
use crate::domain::{AgentId, AgentUid, Origin, SessionKey};
use crate::home::Snapshot;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::{approvals, model_overrides, transcript};
use crate::routing::{FromChat, Opened, Pin, Visit, openings, pins, places};

/// A place after a change of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) place: SessionKey,
    pub(crate) before: AgentId,
    /// The agent that answers now.
    pub(crate) agent: AgentId,
    /// False if all was so already.
    pub(crate) is_new: bool,
    /// The place was opened with it.
    pub(crate) opened: bool,
}

/// Gives a place to an agent, as `/agent` does, and opens the place if it is closed.
pub(super) async fn pin(
    operations: &Operations,
    actor: &Actor,
    place: SessionKey,
    word: &str,
) -> Result<Given, Refusal> {
    let snapshot = operations.snapshot().await?;
    let agent = find_agent(&snapshot.registry, word)?;
    if opening::is_of_members(&snapshot.config, &place) {
        return Err(of_members(&place, &agent.id));
    }
    let now = Standing::of(operations, &snapshot, &place).await?;
    snapshot
        .table
        .may_switch(&agent.id, now.visit(&snapshot))
        .map_err(|closed| {
            Refusal::failed(format!("{closed}, and not all who can write there are")).hint(format!(
                "`who` under [agents.{}] opens it; so does a binding of the place",
                agent.id
            ))
        })?;
    let is_pinned = now.from_chat.pin.as_ref();
    let is_pinned = is_pinned.is_some_and(|pin| !pin.once && pin.agent == agent.id);
    let given = Given {
        place: place.clone(),
        before: now.agent.clone(),
        agent: agent.id.clone(),
        is_new: !is_pinned || !now.is_open,
        opened: !now.is_open,
    };
    if !given.is_new {
        return Ok(given);
    }
    let pin = Pin {
        agent: agent.id.clone(),
        once: false,
        set_by: local::person(),
        set_by_name: name_of(actor),
        set_at: now_ms(),
        until: None,
    };
    let opens = given.opened.then(|| Opened {
        by: local::person(),
        by_name: name_of(actor),
        at: now_ms(),
    });
    let (by, written, uid) = (actor.clone(), given.clone(), agent.uid);
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        give(tx, &written.place, (uid, &pin), opens.as_ref(), now)?;
        note_switch(tx, &by, &written, now)
    };
    operations.db.write(write).await?;
    operations.pin_changed(&place);
    Ok(given)
}

fn of_members(group: &SessionKey, agent: &AgentId) -> Refusal {
    let told = format!(
        "each person has a conversation of their own in {group} (group_sessions = \"per-user\"), so a pin of the group reaches nobody"
    );
    let ways = opening::bound(group, agent);
    Refusal::failed(told).hint(format!("{ways} gives it to {agent} for everybody"))
}

/// What the people of a place read about the operator.
fn name_of(actor: &Actor) -> Option<String> {
    match actor {
        Actor::Cli { login } => Some(format!("{login} at the command line")),
        Actor::Token { name } => Some(format!("the token {name}")),
        Actor::Dashboard { name } => Some(format!("{name} at the dashboard")),
        Actor::Person { name, .. } => Some(name.clone()),
        Actor::Config | Actor::Gateway => None,
    }
}

/// Takes the pin of a place back, so that the config decides. The place stays open.
pub(super) async fn unpin(
    operations: &Operations,
    actor: &Actor,
    place: SessionKey,
) -> Result<Given, Refusal> {
    let snapshot = operations.snapshot().await?;
    let now = Standing::of(operations, &snapshot, &place).await?;
    let then = FromChat {
        pin: None,
        opened: now.from_chat.opened.clone(),
        delivery_off: now.from_chat.delivery_off.clone(),
    };
    let answer = who_answers(Question::said_to_the_bot(
        &snapshot.table,
        now.visit(&snapshot),
        then,
    ));
    let given = Given {
        place: place.clone(),
        before: now.agent.clone(),
        agent: answer.agent().clone(),
        is_new: now.from_chat.pin.is_some(),
        opened: false,
    };
    if !given.is_new {
        return Ok(given);
    }
    let (by, written) = (actor.clone(), given.clone());
    let write = move |tx: &Transaction<'_>| {
        pins::clear(tx, &written.place)?;
        note_switch(tx, &by, &written, now_ms())
    };
    operations.db.write(write).await?;
    operations.pin_changed(&place);
    Ok(given)
}

/// Begins a new conversation in a place. Earlier messages stay in the store.
pub(super) async fn start_anew(
    operations: &Operations,
    actor: &Actor,
    place: &SessionKey,
) -> Result<(), Refusal> {
    let key = place.clone();
    let known = operations
        .db
        .read(move |connection| places::id(connection, &key));
    if known.await?.is_none() {
        return Err(Refusal::wrong_use(format!(
            "nobody has written in {place} yet, so there is nothing to begin anew"
        )));
    }
    let (by, key) = (actor.clone(), place.clone());
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        begin_anew(tx, &key, now)?;
        audit::note(tx, &by, &Change::new(Action::New).at(&key), now)
    };
    operations.db.write(write).await?;
    if let Some(live) = &operations.live {
        live.sessions.model_changed(place);
    }
    Ok(())
}

/// Writes a pin, and opens the place.
pub(crate) fn give(
    tx: &Transaction<'_>,
    place: &SessionKey,
    (agent, pin): (AgentUid, &Pin),
    opens: Option<&Opened>,
    now: i64,
) -> rusqlite::Result<()> {
    pins::set(tx, place, agent, pin, now)?;
    opens.map_or(Ok(()), |opened| openings::set(tx, place, opened))
}

/// A model chosen for the conversation goes with the conversation.
pub(crate) fn begin_anew(
    tx: &Transaction<'_>,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<()> {
    model_overrides::clear(tx, place)?;
    approvals::cancel_in(tx, place, now)?;
    transcript::start_anew(tx, place, now)
}

fn note_switch(tx: &Transaction<'_>, by: &Actor, given: &Given, now: i64) -> rusqlite::Result<()> {
    let Given {
        place,
        before,
        agent,
        opened,
        ..
    } = given;
    if *opened {
        audit::note(tx, by, &Change::new(Action::Open).at(place), now)?;
    }
    let change = Change::new(Action::Switch).at(place).of(agent);
    audit::note(tx, by, &change.from(before).to(agent), now)?;
    if before == agent {
        return Ok(());
    }
    let text = format!("from {before} to {agent}");
    transcript::append_mark(tx, place, None, &text, now)
}

/// Who answers in a place, for the person whose place it is, else for the operator.
struct Standing {
    origin: Origin,
    standing: crate::access::Standing,
    from_chat: FromChat,
    agent: AgentId,
    is_open: bool,
}

impl Standing {
    async fn of(
        operations: &Operations,
        snapshot: &Arc<Snapshot>,
        place: &SessionKey,
    ) -> Result<Self, Refusal> {
        let person = place.only_person().unwrap_or_else(local::person);
        let origin = Origin::new(place.clone(), person);
        let (access, asked) = (snapshot.config.clone(), origin.clone());
        let read = move |connection: &Connection| {
            Ok((
                people::standing(connection, &access.access, &asked.person)?,
                pins::from_chat(connection, &asked.key)?,
            ))
        };
        let (standing, from_chat) = operations.db.read(read).await?;
        let visit = Visit {
            access: &snapshot.config.access,
            origin: &origin,
            standing: &standing,
        };
        let question = Question::said_to_the_bot(&snapshot.table, visit, from_chat.clone());
        let answer = who_answers(question);
        let (agent, is_open) = (answer.agent().clone(), answer.is_open || place.is_private());
        Ok(Standing {
            origin,
            standing,
            from_chat,
            agent,
            is_open,
        })
    }

    fn visit<'a>(&'a self, snapshot: &'a Snapshot) -> Visit<'a> {
        Visit {
            access: &snapshot.config.access,
            origin: &self.origin,
            standing: &self.standing,
        }
    }
}
