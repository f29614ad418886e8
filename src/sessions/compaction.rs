//! Long conversations: before a model's window is full, the agent sums up the older part, and later turns read that instead.
//!
//! The `summaries` table has at most one for a conversation: each one takes the one before it in.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use tokio::sync::mpsc;

use super::ledger::{self, Spending};
use super::transcript::{self, Conversation, Message};
use super::usage::{self, TurnRow};
use super::{Inner, running::Task};
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::domain::{AgentUid, SessionKey};
use crate::models::{Lineup, ModelMessage, Usage, estimate_tokens};
use crate::routing::aliases::Renaming;
use crate::storage::StoreError;
use crate::tools::ToolBox;
use crate::turn::history::{self, MAX_MESSAGES};
use crate::turn::{Run, Step, TurnError, TurnLimits, TurnRequest};

/// The longest summary that is kept, in bytes.
const MAX_SUMMARY_BYTES: usize = 12 * 1024;
/// A conversation with this many messages is summed up, however short they are.
const MANY_MESSAGES: usize = MAX_MESSAGES as usize * 3 / 4;
/// Nobody waits for a summary longer than this.
const MAX_TIME: Duration = Duration::from_secs(120);

/// What stands for the older part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    /// The last message it stands for.
    pub upto: i64,
    /// How many it stands for.
    pub messages: i64,
}

pub fn of(connection: &Connection, place: &SessionKey, conversation: Conversation) -> rusqlite::Result<Option<Summary>> {
    let sql = "SELECT text, upto, messages FROM summaries WHERE session_key = ?1 AND conversation = ?2";
    let read = |row: &rusqlite::Row<'_>| Ok(Summary { text: row.get(0)?, upto: row.get(1)?, messages: row.get(2)? });
    connection.prepare_cached(sql)?.query_row(params![place.to_string(), conversation.number()], read).optional()
}

/// How much of a conversation a turn has read, and how much it could.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fill {
    pub(super) tokens: usize,
    pub(super) messages: usize,
    pub(super) room: usize,
}

impl Fill {
    /// The next turn, or one soon after, would lose the oldest messages.
    fn is_nearly_full(self) -> bool {
        self.tokens > self.room / 4 * 3 || self.messages >= MANY_MESSAGES
    }
}

/// Sums up the older part of the conversation a turn belongs to, if there is need. A failure costs nothing but the summary.
pub(super) async fn consider(inner: &Inner, task: &Finished) {
    if !task.fill.is_nearly_full() {
        return;
    }
    tokio::select! {
        done = tokio::time::timeout(MAX_TIME, sum_up(inner, task)) => match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(agent.id = %task.agent_id, session = %task.place, "no summary: {error}"),
            Err(_) => tracing::warn!(agent.id = %task.agent_id, session = %task.place, "no summary: it took too long"),
        },
        () = inner.stop.cancelled() => {}
    }
}

/// A turn that is over, as far as a summary needs it.
pub(super) struct Finished {
    inbox_id: i64,
    place: SessionKey,
    agent: AgentUid,
    agent_id: String,
    agent_name: String,
    lineup: Lineup,
    scope: crate::tools::Scope,
    fill: Fill,
}

