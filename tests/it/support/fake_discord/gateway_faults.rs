//! Ways to break the gateway.

use serde_json::Value;

use super::FakeDiscord;
use super::sessions::Outgoing;

type HeldEvent = (Option<u64>, String, Value);

#[derive(Default)]
pub(super) struct GatewayFaults {
    /// Codes for the next IDENTIFYs.
    close_codes: Vec<u16>,
    close_always: Option<u16>,
    /// Codes for the next connections, which are not greeted.
    closed_before_hello: Vec<u16>,
    /// Events that are numbered and never sent, until they are resumed.
    lost_events: usize,
    rejected_identifies: usize,
    rejected_resumes: usize,
    withheld_acks: usize,
    pub(super) sharding_is_required: bool,
    /// Events of this name lose this field, once each.
    spoilers: Vec<(String, String)>,
    /// Events wait here while somebody holds them.
    pub(super) held_events: Option<Vec<HeldEvent>>,
}

impl GatewayFaults {
    pub(super) fn close_on_identify(&mut self) -> Option<u16> {
        if self.close_codes.is_empty() {
            self.close_always
        } else {
            Some(self.close_codes.remove(0))
        }
    }

    pub(super) fn close_before_hello(&mut self) -> Option<u16> {
        (!self.closed_before_hello.is_empty()).then(|| self.closed_before_hello.remove(0))
    }

    pub(super) fn lose_event(&mut self) -> bool {
        take_one(&mut self.lost_events)
    }

    pub(super) fn reject_identify(&mut self) -> bool {
        take_one(&mut self.rejected_identifies)
    }

    pub(super) fn reject_resume(&mut self) -> bool {
        take_one(&mut self.rejected_resumes)
    }

    pub(super) fn withholds_acks(&self) -> bool {
        self.withheld_acks > 0
    }

    pub(super) fn spoil(&mut self, event: &str, mut data: Value) -> Value {
        if let Some(index) = self.spoilers.iter().position(|(name, _)| name == event) {
            let (_, field) = self.spoilers.remove(index);
            data.as_object_mut()
                .expect("the data of an event is an object")
                .remove(&field);
        }
        data
    }
}

fn take_one(counter: &mut usize) -> bool {
    let is_due = *counter > 0;
    *counter = counter.saturating_sub(1);
    is_due
}

/// What op 9 says about the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalidation {
    CanResume,
    Lost,
}

impl FakeDiscord {
    /// Every connection breaks without a close frame; sessions can be resumed.
    pub(crate) fn drop_connections(&self) {
        self.to_all(|| Outgoing::Drop);
        self.detach_all();
    }

