//! The parent's side: starts a child, feeds it, reads its output, and ends it in time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::inside::UNCONFINED;
use super::{Failure, Job, PROGRAM, Ran, VERB, pipes};

/// As much as a pipe takes at a time.
const BUFFER: usize = 64 * 1024;

pub(super) async fn run(
    job: &'static Job,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Ran {
    let mut output = Vec::new();
    let end = match start(job) {
        Ok(started) => finish(job, started, feed, &mut output).await,
        Err(error) => {
            tracing::error!("no process for the work on strangers' bytes: {error}");
            Err(Failure::NotStarted)
        }
    };
    Ran { output, end }
}

struct Started {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

/// The child gets no environment and no open file but its pipes. Its group is its own, so that
/// Ctrl-C in a terminal does not reach it. It is started on a thread of the runtime, which stays: the
/// end of the starting thread would end the child.
fn start(job: &Job) -> io::Result<Started> {
    let program = PROGRAM
        .get()
        .ok_or_else(|| io::Error::other("the program's own file is not known"))?;
    let mut child = Command::new(program)
        .arg0("parlor")
        .args([VERB, job.name])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    Ok(Started {
        child,
        input,
        output,
    })
}

async fn finish(
    job: &'static Job,
    started: Started,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let Started {
        mut child,
        input,
        output: pipe,
    } = started;
    let input = input.into_owned_fd().map_err(|_| Failure::NotStarted)?;
    let input = BufWriter::with_capacity(BUFFER, File::from(input));
    let feeding = tokio::task::spawn_blocking(move || pipes::feed(input, &job.limits, feed));
    let working = async {
        read(pipe, output, job.limits.output_bytes).await?;
        let status = child.wait().await.map_err(|_| Failure::Broke)?;
        judge(job, status)
    };
    let end = tokio::time::timeout(job.limits.time, working)
        .await
        .unwrap_or(Err(Failure::Time(job.limits.time)));
    if end.is_err() {
        // The child may have ended already.
        drop(child.kill().await);
    }
    let fed = feeding.await.unwrap_or(Err(Failure::Broke));
    fed.and(end)
}

async fn read(pipe: ChildStdout, output: &mut Vec<u8>, most: usize) -> Result<(), Failure> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut pipe = pipe.take(limit);
    pipe.read_to_end(output).await.map_err(|_| Failure::Broke)?;
    if output.len() > most {
        output.truncate(most);
        return Err(Failure::Output);
    }
    Ok(())
}

/// The operating system ends a child without memory or time by a signal.
fn judge(job: &Job, status: ExitStatus) -> Result<(), Failure> {
    let is_signal = |signal: Signal| status.signal() == Some(signal.as_raw());
    if status.success() {
        return Ok(());
    }
    if is_signal(Signal::XCPU) {
        return Err(Failure::Time(job.limits.time));
    }
    // Without memory a program aborts, and with its stack full too; KILL is from the kernel, which is
    // out of memory itself.
    let is_out_of_memory = [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::KILL]
        .into_iter()
        .any(is_signal);
    if is_out_of_memory {
        return Err(Failure::Memory);
    }
    if status.code() == Some(i32::from(UNCONFINED)) {
        tracing::error!(
            "a child could not set its own limits, so it did not work on strangers' bytes; this system, or a filter of \
             system calls, has to allow setrlimit, prctl and capset"
        );
        return Err(Failure::NotStarted);
    }
    tracing::error!(
        "the work on strangers' bytes ({}) ended with {status}",
        job.name
    );
    Err(Failure::Broke)
}
