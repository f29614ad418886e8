//! Blocking work of tools: files, and making text of pages.

use tokio::sync::Semaphore;

/// Blocking calls of tools at the same time. Further calls wait, so that threads are left for other
/// work.
static SLOTS: Semaphore = Semaphore::const_new(6);

/// The work panicked, so its effects are unknown.
#[derive(Debug, thiserror::Error)]
#[error("The tool broke while it ran, and nothing is known about what it did.")]
pub(super) struct Broke;

/// Runs on a blocking thread, within the bound for tools.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Broke> {
    let _slot = SLOTS.acquire().await.expect("nobody closes the slots");
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        // The panic hook has logged the place. The message is dropped, because words of a file may
        // be in there.
        tracing::error!("a tool broke");
        Broke
    })
}
