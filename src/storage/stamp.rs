//! A file beside the database to record its existence, so no empty database is made in the place of
//! a lost database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{StoreError, wal};

/// For the operator looking into the file.
const TEXT: &str = "\
This home has a database, parlor.db. As long as this file is here, Parlor asks before it makes an empty one in its place.
";

/// The stamp's path: `parlor.stamp` beside `parlor.db`.
fn beside(database: &Path) -> PathBuf {
    database.with_extension("stamp")
}

/// Records the existence of the database. An unwritable home is reported elsewhere.
pub(super) fn leave(database: &Path) {
    let stamp = beside(database);
    if !stamp.exists() {
        drop(fs::write(stamp, TEXT));
    }
}

/// Fails when the database is missing although there has been a database.
pub(crate) fn check(database: &Path) -> Result<(), StoreError> {
    let found = length(database);
    if found.is_some_and(|bytes| bytes > 0) {
        return Ok(());
    }
    // SQLite deletes a log beside an empty database.
    let has_log = length(&wal::beside(database)).is_some_and(|bytes| bytes > 0);
    if has_log || beside(database).exists() {
        Err(lost(database))
    } else {
        Ok(())
    }
}

/// Fails for a database without tables where there has been a database with tables.
pub(super) fn check_blank(database: &Path) -> Result<(), StoreError> {
    if beside(database).exists() {
        Err(lost(database))
    } else {
        Ok(())
    }
}

fn lost(database: &Path) -> StoreError {
    let saved = saved_names(database).find(|saved| saved.exists());
    StoreError::Lost {
        path: database.to_owned(),
        is_empty: length(database).is_some(),
        saved,
    }
}

/// None when there is no such file.
fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Names for the copy a running process makes when its database is taken away.
pub(super) fn saved_names(database: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    const MOST: u32 = 9;
    let database = database.to_owned();
    let further = (2..=MOST).map(|number| format!(".saved-{number}"));
    std::iter::once(".saved".to_owned())
        .chain(further)
        .map(move |suffix| wal::with_suffix(&database, &suffix))
}

/// Allows an empty database in the place of a lost database, as the operator asked. An existing
/// database is not touched, and a leftover log is put aside.
pub fn begin_anew(database: &Path) -> io::Result<()> {
    if length(database).is_none_or(|bytes| bytes == 0) {
        if_there(fs::rename(
            wal::beside(database),
            wal::with_suffix(database, "-wal.left"),
        ))?;
    }
    if_there(fs::remove_file(beside(database)))
}

fn if_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
