//! Fake far ends and the harness that starts the real thing.

#[expect(dead_code, reason = "has what the tests of the Discord channel need")]
pub(crate) mod fake_discord;
pub(crate) mod fake_model;
pub(crate) mod fake_telegram;
pub(crate) mod faults;
pub(crate) mod house;
pub(crate) mod pty;

pub(crate) use house::House;

/// Tells that a test did not run. Not by a macro: what those print is kept back when a test passes.
#[expect(clippy::disallowed_methods, reason = "a test has no door of its own")]
pub(crate) fn tell_skipped(reason: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "SKIPPED: {reason}"));
}
