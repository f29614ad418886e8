//! Notices when the database's files are taken away or changed by other programs while they are
//! open.
//!
//! SQLite keeps working with the opened files after their names are gone. Rows stored from then on
//! would be lost with the process.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::commits::Count;
use super::wal;

/// A change of the files by another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// The name is gone. All rows are in the file still open.
    Removed,
    /// The name leads to another file. All rows are in the file still open.
    Replaced,
    /// The file itself is empty, cut, or another database.
    Overwritten,
    /// The log's name is gone or leads elsewhere. The database itself is unchanged.
    LogRemoved,
}

/// The files as they were when opened.
#[derive(Debug)]
pub(super) struct Watch {
    database: Watched,
    beside: Vec<Watched>,
    file: Arc<File>,
    seen: Seen,
}

/// A name and its file.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The length and count of the file when last found good.
#[derive(Debug)]
struct Seen {
    bytes: u64,
    count: Count,
    /// Changes only when the log is moved into the file.
    header: Option<[u8; HEADER]>,
}

impl Watch {
    /// `file` is the database, opened by SQLite too, with its log.
    pub(super) fn new(path: &Path, file: Arc<File>) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        let seen = Seen {
            bytes: metadata.len(),
            count: wal::count_of(&file)?,
            header: None,
        };
        let beside =
            ["-wal", "-shm"].map(|suffix| Watched::at(&wal::with_suffix(&wal::real(path), suffix)));
        Ok(Watch {
            database: Watched::of(path, &metadata),
            beside: beside.into_iter().flatten().collect(),
            file,
            seen,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.database.path
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// A harm counts if still there after a moment.
    pub(super) fn look(&mut self) -> Result<(), Harm> {
        let mut looked = self.look_once();
        for _ in 1..LOOKS {
            if looked.is_ok() {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
            looked = self.look_once();
        }
        looked
    }

    fn look_once(&mut self) -> Result<(), Harm> {
        let bytes = match self.database.now() {
            Now::Same(bytes) => bytes,
            Now::Missing => return Err(Harm::Removed),
            Now::Other => return Err(Harm::Replaced),
        };
        if self.is_overwritten(bytes) {
            return Err(Harm::Overwritten);
        }
        let is_there = |watched: &Watched| matches!(watched.now(), Now::Same(_));
        if self.beside.iter().all(is_there) {
            Ok(())
        } else {
            Err(Harm::LogRemoved)
        }
    }

    /// Only SQLite writes into the file. So the count never goes back, and a shorter file has a
    /// shorter length in its header.
    fn is_overwritten(&mut self, bytes: Option<u64>) -> bool {
        // A file unreadable for a moment is no other file.
        let Some(bytes) = bytes else { return false };
        let header = match self.header() {
            Ok(header) if self.seen.header == Some(header) && bytes >= self.seen.bytes => {
                self.seen.bytes = bytes;
                return false;
            }
            Ok(header) => header,
            Err(error) => return error.kind() == ErrorKind::UnexpectedEof,
        };
        let again = match self.header() {
            Ok(again) => again,
            Err(error) => return error.kind() == ErrorKind::UnexpectedEof,
        };
        // Another process is writing the header right now.
        if header != again {
            return false;
        }
        let count = wal::count_in(&header);
        let is_cut = bytes < self.seen.bytes && bytes < told_bytes(&header);
        let is_older = count.is_before(self.seen.count)
            || (count == Count::NONE && self.seen.count != Count::NONE);
        let is_overwritten = !header.starts_with(MAGIC) || is_cut || is_older;
        if !is_overwritten {
            self.seen = Seen {
                bytes,
                count,
                header: Some(header),
            };
        }
        is_overwritten
    }

    fn header(&self) -> std::io::Result<[u8; HEADER]> {
        let mut header = [0; HEADER];
        self.file.read_exact_at(&mut header, 0).map(|()| header)
    }
}

/// Checks before a change counts as harm, and the pause between them.
const LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The length of the file according to its header.
/// <https://www.sqlite.org/fileformat2.html#the_database_header>
fn told_bytes(header: &[u8; HEADER]) -> u64 {
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    page_size
        * u64::from(u32::from_be_bytes([
            header[28], header[29], header[30], header[31],
        ]))
}

enum Now {
    /// With the length, where the file can be looked at.
    Same(Option<u64>),
    Missing,
    Other,
}

impl Watched {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        Watched {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// None when there is no such file.
    fn at(path: &Path) -> Option<Self> {
        fs::metadata(path)
            .ok()
            .map(|metadata| Watched::of(path, &metadata))
    }

    fn now(&self) -> Now {
        match fs::metadata(&self.path) {
            Ok(metadata) if (metadata.dev(), metadata.ino()) == (self.device, self.inode) => {
                Now::Same(Some(metadata.len()))
            }
            Ok(_) => Now::Other,
            Err(error) if error.kind() == ErrorKind::NotFound => Now::Missing,
            // Another error, such as a lack of rights, says nothing about the file.
            Err(_) => Now::Same(None),
        }
    }
}
