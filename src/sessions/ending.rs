//! What is written when a turn is over, in one transaction: transcript, turn, closed inbox row, outbox rows.

use std::sync::Arc;

use rusqlite::Transaction;

use super::inbox::{self, Accepted, Closing};
use super::transcript::{self, Conversation};
use super::usage::{self, TurnRow};
use super::{Inner, Parts, lane};
use crate::agents::{Agent, roster};
use crate::channels::{Outcome, Question, Text};
use crate::clock::now_ms;
use crate::delivery::{Kind, outbox};
use crate::domain::Destination;
use crate::models::{ModelError, Usage};
use crate::routing::{Route, pins};
use crate::storage::{Durability, StoreError};
use crate::tools::Effect;
use crate::turn::{Finished, TurnError};

/// A turn that was begun: what answers what, and why.
pub(super) struct Begun {
    pub(super) accepted: Accepted,
    pub(super) agent: Arc<Agent>,
    pub(super) route: Route,
    /// Chosen by a pin for this one message.
    pub(super) used_once: bool,
    pub(super) started_at: i64,
}

/// How it came out.
struct Ending {
    /// What the agent said, if it came that far.
    said: Option<String>,
    /// What the person gets to read.
    reply: String,
    outcome: String,
    steps: u32,
    usage: Usage,
    effects: Vec<Effect>,
}

/// Writes the end of the turn and sends what there is to send.
pub(super) async fn store(
    inner: &Inner,
    mut begun: Begun,
    conversation: Conversation,
    result: Result<Finished, TurnError>,
) -> Result<Outcome, StoreError> {
    if let Err(error) = &result {
        tracing::warn!(agent.id = %begun.agent.id, session = %begun.accepted.inbound.origin.key, "the turn failed: {error}");
    }
    let parts = &inner.parts;
    let ending = Ending::of(result);
    // The group may have become another one while the agent was thinking.
    parts.aliases.follow(&mut begun.accepted.inbound.origin);
    let destination = Destination::of(&begun.accepted.inbound);
    let others_wrote = others_wrote(inner, &begun.accepted).await;
    let rows = Rows {
        answer: draft(parts, &begun, &ending, &destination, others_wrote),
        effects: draft_effects(parts, &ending, &destination),
    };
    let (agent, answered, used_once) = (begun.agent.uid, ending.said.is_some(), begun.used_once);
    let all = Arc::new((begun, ending, rows));
    let write = move || {
        let all = all.clone();
        move |tx: &Transaction<'_>| write(tx, &all.0, conversation, &all.1, &all.2, now_ms())
    };
    let count = parts.db.write_patiently(&inner.stop, Durability::PowerCut, write).await?;
    if answered {
        parts.bootstrapped.insert(agent);
    }
    if used_once {
        parts.pins.changed(destination.place());
    }
    parts.delivery.submit(destination.place(), count);
    Ok(if answered { Outcome::Answered } else { Outcome::Failed })
}

fn draft(parts: &Parts, begun: &Begun, ending: &Ending, to: &Destination, others_wrote: bool) -> Vec<outbox::Draft> {
    let label = begun.agent.label();
    let question = Question { message: &begun.accepted.inbound.message, others_wrote };
    let text = Text { answers: Some(question), ..Text::plain(&ending.reply) };
    match ending.said {
        Some(_) => parts.delivery.draft(to, Kind::Final, &Text { speaker: Some(&label), ..text }),
        None => parts.delivery.draft(to, Kind::Error, &text),
    }
}

/// What is sent: the answer, then what tools wanted sent.
struct Rows {
    answer: Vec<outbox::Draft>,
    effects: Vec<outbox::Draft>,
}

fn draft_effects(parts: &Parts, ending: &Ending, to: &Destination) -> Vec<outbox::Draft> {
    ending.effects.iter().flat_map(|Effect::SendFile(file)| parts.delivery.draft_file(to, file)).collect()
}

/// Whether the answer comes when the talk has gone on. A store that fails now must not cost the answer.
async fn others_wrote(inner: &Inner, accepted: &Accepted) -> bool {
    let place = &accepted.inbound.origin.key;
    if place.is_private() || place.is_shared() {
        return lane::others_wait(inner, place);
    }
    // In a group whose members have a conversation each, the others are in lanes of their own.
    let accepted = accepted.clone();
    let asked = inner.parts.db.read(move |connection| inbox::others_wrote(connection, &accepted)).await;
    asked.inspect_err(|error| tracing::warn!("an answer goes out without a quote: {error}")).unwrap_or(false)
}

