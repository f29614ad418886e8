//! Errors of file operations, in words for people and models.

use std::io::ErrorKind;

/// The reason of a failed operation. The text goes on after the path: "`notes.md` is not there".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("is not there")]
    NotFound,
    #[error("is a folder, not a file")]
    IsFolder,
    #[error("is not a folder, or goes through something that is none")]
    NoFolder,
    #[error("is {0}, not a file")]
    NotAFile(&'static str),
    #[error("has a second name elsewhere (a hard link), so it is left alone")]
    HardLink,
    #[error("is a link, so nothing is written there; write to another name")]
    Link,
    #[error("leads out of the workspace")]
    Outside,
    #[error("belongs to another place; only people there and owners see it")]
    OfOthers,
    #[error("is too large: {bytes} bytes, and {max_bytes} are possible")]
    TooLarge { bytes: u64, max_bytes: u64 },
    #[error(
        "does not fit: the workspace may hold {quota_mb} MB and has {used_mb} MB in it. Delete something first"
    )]
    Full { quota_mb: u64, used_mb: u64 },
    #[error("cannot be used: {0}")]
    Failed(String),
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => FileError::NotFound,
            ErrorKind::IsADirectory => FileError::IsFolder,
            ErrorKind::NotADirectory => FileError::NoFolder,
            // cap-std says this itself; the system's own refusals have a number.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => FileError::Outside,
            ErrorKind::DirectoryNotEmpty => FileError::Failed("the folder is not empty".into()),
            // The error's path is left out, because the model does not know paths of this machine.
            kind => FileError::Failed(kind.to_string()),
        }
    }
}
