//! A folder of skills, read from the disk. Front matter is parsed again only when its file changed.

use std::cell::OnceCell;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use dashmap::DashMap;

use super::format::{self, Flaw, Manifest};
use crate::agents::folders::{Listings, Stamp};

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
    let Some(names) = SHELVES.get(shelf, || folder_names(shelf)) else {
        return Vec::new();
    };
    let shelf = Shelf {
        path: shelf,
        dir: OnceCell::new(),
    };
    names
        .iter()
        .enumerate()
        .map(|(index, name)| shelf.entry(name, index < MOST_SKILLS))
        .collect()
}

/// The names of skills, by shelf.
static SHELVES: LazyLock<Listings<Vec<String>>> = LazyLock::new(Listings::default);

struct Shelf<'a> {
    path: &'a Path,
    /// Opened for the first skill that has to be read.
    dir: OnceCell<io::Result<Dir>>,
}

/// A directory capability: no link and no `..` leads out.
pub(super) fn open(shelf: &Path) -> std::io::Result<Dir> {
    Dir::open_ambient_dir(shelf, ambient_authority())
}

/// Links are listed too, so that a link out of the shelf is told instead of missed.
fn folder_names(shelf: &Path) -> Vec<String> {
    let Ok(entries) = open(shelf).and_then(|dir| dir.entries()) else {
        return Vec::new();
    };
    let folders = entries.flatten().filter(|entry| {
        entry
            .file_type()
            .is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
    });
    let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

impl Shelf<'_> {
    fn entry(&self, name: &str, fits: bool) -> Entry {
        let path = self.path.join(name).join(FILE_NAME);
        let state = match fits {
            true => self.remembered(name, &path),
            false => Arc::new(Err(vec![Flaw::new(
                1,
                format!("the folder has more than {MOST_SKILLS} skills, and this one is left out"),
            )])),
        };
        let name = name.to_owned();
        Entry { name, path, state }
    }

    fn remembered(&self, name: &str, path: &Path) -> Arc<Result<Manifest, Vec<Flaw>>> {
        // A look from outside the capability, which only tells whether the file is the one that was
        // read through it.
        let stamp = fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata));
        if let Some(known) = REMEMBERED
            .get(path)
            .filter(|known| Some(known.stamp) == stamp)
        {
            return known.state.clone();
        }
        let inside = Path::new(name).join(FILE_NAME);
        let dir = self.dir.get_or_init(|| open(self.path));
        let looked = dir.as_ref().map_err(missing);
        let looked = looked.and_then(|dir| {
            let metadata = dir.metadata(&inside).map_err(|error| missing(&error))?;
            Ok((dir, metadata))
        });
        let (dir, metadata) = match looked {
            Ok(looked) => looked,
            Err(flaw) => return Arc::new(Err(vec![flaw])),
        };
        let state = Arc::new(parsed(dir, &inside, &metadata, name));
        tell(path, &state);
        if let Some(stamp) = stamp {
            if REMEMBERED.len() >= MOST_REMEMBERED {
                REMEMBERED.clear();
            }
            let state = state.clone();
            REMEMBERED.insert(path.to_owned(), Remembered { stamp, state });
        }
        state
    }
}

struct Remembered {
    stamp: Stamp,
    state: Arc<Result<Manifest, Vec<Flaw>>>,
}

/// Depends on the files only, so a single cache serves the whole process.
static REMEMBERED: LazyLock<DashMap<PathBuf, Remembered>> = LazyLock::new(DashMap::new);

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
