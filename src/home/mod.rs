//! A home: its folder and lock, the checked config, the agents, and a snapshot of all of them.

mod checked_config;
pub(crate) mod exposure;
mod folder;
mod owners;
mod registry;
mod reload;
mod snapshot;

pub use checked_config::{CheckedConfig, ConfigError, check};
pub use folder::{Home, HomeLock, LockError};
pub(crate) use owners::{OwnerError, add_owner};
pub use registry::registry;
pub use reload::{Reload, ReloadBy, ReloadHandle, ReloadRequests, changed_sections};
pub use snapshot::{Snapshot, Snapshots};
