//! The queue behind `getUpdates`: at least once, confirmed by offset.
//!
//! Left out on purpose: the real server slows down polls that repeat an offset within three
//! seconds, which would only slow the tests.
//!
//! <https://core.telegram.org/bots/api#getupdates>

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::chats::fields;
use super::wire::{ApiError, bad_request, int};

const FIRST_UPDATE_ID: i64 = 10_001;
const MAX_BATCH: i64 = 100;
const MAX_TIMEOUT_SECONDS: i64 = 50;
/// An offset further ahead than this is taken for one of another life, and answered from the oldest
/// update.
const MAX_OFFSET_LEAD: i128 = 10;
/// Not sent unless asked for by name.
const NOT_BY_DEFAULT: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

pub(super) struct UpdateQueue {
    next_id: i64,
    pending: BTreeMap<i64, Arc<[u8]>>,
    /// Everything ever queued, for deliveries out of the ordinary.
    history: HashMap<i64, Arc<[u8]>>,
    /// Answers break off behind this update, as often as it is asked for.
    breaks_off_behind: Option<i64>,
    /// Offsets above this are refused.
    pub(super) largest_offset: Option<i128>,
    repeats: Vec<Repeat>,
    /// `None` is the default set.
    allowed: Option<HashSet<String>>,
    pub(super) webhook: String,
    /// What we show when we call it.
    pub(super) webhook_secret: String,
    /// Why the last call failed, and when.
    pub(super) webhook_error: Option<(String, i64)>,
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
            breaks_off_behind: None,
            largest_offset: None,
            repeats: Vec::new(),
            allowed: None,
            webhook: String::new(),
            webhook_secret: String::new(),
            webhook_error: None,
            newest_poll: 0,
        }
    }
}

impl UpdateQueue {
    /// An update of a kind the bot did not ask for gets an id but is never delivered.
    pub(super) fn push(&mut self, content: Value) -> i64 {
        let update_id = int(&content, "update_id").unwrap_or(self.next_id);
        let mut update = fields(json!({ "update_id": update_id }));
        update.extend(
            fields(content)
                .into_iter()
                .filter(|(name, _)| name != "update_id"),
        );
        self.next_id = self.next_id.max(update_id.saturating_add(1));
        if update
            .keys()
            .filter(|name| *name != "update_id")
            .all(|kind| self.allows(kind))
        {
            self.queue(update_id, Value::Object(update).to_string().into_bytes());
        }
        update_id
    }

