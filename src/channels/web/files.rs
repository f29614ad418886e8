//! Files of the web chat, in both directions: `web/<id>` in the home folder, with its facts in
//! `web/<id>.json` beside it.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::channels::media_type::media_type;
use crate::domain::OutgoingFile;

/// The largest file, in both directions.
pub(crate) const MAX_FILE_BYTES: u64 = 25_000_000;
/// Bytes of all files together. When more come, the oldest go.
const MOST_BYTES: u64 = 1_000_000_000;
/// Files are kept for so long. The agent's copy stays in its workspace.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const MAX_NAME_CHARS: usize = 120;
const FOLDER: &str = "web";

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChatFile)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) media_type: String,
}

/// Why a file was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStored {
    #[error("the file is empty")]
    Empty,
    #[error("the file is larger than {} MB", MAX_FILE_BYTES / 1_000_000)]
    TooLarge,
    #[error("the file could not be kept: {0}")]
    Failed(#[from] std::io::Error),
}

pub(super) fn path(home: &Path, id: &str) -> PathBuf {
    home.join(FOLDER).join(id)
}

/// Keeps a file from a browser.
pub(super) async fn store(home: &Path, name: &str, content: &[u8]) -> Result<Stored, NotStored> {
    if content.is_empty() {
        return Err(NotStored::Empty);
    }
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(NotStored::TooLarge);
    }
    let name = plain(name);
    let stored = Stored {
        id: Uuid::now_v7().simple().to_string(),
        media_type: media_type(content, &name).to_owned(),
        name,
        bytes: content.len() as u64,
    };
    let (home, facts, content) = (home.to_owned(), stored.clone(), content.to_owned());
    blocking(move || {
        make_folder(&home)?;
        write(&path(&home, &facts.id), &content)?;
        write_facts(&home, &facts)
    })
    .await?;
    Ok(stored)
}

/// Keeps a copy of a file from an agent. The ticket names it, so a repeated send is one file.
pub(super) async fn keep(
    home: &Path,
    ticket: &str,
    file: &OutgoingFile,
    from: &Path,
) -> std::io::Result<Stored> {
    let id: String = ticket
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let stored = Stored {
        id: format!("sent-{id}"),
        name: plain(&file.name),
        bytes: file.bytes,
        media_type: file.media_type.clone(),
    };
    let (home, facts, from) = (home.to_owned(), stored.clone(), from.to_owned());
    blocking(move || {
        make_folder(&home)?;
        std::fs::copy(from, path(&home, &facts.id))?;
        write_facts(&home, &facts)
    })
    .await?;
    Ok(stored)
}

/// A kept file, by its id.
pub(super) async fn find(home: &Path, id: &str) -> Option<Stored> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !(1..=80).contains(&id.len()) || !id.bytes().all(is_plain) {
        return None;
    }
    let facts = tokio::fs::read(facts_of(home, id)).await.ok()?;
    serde_json::from_slice(&facts).ok()
}

/// Removes files that are too old, and the oldest while there are too many.
pub(super) async fn tidy(home: &Path) {
    let folder = home.join(FOLDER);
    let tidied = blocking(move || remove_old(&folder)).await;
    if let Err(error) = tidied
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("old files of the web chat could not be removed: {error}");
    }
}

fn remove_old(folder: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        files.push((facts.modified()?, facts.len(), entry.path()));
    }
    files.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    let (oldest, mut bytes) = (SystemTime::now().checked_sub(KEPT_FOR), 0);
    for (at, size, path) in files {
        bytes += size;
        if bytes > MOST_BYTES || oldest.is_some_and(|oldest| at < oldest) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A name without a path and without line breaks.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_NAME_CHARS)
        .collect();
    match clean.trim() {
        "" | "." | ".." => "file".to_owned(),
        name => name.to_owned(),
    }
}

fn facts_of(home: &Path, id: &str) -> PathBuf {
    home.join(FOLDER).join(format!("{id}.json"))
}

fn make_folder(home: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home.join(FOLDER))
}

fn write_facts(home: &Path, facts: &Stored) -> std::io::Result<()> {
    let text = serde_json::to_vec(facts)?;
    write(&facts_of(home, &facts.id), &text)
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}
