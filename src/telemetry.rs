//! Logs, to stderr and to a file. Never message text, never a secret.
//!
//! Every line begins with its agent in brackets, or with `[system]`. Threads of their own write the
//! lines, so a reader not reading, as with a full pipe, holds up no other thread. Lines without
//! room are dropped and counted.

mod fields;
mod layer;
mod line;
mod lines;
mod local_time;
mod log_file;
mod sinks;
#[cfg(feature = "otlp")]
mod traces;
mod wanted;

use std::any::Any;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use tracing::Level;
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::config::{Log, LogLevel};
use crate::domain::AgentId;
use crate::metrics;
use crate::printable::printable;
use fields::Fields;
use layer::LineLayer;
use line::Line;
use local_time::LocalTime;
use sinks::sinks;

pub(crate) use line::SYSTEM;
pub(crate) use log_file::earlier as earlier_files;
pub(crate) use sinks::DETAIL;

/// How long the end of the program waits for its last lines to be read.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);

/// How to change the level of the running log.
struct Started {
    filter: reload::Handle<EnvFilter, Registry>,
    /// The level of a flag, which wins over the config.
    flag: Option<LevelFilter>,
}

static STARTED: OnceLock<Started> = OnceLock::new();

/// Starts logging as the verb usually does, unless a flag or `PARLOR_LOG` says otherwise (such as
/// `debug` or `parlor::routing=debug`). `in_colour` says whether the lines have escapes.
pub fn start(usual: LevelFilter, flag: Option<LevelFilter>, in_colour: bool) {
    sinks().set_colour(in_colour);
    let (wanted, filter) = reload::Layer::new(filter(usual, flag));
    // A single filter, because each one is asked at every step into a span.
    let ours = filter_fn(|meta| is_ours(meta.target())).with_max_level_hint(LevelFilter::TRACE);
    let lines = LineLayer { sinks: sinks() }.with_filter(wanted.and(ours));
    let lines = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otlp")]
    let lines = lines.with(traces::layer());
    let started = lines.try_init();
    // A second start in the same process, as in tests, keeps the first.
    if started.is_ok() {
        let _ = STARTED.set(Started { filter, flag });
    }
    std::panic::set_hook(Box::new(|panic| {
        metrics::panicked();
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

/// Follows `[log]` of a config, at the start of a gateway and after every change. A failing file is
/// told, and stops nothing.
pub(crate) fn follow(home: &Path, log: &Log) {
    if let Some(Started { filter, flag }) = STARTED.get()
        && sinks().is_new_level(log.level)
    {
        // Fails only where the subscriber is gone.
        drop(filter.reload(self::filter(level(log.level), *flag)));
    }
    if let Err(trouble) = sinks().follow(home, log) {
        tracing::error!("{trouble}; lines go to stderr only, and the file is tried again");
    }
}

fn filter(usual: LevelFilter, flag: Option<LevelFilter>) -> EnvFilter {
    let filter = wanted::filter(usual, flag);
    let most = filter.max_level_hint().unwrap_or(LevelFilter::TRACE);
    sinks().set_details(most >= LevelFilter::DEBUG);
    filter
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// A remark about a meaningless `PARLOR_LOG`.
pub fn misread() -> Option<String> {
    wanted::misread()
}

/// The last words of the program, printed after all log lines.
pub fn say(line: &str) {
    say_as(line, line);
}

/// The last words of the program, in one form for the terminal and another for the log.
pub(crate) fn say_as(shown: &str, line: &str) {
    lines::stderr().push_last(format!("{}\n", printable(shown)).into_bytes());
    let fields = Fields {
        message: line.to_owned(),
        ..Fields::default()
    };
    sinks().put_last(&Line {
        level: Level::ERROR,
        fields: &fields,
    });
    flush();
}

/// From now on a person has the console's lines.
pub(crate) fn open_console(is_watched: bool) {
    sinks().set_console(is_watched);
}

/// A line of the console, between the lines of the log. Words of others inside must be on a single
/// line.
pub(crate) fn console_line(agent: Option<&AgentId>, line: &str) {
    let agent = agent.map_or(SYSTEM, AgentId::as_str);
    let (time, line) = (LocalTime::Short.now(), printable(line));
    lines::stderr().push(format!("{time} [{agent}] {line}\n").into_bytes());
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
    #[cfg(feature = "otlp")]
    traces::flush_within(LAST_LINES_WITHIN);
    sinks().flush_within(LAST_LINES_WITHIN);
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
