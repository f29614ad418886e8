//! HTTP connections to a platform, made anew after a connection died in silence.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::Secret;
use crate::open_files;

/// The most of an answer that is read. A full batch of updates has some megabytes; more comes only
/// from something in between, and never ends.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A slower download has failed.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct Connections {
    proxy: Option<Secret>,
    /// Made when first needed, and anew after a call without an answer. A plain mutex, held for a
    /// clone.
    http: Mutex<Option<Client>>,
    /// The number of calls at once. Further calls wait.
    calls: Semaphore,
}

/// A server's answer to a call.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Why a file was not written.
pub(super) enum DownloadError {
    Answered(StatusCode),
    Transport(reqwest::Error),
    NotWritten(std::io::Error),
}

impl Connections {
    /// `proxy` is a checked address.
    pub(super) fn new(proxy: Option<Secret>) -> Self {
        Connections {
            proxy,
            http: Mutex::new(None),
            calls: Semaphore::new(open_files::shares().platform_calls),
        }
    }

    /// The watchdog: a call without an answer closes all connections. A connection that died in
    /// silence, forgotten by a router, would let every later call wait in vain.
    pub(super) async fn exchange<F>(
        &self,
        what: &str,
        timeout: Duration,
        make: F,
    ) -> reqwest::Result<Response>
    where
        F: FnOnce(&Client) -> RequestBuilder,
    {
        let _turn = self.turn().await;
        let request = make(&self.http()).timeout(timeout);
        let exchanged = async {
            let response = request.send().await?;
            let (status, headers) = (response.status(), response.headers().clone());
            Ok(Response {
                status,
                headers,
                body: crate::http::beginning(response, MAX_ANSWER_BYTES).await?,
            })
        };
        let exchanged: reqwest::Result<_> = exchanged.await;
        if exchanged
            .as_ref()
            .is_err_and(|error| error.is_timeout() && !error.is_connect())
        {
            tracing::warn!(
                "{what} had no answer for {} s; connecting anew",
                timeout.as_secs()
            );
            *self.http.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        exchanged
    }

    /// Writes the file at `url` to `to`. False for a file of more than `max_bytes`.
    pub(super) async fn download(
        &self,
        url: &str,
        to: &Path,
        max_bytes: u64,
    ) -> Result<bool, DownloadError> {
        let _turn = self.turn().await;
        let request = self.http().get(url).timeout(DOWNLOAD_TIMEOUT);
        let mut response = request.send().await.map_err(DownloadError::Transport)?;
        if !response.status().is_success() {
            return Err(DownloadError::Answered(response.status()));
        }
        let mut file = tokio::fs::File::create(to)
            .await
            .map_err(DownloadError::NotWritten)?;
        let mut left = max_bytes;
        while let Some(chunk) = response.chunk().await.map_err(DownloadError::Transport)? {
            let Some(rest) = left.checked_sub(chunk.len() as u64) else {
                return Ok(false);
            };
            left = rest;
            file.write_all(&chunk)
                .await
                .map_err(DownloadError::NotWritten)?;
        }
        file.flush().await.map_err(DownloadError::NotWritten)?;
        Ok(true)
    }

    async fn turn(&self) -> SemaphorePermit<'_> {
        self.calls.acquire().await.expect("it is never closed")
    }

    fn http(&self) -> Client {
        let mut http = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        http.get_or_insert_with(|| self.new_client()).clone()
    }

    fn new_client(&self) -> Client {
        // A redirect could take a secret along.
        let builder = crate::http::client_builder().redirect(reqwest::redirect::Policy::none());
        crate::http::through(builder, self.proxy.as_ref())
            .build()
            .expect("a client without special settings can be built")
    }
}

/// Whether a call may have arrived, and the reason for the missing answer. Without the address,
/// because addresses may be secret.
pub(super) fn failure(error: reqwest::Error) -> (bool, String) {
    let reached = !error.is_connect() && !error.is_builder();
    (reached, plain_cause(&error.without_url()))
}

/// The innermost cause says most: "connection refused" rather than "error sending request".
pub(super) fn plain_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