    /// `#` stands for the number in bytes that need not be JSON.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) -> i64 {
        let update_id = self.next_id;
        self.next_id += 1;
        let number = update_id.to_string();
        let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'#').collect();
        self.queue(update_id, parts.join(number.as_bytes()));
        update_id
    }

    fn queue(&mut self, update_id: i64, update: Vec<u8>) {
        let update: Arc<[u8]> = update.into();
        self.history.insert(update_id, update.clone());
        self.pending.insert(update_id, update);
    }

    pub(super) fn break_off_behind(&mut self, update_id: i64) {
        self.breaks_off_behind = Some(update_id);
    }

    pub(super) fn push_again(&mut self, update_id: i64) {
        assert!(
            self.history.contains_key(&update_id),
            "update {update_id} was never queued"
        );
        self.repeats.push(Repeat {
            update_id,
            delivered: false,
        });
    }

    pub(super) fn text_of(&self, update_id: i64) -> &str {
        let update = self
            .history
            .get(&update_id)
            .unwrap_or_else(|| panic!("update {update_id} was never queued"));
        std::str::from_utf8(update).expect("only broken updates are no text")
    }

    pub(super) fn restart_ids_at(&mut self, update_id: i64) {
        self.next_id = update_id;
    }

    pub(super) fn is_confirmed(&self, update_id: i64) -> bool {
        !self.pending.contains_key(&update_id)
            && !self
                .repeats
                .iter()
                .any(|repeat| repeat.update_id == update_id)
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
        self.allowed
            .as_ref()
            .map_or(!NOT_BY_DEFAULT.contains(&kind), |allowed| {
                allowed.contains(kind)
            })
    }

    /// An omitted list means "as last time", an empty one the default set.
    pub(super) fn remember_allowed(&mut self, params: &Value) {
        if let Some(kinds) = params.get("allowed_updates").and_then(Value::as_array) {
            let kinds: HashSet<String> = kinds
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            self.allowed = (!kinds.is_empty()).then_some(kinds);
        }
    }

    fn begin_poll(&mut self, offset: i128) -> u64 {
        if offset < 0 {
            let keep = usize::try_from(offset.unsigned_abs()).expect("fits in memory");
            if let Some(&oldest) = self.pending.keys().rev().nth(keep - 1) {
                self.confirm_below(oldest);
            }
        } else if !self.is_from_another_life(offset) {
            match i64::try_from(offset) {
                Ok(offset) => self.confirm_below(offset),
                Err(_) => self.drop_pending(),
            }
        }
        self.newest_poll += 1;
        self.newest_poll
    }

    fn confirm_below(&mut self, offset: i64) {
        self.pending = self.pending.split_off(&offset);
        self.repeats
            .retain(|repeat| !repeat.delivered || repeat.update_id >= offset);
    }

    fn is_from_another_life(&self, offset: i128) -> bool {
        offset > i128::from(self.next_id) + MAX_OFFSET_LEAD
    }

    /// The next updates, as a JSON array in an envelope. None if there are none.
    fn batch(&mut self, offset: i128, limit: usize) -> Option<Vec<u8>> {
        let mut batch: Vec<(i64, Arc<[u8]>)> = Vec::new();
        let comes_again =
            |repeat: &&mut Repeat| !repeat.delivered || i128::from(repeat.update_id) >= offset;
        for repeat in self.repeats.iter_mut().filter(comes_again).take(limit) {
            repeat.delivered = true;
            batch.push((repeat.update_id, self.history[&repeat.update_id].clone()));
        }
        let from = if self.is_from_another_life(offset) {
            0
        } else {
            offset.max(0)
        };
        let next = self
            .pending
            .iter()
            .filter(|(update_id, _)| i128::from(**update_id) >= from);
        batch.extend(
            next.take(limit - batch.len())
                .map(|(update_id, update)| (*update_id, update.clone())),
        );
        let breaks_off = batch
            .iter()
            .position(|(update_id, _)| Some(*update_id) == self.breaks_off_behind);
        batch.truncate(breaks_off.map_or(batch.len(), |last| last + 1));
        let updates: Vec<Arc<[u8]>> = batch.into_iter().map(|(_, update)| update).collect();
        let end: &[u8] = if breaks_off.is_some() { b"" } else { b"]}" };
        (!updates.is_empty()).then(|| {
            [
                br#"{"ok":true,"result":["#,
                updates.join(&b',').as_slice(),
                end,
            ]
            .concat()
        })
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

/// A long poll: answers at once if there is something, else when something comes or the timeout
/// passes. With the envelope.
pub(super) async fn get_updates(shared: &Shared, params: &Value) -> Result<Vec<u8>, ApiError> {
    let offset = int(params, "offset")
        .map(i128::from)
        .or_else(|| params["offset"].as_u64().map(i128::from))
        .unwrap_or(0);
    let limit = int(params, "limit")
        .unwrap_or(MAX_BATCH)
        .clamp(1, MAX_BATCH);
    let limit = usize::try_from(limit).expect("clamped to 1 and above");
    let timeout = int(params, "timeout")
        .unwrap_or(0)
        .clamp(0, MAX_TIMEOUT_SECONDS)
        .cast_unsigned();
    let deadline = Instant::now() + Duration::from_secs(timeout);

    let poll = {
        let mut world = shared.world();
        if world
            .updates
            .largest_offset
            .is_some_and(|largest| offset > largest)
        {
            return bad_request("offset is out of range");
        }
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
            return Ok(batch);
        }
        tokio::select! {
            _ = arrivals.changed() => {}
            () = sleep_until(deadline) => return Ok(br#"{"ok":true,"result":[]}"#.to_vec()),
        }
    }
}

const WEBHOOK_IS_SET: &str = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const NEWER_POLL: &str = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
