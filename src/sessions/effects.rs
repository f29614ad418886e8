//! Carries out what tools want done, in the transaction that writes down their result: so that it is done once, whenever the
//! process ends.

use std::sync::Arc;

use rusqlite::Transaction;

use super::children::{self, Child};
use super::inbox::Accepted;
use super::journal::{self, CallId};
use super::{Arrived, Inner, places, runs};
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::domain::{AgentId, SessionKey};
use crate::storage::{Durability, StoreError};
use crate::tools::{AskPeer, Effect, Kin, Outcome, SendMessage, Spawn, Then};

/// Runs that one turn may ask for.
const MOST_PER_TURN: usize = 8;
/// Runs of one agent that are under way at a time, over all places.
const MOST_PER_AGENT: usize = 16;

/// The turn on whose behalf something is done.
pub(super) struct Asker<'a> {
    pub(super) accepted: &'a Accepted,
    pub(super) agent: &'a Arc<Agent>,
    /// Model calls that the turn has left.
    pub(super) steps_left: u32,
}

/// What came of a call.
pub(super) enum Carried {
    /// It is written down.
    Done(Outcome),
    /// A run was begun whose end is the call's result.
    Waits { run: String },
}

/// Writes down what a call came to, and does what it wants done now. Fails only when the process stops.
pub(super) async fn carry_out(
    inner: &Arc<Inner>,
    asker: &Asker<'_>,
    call: CallId,
    mut outcome: Outcome,
) -> Result<Carried, StoreError> {
    let now = outcome.effects.extract_if(.., |effect| !matches!(effect, Effect::SendFile(_))).next();
    match now {
        None | Some(Effect::SendFile(_)) => done(inner, call, outcome).await,
        Some(Effect::Spawn(spawn)) => begin(inner, asker, call, Wish::from(spawn)).await,
        Some(Effect::AskPeer(ask)) => begin(inner, asker, call, Wish::from(ask)).await,
        Some(Effect::SendMessage(message)) => send(inner, asker, call, message).await,
    }
}

/// A run that somebody wants.
struct Wish {
    agent: AgentId,
    task: String,
    tools: Option<Vec<String>>,
    then: Then,
    kin: Kin,
}

impl From<Spawn> for Wish {
    fn from(Spawn { agent, task, tools, then }: Spawn) -> Self {
        Wish { agent, task, tools, then, kin: Kin::Child }
    }
}

impl From<AskPeer> for Wish {
    fn from(AskPeer { agent, text }: AskPeer) -> Self {
        Wish { agent, task: text, tools: None, then: Then::Wait, kin: Kin::Peer }
    }
}

pub(super) async fn done(inner: &Inner, call: CallId, outcome: Outcome) -> Result<Carried, StoreError> {
    write(inner, call, outcome, |_, _| Ok(())).await.map(|(outcome, ())| Carried::Done(outcome))
}

/// The call's result and what belongs to it are one transaction.
async fn write<T: Send + 'static>(
    inner: &Inner,
    call: CallId,
    outcome: Outcome,
    more: impl Fn(&Transaction<'_>, i64) -> rusqlite::Result<T> + Send + Sync + 'static,
) -> Result<(Outcome, T), StoreError> {
    let shared = Arc::new((outcome, more));
    let write = || {
        let shared = shared.clone();
        move |tx: &Transaction<'_>| {
            let (outcome, more) = shared.as_ref();
            journal::ran(tx, call, &outcome.text, &outcome.effects)?;
            more(tx, now_ms())
        }
    };
    // A power cut that takes it back makes the model hear that the call was interrupted.
    let written = inner.parts.db.write_patiently(&inner.stop, Durability::Kill, write).await?;
    Ok((shared.0.clone(), written))
}

