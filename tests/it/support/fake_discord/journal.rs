//! What the bot did, in order, and ways to wait for it without sleeping.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::timeout;

use super::FakeDiscord;
use super::routes::Route;
use super::world::World;

/// Long enough for a loaded machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request of the bot.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) route: Route,
    /// `POST /api/v10/channels/8101/messages`, with the query.
    pub(crate) line: String,
    /// Where it was about, if that was a channel; interactions count for the channel they came
    /// from.
    pub(crate) channel_id: Option<u64>,
    pub(crate) body: Arc<Value>,
    /// Names of the files that came along.
    pub(crate) files: Vec<String>,
    pub(crate) user_agent: String,
    pub(crate) at: Instant,
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

/// A message of the bot as the channel shows it now: edits are applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentMessage {
    pub(crate) channel_id: u64,
    pub(crate) message_id: u64,
    pub(crate) text: String,
    pub(crate) reply_to: Option<u64>,
    /// Everything else, as REST shows it: `components`, `attachments`, `flags`, `embeds`.
    pub(crate) json: Value,
    /// All texts it had, the first and the present one included.
    pub(crate) versions: Vec<String>,
    pub(crate) ephemeral: bool,
    pub(crate) deleted: bool,
}

#[derive(Default)]
pub(crate) struct Journal {
    calls: Vec<Call>,
    sent: Vec<SentMessage>,
    /// Calls that could have pinged people, and other things that must not happen.
    pub(super) violations: Vec<String>,
}

impl Journal {
    pub(crate) fn all(&self) -> &[Call] {
        &self.calls
    }

    pub(crate) fn calls(&self, route: Route) -> impl Iterator<Item = &Call> {
        self.calls
            .iter()
            .filter(move |call| route == Route::Any || call.route == route)
    }

    pub(crate) fn sent(&self) -> &[SentMessage] {
        &self.sent
    }

    /// Every message the bot sent to a channel, deleted and ephemeral ones included.
    pub(crate) fn sent_in(&self, channel_id: u64) -> impl Iterator<Item = &SentMessage> {
        self.sent
            .iter()
            .filter(move |sent| sent.channel_id == channel_id)
    }

    /// Returns the number by which [`Journal::settle`] knows the call.
    pub(super) fn note(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    pub(super) fn settle(&mut self, call: usize, outcome: Outcome) {
        self.calls[call].outcome = outcome;
    }

    pub(super) fn note_sent(
        &mut self,
        channel_id: u64,
        message_id: u64,
        json: &Value,
        ephemeral: bool,
    ) {
        let text = super::wire::text(json, "content").to_owned();
        let reply_to = json
            .get("message_reference")
            .and_then(|reference| super::wire::id_in(reference, "message_id"));
        let (json, versions) = (json.clone(), vec![text.clone()]);
        self.sent.push(SentMessage {
            channel_id,
            message_id,
            text,
            reply_to,
            json,
            versions,
            ephemeral,
            deleted: false,
        });
    }

    pub(super) fn note_edited(&mut self, message_id: u64, json: &Value) {
        if let Some(sent) = self.sent_mut(message_id) {
            sent.text = super::wire::text(json, "content").into();
            sent.versions.push(sent.text.clone());
            sent.json = json.clone();
        }
    }

    pub(super) fn note_deleted(&mut self, message_id: u64) {
        if let Some(sent) = self.sent_mut(message_id) {
            sent.deleted = true;
        }
    }

    fn sent_mut(&mut self, message_id: u64) -> Option<&mut SentMessage> {
        self.sent
            .iter_mut()
            .find(|sent| sent.message_id == message_id)
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.calls
            .iter()
            .try_for_each(|call| writeln!(f, "{} → {:?}: {}", call.line, call.outcome, call.body))
    }
}

impl FakeDiscord {
    /// Every call so far, in order.
    pub(crate) fn journal(&self) -> Vec<Call> {
        self.world().journal.all().to_vec()
    }

    pub(crate) fn calls(&self, route: Route) -> Vec<Call> {
        self.world().journal.calls(route).cloned().collect()
    }

