//! An installation of another system, for reading only. Each unreadable thing is noted for the
//! report, and the rest goes on.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

use super::found::{Content, FoundAgent};
use super::report::{Item, Kind, State};
use super::some;
use super::spool::{Spool, Spooled};
use super::staging::Staging;
use super::tree::{Tree, What};
use crate::records::transcript::Arriving;

/// The largest text to be read: a config, an identity file.
const MAX_TEXT_BYTES: u64 = 4 * 1024 * 1024;
/// The largest file to be copied.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// The largest database to be copied for reading.
const MAX_DATABASE_BYTES: u64 = 8 * 1024 * 1024 * 1024;
/// Files below a folder.
const MOST_FILES: usize = 5_000;
const MAX_DEPTH: usize = 12;
/// Attempts at copying a database with concurrent writes.
const MOST_TRIES: usize = 3;

pub(super) struct Source {
    pub(super) tree: Arc<Tree>,
    pub(super) staging: Staging,
    /// The folder or the archive, by the person's name for it.
    pub(super) name: PathBuf,
    /// The source is an archive. An archive may come from strangers, so no file outside the archive
    /// is read for its sake.
    is_archive: bool,
    notes: Mutex<Vec<Item>>,
    spool: Mutex<Option<Spool>>,
}

impl Source {
    pub(super) fn open(folder: &Path, staging: Staging) -> io::Result<Self> {
        Self::new(Tree::open(folder)?, folder, staging, false)
    }

    /// An archive, unpacked into the staging folder.
    pub(super) fn unpacked(folder: &Path, archive: &Path, staging: Staging) -> io::Result<Self> {
        let tree = Tree::shown_as(folder.to_owned(), archive.to_owned())?;
        Self::new(tree, archive, staging, true)
    }

    fn new(tree: Tree, name: &Path, staging: Staging, is_archive: bool) -> io::Result<Self> {
        let spool = Spool::new(staging.path().join("messages"))?;
        Ok(Source {
            tree: Arc::new(tree),
            staging,
            name: name.to_owned(),
            is_archive,
            notes: Mutex::default(),
            spool: Mutex::new(Some(spool)),
        })
    }

    /// A folder outside, named by the source with its whole path.
    pub(super) fn outside(&self, path: &Path) -> Option<Tree> {
        match self.is_archive {
            true => None,
            false => Tree::open(path).ok(),
        }
    }

