//! Offers that the operator said no to: the `declined` table. They are not made again unasked.

use rusqlite::{Connection, Transaction, params};

pub(crate) fn is_declined(connection: &Connection, what: &str) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM declined WHERE what = ?1")?;
    statement.exists([what])
}

pub(crate) fn decline(tx: &Transaction<'_>, what: &str, now: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO declined (what, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    tx.execute(sql, params![what, now]).map(drop)
}
