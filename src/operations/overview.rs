//! The house in numbers, for people who look after it: the last day, letters on their way, the
//! health of its agents, and whether config.toml counts.

use rusqlite::Connection;

use super::status::{self, ConfigState};
use super::{Operations, work};
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Troubles};
use crate::home::Snapshot;
use crate::records::inbox;
use crate::records::turn_log::{self, Counts};
use crate::storage::StoreError;
use crate::tenants::health::{self, Health, Patient};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Clone)]
pub(crate) struct Overview {
    /// Absent where no gateway runs.
    pub(crate) config: Option<ConfigState>,
    /// Turns of the last day.
    pub(crate) turns: Counts,
    /// Questions of the last day that were refused at a limit, before any turn.
    pub(crate) over_limit: i64,
    pub(crate) troubles: Troubles,
    /// Updates that could not be read.
    pub(crate) unreadable: i64,
    pub(crate) health: Vec<Health>,
}

impl Operations {
    pub(crate) async fn overview(&self, snapshot: &Snapshot) -> Result<Overview, StoreError> {
        let now = now_ms();
        let known = snapshot.registry.all().iter();
        let agents: Vec<Patient> = known
            .map(|agent| Patient::of(agent, self.live.as_ref().map(|_| &snapshot.models)))
            .collect();
        let (table, running) = (snapshot.table.clone(), work::under_way(self));
        let config = self.live.as_ref().map(|live| status::config(self, live));
        let read = move |connection: &Connection| {
            Ok(Overview {
                config,
                turns: turn_log::count_since(connection, now - DAY_MS)?,
                over_limit: inbox::count_over_budget(connection, now - DAY_MS)?,
                troubles: outbox::troubles(connection, now)?,
                unreadable: inbox::count_broken(connection)?,
                health: health::of(connection, &agents, &table, &running, now)?,
            })
        };
        self.db.read(read).await
    }
}