    /// Notes an item for the report.
    pub(super) fn note(&self, item: Item) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(item);
    }

    pub(super) fn left(&self, kind: Kind, what: impl AsRef<str>, why: impl AsRef<str>) {
        self.note(Item::left(kind, what, why));
    }

    /// Notes a task for a person.
    pub(super) fn manual(&self, kind: Kind, what: impl AsRef<str>, why: impl AsRef<str>) {
        self.note(Item::new(kind, what, State::Manual).because(why));
    }

    pub(super) fn take_notes(&self) -> Vec<Item> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashSet::new();
        let mut notes = std::mem::take(&mut *notes);
        // A list read twice has the same faults twice.
        notes.retain(|item| seen.insert((item.source.clone(), item.why.clone())));
        notes
    }

    /// Keeps the messages of a conversation until they are carried.
    pub(super) fn spool(&self, messages: Vec<Arriving>) -> io::Result<Spooled> {
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        let spool = spool.as_mut().ok_or(io::ErrorKind::InvalidInput)?;
        spool.add(messages)
    }

    pub(super) fn spooled(&self) -> io::Result<super::spool::Kept> {
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        spool.take().ok_or(io::ErrorKind::InvalidInput)?.finish()
    }

    /// The text of a file. None for a missing or unreadable file.
    pub(super) fn text(&self, tree: &Tree, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        if !self.is_file(tree, path) {
            return None;
        }
        let bytes = match tree.bytes(path, MAX_TEXT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.left(Kind::File, shown(tree, path), error.to_string());
                return None;
            }
        };
        match String::from_utf8(bytes) {
            Ok(text) => Some(text.trim_start_matches('\u{feff}').to_owned()),
            Err(_) => {
                self.left(Kind::File, shown(tree, path), "it is not UTF-8");
                None
            }
        }
    }

    pub(super) fn json(&self, tree: &Tree, path: impl AsRef<Path>) -> Option<Value> {
        let path = path.as_ref();
        let text = self.text(tree, path)?;
        let read = serde_json::from_str(&text);
        read.map_err(|error| self.left(Kind::File, shown(tree, path), error.to_string()))
            .ok()
    }

    /// Whether there is a regular file. A link in its place is noted.
    pub(super) fn is_file(&self, tree: &Tree, path: &Path) -> bool {
        match tree.what(path) {
            Ok(Some(What::File)) => true,
            Ok(None) => false,
            Ok(Some(What::Folder | What::Other)) => {
                self.left(Kind::File, shown(tree, path), NO_PLAIN_FILE);
                false
            }
            Err(error) => {
                self.left(Kind::File, shown(tree, path), error.to_string());
                false
            }
        }
    }

    /// Whether there is a folder. A link in its place is noted.
    pub(super) fn is_folder(&self, tree: &Tree, path: &Path) -> bool {
        match tree.what(path) {
            Ok(Some(What::Folder)) => true,
            Ok(None | Some(What::File)) => false,
            Ok(Some(What::Other)) => {
                self.left(Kind::File, shown(tree, path), NO_PLAIN_FILE);
                false
            }
            Err(error) => {
                self.left(Kind::File, shown(tree, path), error.to_string());
                false
            }
        }
    }

    /// The names of a folder's entries of this kind. Other things are noted.
    pub(super) fn names(&self, tree: &Tree, path: impl AsRef<Path>, wanted: What) -> Vec<String> {
        let path = path.as_ref();
        let entries = match tree.entries(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.left(Kind::File, shown(tree, path), error.to_string());
                return Vec::new();
            }
        };
        let mut names = Vec::new();
        for entry in entries {
            let inside = path.join(&entry.name);
            match (entry.name.to_str(), entry.what) {
                (_, What::Other) => self.left(Kind::File, shown(tree, &inside), NO_PLAIN_FILE),
                (None, _) => self.left(Kind::File, shown(tree, &inside), "its name is not UTF-8"),
                (Some(name), what) if what == wanted => names.push(name.to_owned()),
                _ => {}
            }
        }
        names
    }

    /// All regular files below a folder, relative to the folder. Links and names that are no text
    /// are noted.
    pub(super) fn files(&self, tree: &Tree, folder: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        self.collect(tree, folder, Path::new(""), 0, &mut files);
        if files.len() >= MOST_FILES {
            self.left(
                Kind::File,
                shown(tree, folder),
                format!("only the first {MOST_FILES} files are looked at"),
            );
        }
        files
    }

    fn collect(
        &self,
        tree: &Tree,
        folder: &Path,
        within: &Path,
        depth: usize,
        files: &mut Vec<PathBuf>,
    ) {
        let here = folder.join(within);
        for name in self.names(tree, &here, What::File) {
            if files.len() < MOST_FILES {
                files.push(within.join(name));
            }
        }
        let folders = match tree.entries(&here) {
            Ok(entries) => entries,
            Err(_) => return,
        };
        for entry in folders.iter().filter(|entry| entry.what == What::Folder) {
            let inside = within.join(&entry.name);
            let is_wanted = entry.name.to_str().is_some_and(|name| name != ".git");
            if is_wanted && depth < MAX_DEPTH && files.len() < MOST_FILES {
                self.collect(tree, folder, &inside, depth + 1, files);
            } else if is_wanted {
                self.left(
                    Kind::File,
                    shown(tree, &folder.join(inside)),
                    "it is too deep",
                );
            }
        }
    }

    /// Adds the wanted skills below a folder to an agent, each as a folder of its own. They may be
    /// nested in folders of categories; the path is seen from the folder.
    pub(super) fn add_skills(
        &self,
        agent: &mut FoundAgent,
        (tree, folder): (&Arc<Tree>, &Path),
        is_wanted: impl Fn(&str, &Path) -> bool,
    ) {
        if !self.is_folder(tree, folder) {
            return;
        }
        let files = self.files(tree, folder);
        let heads = files.iter().filter(|file| file.ends_with("SKILL.md"));
        let heads: Vec<PathBuf> = heads
            .filter_map(|file| Some(file.parent()?.into()))
            .collect();
        for head in &heads {
            let Some(name) = head.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let source = shown(tree, &folder.join(head));
            if !is_wanted(name, head) {
                continue;
            }
            let Some(slug) = slug(name) else {
                self.left(
                    Kind::Skill,
                    source,
                    "its name cannot be that of a skill here",
                );
                continue;
            };
            let into = Path::new("skills").join(&slug);
            if agent
                .files
                .iter()
                .any(|file| file.target.starts_with(&into))
            {
                self.left(Kind::Skill, source, "another skill has the same name");
                continue;
            }
            let is_its_own = |file: &&PathBuf| {
                let closest = heads.iter().filter(|other| file.starts_with(other));
                closest.max_by_key(|other| other.components().count()) == Some(head)
            };
            for file in files.iter().filter(is_its_own) {
                let Ok(inside) = file.strip_prefix(head) else {
                    continue;
                };
                let content = Content::Copy {
                    tree: tree.clone(),
                    path: folder.join(file),
                };
                agent.add_file(Kind::Skill, into.join(inside), content);
            }
        }
    }

    /// Adds a file of the source to an agent, if the file exists.
    pub(super) fn add_file(
        &self,
        agent: &mut FoundAgent,
        (tree, path): (&Arc<Tree>, &Path),
        target: impl Into<PathBuf>,
    ) {
        if self.is_file(tree, path) {
            let content = Content::Copy {
                tree: tree.clone(),
                path: path.to_owned(),
            };
            agent.add_file(Kind::File, target, content);
        }
    }

    /// Adds dated notes as daily notes, and other Markdown files of a folder as files of the
    /// workspace.
    pub(super) fn add_notes(
        &self,
        agent: &mut FoundAgent,
        (tree, folder): (&Arc<Tree>, &Path),
        others: &Path,
    ) {
        if !self.is_folder(tree, folder) {
            return;
        }
        for file in self.files(tree, folder) {
            let name = file.to_str().unwrap_or_default();
            let Some(stem) = name.strip_suffix(".md") else {
                continue;
            };
            let is_date = stem.len() == 10 && stem.parse::<chrono::NaiveDate>().is_ok();
            let target = match is_date {
                true => Path::new("memory").join(&file),
                false => others.join("memory").join(&file),
            };
            self.add_file(agent, (tree, &folder.join(&file)), target);
        }
    }

    /// Opens a private copy of a database, with changes not yet merged into its file. None for a
    /// missing or unreadable database.
    pub(super) fn database(&self, tree: &Tree, path: impl AsRef<Path>) -> Option<Database> {
        let path = path.as_ref();
        if !self.is_file(tree, path) {
            return None;
        }
        let name = shown(tree, path);
        let opened = self.copy_database(tree, path).and_then(|copy| {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(copy, flags).map_err(io::Error::other)?;
            connection
                .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;")
                .and_then(|()| {
                    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
                })
                .map_err(io::Error::other)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Some(Database { connection, name }),
            Err(error) => {
                let repair = match error.to_string().contains("malformed database schema") {
                    true => "; its rows are intact, so let its own program repair it first",
                    false => "",
                };
                let why = format!("this database cannot be read: {error}{repair}");
                self.left(Kind::File, name, why);
                None
            }
        }
    }

    /// A database is its file and the changes beside it, so all files are copied, and again after a
    /// write to any of them.
    fn copy_database(&self, tree: &Tree, path: &Path) -> io::Result<PathBuf> {
        let parts = ["", "-wal", "-journal"].map(|end| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            (end, PathBuf::from(name))
        });
        let state = || -> Vec<Option<(u64, SystemTime)>> {
            let of = |(_, part): &(&str, PathBuf)| {
                let metadata = tree.file(part).and_then(|file| file.metadata()).ok()?;
                Some((metadata.len(), metadata.modified().ok()?.into_std()))
            };
            parts.iter().map(of).collect()
        };
        for _ in 0..MOST_TRIES {
            let before = state();
            let size: u64 = before.iter().flatten().map(|(size, _)| size).sum();
            if size > MAX_DATABASE_BYTES {
                return Err(io::Error::other(format!("it has {size} bytes")));
            }
            let copy = self.staging.fresh("database");
            for (end, part) in &parts {
                if !matches!(tree.what(part)?, Some(What::File)) {
                    continue;
                }
                let mut to = copy.as_os_str().to_owned();
                to.push(end);
                io::copy(&mut tree.file(part)?, &mut File::create(to)?)?;
            }
            if state() == before {
                return Ok(copy);
            }
            for (end, _) in &parts {
                let mut to = copy.as_os_str().to_owned();
                to.push(end);
                drop(fs::remove_file(to));
            }
        }
        Err(io::Error::other(
            "it is being written to; stop the program that does, and import again",
        ))
    }
}

