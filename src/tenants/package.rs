//! An agent in a file: a compressed tar with a manifest, tables, memories, messages and files.
//!
//! A package may come from anywhere, so reading trusts nothing: plain files only, paths inside the
//! package only, and limits on everything, counted while unpacking.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _, OpenOptionsExt as _};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use super::error::TenantError;
use super::folders;
use super::lines::{Bounds, Lines, Taken};
use crate::agents::memory::export;
use crate::config::{AgentTable, Visibility};
use crate::domain::AgentId;
use crate::metered::{self, Allowance, Counted, Metered};
use crate::records::transcript::{self, ExportedMessage};

/// Size of an unpacked package.
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
const MAX_ENTRIES: usize = 100_000;
/// Size of the manifest and of the tables.
const MAX_TEXT_BYTES: u64 = 256 * 1024;
/// A memory has 8 KiB, and JSON may write a byte as six.
const OF_MEMORIES: Bounds = Bounds {
    name: MEMORIES,
    line_bytes: 64 * 1024,
    lines: 50_000,
    bytes: 64 * 1024 * 1024,
};
const OF_MESSAGES: Bounds = Bounds {
    name: MESSAGES,
    line_bytes: 7 * 1024 * 1024,
    lines: 1_000_000,
    bytes: 256 * 1024 * 1024,
};
const MAX_DEPTH: usize = 40;

const MANIFEST: &str = "agent.json";
const TABLES: &str = "config.toml";
const MEMORIES: &str = "memories.jsonl";
const MESSAGES: &str = "messages.jsonl";
const FILES: &str = "files";

/// The version of this form; other versions are not read.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    v: u32,
    pub(super) id: AgentId,
    exported_at: i64,
}

/// Everything but the files, to be written.
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
        // The header has the file's length, so bytes appended meanwhile are left out.
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

/// A package whose content was checked. Its lines and files are in a folder until they are taken
/// over.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) manifest: Manifest,
    pub(super) table: AgentTable,
    pub(super) memories: Lines,
    /// The memories among them that all agents saw at home.
    pub(super) global: usize,
    pub(super) messages: Lines,
    pub(super) places: usize,
    /// Lines of the gateway, which stay behind.
    pub(super) lines_of_gateway: usize,
    /// The folder with the files.
    pub(super) files: PathBuf,
}

/// Reads a package into the empty folder `into`. Times in a package end tomorrow.
pub(super) fn read(path: &Path, into: &Path, now: i64) -> Result<Package, TenantError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            TenantError::unknown(format!("there is no file {}", path.display()))
        }
        _ => TenantError::disk(path)(error),
    })?;
    let packed = Counted::new(file);
    let bytes = packed.count();
    unpack(
        GzDecoder::new(BufReader::new(packed)),
        bytes,
        into,
        now + DAY_MS,
    )
    .map_err(|reason| TenantError::package(path, reason))
}

/// Reads any bytes as a package without its compression, for `src/fuzzing.rs`.
pub(crate) fn fuzz(data: &[u8], into: &Path) {
    let packed = Counted::new(data);
    let bytes = packed.count();
    if let Err(reason) = unpack(packed, bytes, into, i64::MAX) {
        assert!(!reason.is_empty(), "a refusal has a reason");
    }
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn unpack(
    reader: impl Read,
    packed: Rc<Cell<u64>>,
    into: &Path,
    latest: i64,
) -> Result<Package, String> {
    let broken = |error: io::Error| unreadable(&error);
    let allowance = Allowance::new(MAX_BYTES).without_bombs(packed);
    let mut archive = Archive::new(Metered::new(reader, &allowance));
    let mut unpacking = Unpacking::new(into, latest)?;
    let mut entries = 0;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let too_much = || format!("it holds more than {} GiB", MAX_BYTES / 1024 / 1024 / 1024);
        allowance.grant(entry.size()).ok_or_else(too_much)?;
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
        unpacking.take(&checked(&path)?, &mut entry)?;
    }
    unpacking.finish()
}

/// Why a package cannot be read on.
pub(super) fn unreadable(error: &io::Error) -> String {
    match metered::refusal(error) {
        Some(reason) => reason.to_owned(),
        None => format!("this is not an agent's package, or it is damaged: {error}"),
    }
}

