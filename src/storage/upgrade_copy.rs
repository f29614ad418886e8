//! A copy of the database before its schema changes, so that an older version of the program can go
//! on with the copy.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::StoreError;
use super::copying::copy;

/// In the home folder, beside the database.
const FOLDER: &str = "backups";
/// Copies of older schemas are deleted beyond this number.
const KEPT: usize = 3;

/// Copies a database with the schema `found`. An upgrade that was cut short is copied anew by the
/// next start, because it changed nothing.
pub(super) fn make(
    connection: &Connection,
    database: &Path,
    found: u32,
) -> Result<PathBuf, StoreError> {
    let folder = database.parent().unwrap_or(Path::new("")).join(FOLDER);
    let told = |error: std::io::Error| StoreError::from_disk(&folder, &error);
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(told)?;
    let target = folder.join(name(found));
    let unfinished = target.with_extension("db.new");
    // Left by a process that was killed.
    drop(fs::remove_file(&unfinished));
    copy(connection, &unfinished)?;
    let file = fs::File::open(&unfinished).map_err(told)?;
    file.sync_all().map_err(told)?;
    fs::rename(&unfinished, &target).map_err(told)?;
    forget_old(&folder);
    Ok(target)
}

fn name(schema: u32) -> String {
    format!("parlor-schema-{schema}.db")
}

/// The schema of a copy's name.
fn schema_of(name: &str) -> Option<u32> {
    let schema = name.strip_prefix("parlor-schema-")?.strip_suffix(".db")?;
    schema.parse().ok()
}

/// A copy that cannot be removed is in nobody's way.
fn forget_old(folder: &Path) {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut schemas: Vec<u32> = names
        .filter_map(|entry| schema_of(entry.file_name().to_str()?))
        .collect();
    schemas.sort_unstable_by(|a, b| b.cmp(a));
    for schema in schemas.into_iter().skip(KEPT) {
        drop(fs::remove_file(folder.join(name(schema))));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::storage::{migrations, open};

    const FIRST: &str = include_str!("../../migrations/V1__schema.sql");

    /// A database of the first schema with a row.
    fn of_first_schema(path: &Path) {
        let connection = Connection::open(path).expect("opens");
        connection.execute_batch(FIRST).expect("works");
        let row = "INSERT INTO places (key, created_at) VALUES ('local:home', 1)";
        connection.execute(row, []).expect("fits");
        connection
            .pragma_update(None, "user_version", 1)
            .expect("can be set");
    }

    fn schema_and_rows(path: &Path) -> (u32, u32) {
        let connection = Connection::open(path).expect("opens");
        let sql = "SELECT (SELECT user_version FROM pragma_user_version), count(*) FROM places";
        let row = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
        row.expect("reads")
    }

    /// S0.15
    #[test]
    fn a_database_is_copied_before_its_schema_changes_and_only_then() {
        let home = tempfile::TempDir::new().expect("a folder");
        let path = home.path().join("parlor.db");
        of_first_schema(&path);
        drop(open::writable(&path).expect("opens"));
        let copy = home.path().join("backups/parlor-schema-1.db");
        assert_eq!(schema_and_rows(&copy), (1, 1));
        assert_eq!(schema_and_rows(&path), (migrations::known(), 1));
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(&copy), mode(&home.path().join("backups"))),
            (0o600, 0o700)
        );

        fs::remove_file(&copy).expect("is there");
        drop(open::writable(&path).expect("opens"));
        assert!(!copy.exists(), "an up-to-date database is not copied");
    }

    /// A database in the middle of an upgrade is the old one, and the leftover of its copy is not
    /// taken for a copy.
    #[test]
    fn a_copy_that_was_cut_short_is_made_anew() {
        let home = tempfile::TempDir::new().expect("a folder");
        let path = home.path().join("parlor.db");
        of_first_schema(&path);
        fs::create_dir(home.path().join("backups")).expect("can be made");
        let copy = home.path().join("backups/parlor-schema-1.db");
        fs::write(copy.with_extension("db.new"), "half").expect("writes");
        drop(open::writable(&path).expect("opens"));
        assert_eq!(schema_and_rows(&copy), (1, 1));
        assert!(!copy.with_extension("db.new").exists());
    }

    #[test]
    fn where_no_copy_can_be_made_nothing_changes() {
        let home = tempfile::TempDir::new().expect("a folder");
        let path = home.path().join("parlor.db");
        of_first_schema(&path);
        fs::write(home.path().join("backups"), "a file").expect("writes");
        assert!(open::writable(&path).is_err());
        assert_eq!(schema_and_rows(&path), (1, 1));
    }

    #[test]
    fn copies_of_the_oldest_schemas_are_forgotten() {
        let home = tempfile::TempDir::new().expect("a folder");
        for name in [
            "parlor-schema-2.db",
            "parlor-schema-9.db",
            "parlor-schema-10.db",
            "parlor-schema-11.db",
            "mine.db",
        ] {
            fs::write(home.path().join(name), "").expect("writes");
        }
        forget_old(home.path());
        let mut left: Vec<String> = fs::read_dir(home.path())
            .expect("reads")
            .map(|entry| {
                entry
                    .expect("reads")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "mine.db",
                "parlor-schema-10.db",
                "parlor-schema-11.db",
                "parlor-schema-9.db"
            ]
        );
    }
}