const NO_PLAIN_FILE: &str = "it is a link or no plain file, and links are not followed";

/// A path for the report.
pub(super) fn shown(tree: &Tree, path: &Path) -> String {
    tree.shown().join(path).display().to_string()
}

/// A lower-case name of letters, digits and hyphens.
pub(super) fn slug(name: &str) -> Option<String> {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase);
    let slug: String = words.collect::<Vec<_>>().join("-");
    let slug: String = slug.chars().take(48).collect();
    let slug = slug.trim_matches('-').to_owned();
    (!slug.is_empty()).then_some(slug)
}

/// A copy of a database of the source.
pub(super) struct Database {
    connection: Connection,
    name: String,
}

impl Database {
    /// The columns of a table, none if there is no such table.
    pub(super) fn columns(&self, table: &str) -> HashSet<String> {
        let is_table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        let exists = self.connection.prepare(is_table);
        if !exists.is_ok_and(|mut statement| statement.exists([table]).unwrap_or(false)) {
            return HashSet::new();
        }
        let read = || {
            let mut statement = self
                .connection
                .prepare("SELECT name FROM pragma_table_info(?1)")?;
            let names = statement.query_map([table], |row| row.get(0))?;
            names.collect::<rusqlite::Result<HashSet<String>>>()
        };
        read().unwrap_or_default()
    }

