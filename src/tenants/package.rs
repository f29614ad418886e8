//! An agent in a file: a compressed tar with a manifest, tables, memories, messages and files.
//!
//! A package may come from anywhere, so reading trusts nothing: plain files only, paths inside the
//! package only, and limits on everything, counted while unpacking.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use super::error::TenantError;
use super::folders;
use crate::domain::AgentId;

/// Size of an unpacked package.
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
const MAX_ENTRIES: usize = 100_000;
/// Size of each of the texts besides the files.
const MAX_TEXT_BYTES: u64 = 256 * 1024 * 1024;
const MAX_DEPTH: usize = 40;

const MANIFEST: &str = "agent.json";
const TABLES: &str = "config.toml";
const MEMORIES: &str = "memories.jsonl";
const MESSAGES: &str = "messages.jsonl";
const FILES: &str = "files";

/// The version of this form; other versions are not read.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    v: u32,
    pub(super) id: AgentId,
    exported_at: i64,
}

/// Everything but the files.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) tables: String,
    pub(super) memories: String,
    pub(super) messages: String,
}

impl Manifest {
    pub(super) fn new(id: AgentId, now: i64) -> Self {
        Manifest {
            v: VERSION,
            id,
            exported_at: now,
        }
    }
}

/// Writes a package. The file gets its name when complete, and an existing file is not overwritten.
pub(super) fn write(
    path: &Path,
    manifest: &Manifest,
    texts: &Texts,
    folder: &Path,
    files: &[PathBuf],
) -> Result<(), TenantError> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(TenantError::conflict(format!(
            "{} is there already. Choose another name with --output",
            path.display()
        )));
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written =
        write_all(&beside, manifest, texts, folder, files).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // A leftover file does no harm, and the error of the write matters more.
        let _ = fs::remove_file(&beside);
        TenantError::disk(path)(error)
    })
}

fn write_all(
    path: &Path,
    manifest: &Manifest,
    texts: &Texts,
    folder: &Path,
    files: &[PathBuf],
) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    let mut builder = Builder::new(GzEncoder::new(BufWriter::new(file), Compression::default()));
    let json = serde_json::to_vec_pretty(manifest)?;
    append(&mut builder, Path::new(MANIFEST), &json)?;
    for (name, text) in [
        (TABLES, &texts.tables),
        (MEMORIES, &texts.memories),
        (MESSAGES, &texts.messages),
    ] {
        append(&mut builder, Path::new(name), text.as_bytes())?;
    }
    for name in files {
        let mut file = File::open(folder.join(name))?;
        let mut header = header(file.metadata()?.len());
        let size = header.size()?;
        // The header has the file's length, so bytes that are appended meanwhile are left out.
        builder.append_data(
            &mut header,
            Path::new(FILES).join(name),
            (&mut file).take(size),
        )?;
    }
    let written = builder
        .into_inner()?
        .finish()?
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    written.sync_all()
}

fn append<W: Write>(builder: &mut Builder<W>, name: &Path, content: &[u8]) -> io::Result<()> {
    builder.append_data(&mut header(content.len() as u64), name, content)
}

fn header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header
}

/// Reads a package; its files go into the empty folder `into`.
pub(super) fn read(path: &Path, into: &Path) -> Result<(Manifest, Texts), TenantError> {
    let file = File::open(path).map_err(TenantError::disk(path))?;
    unpack(GzDecoder::new(BufReader::new(file)), into)
        .map_err(|reason| TenantError::package(path, reason))
}

fn unpack(reader: impl Read, into: &Path) -> Result<(Manifest, Texts), String> {
    let broken =
        |error: io::Error| format!("this is no package of an agent, or it is damaged: {error}");
    folders::create(into).map_err(|error| error.to_string())?;
    let dir =
        Dir::open_ambient_dir(into, ambient_authority()).map_err(|error| error.to_string())?;
    let allowance = Allowance::default();
    let mut archive = Archive::new(Metered {
        reader,
        allowance: allowance.clone(),
    });
    let (mut manifest, mut texts, mut entries, mut seen) =
        (None, Texts::default(), 0, BTreeSet::new());
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        allowance.grant(entry.size())?;
        entries += 1;
        if entries > MAX_ENTRIES {
            return Err(format!("it holds more than {MAX_ENTRIES} files"));
        }
        let path = entry.path().map_err(broken)?.into_owned();
        if entry.header().entry_type() == EntryType::Directory {
            continue;
        }
        if entry.header().entry_type() != EntryType::Regular {
            return Err(format!(
                "`{}` is a link or something else that is no plain file",
                path.display()
            ));
        }
        let inside = checked(&path)?;
        if is_text(&inside) && !seen.insert(inside.clone()) {
            return Err(format!("`{}` is in it twice", inside.display()));
        }
        match inside.to_str() {
            Some(MANIFEST) => manifest = Some(read_manifest(&text(&mut entry)?)?),
            Some(TABLES) => texts.tables = text(&mut entry)?,
            Some(MEMORIES) => texts.memories = text(&mut entry)?,
            Some(MESSAGES) => texts.messages = text(&mut entry)?,
            _ => store(&dir, &inside, &mut entry)?,
        }
    }
    Ok((
        manifest.ok_or("this is no package of an agent: it has no agent.json")?,
        texts,
    ))
}