/// A package on its way into a folder.
struct Unpacking<'a> {
    into: &'a Path,
    files: Dir,
    latest: i64,
    seen: BTreeSet<PathBuf>,
    manifest: Option<Manifest>,
    tables: String,
    memories: Lines,
    global: usize,
    messages: Lines,
    places: transcript::Places,
    lines_of_gateway: usize,
}

impl<'a> Unpacking<'a> {
    fn new(into: &'a Path, latest: i64) -> Result<Self, String> {
        let files = into.join(FILES);
        folders::create(&files).map_err(|error| error.to_string())?;
        let files = Dir::open_ambient_dir(&files, ambient_authority());
        Ok(Unpacking {
            into,
            files: files.map_err(|error| error.to_string())?,
            latest,
            seen: BTreeSet::new(),
            manifest: None,
            tables: String::new(),
            memories: Lines::default(),
            global: 0,
            messages: Lines::default(),
            places: transcript::Places::default(),
            lines_of_gateway: 0,
        })
    }

    fn take(&mut self, path: &Path, entry: &mut impl Read) -> Result<(), String> {
        if is_text(path) && !self.seen.insert(path.to_owned()) {
            return Err(format!("`{}` is in it twice", path.display()));
        }
        match path.to_str() {
            Some(MANIFEST) => {
                let manifest = read_manifest(&text(entry, MANIFEST)?, self.latest)?;
                self.manifest = Some(manifest);
            }
            Some(TABLES) => self.tables = text(entry, TABLES)?,
            Some(MEMORIES) => self.take_memories(entry)?,
            Some(MESSAGES) => self.take_messages(entry)?,
            _ => store(&self.files, path, entry)?,
        }
        Ok(())
    }

    fn take_memories(&mut self, entry: &mut impl Read) -> Result<(), String> {
        let (latest, global) = (self.latest, &mut self.global);
        let check = |line: &str| {
            let memory = export::read_line(line).and_then(|memory| memory.within(latest))?;
            *global += usize::from(memory.visibility == Visibility::Global);
            Ok(Taken::Yes)
        };
        self.memories = Lines::take_in(entry, OF_MEMORIES, &self.into.join(MEMORIES), check)?;
        Ok(())
    }

    fn take_messages(&mut self, entry: &mut impl Read) -> Result<(), String> {
        let (latest, places, lines) = (self.latest, &mut self.places, &mut self.lines_of_gateway);
        let check = |line: &str| match ExportedMessage::read(line, latest)? {
            Some(message) => places.count(&message).map(|()| Taken::Yes),
            None => {
                *lines += 1;
                Ok(Taken::No)
            }
        };
        self.messages = Lines::take_in(entry, OF_MESSAGES, &self.into.join(MESSAGES), check)?;
        Ok(())
    }

    fn finish(self) -> Result<Package, String> {
        let manifest = self
            .manifest
            .ok_or("this is not an agent's package: it has no agent.json")?;
        let table = AgentTable::read(&self.tables, &manifest.id).map_err(|reason| {
            format!(
                "its config.toml is not the table of one agent: {reason}. Nothing was taken over"
            )
        })?;
        Ok(Package {
            manifest,
            table,
            memories: self.memories,
            global: self.global,
            messages: self.messages,
            places: self.places.len(),
            lines_of_gateway: self.lines_of_gateway,
            files: self.into.join(FILES),
        })
    }
}

fn is_text(path: &Path) -> bool {
    [MANIFEST, TABLES, MEMORIES, MESSAGES]
        .into_iter()
        .any(|name| path == Path::new(name))
}