impl Finished {
    pub(super) fn of(task: &Task) -> Self {
        let answer = estimate_tokens(task.run.said()) + estimate_tokens(&task.question());
        let Fill { tokens, messages, room } = task.fill;
        Finished {
            inbox_id: task.accepted.id,
            place: task.accepted.inbound.origin.key.clone(),
            agent: task.agent.uid,
            agent_id: task.agent.id.to_string(),
            agent_name: task.agent.name.clone(),
            lineup: task.run.lineup().clone(),
            scope: task.run.scope().clone(),
            fill: Fill { tokens: tokens + answer, messages: messages + 2, room },
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NoSummary {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Turn(#[from] TurnError),
    #[error("the model said nothing")]
    Empty,
}

async fn sum_up(inner: &Inner, task: &Finished) -> Result<(), NoSummary> {
    let db = &inner.parts.db;
    let (place, started_at) = (task.place.clone(), now_ms());
    let (conversation, before, messages) = db
        .read(move |connection| {
            let conversation = transcript::conversation(connection, &place)?;
            let before = of(connection, &place, conversation)?;
            let after = before.as_ref().map_or(0, |summary| summary.upto);
            Ok((conversation, before, transcript::after(connection, &place, conversation, after)?))
        })
        .await?;
    let Some(older) = older_part(&messages, task.fill.room) else { return Ok(()) };
    let asked =
        history::to_sum_up(before.as_ref().map(|summary| summary.text.as_str()), older.iter().map(|message| &message.said));
    let (text, usage, model) = ask(inner, task, asked).await?;
    let upto = older.last().map_or(0, |message| message.id);
    let count = older.len() + before.map_or(0, |summary| usize::try_from(summary.messages).unwrap_or(0));
    tracing::info!(agent.id = %task.agent_id, session = %task.place, "{count} messages summed up");
    let summary = Summary { text, upto, messages: i64::try_from(count).unwrap_or(i64::MAX) };
    let turn = TurnRow {
        inbox_id: task.inbox_id,
        place: task.place.clone(),
        agent: task.agent,
        model: model.to_string(),
        route: "a summary".into(),
        started_at,
        outcome: usage::SUMMED_UP.into(),
        steps: 1,
        usage,
    };
    let spending = Spending {
        place: task.place.clone(),
        agent: task.agent,
        person: task.scope.person.clone(),
        model: model.to_string(),
        usage,
        price: inner.parts.models.price(&model),
        turns: 0,
    };
    let write = move |tx: &Transaction<'_>| {
        ledger::spend(tx, &spending, now_ms())?;
        keep(tx, &turn, conversation, &summary, now_ms())
    };
    db.write(write).await?;
    Ok(())
}

/// What can go: all but the newest quarter of what there is room for.
fn older_part(messages: &[Message], room: usize) -> Option<&[Message]> {
    let mut tokens = 0;
    let kept = messages.iter().rev().take(MANY_MESSAGES / 3).take_while(|message| {
        tokens += estimate_tokens(&message.said.text);
        tokens <= room / 4
    });
    let older = &messages[..messages.len() - kept.count()];
    // One or two are not worth a call.
    (older.len() > 2).then_some(older)
}

async fn ask(inner: &Inner, task: &Finished, asked: String) -> Result<(String, Usage, ModelRef), NoSummary> {
    let system = history::how_to_sum_up(&task.agent_name);
    let (messages, tools) =
        (vec![ModelMessage::user(asked)], ToolBox::of(Vec::new()).view(&task.scope.agent, task.scope.standing));
    let (lineup, scope, limits) = (task.lineup.clone(), task.scope.clone(), TurnLimits::of(&task.scope.agent.limits));
    let mut run = Run::new(TurnRequest { lineup, system, messages, tools, scope, limits });
    // Nobody watches it being written.
    let (events, unheard) = mpsc::channel(1);
    drop(unheard);
    let step = run.ask(&inner.parts.models, &events).await?;
    let text = match step {
        Step::Answered => run.said().trim().to_owned(),
        Step::Wants(round) => round.text.trim().to_owned(),
    };
    if text.is_empty() {
        return Err(NoSummary::Empty);
    }
    let model = run.model().cloned().unwrap_or_default();
    Ok((text[..text.floor_char_boundary(MAX_SUMMARY_BYTES)].to_owned(), run.usage(), model))
}

/// Unless a new conversation was begun meanwhile.
fn keep(tx: &Transaction<'_>, turn: &TurnRow, conversation: Conversation, summary: &Summary, now: i64) -> rusqlite::Result<()> {
    usage::record(tx, turn, now)?;
    let sql = "INSERT INTO summaries (session_key, conversation, upto, messages, agent_uid, text, created_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               ON CONFLICT DO UPDATE SET upto = excluded.upto, messages = excluded.messages, agent_uid = excluded.agent_uid,
                                         text = excluded.text, created_at = excluded.created_at";
    let Summary { text, upto, messages } = summary;
    let (place, agent) = (turn.place.to_string(), turn.agent.to_string());
    tx.execute(sql, params![place, conversation.number(), upto, messages, agent, text, now]).map(drop)
}

/// Lets go of summaries of conversations that are over. No turn reads them, and the messages stay.
pub fn forget_old(tx: &Transaction<'_>, _now: i64, most: u32) -> rusqlite::Result<usize> {
    let over = "SELECT session_key, summaries.conversation FROM summaries LEFT JOIN sessions ON key = session_key
                WHERE key IS NULL OR summaries.conversation < sessions.conversation LIMIT ?1";
    tx.execute(&format!("DELETE FROM summaries WHERE (session_key, conversation) IN ({over})"), [most])
}

/// Destroys what an agent has summed up.
pub fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    tx.execute("DELETE FROM summaries WHERE agent_uid = ?1", [uid.to_string()])
}

/// The group has another id now. Where both ids have a summary, the newer place's own stays.
pub(super) fn follow(tx: &Transaction<'_>, renaming: &Renaming) -> rusqlite::Result<()> {
    renaming.rename(tx, "summaries", "session_key", "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::history::{Said, Speaker};

    fn messages(count: i64, words: usize) -> Vec<Message> {
        let said = |id: i64| Said { by: Speaker::Person("Alice".into()), text: format!("{id} {}", "word ".repeat(words)) };
        (1..=count).map(|id| Message { id, said: said(id) }).collect()
    }

    #[test]
    fn the_newest_quarter_stays_as_it_was_said() {
        let all = messages(40, 100);
        let room = all.iter().map(|message| estimate_tokens(&message.said.text)).sum::<usize>();
        let older = older_part(&all, room).expect("there is much to sum up");
        assert_eq!((older.len(), older.last().unwrap().id), (30, 30));
        assert_eq!(older_part(&all[..8], room), None, "they all fit into the quarter");
    }

    #[test]
    fn many_short_messages_are_summed_up_too() {
        let all = messages(i64::from(MAX_MESSAGES), 0);
        assert!(Fill { tokens: 0, messages: MANY_MESSAGES, room: 64_000 }.is_nearly_full());
        assert_eq!(older_part(&all, 64_000).map(<[_]>::len), Some(150));
    }
}
