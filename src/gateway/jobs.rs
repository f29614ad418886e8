//! Runs jobs at their time. A single task sleeps until the next slot of any job.

mod texts;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Transaction;

use super::GatewayState;
use crate::clock::now_ms;
use crate::delivery::Delivery;
use crate::delivery::outbox::{self, Draft, Source as OutboxSource};
use crate::domain::AgentUid;
use crate::jobs::Look;
use crate::operations::job_orders::{self, JobOrder, Taken};
use crate::operations::known_jobs::{self, Job};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::inbox::Accepted;
use crate::records::jobs::{self, MOST_FAILURES, Settled, State};
use crate::storage::{Next, Patience, StoreError};

/// The longest sleep. The clock of the machine may be set, and a sleep does not count the time of a
/// suspended machine.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
const NO_JOBS_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// A smaller step back of the clock is no jump.
const MOST_DRIFT_MS: i64 = 2_000;
/// The number of slots per transaction.
const PORTION: usize = 250;

/// Runs jobs until the gateway stops. A gateway for a single question runs none.
pub(super) async fn run(state: Arc<GatewayState>) {
    if state.terminals.are_of_a_question() {
        return;
    }
    let mut snapshots = state.services.snapshots.changes();
    let mut patience = Patience::new("the jobs");
    let mut agenda = Agenda::default();
    // Set when the jobs have to be read anew.
    let mut is_old = true;
    loop {
        let worked = work(&state, &mut agenda, is_old).await;
        let wait = match worked {
            Ok(()) => {
                patience = Patience::new("the jobs");
                agenda.sleep(now_ms())
            }
            Err(ref error) => match patience.after(&state.stop, error).await {
                Next::Stopping => return,
                // A job with a failing write must not stop the others for ever.
                Next::Again | Next::Hopeless => LONGEST_SLEEP,
            },
        };
        is_old = worked.is_err();
        let edits = agenda.edits;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = state.services.sessions.alarm().rung() => {
                is_old |= state.services.sessions.alarm().edits() != edits;
            }
            changed = snapshots.changed() => {
                if changed.is_err() {
                    return;
                }
                is_old = true;
            }
            () = state.stop.cancelled() => return,
        }
        is_old |= agenda.has_clock_jumped(now_ms());
    }
}

async fn work(
    state: &Arc<GatewayState>,
    agenda: &mut Agenda,
    is_old: bool,
) -> Result<(), StoreError> {
    if settle(state).await? || is_old {
        *agenda = Agenda::read(state).await?;
    }
    loop {
        let due = agenda.due(now_ms());
        if due.is_empty() {
            return Ok(());
        }
        let mut harvest = Harvest::default();
        let taken = take_all(state, &due, &mut harvest).await;
        // After the last slot is on disk: turns that run would slow down the slots behind them.
        for accepted in harvest.queued {
            state.services.sessions.queue_job(accepted);
        }
        agenda.is_short |= taken?;
        agenda.put_back(&harvest.kept, now_ms());
        if agenda.is_short {
            // Paused jobs leave the agenda.
            *agenda = Agenda::read(state).await?;
        }
    }
}

/// The jobs by their next slot.
#[derive(Default)]
struct Agenda {
    jobs: Vec<Job>,
    /// The moment to look at a job, and its number.
    next: BinaryHeap<Reverse<(i64, usize)>>,
    edits: u64,
    /// The latest look at the clock.
    seen: i64,
    /// Jobs were paused since the agenda was read.
    is_short: bool,
}