    /// Reads rows of a table: the wanted columns in their order, with NULL for missing columns.
    /// Missing columns are left out of the order too. Broken rows are counted and noted.
    pub(super) fn rows<T>(
        &self,
        source: &Source,
        (table, columns): (&str, &[&str]),
        (filter, order): (&str, &[&str]),
        mut read: impl FnMut(&Cells<'_, '_>) -> Option<T>,
    ) -> Vec<T> {
        let there = self.columns(table);
        if there.is_empty() {
            return Vec::new();
        }
        let selected = columns.iter().map(|column| match there.contains(*column) {
            true => format!("\"{column}\""),
            false => "NULL".to_owned(),
        });
        let selected: Vec<String> = selected.collect();
        let order = order.iter().filter(|column| there.contains(**column));
        let order: Vec<String> = order.map(|column| format!("\"{column}\"")).collect();
        let order = match order.is_empty() {
            true => String::new(),
            false => format!("ORDER BY {}", order.join(", ")),
        };
        let sql = format!(
            "SELECT {} FROM \"{table}\" {filter} {order}",
            selected.join(", ")
        );
        let (mut found, mut broken) = (Vec::new(), 0_usize);
        let mut walk = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                match read(&Cells(row)) {
                    Some(value) => found.push(value),
                    None => broken += 1,
                }
            }
            Ok(())
        };
        if let Err(error) = walk() {
            let why = format!("table {table}: {error}");
            source.left(Kind::File, &self.name, why);
        }
        if broken > 0 {
            let rows = some(broken, "row", "rows");
            let why = format!("{rows} of the table {table} cannot be read");
            source.left(Kind::File, &self.name, why);
        }
        found
    }
}

