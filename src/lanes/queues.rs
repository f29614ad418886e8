//! All lanes: messages are put in here, and the worker of each lane takes them out.

use std::sync::Arc;

use dashmap::{DashMap, DashSet};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::keep::Keeper;
use super::lane::{Lane, Purpose, Waiting};
use super::person_turns::{PersonTurns, Share};
use super::{LaneFull, Load, Queue, Sessions, Work};
use crate::answering::Answering;
use crate::delivery::Delivery;
use crate::domain::{Addressed, AgentUid, Extras, Inbound, Internal, Origin, SessionKey};
use crate::home::Snapshots;
use crate::records::inbox::Accepted;
use crate::routing;
use crate::subagents::{Arrived, LaneRequest, Subagents};

/// The lanes of all places.
pub(super) struct Lanes {
    pub(super) lanes: DashMap<SessionKey, Lane>,
    /// Turns begun by an earlier process, with the other inbox rows they answer.
    pub(super) absorbing: DashMap<i64, Vec<i64>>,
    /// Other inbox rows answered by a resumed turn.
    pub(super) absorbed: DashSet<i64>,
    pub(super) snapshots: Snapshots,
    pub(super) answering: Answering,
    pub(super) subagents: Subagents,
    pub(super) turns: Arc<PersonTurns>,
    pub(super) keeper: Keeper,
    pub(super) delivery: Delivery,
    /// Counts open messages, subagents and sends.
    pub(super) work: TaskTracker,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) abandon: CancellationToken,
}

impl Sessions {
    /// Queues a message in its place's lane. The guard is held until it is answered.
    pub fn submit(
        &self,
        accepted: Accepted,
        arrived: Arrived,
        guard: TaskTrackerToken,
    ) -> Result<(), LaneFull> {
        self.lanes.submit(accepted, Purpose::Answer, arrived, guard)
    }

    /// Queues a message that is kept for an agent, without an answer. A lane in which much waits
    /// does not take it.
    pub fn observe(
        &self,
        accepted: Accepted,
        hearer: AgentUid,
        arrived: Arrived,
        guard: TaskTrackerToken,
    ) -> Result<(), LaneFull> {
        self.lanes
            .submit(accepted, Purpose::Observe(hearer), arrived, guard)
    }
}

impl Lanes {
    pub(super) fn submit(
        self: &Arc<Self>,
        accepted: Accepted,
        purpose: Purpose,
        arrived: Arrived,
        guard: TaskTrackerToken,
    ) -> Result<(), LaneFull> {
        let mut waiting = Waiting {
            accepted,
            purpose,
            guard: Some(guard),
            since: Instant::now(),
            arrived,
            is_blocked: false,
        };
        if arrived == Arrived::Before && self.is_absorbed(&waiting) {
            // A resumed turn answers the message and closes its row.
            return Ok(());
        }
        let place = self.lane_of(&waiting.accepted.inbound.origin);
        let entry = self.lanes.entry(place.clone());
        let is_new = matches!(entry, dashmap::Entry::Vacant(_));
        let mut lane = entry.or_default();
        if !lane.takes(purpose, arrived) {
            let news = purpose == Purpose::Answer && !std::mem::replace(&mut lane.told_full, true);
            let guard = waiting.guard.take().unwrap_or_else(|| self.work.token());
            return Err(LaneFull { guard, news });
        }
        if lane.current.is_some() && waiting.is_question() && arrived == Arrived::Now {
            // The person sees at once that the waiting message was received.
            self.delivery.noticed(&waiting.accepted.inbound);
        }
        // The message waits with the others of its lane.
        let unheld = lane.held.as_ref().and_then(|_| waiting.guard.take());
        lane.waiting.push_back(waiting);
        lane.tell();
        drop(lane);
        drop(unheld);
        if is_new {
            self.tasks.spawn(self.clone().work_through(place));
        }
        Ok(())
    }

    /// Has lanes look again that wait for a paused agent. Their messages count as open until then.
    pub(super) fn look_again(&self) {
        for mut lane in self.lanes.iter_mut() {
            if lane.held.is_some() {
                lane.with_guards(|| self.work.token());
            }
        }
        self.answering.pauses().look_again();
    }

