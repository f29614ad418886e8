//! The `keys` table: secrets made by the gateway for itself.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::channels::telegram::WebhookSecrets;
use crate::clock::now_ms;
use crate::config::Secret;
use crate::signing::Signer;
use crate::storage::{Db, StoreError};

const BUTTONS: &str = "buttons";
/// The names of the webhook's secrets go on with the time of their making.
const WEBHOOK: &str = "webhook";
const KEY_BYTES: usize = Signer::KEY_BYTES;

/// How long a secret of the webhook counts after the next was made.
const OVERLAP_MS: i64 = 60 * 60 * 1000;

/// The signer of buttons. Its key is stored, so buttons stay valid after a restart.
pub(super) async fn buttons(db: &Db) -> Result<Signer, StoreError> {
    Ok(Signer::new(&key(db, BUTTONS).await?))
}

/// A new secret for Telegram to show when calling the webhook. The secrets before are stored, so
/// calls that are under way stay valid.
pub(super) async fn webhook(db: &Db) -> Result<WebhookSecrets, StoreError> {
    db.write(|tx| renew_webhook(tx, now_ms())).await
}

fn renew_webhook(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<WebhookSecrets> {
    let mut statement =
        tx.prepare("SELECT name, secret FROM keys WHERE name = ?1 OR name GLOB ?1 || ':*'")?;
    let stored = statement.query_map([WEBHOOK], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut stored: Vec<(String, Vec<u8>)> = stored.collect::<rusqlite::Result<_>>()?;
    stored.sort_by_key(|(name, _)| made_at(name));
    let nexts: Vec<i64> = stored.iter().map(|(name, _)| made_at(name)).collect();
    let nexts = nexts.into_iter().skip(1).chain([now]);
    let mut earlier = Vec::new();
    for ((name, key), next) in stored.iter().zip(nexts) {
        let end = next.min(now) + OVERLAP_MS;
        if now < end {
            earlier.push((in_letters(key), end));
        } else {
            tx.execute("DELETE FROM keys WHERE name = ?1", [name])?;
        }
    }
    let newest = in_letters(&make(tx, &format!("{WEBHOOK}:{now}"))?);
    Ok(WebhookSecrets::new(newest, earlier))
}

/// A secret without a time is older than all others.
fn made_at(name: &str) -> i64 {
    let time = name.split_once(':').and_then(|(_, time)| time.parse().ok());
    time.unwrap_or(0)
}

fn in_letters(key: &[u8]) -> Secret {
    Secret::new(
        key.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>(),
    )
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
        "INSERT OR REPLACE INTO keys (name, secret) VALUES (?1, ?2)",
        params![name, key],
    )?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = OVERLAP_MS;

    #[tokio::test]
    async fn a_secret_counts_for_an_hour_after_the_next_was_made() {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&home.path().join("parlor.db")).await.unwrap();
        let start = async |now: i64| {
            let secrets = db.write(move |tx| renew_webhook(tx, now)).await.unwrap();
            let ends: Vec<i64> = secrets.ends().collect();
            (secrets.told(), ends)
        };
        let (first, ends) = start(1000).await;
        assert_eq!((first.len(), ends), (64, vec![]));
        let (second, ends) = start(10 * HOUR).await;
        assert_ne!(first, second);
        assert_eq!(ends, [11 * HOUR]);
        // Two starts within the hour: the first secret keeps its end.
        assert_eq!(start(10 * HOUR + 5).await.1, [11 * HOUR, 11 * HOUR + 5]);
        // A secret that has ended does not come back with the next start.
        assert_eq!(start(20 * HOUR).await.1, [21 * HOUR]);
        // A clock that was set back makes no secret count for longer.
        assert!(start(5 * HOUR).await.1.iter().all(|end| *end <= 6 * HOUR));
    }
}