impl Agenda {
    async fn read(state: &Arc<GatewayState>) -> Result<Self, StoreError> {
        let edits = state.services.sessions.alarm().edits();
        let snapshot = state.services.snapshots.current();
        let db = &state.services.db;
        let mut rows = db.read(jobs::all).await?;
        let agents: Vec<AgentUid> = snapshot
            .registry
            .all()
            .iter()
            .map(|agent| agent.uid)
            .collect();
        let written = known_jobs::of_config(&snapshot);
        if !jobs::is_config_followed(&rows, &agents, &written) {
            let follow = move |tx: &Transaction<'_>| {
                jobs::follow_config(tx, &agents, &written, now_ms())?;
                jobs::all(tx)
            };
            rows = db.write(follow).await?;
        }
        let jobs = known_jobs::known(&snapshot, rows);
        let is_ours = |job: &Job| job.is_active() && state.serves(job);
        let jobs: Vec<Job> = jobs.into_iter().filter(is_ours).collect();
        let mut agenda = Agenda {
            jobs,
            edits,
            seen: now_ms(),
            ..Agenda::default()
        };
        for index in 0..agenda.jobs.len() {
            let now = agenda.seen;
            let Look { due, next } = agenda.look(index, now);
            let at = due.map_or(next, |_| Some(now));
            agenda.next.extend(at.map(|at| Reverse((at, index))));
        }
        Ok(agenda)
    }

    fn look(&self, index: usize, now: i64) -> Look {
        let job = &self.jobs[index];
        job.timetable
            .look(&job.zone, &job.seed(), job.row.handled, now)
    }

    /// How long to sleep. Never longer than the clock can be trusted.
    fn sleep(&self, now: i64) -> Duration {
        let next = self.next.peek().map(|Reverse((at, _))| *at);
        // Without jobs there is nothing to wake for.
        let Some(next) = next else {
            return NO_JOBS_SLEEP;
        };
        let left = next.saturating_sub(now).max(0);
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        left.min(LONGEST_SLEEP)
    }

    /// After a jump to the past, slots may come sooner than the agenda says.
    fn has_clock_jumped(&mut self, now: i64) -> bool {
        let before = std::mem::replace(&mut self.seen, now);
        now < before - MOST_DRIFT_MS
    }

    /// Slots that wait for the end of a pause are looked at again.
    fn put_back(&mut self, kept: &[(i64, i64)], now: i64) {
        let again = now.saturating_add(LONGEST_SLEEP.as_millis().try_into().unwrap_or(i64::MAX));
        for (id, slot) in kept {
            let mut jobs = self.jobs.iter();
            if let Some(index) = jobs.position(|job| job.row.id == *id) {
                self.jobs[index].row.handled = slot - 1;
                self.next.push(Reverse((again, index)));
            }
        }
    }

    /// Takes the due slots off the agenda.
    fn due(&mut self, now: i64) -> Vec<(Job, crate::jobs::Slot)> {
        let mut due = Vec::new();
        while let Some(Reverse((at, index))) = self.next.peek().copied() {
            if at > now {
                break;
            }
            self.next.pop();
            let Look { due: slot, next } = self.look(index, now);
            if let Some(slot) = slot {
                self.jobs[index].row.handled = slot.at;
                due.push((self.jobs[index].clone(), slot));
            }
            self.next.extend(next.map(|at| Reverse((at, index))));
        }
        due
    }
}

/// Takes slots, in portions. True if a job is paused now.
async fn take_all(
    state: &Arc<GatewayState>,
    due: &[(Job, crate::jobs::Slot)],
    harvest: &mut Harvest,
) -> Result<bool, StoreError> {
    let mut is_paused = false;
    for portion in due.chunks(PORTION) {
        is_paused |= take_portion(state, portion, harvest).await?;
    }
    Ok(is_paused)
}