    /// Has lanes look again whose parked turns wait for people. These turns can go on.
    pub(super) fn answered(&self, turns: &[i64]) {
        for mut lane in self.lanes.iter_mut() {
            if lane.parked.iter().any(|turn| turn.waits_for_people) {
                lane.count_again(turns, || self.work.token());
                lane.tell();
            }
        }
    }

    /// Carries out requests from the `Submit` handles of turns.
    pub(super) async fn take_requests(
        self: Arc<Self>,
        mut requests: mpsc::UnboundedReceiver<LaneRequest>,
    ) {
        loop {
            let request = tokio::select! {
                request = requests.recv() => request,
                () = self.stop.cancelled() => return,
            };
            match request {
                None => return,
                Some(LaneRequest::Halt { session, ids }) => self.halt_in(&session, &ids),
                Some(LaneRequest::Queue {
                    accepted,
                    arrived,
                    guard,
                }) => {
                    if self
                        .submit(*accepted, Purpose::Answer, arrived, guard)
                        .is_err()
                    {
                        tracing::warn!(
                            "a subagent found its lane full; the next start goes on with it"
                        );
                    }
                }
            }
        }
    }

    /// Whether a resumed turn answers this message. The turn's own message is submitted before its
    /// members. If that message is not let in any more, the members get turns of their own.
    fn is_absorbed(&self, waiting: &Waiting) -> bool {
        let id = waiting.accepted.id;
        if waiting.is_question()
            && let Some((_, members)) = self.absorbing.remove(&id)
        {
            for member in members {
                self.absorbed.insert(member);
            }
        }
        self.absorbed.remove(&id).is_some()
    }

    /// The lane of a place. While the lane from before a group's move exists, new messages go
    /// there, behind the older messages.
    fn lane_of(&self, origin: &Origin) -> SessionKey {
        let former = origin
            .formerly
            .map(|chat| origin.key.in_telegram_group(chat));
        former
            .filter(|former| self.lanes.contains_key(former))
            .unwrap_or_else(|| origin.key.clone())
    }

    /// If `next` continues a queued message (an album), how that message addressed the bot.
    pub(super) fn continues(&self, next: &Inbound) -> Option<Addressed> {
        let lane = self.lanes.get(&self.lane_of(&next.origin))?;
        let last = &lane.waiting.back()?.accepted.inbound;
        last.is_one_with(next).then_some(last.addressed)
    }

    /// Puts an edit into a queued message. The worker takes messages out under the same lock, so
    /// the turn of a message found here has not begun.
    pub(super) fn revise(&self, edit: &Inbound) -> Option<Accepted> {
        let mut lane = self.lanes.get_mut(&self.lane_of(&edit.origin))?;
        let mut waiting = lane.waiting.iter_mut().map(|waiting| &mut waiting.accepted);
        let accepted = waiting.find(|accepted| {
            accepted.inbound.message == edit.message && accepted.inbound.extras.note.is_none()
        })?;
        let Extras { together, note, .. } = accepted.inbound.extras.clone();
        accepted.inbound.text = edit.text.clone();
        accepted.inbound.extras = Extras {
            together,
            note,
            ..edit.extras.clone()
        };
        Some(accepted.clone())
    }

    /// The number of messages waiting or being answered in a place.
    pub(super) fn depth(&self, origin: &Origin) -> usize {
        self.lanes
            .get(&self.lane_of(origin))
            .map_or(0, |lane| lane.depth())
    }

    pub(super) fn queue(&self, origin: &Origin) -> Queue {
        self.lanes
            .get(&self.lane_of(origin))
            .map(|lane| lane.queue())
            .unwrap_or_default()
    }

    /// Ends the turns of these inbox rows, whether they run, are parked or wait.
    pub(super) fn halt(&self, origin: &Origin, ids: &[i64]) {
        self.halt_in(&self.lane_of(origin), ids);
    }

    /// The work of all lanes.
    pub(super) fn work(&self) -> Vec<Work> {
        let lanes = self.lanes.iter();
        lanes
            .flat_map(|lane| lane.work(lane.key()).collect::<Vec<_>>())
            .collect()
    }

