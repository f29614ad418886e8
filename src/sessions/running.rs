//! One message's turn, from the lane to the store: who answers, what with, and what is written down at the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rusqlite::Transaction;

use super::inbox::{self, Accepted, Closing};
use super::usage::{self, TurnRow};
use super::{Inner, transcript};
use crate::agents::{Agent, Identity};
use crate::clock::now_ms;
use crate::delivery::{Kind, outbox};
use crate::domain::{Destination, Inbound, SessionKey};
use crate::models::{ModelError, Usage};
use crate::routing::{self, Pin, Route, pins};
use crate::storage::StoreError;
use crate::turn::history::{self, Said, Speaker};
use crate::turn::{self, Finished, TurnError, TurnRequest, prompt};

/// The waits between tries to store an answer.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Answers the message. Whatever goes wrong is told in the place it came from.
pub(super) async fn run(inner: &Arc<Inner>, accepted: Accepted) {
    let place = accepted.inbound.origin.key.clone();
    let finished = AssertUnwindSafe(answer(inner, &accepted)).catch_unwind().await;
    let told = match finished {
        Ok(Ok(())) => return,
        Ok(Err(error)) => {
            // The row stays in the inbox: the store is what failed, and the next start takes it up again.
            tracing::error!(session = %place, "a turn could not be stored: {error}");
            return;
        }
        Err(_) => give_up(inner, &accepted).await,
    };
    if let Err(error) = told {
        tracing::error!(session = %place, "a failed turn could not be closed: {error}");
    }
}

async fn answer(inner: &Arc<Inner>, accepted: &Accepted) -> Result<(), StoreError> {
    let parts = &inner.parts;
    let inbound = &accepted.inbound;
    let pin = parts.pins.get(&inbound.origin.key).await?;
    let pin = pin.filter(|pin| parts.registry.get(&pin.agent).is_some());
    let route = routing::route(&parts.table, pin.as_ref(), &inbound.origin);
    let agent = parts.registry.get(&route.agent).unwrap_or_else(|| parts.registry.default_agent());
    let started_at = now_ms();
    tracing::info!(
        agent.id = %agent.id, session = %inbound.origin.key, route.rule = %route.rule, inbox.id = accepted.id, "answering as {}", agent.id
    );
    let request = request(inner, inbound, agent).await?;
    let progress = parts.delivery.progress(Destination::of(inbound), agent.label());
    let result = turn::run(&parts.models, request, progress.events()).await;
    progress.end().await;
    let ending = Ending::new(accepted, agent, &route, pin, started_at, result);
    ending.store(inner).await
}

async fn request(inner: &Arc<Inner>, inbound: &Inbound, agent: &Arc<Agent>) -> Result<TurnRequest, StoreError> {
    let parts = &inner.parts;
    let place = inbound.origin.key.clone();
    let named = place.is_shared();
    let history = parts.db.read(move |connection| transcript::history(connection, &place)).await?;
    let bootstrap = !parts.bootstrapped.contains(&agent.uid);
    let system = system_prompt(agent.clone(), bootstrap).await?;
    let current = Said { by: Speaker::Person(inbound.person_name.clone()), text: inbound.text.clone() };
    Ok(TurnRequest {
        model: agent.model.clone(),
        system,
        messages: history::for_model(&history, current, &agent.id, named),
        tools: inner.tools.clone(),
    })
}

/// The files are read anew for every turn, so that an edit counts from the next message on.
async fn system_prompt(agent: Arc<Agent>, bootstrap: bool) -> Result<String, StoreError> {
    let read = tokio::task::spawn_blocking(move || prompt::assemble(&agent, &Identity::load(&agent, bootstrap)));
    read.await.map_err(|error| StoreError::Failed(format!("reading identity files: {error}")))
}

/// Everything that is written when a turn is over, in one transaction.
struct Ending {
    inbox_id: i64,
    inbound: Inbound,
    agent: Arc<Agent>,
    pin: Option<Pin>,
    turn: TurnRow,
    /// What the agent said, if the turn came that far.
    said: Option<String>,
    /// What the person gets to read.
    reply: String,
    kind: Kind,
}

impl Ending {
    fn new(
        accepted: &Accepted,
        agent: &Arc<Agent>,
        route: &Route,
        pin: Option<Pin>,
        started_at: i64,
        result: Result<Finished, TurnError>,
    ) -> Self {
        let (said, reply, kind, outcome, steps, usage) = match result {
            Ok(Finished { text, steps, usage }) if !text.trim().is_empty() => {
                (Some(text.clone()), text, Kind::Final, "answered".to_owned(), steps, usage)
            }
            Ok(Finished { steps, usage, .. }) => {
                (None, SAID_NOTHING.to_owned(), Kind::Error, "said nothing".to_owned(), steps, usage)
            }
            Err(error) => {
                tracing::warn!(agent.id = %agent.id, session = %accepted.inbound.origin.key, "the turn failed: {error}");
                (None, apology(&error), Kind::Error, error.to_string(), 0, Usage::default())
            }
        };
        let turn = TurnRow {
            inbox_id: accepted.id,
            place: accepted.inbound.origin.key.clone(),
            agent: agent.uid,
            model: agent.model.to_string(),
            route: route.rule.to_string(),
            started_at,
            outcome,
            steps,
            usage,
        };
        Ending { inbox_id: accepted.id, inbound: accepted.inbound.clone(), agent: agent.clone(), pin, turn, said, reply, kind }
    }