/// A job with a failing write holds up no other.
async fn take_portion(
    state: &Arc<GatewayState>,
    due: &[(Job, crate::jobs::Slot)],
    harvest: &mut Harvest,
) -> Result<bool, StoreError> {
    let together = take(state, due, harvest).await;
    if !together.as_ref().is_err_and(StoreError::is_permanent) {
        return together;
    }
    let mut is_paused = false;
    for one in due {
        match take(state, std::slice::from_ref(one), harvest).await {
            Ok(paused) => is_paused |= paused,
            Err(error) if error.is_permanent() => {
                let (agent, job) = (&one.0.agent.id, &one.0.row.name);
                tracing::error!(agent.id = %agent, %job, "the job {job} is left out: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(is_paused)
}

/// Takes slots. They are added to `harvest`. True if a job is paused now.
async fn take(
    state: &Arc<GatewayState>,
    due: &[(Job, crate::jobs::Slot)],
    harvest: &mut Harvest,
) -> Result<bool, StoreError> {
    let orders = Arc::new(state.operations.orders(due).await?);
    let (delivery, shared) = (state.delivery.clone(), orders.clone());
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        let mut taken = Claimed::default();
        for order in shared.iter() {
            taken.add(tx, &delivery, order, job_orders::take(tx, order, now)?, now)?;
        }
        Ok(taken)
    };
    let taken = state.services.db.write(write).await?;
    let is_paused = !taken.told.is_empty() || taken.has_paused;
    state.delivery.submit_drafted(&taken.told);
    harvest.queued.extend(taken.harvest.queued);
    harvest.kept.extend(taken.harvest.kept);
    Ok(is_paused)
}

/// Slots that are not over when they are taken.
#[derive(Default)]
struct Harvest {
    queued: Vec<Accepted>,
    /// The jobs and the slots that wait for the end of a pause.
    kept: Vec<(i64, i64)>,
}

/// The result of taking slots.
#[derive(Default)]
struct Claimed {
    harvest: Harvest,
    told: Vec<Draft>,
    has_paused: bool,
}

impl Claimed {
    fn add(
        &mut self,
        tx: &Transaction<'_>,
        delivery: &Delivery,
        order: &JobOrder,
        taken: Taken,
        now: i64,
    ) -> rusqlite::Result<()> {
        let (agent, job) = (&order.job.agent.id, &order.job.row.name);
        match taken {
            Taken::Queued(accepted) => {
                tracing::info!(agent.id = %agent, %job, inbox.id = accepted.id, "the job {job} is due");
                self.harvest.queued.push(*accepted);
            }
            Taken::Skipped(why) => {
                tracing::info!(agent.id = %agent, %job, "the job {job} was skipped: {why}");
            }
            Taken::Kept(why) => {
                tracing::info!(agent.id = %agent, %job, "the job {job} waits: {why}");
                self.harvest.kept.push((order.job.row.id, order.slot.at));
            }
            Taken::Paused(why) => {
                tracing::warn!(agent.id = %agent, %job, "the job {job} is paused: {why}");
                self.has_paused = true;
                self.told.extend(tell(tx, delivery, &order.job, &why, now)?);
            }
            Taken::Before => {}
        }
        Ok(())
    }
}

/// Tells the owners about a resting job, in the transaction of the pause.
fn tell(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    job: &Job,
    why: &str,
    now: i64,
) -> rusqlite::Result<Vec<Draft>> {
    let change = Change::new(Action::JobPause)
        .of(&job.agent.id)
        .about(&job.row.name);
    audit::note(tx, &Actor::Gateway, &change.to(why), now)?;
    let text = texts::paused(
        &job.agent.label(),
        job.agent.id.as_str(),
        job.row.name.as_str(),
        why,
    );
    let rows = delivery.draft_for_owners(&text);
    outbox::insert(tx, &rows, OutboxSource::default(), now)?;
    Ok(rows)
}

impl GatewayState {
    /// Whether this gateway runs the job. A chat's gateway has no platform, and leaves the jobs of
    /// platforms to `parlor run`.
    fn serves(&self, job: &Job) -> bool {
        let is_reached = || {
            job.place
                .as_ref()
                .is_none_or(|to| self.delivery.reaches(to))
        };
        !self.terminals.are_of_a_chat() || is_reached()
    }

    /// Tells the owners about jobs of a deleted place. The pause itself is written.
    pub(super) fn tell_jobs_are_paused(&self, jobs: &[(String, String)]) {
        let rows = Arc::new(self.delivery.draft_for_owners(&texts::gone(jobs)));
        let (db, delivery) = (self.services.db.clone(), self.delivery.clone());
        let guard = self.work.token();
        let telling = async move {
            let written = rows.clone();
            let write = move |tx: &Transaction<'_>| {
                outbox::insert(tx, &written, OutboxSource::default(), now_ms())
            };
            match db.write(write).await {
                Ok(()) => delivery.submit_drafted(&rows),
                Err(error) => tracing::warn!("the owners are not told about jobs: {error}"),
            }
            drop(guard);
        };
        tokio::spawn(telling);
    }
}

/// Writes down how turns of jobs ended. True if a job is paused now.
async fn settle(state: &Arc<GatewayState>) -> Result<bool, StoreError> {
    let is_open = state.services.db.read(jobs::has_ended_turns).await?;
    if !is_open {
        return Ok(false);
    }
    let (delivery, snapshot) = (state.delivery.clone(), state.services.snapshots.current());
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        let settled = jobs::settle(tx, now)?;
        let rows = settled.iter().map(|run| jobs::get(tx, run.job));
        let rows: Vec<_> = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let jobs = known_jobs::known(&snapshot, rows.into_iter().flatten().collect());
        let (mut told, mut is_other) = (Vec::new(), false);
        for run in &settled {
            if let Some(job) = jobs.iter().find(|job| job.row.id == run.job) {
                is_other |= end(tx, &delivery, job, run, &mut told, now)?;
            }
        }
        Ok((told, is_other))
    };
    let (told, is_other) = state.services.db.write(write).await?;
    state.delivery.submit_drafted(&told);
    Ok(is_other)
}

/// The end of a run: a single job is over, and a job with repeated failures rests.
fn end(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    job: &Job,
    run: &Settled,
    told: &mut Vec<Draft>,
    now: i64,
) -> rusqlite::Result<bool> {
    let is_once = job.row.definition.is_some() && job.timetable.when.is_once();
    let is_its_slot = matches!(job.timetable.when, crate::jobs::When::At(at) if at == run.slot);
    if is_once && is_its_slot {
        // The agenda has no further slot of the job.
        jobs::end(tx, job.row.id, now)?;
        return Ok(false);
    }
    let is_hopeless = run.state == State::Failed && run.failures >= MOST_FAILURES;
    if !is_hopeless {
        return Ok(false);
    }
    let why = texts::failed(run.failures, run.reason.as_deref().unwrap_or_default());
    if jobs::pause(tx, job.row.id, &Actor::Gateway, Some(&why), now)? {
        told.extend(tell(tx, delivery, job, &why, now)?);
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
