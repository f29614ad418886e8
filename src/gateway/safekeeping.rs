//! Stops the gateway when the database is taken away while the process runs, before more is taken
//! in.
//!
//! Platforms deliver unacknowledged messages again, to the next process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::GatewayState;
use crate::storage::StoreError;

/// Every write checks the files by itself. An idle gateway checks them this often.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(super) async fn watch(state: Arc<GatewayState>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => state.services.db.look().await,
            () = state.stop.cancelled() => return,
        }
    }
}

/// Ends intake, and tells the owners why.
pub(super) async fn give_up(state: &GatewayState, reason: &StoreError) {
    state.stop.cancel();
    state.delivery.tell_owners_at_once(&stopping(reason)).await;
}

fn stopping(reason: &StoreError) -> String {
    format!(
        "I have to stop: {reason}. Messages that come meanwhile are kept by their platform, and I answer them then."
    )
}
