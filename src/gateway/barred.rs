//! Tells owners that the bot may write nothing in a group any more.

use rusqlite::{Connection, Transaction};

use super::GatewayState;
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Source};
use crate::doctor::expectations;
use crate::domain::{Arrival, SessionKey};
use crate::records::sessions;
use crate::routing::names;
use crate::storage::StoreError;

/// The groups of a batch that bar the bot, each with the reason.
pub(super) fn among(arrivals: &[Arrival]) -> Vec<(SessionKey, String)> {
    let barred = arrivals.iter().filter_map(|arrival| match arrival {
        Arrival::Barred { group, reason } => Some((group.clone(), reason.clone())),
        _ => None,
    });
    barred.collect()
}

/// Anybody can add the bot to a group and remove it, so only groups where it answers are told about.
pub(super) async fn tell(state: &GatewayState, group: &SessionKey, reason: &str) {
    tracing::warn!(session = %group, "nothing can be written here any more: {reason}");
    if let Err(error) = try_tell(state, group, reason).await {
        tracing::warn!(session = %group, "owners were not told: {error}");
    }
}

async fn try_tell(
    state: &GatewayState,
    group: &SessionKey,
    reason: &str,
) -> Result<(), StoreError> {
    let (db, place) = (&state.services.db, group.clone());
    let read = move |connection: &Connection| {
        let name = names::load(connection, &place)?;
        Ok((sessions::is_group_used(connection, &place)?, name))
    };
    let (is_used, name) = db.read(read).await?;
    let is_known = is_used || is_bound(state, group);
    if !is_known || !state.ignored.is_news_about(group, BARRED) {
        return Ok(());
    }
    let rows = state
        .delivery
        .draft_for_owners(&told(group, name.as_deref(), reason));
    let drafts = rows.clone();
    let write =
        move |tx: &Transaction<'_>| outbox::insert(tx, &drafts, Source::default(), now_ms());
    db.write(write).await?;
    state.delivery.submit_drafted(&rows);
    Ok(())
}

fn is_bound(state: &GatewayState, group: &SessionKey) -> bool {
    let snapshot = state.services.snapshots.current();
    let expected = expectations::expectations(&snapshot.config.access, &snapshot.table);
    let mut groups = expected.groups.iter();
    groups.any(|bound| Some(bound.chat) == group.telegram_group())
}

const BARRED: &str = "nothing can be written";

fn told(group: &SessionKey, name: Option<&str>, reason: &str) -> String {
    let place = match name {
        Some(name) => format!("{name} (`{group}`)"),
        None => format!("`{group}`"),
    };
    format!("I can't answer in {place} any more: {reason}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::PlaceLoss;

    #[test]
    fn owners_learn_the_group_and_the_reason() {
        let group = "telegram:group:-1001".parse().unwrap();
        let told = [
            told(&group, Some("Family"), &PlaceLoss::Removed.to_string()),
            told(&group, None, &PlaceLoss::Mute.to_string()),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        I can't answer in Family (`telegram:group:-1001`) any more: I was removed from the group. Add me again.
        I can't answer in `telegram:group:-1001` any more: I may not write in the group. Let me send messages there, or make me an admin.
        ");
    }
}
