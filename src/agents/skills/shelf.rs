//! A folder of skills, read from the disk. Front matter is parsed again only when its file changed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use dashmap::DashMap;

use super::format::{self, Flaw, Manifest};

pub(super) const FILE_NAME: &str = "SKILL.md";
/// Skills in a folder; further skills are told and left out.
pub(super) const MOST_SKILLS: usize = 200;
/// A larger `SKILL.md` is none.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Files remembered before the memory is emptied and filled anew.
const MOST_REMEMBERED: usize = 2_000;

/// A folder on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name of the folder and the skill.
    pub name: String,
    /// The path of the skill's `SKILL.md`.
    pub path: PathBuf,
    /// The front matter, or the reason why the skill cannot be used.
    pub state: Arc<Result<Manifest, Vec<Flaw>>>,
}

/// All skills on a shelf, by name. A missing shelf is empty. Blocks on the disk.
pub(crate) fn read(shelf: &Path) -> Vec<Entry> {
    let Ok(dir) = open(shelf) else {
        return Vec::new();
    };
    let mut names = folder_names(&dir);
    names.sort();
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| entry(shelf, &dir, name, index < MOST_SKILLS))
        .collect()
}

/// A directory capability: no link and no `..` leads out.
pub(super) fn open(shelf: &Path) -> std::io::Result<Dir> {
    Dir::open_ambient_dir(shelf, ambient_authority())
}

/// Links are listed too, so that a link out of the shelf is told instead of missed.
fn folder_names(dir: &Dir) -> Vec<String> {
    let Ok(entries) = dir.entries() else {
        return Vec::new();
    };
    let folders = entries.flatten().filter(|entry| {
        entry
            .file_type()
            .is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
    });
    let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

fn entry(shelf: &Path, dir: &Dir, name: String, fits: bool) -> Entry {
    let path = shelf.join(&name).join(FILE_NAME);
    let state = match fits {
        true => remembered(dir, &name, &path),
        false => Arc::new(Err(vec![Flaw::new(
            1,
            format!("the folder has more than {MOST_SKILLS} skills, and this one is left out"),
        )])),
    };
    Entry { name, path, state }
}

struct Remembered {
    modified: SystemTime,
    len: u64,
    state: Arc<Result<Manifest, Vec<Flaw>>>,
}

/// Depends on the files only, so a single cache serves the whole process.
static REMEMBERED: LazyLock<DashMap<PathBuf, Remembered>> = LazyLock::new(DashMap::new);

fn remembered(dir: &Dir, name: &str, path: &Path) -> Arc<Result<Manifest, Vec<Flaw>>> {
    let inside = Path::new(name).join(FILE_NAME);
    let metadata = match dir.metadata(&inside) {
        Ok(metadata) => metadata,
        Err(error) => return Arc::new(Err(vec![missing(&error)])),
    };
    let (modified, len) = (modified(&metadata), metadata.len());
    if let Some(known) = REMEMBERED
        .get(path)
        .filter(|known| known.modified == modified && known.len == len)
    {
        return known.state.clone();
    }
    let state = Arc::new(parsed(dir, &inside, &metadata, name));
    tell(path, &state);
    if REMEMBERED.len() >= MOST_REMEMBERED {
        REMEMBERED.clear();
    }
    REMEMBERED.insert(
        path.to_owned(),
        Remembered {
            modified,
            len,
            state: state.clone(),
        },
    );
    state
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata
        .modified()
        .map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std)
}

fn parsed(
    dir: &Dir,
    inside: &Path,
    metadata: &Metadata,
    name: &str,
) -> Result<Manifest, Vec<Flaw>> {
    let text = text(dir, inside, metadata).map_err(|message| vec![Flaw::new(1, message)])?;
    format::parse(&text, name)
}

fn text(dir: &Dir, inside: &Path, metadata: &Metadata) -> Result<String, String> {
    // Opening a FIFO waits for its other end, perhaps for ever.
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!(
            "it is larger than {} KiB; move parts of it to files beside it",
            MAX_FILE_BYTES / 1024
        ));
    }
    let mut bytes = Vec::new();
    let read = dir
        .open(inside)
        .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into())
}

fn missing(error: &std::io::Error) -> Flaw {
    Flaw::new(
        1,
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                "there is no such file; a skill's folder needs one".to_owned()
            }
            _ => format!("it cannot be read, or a link leads out of the skills folder: {error}"),
        },
    )
}

/// Warns once for each state of the file, not in every turn.
fn tell(path: &Path, state: &Result<Manifest, Vec<Flaw>>) {
    let (consequence, flaws) = match state {
        Ok(manifest) => ("", &manifest.remarks),
        Err(flaws) => ("; the skill is left out", flaws),
    };
    for flaw in flaws {
        tracing::warn!(
            "{}:{}: {}{consequence}",
            path.display(),
            flaw.line,
            flaw.message
        );
    }
}
