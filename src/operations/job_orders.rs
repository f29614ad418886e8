//! Runs of jobs: a slot is taken and its turn is queued in one transaction.

use rusqlite::Transaction;

use super::known_jobs::Job;
use crate::access::Role;
use crate::agents;
use crate::config::JobPrompt;
use crate::domain::{Addressed, Extras, Inbound, Internal, JobRun, MessageId, Origin};
use crate::jobs::{SkipReason, Slot, Verdict};
use crate::records::agent_pauses;
use crate::records::audit::Actor;
use crate::records::inbox::{self, Accepted};
use crate::records::jobs::{self, LastRun, MOST_FAILURES, RunRow, State};
use crate::records::pauses::{self, Work};

/// A slot whose time has come, with all that was looked up for it.
#[derive(Debug, Clone)]
pub(crate) struct JobOrder {
    pub(crate) job: Job,
    pub(crate) slot: Slot,
    /// The role of the job's person with the agent, now.
    pub(crate) role: Role,
    /// The task, or the reason why there is none.
    pub(crate) task: Result<String, Obstacle>,
    /// Run by hand, whatever the schedule says.
    pub(crate) by_hand: bool,
}

/// Why a job cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// For now. The slot is skipped.
    Passing(String),
    /// It counts as a failure.
    Failure(String),
    /// For good. The job is paused.
    Lasting(String),
}

/// What became of a slot.
#[derive(Debug)]
pub(crate) enum Taken {
    Queued(Box<Accepted>),
    Skipped(String),
    /// The only slot of a job waits for the end of a pause, for this reason.
    Kept(String),
    /// The job rests from now on, for this reason.
    Paused(String),
    /// The slot was taken before.
    Before,
}

/// Claims a slot, and queues its turn unless something speaks against it.
pub(crate) fn take(tx: &Transaction<'_>, order: &JobOrder, now: i64) -> rusqlite::Result<Taken> {
    let JobOrder { job, slot, .. } = order;
    let id = job.row.id;
    // The clock has gone back, and the slot comes again.
    let kept = jobs::kept_for(tx, id, slot.at)?;
    if kept.is_none() && jobs::is_claimed(tx, id, slot.at)? {
        jobs::set_handled(tx, id, slot.at)?;
        return Ok(Taken::Before);
    }
    if let Some(why) = pause(tx, order)? {
        return match order.job.timetable.when.is_once() && !order.by_hand {
            true => keep(tx, order, kept, why, now),
            false => skip(tx, order, why.to_owned(), now),
        };
    }
    if kept.is_some() {
        jobs::take_kept(tx, id, slot.at)?;
    }
    match obstacle(tx, order, kept.is_some(), now)? {
        None => queue(tx, order, kept, now),
        Some(Obstacle::Passing(why)) => skip(tx, order, why, now),
        Some(Obstacle::Failure(why)) => {
            jobs::claim(tx, id, &row(order, State::Failed, Some(why.clone()), now))?;
            match jobs::note_failure(tx, id, now)? >= MOST_FAILURES {
                true => rest(tx, order, why, now),
                false => Ok(Taken::Skipped(why)),
            }
        }
        Some(Obstacle::Lasting(why)) => {
            skip(tx, order, why.clone(), now)?;
            rest(tx, order, why, now)
        }
    }
}

fn skip(tx: &Transaction<'_>, order: &JobOrder, why: String, now: i64) -> rusqlite::Result<Taken> {
    let id = order.job.row.id;
    jobs::claim(tx, id, &row(order, State::Skipped, Some(why.clone()), now))?;
    if order.is_last() {
        jobs::end(tx, id, now)?;
    }
    Ok(Taken::Skipped(why))
}

/// A job that comes once has no later slot, so its slot outlives a pause.
fn keep(
    tx: &Transaction<'_>,
    order: &JobOrder,
    kept: Option<String>,
    why: &str,
    now: i64,
) -> rusqlite::Result<Taken> {
    let id = order.job.row.id;
    if kept.is_none() {
        let reason = Some(format!("waits: {why}"));
        jobs::claim(tx, id, &row(order, State::Queued, reason, now))?;
    }
    // The slot stays due.
    jobs::set_handled(tx, id, order.job.row.handled.min(order.slot.at - 1))?;
    Ok(Taken::Kept(why.to_owned()))
}

fn rest(tx: &Transaction<'_>, order: &JobOrder, why: String, now: i64) -> rusqlite::Result<Taken> {
    jobs::pause(tx, order.job.row.id, &Actor::Gateway, Some(&why), now)?;
    Ok(Taken::Paused(why))
}

fn queue(
    tx: &Transaction<'_>,
    order: &JobOrder,
    kept: Option<String>,
    now: i64,
) -> rusqlite::Result<Taken> {
    let id = order.job.row.id;
    let reason = match (order.slot.verdict, kept) {
        _ if order.by_hand => Some("by hand".to_owned()),
        (_, Some(why)) => Some(format!("late: it {}", why.replacen("waits", "waited", 1))),
        (Verdict::RunLate, None) => Some("late: the gateway was off".to_owned()),
        _ => None,
    };
    jobs::claim(tx, id, &row(order, State::Queued, reason, now))?;
    let inbound = inbound(order, now);
    let Some(inbox_id) = inbox::insert_internal(tx, &inbound, now)? else {
        return Ok(Taken::Before);
    };
    jobs::queued(tx, id, order.slot.at, inbox_id)?;
    let accepted = Accepted::with_role(inbox_id, inbound, order.role);
    Ok(Taken::Queued(Box::new(accepted)))
}

