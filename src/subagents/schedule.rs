//! The tool `schedule`: jobs that people have agents make.

use std::sync::Arc;

use chrono::{DateTime, FixedOffset};
use rusqlite::{Connection, Transaction};

use super::{Asker, Carried, Subagents};
use crate::access::Role;
use crate::channels::Text;
use crate::clock::now_ms;
use crate::delivery::Kind;
use crate::delivery::outbox::{self, Source as OutboxSource};
use crate::domain::{AgentUid, Destination, PersonId, SessionKey, Zone};
use crate::jobs::JobContext;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::jobs::{self, Definition, JobRow, NewJob, Source};
use crate::records::journal::CallId;
use crate::storage::StoreError;
use crate::tools::{NewSchedule, ScheduleWish};

/// The most jobs of an agent, besides those of config.toml.
const MOST_PER_AGENT: usize = 100;
/// The most jobs of a person with an agent.
const MOST_PER_PERSON: usize = 20;
/// The next times that are told.
const TIMES: usize = 3;

impl Subagents {
    pub(super) async fn schedule(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        wish: ScheduleWish,
    ) -> Result<Carried, StoreError> {
        match wish {
            ScheduleWish::List => self.list_jobs(asker, call).await,
            ScheduleWish::Remove(word) => self.remove_job(asker, call, word).await,
            ScheduleWish::Add(new) => self.add_job(asker, call, *new).await,
        }
    }

    async fn add_job(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        new: NewSchedule,
    ) -> Result<Carried, StoreError> {
        let inbound = &asker.accepted.inbound;
        let (place, person) = (inbound.origin.key.clone(), inbound.origin.person.clone());
        if asker.accepted.role < Role::Member {
            return self
                .done(call, asker.told(format!("{NOTHING_MADE}{GUEST}")))
                .await;
        }
        let (agent, ids) = (asker.agent.uid, self.ids(asker));
        let wanted = new.name.clone().unwrap_or_else(|| new.task.clone());
        let read = move |connection: &Connection| {
            let name = jobs::free_name(connection, agent, &wanted)?;
            Ok((jobs::count_made(connection, agent, &ids)?, name))
        };
        let ((all, own), name) = self.inner.db.read(read).await?;
        if let Some(refusal) = too_many(all, own) {
            return self
                .done(call, asker.told(format!("{NOTHING_MADE}{refusal}")))
                .await;
        }
        let zone = new
            .zone
            .as_deref()
            .and_then(Zone::named)
            .unwrap_or_default();
        let job = NewJob {
            agent,
            agent_id: asker.agent.id.clone(),
            name,
            source: Source::Chat,
            definition: Definition {
                timetable: new.timetable,
                zone: new.zone,
                prompt: new.task,
                context: JobContext::Place,
                read: asker.read.labels.bits(),
            },
            place: Some(place),
            maker: Some((person, inbound.person_name.clone())),
            is_paused: false,
        };
        let times = job
            .definition
            .timetable
            .upcoming(&zone, "", now_ms(), TIMES);
        let told = set(job.name.as_str(), &shown(&times, &zone), zone.name());
        let to = Destination::besides(inbound);
        let rows = self
            .inner
            .delivery
            .draft(&to, Kind::Notice, &Text::plain(&told));
        let (count, actor) = (rows.len(), Actor::of(inbound));
        let shared = Arc::new((job, rows));
        let outcome = asker.told(format!("{told} The person has been told so too."));
        let write = move |tx: &Transaction<'_>, now| {
            let (job, rows) = shared.as_ref();
            // A restart repeats the call; the name is taken then, and the job is there.
            if jobs::insert(tx, job, &actor, now)?.is_some() {
                outbox::insert(tx, rows, OutboxSource::default(), now)?;
            }
            Ok(())
        };
        let (outcome, ()) = self.write(call, outcome, write).await?;
        self.inner.delivery.submit(to.place(), count);
        self.inner.alarm.changed();
        Ok(Carried::Done(outcome))
    }

    async fn list_jobs(&self, asker: &Asker<'_>, call: CallId) -> Result<Carried, StoreError> {
        let jobs = self.jobs_here(asker).await?;
        let zone = &asker.agent.zone;
        let lines: Vec<String> = jobs.iter().map(|job| line(job, zone)).collect();
        let told = match lines.is_empty() {
            true => "There are no jobs here.".to_owned(),
            false => lines.join("\n"),
        };
        self.done(call, asker.told(told)).await
    }

    async fn remove_job(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        word: String,
    ) -> Result<Carried, StoreError> {
        let jobs = self.jobs_here(asker).await?;
        let word = word.trim().trim_start_matches('#').to_owned();
        let found = jobs
            .iter()
            .find(|job| job.name.as_str() == word || job.id.to_string() == word);
        let Some(job) = found.cloned() else {
            let told = format!("Nothing was done: no job of this person is called `{word}` here.");
            return self.done(call, asker.told(told)).await;
        };
        if job.definition.is_none() {
            let told =
                "Nothing was done: that job is in config.toml, which only the operator changes.";
            return self.done(call, asker.told(told.to_owned())).await;
        }
        let (actor, agent) = (Actor::of(&asker.accepted.inbound), asker.agent.id.clone());
        let outcome = asker.told(format!("The job `{}` is removed.", job.name));
        let write = move |tx: &Transaction<'_>, now| {
            jobs::end(tx, job.id, now)?;
            let change = Change::new(Action::JobRemove).of(&agent).about(&job.name);
            audit::note(tx, &actor, &change, now)
        };
        let (outcome, ()) = self.write(call, outcome, write).await?;
        self.inner.alarm.changed();
        Ok(Carried::Done(outcome))
    }

    /// The agent's jobs in the place of the turn that the person may see: their own, and for admins
    /// all of them.
    async fn jobs_here(&self, asker: &Asker<'_>) -> Result<Vec<JobRow>, StoreError> {
        let (agent, ids) = (asker.agent.uid, self.ids(asker));
        let (place, is_admin) = (
            asker.accepted.inbound.origin.key.clone(),
            asker.accepted.role >= Role::Admin,
        );
        let read = move |connection: &Connection| {
            let all = jobs::all(connection)?.into_iter();
            let here = all.filter(|job| is_here(job, agent, &place));
            let seen = here.filter(|job| is_admin || is_of(job, &ids));
            Ok(seen.collect())
        };
        self.inner.db.read(read).await
    }

    fn ids(&self, asker: &Asker<'_>) -> Vec<PersonId> {
        let people = &asker.snapshot.config.access.people;
        people
            .ids_of(&asker.accepted.inbound.origin.person)
            .to_vec()
    }
}

