//! Logs, to stderr. Never message text, never a secret.
//!
//! A thread of its own writes the lines, so a reader not reading, as with a full pipe, holds up no
//! other thread. Lines without room are dropped and counted.

mod lines;
mod local_time;
mod wanted;

use std::any::Any;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::printable::printable;
use local_time::LocalTime;

/// How long the end of the program waits for its last lines to be read.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);

/// Starts logging as the verb usually does, unless a flag or `PARLOR_LOG` says otherwise (such as
/// `debug` or `parlor::routing=debug`). `in_colour` says whether the lines have escapes.
pub fn start(usual: LevelFilter, flag: Option<LevelFilter>, in_colour: bool) {
    let wanted = wanted::filter(usual, flag);
    let lines = fmt::layer()
        .with_timer(if is_seen() {
            LocalTime::Short
        } else {
            LocalTime::Whole
        })
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

/// A remark about a `PARLOR_LOG` that cannot be meant.
pub fn misread() -> Option<String> {
    wanted::misread()
}

/// The last words of the program, printed after all log lines.
pub fn say(line: &str) {
    lines::stderr().push_last(format!("{}\n", printable(line)).into_bytes());
    flush();
}

/// A line of the console, between the lines of the log. Words of others inside must be on a single
/// line.
pub(crate) fn console_line(line: &str) {
    let line = format!("{}  {}\n", LocalTime::Short.now(), printable(line));
    lines::stderr().push(line.into_bytes());
}

/// Whether a person sees the lines.
pub(crate) fn is_seen() -> bool {
    lines::is_seen()
}

/// The distance of the lines' times from UTC: `+01:00`.
pub(crate) fn zone() -> String {
    LocalTime::zone()
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
