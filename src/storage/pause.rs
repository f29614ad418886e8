//! The common wait for a database failing for a while.

use std::ops::ControlFlow;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::StoreError;

/// The pause before the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits a little after a failure. Breaks when the process stops first: the next start finds the
/// open rows.
pub(crate) async fn pause(
    stop: &CancellationToken,
    who: &str,
    error: &StoreError,
) -> ControlFlow<()> {
    tracing::error!("{who} waits for the store: {error}");
    tokio::select! {
        () = tokio::time::sleep(PAUSE) => ControlFlow::Continue(()),
        () = stop.cancelled() => ControlFlow::Break(()),
    }
}
