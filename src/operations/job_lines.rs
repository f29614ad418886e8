//! Jobs as programs read them: in `parlor job --json` and in the HTTP API.

use serde::Serialize;
use utoipa::ToSchema;

use super::jobs::JobView;
use super::named::{Moment, Named};
use super::names::Names;
use crate::records::jobs::RunRow;

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobLine {
    pub(crate) id: i64,
    agent: Named,
    name: String,
    /// config, chat, cli or import.
    source: &'static str,
    when: String,
    /// Null: that of the machine.
    time_zone: Option<String>,
    /// The next three times.
    next: Vec<Moment>,
    /// Null: the answer is kept and sent to nobody.
    place: Option<Named>,
    /// own or place.
    context: &'static str,
    quiet: Option<String>,
    /// skip or once.
    missed: &'static str,
    task: String,
    /// Null: the operator.
    made_by: Option<Named>,
    enabled: bool,
    paused: bool,
    paused_why: Option<String>,
    /// In a row.
    failures: u32,
    last: Option<JobRunLine>,
}

/// A slot of a job that was run or skipped.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobRunLine {
    slot: Moment,
    at: Moment,
    /// queued, done, nothing, failed, refused, stopped, undelivered or skipped.
    state: &'static str,
    reason: Option<String>,
    /// Earlier slots that were missed, and that this run stands for too.
    missed_before: u32,
    /// The number of its turn.
    #[serde(rename = "ref")]
    reference: Option<i64>,
    ended_at: Option<Moment>,
}

/// A job with its latest runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobDetails {
    #[serde(flatten)]
    pub(crate) job: JobLine,
    pub(crate) runs: Vec<JobRunLine>,
}

impl JobLine {
    pub(crate) fn of(job: &JobView, names: &Names) -> Self {
        let maker = job.maker.as_ref();
        JobLine {
            id: job.id,
            agent: names.agent(&job.agent),
            name: job.name.clone(),
            source: job.source.as_str(),
            when: job.when.clone(),
            time_zone: job.zone.clone(),
            next: job.next.iter().copied().map(Moment).collect(),
            place: job.place.as_ref().map(|place| names.place(place)),
            context: job.context.as_str(),
            quiet: job.quiet.clone(),
            missed: job.missed.as_str(),
            task: job.task.clone(),
            made_by: maker.map(|maker| Named::new(maker, job.maker_name.as_deref())),
            enabled: job.is_enabled,
            paused: job.paused.is_some(),
            paused_why: job.paused.as_ref().and_then(|paused| paused.why.clone()),
            failures: job.failures,
            last: job.last.as_ref().map(JobRunLine::of),
        }
    }
}

impl JobRunLine {
    fn of(run: &RunRow) -> Self {
        JobRunLine {
            slot: Moment(run.slot),
            at: Moment(run.at),
            state: run.state.as_str(),
            reason: run.reason.clone(),
            missed_before: run.missed,
            reference: run.inbox_id,
            ended_at: run.ended_at.map(Moment),
        }
    }
}

impl JobDetails {
    pub(crate) fn of(job: &JobView, runs: &[RunRow], names: &Names) -> Self {
        JobDetails {
            job: JobLine::of(job, names),
            runs: runs.iter().map(JobRunLine::of).collect(),
        }
    }
}
