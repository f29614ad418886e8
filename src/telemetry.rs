//! Logs, to stderr. Never message text, never a secret.
//!
//! A thread of its own writes the lines, so a reader not reading, as with a full pipe, holds up no
//! other thread. Lines without room are dropped and counted.

mod lines;

use std::any::Any;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::printable::printable;

/// How long the end of the program waits for its last lines to be read.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);

/// Starts logging at this level, unless `PARLOR_LOG` says otherwise (such as `debug` or
/// `parlor::routing=debug`).
pub fn start(level: LevelFilter) {
    let wanted = EnvFilter::builder()
        .with_default_directive(level.into())
        .with_env_var("PARLOR_LOG")
        .from_env_lossy();
    let in_colour = lines::is_seen();
    let lines = fmt::layer()
        .with_writer(if in_colour {
            lines::coloured
        } else {
            lines::plain
        })
        .with_ansi(in_colour)
        .with_target(false)
        .with_filter(wanted);
    let started = tracing_subscriber::registry()
        .with(lines.with_filter(filter_fn(|meta| is_ours(meta.target()))))
        .try_init();
    // A second start in the same process, as in tests, keeps the first.
    drop(started);
    std::panic::set_hook(Box::new(|panic| {
        let at = panic
            .location()
            .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        tracing::error!("panicked at {at}{}", reason(panic.payload()));
        // A panic of the main thread ends the program. Other panics are caught, so their lines can
        // wait.
        if std::thread::current().name() == Some("main") {
            flush();
        }
    }));
}

/// The last words of the program, printed after all log lines.
pub fn say(line: &str) {
    lines::stderr().push_last(format!("{}\n", printable(line)).into_bytes());
    flush();
}

/// Returns when all log lines are written, or after a time limit.
pub fn flush() {
    lines::stderr().flush_within(LAST_LINES_WITHIN);
}

/// Only a literal of the program. A formatted panic text may quote people, such as a text cut in
/// the middle of a character.
fn reason(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&'static str>()
        .map_or_else(String::new, |reason| format!(": {reason}"))
}

/// Libraries log whole requests and answers, so only our own lines are shown.
pub fn is_ours(target: &str) -> bool {
    target == "parlor" || target.starts_with("parlor::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_nothing_that_was_put_together() {
        let payload = |panic: fn()| std::panic::catch_unwind(panic).expect_err("it panics");
        assert_eq!(
            reason(&*payload(|| panic!("the lane is gone"))),
            ": the lane is gone"
        );
        assert_eq!(reason(&*payload(|| drop("grüße"[..3].to_owned()))), "");
        assert_eq!(
            reason(&*payload(|| assert!(
                "words".parse::<u8>().expect("a number") > 0
            ))),
            ""
        );
    }
}