    /// Every message the bot sent, deleted and ephemeral ones included.
    pub(crate) fn sent(&self) -> Vec<SentMessage> {
        self.world().journal.sent().to_vec()
    }

    /// The person at the other end of a private channel.
    pub(crate) fn dm_partner(&self, channel_id: u64) -> Option<u64> {
        let world = self.world();
        let channel = world.channels.get(&channel_id)?;
        channel.dm_with.map(|user| user.id)
    }

    /// Waits until the bot has sent `count` messages since the start, and returns the last of
    /// those.
    pub(crate) async fn wait_for_sent(&self, count: usize) -> SentMessage {
        self.wait(&format!("{count} sent messages"), |world| {
            world.journal.sent().get(position(count)).cloned()
        })
        .await
    }

    /// The same for one channel or thread.
    pub(crate) async fn wait_for_sent_in(&self, channel_id: u64, count: usize) -> SentMessage {
        let what = format!("{count} messages sent to {channel_id}");
        self.wait(&what, |world| {
            world
                .journal
                .sent_in(channel_id)
                .nth(position(count))
                .cloned()
        })
        .await
    }

    /// Waits until a message of the bot says something that passes, and returns it as it is then.
    pub(crate) async fn wait_for_text(
        &self,
        message_id: u64,
        mut passes: impl FnMut(&str) -> bool,
    ) -> SentMessage {
        let mut look = |sent: &&SentMessage| sent.message_id == message_id && passes(&sent.text);
        self.wait(&format!("message {message_id} to change"), |world| {
            world.journal.sent().iter().find(&mut look).cloned()
        })
        .await
    }

    /// Waits until a call was made `count` times since the start, answered or not, and returns the
    /// last of those.
    pub(crate) async fn wait_for_calls(&self, route: Route, count: usize) -> Call {
        let what = format!("{count} calls of {route:?}");
        self.wait(&what, |world| {
            world.journal.calls(route).nth(position(count)).cloned()
        })
        .await
    }

    /// Waits until the bot showed that it types in a channel.
    pub(crate) async fn wait_for_typing(&self, channel_id: u64) {
        let typing = |call: &&Call| call.channel_id == Some(channel_id);
        self.wait(&format!("typing in {channel_id}"), |world| {
            world.journal.calls(Route::Typing).find(typing).map(drop)
        })
        .await;
    }

    pub(crate) async fn wait_until(&self, mut done: impl FnMut(&Journal) -> bool) {
        self.wait("the condition of the test", |world| {
            done(&world.journal).then_some(())
        })
        .await;
    }

    /// Waits until the bot is connected and has got READY.
    pub(crate) async fn connected(&self) {
        let is_connected = |world: &World| {
            world
                .gateway
                .sessions
                .iter()
                .any(|session| session.connection.is_some())
        };
        self.wait("a connected session", |world| {
            is_connected(world).then_some(())
        })
        .await;
    }

    /// Waits until no connection has a session.
    pub(crate) async fn disconnected(&self) {
        let is_connected = |world: &World| {
            world
                .gateway
                .sessions
                .iter()
                .any(|session| session.connection.is_some())
        };
        self.wait("the bot to go away", |world| {
            (!is_connected(world)).then_some(())
        })
        .await;
    }

    /// Waits for this many IDENTIFYs since the start, accepted or not, and returns the data of the
    /// last of those.
    pub(crate) async fn wait_for_identifies(&self, count: usize) -> Value {
        self.wait(&format!("{count} identifies"), |world| {
            world.gateway.identifies.get(position(count)).cloned()
        })
        .await
    }

    /// Waits for this many RESUMEs since the start, accepted or not, and returns the data of the
    /// last of those.
    pub(crate) async fn wait_for_resumes(&self, count: usize) -> Value {
        self.wait(&format!("{count} resumes"), |world| {
            world.gateway.resumes.get(position(count)).cloned()
        })
        .await
    }

    pub(crate) async fn wait_for_heartbeats(&self, count: usize) {
        self.wait(&format!("{count} heartbeats"), |world| {
            (world.gateway.heartbeats >= count).then_some(())
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

pub(super) fn position(count: usize) -> usize {
    count.checked_sub(1).expect("counts start at one")
}
