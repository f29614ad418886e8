//! A home: its folder and lock, the checked config, the agents, and a snapshot of all of them.

mod checked_config;
pub(crate) mod exposure;
mod folder;
mod registry;
mod snapshot;

pub use checked_config::{CheckedConfig, ConfigError, check};
pub use folder::{Home, HomeLock, LockError};
pub use registry::registry;
pub use snapshot::{Snapshot, Snapshots};
