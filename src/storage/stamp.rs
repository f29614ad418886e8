//! Remembers in a file beside the database that there has been one, so that an empty one is not made in its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{StoreError, wal};

/// For the operator who finds the file.
const TEXT: &str = "\
This home has a database, parlor.db. As long as this file is here, Parlor asks before it makes an empty one in its place.
";

/// The stamp's path: `parlor.stamp` beside `parlor.db`.
fn beside(database: &Path) -> PathBuf {
    database.with_extension("stamp")
}

/// There is a database here from now on. A home that cannot be written to is told about by others.
pub(super) fn leave(database: &Path) {
    let stamp = beside(database);
    if !stamp.exists() {
        drop(fs::write(stamp, TEXT));
    }
}

/// Fails when there is no database where there has been one.
pub(super) fn check(database: &Path) -> Result<(), StoreError> {
    let found = length(database);
    if found.is_some_and(|bytes| bytes > 0) {
        return Ok(());
    }
    // SQLite throws a log away that is beside an empty database.
    let has_log = length(&wal::beside(database)).is_some_and(|bytes| bytes > 0);
    if has_log || beside(database).exists() { Err(lost(database)) } else { Ok(()) }
}

/// Fails when the database has no table in it though there has been one that had.
pub(super) fn check_blank(database: &Path) -> Result<(), StoreError> {
    if beside(database).exists() { Err(lost(database)) } else { Ok(()) }
}

fn lost(database: &Path) -> StoreError {
    let saved = saved_names(database).find(|saved| saved.exists());
    StoreError::Lost { path: database.to_owned(), is_empty: length(database).is_some(), saved }
}

/// None when there is no such file.
fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Names of the copy that a running process makes when its database is taken away.
pub(super) fn saved_names(database: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    const MOST: u32 = 9;
    let database = database.to_owned();
    let further = (2..=MOST).map(|number| format!(".saved-{number}"));
    std::iter::once(".saved".to_owned()).chain(further).map(move |suffix| wal::with_suffix(&database, &suffix))
}

/// The operator wants an empty database where there has been one. One that is there is not touched, and a log that is left over
/// is put aside.
pub fn begin_anew(database: &Path) -> io::Result<()> {
    if length(database).is_none_or(|bytes| bytes == 0) {
        if_there(fs::rename(wal::beside(database), wal::with_suffix(database, "-wal.left")))?;
    }
    if_there(fs::remove_file(beside(database)))
}

fn if_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
