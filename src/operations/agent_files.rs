//! The identity files of an agent: listed, read, written, and given back to the house.
//!
//! Names are of a closed list, and each file is opened through its folder, so that a link cannot
//! lead out of it. A write names the text it was made from.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ring::digest::{SHA256, digest};
use rusqlite::Transaction;
use serde::Serialize;
use utoipa::ToSchema;

use super::agents::find_agent;
use super::named::Moment;
use super::{Operations, Refusal};
use crate::agents::memory::Edit;
use crate::agents::{Agent, IdentityFile, Memories};
use crate::clock::now_ms;
use crate::config::store;
use crate::domain::AgentId;
use crate::records::audit::{self, Action, Actor, Change};

/// The longest text of a file.
const MOST_BYTES: usize = 256 * 1024;

/// A file in the list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FileLine {
    /// SOUL.md
    pub(crate) name: String,
    pub(crate) origin: FileFrom,
    pub(crate) bytes: u64,
    pub(crate) modified_at: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileFrom {
    /// In the agent's folder.
    Own,
    /// In the home folder, for every agent without a file of its own.
    Inherited,
    /// There is none.
    Absent,
}

/// A file with its text.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FileText {
    pub(crate) name: String,
    pub(crate) origin: FileFrom,
    pub(crate) text: String,
    /// Of the text; a write names the one it was made from.
    pub(crate) hash: String,
    /// The text that counts without a file of its own.
    pub(crate) inherited: Option<String>,
}

/// Why a file was not written.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// Somebody else has written it meanwhile.
    Stale(Box<FileText>),
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for NotWritten {
    fn from(error: E) -> Self {
        NotWritten::Refused(error.into())
    }
}

/// None for a name that is no identity file.
pub(crate) fn file_named(name: &str) -> Option<IdentityFile> {
    let mut all = IdentityFile::ALL.into_iter();
    all.find(|file| file.name() == name)
}

pub(crate) async fn list(operations: &Operations, word: &str) -> Result<Vec<FileLine>, Refusal> {
    let agent = agent(operations, word).await?;
    blocking(move || {
        let lines = IdentityFile::ALL.into_iter().map(|file| line(&agent, file));
        lines.collect::<io::Result<Vec<_>>>()
    })
    .await
}

pub(crate) async fn read(
    operations: &Operations,
    word: &str,
    file: IdentityFile,
) -> Result<FileText, Refusal> {
    let agent = agent(operations, word).await?;
    blocking(move || text_of(&agent, file)).await
}

/// Writes a file of the agent's own. `base` is the hash of the text it was made from.
pub(crate) async fn write(
    operations: &Operations,
    actor: &Actor,
    (word, file): (&str, IdentityFile),
    text: String,
    base: Option<String>,
) -> Result<FileText, NotWritten> {
    if text.len() > MOST_BYTES {
        return Err(Refusal::wrong_use(format!(
            "a file has at most {MOST_BYTES} bytes, and this one has {}",
            text.len()
        ))
        .into());
    }
    let agent = agent(operations, word).await?;
    let now = current(&agent, file).await?;
    if base.as_deref() != Some(now.hash.as_str()) {
        return Err(NotWritten::Stale(Box::new(now)));
    }
    if file == IdentityFile::Memory {
        return write_memory(operations, actor, &agent, text).await;
    }
    let (home, id, owner) = (operations.home.clone(), agent.id.clone(), agent.clone());
    let written = blocking(move || {
        // Others who edit the home wait, so that the text is still the one that was looked at.
        let _lock = store::lock(&home).map_err(io::Error::other)?;
        let found = text_of(&owner, file)?;
        if base.as_deref() != Some(found.hash.as_str()) {
            return Ok(Err(found));
        }
        put(&owner.folder, file.name(), &text)?;
        text_of(&owner, file).map(Ok)
    });
    let written = written
        .await?
        .map_err(|found| NotWritten::Stale(Box::new(found)))?;
    note(operations, actor, &id, file).await?;
    Ok(written)
}

