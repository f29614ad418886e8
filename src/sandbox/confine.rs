//! Gives up what a job does not need: memory, time, files, rights. Cannot be undone.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

use super::Limits;

/// Added to the priority: turns and messages go before.
const NICENESS: i32 = 10;
/// Stdin, stdout and stderr are open already. No other file, connection or pipe can be opened.
const OPEN_FILES: u64 = 3;

/// Confines this process. An error means that a wall is missing, so no work may begin.
pub(super) fn confine(limits: &Limits) -> io::Result<()> {
    // A lower priority is a courtesy.
    let _ = nice(NICENESS);
    #[cfg(target_os = "linux")]
    linux::confine()?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nofile, OPEN_FILES)?;
    limit(Resource::Nproc, 0)?;
    let seconds = limits.time.as_secs().max(1);
    limit_with(Resource::Cpu, seconds, seconds + 1)?;
    limit_memory(limits.memory_bytes)
}

/// macOS knows this limit and does not keep it, so a refusal there is no error.
fn limit_memory(bytes: u64) -> io::Result<()> {
    #[cfg(not(target_os = "openbsd"))]
    let limited = limit(Resource::As, bytes);
    #[cfg(target_os = "openbsd")]
    let limited = limit(Resource::Data, bytes);
    if cfg!(target_os = "macos") {
        return Ok(());
    }
    limited
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    limit_with(resource, most, most)
}

/// A lower limit of the operator stays.
fn limit_with(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit {
        current: Some(current.min(allowed)),
        maximum: Some(maximum.min(allowed)),
    };
    Ok(setrlimit(resource, limit)?)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::process::{
        DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
    };
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

    /// A job needs no files, so no rule for files is needed here. A job with files, such as a shell,
    /// needs Landlock and seccomp too, and this is their place.
    pub(super) fn confine() -> io::Result<()> {
        close_inherited_files();
        // When memory runs out, the kernel ends this process and not the gateway. A kernel that does
        // not listen leaves the limits below.
        drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
        set_parent_process_death_signal(Some(Signal::KILL))?;
        set_no_new_privs(true)?;
        // Limits do not hold for root, unless root is no longer root.
        let none = CapabilitySet::empty();
        set_capabilities(
            None,
            CapabilitySets {
                effective: none,
                permitted: none,
                inheritable: none,
            },
        )?;
        // No other process of this user can look into this one.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(())
    }

    /// Parlor's own files are closed by the start of a child. An open file of the shell or the
    /// supervisor that started Parlor is not.
    fn close_inherited_files() {
        let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
            return;
        };
        let open: Vec<i32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|number| *number > 2)
            .collect();
        // The folder itself is in the list, and closed by now.
        for number in open {
            let _ = nix::unistd::close(number);
        }
    }
}