    async fn store(self, inner: &Inner) -> Result<(), StoreError> {
        let parts = &inner.parts;
        let destination = Destination::of(&self.inbound);
        let speaker = self.agent.label();
        let rows = parts.delivery.draft(&destination, self.kind, self.said.as_ref().map(|_| speaker.as_str()), &self.reply);
        let (place, agent) = (self.inbound.origin.key.clone(), self.agent.uid);
        let (answered, once) = (self.said.is_some(), self.pin.as_ref().is_some_and(|pin| pin.once));
        let count = rows.len();
        let ending = Arc::new((self, rows));
        write_patiently(inner, move || {
            let ending = ending.clone();
            move |tx: &Transaction<'_>| ending.0.write(tx, &ending.1, now_ms())
        })
        .await?;
        if answered {
            parts.bootstrapped.insert(agent);
        }
        if once {
            parts.pins.changed(&place);
        }
        parts.delivery.submit(destination.place(), count);
        Ok(())
    }

    fn write(&self, tx: &Transaction<'_>, rows: &[outbox::Draft], now: i64) -> rusqlite::Result<()> {
        let place: &SessionKey = &self.inbound.origin.key;
        transcript::touch(tx, place, now)?;
        transcript::append_person(tx, &self.inbound, now)?;
        if let Some(said) = &self.said {
            transcript::append_agent(tx, place, self.agent.uid, said, now)?;
            crate::agents::roster::mark_bootstrapped(tx, self.agent.uid, now)?;
        }
        if self.pin.as_ref().is_some_and(|pin| pin.once) {
            pins::clear_once(tx, place)?;
        }
        let closing = if self.said.is_some() { Closing::Done } else { Closing::Failed };
        inbox::close(tx, self.inbox_id, closing, &self.turn.outcome, now)?;
        usage::record(tx, &self.turn, now)?;
        outbox::insert(tx, rows, Some(self.inbox_id), now)
    }
}

/// An answer that cost a model call is not thrown away because the disk is full for a while.
async fn write_patiently<W, F>(inner: &Inner, mut work: W) -> Result<(), StoreError>
where
    W: FnMut() -> F,
    F: FnOnce(&Transaction<'_>) -> rusqlite::Result<()> + Send + 'static,
{
    let mut backoff = FIRST_BACKOFF;
    loop {
        let Err(error) = inner.parts.db.write(work()).await else { return Ok(()) };
        tracing::error!("an answer waits to be stored: {error}");
        tokio::select! {
            () = tokio::time::sleep(backoff) => backoff = (backoff * 2).min(LONGEST_BACKOFF),
            () = inner.stop.cancelled() => return Err(error),
        }
    }
}

/// After a panic: nothing of the turn is kept but the fact.
async fn give_up(inner: &Inner, accepted: &Accepted) -> Result<(), StoreError> {
    let parts = &inner.parts;
    let reference = accepted.id;
    tracing::error!(session = %accepted.inbound.origin.key, inbox.id = reference, "a turn panicked");
    let destination = Destination::of(&accepted.inbound);
    let rows = parts.delivery.draft(&destination, Kind::Error, None, &panicked(reference));
    let (count, inbound) = (rows.len(), accepted.inbound.clone());
    let close = move |tx: &Transaction<'_>| {
        let now = now_ms();
        transcript::touch(tx, &inbound.origin.key, now)?;
        transcript::append_person(tx, &inbound, now)?;
        inbox::close(tx, reference, Closing::Failed, "panicked", now)?;
        outbox::insert(tx, &rows, Some(reference), now)
    };
    parts.db.write(close).await?;
    parts.delivery.submit(destination.place(), count);
    Ok(())
}

const SAID_NOTHING: &str = "I came to the end without anything to say. Please ask again in other words.";

fn panicked(reference: i64) -> String {
    format!("Something broke while I was working on this (ref {reference}). Your message is kept; please send it again.")
}

fn apology(error: &TurnError) -> String {
    match error {
        TurnError::Model(ModelError::RateLimited { retry_after: Some(delay) }) => {
            format!("My model provider asks for a pause of {} s. Please ask again after that.", delay.as_secs().max(1))
        }
        TurnError::Model(ModelError::RateLimited { retry_after: None } | ModelError::Overloaded) => {
            "My model provider is overloaded right now. Please ask again in a minute.".into()
        }
        TurnError::Model(ModelError::ContextTooLong) => {
            "This conversation has become longer than my model can read. /new starts a fresh one.".into()
        }
        TurnError::Model(ModelError::Refused(reason)) => {
            format!("My model provider refused: {reason}. The operator can see more in the log.")
        }
        TurnError::Model(ModelError::CutOff) => "My answer was cut off on the way. Please ask again.".into(),
        TurnError::Model(ModelError::Broken(_)) => {
            "I cannot reach my model right now. Please ask again later; the operator can see more in the log.".into()
        }
        TurnError::TooManySteps => {
            "I took too many steps without coming to an answer, so I stopped. A smaller question may help.".into()
        }
    }
}
