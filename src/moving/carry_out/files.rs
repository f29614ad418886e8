//! Files of agents, each written in a single step, for its owner only.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Transaction;
use uuid::Uuid;

use super::super::found::{Content, FoundFile};
use super::super::plan::{self, FileStep, Ours};
use super::super::report::{Item, State};
use super::super::source::{self, MAX_FILE_BYTES, Source};
use super::super::spool::digest;
use super::{Import, MovingError, blocking, disk, failed};
use crate::agents::is_as_shipped;
use crate::clock::now_ms;
use crate::domain::{AgentId, AgentUid};
use crate::records::imports::{self, Carried, Row};

impl Import<'_> {
    pub(super) async fn file(
        &mut self,
        source_id: &str,
        file: &FoundFile,
        (id, uid): (&AgentId, AgentUid),
    ) -> Result<(), MovingError> {
        let folder = self.site.home.join("agents").join(id.as_str());
        let key = format!("{source_id}/{}", file.target.display());
        let item = Item::new(file.kind, shown(file), State::New).to(Path::new("agents")
            .join(id.as_str())
            .join(&file.target)
            .display()
            .to_string());
        let (wanted, at, owner) = (file.clone(), folder.join(&file.target), id.clone());
        let read = blocking(move || {
            let ours = ours(&at, &owner, &wanted.target);
            Ok(bytes_of(&wanted).map(|bytes| (bytes, ours)))
        });
        let (bytes, ours) = match read.await? {
            Ok(read) => read,
            Err(error) => {
                let item = Item::left(file.kind, shown(file), error.to_string());
                self.items.push(item);
                return Ok(());
            }
        };
        let theirs = digest(&bytes);
        let carried = self.known.carried.get(&(Carried::File, key.clone()));
        let step = plan::file_step(&theirs, ours.as_ref(), carried);
        let (target, item) = match step {
            FileStep::Same(why) => {
                let item = Item {
                    state: State::Same,
                    ..item
                };
                self.items.push(match why {
                    "" => item,
                    why => item.because(why),
                });
                return Ok(());
            }
            FileStep::Write => (file.target.clone(), item),
            FileStep::Beside => {
                let beside = plan::beside(self.wish.system).join(file_name(&file.target));
                let why = format!("yours stays; this one goes to {}", beside.display());
                let item = Item {
                    state: State::Conflict,
                    ..item.because(why)
                };
                (beside, item)
            }
        };
        if self.wish.only_look {
            self.items.push(item);
            return Ok(());
        }
        let path = folder.join(&target);
        let staged = self.source.staging.fresh("file");
        let row = Row {
            agent: Some(uid),
            target: target.display().to_string(),
            stamp: theirs,
        };
        let written = blocking(move || Ok(replace(&staged, &path, &bytes))).await?;
        if let Err(error) = written {
            self.items.push(failed(item, &error.to_string()));
            return Ok(());
        }
        let (origin, now) = (self.origin.clone(), now_ms());
        let keep = move |tx: &Transaction<'_>| {
            imports::keep(tx, &origin, (Carried::File, &key), &row, now)
        };
        self.site.db.write(keep).await?;
        let state = match item.state {
            State::New => State::Done,
            state => state,
        };
        self.items.push(Item { state, ..item });
        Ok(())
    }
}

/// A copied file.
pub(super) struct Stamped {
    pub(super) target: PathBuf,
    pub(super) digest: String,
}

/// Copies the files of a new agent into a folder. Unreadable files are noted.
pub(super) fn stage(
    source: &Source,
    files: &[FoundFile],
    into: &Path,
) -> Result<Vec<Stamped>, MovingError> {
    make_folder(into).map_err(disk(into))?;
    let mut stamped = Vec::new();
    for file in files {
        let bytes = match bytes_of(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                source.left(file.kind, shown(file), error.to_string());
                continue;
            }
        };
        let path = into.join(&file.target);
        let written = path.parent().map_or(Ok(()), make_folder);
        written
            .and_then(|()| write_new(&path, &bytes))
            .map_err(disk(&path))?;
        stamped.push(Stamped {
            target: file.target.clone(),
            digest: digest(&bytes),
        });
    }
    Ok(stamped)
}

fn bytes_of(file: &FoundFile) -> io::Result<Vec<u8>> {
    match &file.content {
        Content::Copy { tree, path } => tree.bytes(path, MAX_FILE_BYTES),
        Content::Text(text) => Ok(text.clone().into_bytes()),
    }
}

fn shown(file: &FoundFile) -> String {
    match &file.content {
        Content::Copy { tree, path } => source::shown(tree, path),
        Content::Text(_) => file.target.display().to_string(),
    }
}

fn ours(path: &Path, id: &AgentId, target: &Path) -> Option<Ours> {
    let bytes = fs::read(path).ok()?;
    let in_home = Path::new("agents").join(id.as_str()).join(target);
    Some(Ours {
        digest: digest(&bytes),
        is_shipped: bytes.is_empty() || is_as_shipped(&in_home, &bytes),
    })
}

/// `skills/a/SKILL.md` becomes `skills-a-SKILL.md`.
fn file_name(target: &Path) -> String {
    let names = target
        .iter()
        .map(|name| name.to_string_lossy().into_owned());
    names.collect::<Vec<_>>().join("-")
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file for its owner only. An existing file is an error.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Puts a file in place in one step, by way of the private folder: a kill leaves no half-written
/// file.
fn replace(staged: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_new(staged, bytes)?;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    match fs::rename(staged, path) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let beside = path.with_file_name(format!(".{}", Uuid::now_v7()));
            let written = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
            if written.is_err() {
                drop(fs::remove_file(&beside));
            }
            written
        }
        renamed => renamed,
    }
}
