//! Logs, to stderr. Never message text, never a secret.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Starts logging at this level, unless `PARLOR_LOG` says otherwise (such as `debug` or `parlor::routing=debug`).
pub fn start(level: LevelFilter) {
    let wanted = EnvFilter::builder().with_default_directive(level.into()).with_env_var("PARLOR_LOG").from_env_lossy();
    let in_colour = std::io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(in_colour).with_target(false).with_filter(wanted);
    let started = tracing_subscriber::registry().with(lines.with_filter(filter_fn(|meta| is_ours(meta.target())))).try_init();
    // A second start in one process, as in tests, keeps the first.
    drop(started);
}

/// Libraries log whole requests and answers, with everything in them, so only our own lines are shown.
pub fn is_ours(target: &str) -> bool {
    target == "parlor" || target.starts_with("parlor::")
}