    /// Op 7.
    pub(crate) fn ask_to_reconnect(&self) {
        self.to_all(|| Outgoing::Text(r#"{"op":7,"d":null}"#.into()));
    }

    /// Op 9; a lost session cannot be resumed.
    pub(crate) fn invalidate_sessions(&self, invalidation: Invalidation) {
        let can_resume = invalidation == Invalidation::CanResume;
        let text = format!(r#"{{"op":9,"d":{can_resume}}}"#);
        self.to_all(|| Outgoing::Text(text.as_str().into()));
        if !can_resume {
            self.forget_sessions();
        }
        self.detach_all();
    }

    /// Sessions expire without a word: the next RESUME is answered by op 9.
    pub(crate) fn forget_sessions(&self) {
        for session in &mut self.world().gateway.sessions {
            session.can_resume = false;
        }
    }

    /// Closes every connection with a code now; after 4007 and 4009 the session is gone.
    pub(crate) fn close_connections(&self, code: u16) {
        self.to_all(|| Outgoing::Close(code));
        if matches!(code, 4007 | 4009) {
            self.forget_sessions();
        }
        self.detach_all();
    }

    /// The next IDENTIFY is answered by a close.
    pub(crate) fn close_next_identify(&self, code: u16) {
        self.world().gateway.faults.close_codes.push(code);
    }

    /// Every IDENTIFY is answered by a close, until `None`.
    pub(crate) fn close_every_identify(&self, code: Option<u16>) {
        self.world().gateway.faults.close_always = code;
    }

    /// The next connection is closed before it is greeted.
    pub(crate) fn close_next_connection(&self, code: u16) {
        self.world().gateway.faults.closed_before_hello.push(code);
    }

    /// The next event gets its number and does not arrive. A RESUME brings it.
    pub(crate) fn lose_next_event(&self) {
        self.world().gateway.faults.lost_events += 1;
    }

    /// The next IDENTIFY is answered by op 9.
    pub(crate) fn reject_next_identify(&self) {
        self.world().gateway.faults.rejected_identifies += 1;
    }

    /// The next RESUME is answered by op 9 `false`.
    pub(crate) fn reject_next_resume(&self) {
        self.world().gateway.faults.rejected_resumes += 1;
    }

    /// Fewer shards than [`FakeDiscord::recommend_shards`] are closed with 4011.
    pub(crate) fn require_sharding(&self) {
        self.world().gateway.faults.sharding_is_required = true;
    }

    /// Heartbeats stay unanswered while the guard lives.
    pub(crate) fn withhold_heartbeat_acks(&self) -> WithheldAcks {
        self.world().gateway.faults.withheld_acks += 1;
        WithheldAcks(self.clone())
    }

    /// The next event of this name comes without a field that it should have.
    pub(crate) fn spoil_next(&self, event: &str, field: &str) {
        self.world()
            .gateway
            .faults
            .spoilers
            .push((event.into(), field.into()));
    }

    /// From now on these bytes become others wherever the server writes them: in events and in
    /// answers.
    pub(crate) fn garble(&self, written: &[u8], sent: &[u8]) {
        self.shared.garbling.add(written, sent);
    }

    /// Any event at all, with the next number; `guild` decides who gets it.
    pub(crate) fn dispatch_raw(&self, guild: Option<u64>, event: &str, data: Value) {
        self.world().gateway.dispatch(guild, event, data);
    }

    /// Delivers a message once more, as Discord sometimes does.
    pub(crate) fn deliver_again(&self, channel_id: u64, message_id: u64) {
        self.world()
            .dispatch_message("MESSAGE_CREATE", channel_id, message_id);
    }

    /// What happens from now on is told when the hold ends.
    pub(crate) fn hold_events(&self) -> HeldEvents {
        self.world()
            .gateway
            .faults
            .held_events
            .get_or_insert_default();
        HeldEvents(self.clone())
    }

    /// What happens from now on waits for a RESUME, however slowly the connection goes.
    fn detach_all(&self) {
        for session in self.world().gateway.connected() {
            session.connection = None;
        }
        self.shared.progress.send_replace(());
    }

    fn to_all(&self, make: impl Fn() -> Outgoing) {
        for session in self.world().gateway.connected() {
            session
                .connection
                .as_ref()
                .expect("it is connected")
                .send(make());
        }
    }
}

#[must_use = "heartbeats are answered again when this is dropped"]
pub(crate) struct WithheldAcks(FakeDiscord);

impl Drop for WithheldAcks {
    fn drop(&mut self) {
        self.0.world().gateway.faults.withheld_acks -= 1;
    }
}

#[must_use = "the events come when this is dropped"]
pub(crate) struct HeldEvents(FakeDiscord);

impl HeldEvents {
    /// The events come in order; the same as dropping this.
    pub(crate) fn release(self) {}

    /// The last event comes first.
    pub(crate) fn release_reversed(self) {
        if let Some(held) = &mut self.0.world().gateway.faults.held_events {
            held.reverse();
        }
    }
}

impl Drop for HeldEvents {
    fn drop(&mut self) {
        let mut world = self.0.world();
        for (guild, event, data) in world.gateway.faults.held_events.take().unwrap_or_default() {
            world.gateway.dispatch(guild, &event, data);
        }
    }
}
