//! Ends switches for a while: takes the pin back, tells the place, and notes the handoff. Ends that
//! came while no gateway ran are told at the next start.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction};
use tokio::sync::Notify;

use super::GatewayState;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::commands::texts::steering as texts;
use crate::delivery::outbox::{self, Source};
use crate::delivery::{Delivery, Kind};
use crate::domain::{AgentId, Destination};
use crate::home::Snapshot;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::transcript;
use crate::routing::pins::{self, Over};
use crate::routing::route;
use crate::storage::StoreError;

/// The clock may jump, so the time is looked at again after this.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// After a failure of the store.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Tells about a new switch for a while.
#[derive(Default)]
pub(super) struct PinEnds {
    changed: Notify,
}

impl PinEnds {
    pub(super) fn look_again(&self) {
        self.changed.notify_one();
    }
}

/// Ends switches when their time comes, until the gateway stops.
pub(super) async fn watch(state: Arc<GatewayState>) {
    loop {
        let wait = match settle(&state).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!("switches for a while were not ended: {error}");
                Some(TRY_AGAIN)
            }
        };
        let timer = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait.min(LONGEST_WAIT)).await,
                // Without a switch for a while there is nothing to wait for.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer => {}
            () = state.pin_ends.changed.notified() => {}
            () = state.stop.cancelled() => return,
        }
    }
}

/// Ends what is over, and returns the time until the next end.
async fn settle(state: &Arc<GatewayState>) -> Result<Option<Duration>, StoreError> {
    let db = &state.services.db;
    let (over, next) = db
        .read(|connection| {
            let now = now_ms();
            Ok((pins::over(connection, now)?, time_left(connection, now)?))
        })
        .await?;
    if over.is_empty() {
        return Ok(next);
    }
    for over in over {
        // A settled gateway has told it.
        let _guard = state.work.token();
        end(state, over).await?;
    }
    db.read(|connection| time_left(connection, now_ms())).await
}

fn time_left(connection: &Connection, now: i64) -> rusqlite::Result<Option<Duration>> {
    let next = pins::next_end(connection)?;
    Ok(next.map(|at| Duration::from_millis(u64::try_from(at - now).unwrap_or(0))))
}

async fn end(state: &Arc<GatewayState>, over: Over) -> Result<(), StoreError> {
    let place = over.origin.key.clone();
    let (snapshot, delivery) = (state.services.snapshots.current(), state.delivery.clone());
    let told = state
        .services
        .db
        .write(move |tx| write(tx, &snapshot, &delivery, &over, now_ms()))
        .await?;
    state.pins.changed(&place);
    state.services.sessions.agent_changed();
    if let Some(rows) = told {
        state.delivery.submit(&place, rows);
    }
    Ok(())
}

/// Returns the number of rows to send, if the switch was not ended meanwhile.
fn write(
    tx: &Transaction<'_>,
    snapshot: &Snapshot,
    delivery: &Delivery,
    over: &Over,
    now: i64,
) -> rusqlite::Result<Option<usize>> {
    let place = &over.origin.key;
    if !pins::end(tx, place, now)? {
        return Ok(None);
    }
    let beneath = pins::from_chat(tx, place)?.pin;
    let beneath = beneath.filter(|pin| snapshot.table.knows(&pin.agent));
    let then = route(&snapshot.table, beneath.as_ref(), &over.origin).agent;
    let label = |id: &AgentId| {
        let known = snapshot.registry.get(id);
        known.map_or_else(|| id.to_string(), |agent| agent.label())
    };
    let Some(before) = &over.agent else {
        return Ok(None);
    };
    if then != *before {
        let line = format!("from {before} to {then}");
        transcript::append_mark(tx, place, None, &line, now)?;
    }
    let change = Change::new(Action::Switch).at(place);
    audit::note(tx, &Actor::Gateway, &change.from(before).to(&then), now)?;
    if !delivery.reaches(place) {
        return Ok(None);
    }
    let text = texts::time_is_over(&label(before), over.until - over.set_at, &label(&then));
    let to = Destination::of_agent(place.clone());
    let rows = delivery.draft(&to, Kind::Notice, &Text::plain(&text));
    outbox::insert(tx, &rows, Source::default(), now)?;
    Ok(Some(rows.len()))
}
