//! The wall clock, as stored in the database.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds. Before 1970 counts as 1970.
pub(crate) fn now_ms() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
