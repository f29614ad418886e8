//! A home: its folder and lock, the checked config, the agents, and a snapshot of all of them.

mod checked_config;
pub(crate) mod exposure;
mod folder;
mod owners;
mod registry;
mod reload;
pub(crate) mod route_tests;
mod snapshot;

pub use checked_config::{CheckedConfig, ConfigError, check};
pub(crate) use folder::Purpose;
pub use folder::{Home, HomeLock, LockError};
pub(crate) use owners::{OwnerError, add_owner};
pub(crate) use registry::imagined;
pub use registry::registry;
pub use reload::{Reload, ReloadBy, ReloadHandle, ReloadRequests, changed_sections};
pub use snapshot::{Snapshot, Snapshots};
