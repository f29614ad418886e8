//! The form of an archive: its first entry, the checksums at its end, and the names in between.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

/// The first entry: the program that made the archive, and the time.
pub(super) const HEAD: &str = "parlor-backup.json";
/// The last entry, in the form of `sha256sum`.
pub(super) const SUMS: &str = "SHA256SUMS";
/// The folder of the home's files, so that a plain `tar xzf` makes a home too.
pub(super) const FILES: &str = "home";
/// The version of this form; other versions are not read.
pub(super) const FORM: u32 = 1;

pub(super) const MAX_ENTRIES: usize = 500_000;
pub(super) const MAX_HEAD_BYTES: u64 = 64 * 1024;
pub(super) const MAX_SUMS_BYTES: u64 = 128 * 1024 * 1024;
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) form: u32,
    /// The version of the program that made the archive.
    pub(super) parlor: String,
    /// The database's schema. None for a home without a database.
    pub(super) schema: Option<u32>,
    /// Unix milliseconds.
    pub(super) made_at: i64,
    /// Whether files with secrets are in the archive.
    pub(super) has_secrets: bool,
}

/// Checksums in hex by the name of the entry.
pub(super) type Sums = BTreeMap<PathBuf, String>;

/// Lines as `sha256sum` writes them: a name with a line break or a backslash is escaped.
pub(super) fn write_sums(sums: &Sums) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, sum) in sums {
        let name = name.as_os_str().as_bytes();
        let escaped = escaped(name);
        if escaped != name {
            text.push(b'\\');
        }
        text.extend_from_slice(sum.as_bytes());
        text.extend_from_slice(b"  ");
        text.extend_from_slice(&escaped);
        text.push(b'\n');
    }
    text
}

fn escaped(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            byte => escaped.push(*byte),
        }
    }
    escaped
}

/// None for a text other than a list of checksums.
pub(super) fn read_sums(text: &[u8]) -> Option<Sums> {
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.map(read_line).collect()
}

fn read_line(line: &[u8]) -> Option<(PathBuf, String)> {
    const HEX: usize = 64;
    let (is_escaped, line) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (sum, rest) = line.split_at_checked(HEX)?;
    let name = rest.strip_prefix(b"  ")?;
    let name = if is_escaped {
        plain(name)?
    } else {
        name.to_owned()
    };
    let sum = std::str::from_utf8(sum).ok()?;
    Some((PathBuf::from(OsString::from_vec(name)), sum.to_owned()))
}

fn plain(escaped: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = escaped.iter();
    let mut plain = Vec::with_capacity(escaped.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(plain)
}

/// The path inside the home of an entry below [`FILES`], made of plain names. None for [`FILES`]
/// itself.
pub(super) fn inside(path: &Path) -> Result<Option<PathBuf>, String> {
    let shown = path.display();
    let names: Vec<Component<'_>> = path.components().collect();
    let is_plain = names
        .iter()
        .all(|name| matches!(name, Component::Normal(_)));
    if !is_plain || names.is_empty() {
        return Err(format!("`{shown}` would lie outside the home folder"));
    }
    if names.len() > MAX_DEPTH {
        return Err(format!(
            "a folder in it is more than {MAX_DEPTH} folders deep"
        ));
    }
    if names[0] != Component::Normal(FILES.as_ref()) {
        return Err(format!("`{shown}` does not belong into a backup"));
    }
    let rest: PathBuf = names[1..].iter().collect();
    Ok(Some(rest).filter(|rest| !rest.as_os_str().is_empty()))
}

/// Computes the checksum of all bytes on the way.
pub(super) struct Summed<R> {
    reader: R,
    context: Context,
    bytes: u64,
}

impl<R: Read> Summed<R> {
    pub(super) fn new(reader: R) -> Self {
        Summed {
            reader,
            context: Context::new(&SHA256),
            bytes: 0,
        }
    }

    /// The checksum in hex, and the number of bytes.
    pub(super) fn finish(self) -> (String, u64) {
        let digest = self.context.finish();
        let hex = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        (hex.collect(), self.bytes)
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.context.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_read_as_they_were_written() {
        let mut sums = Sums::new();
        for name in [
            "home/a",
            "home/two words",
            "home/a\nb",
            "home/a\\b",
            "home/ü",
        ] {
            sums.insert(PathBuf::from(name), "0".repeat(64));
        }
        let odd = PathBuf::from(OsString::from_vec(vec![b'h', 0xff]));
        sums.insert(odd, "a".repeat(64));
        let text = write_sums(&sums);
        assert_eq!(read_sums(&text), Some(sums));
        for wrong in ["short", "\\zz", &format!("{}x", "0".repeat(64))] {
            assert_eq!(read_sums(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn only_plain_names_below_the_home_are_inside() {
        let check = |path: &str| inside(Path::new(path)).map(|inside| inside.unwrap_or_default());
        assert_eq!(check("home/a/b"), Ok("a/b".into()));
        assert_eq!(check("home"), Ok("".into()));
        for wrong in [
            "../a",
            "home/../a",
            "/home/a",
            "other/a",
            "",
            "home/../../etc/passwd",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        let deep = format!("home/{}", "d/".repeat(MAX_DEPTH));
        assert!(check(&deep).is_err());
    }
}