/// The cells of a row, read as the wanted type from any type.
pub(super) struct Cells<'a, 'b>(&'a Row<'b>);

impl Cells<'_, '_> {
    pub(super) fn text(&self, at: usize) -> Option<String> {
        match self.0.get_ref(at).ok()? {
            ValueRef::Text(text) => String::from_utf8(text.to_vec()).ok(),
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => Some(number.to_string()),
            ValueRef::Null | ValueRef::Blob(_) => None,
        }
    }

    /// A text with content.
    pub(super) fn word(&self, at: usize) -> Option<String> {
        self.text(at).filter(|text| !text.trim().is_empty())
    }

    pub(super) fn blob(&self, at: usize) -> Option<Vec<u8>> {
        self.0.get_ref(at).ok()?.as_blob().ok().map(<[u8]>::to_vec)
    }

    pub(super) fn number(&self, at: usize) -> Option<i64> {
        match self.0.get_ref(at).ok()? {
            ValueRef::Integer(number) => Some(number),
            ValueRef::Real(number) => whole(number),
            ValueRef::Text(text) => str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// Yes for a number other than 0. None if absent.
    pub(super) fn flag(&self, at: usize) -> Option<bool> {
        self.number(at).map(|number| number != 0)
    }

    /// A time in Unix milliseconds.
    pub(super) fn time(&self, at: usize) -> Option<i64> {
        match self.0.get_ref(at).ok()? {
            ValueRef::Integer(number) => Some(in_ms(number)),
            ValueRef::Real(seconds) if seconds < MS_FROM => whole(seconds * 1000.0),
            ValueRef::Real(ms) => whole(ms),
            ValueRef::Text(text) => time_of(str::from_utf8(text).ok()?),
            _ => None,
        }
    }

    pub(super) fn json(&self, at: usize) -> Option<Value> {
        serde_json::from_str(&self.text(at)?).ok()
    }
}

/// A number from this size on counts milliseconds since 1970, a smaller number seconds.
const MS_FROM: f64 = 1e12;

fn whole(number: f64) -> Option<i64> {
    let is_small = number.is_finite() && number.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "the size was looked at")]
    is_small.then_some(number as i64)
}

fn in_ms(number: i64) -> i64 {
    if number.abs() < 1_000_000_000_000 {
        number.saturating_mul(1000)
    } else {
        number
    }
}

/// A time as text: ISO 8601, or a number.
pub(super) fn time_of(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return match number.abs() < MS_FROM {
            true => whole(number * 1000.0),
            false => whole(number),
        };
    }
    if let Ok(time) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_millis());
    }
    let plain = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    let mut read = plain
        .iter()
        .filter_map(|form| chrono::NaiveDateTime::parse_from_str(text, form).ok());
    read.next().map(|time| time.and_utc().timestamp_millis())
}

/// The time in a JSON value, in Unix milliseconds.
pub(super) fn time_in(value: &Value) -> Option<i64> {
    match value {
        Value::Number(_) => time_of(&value.to_string()),
        Value::String(text) => time_of(text),
        _ => None,
    }
}

/// Unpacks a frame of zstd, up to the size of a large message.
pub(super) fn unzstd(bytes: &[u8], most: u64) -> Option<Vec<u8>> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).ok()?;
    let mut plain = Vec::new();
    decoder.take(most + 1).read_to_end(&mut plain).ok()?;
    (plain.len() as u64 <= most).then_some(plain)
}
