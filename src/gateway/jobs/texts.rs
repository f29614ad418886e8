//! Notices to owners about jobs.

/// A job rests until a person resumes the job.
pub(super) fn paused(agent: &str, id: &str, job: &str, why: &str) -> String {
    format!(
        "I have paused the job `{job}` of {agent}: {why}. \
         `parlor job show {id}/{job}` tells more, and `parlor job resume {id}/{job}` lets it go on."
    )
}

/// The reason for pausing a failing job.
pub(super) fn failed(times: u32, reason: &str) -> String {
    match reason {
        "" => format!("it failed {times} times in a row"),
        reason => format!("it failed {times} times in a row, last with: {reason}"),
    }
}

/// Jobs of a deleted place.
pub(in crate::gateway) fn gone(jobs: &[(String, String)]) -> String {
    let names = jobs.iter().map(|(agent, job)| format!("`{agent}/{job}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    match jobs.len() {
        1 => format!(
            "I have paused the job {names}, because its place is gone. `parlor job remove` lets go of it."
        ),
        _ => format!(
            "I have paused the jobs {names}, because their place is gone. `parlor job remove` lets go of them."
        ),
    }
}
