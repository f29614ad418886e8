//! Subagents: how they are begun, awaited, reported and stopped; and messages between places.

mod effects;
mod internal_turn;
mod item;
mod message_send;
mod rows;
mod schedule;
mod submit;
mod texts;

use std::sync::Arc;

use dashmap::{DashMap, DashSet};
use rusqlite::{Connection, Transaction};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::access::people;
use crate::clock::now_ms;
use crate::delivery::Delivery;
use crate::domain::{AgentUid, Internal, JobRun, Labels, SessionKey};
use crate::home::Snapshot;
use crate::jobs::Alarm;
use crate::records::inbox::{self, Accepted};
use crate::records::jobs;
use crate::records::subagents::{self, End, State, Subagent, SubagentRow};
use crate::routing::Router;
use crate::routing::aliases::Aliases;
use crate::storage::{Db, Durability, Next, Patience, StoreError};
use crate::tools::{OnFinish, Parent};
use crate::turn::Charge;

pub(crate) use effects::{Asker, Carried};
pub(crate) use internal_turn::InternalTurn;
pub use item::Item;
pub(crate) use rows::end as write_end;
pub use submit::Arrived;
pub(crate) use submit::{LaneRequest, Submit};
pub(crate) use texts::{asked, introduction, result, summary, to_report};

/// Begins, watches and stops subagents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Subagents {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    router: Router,
    aliases: Arc<Aliases>,
    delivery: Delivery,
    submit: Submit,
    work: TaskTracker,
    tasks: TaskTracker,
    alarm: Alarm,
    stop: CancellationToken,
    /// Subagents that have not ended, by their inbox row.
    running: DashMap<i64, Running>,
    /// Wakes turns waiting for the end of a subagent, by its run.
    endings: DashMap<String, Arc<Notify>>,
    /// Runs of ended subagents whose end cannot be written. Their parents must not wait for ever.
    lost: DashSet<String>,
}

/// The services that subagents use.
pub(crate) struct Deps {
    pub(crate) db: Db,
    pub(crate) router: Router,
    pub(crate) aliases: Arc<Aliases>,
    pub(crate) delivery: Delivery,
    pub(crate) submit: Submit,
    pub(crate) work: TaskTracker,
    pub(crate) tasks: TaskTracker,
    /// Wakes the scheduler of jobs.
    pub(crate) alarm: Alarm,
    pub(crate) stop: CancellationToken,
}

/// A subagent that has not ended.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    run: String,
    /// The place of the parent turn.
    pub(crate) parent: SessionKey,
    pub(crate) parent_inbox_id: i64,
    /// The agent of the parent turn.
    parent_agent: AgentUid,
    /// The parent's reaction to the end.
    pub(crate) then: OnFinish,
    session: SessionKey,
    item: Item,
}

/// The row of an internal message's subagent is missing.
#[derive(Debug)]
pub struct Unknown;

impl Subagents {
    pub(crate) fn new(deps: Deps) -> Self {
        let Deps {
            db,
            router,
            aliases,
            delivery,
            submit,
            work,
            tasks,
            alarm,
            stop,
        } = deps;
        let (running, endings, lost) = (DashMap::new(), DashMap::new(), DashSet::new());
        let inner = Inner {
            db,
            router,
            aliases,
            delivery,
            submit,
            work,
            tasks,
            alarm,
            stop,
            running,
            endings,
            lost,
        };
        Subagents {
            inner: Arc::new(inner),
        }
    }

    /// Puts a subagent into its lane. Its rows are written already.
    fn launch(&self, subagent: &Subagent, accepted: Accepted, arrived: Arrived) {
        let running = Running {
            run: subagent.run.clone(),
            parent: subagent.parent.clone(),
            parent_inbox_id: subagent.parent_inbox_id,
            parent_agent: subagent.parent_agent,
            then: subagent.then,
            session: subagent.session.clone(),
            item: Item::of(&accepted),
        };
        self.inner.running.insert(accepted.id, running);
        self.inner.submit.queue(accepted, arrived);
    }

