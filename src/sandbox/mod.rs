//! Work on strangers' bytes, such as pages and patterns, in a child process with limits.
//!
//! The child is this program once more, with the hidden verb `work-on`. Before its first byte of
//! input the child gives up all it does not need (`confine`), then does a single `Job` from stdin
//! to stdout (`inside`), and ends. The parent bounds input, output and time (`child`). So a page
//! made to exhaust its reader, or a pattern without an end, costs a process that can be spared.

mod child;
mod confine;
#[cfg(test)]
pub(crate) mod in_process;
mod inside;
mod pipes;
mod walls;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

pub(crate) use inside::{VERB, work_on};
pub use walls::try_wall;

/// A kind of work for a child.
pub(crate) struct Job {
    /// The word after the verb.
    pub(crate) name: &'static str,
    pub(crate) limits: Limits,
    /// Runs in the child. Reads until the end of the input, or until enough is known.
    pub(crate) work: fn(&mut dyn BufRead, &mut dyn Write) -> io::Result<()>,
}

/// The limits of a child. The operating system keeps them, not the work itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Address space, with the program's own.
    pub(crate) memory_bytes: u64,
    /// On the wall clock, and on the processor's.
    pub(crate) time: Duration,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: usize,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct Ran {
    /// All that the child wrote, also before a failure.
    pub(crate) output: Vec<u8>,
    pub(crate) end: Result<(), Failure>,
}

/// The reason why a job has no end of its own. The text goes on after the name of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("took too much memory")]
    Memory,
    #[error("took longer than {} s", .0.as_secs())]
    Time(Duration),
    #[error("got more bytes than it may read")]
    Input,
    #[error("led to a result that is too long")]
    Output,
    #[error("broke off")]
    Broke,
    #[error("needs a process of its own, which could not be started; the log says why")]
    NotStarted,
}

/// Has a child do the job. `feed` writes the input, on a thread for blocking work; a child with
/// enough input closes the pipe, and this is no failure. Dropping the future ends the child.
pub(crate) async fn run(
    job: &'static Job,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Ran {
    // A unit test has no program to start. `tests/it/sandbox.rs` has the real child.
    #[cfg(test)]
    if PROGRAM.get().is_none() {
        return in_process::run(job, feed).await;
    }
    child::run(job, feed).await
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that children run, once for the whole process. Without a program, no work is
/// done at all: work in this process would have no limits.
pub fn use_program(path: impl Into<PathBuf>) {
    // A second call in the same process, as in tests, keeps the first.
    drop(PROGRAM.set(path.into()));
}

/// For the program itself: children run the same file.
pub(crate) fn use_this_program() {
    // The link leads to the running file, also after an update has replaced the file on disk.
    let link = Path::new("/proc/self/exe");
    if link.exists() {
        use_program(link);
    } else if let Ok(path) = std::env::current_exe() {
        use_program(path);
    }
}
