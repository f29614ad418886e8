//! A file on its way to people.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A copy in the home's `outgoing` folder, unchanged until sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingFile {
    /// The file name of the copy.
    pub stored: String,
    /// The path of the original, for the operator.
    pub original: PathBuf,
    /// The file name for people.
    pub name: String,
    pub bytes: u64,
    /// The type by the look of the content: `image/png`.
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
}
