//! Errors of the database, with advice for the operator.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use super::rescue::Harmed;
use crate::open_files;

/// Cloned for every write in the same commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the disk is full, so nothing more can be stored. Free some space; waiting messages are kept by their platform"
    )]
    Full,
    #[error(
        "the database cannot be written: the file or its folder is read-only. Give this user write access to the home folder"
    )]
    ReadOnly,
    #[error(
        "the database cannot be opened: this process has too many open files. {}",
        open_files::ADVICE
    )]
    TooManyOpenFiles,
    #[error("the database cannot be opened: there is no folder {}. `parlor init` makes a home folder", .0.display())]
    NoFolder(PathBuf),
    #[error("the database cannot be opened: {0}")]
    CannotOpen(String),
    #[error("{} is damaged. Move it away and restore a copy, or start with an empty one", .0.display())]
    Corrupt(PathBuf),
    #[error("{} was written by a newer Parlor (schema {found}, this one knows {known}). Start the newer version, or restore an older copy", .path.display())]
    Newer {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("{} is not a database of this Parlor: its tables are others. Move it away, and the next start makes a new one", .0.display())]
    Unknown(PathBuf),
    #[error("{} {}, and this home has had one with conversations and memories in it. {}. To begin with an empty one: `parlor run --new-database`", .path.display(), if *.is_empty { "is empty" } else { "is missing" }, put_back(.saved.as_deref()))]
    Lost {
        path: PathBuf,
        is_empty: bool,
        saved: Option<PathBuf>,
    },
    #[error("{path}-wal does not belong to {path}, which is older or another one: together they would be neither. Put the database back that was there with it; or, to go on with this one, move {path}-wal away", path = .0.display())]
    OtherLog(PathBuf),
    /// Nothing more is stored after this error.
    #[error("{0}")]
    Harmed(Harmed),
    #[error("the database is closed")]
    Closed,
    #[error(
        "the database is locked by another process: {0}. Close other programs that have parlor.db open"
    )]
    Locked(String),
    #[error("the disk failed: {0}. Look at the system's log")]
    Disk(String),
    /// Another write of the same commit took this write with it.
    #[error("the write was undone together with another, and is tried again")]
    Undone,
    /// Comes from the data or the statement.
    #[error("the database failed: {0}")]
    Failed(String),
}

/// The way on after a failure of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The failure passes by itself, or once the operator has made room. The same work is tried
    /// again for as long as that takes, and nothing is lost.
    Wait,
    /// The file is damaged. The operator can put back a whole file, so the row is neither closed nor
    /// changed, and the next start tries again. The damage may be in the pages of a single place,
    /// so no other work waits for the repair.
    Mend,
    /// The failure comes from the data or the statement, and so with every try. The one message is
    /// closed with a reference.
    GiveUp,
}

impl StoreError {
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            StoreError::Full
            | StoreError::ReadOnly
            | StoreError::TooManyOpenFiles
            | StoreError::NoFolder(_)
            | StoreError::CannotOpen(_)
            | StoreError::Newer { .. }
            | StoreError::Unknown(_)
            | StoreError::Lost { .. }
            | StoreError::OtherLog(_)
            | StoreError::Harmed(_)
            | StoreError::Closed
            | StoreError::Locked(_)
            | StoreError::Disk(_)
            | StoreError::Undone => Remedy::Wait,
            StoreError::Corrupt(_) => Remedy::Mend,
            StoreError::Failed(_) => Remedy::GiveUp,
        }
    }

    /// Whether the disk or its file system takes nothing, whatever is to be stored.
    pub(super) fn is_of_the_disk(&self) -> bool {
        matches!(
            self,
            StoreError::Full | StoreError::ReadOnly | StoreError::Disk(_)
        )
    }

    /// Whether the same work would fail again in the same way.
    pub(crate) fn is_permanent(&self) -> bool {
        self.remedy() != Remedy::Wait
    }
}