/// Deletes a file of the agent's own, so that the house's counts again.
pub(crate) async fn remove(
    operations: &Operations,
    actor: &Actor,
    word: &str,
    file: IdentityFile,
) -> Result<FileText, Refusal> {
    let agent = agent(operations, word).await?;
    let (owner, id) = (agent.clone(), agent.id.clone());
    let left = blocking(move || {
        match folder(&owner.folder)?.remove_file(file.name()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        text_of(&owner, file)
    });
    let left = left.await?;
    note(operations, actor, &id, file).await?;
    Ok(left)
}

/// MEMORY.md keeps earlier versions.
async fn write_memory(
    operations: &Operations,
    actor: &Actor,
    agent: &Arc<Agent>,
    text: String,
) -> Result<FileText, NotWritten> {
    let memory = Memories::new(operations.db.clone()).of(agent);
    let memory = memory.ok_or_else(|| {
        Refusal::failed(format!(
            "{} has no memory: memory = \"off\" in config.toml",
            agent.id
        ))
    })?;
    let edited = memory.edit(Edit::Whole(text)).await;
    edited.map_err(|error| Refusal::failed(error.to_string()))?;
    note(operations, actor, &agent.id, IdentityFile::Memory).await?;
    Ok(current(agent, IdentityFile::Memory).await?)
}

async fn agent(operations: &Operations, word: &str) -> Result<Arc<Agent>, Refusal> {
    let snapshot = operations.snapshot().await?;
    find_agent(&snapshot.registry, word).cloned()
}

async fn current(agent: &Arc<Agent>, file: IdentityFile) -> Result<FileText, Refusal> {
    let agent = agent.clone();
    blocking(move || text_of(&agent, file)).await
}

fn line(agent: &Agent, file: IdentityFile) -> io::Result<FileLine> {
    let (origin, metadata) = match metadata(&agent.folder, file.name())? {
        Some(metadata) => (FileFrom::Own, Some(metadata)),
        None if file.is_inherited() => match metadata(&agent.home, file.name())? {
            Some(metadata) => (FileFrom::Inherited, Some(metadata)),
            None => (FileFrom::Absent, None),
        },
        None => (FileFrom::Absent, None),
    };
    let modified = metadata
        .as_ref()
        .and_then(|metadata| metadata.modified().ok());
    let modified = modified.and_then(|at| {
        let since = at.into_std().duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    });
    Ok(FileLine {
        name: file.name().to_owned(),
        origin,
        bytes: metadata.map_or(0, |metadata| metadata.len()),
        modified_at: modified.map(Moment),
    })
}

fn text_of(agent: &Agent, file: IdentityFile) -> io::Result<FileText> {
    let own = text_in(&agent.folder, file.name())?;
    let inherited = match file.is_inherited() {
        true => text_in(&agent.home, file.name())?,
        false => None,
    };
    let (origin, text) = match (own, &inherited) {
        (Some(own), _) => (FileFrom::Own, own),
        (None, Some(inherited)) => (FileFrom::Inherited, inherited.clone()),
        (None, None) => (FileFrom::Absent, String::new()),
    };
    Ok(FileText {
        name: file.name().to_owned(),
        origin,
        hash: hash(&text),
        text,
        inherited,
    })
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let bytes = digest.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn folder(path: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(path, ambient_authority())
}

fn text_in(path: &Path, name: &str) -> io::Result<Option<String>> {
    let read = folder(path).and_then(|folder| folder.read(name));
    match read {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn metadata(path: &Path, name: &str) -> io::Result<Option<cap_std::fs::Metadata>> {
    match folder(path).and_then(|folder| folder.metadata(name)) {
        Ok(metadata) => Ok(Some(metadata).filter(cap_std::fs::Metadata::is_file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A reader at the same time finds the old text or the new one, never a half.
fn put(path: &Path, name: &str, text: &str) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    let folder = folder(path)?;
    // A link that leads elsewhere is refused, not replaced.
    match folder.metadata(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let beside = format!(".{name}.new");
    folder.write(&beside, text)?;
    folder.open(&beside)?.sync_all()?;
    folder.rename(&beside, &folder, name)
}

async fn note(
    operations: &Operations,
    actor: &Actor,
    id: &AgentId,
    file: IdentityFile,
) -> Result<(), Refusal> {
    let (by, id) = (actor.clone(), id.clone());
    let write = move |tx: &Transaction<'_>| {
        let change = Change::new(Action::AgentFile).of(&id).about(file.name());
        audit::note(tx, &by, &change, now_ms())
    };
    Ok(operations.db.write(write).await?)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| Refusal::failed(error.to_string()))?;
    done.map_err(|error| Refusal::failed(format!("the file cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_link_that_leads_out_of_the_folder_is_neither_read_nor_replaced() {
        let home = tempfile::tempdir().expect("a folder");
        let (secret, folder): (PathBuf, PathBuf) =
            (home.path().join("secret"), home.path().join("rose"));
        std::fs::write(&secret, "a secret").expect("written");
        std::fs::create_dir(&folder).expect("made");
        std::os::unix::fs::symlink(&secret, folder.join("SOUL.md")).expect("linked");
        assert!(text_in(&folder, "SOUL.md").is_err());
        assert!(text_in(&folder, "../secret").is_err());
        assert!(put(&folder, "SOUL.md", "mine").is_err());
        assert_eq!(std::fs::read_to_string(&secret).expect("there"), "a secret");
    }

    #[test]
    fn a_text_replaces_another_as_a_whole() {
        let home = tempfile::tempdir().expect("a folder");
        put(home.path(), "SOUL.md", "one").expect("written");
        put(home.path(), "SOUL.md", "two").expect("written");
        assert_eq!(
            text_in(home.path(), "SOUL.md").expect("there").as_deref(),
            Some("two")
        );
        assert_eq!(std::fs::read_dir(home.path()).expect("a folder").count(), 1);
    }
}
