//! The queue behind `getUpdates`: at least once, confirmed by offset.
//!
//! Left out on purpose: the real server slows down polls that repeat an offset within three seconds, which would only slow the tests.
//!
//! <https://core.telegram.org/bots/api#getupdates>

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::chats::fields;
use super::wire::{ApiError, int};

const FIRST_UPDATE_ID: i64 = 10_001;
const MAX_BATCH: i64 = 100;
const MAX_TIMEOUT_SECONDS: i64 = 50;
/// An offset further ahead than this is taken for one of another life, and answered from the oldest update.
const MAX_OFFSET_LEAD: i64 = 10;
/// Not sent unless asked for by name.
const NOT_BY_DEFAULT: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

pub(super) struct UpdateQueue {
    next_id: i64,
    pending: BTreeMap<i64, Arc<str>>,
    /// Everything ever queued, for deliveries out of the ordinary.
    history: HashMap<i64, Arc<str>>,
    repeats: Vec<Repeat>,
    /// `None` is the default set.
    allowed: Option<HashSet<String>>,
    pub(super) webhook: String,
    /// What we show when we call it.
    pub(super) webhook_secret: String,
    /// Counts polls; only the newest may go on waiting.
    newest_poll: u64,
}

struct Repeat {
    update_id: i64,
    delivered: bool,
}

impl Default for UpdateQueue {
    fn default() -> Self {
        Self {
            next_id: FIRST_UPDATE_ID,
            pending: BTreeMap::new(),
            history: HashMap::new(),
            repeats: Vec::new(),
            allowed: None,
            webhook: String::new(),
            webhook_secret: String::new(),
            newest_poll: 0,
        }
    }
}

impl UpdateQueue {
    /// An update of a kind the bot did not ask for gets an id but is never delivered.
    pub(super) fn push(&mut self, content: Value) -> i64 {
        let update_id = int(&content, "update_id").unwrap_or(self.next_id);
        let mut update = fields(json!({ "update_id": update_id }));
        update.extend(fields(content).into_iter().filter(|(name, _)| name != "update_id"));
        self.next_id = self.next_id.max(update_id + 1);
        if update.keys().filter(|name| *name != "update_id").all(|kind| self.allows(kind)) {
            let text: Arc<str> = Value::Object(update).to_string().into();
            self.history.insert(update_id, text.clone());
            self.pending.insert(update_id, text);
        }
        update_id
    }

    pub(super) fn push_again(&mut self, update_id: i64) {
        assert!(self.history.contains_key(&update_id), "update {update_id} was never queued");
        self.repeats.push(Repeat { update_id, delivered: false });
    }

    pub(super) fn text_of(&self, update_id: i64) -> &str {
        self.history.get(&update_id).unwrap_or_else(|| panic!("update {update_id} was never queued"))
    }

    pub(super) fn restart_ids_at(&mut self, update_id: i64) {
        self.next_id = update_id;
    }

    pub(super) fn is_confirmed(&self, update_id: i64) -> bool {
        !self.pending.contains_key(&update_id) && !self.repeats.iter().any(|repeat| repeat.update_id == update_id)
    }

    pub(super) fn all_confirmed(&self) -> bool {
        self.pending.is_empty() && self.repeats.is_empty()
    }

    pub(super) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// The webhook has taken it.
    pub(super) fn confirm(&mut self, update_id: i64) {
        self.pending.remove(&update_id);
    }

    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
        self.repeats.clear();
    }

    fn allows(&self, kind: &str) -> bool {
        self.allowed.as_ref().map_or(!NOT_BY_DEFAULT.contains(&kind), |allowed| allowed.contains(kind))
    }

    /// An omitted list means "as last time", an empty one the default set.
    pub(super) fn remember_allowed(&mut self, params: &Value) {
        if let Some(kinds) = params.get("allowed_updates").and_then(Value::as_array) {
            let kinds: HashSet<String> = kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            self.allowed = (!kinds.is_empty()).then_some(kinds);
        }
    }

    fn begin_poll(&mut self, offset: i64) -> u64 {
        if offset < 0 {
            let keep = usize::try_from(offset.unsigned_abs()).expect("fits in memory");
            if let Some(&oldest) = self.pending.keys().rev().nth(keep - 1) {
                self.confirm_below(oldest);
            }
        } else if !self.is_from_another_life(offset) {
            self.confirm_below(offset);
        }
        self.newest_poll += 1;
        self.newest_poll
    }

    fn confirm_below(&mut self, offset: i64) {
        self.pending = self.pending.split_off(&offset);
        self.repeats.retain(|repeat| !repeat.delivered || repeat.update_id >= offset);
    }

    fn is_from_another_life(&self, offset: i64) -> bool {
        offset > self.next_id + MAX_OFFSET_LEAD
    }

    /// The next updates, as the inside of a JSON array.
    fn batch(&mut self, offset: i64, limit: usize) -> Option<String> {
        let mut batch: Vec<Arc<str>> = Vec::new();
        for repeat in self.repeats.iter_mut().filter(|repeat| !repeat.delivered || repeat.update_id >= offset).take(limit) {
            repeat.delivered = true;
            batch.push(self.history[&repeat.update_id].clone());
        }
        let from = if self.is_from_another_life(offset) { 0 } else { offset.max(0) };
        batch.extend(self.pending.range(from..).take(limit - batch.len()).map(|(_, update)| update.clone()));
        (!batch.is_empty()).then(|| batch.join(","))
    }

    fn check_poll(&self, poll: u64) -> Result<(), ApiError> {
        if !self.webhook.is_empty() {
            return Err(ApiError::new(409, WEBHOOK_IS_SET));
        }
        if poll != self.newest_poll {
            return Err(ApiError::new(409, NEWER_POLL));
        }
        Ok(())
    }
}

/// A long poll: answers at once if there is something, else when something comes or the timeout passes.
pub(super) async fn get_updates(shared: &Shared, params: &Value) -> Result<String, ApiError> {
    let offset = int(params, "offset").unwrap_or(0);
    let limit = int(params, "limit").unwrap_or(MAX_BATCH).clamp(1, MAX_BATCH);
    let limit = usize::try_from(limit).expect("clamped to 1 and above");
    let timeout = int(params, "timeout").unwrap_or(0).clamp(0, MAX_TIMEOUT_SECONDS).cast_unsigned();
    let deadline = Instant::now() + Duration::from_secs(timeout);

    let poll = {
        let mut world = shared.world();
        world.updates.remember_allowed(params);
        world.updates.begin_poll(offset)
    };
    shared.progress.send_replace(());
    shared.arrivals.send_replace(());
    let mut arrivals = shared.arrivals.subscribe();
    loop {
        let batch = {
            let mut world = shared.world();
            world.updates.check_poll(poll)?;
            world.updates.batch(offset, limit)
        };
        if let Some(batch) = batch {
            return Ok(format!("[{batch}]"));
        }
        tokio::select! {
            _ = arrivals.changed() => {}
            () = sleep_until(deadline) => return Ok("[]".into()),
        }
    }
}

const WEBHOOK_IS_SET: &str =
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const NEWER_POLL: &str = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
