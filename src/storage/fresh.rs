//! Makes a new database beside its place, and puts it there when it is whole.
//!
//! A database that grows in its place is synced to the disk a dozen times before its first row.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{migrations, wal};

/// Makes a database where there is none. Fails in silence, such as on a disk without hard links: the
/// database then grows in its place, and trouble with the folder or the schema shows there.
pub(super) fn make(path: &Path) {
    if !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
    {
        return;
    }
    let beside = wal::with_suffix(path, ".new");
    let made = fill(&beside).and_then(|()| put(&beside, path).ok());
    // What another process or a killed one was making goes too. The other then grows its database in
    // its place.
    drop(fs::remove_file(&beside));
    if made.is_some()
        && let Some(folder) = path.parent()
    {
        drop(File::open(folder).and_then(|folder| folder.sync_all()));
    }
}

fn fill(path: &Path) -> Option<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    drop(made.ok()?);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).ok()?;
    // Nobody has the file yet, so a sync at its end is enough.
    connection
        .pragma_update(None, "journal_mode", "memory")
        .ok()?;
    connection.pragma_update(None, "synchronous", "off").ok()?;
    migrations::make_whole(&mut connection).ok()?;
    connection.pragma_update(None, "journal_mode", "wal").ok()?;
    connection.close().ok()
}

/// Never in the place of a database that another process has made meanwhile.
fn put(made: &Path, path: &Path) -> std::io::Result<()> {
    File::open(made)?.sync_all()?;
    fs::hard_link(made, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::storage::commits::Count;

    fn schema(path: &Path) -> Vec<(String, Option<String>)> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection
            .prepare("SELECT name, sql FROM sqlite_schema ORDER BY rowid")
            .unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// How many rows each table begins with. SQLite's own table of numbers may have zeros.
    fn rows(path: &Path) -> Vec<(String, i64)> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY name")
            .unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names
            .map(|name| {
                let name: String = name.unwrap();
                let sql = format!("SELECT count(*) FROM \"{name}\"");
                let count = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
                (name, count)
            })
            .collect()
    }

    #[test]
    fn a_made_database_is_like_one_that_grew_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (made, grown) = (
            folder.path().join("made.db"),
            folder.path().join("grown.db"),
        );
        make(&made);
        let mut connection = Connection::open(&grown).unwrap();
        migrations::bring_up_to_date(&mut connection).unwrap();
        assert_eq!(schema(&made), schema(&grown));
        assert_eq!(rows(&made), rows(&grown));
        let mode = fs::metadata(&made).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner reads conversations");
        let connection = Connection::open(&made).unwrap();
        let ask = |pragma: &str| -> String {
            let sql = format!("SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(ask("journal_mode"), "wal");
        assert_eq!(ask("user_version"), migrations::known().to_string());
        assert_ne!(Count::read(&connection).unwrap(), Count::NONE);
        drop(connection);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["grown.db", "made.db"]);
    }

    #[test]
    fn an_existing_file_stays_and_a_half_made_one_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("parlor.db");
        fs::write(&path, "something else").unwrap();
        make(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "something else");
        fs::remove_file(&path).unwrap();
        let beside = folder.path().join("parlor.db.new");
        fs::write(&beside, "half").unwrap();
        make(&path);
        assert!(!path.exists(), "this time it grows in its place");
        assert!(!beside.exists());
        make(&path);
        assert!(path.exists());
    }
}
