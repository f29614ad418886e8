//! Fetches people's files. <https://core.telegram.org/bots/api#getfile>

use std::path::Path;

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;

use super::api::{Api, ApiError};
use crate::channels::FetchError;
use crate::domain::FileRef;

const BYTES_PER_MB: u64 = 1_000_000;

#[derive(Serialize)]
struct GetFile<'a> {
    file_id: &'a str,
}

#[derive(Deserialize)]
struct Found {
    file_size: Option<u64>,
    /// Absent for files too large for bots.
    file_path: Option<String>,
}

impl Payload for GetFile<'_> {
    type Output = Found;
    const NAME: &'static str = "getFile";
}

pub(super) async fn fetch(
    api: &Api,
    file: &FileRef,
    to: &Path,
    max_mb: u32,
) -> Result<(), FetchError> {
    let max_bytes = u64::from(max_mb) * BYTES_PER_MB;
    let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > max_bytes);
    if too_large(file.bytes) {
        return Err(FetchError::TooLarge { max_mb });
    }
    let found = api
        .call(&GetFile { file_id: &file.id })
        .await
        .map_err(failed)?;
    if too_large(found.file_size) {
        return Err(FetchError::TooLarge { max_mb });
    }
    let path = found
        .file_path
        .ok_or_else(|| FetchError::Failed("Telegram does not hand it over".into()))?;
    let is_whole = api.download(&path, to, max_bytes).await.map_err(failed)?;
    if is_whole {
        Ok(())
    } else {
        Err(FetchError::TooLarge { max_mb })
    }
}

fn failed(error: ApiError) -> FetchError {
    FetchError::Failed(error.to_string())
}
