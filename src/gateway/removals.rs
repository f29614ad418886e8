//! Takes words that people had deleted out of the database file, soon after their rows are gone.
//!
//! Deleting a row is quick and is part of the deletion itself. Writing the file anew is not, so the
//! removals of a while share it, and it takes a small part of the time only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::GatewayState;
use crate::storage::Scrub;

/// The answer to `/forget` repeats the forgotten words, and has been sent by then.
const SOON: Duration = Duration::from_secs(1);
/// The rest after each removal: at least this long, and so many times as long as the removal took.
const LEAST_REST: Duration = Duration::from_secs(60);
const REST_TIMES: u32 = 200;
/// Larger files are not written anew while people wait for answers, and not at every stop.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
const MOST_BYTES_AT_STOP: u64 = 256 * 1024 * 1024;

/// Whether words were deleted since the start.
#[derive(Debug, Default)]
pub(super) struct Removals {
    any: AtomicBool,
    wanted: Notify,
}

impl Removals {
    /// Call after the commit of a deletion.
    pub(super) fn note(&self) {
        self.any.store(true, Ordering::Relaxed);
        self.wanted.notify_one();
    }
}

pub(super) async fn watch(state: Arc<GatewayState>) {
    let mut rests_until = Instant::now();
    let is_time = async |rests_until: Instant| {
        state.removals.wanted.notified().await;
        tokio::time::sleep_until(rests_until.max(Instant::now() + SOON)).await;
    };
    while let Some(()) = state.stop.run_until_cancelled(is_time(rests_until)).await {
        let began = Instant::now();
        carry_out(&state, MOST_BYTES).await;
        rests_until = Instant::now() + LEAST_REST.max(began.elapsed() * REST_TIMES);
    }
}

/// Before the process ends, what was deleted is removed once more: copies may have been made since.
pub(super) async fn finish(state: &GatewayState) {
    if state.removals.any.load(Ordering::Relaxed) {
        carry_out(state, MOST_BYTES_AT_STOP).await;
    }
}

async fn carry_out(state: &GatewayState, most_bytes: u64) {
    let services = &state.services;
    let removed = match services.memories.wipe().await {
        Ok(()) => services.db.scrub(Scrub::RewriteUpTo(most_bytes)).await,
        Err(error) => Err(error),
    };
    match removed {
        Ok(true) => tracing::debug!("deleted words were taken out of the database file"),
        Ok(false) => {
            tracing::info!("deleted words stay in the log for a while: it is being read");
        }
        Err(error) => {
            tracing::warn!("deleted words could not be taken out of the database file: {error}");
        }
    }
}
