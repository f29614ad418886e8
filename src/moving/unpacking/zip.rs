//! Reads a zip: the list at its end, then each stored or deflated file.
//!
//! The form: <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>. Archives of more than 4
//! GiB or 65,535 files have another form, and encrypted archives are not read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::{Bad, Kind, Target, refused};

/// The record at the end, without its comment.
const END_BYTES: u64 = 22;
const END_MARK: [u8; 4] = [b'P', b'K', 5, 6];
const LISTED_BYTES: usize = 46;
const LISTED_MARK: [u8; 4] = [b'P', b'K', 1, 2];
const LOCAL_BYTES: usize = 30;
const LOCAL_MARK: [u8; 4] = [b'P', b'K', 3, 4];
/// The list of 65,535 names is far shorter.
const MAX_LIST_BYTES: u64 = 64 * 1024 * 1024;
/// Files become a tenth when packed, not a hundredth; small archives may be odd.
const MOST_TIMES: u64 = 100;
const ALWAYS_BYTES: u64 = 64 * 1024 * 1024;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// An entry of the list.
struct Listed {
    name: String,
    kind: Kind,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    offset: u64,
}

pub(super) fn unpack(mut file: File, most: u64, target: &mut Target<'_>) -> Result<(), Bad> {
    let whole = file.metadata().map_err(Bad::Source)?.len();
    let list = list(&mut file, whole)?;
    let size = list
        .iter()
        .try_fold(0_u64, |sum, entry| sum.checked_add(entry.size));
    let Some(size) = size.filter(|size| *size <= most) else {
        return refused("it would unpack to more than 8 GiB");
    };
    if size > ALWAYS_BYTES && size / MOST_TIMES > whole {
        return refused(
            "it is small and would become huge: more than 64 MiB, and more than 100 times its size",
        );
    }
    let mut file = BufReader::new(file);
    for entry in &list {
        match entry.kind {
            Kind::File => extract(&mut file, entry, target)?,
            kind => target.put(Path::new(&entry.name), kind, &mut io::empty())?,
        }
    }
    Ok(())
}

fn list(file: &mut File, whole: u64) -> Result<Vec<Listed>, Bad> {
    let end = end(file, whole)?;
    let (count, bytes, offset) = (
        short(&end, 10),
        u64::from(long(&end, 12)),
        u64::from(long(&end, 16)),
    );
    if count == u16::MAX || offset == u64::from(u32::MAX) {
        return refused("it is a zip of the large form (zip64); unpack it, and name the folder");
    }
    if bytes > MAX_LIST_BYTES || offset.saturating_add(bytes) > whole {
        return refused(DAMAGED);
    }
    file.seek(SeekFrom::Start(offset)).map_err(Bad::Source)?;
    let mut text = Vec::new();
    file.take(bytes)
        .read_to_end(&mut text)
        .map_err(Bad::Source)?;
    let (mut rest, mut entries) = (text.as_slice(), Vec::new());
    for _ in 0..count {
        let (entry, behind) = listed(rest)?;
        entries.push(entry);
        rest = behind;
    }
    Ok(entries)
}

/// The record at the end, perhaps before a comment.
fn end(file: &mut File, whole: u64) -> Result<Vec<u8>, Bad> {
    let most = END_BYTES + u64::from(u16::MAX);
    let from = whole.saturating_sub(most);
    file.seek(SeekFrom::Start(from)).map_err(Bad::Source)?;
    let mut tail = Vec::new();
    file.take(most)
        .read_to_end(&mut tail)
        .map_err(Bad::Source)?;
    let size = usize::try_from(END_BYTES).unwrap_or_default();
    let at = tail
        .windows(size)
        .rposition(|part| part.starts_with(&END_MARK));
    match at {
        Some(at) => Ok(tail[at..at + size].to_vec()),
        None => refused(DAMAGED),
    }
}

const DAMAGED: &str = "it is damaged";

/// The first entry of the list, and the rest.
fn listed(list: &[u8]) -> Result<(Listed, &[u8]), Bad> {
    let is_whole = list.len() >= LISTED_BYTES && list.starts_with(&LISTED_MARK);
    if !is_whole {
        return refused(DAMAGED);
    }
    let lengths = [28, 30, 32].map(|at| usize::from(short(list, at)));
    let [name, extra, comment] = lengths;
    let behind = LISTED_BYTES + name + extra + comment;
    let (Some(name), Some(rest)) = (
        list.get(LISTED_BYTES..LISTED_BYTES + name),
        list.get(behind..),
    ) else {
        return refused(DAMAGED);
    };
    if short(list, 8) & 1 != 0 {
        return refused("it is encrypted; unpack it, and name the folder");
    }
    let name = String::from_utf8_lossy(name).into_owned();
    let entry = Listed {
        kind: kind(list, &name),
        name,
        method: short(list, 10),
        crc: long(list, 16),
        packed: u64::from(long(list, 20)),
        size: u64::from(long(list, 24)),
        offset: u64::from(long(list, 42)),
    };
    if [entry.packed, entry.size, entry.offset].contains(&u64::from(u32::MAX)) {
        return refused("it is a zip of the large form (zip64); unpack it, and name the folder");
    }
    Ok((entry, rest))
}

/// An archive of a Unix system has the mode of each file.
fn kind(list: &[u8], name: &str) -> Kind {
    const UNIX: u8 = 3;
    const KIND: u32 = 0o170_000;
    const PLAIN: u32 = 0o100_000;
    const FOLDER: u32 = 0o040_000;
    let mode = long(list, 38) >> 16;
    match () {
        () if name.ends_with('/') => Kind::Folder,
        () if list[5] != UNIX || matches!(mode & KIND, 0 | PLAIN) => Kind::File,
        () if mode & KIND == FOLDER => Kind::Folder,
        () => Kind::Other,
    }
}

fn extract(file: &mut BufReader<File>, entry: &Listed, target: &mut Target<'_>) -> Result<(), Bad> {
    file.seek(SeekFrom::Start(entry.offset))
        .map_err(Bad::Source)?;
    let mut local = [0; LOCAL_BYTES];
    file.read_exact(&mut local).map_err(Bad::Source)?;
    if !local.starts_with(&LOCAL_MARK) {
        return refused(DAMAGED);
    }
    let behind = i64::from(short(&local, 26)) + i64::from(short(&local, 28));
    file.seek_relative(behind).map_err(Bad::Source)?;
    let packed = file.by_ref().take(entry.packed);
    let plain: Box<dyn Read + '_> = match entry.method {
        STORED => Box::new(packed),
        DEFLATED => Box::new(DeflateDecoder::new(packed)),
        method => return refused(format!("it is packed in a way that is not read ({method})")),
    };
    let mut checked = Checked {
        // A byte beyond the size proves the list wrong.
        reader: plain.take(entry.size + 1),
        crc: Crc::new(),
    };
    target.put(Path::new(&entry.name), Kind::File, &mut checked)?;
    // A skipped entry was not read.
    let is_read = u64::from(checked.crc.amount()) > 0;
    let is_right = checked.crc.sum() == entry.crc && u64::from(checked.crc.amount()) == entry.size;
    match is_right || !is_read {
        true => Ok(()),
        false => refused(DAMAGED),
    }
}

/// Sums up while reading.
struct Checked<R> {
    reader: R,
    crc: Crc,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.crc.update(&buffer[..read]);
        Ok(read)
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
