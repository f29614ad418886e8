//! Events of topics themselves: made with an agent's name, or opened again.

use std::collections::BTreeMap;

use rusqlite::Transaction;

use crate::delivery::undelivered::{self, When, Which};
use crate::domain::{Arrival, SessionKey};
use crate::home::Snapshot;

/// Rows to send, by place.
pub(super) type Rows = BTreeMap<SessionKey, usize>;

/// With `auto_bind`, a topic named like an agent counts as the `/agent` command of the topic's
/// maker, and passes through access and locks like any command.
pub(super) fn bind_by_name(snapshot: &Snapshot, arrivals: Vec<Arrival>) -> Vec<Arrival> {
    let config = |place: &SessionKey| snapshot.config.platform(place.platform()?);
    let auto_bind = |place: &SessionKey| config(place).is_some_and(|config| config.auto_bind);
    let bind = |arrival| match arrival {
        Arrival::TopicMade(mut made) if auto_bind(&made.origin.key) => {
            match snapshot.registry.find(&made.text) {
                Some(agent) => {
                    made.text = format!("/agent {}", agent.id);
                    Arrival::Message(made)
                }
                None => Arrival::TopicMade(made),
            }
        }
        other => other,
    };
    arrivals.into_iter().map(bind).collect()
}

/// Puts the failed rows of these topics back into the queue.
pub(super) fn retry(
    tx: &Transaction<'_>,
    reopened: &[SessionKey],
    now: i64,
) -> rusqlite::Result<Rows> {
    let mut retried = Rows::new();
    for place in reopened {
        let rows = undelivered::list(tx, &Which::Place(place.clone()))?;
        undelivered::retry(tx, &rows, When::Now, now)?;
        retried.extend(undelivered::by_place(&rows));
    }
    Ok(retried)
}
