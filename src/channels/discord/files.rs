//! Fetches attachments from the address in their message, which is valid for about a day.

use std::path::Path;

use super::bot::Bot;
use crate::channels::FetchError;
use crate::domain::FileRef;

const BYTES_PER_MB: u64 = 1_000_000;

impl Bot {
    pub(super) async fn fetch_file(&self, file: &FileRef, to: &Path) -> Result<(), FetchError> {
        let max_mb = self.max_file_mb;
        let max_bytes = u64::from(max_mb) * BYTES_PER_MB;
        if file.bytes.is_some_and(|bytes| bytes > max_bytes) {
            return Err(FetchError::TooLarge { max_mb });
        }
        match self.api.download(&file.id, to, max_bytes).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(FetchError::TooLarge { max_mb }),
            Err(error) => Err(FetchError::Failed(error.to_string())),
        }
    }
}
