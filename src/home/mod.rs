//! What a process works with: the checked config with everything made from it.

mod snapshot;

pub use snapshot::{Snapshot, Snapshots};