/// Bytes that may still be read: the next header, then as many bytes as that header announces.
#[derive(Clone)]
struct Allowance {
    now: Rc<Cell<u64>>,
    in_all: Rc<Cell<u64>>,
}

/// A header with a long name, or the end of the file.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            now: Rc::new(Cell::new(MAX_HEADER_BYTES)),
            in_all: Rc::new(Cell::new(MAX_BYTES)),
        }
    }
}

impl Allowance {
    fn grant(&self, bytes: u64) -> Result<(), String> {
        let too_much = || format!("it holds more than {} GiB", MAX_BYTES / 1024 / 1024 / 1024);
        self.in_all
            .set(self.in_all.get().checked_sub(bytes).ok_or_else(too_much)?);
        self.now.set(bytes + MAX_HEADER_BYTES);
        Ok(())
    }
}

/// Limits the bytes that the tar reader gets, because the reader puts names of any length into
/// memory.
struct Metered<R> {
    reader: R,
    allowance: Allowance,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.now.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("a name in it is too long"));
        }
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self.reader.read(&mut buffer[..most])?;
        self.allowance.now.set(left - read as u64);
        Ok(read)
    }
}

fn is_text(path: &Path) -> bool {
    [MANIFEST, TABLES, MEMORIES, MESSAGES]
        .into_iter()
        .any(|name| path == Path::new(name))
}

fn read_manifest(json: &str) -> Result<Manifest, String> {
    let manifest: Manifest = serde_json::from_str(json)
        .map_err(|error| format!("its agent.json cannot be read: {error}"))?;
    match manifest.v {
        VERSION => Ok(manifest),
        other => Err(format!(
            "it has form {other}, and this version reads form {VERSION}"
        )),
    }
}

/// A path of plain names.
fn checked(path: &Path) -> Result<PathBuf, String> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    let inside: Vec<Component<'_>> = names.collect();
    let plain = inside
        .iter()
        .all(|part| matches!(part, Component::Normal(_)));
    if inside.len() > MAX_DEPTH {
        return Err(format!(
            "a folder in it is more than {MAX_DEPTH} folders deep"
        ));
    }
    if !plain || inside.is_empty() {
        return Err(format!(
            "`{}` would lie outside the agent's folder",
            path.display()
        ));
    }
    Ok(inside.iter().collect())
}

fn text(entry: &mut impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    entry
        .take(MAX_TEXT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it is damaged: {error}"))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(format!(
            "one of its texts is larger than {} MiB",
            MAX_TEXT_BYTES / 1024 / 1024
        ));
    }
    String::from_utf8(bytes).map_err(|_| "one of its texts is not UTF-8".to_owned())
}

