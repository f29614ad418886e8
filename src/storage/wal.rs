//! Reads the write-ahead log beside the database before SQLite does, to tell whether the two belong
//! together.
//!
//! SQLite takes any log with the right name: beside an older copy of the database, pages of both
//! are mixed. The format is at <https://www.sqlite.org/fileformat2.html#walformat>.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::commits::{Count, Counts};

/// Tries to read the log and the database without a write of another process in between.
const LOOKS: usize = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The lowest bit of the magic number gives the byte order of checksummed words.
const MAGIC: u32 = 0x377f_0682;
const PAGE_SIZES: RangeInclusive<usize> = 512..=65_536;
/// The position of `application_id` in the database's header.
const COUNT_AT: usize = 68;
/// SQLite locks files at this byte, and keeps nothing on its page.
const LOCK_AT: usize = 0x4000_0000;

/// The log's path. For a database behind a link, the log is beside the target of the link.
pub(super) fn beside(database: &Path) -> PathBuf {
    with_suffix(&real(database), "-wal")
}

pub(super) fn real(database: &Path) -> PathBuf {
    database
        .canonicalize()
        .unwrap_or_else(|_| database.to_owned())
}

pub(super) fn with_suffix(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether the log beside the database, if any, continues the present state of the database.
pub(super) fn fits(file: &File, path: &Path) -> io::Result<bool> {
    fits_at_last(file, path, || std::thread::sleep(BETWEEN_LOOKS))
}

/// Only two equal looks count as a misfit. A running process may have begun its log anew in the middle
/// of a look, and a process that ends cuts it off.
fn fits_at_last(file: &File, path: &Path, mut pause: impl FnMut()) -> io::Result<bool> {
    let mut misfit = None;
    for _ in 0..LOOKS {
        let database = count_of(file)?;
        let Some(counts) = read(&beside(path))?.and_then(|log| log.counts) else {
            return Ok(true);
        };
        if counts.go_on_from(database) {
            return Ok(true);
        }
        if misfit.replace((database, counts)) == Some((database, counts)) {
            break;
        }
        pause();
    }
    Ok(false)
}

/// The count in the file, without commits still in the log.
pub(super) fn count_of(file: &File) -> io::Result<Count> {
    let mut bytes = [0; 4];
    match file.read_exact_at(&mut bytes, COUNT_AT as u64) {
        Ok(()) => Ok(Count(u32::from_be_bytes(bytes))),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Count::NONE),
        Err(error) => Err(error),
    }
}

/// Whether the file is as long as the log needs: every page is in one of the two. SQLite itself
/// checks the length of a database without a log only, and takes missing pages for empty ones.
///
/// A page outside of both would be possible without `secure_delete`: SQLite does not write a page
/// that was made and freed by the same transaction.
pub(super) fn is_whole(file: &File, path: &Path) -> io::Result<bool> {
    let Some(log) = read(&beside(path))? else {
        return Ok(true);
    };
    // Looked at after the log, because a running process moves pages from the log to the file.
    let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let in_file = u32::try_from(bytes / log.page_size).unwrap_or(u32::MAX);
    let lock_page = u32::try_from(LOCK_AT / log.page_size + 1).unwrap_or(u32::MAX);
    let is_kept = |page: u32| page == lock_page || log.pages.contains(&page);
    Ok((in_file.saturating_add(1)..=log.database_pages).all(is_kept))
}

/// The commits in a log.
struct Log {
    page_size: usize,
    /// None without a commit with a count.
    counts: Option<Counts>,
    /// Pages of the log's commits.
    pages: BTreeSet<u32>,
    /// The length of the database after the last commit.
    database_pages: u32,
}

/// None without a log.
fn read(log: &Path) -> io::Result<Option<Log>> {
    let file = match File::open(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match read_commits(BufReader::new(file)) {
        // A log may end anywhere.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        log => log,
    }
}

fn read_commits(mut log: impl Read) -> io::Result<Option<Log>> {
    let mut header = [0; LOG_HEADER];
    log.read_exact(&mut header)?;
    let page_size = word(&header, 8) as usize;
    let mut sum = Checksum {
        is_big_endian: word(&header, 0) == MAGIC | 1,
        sums: (0, 0),
    };
    sum.add(&header[..24]);
    let is_log = word(&header, 0) | 1 == MAGIC | 1
        && PAGE_SIZES.contains(&page_size)
        && sum.is_at(&header, 24);
    if !is_log {
        return Ok(None);
    }
    let mut commits = Log {
        page_size,
        counts: None,
        pages: BTreeSet::new(),
        database_pages: 0,
    };
    let mut open = Vec::new();
    let mut frame = vec![0; FRAME_HEADER + page_size];
    while log.read_exact(&mut frame).is_ok() {
        sum.add(&frame[..8]);
        sum.add(&frame[FRAME_HEADER..]);
        // Later frames are from before the log was begun anew, or were being written.
        if frame[8..16] != header[16..24] || !sum.is_at(&frame, 16) {
            break;
        }
        if word(&frame, 0) == 1 {
            let last = count_in(&frame[FRAME_HEADER..]);
            commits.counts = Some(Counts {
                first: commits.counts.map_or(last, |counts| counts.first),
                last,
            });
        }
        open.push(word(&frame, 0));
        // Only the last frame of a commit tells a length.
        if word(&frame, 4) > 0 {
            commits.pages.extend(open.drain(..));
            commits.database_pages = word(&frame, 4);
        }
    }
    Ok(Some(commits))
}

/// The count in the header of a database, or in its first page.
pub(super) fn count_in(header: &[u8]) -> Count {
    Count(word(header, COUNT_AT))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Runs on from frame to frame.
struct Checksum {
    is_big_endian: bool,
    sums: (u32, u32),
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let read = |bytes: &[u8]| {
            if self.is_big_endian {
                word(bytes, 0)
            } else {
                word(bytes, 0).swap_bytes()
            }
        };
        let (mut first, mut second) = self.sums;
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(read(&pair[..4])).wrapping_add(second);
            second = second.wrapping_add(read(&pair[4..])).wrapping_add(first);
        }
        self.sums = (first, second);
    }

    /// Whether the sums equal the sums written here.
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        self.sums == (word(bytes, at), word(bytes, at + 4))
    }
}

#[cfg(test)]
mod tests;
