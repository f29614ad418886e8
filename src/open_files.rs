//! The limit of open files and connections, and its shares.

use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The operator's way out, for the end of an error text.
pub(crate) const ADVICE: &str =
    "Allow this user more (`ulimit -n`, or LimitNOFILE= in a systemd unit)";

/// For the database, logs, files of tools, name lookups and Discord's own connection: everything
/// not shared out below.
const KEPT: usize = 64;
/// The smallest share, however low the limit is.
const FEWEST: usize = 8;
/// More connections to a platform at once would make nothing faster.
const MOST_CALLS: usize = 256;
/// As many as turns may run by default.
const MOST_MODEL_CALLS: usize = 16_384;
const MOST_PAGES: usize = 64;
const MOST_CALLERS: usize = 64;
/// Fewer are not enough for a busy gateway.
const ENOUGH: usize = 256;

/// Connections open at the same time, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    /// To each platform.
    pub(crate) platform_calls: usize,
    /// To model servers.
    pub(crate) model_calls: usize,
    /// To servers of web pages.
    pub(crate) pages: usize,
    /// From callers at a door of ours.
    pub(crate) callers: usize,
}

/// Raises the limit as far as the system allows.
pub(crate) fn raise_limit() {
    let allowed = getrlimit(Resource::Nofile);
    if allowed.current != allowed.maximum {
        // After a refusal the limit stays as before, and the shares follow the limit.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: allowed.maximum,
                maximum: allowed.maximum,
            },
        );
    }
}

/// For the log at the start of a gateway.
pub(crate) fn warn_if_few() {
    let limit = limit();
    if limit < ENOUGH {
        tracing::warn!(
            "only {limit} files and connections may be open at once, so answers may have to wait. {ADVICE}"
        );
    }
}

/// The shares of this process, made at the first call.
pub(crate) fn shares() -> Shares {
    static SHARES: OnceLock<Shares> = OnceLock::new();
    *SHARES.get_or_init(|| Shares::of(limit()))
}

impl Shares {
    fn of(limit: usize) -> Self {
        let part = |of: usize, most: usize| (limit.saturating_sub(KEPT) / of).clamp(FEWEST, most);
        Shares {
            platform_calls: part(5, MOST_CALLS),
            model_calls: part(3, MOST_MODEL_CALLS),
            pages: part(16, MOST_PAGES),
            callers: part(16, MOST_CALLERS),
        }
    }
}

/// No limit counts as a very large limit.
fn limit() -> usize {
    let allowed = getrlimit(Resource::Nofile).current;
    allowed
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

/// Whether the process or the whole system has reached its limit of open files.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|exhausted| code == Some(exhausted.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two platforms and all other shares leave enough for the rest.
    #[test]
    fn shares_stay_below_the_limit() {
        for limit in [192, 256, 1024, 20_000, 1_048_576, usize::MAX] {
            let Shares {
                platform_calls,
                model_calls,
                pages,
                callers,
            } = Shares::of(limit);
            assert!(
                2 * platform_calls + model_calls + pages + callers + KEPT <= limit,
                "{limit}"
            );
        }
        let fewest = Shares {
            platform_calls: FEWEST,
            model_calls: FEWEST,
            pages: FEWEST,
            callers: FEWEST,
        };
        assert_eq!(Shares::of(0), fewest);
    }
}
