//! The end of approvals: those without a decision in time expire, the messages that asked show how it
//! ended, and the turns that waited go on.
//!
//! A decision is a row, so a kill in between leaves the rest to the next start.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction};

use super::GatewayState;
use crate::answering::approval_texts as texts;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Source};
use crate::delivery::{Delivery, Kind};
use crate::domain::{Destination, PersonId, SessionKey};
use crate::records::approvals::{self, Approval};
use crate::storage::StoreError;

/// How often open approvals are looked at. The clock may jump, so no timer is set for their end.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Ended approvals told in one go.
const MOST_TOLD: u32 = 100;

/// Ends approvals until the gateway stops.
pub(super) async fn watch(state: Arc<GatewayState>) {
    let approvals = state.services.sessions.approvals().clone();
    let mut has_failed = false;
    loop {
        // Dropped after people are told, so that a settled gateway has told them.
        let tokens = approvals.take_tokens();
        let settled = settle(&state).await;
        if let Err(error) = &settled
            && !has_failed
        {
            tracing::warn!("approvals were not looked at; trying again: {error}");
        }
        has_failed = settled.is_err();
        drop(tokens);
        let again = async {
            match settled {
                Ok(0) => std::future::pending().await,
                Ok(_) | Err(_) => tokio::time::sleep(LOOK_EVERY).await,
            }
        };
        tokio::select! {
            () = again => {}
            () = approvals.changed() => {}
            () = state.stop.cancelled() => return,
        }
    }
}

/// Returns the number of open approvals.
async fn settle(state: &Arc<GatewayState>) -> Result<u64, StoreError> {
    let db = &state.services.db;
    let look = |connection: &Connection| approvals::outlook(connection, now_ms());
    let mut outlook = db.read(look).await?;
    if outlook.is_due {
        db.write(|tx| approvals::expire(tx, now_ms())).await?;
        outlook = db.read(look).await?;
    }
    while outlook.is_untold {
        // A settled gateway has told it.
        let _guard = state.work.token();
        let ended = db
            .read(|connection| approvals::untold(connection, MOST_TOLD))
            .await?;
        if ended.is_empty() {
            break;
        }
        let turns: Vec<i64> = ended
            .iter()
            .map(|approval| approval.wanted.call.inbox_id)
            .collect();
        state.services.sessions.approvals_answered(&turns);
        for approval in ended {
            tell(state, approval).await?;
        }
        outlook = db.read(look).await?;
    }
    state.services.sessions.approvals().counted(outlook.open);
    Ok(outlook.open)
}

/// Has the messages that asked show how it ended.
async fn tell(state: &Arc<GatewayState>, approval: Approval) -> Result<(), StoreError> {
    let snapshot = state.services.snapshots.current();
    let agent = snapshot.registry.by_uid(approval.wanted.agent);
    let agent = agent.map_or_else(|| "An agent".to_owned(), |agent| agent.label());
    let delivery = state.delivery.clone();
    let write = move |tx: &Transaction<'_>| change(tx, &delivery, &approval, &agent, now_ms());
    for (place, rows) in state.services.db.write(write).await? {
        state.delivery.submit(&place, rows);
    }
    Ok(())
}

fn change(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    approval: &Approval,
    agent: &str,
    now: i64,
) -> rusqlite::Result<Vec<(SessionKey, usize)>> {
    let mut changed = Vec::new();
    for notice in approvals::notices(tx, approval.id)? {
        let told = texts::ended(approval, agent, &notice.place);
        let to = Destination::stored(notice.place);
        let rows = delivery.draft(&to, Kind::Notice, &Text::plain(&told));
        let channel = delivery.channel_of(to.place());
        if !channel.is_some_and(|channel| channel.abilities().changes) {
            // The person there has the reply to their command.
            if !is_by_person_at(approval, to.place()) {
                outbox::insert(tx, &rows, Source::default(), now)?;
                changed.push((to.place().clone(), rows.len()));
            }
            continue;
        }
        match (notice.message, rows.first()) {
            (Some(message), Some(_)) => {
                outbox::insert_change(tx, &rows, &message, Source::default(), now)?;
                changed.push((to.place().clone(), rows.len()));
            }
            // A message on its way keeps its buttons, and a press says how it ended.
            (None, Some(row)) => drop(outbox::replace_untried(tx, notice.outbox_id, row)?),
            (_, None) => {}
        }
    }
    approvals::told(tx, approval.id)?;
    Ok(changed)
}

/// Whether the only person of this place has decided.
fn is_by_person_at(approval: &Approval, place: &SessionKey) -> bool {
    let by = approval.decided_by.as_ref().and_then(|by| by.parse().ok());
    matches!(by, Some(PersonId::Local(_))) && place.is_private()
}