fn row(order: &JobOrder, state: State, reason: Option<String>, now: i64) -> RunRow {
    RunRow {
        slot: order.slot.at,
        at: now,
        state,
        reason,
        missed: u32::try_from(order.slot.missed_before).unwrap_or(u32::MAX),
        inbox_id: None,
        ended_at: (state != State::Queued).then_some(now),
    }
}

/// The pause that stands in the way of a run.
fn pause(tx: &Transaction<'_>, order: &JobOrder) -> rusqlite::Result<Option<&'static str>> {
    let row = &order.job.row;
    let rests = match jobs::get(tx, row.id)? {
        Some(current) => current.paused.is_some(),
        None => true,
    };
    if !order.by_hand {
        let is_missed = matches!(order.slot.verdict, Verdict::Skip(_));
        // The obstacles of the job itself come first.
        if rests || is_missed && jobs::kept_for(tx, row.id, order.slot.at)?.is_none() {
            return Ok(None);
        }
        if pauses::get(tx, Work::Background)?.is_some() {
            return Ok(Some("background work is paused"));
        }
    }
    let is_paused = agent_pauses::of(tx, row.agent)?.is_some();
    Ok(is_paused.then_some("the agent is paused"))
}

/// The reason against a run, if there is any. A kept slot is late because of a pause, and not missed.
fn obstacle(
    tx: &Transaction<'_>,
    order: &JobOrder,
    is_kept: bool,
    now: i64,
) -> rusqlite::Result<Option<Obstacle>> {
    let passing = |why: &str| Ok(Some(Obstacle::Passing(why.to_owned())));
    let row = &order.job.row;
    // The row may have changed since the slot was looked at.
    let Some(current) = jobs::get(tx, row.id)? else {
        return passing("the job was removed");
    };
    if !order.by_hand {
        match order.slot.verdict {
            Verdict::Skip(SkipReason::Missed) if !is_kept => {
                return passing("missed while the gateway was off");
            }
            Verdict::Skip(SkipReason::Quiet) => return passing("quiet hours"),
            Verdict::Skip(SkipReason::Missed) | Verdict::Run | Verdict::RunLate => {}
        }
        if current.paused.is_some() {
            return passing("the job is paused");
        }
        if current.wait_until > now {
            return passing("waits after a failure");
        }
    }
    match jobs::look_back(tx, row.id)? {
        LastRun::UnderWay => return passing("the last run has not ended"),
        LastRun::Undelivered(error) if !order.by_hand => {
            let is_over = current.failures + 1 >= MOST_FAILURES || jobs::is_place_lost(&error);
            if is_over {
                let why = format!("its answers cannot be sent: {error}");
                return Ok(Some(Obstacle::Lasting(why)));
            }
        }
        LastRun::Undelivered(_) | LastRun::Ended => {}
    }
    Ok(order.task.as_ref().err().cloned())
}

impl JobOrder {
    /// Whether a stored job is over after this slot.
    pub(crate) fn is_last(&self) -> bool {
        !self.by_hand && self.job.row.definition.is_some() && self.job.timetable.when.is_once()
    }
}

fn inbound(order: &JobOrder, now: i64) -> Inbound {
    let JobOrder { job, slot, .. } = order;
    let run = JobRun {
        job: Some(job.row.id),
        slot: slot.at,
        name: job.row.name.to_string(),
        agent: job.row.agent,
        to: job.place.clone(),
        is_once: job.timetable.when.is_once(),
        is_heartbeat: job.is_heartbeat(),
        read: job.read.bits(),
        most: None,
    };
    Inbound {
        update_id: format!("job-{}-{}", job.row.id, slot.at),
        origin: Origin::new(job.session(), job.person()),
        person_name: format!("job {}", job.row.name),
        text: order.task.clone().unwrap_or_default(),
        addressed: Addressed::Privately,
        message: MessageId(String::new()),
        sent_at: now,
        extras: Extras {
            internal: Some(Internal::Job(run)),
            ..Extras::default()
        },
    }
}

/// Reads the task of a job. Blocks on the disk.
pub(crate) fn task(job: &Job) -> Result<String, Obstacle> {
    let read = |name: &str| agents::read_file_of(&job.agent, name);
    match &job.prompt {
        JobPrompt::Text(text) => Ok(text.clone()),
        JobPrompt::File(name) => match read(name) {
            Ok(Some(text)) if !text.trim().is_empty() => Ok(text),
            Ok(Some(_)) => Err(Obstacle::Failure(format!("{name} is empty"))),
            Ok(None) => Err(Obstacle::Failure(format!("{name} is not there"))),
            Err(error) => Err(Obstacle::Failure(format!("{name} cannot be read: {error}"))),
        },
        JobPrompt::Heartbeat => match read(HEARTBEAT_FILE) {
            Ok(Some(text)) if has_tasks(&text) => Ok(format!("{HEARTBEAT}\n\n{}", text.trim())),
            Ok(Some(_)) => Err(Obstacle::Passing(format!("{HEARTBEAT_FILE} is empty"))),
            Ok(None) => Err(Obstacle::Passing(format!("{HEARTBEAT_FILE} is not there"))),
            Err(error) => Err(Obstacle::Failure(format!(
                "{HEARTBEAT_FILE} cannot be read: {error}"
            ))),
        },
    }
}

/// The list of an agent's heartbeat, in its folder.
pub(crate) const HEARTBEAT_FILE: &str = "HEARTBEAT.md";
const HEARTBEAT: &str = "Look through this list, and do what is due. If there is nothing that people should hear, answer with the single word NOTHING.";

/// Whether a list has more than headings.
fn has_tasks(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("<!--"))
}