fn write(
    tx: &Transaction<'_>,
    begun: &Begun,
    conversation: Conversation,
    ending: &Ending,
    rows: &Rows,
    now: i64,
) -> rusqlite::Result<usize> {
    let Begun { accepted, agent, .. } = begun;
    let place = &accepted.inbound.origin.key;
    transcript::touch(tx, place, now)?;
    transcript::append_person(tx, &accepted.inbound, conversation, now)?;
    if let Some(said) = &ending.said {
        transcript::append_agent(tx, place, conversation, agent.uid, said, now)?;
        roster::mark_bootstrapped(tx, agent.uid, now)?;
    }
    if begun.used_once {
        pins::use_up(tx, place, begun.started_at)?;
    }
    let closing = if ending.said.is_some() { Closing::Done } else { Closing::Failed };
    inbox::close_all(tx, accepted, closing, &ending.outcome, now)?;
    usage::record(tx, &turn_row(begun, ending), now)?;
    let count = outbox::insert_answer(tx, &rows.answer, accepted.id, now)?;
    outbox::insert(tx, &rows.effects, Some(accepted.id), now)?;
    Ok(count + rows.effects.len())
}

fn turn_row(begun: &Begun, ending: &Ending) -> TurnRow {
    TurnRow {
        inbox_id: begun.accepted.id,
        place: begun.accepted.inbound.origin.key.clone(),
        agent: begun.agent.uid,
        model: begun.agent.model.to_string(),
        route: begun.route.rule.to_string(),
        started_at: begun.started_at,
        outcome: ending.outcome.clone(),
        steps: ending.steps,
        usage: ending.usage,
    }
}

impl Ending {
    fn of(result: Result<Finished, TurnError>) -> Self {
        match result {
            Ok(Finished { text, steps, usage, effects }) if !text.trim().is_empty() => {
                Ending { said: Some(text.clone()), reply: text, outcome: "answered".into(), steps, usage, effects }
            }
            // The file is the answer.
            Ok(Finished { steps, usage, effects, .. }) if !effects.is_empty() => {
                let text = sent(&effects);
                Ending { said: Some(text.clone()), reply: text, outcome: "answered".into(), steps, usage, effects }
            }
            Ok(Finished { steps, usage, effects, .. }) => {
                Ending { said: None, reply: SAID_NOTHING.into(), outcome: "said nothing".into(), steps, usage, effects }
            }
            Err(error) => {
                let (steps, usage, effects) = (0, Usage::default(), Vec::new());
                Ending { said: None, reply: apology(&error), outcome: error.to_string(), steps, usage, effects }
            }
        }
    }
}

/// Nothing of a turn that panicked is kept but the question and the fact.
pub(super) async fn after_panic(inner: &Inner, accepted: &Accepted) -> Result<(), StoreError> {
    let parts = &inner.parts;
    tracing::error!(session = %accepted.inbound.origin.key, inbox.id = accepted.id, "a turn panicked");
    let destination = Destination::of(&accepted.inbound);
    let question = Question { message: &accepted.inbound.message, others_wrote: others_wrote(inner, accepted).await };
    let text = panicked(accepted.id);
    let rows = parts.delivery.draft(&destination, Kind::Error, &Text { answers: Some(question), ..Text::plain(&text) });
    let accepted = accepted.clone();
    let close = move |tx: &Transaction<'_>| {
        let (now, place) = (now_ms(), &accepted.inbound.origin.key);
        transcript::touch(tx, place, now)?;
        let conversation = transcript::conversation(tx, place)?;
        accepted.all().try_for_each(|said| transcript::append_person(tx, &said.inbound, conversation, now))?;
        inbox::close_all(tx, &accepted, Closing::Failed, "panicked", now)?;
        outbox::insert_answer(tx, &rows, accepted.id, now)
    };
    let count = parts.db.write(close).await?;
    parts.delivery.submit(destination.place(), count);
    Ok(())
}

const SAID_NOTHING: &str = "I came to the end without anything to say. Please ask again in other words.";

/// Stands for an agent that sent files without a word.
fn sent(effects: &[Effect]) -> String {
    let names: Vec<&str> = effects.iter().map(|Effect::SendFile(file)| file.name.as_str()).collect();
    format!("Here is {}.", names.join(", "))
}

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
        TurnError::TooSlow => "This took me too long, so I stopped. A smaller question may help.".into(),
        TurnError::TooManySteps => {
            "I took too many steps without coming to an answer, so I stopped. A smaller question may help.".into()
        }
    }
}