    /// Queues an internal message of an earlier process.
    pub(crate) async fn take_up(
        &self,
        snapshot: &Snapshot,
        accepted: Accepted,
    ) -> Result<Result<(), Unknown>, StoreError> {
        let access = &snapshot.config.access;
        let run = match accepted.inbound.extras.internal.clone() {
            Some(Internal::Subagent { run } | Internal::Report { run }) => run,
            Some(Internal::Job(run)) => return self.take_up_job(snapshot, accepted, run).await,
            None => return Ok(Err(Unknown)),
        };
        let access = access.clone();
        let read = self.inner.db.read(move |connection| {
            let Some(known) = subagents::get(connection, &run)? else {
                return Ok(None);
            };
            let now = people::standing(connection, &access, &known.subagent.person)?;
            Ok(Some((known, now)))
        });
        let Some((known, now)) = read.await? else {
            return Ok(Err(Unknown));
        };
        // The person may have lost rights since.
        let role = known.subagent.role.min(now.with(&known.agent_id));
        let accepted = Accepted::with_role(accepted.id, accepted.inbound, role);
        match accepted.inbound.extras.internal {
            Some(Internal::Subagent { .. }) => {
                self.launch(&known.subagent, accepted, Arrived::Before);
            }
            _ => self.inner.submit.queue(accepted, Arrived::Before),
        }
        Ok(Ok(()))
    }

    /// Queues the turn of a job, with the rights that its maker has now.
    async fn take_up_job(
        &self,
        snapshot: &Snapshot,
        accepted: Accepted,
        run: JobRun,
    ) -> Result<Result<(), Unknown>, StoreError> {
        let Some(agent) = snapshot.registry.by_uid(run.agent) else {
            return Ok(Err(Unknown));
        };
        let (access, agent) = (snapshot.config.access.clone(), agent.id.clone());
        let person = accepted.inbound.origin.person.clone();
        let read = move |connection: &Connection| {
            let is_known = match run.job {
                Some(job) => jobs::get(connection, job)?.is_some(),
                None => true,
            };
            let role = people::standing(connection, &access, &person)?.with(&agent);
            let role = run.most.map_or(role, |most| role.min(most));
            Ok(is_known.then_some(role))
        };
        let Some(role) = self.inner.db.read(read).await? else {
            return Ok(Err(Unknown));
        };
        self.queue_job(Accepted::with_role(accepted.id, accepted.inbound, role));
        Ok(Ok(()))
    }

    /// Queues the turn of a job. A full lane does not refuse it, because its slot is taken.
    pub(crate) fn queue_job(&self, accepted: Accepted) {
        self.inner.submit.queue(accepted, Arrived::Before);
    }

    /// Waits for the end of a subagent and returns its row. Fails when the process stops, and when
    /// the row cannot be read.
    pub(crate) async fn ended(&self, run: &str) -> Result<Option<SubagentRow>, StoreError> {
        let signal = self
            .inner
            .endings
            .entry(run.to_owned())
            .or_insert_with(|| Arc::new(Notify::new()))
            .clone();
        let mut patience = Patience::new("a turn");
        loop {
            let mut told = std::pin::pin!(signal.notified());
            // Enabled before the look into the store, so an end between the look and the wait is
            // not missed.
            told.as_mut().enable();
            let name = run.to_owned();
            match self
                .inner
                .db
                .read(move |connection| subagents::get(connection, &name))
                .await
            {
                Ok(Some(known)) if known.end.state == State::Running => {
                    if self.inner.lost.remove(run).is_some() {
                        return Ok(Some(lost(known)));
                    }
                    told.await;
                }
                Ok(known) => {
                    // The subagent may have ended before we waited; then only this call removes its
                    // `Notify`.
                    self.wake(run);
                    return Ok(known);
                }
                Err(error) => self.wait_for_store(&mut patience, error).await?,
            }
        }
    }

    /// All subagents of a turn. Fails when the process stops, and when the rows cannot be read.
    pub(crate) async fn of_turn(&self, inbox_id: i64) -> Result<Vec<SubagentRow>, StoreError> {
        let mut patience = Patience::new("a turn");
        loop {
            match self
                .inner
                .db
                .read(move |connection| subagents::of_turn(connection, inbox_id))
                .await
            {
                Ok(known) => return Ok(known),
                Err(error) => self.wait_for_store(&mut patience, error).await?,
            }
        }
    }

    async fn wait_for_store(
        &self,
        patience: &mut Patience,
        error: StoreError,
    ) -> Result<(), StoreError> {
        match patience.after(&self.inner.stop, &error).await {
            Next::Again => Ok(()),
            Next::Hopeless | Next::Stopping => Err(error),
        }
    }

    /// Ends a subagent whose turn cannot be carried through. The waiting parent is told.
    pub(crate) async fn fail(&self, inbox_id: i64, run: &str, told: String) {
        let end = End {
            state: State::Failed,
            result: told,
            used: Charge::default(),
            read: Labels::NONE,
            artifacts: Vec::new(),
        };
        let shared = Arc::new((run.to_owned(), end));
        let write = || {
            let shared = shared.clone();
            move |tx: &Transaction<'_>| subagents::finish(tx, &shared.0, &shared.1, now_ms())
        };
        self.end(run, write).await;
        self.over(inbox_id, run, None);
    }