fn put_back(saved: Option<&Path>) -> String {
    match saved {
        Some(saved) => format!("{} has what Parlor saved: put it there", saved.display()),
        None => "Put it back, or a copy of it".to_owned(),
    }
}

impl StoreError {
    pub(super) fn at(path: &Path, error: &rusqlite::Error) -> Self {
        match StoreError::from(error) {
            StoreError::Corrupt(_) => StoreError::Corrupt(path.to_owned()),
            StoreError::CannotOpen(_) => why_not_opened(Some(path), error),
            told => told,
        }
    }

    /// Converts a system error about a file of the database.
    pub(super) fn from_disk(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full,
            ErrorKind::NotFound => missing_folder(path)
                .unwrap_or_else(|| StoreError::CannotOpen(format!("{}: {error}", path.display()))),
            _ if open_files::is_exhausted(error) => StoreError::TooManyOpenFiles,
            _ => StoreError::CannotOpen(format!("{}: {error}", path.display())),
        }
    }
}

impl From<&rusqlite::Error> for StoreError {
    fn from(error: &rusqlite::Error) -> Self {
        let failed = || StoreError::Failed(error.to_string());
        let Some(code) = sqlite_error(error) else {
            return failed();
        };
        match code.code {
            ErrorCode::DiskFull => StoreError::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly,
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed => StoreError::Locked(error.to_string()),
            ErrorCode::CannotOpen => why_not_opened(None, error),
            // The words of the index, not the file: a statement about other words works.
            ErrorCode::DatabaseCorrupt if code.extended_code == ffi::SQLITE_CORRUPT_VTAB => {
                failed()
            }
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
                StoreError::Corrupt(PathBuf::from("parlor.db"))
            }
            ErrorCode::SystemIoFailure if is_short_of_files() => StoreError::TooManyOpenFiles,
            ErrorCode::SystemIoFailure => StoreError::Disk(error.to_string()),
            _ => failed(),
        }
    }
}

fn sqlite_error(error: &rusqlite::Error) -> Option<ffi::Error> {
    match error {
        rusqlite::Error::SqliteFailure(error, _) | rusqlite::Error::SqlInputError { error, .. } => {
            Some(*error)
        }
        _ => None,
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::from(&error)
    }
}

/// The reason of a failed open, because SQLite tells none. The database itself is not opened here:
/// closing the file would release SQLite's locks.
fn why_not_opened(path: Option<&Path>, error: &rusqlite::Error) -> StoreError {
    if is_short_of_files() {
        return StoreError::TooManyOpenFiles;
    }
    let Some(path) = path else {
        return StoreError::CannotOpen(error.to_string());
    };
    let is_closed_to_us =
        fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    match missing_folder(path) {
        Some(missing) => missing,
        None if is_closed_to_us => StoreError::ReadOnly,
        None => StoreError::CannotOpen(error.to_string()),
    }
}

/// Whether there is no room for the files SQLite opens together. SQLite has closed its own by now.
fn is_short_of_files() -> bool {
    const TOGETHER: usize = 4;
    let opened: io::Result<Vec<File>> = (0..TOGETHER).map(|_| File::open("/dev/null")).collect();
    opened.is_err_and(|error| open_files::is_exhausted(&error))
}

fn missing_folder(path: &Path) -> Option<StoreError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())?;
    (!folder.exists()).then(|| StoreError::NoFolder(folder.to_owned()))
}

#[cfg(test)]
mod tests {
    use rusqlite::types::Type;

    use super::Remedy::{GiveUp, Mend, Wait};
    use super::*;

    fn remedy(code: std::ffi::c_int) -> Remedy {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        StoreError::from(error).remedy()
    }

