//! Jobs as they are now: the rows of the store with the words of config.toml.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use crate::agents::Agent;
use crate::clock::now_ms;
use crate::config::{JobPrompt, JobSpec};
use crate::domain::{AgentId, AgentUid, Labels, LocalName, PersonId, SessionKey, Zone};
use crate::home::Snapshot;
use crate::jobs::{JobContext, Timetable};
use crate::records::jobs::{self, JobRow, Source};

/// A job with all that it needs to run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) row: JobRow,
    pub(crate) agent: Arc<Agent>,
    pub(crate) timetable: Timetable,
    pub(crate) zone: Zone,
    pub(crate) prompt: JobPrompt,
    pub(crate) place: Option<SessionKey>,
    pub(crate) context: JobContext,
    /// False while config.toml has it rest.
    pub(crate) is_enabled: bool,
    pub(crate) read: Labels,
}

impl Job {
    /// Whether slots of the job count.
    pub(crate) fn is_active(&self) -> bool {
        self.is_enabled && self.row.paused.is_none()
    }

    /// Tells the delays of jobs apart.
    pub(crate) fn seed(&self) -> String {
        format!("{}:{}", self.row.agent, self.row.name)
    }

    pub(crate) fn is_heartbeat(&self) -> bool {
        self.prompt == JobPrompt::Heartbeat
    }

    /// The next times at which the job begins.
    pub(crate) fn upcoming(&self, now: i64, most: usize) -> Vec<i64> {
        if !self.is_active() {
            return Vec::new();
        }
        let after = now.max(self.row.wait_until);
        self.timetable
            .upcoming(&self.zone, &self.seed(), after, most)
    }

    /// The person whose rights the turns have: the maker, else the only person who reads the answer,
    /// else the operator.
    pub(crate) fn person(&self) -> PersonId {
        let reader = || self.place.as_ref().and_then(SessionKey::only_person);
        let maker = self.row.maker.clone().or_else(reader);
        maker.unwrap_or_else(|| PersonId::Local(OPERATOR.parse().expect("a plain name")))
    }

    /// The session of the turns.
    pub(crate) fn session(&self) -> SessionKey {
        match (&self.place, self.context) {
            (Some(place), JobContext::Place) => place.clone(),
            _ => SessionKey::Cron {
                agent: self.agent.id.clone(),
                job: self.row.name.clone(),
            },
        }
    }
}

/// Stands for the operator where a job has no person.
const OPERATOR: &str = "jobs";

/// All jobs of the agents of a snapshot, oldest first.
pub(crate) fn all(connection: &Connection, snapshot: &Snapshot) -> rusqlite::Result<Vec<Job>> {
    Ok(known(snapshot, jobs::all(connection)?))
}

/// The number of jobs with a time ahead.
pub(crate) fn ahead(connection: &Connection, snapshot: &Snapshot) -> rusqlite::Result<usize> {
    let jobs = all(connection, snapshot)?;
    let is_ahead = |job: &&Job| !job.upcoming(now_ms(), 1).is_empty();
    Ok(jobs.iter().filter(is_ahead).count())
}

/// The jobs behind rows. Rows of agents that are not here, and of jobs that left config.toml, are
/// left out.
pub(crate) fn known(snapshot: &Snapshot, rows: Vec<JobRow>) -> Vec<Job> {
    let written = written(snapshot);
    let job = |row: JobRow| {
        let agent = snapshot.registry.by_uid(row.agent)?.clone();
        let spec = || written.get(&(&agent.id, &row.name)).copied();
        match (&row.definition, row.source) {
            (Some(definition), _) => Some(Job {
                timetable: definition.timetable.clone(),
                zone: definition.zone(),
                prompt: JobPrompt::Text(definition.prompt.clone()),
                place: row.place.clone(),
                context: definition.context,
                is_enabled: true,
                read: definition.labels(),
                agent,
                row,
            }),
            (None, Source::Config) => {
                let spec = spec()?;
                Some(Job {
                    timetable: spec.timetable.clone(),
                    zone: spec.zone.clone(),
                    prompt: spec.prompt.clone(),
                    place: spec.place.clone(),
                    context: spec.context,
                    is_enabled: spec.enabled,
                    read: Labels::NONE,
                    agent,
                    row,
                })
            }
            (None, _) => None,
        }
    };
    rows.into_iter().filter_map(job).collect()
}

fn written(snapshot: &Snapshot) -> HashMap<(&AgentId, &LocalName), &JobSpec> {
    let agents = snapshot.config.agents.iter();
    agents
        .flat_map(|agent| agent.jobs.iter().map(|job| ((&agent.id, &job.name), job)))
        .collect()
}

/// The jobs of config.toml, each with its schedule in words of the program.
pub(crate) fn of_config(snapshot: &Snapshot) -> Vec<(AgentUid, LocalName, String)> {
    let agents = snapshot.config.agents.iter();
    let known = agents.filter_map(|spec| Some((snapshot.registry.get(&spec.id)?.uid, spec)));
    known
        .flat_map(|(uid, spec)| {
            let jobs = spec.jobs.iter();
            jobs.map(move |job| (uid, job.name.clone(), schedule(job)))
        })
        .collect()
}

fn schedule(job: &JobSpec) -> String {
    let JobSpec {
        timetable,
        zone,
        enabled,
        ..
    } = job;
    let timetable = serde_json::to_string(timetable).unwrap_or_default();
    let zone = zone.name().unwrap_or_default();
    format!("{timetable} {zone} {enabled}")
}
