//! Keys the gateway made for itself: the `keys` table.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::signing::Signer;
use crate::storage::{Db, StoreError};

const BUTTONS: &str = "buttons";

/// The signer of buttons; its key is made at the first start, so that buttons stay good after a restart.
pub(super) async fn buttons(db: &Db) -> Result<Signer, StoreError> {
    let found = db.read(|connection| {
        let sql = "SELECT secret FROM keys WHERE name = ?1";
        connection.query_row(sql, [BUTTONS], |row| row.get::<_, Vec<u8>>(0)).optional()
    });
    let key = match found.await? {
        Some(key) => key,
        None => db.write(make).await?,
    };
    Ok(Signer::new(&key))
}

fn make(tx: &Transaction<'_>) -> rusqlite::Result<Vec<u8>> {
    let mut key = vec![0u8; Signer::KEY_BYTES];
    getrandom::fill(&mut key).expect("the system has random numbers");
    tx.execute("INSERT INTO keys (name, secret) VALUES (?1, ?2)", params![BUTTONS, key])?;
    Ok(key)
}
