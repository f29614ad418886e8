//! A file on its way to people.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A copy in the home's `outgoing` folder, which nothing changes until it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingFile {
    /// What it is stored as.
    pub stored: String,
    /// Where the original is, for whoever has this machine in hand.
    pub original: PathBuf,
    /// What people see.
    pub name: String,
    pub bytes: u64,
    /// As its content looks: `image/png`.
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
}
