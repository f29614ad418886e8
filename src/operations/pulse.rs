//! Facts about a running gateway that only its own tasks know: the arrival of updates, the end of a
//! platform, the last look at the config. Written by the gateway, read by `status`.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use dashmap::DashMap;

use crate::clock::now_ms;
use crate::domain::Platform;

#[derive(Default)]
pub(crate) struct Pulse {
    /// The time of the newest update.
    updates: DashMap<Platform, i64>,
    /// Platforms that refuse the bot for good, with the reason.
    refused: DashMap<Platform, String>,
    /// How often each platform was connected by this process.
    connections: DashMap<Platform, u64>,
    /// A plain mutex, held for a copy.
    config: Mutex<ConfigSeen>,
}

/// The config as it was last read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigSeen {
    /// When the running config was read, in Unix milliseconds.
    pub(crate) read_at: i64,
    /// The running config.
    pub(crate) text: Option<ConfigText>,
    /// The problem of a newer file.
    pub(crate) problem: Option<String>,
}

/// A text of config.toml, and its meaning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfigText {
    /// As it was saved: line numbers are counted in it, comments included.
    pub(crate) written: String,
    pub(crate) table: toml::Table,
}

impl ConfigText {
    /// None if the file cannot be read as TOML.
    pub(crate) fn read(home: &Path) -> Option<Self> {
        let written = std::fs::read_to_string(home.join("config.toml")).ok()?;
        let table = written.parse().ok()?;
        Some(ConfigText { written, table })
    }
}

impl Pulse {
    pub(crate) fn received(&self, platform: Platform) {
        self.updates.insert(platform, now_ms());
    }

    pub(crate) fn refused(&self, platform: Platform, reason: &str) {
        self.refused.insert(platform, reason.to_owned());
    }

    /// The platform is being connected.
    pub(crate) fn begun(&self, platform: Platform) {
        self.refused.remove(&platform);
        *self.connections.entry(platform).or_default() += 1;
    }

    pub(crate) fn config_read(&self, text: Option<ConfigText>) {
        *self.lock() = ConfigSeen {
            read_at: now_ms(),
            text,
            problem: None,
        };
    }

    pub(crate) fn config_problem(&self, problem: &str) {
        self.lock().problem = Some(problem.to_owned());
    }

    pub(super) fn last_update(&self, platform: Platform) -> Option<i64> {
        self.updates.get(&platform).map(|at| *at)
    }

    pub(super) fn connections(&self, platform: Platform) -> u64 {
        self.connections.get(&platform).map_or(0, |count| *count)
    }

    pub(crate) fn refusal(&self, platform: Platform) -> Option<String> {
        self.refused.get(&platform).map(|reason| reason.clone())
    }

    pub(super) fn config(&self) -> ConfigSeen {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ConfigSeen> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
