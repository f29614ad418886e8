use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::storage::commits;

/// A database with an open connection, so its log stays.
struct Scratch {
    folder: TempDir,
    connection: Connection,
}

impl Scratch {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let connection = Connection::open(folder.path().join("parlor.db")).expect("opens");
        connection
            .pragma_update(None, "journal_mode", "wal")
            .expect("can be set");
        let scratch = Scratch { folder, connection };
        scratch.commit("CREATE TABLE scratch (text TEXT)");
        scratch.fold();
        scratch
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("parlor.db")
    }

    fn commit(&self, sql: &str) {
        self.connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {sql}"))
            .expect("works");
        commits::count(&self.connection).expect("counts");
        self.connection.execute_batch("COMMIT").expect("works");
    }

    fn fill(&self, commits: usize) {
        (0..commits)
            .for_each(|_| self.commit("INSERT INTO scratch VALUES (hex(randomblob(3000)))"));
    }

    fn fold(&self) {
        self.connection
            .query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
            .expect("works");
    }

    fn copy(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("reads")
    }

    /// Whether this database fits the log here.
    fn fits(&self, database: &[u8]) -> bool {
        let apart = TempDir::new().expect("a folder");
        let path = apart.path().join("parlor.db");
        std::fs::write(&path, database).expect("writes");
        std::fs::copy(beside(&self.path()), beside(&path)).expect("copies");
        fits(&File::open(&path).expect("opens"), &path).expect("can be read")
    }
}

#[test]
fn a_log_fits_the_database_it_was_begun_on_and_what_became_of_it() {
    let scratch = Scratch::new();
    scratch.fill(3);
    let begun = scratch.copy();
    assert!(scratch.fits(&begun));
    scratch.fill(3);
    assert!(scratch.fits(&begun), "the log still has everything since");
    scratch
        .connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        .expect("works");
    assert!(scratch.fits(&scratch.copy()), "some of it is in both");
    assert!(scratch.fits(&begun));
}

#[test]
fn a_log_fits_no_older_database_and_no_newer_one() {
    let scratch = Scratch::new();
    scratch.fill(3);
    let older = scratch.copy();
    scratch.fold();
    scratch.fill(1);
    let base = scratch.copy();
    assert!(!scratch.fits(&older) && scratch.fits(&base));
    let log = std::fs::read(beside(&scratch.path())).expect("reads");
    scratch.fold();
    scratch.fill(2);
    assert!(!scratch.fits(&older) && !scratch.fits(&base));
    scratch.fold();
    let newer = scratch.copy();
    std::fs::write(scratch.folder.path().join("other.db"), newer).expect("writes");
    std::fs::write(scratch.folder.path().join("other.db-wal"), log).expect("writes");
    let other = scratch.folder.path().join("other.db");
    assert!(!fits(&File::open(&other).expect("opens"), &other).expect("can be read"));
}

#[test]
fn a_log_fits_no_other_database() {
    let (one, other) = (Scratch::new(), Scratch::new());
    one.fill(2);
    other.fill(2);
    assert!(!one.fits(&other.copy()));
}

/// A file without a log header, or cut in the middle, is left to SQLite.
#[test]
fn a_log_that_is_cut_or_damaged_is_read_as_far_as_it_is_good() {
    let scratch = Scratch::new();
    scratch.fill(3);
    let (database, log) = (
        scratch.copy(),
        std::fs::read(beside(&scratch.path())).expect("reads"),
    );
    let apart = TempDir::new().expect("a folder");
    let path = apart.path().join("parlor.db");
    std::fs::write(&path, &database).expect("writes");
    let file = File::open(&path).expect("opens");
    let fits_with = |log: &[u8]| {
        std::fs::write(beside(&path), log).expect("writes");
        fits(&file, &path).expect("can be read") && is_whole(&file, &path).expect("can be read")
    };
    for length in (0..log.len()).step_by(501) {
        assert!(fits_with(&log[..length]), "cut at {length}");
    }
    for at in (0..log.len()).step_by(997) {
        let mut damaged = log.clone();
        damaged[at] ^= 0x55;
        assert!(fits_with(&damaged), "damaged at {at}");
    }
    assert!(fits_with(b"what was said last"));
}

#[test]
fn the_counts_are_those_that_sqlite_reads() {
    let scratch = Scratch::new();
    let count = || {
        scratch
            .connection
            .query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0))
            .expect("a number")
    };
    let first = count().wrapping_add(1);
    scratch.fill(4);
    let log = read(&beside(&scratch.path()))
        .expect("reads")
        .expect("there is one");
    let counts = log.counts.expect("there are some");
    assert_eq!(
        (counts.first.0.cast_signed(), counts.last.0.cast_signed()),
        (first, count())
    );
}

/// Pages that are still in the log only are no loss, and pages that are in neither file are.
#[test]
fn a_file_that_is_shorter_than_its_log_needs_is_found() {
    let scratch = Scratch::new();
    scratch.fill(30);
    scratch.fold();
    scratch.fill(30);
    let (path, is_whole) = (scratch.path(), |path: &Path| {
        is_whole(&File::open(path).expect("opens"), path).expect("can be read")
    });
    assert!(is_whole(&path));
    let (database, log) = (scratch.copy(), std::fs::read(beside(&path)).expect("reads"));
    let apart = TempDir::new().expect("a folder");
    let copy = apart.path().join("parlor.db");
    std::fs::write(beside(&copy), &log).expect("writes");
    for (length, expected) in [
        (database.len(), true),
        (database.len() - 1, false),
        (database.len() / 2, false),
        (100, false),
    ] {
        std::fs::write(&copy, &database[..length]).expect("writes");
        assert_eq!(is_whole(&copy), expected, "{length} bytes");
    }
}

/// A process that ends moves its log into the database, and cuts the log off while it is read.
#[test]
fn a_log_that_is_cut_off_between_two_looks_is_no_misfit() {
    let scratch = Scratch::new();
    scratch.fill(3);
    let half = std::fs::read(beside(&scratch.path())).expect("a log");
    scratch.fill(3);
    scratch.fold();
    let apart = TempDir::new().expect("a folder");
    let path = apart.path().join("parlor.db");
    std::fs::write(&path, scratch.copy()).expect("writes");
    std::fs::write(beside(&path), half).expect("writes");
    let file = File::open(&path).expect("opens");
    let cut_off = || std::fs::write(beside(&path), []).expect("writes");
    assert!(!fits_at_last(&file, &path, || {}).expect("can be read"));
    assert!(fits_at_last(&file, &path, cut_off).expect("can be read"));
}
