//! Notices roles and ids that were granted while the gateway runs, by this process or by a verb of
//! the command line beside it.

use super::{GatewayState, owners};
use crate::access::grants;
use crate::storage::StoreError;

/// Takes over the grants of now if their number is another than that of the running snapshot. True
/// if something was taken over. Without a number, the store is asked for it.
pub(super) async fn follow(state: &GatewayState, number: Option<i64>) -> Result<bool, StoreError> {
    let db = &state.services.db;
    let snapshots = &state.services.snapshots;
    let number = match number {
        Some(number) => number,
        None => db.read(grants::revision).await?,
    };
    if snapshots.current().config.access.people.revision() >= number {
        return Ok(false);
    }
    let _replacing = state.replacing.lock().await;
    let current = snapshots.current();
    let people = current.config.access.people.clone();
    let people = db
        .read(move |connection| grants::people(connection, &people))
        .await?;
    tracing::info!("reload cause=people");
    let next = current.with_people(people);
    state.delivery.set_owners(owners(&next.config));
    state.services.sessions.renew(next);
    Ok(true)
}
