//! Work of tools that blocks: files, and making text of pages.

use tokio::sync::Semaphore;

/// What runs at once. The rest waits, so that threads are left for everybody else.
static SLOTS: Semaphore = Semaphore::const_new(6);

/// The work panicked; what it did is not known.
#[derive(Debug, thiserror::Error)]
#[error("The tool broke while it ran, and nothing is known about what it did.")]
pub(super) struct Broke;

/// Runs on a thread that may block, when there is one to spare.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Broke> {
    let _slot = SLOTS.acquire().await.expect("nobody closes the slots");
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        // Where it did, the panic itself has told; why, may have words of a file in it.
        tracing::error!("a tool broke");
        Broke
    })
}
