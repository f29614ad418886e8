//! What the bot did, in order, and ways to wait for it without sleeping.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::timeout;

use super::{FakeTelegram, World};

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request of the bot.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// In the documented spelling, whatever the bot wrote.
    pub(crate) method: String,
    pub(crate) params: Arc<Value>,
    pub(crate) at: Instant,
    /// When the answer was handed to the wire, or the connection cut instead.
    pub(crate) answered: Option<Instant>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Still waiting, held back, or the bot hung up first.
    Unanswered,
    Status(u16),
    /// The connection was cut instead of an answer.
    Dropped,
}

/// A message of the bot as the chat shows it now: edits are applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentMessage {
    pub(crate) chat_id: i64,
    /// Only for real topics.
    pub(crate) thread: Option<i64>,
    pub(crate) text: String,
    pub(crate) entities: Vec<Value>,
    pub(crate) reply_to: Option<i64>,
    pub(crate) message_id: i64,
    /// `Null` without buttons.
    pub(crate) reply_markup: Value,
    /// Name, size and text of a file; `Null` without one. The text of the message is its caption.
    pub(crate) document: Value,
    pub(crate) deleted: bool,
}

#[derive(Default)]
pub(crate) struct Journal {
    calls: Vec<Call>,
    sent: Vec<SentMessage>,
    // Positions in the lists above, so that thousands of messages stay cheap.
    calls_by_method: HashMap<String, Vec<usize>>,
    sent_by_id: HashMap<(i64, i64), usize>,
    sent_by_place: HashMap<(i64, Option<i64>), Vec<usize>>,
}

impl Journal {
    pub(crate) fn all(&self) -> &[Call] {
        &self.calls
    }

    pub(crate) fn calls(&self, method: &str) -> impl Iterator<Item = &Call> {
        self.calls_by_method
            .get(method)
            .into_iter()
            .flatten()
            .map(|&position| &self.calls[position])
    }

    pub(crate) fn sent(&self) -> &[SentMessage] {
        &self.sent
    }

    /// Texts that stand in a chat or topic; `None` is everything outside topics.
    pub(crate) fn texts_in(&self, chat_id: i64, thread: Option<i64>) -> Vec<String> {
        self.sent_in(chat_id, thread)
            .filter(|sent| !sent.deleted)
            .map(|sent| sent.text.clone())
            .collect()
    }

    /// Every message the bot sent to a chat or topic, deleted ones included.
    pub(crate) fn sent_in(
        &self,
        chat_id: i64,
        thread: Option<i64>,
    ) -> impl Iterator<Item = &SentMessage> {
        self.sent_by_place
            .get(&(chat_id, thread))
            .into_iter()
            .flatten()
            .map(|&position| &self.sent[position])
    }

    /// Returns the number by which [`Journal::settle`] knows the call.
    pub(super) fn note(&mut self, method: String, params: Arc<Value>) -> usize {
        self.calls_by_method
            .entry(method.clone())
            .or_default()
            .push(self.calls.len());
        self.calls.push(Call {
            method,
            params,
            at: Instant::now(),
            answered: None,
            outcome: Outcome::Unanswered,
        });
        self.calls.len() - 1
    }

    pub(super) fn settle(&mut self, call: usize, outcome: Outcome) {
        self.calls[call].outcome = outcome;
        self.calls[call].answered = Some(Instant::now());
    }

    pub(super) fn note_sent(&mut self, sent: SentMessage) {
        self.sent_by_id
            .insert((sent.chat_id, sent.message_id), self.sent.len());
        self.sent_by_place
            .entry((sent.chat_id, sent.thread))
            .or_default()
            .push(self.sent.len());
        self.sent.push(sent);
    }

    pub(super) fn sent_mut(&mut self, chat_id: i64, message_id: i64) -> Option<&mut SentMessage> {
        self.sent_by_id
            .get(&(chat_id, message_id))
            .map(|&position| &mut self.sent[position])
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.calls.iter().try_for_each(|call| {
            writeln!(f, "{} → {:?}: {}", call.method, call.outcome, call.params)
        })
    }
}

impl FakeTelegram {
    pub(crate) fn journal(&self) -> Vec<Call> {
        self.world().journal.all().to_vec()
    }

    pub(crate) fn calls(&self, method: &str) -> Vec<Call> {
        self.world().journal.calls(method).cloned().collect()
    }

    /// Every message the bot sent, deleted ones included.
    pub(crate) fn sent(&self) -> Vec<SentMessage> {
        self.world().journal.sent().to_vec()
    }

    pub(crate) fn texts_in(&self, chat_id: i64, thread: Option<i64>) -> Vec<String> {
        self.world().journal.texts_in(chat_id, thread)
    }

    /// Waits until the bot has sent `count` messages since the start, and returns the last of
    /// those.
    pub(crate) async fn wait_for_sent(&self, count: usize) -> SentMessage {
        let what = format!("{count} sent messages");
        self.wait(&what, |world| {
            world.journal.sent.get(position(count)).cloned()
        })
        .await
    }

    /// The same for one chat or topic.
    pub(crate) async fn wait_for_sent_in(
        &self,
        chat_id: i64,
        thread: Option<i64>,
        count: usize,
    ) -> SentMessage {
        let what = format!("{count} messages sent to {chat_id}, thread {thread:?}");
        self.wait(&what, |world| {
            world
                .journal
                .sent_in(chat_id, thread)
                .nth(position(count))
                .cloned()
        })
        .await
    }

    /// Waits until a method was called `count` times since the start, answered or not, and returns
    /// the last of those calls.
    pub(crate) async fn wait_for_calls(&self, method: &str, count: usize) -> Call {
        let what = format!("{count} calls of {method}");
        self.wait(&what, |world| {
            world.journal.calls(method).nth(position(count)).cloned()
        })
        .await
    }

    pub(crate) async fn wait_until(&self, mut done: impl FnMut(&Journal) -> bool) {
        self.wait("the condition of the test", |world| {
            done(&world.journal).then_some(())
        })
        .await;
    }

    /// Waits until the bot's offset went past the update, also past its repetitions.
    pub(crate) async fn confirmed(&self, update_id: i64) {
        self.wait(&format!("confirmation of update {update_id}"), |world| {
            world.updates.is_confirmed(update_id).then_some(())
        })
        .await;
    }

    /// Whether the bot's offset is past the update now.
    pub(crate) fn is_confirmed(&self, update_id: i64) -> bool {
        self.world().updates.is_confirmed(update_id)
    }

    pub(crate) async fn all_confirmed(&self) {
        self.wait("confirmation of all updates", |world| {
            world.updates.all_confirmed().then_some(())
        })
        .await;
    }

    pub(super) async fn wait<T>(&self, what: &str, mut look: impl FnMut(&World) -> Option<T>) -> T {
        let mut progress = self.shared.progress.subscribe();
        let waiting = async {
            loop {
                let found = look(&self.world());
                if let Some(found) = found {
                    return found;
                }
                progress
                    .changed()
                    .await
                    .expect("the fake outlives its handle");
            }
        };
        match timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!(
                "waited {PATIENCE:?} for {what}; what the bot did:\n{}",
                self.world().journal
            ),
        }
    }
}

fn position(count: usize) -> usize {
    count.checked_sub(1).expect("counts start at one")
}
