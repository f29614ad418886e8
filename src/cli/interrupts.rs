//! Ctrl-C and its kin, for verbs that have something to take back before they end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// The signals that ask a program to end. Caught from the moment this is made.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Interrupts {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal, and returns the exit code of a program that the signal has ended.
    pub(super) async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        128 + kind.as_raw_value()
    }
}