    /// Every primary code of SQLite, and the extended codes that differ or come up in practice.
    #[test]
    fn every_code_of_sqlite_has_its_remedy() {
        let check = |code, expected| assert_eq!(remedy(code), expected, "code {code}");
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_RECOVERY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_BUSY_TIMEOUT,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_LOCKED_SHAREDCACHE,
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_READONLY_DBMOVED,
            ffi::SQLITE_READONLY_DIRECTORY,
            ffi::SQLITE_PERM,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_SHORT_READ,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_CANTOPEN_ISDIR,
        ] {
            check(code, Wait);
        }
        for code in [
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_CORRUPT_INDEX,
            ffi::SQLITE_CORRUPT_SEQUENCE,
            ffi::SQLITE_NOTADB,
        ] {
            check(code, Mend);
        }
        for code in [
            ffi::SQLITE_ERROR,
            ffi::SQLITE_INTERNAL,
            ffi::SQLITE_ABORT,
            ffi::SQLITE_ABORT_ROLLBACK,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_INTERRUPT,
            ffi::SQLITE_NOTFOUND,
            ffi::SQLITE_EMPTY,
            ffi::SQLITE_SCHEMA,
            ffi::SQLITE_TOOBIG,
            ffi::SQLITE_CONSTRAINT,
            ffi::SQLITE_CONSTRAINT_CHECK,
            ffi::SQLITE_CONSTRAINT_DATATYPE,
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY,
            ffi::SQLITE_CONSTRAINT_NOTNULL,
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ffi::SQLITE_CONSTRAINT_TRIGGER,
            ffi::SQLITE_CONSTRAINT_UNIQUE,
            ffi::SQLITE_MISMATCH,
            ffi::SQLITE_MISUSE,
            ffi::SQLITE_NOLFS,
            ffi::SQLITE_AUTH,
            ffi::SQLITE_FORMAT,
            ffi::SQLITE_RANGE,
            ffi::SQLITE_CORRUPT_VTAB,
        ] {
            check(code, GiveUp);
        }
    }

    #[test]
    fn an_error_about_values_or_statements_is_for_ever() {
        let odd = || Box::new(std::fmt::Error);
        let utf8 = String::from_utf8(vec![0xff]).unwrap_err().utf8_error();
        let wrong_statement = rusqlite::Error::SqlInputError {
            error: ffi::Error::new(ffi::SQLITE_ERROR),
            msg: "no such table: nowhere".into(),
            sql: "SELECT 1 FROM nowhere".into(),
            offset: 14,
        };
        for error in [
            rusqlite::Error::FromSqlConversionFailure(0, Type::Text, odd()),
            rusqlite::Error::IntegralValueOutOfRange(0, -1),
            rusqlite::Error::Utf8Error(0, utf8),
            rusqlite::Error::InvalidParameterName(":id".into()),
            rusqlite::Error::ExecuteReturnedResults,
            rusqlite::Error::QueryReturnedNoRows,
            rusqlite::Error::QueryReturnedMoreThanOneRow,
            rusqlite::Error::InvalidColumnIndex(9),
            rusqlite::Error::InvalidColumnName("id".into()),
            rusqlite::Error::InvalidColumnType(0, "id".into(), Type::Real),
            rusqlite::Error::StatementChangedRows(2),
            rusqlite::Error::ToSqlConversionFailure(odd()),
            rusqlite::Error::InvalidQuery,
            rusqlite::Error::MultipleStatement,
            rusqlite::Error::InvalidParameterCount(1, 2),
            wrong_statement,
        ] {
            assert_eq!(StoreError::from(&error).remedy(), GiveUp, "{error}");
        }
    }

    /// The number one too large for its column, as a package brought it once.
    #[test]
    fn a_number_too_large_for_its_column_is_for_ever() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let fill = "CREATE TABLE t (n INTEGER NOT NULL) STRICT; INSERT INTO t VALUES (9223372036854775807)";
        connection.execute_batch(fill).unwrap();
        let error = connection
            .execute("UPDATE t SET n = n + 1", [])
            .unwrap_err();
        assert_eq!(StoreError::from(error).remedy(), GiveUp);
    }
}
