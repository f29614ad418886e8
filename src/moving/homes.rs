//! Where other systems keep their files on this machine.

use std::path::PathBuf;

use super::System;

impl System {
    pub(crate) const ALL: [System; 5] = [
        System::OpenClaw,
        System::Hermes,
        System::ZeroClaw,
        System::Moltis,
        System::Signet,
    ];

    /// The variable that moves the system's folder, and the folder in the user's own.
    fn usual(self) -> (&'static str, &'static str) {
        match self {
            System::OpenClaw => ("OPENCLAW_STATE_DIR", ".openclaw"),
            System::Hermes => ("HERMES_HOME", ".hermes"),
            System::ZeroClaw => ("ZEROCLAW_CONFIG_DIR", ".zeroclaw"),
            System::Moltis => ("MOLTIS_DATA_DIR", ".moltis"),
            System::Signet => ("SIGNET_PATH", ".agents"),
        }
    }

    /// The system's folder, existing or not. None for a user without a home folder.
    pub(crate) fn usual_folder(self) -> Option<PathBuf> {
        let (variable, folder) = self.usual();
        let named = std::env::var_os(variable).map(PathBuf::from);
        named.or_else(|| Some(std::env::home_dir()?.join(folder)))
    }

    /// The folder of the system's config, if apart.
    pub(crate) fn usual_config_folder(self) -> Option<PathBuf> {
        if self != System::Moltis {
            return None;
        }
        let named = std::env::var_os("MOLTIS_CONFIG_DIR").map(PathBuf::from);
        named.or_else(|| Some(std::env::home_dir()?.join(".config/moltis")))
    }

    /// Files and folders found only in a home of this system.
    pub(super) fn marks(self) -> &'static [&'static str] {
        match self {
            System::OpenClaw => &["openclaw.json"],
            System::Hermes => &["config.yaml", "state.db", "profiles"],
            System::ZeroClaw => &["config.toml"],
            System::Moltis => &["moltis.db", "moltis.toml"],
            System::Signet => &["agent.yaml", "AGENT.yaml", "memory/memories.db"],
        }
    }
}
