//! The `keys` table: secrets made by the gateway for itself.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::config::Secret;
use crate::signing::Signer;
use crate::storage::{Db, StoreError};

const BUTTONS: &str = "buttons";
const WEBHOOK: &str = "webhook";
const KEY_BYTES: usize = Signer::KEY_BYTES;

/// The signer of buttons. Its key is stored, so buttons stay valid after a restart.
pub(super) async fn buttons(db: &Db) -> Result<Signer, StoreError> {
    Ok(Signer::new(&key(db, BUTTONS).await?))
}

/// The secret Telegram shows when calling the webhook. Stored, so calls made during a restart stay
/// valid.
pub(super) async fn webhook(db: &Db) -> Result<Secret, StoreError> {
    let key = key(db, WEBHOOK).await?;
    Ok(Secret::new(
        key.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>(),
    ))
}

/// A key by its name, made at the first request.
async fn key(db: &Db, name: &'static str) -> Result<Vec<u8>, StoreError> {
    let found = db.read(move |connection| {
        let sql = "SELECT secret FROM keys WHERE name = ?1";
        connection
            .query_row(sql, [name], |row| row.get::<_, Vec<u8>>(0))
            .optional()
    });
    match found.await? {
        Some(key) => Ok(key),
        None => db.write(move |tx| make(tx, name)).await,
    }
}

fn make(tx: &Transaction<'_>, name: &str) -> rusqlite::Result<Vec<u8>> {
    let mut key = vec![0u8; KEY_BYTES];
    getrandom::fill(&mut key).expect("the system has random numbers");
    tx.execute(
        "INSERT INTO keys (name, secret) VALUES (?1, ?2)",
        params![name, key],
    )?;
    Ok(key)
}