    pub(super) fn halt_in(&self, place: &SessionKey, ids: &[i64]) {
        let Some(mut lane) = self.lanes.get_mut(place) else {
            return;
        };
        let gone = lane.let_go(|waiting| ids.contains(&waiting.accepted.id));
        lane.count_again(ids, || self.work.token());
        let under_way = lane.current.iter().chain(&lane.parked);
        under_way
            .filter(|turn| turn.item.ids.iter().any(|id| ids.contains(id)))
            .for_each(|turn| turn.halt.cancel());
        drop(lane);
        // Outside the lock, because dropping a guard may wake others.
        drop::<Vec<Waiting>>(gone);
    }

    /// Removes deleted messages from all lanes. Returns the rows of turns stopped with them.
    pub(super) fn withdraw(&self, ids: &[i64]) -> Vec<i64> {
        let (mut gone, mut stopped) = (Vec::new(), Vec::new());
        for mut lane in self.lanes.iter_mut() {
            gone.extend(lane.let_go(|waiting| ids.contains(&waiting.accepted.id)));
            let Lane {
                current, parked, ..
            } = &mut *lane;
            for turn in current
                .iter_mut()
                .chain(parked)
                .filter(|turn| turn.item.ids.iter().any(|id| ids.contains(id)))
            {
                if turn.withdraw(ids) {
                    turn.halt.cancel();
                    stopped.extend(&turn.item.ids);
                }
            }
        }
        // Outside the locks, because dropping a guard may wake others.
        drop::<Vec<Waiting>>(gone);
        stopped
    }

    pub(super) fn load(&self) -> Load {
        let mut load = Load::default();
        for lane in &self.lanes {
            load.turns += usize::from(lane.current.is_some());
            for waiting in lane.waiting.iter().filter(|waiting| waiting.is_question()) {
                load.waiting += 1;
                load.oldest = load.oldest.max(waiting.since.elapsed());
            }
        }
        load
    }

    /// Ends all turns and messages in a place and its parts.
    pub(super) fn close_place(&self, place: &SessionKey) {
        let mut gone = Vec::new();
        for mut lane in self.lanes.iter_mut().filter(|lane| lane.key().is_in(place)) {
            gone.extend(lane.let_go(|_| true));
            lane.current
                .iter()
                .chain(&lane.parked)
                .for_each(|turn| turn.halt.cancel());
        }
        drop::<Vec<Waiting>>(gone);
    }

    /// Whether two messages may be answered as one: by the same agent, with the same rights, under
    /// the same person's limits if there are any, and neither by a turn begun before.
    pub(super) fn are_alike(&self, one: &Waiting, other: &Waiting) -> bool {
        let (ours, theirs) = (&one.accepted.inbound.origin, &other.accepted.inbound.origin);
        let snapshot = self.snapshots.current();
        // Without the pin: a pin belongs to the place, and so counts for both messages.
        let agent_of = |origin: &Origin| routing::route(&snapshot.table, None, origin).agent;
        let access = &snapshot.config.access;
        let may_differ = || {
            !access.limits.of(one.accepted.role).has_budget() && agent_of(ours) == agent_of(theirs)
        };
        one.accepted.role == other.accepted.role
            && one.arrived == Arrived::Now
            && other.arrived == Arrived::Now
            && (access.people.is_same(&ours.person, &theirs.person) || may_differ())
    }

    /// The share that a turn for this message counts in. None for people without a bound, and for
    /// a subagent whose parent waits: the parent's turn counts already, and may never end if its
    /// subagent has to wait for the end of another turn.
    pub(super) fn share(&self, accepted: &Accepted) -> Option<Share> {
        let snapshot = self.snapshots.current();
        let access = &snapshot.config.access;
        let most = usize::try_from(access.limits.of(accepted.role).turns_at_once).ok()?;
        let internal = &accepted.inbound.extras.internal;
        let is_awaited = matches!(internal, Some(Internal::Subagent { .. }))
            && self.subagents.is_awaited(accepted.id);
        (most > 0 && !is_awaited).then(|| Share {
            person: access
                .people
                .main_id(&accepted.inbound.origin.person)
                .clone(),
            most,
        })
    }

    pub(super) fn has_room(&self, accepted: &Accepted) -> bool {
        self.share(accepted)
            .is_none_or(|share| self.turns.has_room(&share))
    }
}