    /// Writes the end of a subagent, or remembers the end if the write cannot work.
    async fn end<W, F>(&self, run: &str, write: W)
    where
        W: FnMut() -> F,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<bool> + Send + 'static,
    {
        let (db, stop) = (&self.inner.db, &self.inner.stop);
        if let Err(error) = db.write_patiently(stop, Durability::Kill, write).await {
            tracing::warn!(%run, "the end of a subagent is left to the next start: {error}");
            if error.is_permanent() {
                self.inner.lost.insert(run.to_owned());
            }
        }
    }

    /// Call after the end of a subagent is committed. Wakes the waiting parent, and queues the
    /// report if there is any.
    pub(crate) fn over(&self, inbox_id: i64, run: &str, report: Option<Accepted>) {
        self.inner.running.remove(&inbox_id);
        self.wake(run);
        if let Some(report) = report {
            self.inner.submit.queue(report, Arrived::Before);
        }
    }

    fn wake(&self, run: &str) {
        if let Some((_, signal)) = self.inner.endings.remove(run) {
            signal.notify_waiters();
        }
    }

    /// Stops subagents, begun or not. Their words so far are dropped.
    pub(crate) fn stop(&self, which: impl Fn(i64, &Running) -> bool) {
        let found = self
            .inner
            .running
            .iter()
            .filter(|entry| which(*entry.key(), entry.value()));
        let found: Vec<(i64, Running)> = found
            .map(|entry| (*entry.key(), entry.value().clone()))
            .collect();
        for (id, running) in found {
            self.inner.submit.halt(running.session, vec![id]);
            let guard = self.inner.work.token();
            self.inner
                .tasks
                .spawn(self.clone().write_stop(id, running.run, guard));
        }
    }

    async fn write_stop(self, id: i64, run: String, _guard: TaskTrackerToken) {
        let name = Arc::new(run);
        let write = || {
            let run = name.clone();
            move |tx: &Transaction<'_>| {
                let now = now_ms();
                inbox::call_off(tx, &[id], now)?;
                subagents::finish(
                    tx,
                    &run,
                    &End {
                        state: State::Stopped,
                        result: String::new(),
                        used: Charge::default(),
                        read: Labels::NONE,
                        artifacts: Vec::new(),
                    },
                    now,
                )
            }
        };
        self.end(&name, write).await;
        self.over(id, &name, None);
    }

    /// The subagents of a place that have not ended.
    pub(crate) fn of_place(&self, place: &SessionKey) -> Vec<Item> {
        let own = self
            .inner
            .running
            .iter()
            .filter(|entry| self.inner.aliases.current(&entry.parent) == *place);
        let mut items: Vec<Item> = own.map(|entry| entry.item.clone()).collect();
        items.sort_by(|one, other| one.ids.cmp(&other.ids));
        items
    }

    /// Whether the parent turn of this subagent waits for its end.
    pub(crate) fn is_awaited(&self, inbox_id: i64) -> bool {
        self.inner
            .running
            .get(&inbox_id)
            .is_some_and(|running| running.then == OnFinish::Wait)
    }

    /// The number of an agent's subagents that have not ended, over all places.
    fn count_of(&self, agent: AgentUid) -> usize {
        self.inner
            .running
            .iter()
            .filter(|entry| entry.parent_agent == agent)
            .count()
    }
}

/// A subagent that has ended without a trace in the store.
fn lost(known: SubagentRow) -> SubagentRow {
    let end = End {
        state: State::Failed,
        result: "its end could not be stored.".into(),
        used: Charge::default(),
        read: Labels::NONE,
        artifacts: Vec::new(),
    };
    SubagentRow { end, ..known }
}

/// The parent as seen by the tools of a subagent. If the parent agent is gone, the default agent
/// stands in.
pub(crate) fn parent(snapshot: &Snapshot, known: &SubagentRow) -> Arc<Parent> {
    let agent = snapshot.agent_or_default(known.subagent.parent_agent);
    let Subagent {
        parent,
        run,
        relation,
        tools,
        ..
    } = &known.subagent;
    Arc::new(Parent {
        agent,
        place: parent.clone(),
        run: run.clone(),
        relation: *relation,
        tools: tools.clone(),
    })
}