fn read_manifest(json: &str, latest: i64) -> Result<Manifest, String> {
    let manifest: Manifest = serde_json::from_str(json)
        .map_err(|error| format!("its agent.json cannot be read: {error}"))?;
    if !(0..=latest).contains(&manifest.exported_at) {
        return Err("its agent.json was written before 1970 or after tomorrow".to_owned());
    }
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

fn text(entry: &mut impl Read, name: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    entry
        .take(MAX_TEXT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        let most = MAX_TEXT_BYTES / 1024;
        return Err(format!("its {name} is larger than {most} KiB"));
    }
    String::from_utf8(bytes).map_err(|_| format!("its {name} is not UTF-8"))
}

/// Stores a file for its owner only, like everything in the home.
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
    let failed = |error: io::Error| match metered::refusal(&error) {
        Some(reason) => reason.to_owned(),
        None => format!("`{}` cannot be unpacked: {error}", path.display()),
    };
    if let Some(parent) = name
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        dir.create_dir_with(parent, &builder).map_err(failed)?;
    }
    let mut options = cap_std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = dir.open_with(name, &options).map_err(failed)?;
    io::copy(entry, &mut file).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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

    const TOMORROW: i64 = 1_000_000;

    /// Bytes of a file that is not compressed.
    fn plain() -> Rc<Cell<u64>> {
        Rc::new(Cell::new(u64::MAX))
    }

    fn refused(entries: &[(&str, EntryType, &[u8])]) -> String {
        let folder = TempDir::new().unwrap();
        let into = folder.path().join("into");
        let error = unpack(tar(entries).as_slice(), plain(), &into, TOMORROW).unwrap_err();
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
        insta::assert_snapshot!(refused(&[("files/a", file, b"x")]), @"this is not an agent's package: it has no agent.json");
        insta::assert_snapshot!(refused(&[(MANIFEST, file, br#"{"v":2,"id":"rose","exported_at":1}"#)]), @"it has form 2, and this version reads form 1");
        insta::assert_snapshot!(refused(&[(MANIFEST, file, br#"{"v":1,"id":"../x","exported_at":1}"#)]), @"its agent.json cannot be read: an agent id has only a-z, 0-9 and single hyphens inside, such as `night-desk` at line 1 column 18");
    }

    /// Without a limit, a name of 10 MiB would be read into memory before any check.
    #[test]
    fn a_name_without_an_end_is_not_read() {
        let long = vec![b'a'; 10 * 1024 * 1024];
        let kind = EntryType::GNULongName;
        insta::assert_snapshot!(refused(&[GOOD, ("././@LongLink", kind, &long), ("files/a", EntryType::Regular, b"x")]), @"a name in it is too long");
        let usual = vec![b'a'; 200];
        let path = [b"files/".as_slice(), &usual].concat();
        let folder = TempDir::new().unwrap();
        let good = tar(&[
            GOOD,
            ("././@LongLink", kind, &path),
            ("files/a", EntryType::Regular, b"x"),
        ]);
        unpack(
            good.as_slice(),
            plain(),
            &folder.path().join("into"),
            TOMORROW,
        )
        .unwrap();
        assert!(
            folder
                .path()
                .join("into/files")
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
        insta::assert_snapshot!(unpack(bytes.as_slice(), plain(), &folder.path().join("into"), TOMORROW).unwrap_err(), @"it holds more than 2 GiB");
    }

    const MEMORY: &str = r#"{"agent":"rose","visibility":"global","text":"tea","created_at":1}"#;
    const MESSAGE: &str = r#"{"place":"telegram:dm:5","conversation":1,"kind":"person","own":true,"text":"hi","created_at":1}"#;

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
            tables: "[agents.rose]\nemoji = \"x\"\n".into(),
            memories: format!("{MEMORY}\n"),
            messages: format!("{MESSAGE}\n"),
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
        let into = folder.path().join("into");
        let read_back = read(&package, &into, 10).unwrap();
        let Manifest {
            id, exported_at, ..
        } = &read_back.manifest;
        assert_eq!((id.as_str(), *exported_at), ("rose", 5));
        assert_eq!(read_back.table.emoji.as_deref(), Some("x"));
        let lines = |lines: &Lines| {
            let mut all = Vec::new();
            lines
                .each::<io::Error>(|line| {
                    all.push(line.to_owned());
                    Ok(())
                })
                .unwrap();
            all
        };
        assert_eq!(lines(&read_back.memories), [MEMORY]);
        assert_eq!(lines(&read_back.messages), [MESSAGE]);
        assert_eq!((read_back.global, read_back.places), (1, 1));
        let note = into.join("files/memory/2026-05-01.md");
        assert_eq!(fs::read_to_string(&note).unwrap(), "a day");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&note), mode(note.parent().unwrap())), (0o600, 0o700));
        fs::write(
            folder.path().join("half"),
            &fs::read(&package).unwrap()[..60],
        )
        .unwrap();
        assert!(matches!(
            read(
                &folder.path().join("half"),
                &folder.path().join("other"),
                10
            ),
            Err(TenantError::Package { .. })
        ));
    }

    /// Every number and every size has a bound, and the first line beyond it ends the reading.
    #[test]
    fn lines_outside_their_bounds_are_refused_by_file_and_line() {
        let file = EntryType::Regular;
        let memories = |text: &str| refused(&[GOOD, (MEMORIES, file, text.as_bytes())]);
        let messages = |text: &str| refused(&[GOOD, (MESSAGES, file, text.as_bytes())]);
        let changed = |line: &str, from: &str, to: &str| line.replace(from, to);
        insta::assert_snapshot!(memories(&format!("{MEMORY}\n{}", changed(MEMORY, "tea", &"x".repeat(9000)))), @"memories.jsonl, line 2: a memory has at most 8 KiB");
        insta::assert_snapshot!(memories(&changed(MEMORY, "tea", &"x".repeat(70_000))), @"memories.jsonl, line 1: it is longer than 64 KiB");
        insta::assert_snapshot!(memories(&changed(MEMORY, "tea", " ")), @"memories.jsonl, line 1: a memory without words");
        insta::assert_snapshot!(memories(&changed(MEMORY, ":1}", ":-1}")), @"memories.jsonl, line 1: `created_at` is -1, which is before 1970 or after tomorrow");
        insta::assert_snapshot!(memories(&changed(MEMORY, ":1}", ":1000001}")), @"memories.jsonl, line 1: `created_at` is 1000001, which is before 1970 or after tomorrow");
        insta::assert_snapshot!(memories(&format!("{MEMORY}\n").repeat(50_001)), @"memories.jsonl, line 50001: there are more than 50000");
        insta::assert_snapshot!(messages(&changed(MESSAGE, "\"conversation\":1", "\"conversation\":9223372036854775807")), @"messages.jsonl, line 1: `conversation` is 9223372036854775807, and it counts from 1 to 1000000");
        insta::assert_snapshot!(messages(&changed(MESSAGE, ":1}", ":-62135596800000}")), @"messages.jsonl, line 1: `created_at` is -62135596800000, which is before 1970 or after tomorrow");
        insta::assert_snapshot!(messages(&format!("{MESSAGE}\n{{")), @"messages.jsonl, line 2: EOF while parsing an object at line 1 column 1");
        insta::assert_snapshot!(refused(&[(MANIFEST, file, br#"{"v":1,"id":"rose","exported_at":-1}"#)]), @"its agent.json was written before 1970 or after tomorrow");
        insta::assert_snapshot!(refused(&[(MANIFEST, file, br#"{"v":1,"id":"rose","exported_at":1,"uid":"x"}"#)]), @"its agent.json cannot be read: unknown field `uid`, expected one of `v`, `id`, `exported_at` at line 1 column 40");
        insta::assert_snapshot!(refused(&[GOOD, (TABLES, file, &vec![b'#'; 300 * 1024])]), @"its config.toml is larger than 256 KiB");
        insta::assert_snapshot!(refused(&[GOOD, (TABLES, file, b"[memory]\n")]), @"its config.toml is not the table of one agent: line 1: unknown field `memory`, expected `agents`. Nothing was taken over");
    }

    #[test]
    fn a_small_package_that_would_become_huge_is_refused_early() {
        let folder = TempDir::new().unwrap();
        let package = folder.path().join("bomb.tar.gz");
        let mut builder = Builder::new(GzEncoder::new(
            File::create(&package).unwrap(),
            Compression::best(),
        ));
        append(&mut builder, Path::new(MANIFEST), GOOD.2).unwrap();
        let size = 200 * 1024 * 1024;
        builder
            .append_data(
                &mut header(size),
                "files/workspace/zeros",
                io::repeat(0).take(size),
            )
            .unwrap();
        builder.into_inner().unwrap().finish().unwrap();
        let into = folder.path().join("into");
        let told = read(&package, &into, 10).unwrap_err().to_string();
        assert!(told.ends_with("it is small and would become huge: more than 64 MiB, and more than 100 times its size"), "{told}");
        let written = fs::metadata(into.join("files/workspace/zeros")).unwrap();
        assert!(written.len() < 80 * 1024 * 1024, "{}", written.len());
    }
}
