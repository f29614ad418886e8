//! Opens the database of a home for a verb.

use std::path::Path;

use rusqlite::Connection;

use super::{Failure, print};
use crate::storage::{self, Db};

/// Bringing the database up to date is told, because the asker may only have wanted to look.
pub(super) async fn open(path: &Path) -> Result<Db, Failure> {
    let schema = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))
    };
    let before = storage::peek(path, schema);
    let db = Db::open(path).await?;
    let now = storage::schema();
    if let Some(before) = before.filter(|before| (1..now).contains(before)) {
        print::note(format_args!(
            "The database is brought up to date, from schema {before} to {now}. A copy from before is in the folder backups of the home."
        ));
    }
    Ok(db)
}
