//! Looks up what a run needs before its slot is taken: rights, the way to its place, the task.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use super::job_orders::{JobOrder, Obstacle, task};
use super::known_jobs::Job;
use super::{Live, Operations};
use crate::access::{Role, Standing, people};
use crate::config::{Groups, JobPrompt};
use crate::domain::{Origin, PersonId};
use crate::home::Snapshot;
use crate::jobs::{Slot, Verdict};
use crate::routing::{Router, Visit};
use crate::storage::{Db, StoreError};

/// The parts of a running gateway that a run is looked up with.
struct Desk<'a> {
    db: &'a Db,
    live: &'a Live,
    router: Router,
    snapshot: Arc<Snapshot>,
}

impl Operations {
    /// The orders for slots whose time has come. Empty where no gateway runs.
    pub(crate) async fn orders(&self, due: &[(Job, Slot)]) -> Result<Vec<JobOrder>, StoreError> {
        let Some(live) = &self.live else {
            return Ok(Vec::new());
        };
        let desk = Desk {
            db: &self.db,
            live,
            router: Router::new(live.pins.clone()),
            snapshot: live.snapshots.current(),
        };
        let standings = standings(&desk, due).await?;
        let mut orders = Vec::new();
        for (job, slot) in due {
            let mut job = job.clone();
            if let Some(place) = &mut job.place {
                *place = live.aliases.current(place);
            }
            orders.push(order(&desk, &standings, job, *slot).await?);
        }
        Ok(orders)
    }
}

/// The order for one slot.
async fn order(
    desk: &Desk<'_>,
    standings: &HashMap<PersonId, Standing>,
    job: Job,
    slot: Slot,
) -> Result<JobOrder, StoreError> {
    let guest = Standing::GUEST;
    let standing = standings.get(&job.person()).unwrap_or(&guest);
    let role = standing.with(&job.agent.id);
    let task = match slot.verdict {
        Verdict::Skip(_) => Ok(String::new()),
        Verdict::Run | Verdict::RunLate => match barred(desk, &job, standing).await? {
            Some(obstacle) => Err(obstacle),
            None if let JobPrompt::Text(text) = &job.prompt => Ok(text.clone()),
            None => {
                let reading = job.clone();
                let read = tokio::task::spawn_blocking(move || task(&reading)).await;
                read.unwrap_or_else(|_| Err(Obstacle::Failure("its task cannot be read".into())))
            }
        },
    };
    Ok(JobOrder {
        job,
        slot,
        role,
        task,
        by_hand: false,
    })
}

/// The people of jobs as they stand now.
async fn standings(
    desk: &Desk<'_>,
    due: &[(Job, Slot)],
) -> Result<HashMap<PersonId, Standing>, StoreError> {
    let mut persons: Vec<PersonId> = due.iter().map(|(job, _)| job.person()).collect();
    persons.sort();
    persons.dedup();
    let access = desk.snapshot.config.access.clone();
    let read = move |connection: &Connection| {
        let standing = |person: PersonId| {
            let standing = people::standing(connection, &access, &person)?;
            Ok((person, standing))
        };
        persons.into_iter().map(standing).collect()
    };
    desk.db.read(read).await
}

/// Why a job may not run now: its maker has lost rights, or its place is not the agent's.
async fn barred(
    desk: &Desk<'_>,
    job: &Job,
    standing: &Standing,
) -> Result<Option<Obstacle>, StoreError> {
    let (snapshot, is_persons) = (&desk.snapshot, job.row.maker.is_some());
    if is_persons && standing.with(&job.agent.id) < Role::Member {
        return Ok(Some(Obstacle::Lasting(NO_RIGHTS.into())));
    }
    let Some(place) = &job.place else {
        return Ok(None);
    };
    if !desk.live.delivery.reaches(place) {
        return Ok(Some(Obstacle::Passing(OFF.into())));
    }
    let origin = Origin::new(place.clone(), job.person());
    let visit = Visit {
        access: &snapshot.config.access,
        origin: &origin,
        standing,
    };
    if is_persons && snapshot.table.may_use(&job.agent.id, visit).is_err() {
        return Ok(Some(Obstacle::Lasting(NOT_FOR_MAKER.into())));
    }
    let route = desk.router.resolve(&snapshot.table, visit).await?.route;
    if route.agent != job.agent.id {
        let why = format!("its place belongs to {} now", route.agent);
        return Ok(Some(Obstacle::Failure(why)));
    }
    let is_open =
        place.is_private() || route.opens_place || snapshot.config.access.groups == Groups::Open;
    Ok((!is_open).then(|| Obstacle::Failure(NOT_OPEN.into())))
}

const NO_RIGHTS: &str = "the person who made it is no longer a member";
const NOT_FOR_MAKER: &str = "the agent is closed to the person who made it";
const OFF: &str = "its platform is not connected";
const NOT_OPEN: &str = "its place is not open to the bot";
