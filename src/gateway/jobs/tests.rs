//! Slots over restarts, kills and jumps of the clock, with the real tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::access::Role;
use crate::agents::tests::agent_of;
use crate::config::JobPrompt;
use crate::domain::{Labels, Zone};
use crate::jobs::{Cron, JobContext, Missed, Timetable, When};
use crate::records::inbox::{self, Closing};
use crate::records::jobs::{Definition, NewJob, Source};
use crate::storage::Db;

/// The beginning of March 2026, so that the spring change is near.
const START: i64 = 1_772_323_200_000;

fn job(connection: &Connection, timetable: &Timetable, id: i64) -> Option<Job> {
    let row = jobs::get(connection, id).unwrap()?;
    Some(Job {
        agent: Arc::new(agent_of(Path::new("home"), "main")),
        timetable: timetable.clone(),
        zone: Zone::named("UTC").unwrap(),
        prompt: JobPrompt::Text("Look.".into()),
        place: None,
        context: JobContext::Own,
        is_enabled: true,
        read: Labels::NONE,
        row,
    })
}

/// A step of a simulation.
#[derive(Debug, Clone)]
enum Step {
    /// The clock goes on, and the scheduler looks.
    Passes(i64),
    /// The machine is off, or asleep.
    Off(i64),
    /// The clock is set back.
    Back(i64),
    /// The process is killed in the middle of its look.
    Killed(i64),
    /// A new process begins.
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_000_i64..4_000_000).prop_map(Step::Passes),
        1 => (1_000_i64..400_000_000).prop_map(Step::Off),
        1 => (1_000_i64..30_000_000).prop_map(Step::Back),
        2 => (1_000_i64..4_000_000).prop_map(Step::Killed),
        1 => Just(Step::Restart),
    ]
}

fn any_timetable() -> impl Strategy<Value = Timetable> {
    let when = prop_oneof![
        (1_i64..600).prop_map(|minutes| When::Every {
            ms: minutes * 60_000,
            from: 0
        }),
        (0_u32..60, 0_u32..24).prop_map(|(minute, hour)| When::Cron {
            cron: Cron::parse(&format!("{minute} {hour} * * *")).unwrap(),
            zone: Zone::named("Europe/Berlin").unwrap(),
        }),
        (0_i64..200_000_000).prop_map(|later| When::At(START + later)),
    ];
    (when, 0_i64..60_000).prop_map(|(when, jitter_ms)| Timetable {
        jitter_ms,
        missed: Missed::Once,
        ..Timetable::new(when)
    })
}

/// The tables, in memory.
fn tables() -> Connection {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { drop(Db::open(&path).await.unwrap()) });
    let file = Connection::open(&path).unwrap();
    let mut memory = Connection::open_in_memory().unwrap();
    let backup = rusqlite::backup::Backup::new(&file, &mut memory).unwrap();
    backup
        .run_to_completion(1_000, std::time::Duration::ZERO, None)
        .unwrap();
    drop(backup);
    memory
}

struct House {
    store: Connection,
    timetable: Timetable,
    id: i64,
    handled: i64,
    now: i64,
    /// How often each slot was queued.
    queued: BTreeMap<i64, u32>,
}

impl House {
    fn new(mut store: Connection, timetable: Timetable) -> Self {
        let agent = agent_of(Path::new("home"), "main");
        store
            .execute(
                "INSERT OR IGNORE INTO agents (uid, slug, created_at) VALUES (?1, 'main', 0)",
                [agent.uid.to_string()],
            )
            .unwrap();
        let new = NewJob {
            agent: agent.uid,
            agent_id: agent.id,
            name: "look".parse().unwrap(),
            source: Source::Cli,
            definition: Definition {
                timetable: timetable.clone(),
                zone: Some("UTC".into()),
                prompt: "Look.".into(),
                context: JobContext::Own,
                read: 0,
            },
            place: None,
            maker: None,
            is_paused: false,
        };
        let tx = store.transaction().unwrap();
        let id = jobs::insert(&tx, &new, &Actor::Gateway, START)
            .unwrap()
            .unwrap();
        tx.commit().unwrap();
        House {
            store,
            timetable,
            id,
            handled: START,
            now: START,
            queued: BTreeMap::new(),
        }
    }

    /// A look of the scheduler. A kill leaves the transaction behind.
    fn look(&mut self, is_killed: bool) {
        let Some(mut job) = job(&self.store, &self.timetable, self.id) else {
            return;
        };
        job.row.handled = self.handled;
        let look = job
            .timetable
            .look(&job.zone, &job.seed(), self.handled, self.now);
        let Some(slot) = look.due else { return };
        let order = JobOrder {
            job,
            slot,
            role: Role::Owner,
            task: Ok("Look.".into()),
            by_hand: false,
        };
        let tx = self.store.transaction().unwrap();
        let taken = job_orders::take(&tx, &order, self.now).unwrap();
        if is_killed {
            return drop(tx);
        }
        if let Taken::Queued(accepted) = taken {
            *self.queued.entry(slot.at).or_default() += 1;
            // The turn ends at once, so that the next slot finds the job free.
            inbox::close(&tx, accepted.id, Closing::Done, "answered", self.now).unwrap();
            jobs::settle(&tx, self.now).unwrap();
        }
        tx.commit().unwrap();
        self.handled = slot.at;
    }

    fn restart(&mut self) {
        if let Some(row) = jobs::get(&self.store, self.id).unwrap() {
            self.handled = row.handled;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// At most one turn for each slot, whatever happens to the clock and the process; and under
    /// `missed = "once"` every slot is followed by a turn.
    #[test]
    fn every_slot_runs_at_most_once_and_none_is_lost(timetable in any_timetable(), steps in proptest::collection::vec(any_step(), 1..40)) {
        let mut house = House::new(tables(), timetable);
        for step in steps {
            match step {
                Step::Passes(ms) => { house.now += ms; house.look(false); }
                Step::Off(ms) => { house.now += ms; house.restart(); house.look(false); }
                Step::Back(ms) => { house.now = (house.now - ms).max(START); house.look(false); }
                Step::Killed(ms) => { house.now += ms; house.look(true); house.restart(); }
                Step::Restart => { house.restart(); house.look(false); }
            }
        }
        house.look(false);
        for (slot, count) in &house.queued {
            prop_assert_eq!(*count, 1, "slot {}", slot);
        }
        let rows: BTreeSet<i64> = jobs::runs(&house.store, house.id, 1_000).unwrap().into_iter().map(|run| run.slot).collect();
        prop_assert_eq!(rows, house.queued.keys().copied().collect::<BTreeSet<i64>>());
        // The delay of the job counts too.
        let upto = house.now - 60_000;
        let latest = house.timetable.when.slots_after(START).take_while(|slot| *slot <= upto).last();
        if let Some(latest) = latest {
            let last_run = house.queued.keys().next_back().copied();
            prop_assert!(last_run.is_some_and(|run| run >= latest), "{latest} was lost, {last_run:?} was the last run");
        }
    }
}
