//! Resting jobs, failing jobs, and jobs without a task.

use rusqlite::Connection;

use super::Patient;
use crate::operations::diagnosis::Finding;
use crate::operations::job_orders::{Obstacle, task};
use crate::operations::known_jobs::{self, Job};

/// Jobs told by name.
const MOST_NAMED: usize = 5;

/// None in a house without jobs.
pub(super) async fn check(patient: &Patient<'_>) -> Option<Finding> {
    let (db, snapshot) = (patient.db()?, patient.snapshot.clone()?);
    let read = move |connection: &Connection| known_jobs::all(connection, &snapshot);
    let jobs = db.read(read).await.ok()?;
    if jobs.is_empty() {
        return None;
    }
    let named = |job: &Job| format!("{}/{}", job.agent.id, job.row.name);
    let lacking: Vec<String> = jobs
        .iter()
        .filter(|job| job.is_active() && matches!(task(job), Err(Obstacle::Failure(_))))
        .map(named)
        .collect();
    if !lacking.is_empty() {
        let text = format!("The task of {} cannot be read.", several(&lacking));
        return Some(
            Finding::bad("jobs", text).fix("Look at prompt_file of the job in config.toml."),
        );
    }
    let by_itself = |job: &&Job| {
        let paused = job.row.paused.as_ref();
        paused.is_some_and(|paused| paused.why.is_some())
    };
    let paused: Vec<String> = jobs.iter().filter(by_itself).map(named).collect();
    if !paused.is_empty() {
        let text = format!("Paused after trouble: {}.", several(&paused));
        return Some(
            Finding::warn("jobs", text)
                .fix("parlor job show JOB tells why, parlor job resume JOB lets it go on."),
        );
    }
    let failing: Vec<String> = jobs
        .iter()
        .filter(|job| job.row.failures > 0)
        .map(named)
        .collect();
    if !failing.is_empty() {
        let text = format!("Failed last: {}.", several(&failing));
        return Some(Finding::note("jobs", text).fix("parlor job show JOB tells why."));
    }
    let active = jobs.iter().filter(|job| job.is_active()).count();
    let text = match active {
        1 => "1 job has its next time.".to_owned(),
        count => format!("{count} jobs have their next time."),
    };
    Some(Finding::ok("jobs", text))
}

fn several(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMED).cloned();
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