async fn begin(inner: &Arc<Inner>, asker: &Asker<'_>, call: CallId, wish: Wish) -> Result<Carried, StoreError> {
    let prepared = prepare(inner, asker, call, wish).await.unwrap_or_else(|error| Err(not_read(&error)));
    let child = match prepared {
        Ok(child) => child,
        Err(refusal) => {
            tracing::info!(agent.id = %asker.agent.id, "no run was begun: {refusal}");
            return done(inner, call, Outcome::say(format!("Nothing was started: {refusal}"))).await;
        }
    };
    let (shared, by) = (Arc::new(child), asker.agent.id.clone());
    let accepted = match shared.then {
        Then::Wait => {
            let write = || {
                let (child, by) = (shared.clone(), by.clone());
                move |tx: &Transaction<'_>| runs::write(tx, &child, by.as_str(), now_ms())
            };
            inner.parts.db.write_patiently(&inner.stop, Durability::Kill, write).await?
        }
        Then::Announce | Then::Report => {
            let child = shared.clone();
            let outcome = Outcome::say(begun(shared.then));
            write(inner, call, outcome, move |tx, now| runs::write(tx, &child, by.as_str(), now)).await?.1
        }
    };
    if let Some(accepted) = accepted {
        tracing::info!(agent.id = %asker.agent.id, run = %shared.run, session = %shared.session, "a run was begun");
        runs::launch(inner, &shared, accepted, Arrived::Now);
    }
    Ok(match shared.then {
        Then::Wait => Carried::Waits { run: shared.run.clone() },
        then => Carried::Done(Outcome::say(begun(then))),
    })
}

async fn prepare(inner: &Inner, asker: &Asker<'_>, call: CallId, wish: Wish) -> Result<Result<Child, String>, StoreError> {
    let Asker { accepted, agent, steps_left } = asker;
    let Some(target) = inner.parts.registry.get(&wish.agent) else {
        return Ok(Err(format!("there is no agent `{}`.", wish.agent)));
    };
    let (place, from, to) = (accepted.inbound.origin.key.clone(), agent.uid, target.uid);
    let (known, before) = inner
        .parts
        .db
        .read(move |connection| {
            let before = children::peer_session(connection, &place, from, to)?;
            Ok((children::of_turn(connection, call.inbox_id)?.len(), before))
        })
        .await?;
    let under_way = inner.runs.iter().filter(|entry| entry.parent_agent == agent.uid).count();
    if known >= MOST_PER_TURN {
        return Ok(Err(format!(
            "a turn may start {MOST_PER_TURN}, and this one has. Do the rest yourself or in your next turn."
        )));
    }
    if under_way >= MOST_PER_AGENT {
        return Ok(Err(format!("{MOST_PER_AGENT} of yours are under way. Wait until some are done.")));
    }
    let run = Child::name_of(call);
    let own = SessionKey::Child { id: run.parse().expect("digits and hyphens are a name") };
    let session = before.filter(|_| wish.kin == Kin::Peer).unwrap_or(own);
    Ok(Ok(Child {
        run,
        kin: wish.kin,
        session,
        agent: target.uid,
        parent: accepted.inbound.origin.key.clone(),
        parent_inbox_id: call.inbox_id,
        parent_agent: agent.uid,
        person: accepted.inbound.origin.person.clone(),
        standing: accepted.standing,
        task: wish.task,
        tools: wish.tools,
        max_steps: *steps_left,
        then: wish.then,
        hop: 1,
        trace: format!("inbox-{}", call.inbox_id),
        started_at: now_ms(),
    }))
}

/// A store that fails for a while ends no turn.
fn not_read(error: &StoreError) -> String {
    tracing::error!("what a tool wants done was not done: {error}");
    "the gateway cannot look it up right now. Try again later.".into()
}

fn begun(then: Then) -> &'static str {
    match then {
        Then::Report => "It has begun. You will be woken when it is done, to tell the people here; go on or end your turn now.",
        _ => "It has begun. You will know what came of it in your next turn here.",
    }
}

async fn send(inner: &Arc<Inner>, asker: &Asker<'_>, call: CallId, message: SendMessage) -> Result<Carried, StoreError> {
    let letter = places::letter(inner, asker, &message).await;
    let letter = match letter.unwrap_or_else(|error| Err(format!("Nothing was sent: {}", not_read(&error)))) {
        Ok(letter) => Arc::new(letter),
        Err(told) => return done(inner, call, Outcome::say(told)).await,
    };
    let (outcome, written) = (Outcome::say(format!("Sent to {}.", letter.shown)), letter.clone());
    let (outcome, ()) = write(inner, call, outcome, move |tx, now| written.write(tx, now)).await?;
    letter.submit(inner);
    Ok(Carried::Done(outcome))
}
