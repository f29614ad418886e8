//! Parts of a write that may fail without the rest.

use rusqlite::Transaction;

use super::StoreError;
use super::error::Remedy;

/// Runs a part of a write in a savepoint. If the part cannot work, only the part is undone, and the
/// inner error tells why. Any other failure is the failure of the whole write.
pub(crate) fn part<T>(
    tx: &Transaction<'_>,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<Result<T, StoreError>> {
    tx.execute_batch("SAVEPOINT part")?;
    let error = match work() {
        Ok(value) => {
            tx.execute_batch("RELEASE part")?;
            return Ok(Ok(value));
        }
        Err(error) => error,
    };
    let told = StoreError::from(&error);
    // Some failures end the transaction, and the savepoint with it.
    if told.remedy() != Remedy::GiveUp || tx.is_autocommit() {
        return Err(error);
    }
    tx.execute_batch("ROLLBACK TO part; RELEASE part")?;
    Ok(Err(told))
}