fn store(dir: &Dir, path: &Path, entry: &mut impl Read) -> Result<(), String> {
    let Ok(name) = path.strip_prefix(FILES) else {
        return Err(format!(
            "`{}` does not belong into a package",
            path.display()
        ));
    };
    if name.as_os_str().is_empty() {
        return Err("`files` must be a folder".to_owned());
    }
    let failed = |error: io::Error| format!("`{}` cannot be unpacked: {error}", path.display());
    if let Some(parent) = name
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        dir.create_dir_all(parent).map_err(failed)?;
    }
    let mut options = cap_std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = dir.open_with(name, &options).map_err(failed)?;
    io::copy(entry, &mut file).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A tar with paths the tar crate would refuse to write.
    fn tar(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind, content) in entries {
            let mut header = header(content.len() as u64);
            header.set_entry_type(*kind);
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            if *kind != EntryType::Regular {
                header.set_link_name("target").unwrap();
            }
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    const GOOD: (&str, EntryType, &[u8]) = (
        MANIFEST,
        EntryType::Regular,
        br#"{"v":1,"id":"rose","exported_at":1}"#,
    );

    fn refused(entries: &[(&str, EntryType, &[u8])]) -> String {
        let folder = TempDir::new().unwrap();
        let into = folder.path().join("into");
        let error = unpack(tar(entries).as_slice(), &into).unwrap_err();
        let found: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(found, ["into"], "nothing outside the folder");
        error
    }

    /// S4.27
    #[test]
    fn what_would_lie_elsewhere_is_not_unpacked() {
        let file = EntryType::Regular;
        insta::assert_snapshot!(refused(&[GOOD, ("../evil", file, b"x")]), @"`../evil` would lie outside the agent's folder");
        insta::assert_snapshot!(refused(&[GOOD, ("files/../../evil", file, b"x")]), @"`files/../../evil` would lie outside the agent's folder");
        insta::assert_snapshot!(refused(&[GOOD, ("/etc/evil", file, b"x")]), @"`/etc/evil` would lie outside the agent's folder");
        insta::assert_snapshot!(refused(&[GOOD, ("files/link", EntryType::Symlink, b"")]), @"`files/link` is a link or something else that is no plain file");
        insta::assert_snapshot!(refused(&[GOOD, ("files/hard", EntryType::Link, b"")]), @"`files/hard` is a link or something else that is no plain file");
        insta::assert_snapshot!(refused(&[GOOD, ("files/pipe", EntryType::Fifo, b"")]), @"`files/pipe` is a link or something else that is no plain file");
        insta::assert_snapshot!(refused(&[GOOD, ("other", file, b"x")]), @"`other` does not belong into a package");
        insta::assert_snapshot!(refused(&[GOOD, ("files/a", file, b"x"), ("files/a", file, b"y")]), @"`files/a` cannot be unpacked: File exists (os error 17)");
        let deep = format!("files/{}x", "d/".repeat(MAX_DEPTH));
        insta::assert_snapshot!(refused(&[GOOD, (&deep, file, b"x")]), @"a folder in it is more than 40 folders deep");
        insta::assert_snapshot!(refused(&[GOOD, GOOD]), @"`agent.json` is in it twice");
        insta::assert_snapshot!(refused(&[("files/a", file, b"x")]), @"this is no package of an agent: it has no agent.json");
        insta::assert_snapshot!(refused(&[(MANIFEST, file, br#"{"v":2,"id":"rose","exported_at":1}"#)]), @"it has form 2, and this version reads form 1");
        insta::assert_snapshot!(refused(&[(MANIFEST, file, br#"{"v":1,"id":"../x","exported_at":1}"#)]), @"its agent.json cannot be read: an agent id has only a-z, 0-9 and single hyphens inside, such as `night-desk` at line 1 column 18");
    }

    /// Without a limit, a name of 10 MiB would be read into memory before any check.
    #[test]
    fn a_name_without_an_end_is_not_read() {
        let long = vec![b'a'; 10 * 1024 * 1024];
        let kind = EntryType::GNULongName;
        insta::assert_snapshot!(refused(&[GOOD, ("././@LongLink", kind, &long), ("files/a", EntryType::Regular, b"x")]), @"this is no package of an agent, or it is damaged: a name in it is too long");
        let usual = vec![b'a'; 200];
        let path = [b"files/".as_slice(), &usual].concat();
        let folder = TempDir::new().unwrap();
        let good = tar(&[
            GOOD,
            ("././@LongLink", kind, &path),
            ("files/a", EntryType::Regular, b"x"),
        ]);
        unpack(good.as_slice(), &folder.path().join("into")).unwrap();
        assert!(
            folder
                .path()
                .join("into")
                .join(String::from_utf8(usual).unwrap())
                .exists()
        );
    }

    #[test]
    fn a_package_that_says_it_is_huge_is_not_begun() {
        let mut bytes = tar(&[GOOD]);
        bytes.truncate(1024);
        let mut header = header(3 * 1024 * 1024 * 1024);
        header.set_path("files/big").unwrap();
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        let folder = TempDir::new().unwrap();
        insta::assert_snapshot!(unpack(bytes.as_slice(), &folder.path().join("into")).unwrap_err(), @"it holds more than 2 GiB");
    }

    #[test]
    fn a_package_reads_back_as_it_was_written() {
        let folder = TempDir::new().unwrap();
        let (source, package) = (
            folder.path().join("source"),
            folder.path().join("rose.tar.gz"),
        );
        fs::create_dir_all(source.join("memory")).unwrap();
        fs::write(source.join("SOUL.md"), "soul").unwrap();
        fs::write(source.join("memory/2026-05-01.md"), "a day").unwrap();
        let texts = Texts {
            tables: "[agents.rose]\n".into(),
            memories: "m".into(),
            messages: "n".into(),
        };
        let manifest = Manifest::new(AgentId::parse("rose").unwrap(), 5);
        let files = [
            PathBuf::from("SOUL.md"),
            PathBuf::from("memory/2026-05-01.md"),
        ];
        write(&package, &manifest, &texts, &source, &files).unwrap();
        assert!(matches!(
            write(&package, &manifest, &texts, &source, &files),
            Err(TenantError::Conflict(_))
        ));
        let (read_manifest, read_texts) = read(&package, &folder.path().join("into")).unwrap();
        assert_eq!(
            (read_manifest.id.as_str(), read_manifest.exported_at),
            ("rose", 5)
        );
        assert_eq!(
            (read_texts.tables, read_texts.memories, read_texts.messages),
            (texts.tables, texts.memories, texts.messages)
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("into/memory/2026-05-01.md")).unwrap(),
            "a day"
        );
        fs::write(
            folder.path().join("half"),
            &fs::read(&package).unwrap()[..60],
        )
        .unwrap();
        assert!(matches!(
            read(&folder.path().join("half"), &folder.path().join("other")),
            Err(TenantError::Package { .. })
        ));
    }
}
