//! The child's side: a single job, from stdin to stdout.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use super::{Job, confine, walls};

/// The hidden verb of the command line.
pub(crate) const VERB: &str = "work-on";

/// The exit code of a child whose limits could not be set.
pub(super) const UNCONFINED: u8 = 3;

/// The reason why the verb did nothing, or not all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "`parlor {VERB}` is for Parlor itself, which starts it with input; there is nothing to type here"
    )]
    NotForPeople,
    #[error("the limits of this process could not be set: {0}")]
    Unconfined(io::Error),
    #[error("the work broke off: {0}")]
    Broke(io::Error),
}

impl Refusal {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Refusal::NotForPeople => 2,
            Refusal::Unconfined(_) => UNCONFINED,
            Refusal::Broke(_) => 1,
        }
    }
}

/// Does the job of this name. Limits are set before the first byte is read.
pub(crate) fn work_on(name: &str, jobs: &[&Job]) -> Result<(), Refusal> {
    let job = jobs
        .iter()
        .copied()
        .chain([&walls::WALLS])
        .find(|job| job.name == name)
        .filter(|_| !io::stdin().is_terminal())
        .ok_or(Refusal::NotForPeople)?;
    // A panic's text may quote the input.
    std::panic::set_hook(Box::new(|_| {}));
    confine::confine(&job.limits).map_err(Refusal::Unconfined)?;
    let mut input = io::stdin().lock().take(job.limits.input_bytes);
    #[expect(
        clippy::disallowed_methods,
        reason = "the parent reads this pipe, and no person does"
    )]
    let mut output = io::stdout().lock();
    // Without any input there is no parent.
    if input.fill_buf().map_err(Refusal::Broke)?.is_empty() {
        return Err(Refusal::NotForPeople);
    }
    let worked = (job.work)(&mut input, &mut output);
    worked.and_then(|()| output.flush()).map_err(Refusal::Broke)
}