fn is_here(job: &JobRow, agent: AgentUid, place: &SessionKey) -> bool {
    job.agent == agent && job.place.as_ref() == Some(place)
}

fn is_of(job: &JobRow, ids: &[PersonId]) -> bool {
    job.maker.as_ref().is_some_and(|maker| ids.contains(maker))
}

fn too_many(all: usize, own: usize) -> Option<String> {
    if own >= MOST_PER_PERSON {
        Some(format!(
            "this person has {own} jobs with you, and no more than {MOST_PER_PERSON} are allowed. Remove one first."
        ))
    } else if all >= MOST_PER_AGENT {
        Some(format!(
            "you have {all} jobs, and no more than {MOST_PER_AGENT} are allowed. An owner can remove some."
        ))
    } else {
        None
    }
}

const NOTHING_MADE: &str = "Nothing was made: ";
const GUEST: &str = "only members can have jobs made.";

fn set(name: &str, times: &[String], zone: Option<&str>) -> String {
    let zone = zone.map_or_else(String::new, |zone| format!(" ({zone})"));
    let times = match times {
        [] => "no time that is left".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first}, then {}", rest.join(" and ")),
    };
    format!("⏰ The job `{name}` is set for {times}{zone}. `/jobs` shows all of them.")
}

fn shown(times: &[i64], zone: &Zone) -> Vec<String> {
    times.iter().map(|at| moment(zone.at(*at))).collect()
}

fn moment(at: DateTime<FixedOffset>) -> String {
    at.format("%a %-d %b %Y %H:%M").to_string()
}

fn line(job: &JobRow, zone: &Zone) -> String {
    let when = match &job.definition {
        Some(definition) => definition.timetable.when.in_words(zone),
        None => "by config.toml".to_owned(),
    };
    let paused = match job.paused {
        Some(_) => ", paused",
        None => "",
    };
    format!("#{} `{}`: {when}{paused}", job.id, job.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_told_with_its_next_times() {
        let vienna = Zone::named("Europe/Vienna").unwrap();
        let times = [1_795_075_200_000, 1_795_161_600_000, 1_795_248_000_000];
        insta::assert_snapshot!(set("tea", &shown(&times, &vienna), vienna.name()), @"⏰ The job `tea` is set for Thu 19 Nov 2026 09:00, then Fri 20 Nov 2026 09:00 and Sat 21 Nov 2026 09:00 (Europe/Vienna). `/jobs` shows all of them.");
        insta::assert_snapshot!(set("tea", &shown(&times[..1], &vienna), None), @"⏰ The job `tea` is set for Thu 19 Nov 2026 09:00. `/jobs` shows all of them.");
    }
}
