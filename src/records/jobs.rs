//! Jobs and their runs: the tables `jobs` and `job_runs`. The row of a slot is written in the
//! transaction of its inbox row, and a second row for the same slot cannot be.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::audit::{self, Action, Actor, Change};
use crate::channels::PlaceLoss;
use crate::domain::{AgentId, AgentUid, Labels, LocalName, PersonId, SessionKey, Zone};
use crate::fail_points::{self, Write};
use crate::jobs::{JobContext, Timetable};
use crate::routing::places;

/// Runs are kept this long.
const RUNS_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;
/// Jobs that are over are kept this long, with their runs.
const ENDED_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// A job is paused after so many failures in a row.
pub(crate) const MOST_FAILURES: u32 = 5;
/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT_MS: i64 = 60_000;
const LONGEST_WAIT_MS: i64 = 60 * 60 * 1000;

/// Where a job comes from. The text forms are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    Config,
    Chat,
    Cli,
    Import,
}

impl Source {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Source::Config => "config",
            Source::Chat => "chat",
            Source::Cli => "cli",
            Source::Import => "import",
        }
    }

    fn parse(text: &str) -> Self {
        let all = [Source::Chat, Source::Cli, Source::Import];
        let mut all = all.into_iter();
        all.find(|source| source.as_str() == text)
            .unwrap_or(Source::Config)
    }
}

/// A job that is not in config.toml.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) timetable: Timetable,
    /// The name of the zone. None: the machine's.
    pub(crate) zone: Option<String>,
    pub(crate) prompt: String,
    pub(crate) context: JobContext,
    /// What the turn that made the job had read, as bits.
    pub(crate) read: u32,
}

impl Definition {
    pub(crate) fn zone(&self) -> Zone {
        let named = self.zone.as_deref().and_then(Zone::named);
        named.unwrap_or_default()
    }

    pub(crate) fn labels(&self) -> Labels {
        Labels::from_bits(self.read)
    }
}

/// A job to be stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewJob {
    pub(crate) agent: AgentUid,
    pub(crate) agent_id: AgentId,
    pub(crate) name: LocalName,
    pub(crate) source: Source,
    pub(crate) definition: Definition,
    pub(crate) place: Option<SessionKey>,
    /// None: the operator.
    pub(crate) maker: Option<(PersonId, String)>,
    /// At rest until it is resumed.
    pub(crate) is_paused: bool,
}

/// A job with its state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobRow {
    pub(crate) id: i64,
    pub(crate) agent: AgentUid,
    pub(crate) name: LocalName,
    pub(crate) source: Source,
    /// None for jobs of config.toml.
    pub(crate) definition: Option<Definition>,
    pub(crate) place: Option<SessionKey>,
    pub(crate) maker: Option<PersonId>,
    pub(crate) maker_name: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) schedule: String,
    pub(crate) handled: i64,
    pub(crate) failures: u32,
    pub(crate) wait_until: i64,
    pub(crate) paused: Option<Paused>,
}

/// Why a job rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Paused {
    pub(crate) at: i64,
    /// A person's id, `cli` or `gateway`.
    pub(crate) by: String,
    pub(crate) why: Option<String>,
}

/// How a slot ended. The text forms are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Queued,
    Done,
    /// The agent had nothing to say.
    Nothing,
    Failed,
    /// At a limit.
    Refused,
    Stopped,
    /// Answered, but the answer could not be sent.
    Undelivered,
    Skipped,
}

impl State {
    const ALL: [State; 8] = [
        State::Queued,
        State::Done,
        State::Nothing,
        State::Failed,
        State::Refused,
        State::Stopped,
        State::Undelivered,
        State::Skipped,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Done => "done",
            State::Nothing => "nothing",
            State::Failed => "failed",
            State::Refused => "refused",
            State::Stopped => "stopped",
            State::Undelivered => "undelivered",
            State::Skipped => "skipped",
        }
    }

    fn parse(text: &str) -> Self {
        let mut all = State::ALL.into_iter();
        all.find(|state| state.as_str() == text)
            .unwrap_or(State::Failed)
    }
}

/// A slot that was run or skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRow {
    pub(crate) slot: i64,
    pub(crate) at: i64,
    pub(crate) state: State,
    pub(crate) reason: Option<String>,
    /// Earlier slots that this row stands for.
    pub(crate) missed: u32,
    pub(crate) inbox_id: Option<i64>,
    pub(crate) ended_at: Option<i64>,
}

const COLUMNS: &str = "jobs.id, agent_uid, jobs.name, source, definition, key, made_by, made_name, jobs.created_at, schedule, handled_upto,
    failures, wait_until, paused_at, paused_by, paused_why";

/// All jobs that are not over, oldest first. Jobs that cannot be read are left out.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<JobRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM jobs LEFT JOIN places ON places.id = place_id WHERE ended_at IS NULL ORDER BY jobs.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    let rows: Vec<Option<JobRow>> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(rows.into_iter().flatten().collect())
}

pub(crate) fn get(connection: &Connection, id: i64) -> rusqlite::Result<Option<JobRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM jobs LEFT JOIN places ON places.id = place_id WHERE jobs.id = ?1 AND ended_at IS NULL"
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row([id], read)
        .optional()?;
    Ok(row.flatten())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Option<JobRow>> {
    let paused_at: Option<i64> = row.get(13)?;
    let paused = match paused_at {
        Some(at) => Some(Paused {
            at,
            by: row.get::<_, Option<String>>(14)?.unwrap_or_default(),
            why: row.get(15)?,
        }),
        None => None,
    };
    let text = |index| row.get::<_, Option<String>>(index);
    let (uid, name, definition) = (text(1)?, text(2)?, text(4)?);
    let definition = definition.map(|json| serde_json::from_str::<Definition>(&json));
    let Some(((uid, name), definition)) = uid
        .and_then(|uid| Uuid::parse_str(&uid).ok())
        .zip(name.and_then(|name| name.parse::<LocalName>().ok()))
        .zip(definition.transpose().ok())
    else {
        tracing::warn!("job {} cannot be read", row.get::<_, i64>(0)?);
        return Ok(None);
    };
    Ok(Some(JobRow {
        id: row.get(0)?,
        agent: AgentUid(uid),
        name,
        source: Source::parse(&text(3)?.unwrap_or_default()),
        definition,
        place: text(5)?.and_then(|key| key.parse().ok()),
        maker: text(6)?.and_then(|person| person.parse().ok()),
        maker_name: text(7)?,
        created_at: row.get(8)?,
        schedule: row.get(9)?,
        handled: row.get(10)?,
        failures: row.get(11)?,
        wait_until: row.get(12)?,
        paused,
    }))
}

/// The jobs of config.toml as it is now, by agent and name, each with its schedule in words of the
/// program. Agents that are not in the list of `agents` keep their rows as they are.
pub(crate) fn follow_config(
    tx: &Transaction<'_>,
    agents: &[AgentUid],
    written: &[(AgentUid, LocalName, String)],
    now: i64,
) -> rusqlite::Result<()> {
    let known: Vec<JobRow> = all(tx)?
        .into_iter()
        .filter(|job| job.source == Source::Config && agents.contains(&job.agent))
        .collect();
    let schedules: HashMap<(AgentUid, &str), &String> = written
        .iter()
        .map(|(agent, name, schedule)| ((*agent, name.as_str()), schedule))
        .collect();
    for job in &known {
        match schedules.get(&(job.agent, job.name.as_str())) {
            None => end(tx, job.id, now)?,
            Some(schedule) if **schedule != job.schedule => {
                tx.execute(
                    "UPDATE jobs SET schedule = ?2, handled_upto = ?3, failures = 0, wait_until = 0 WHERE id = ?1",
                    params![job.id, schedule, now],
                )?;
            }
            Some(_) => {}
        }
    }
    // A job of the same name that was made in chat keeps the name.
    let mut insert = tx.prepare_cached(
        "INSERT INTO jobs (agent_uid, name, source, created_at, schedule, handled_upto)
         VALUES (?1, ?2, 'config', ?3, ?4, ?3) ON CONFLICT DO NOTHING",
    )?;
    let names: HashSet<(AgentUid, &str)> = known
        .iter()
        .map(|job| (job.agent, job.name.as_str()))
        .collect();
    for (agent, name, schedule) in written {
        if !names.contains(&(*agent, name.as_str())) {
            insert.execute(params![agent.to_string(), name.as_str(), now, schedule])?;
        }
    }
    Ok(())
}

/// Whether the rows of config.toml's jobs differ from the file.
pub(crate) fn is_config_followed(
    known: &[JobRow],
    agents: &[AgentUid],
    written: &[(AgentUid, LocalName, String)],
) -> bool {
    let rows = known
        .iter()
        .filter(|job| job.source == Source::Config && agents.contains(&job.agent));
    let mut rows: Vec<(AgentUid, &str, &str)> = rows
        .map(|job| (job.agent, job.name.as_str(), job.schedule.as_str()))
        .collect();
    let mut file: Vec<(AgentUid, &str, &str)> = written
        .iter()
        .map(|(agent, name, schedule)| (*agent, name.as_str(), schedule.as_str()))
        .collect();
    rows.sort();
    file.sort();
    rows == file
}

/// Stores a job. None if the agent has a job of this name.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    job: &NewJob,
    actor: &Actor,
    now: i64,
) -> rusqlite::Result<Option<i64>> {
    let place = match &job.place {
        Some(place) => Some(places::ensure(tx, place, now)?),
        None => None,
    };
    let definition = serde_json::to_string(&job.definition)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let (maker, maker_name) = match &job.maker {
        Some((person, name)) => (Some(person.to_string()), Some(name)),
        None => (None, None),
    };
    let (by, _) = actor.columns();
    let inserted = tx
        .prepare_cached(
            "INSERT INTO jobs (agent_uid, name, source, definition, place_id, made_by, made_name, created_at, handled_upto,
                               paused_at, paused_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            job.agent.to_string(),
            job.name.as_str(),
            job.source.as_str(),
            definition,
            place,
            maker,
            maker_name,
            now,
            job.is_paused.then_some(now),
            job.is_paused.then_some(by),
        ])?;
    if inserted == 0 {
        return Ok(None);
    }
    let id = tx.last_insert_rowid();
    let change = Change::new(Action::JobAdd)
        .of(&job.agent_id)
        .about(&job.name);
    let change = match &job.place {
        Some(place) => change.at(place),
        None => change,
    };
    audit::note(tx, actor, &change, now)?;
    Ok(Some(id))
}

/// A name that no job of the agent has.
pub(crate) fn free_name(
    connection: &Connection,
    agent: AgentUid,
    wanted: &str,
) -> rusqlite::Result<LocalName> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM jobs WHERE agent_uid = ?1 AND name = ?2 AND ended_at IS NULL",
    )?;
    let plain = plain_name(wanted);
    for number in 1.. {
        let name = match number {
            1 => plain.clone(),
            number => format!("{plain}-{number}"),
        };
        if !statement.exists(params![agent.to_string(), name])?
            && name != crate::config::HEARTBEAT
            && let Ok(name) = name.parse()
        {
            return Ok(name);
        }
    }
    unreachable!("some number is free")
}

/// Small letters, digits and hyphens of a text.
pub(crate) fn plain_name(text: &str) -> String {
    const LONGEST: usize = 40;
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut name = words.collect::<Vec<_>>().join("-").to_lowercase();
    name.truncate(LONGEST);
    match name.trim_matches('-') {
        "" => "job".to_owned(),
        name => name.to_owned(),
    }
}

/// The jobs of an agent that people made, and those among them of one person's ids.
pub(crate) fn count_made(
    connection: &Connection,
    agent: AgentUid,
    ids: &[PersonId],
) -> rusqlite::Result<(usize, usize)> {
    let mut statement = connection.prepare_cached(
        "SELECT made_by FROM jobs WHERE agent_uid = ?1 AND source <> 'config' AND ended_at IS NULL",
    )?;
    let makers = statement.query_map([agent.to_string()], |row| row.get::<_, Option<String>>(0))?;
    let makers: Vec<Option<String>> = makers.collect::<rusqlite::Result<_>>()?;
    let own = makers.iter().flatten().filter(|maker| {
        let person: Result<PersonId, ()> = maker.parse();
        person.is_ok_and(|person| ids.contains(&person))
    });
    Ok((makers.len(), own.count()))
}

/// The job is over, or was removed.
pub(crate) fn end(tx: &Transaction<'_>, id: i64, now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE jobs SET ended_at = ?2 WHERE id = ?1 AND ended_at IS NULL";
    tx.prepare_cached(sql)?.execute(params![id, now]).map(drop)
}

/// False if the job is paused already.
pub(crate) fn pause(
    tx: &Transaction<'_>,
    id: i64,
    actor: &Actor,
    why: Option<&str>,
    now: i64,
) -> rusqlite::Result<bool> {
    let (by, _) = actor.columns();
    let sql = "UPDATE jobs SET paused_at = ?2, paused_by = ?3, paused_why = ?4
               WHERE id = ?1 AND paused_at IS NULL AND ended_at IS NULL";
    let paused = tx.prepare_cached(sql)?.execute(params![id, now, by, why])?;
    Ok(paused == 1)
}

/// The job goes on with its next slot. False if the job was not paused.
pub(crate) fn resume(tx: &Transaction<'_>, id: i64, now: i64) -> rusqlite::Result<bool> {
    let sql = "UPDATE jobs SET paused_at = NULL, paused_by = NULL, paused_why = NULL, failures = 0, wait_until = 0,
                   handled_upto = ?2
               WHERE id = ?1 AND paused_at IS NOT NULL AND ended_at IS NULL";
    let resumed = tx.prepare_cached(sql)?.execute(params![id, now])?;
    Ok(resumed == 1)
}

/// Jobs of a deleted place, and of places in it, with the name of their agent. All are paused.
pub(crate) fn pause_in(
    tx: &Transaction<'_>,
    place: &SessionKey,
    why: &str,
    now: i64,
) -> rusqlite::Result<Vec<(String, String)>> {
    let [own, parts] = place.globs();
    let mut statement = tx.prepare_cached(
        "SELECT jobs.id, jobs.name, slug FROM jobs JOIN places ON places.id = place_id JOIN agents ON agents.uid = agent_uid
         WHERE ended_at IS NULL AND paused_at IS NULL AND (key GLOB ?1 OR key GLOB ?2)",
    )?;
    let rows = statement.query_map([own, parts], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?))
    })?;
    let mut names = Vec::new();
    for row in rows {
        let (id, name, agent) = row?;
        pause(tx, id, &Actor::Gateway, Some(why), now)?;
        names.push((agent, name));
    }
    Ok(names)
}

/// Claims a slot: its row is written, and the job has done all slots up to it. The primary key refuses
/// a slot that was claimed before.
pub(crate) fn claim(tx: &Transaction<'_>, job: i64, run: &RunRow) -> rusqlite::Result<()> {
    fail_points::writes(Write::JobSlot);
    let sql = "INSERT INTO job_runs (job_id, slot, at, state, reason, missed, inbox_id, ended_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    tx.prepare_cached(sql)?.execute(params![
        job,
        run.slot,
        run.at,
        run.state.as_str(),
        run.reason,
        run.missed,
        run.inbox_id,
        run.ended_at
    ])?;
    set_handled(tx, job, run.slot)
}

/// The job has done all slots up to this one.
pub(crate) fn set_handled(tx: &Transaction<'_>, job: i64, handled: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE jobs SET handled_upto = ?2 WHERE id = ?1";
    let mut statement = tx.prepare_cached(sql)?;
    statement.execute(params![job, handled]).map(drop)
}

/// Whether a slot has a row.
pub(crate) fn is_claimed(connection: &Connection, job: i64, slot: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM job_runs WHERE job_id = ?1 AND slot = ?2")?
        .exists(params![job, slot])
}

/// Why a claimed slot waits without a turn. None: it has a turn, or no row.
pub(crate) fn kept_for(
    connection: &Connection,
    job: i64,
    slot: i64,
) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT coalesce(reason, '') FROM job_runs
               WHERE job_id = ?1 AND slot = ?2 AND state = 'queued' AND inbox_id IS NULL";
    connection
        .prepare_cached(sql)?
        .query_row([job, slot], |row| row.get(0))
        .optional()
}

/// Gives a kept slot back, so that it can be claimed for its turn.
pub(crate) fn take_kept(tx: &Transaction<'_>, job: i64, slot: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM job_runs WHERE job_id = ?1 AND slot = ?2 AND state = 'queued' AND inbox_id IS NULL";
    tx.prepare_cached(sql)?.execute([job, slot]).map(drop)
}

/// Names the inbox row of a claimed slot.
pub(crate) fn queued(
    tx: &Transaction<'_>,
    job: i64,
    slot: i64,
    inbox_id: i64,
) -> rusqlite::Result<()> {
    let sql = "UPDATE job_runs SET inbox_id = ?3 WHERE job_id = ?1 AND slot = ?2";
    let mut statement = tx.prepare_cached(sql)?;
    statement.execute(params![job, slot, inbox_id]).map(drop)
}

/// The latest slots of a job, newest first.
pub(crate) fn runs(connection: &Connection, job: i64, limit: u32) -> rusqlite::Result<Vec<RunRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT slot, at, state, reason, missed, inbox_id, ended_at FROM job_runs WHERE job_id = ?1 ORDER BY slot DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![job, limit], |row| {
        Ok(RunRow {
            slot: row.get(0)?,
            at: row.get(1)?,
            state: State::parse(&row.get::<_, String>(2)?),
            reason: row.get(3)?,
            missed: row.get(4)?,
            inbox_id: row.get(5)?,
            ended_at: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// The latest slot with a turn.
fn last_turn(connection: &Connection, job: i64) -> rusqlite::Result<Option<(i64, State, i64)>> {
    let sql = "SELECT slot, state, inbox_id FROM job_runs WHERE job_id = ?1 AND inbox_id IS NOT NULL ORDER BY slot DESC LIMIT 1";
    connection
        .prepare_cached(sql)?
        .query_row([job], |row| {
            Ok((
                row.get(0)?,
                State::parse(&row.get::<_, String>(1)?),
                row.get(2)?,
            ))
        })
        .optional()
}

/// How the last run of a job stands when its next slot comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LastRun {
    Ended,
    /// It still waits or works.
    UnderWay,
    /// Its answer could not be sent, for this reason.
    Undelivered(String),
}

/// Looks at the last run of a job. An answer that could not be sent counts as a failure now, because
/// sends end later than turns.
pub(crate) fn look_back(tx: &Transaction<'_>, job: i64) -> rusqlite::Result<LastRun> {
    let Some((slot, state, inbox_id)) = last_turn(tx, job)? else {
        return Ok(LastRun::Ended);
    };
    match state {
        State::Queued => Ok(LastRun::UnderWay),
        State::Done => {
            let sql = "SELECT error FROM outbox WHERE inbox_id = ?1 AND state = 'failed' AND error <> 'delivery is off here' LIMIT 1";
            let error: Option<Option<String>> = tx
                .prepare_cached(sql)?
                .query_row([inbox_id], |row| row.get(0))
                .optional()?;
            let Some(error) = error else {
                tx.prepare_cached("UPDATE jobs SET failures = 0, wait_until = 0 WHERE id = ?1")?
                    .execute([job])?;
                return Ok(LastRun::Ended);
            };
            let error = error.unwrap_or_default();
            let sql = "UPDATE job_runs SET state = 'undelivered', reason = ?3 WHERE job_id = ?1 AND slot = ?2";
            tx.prepare_cached(sql)?.execute(params![job, slot, error])?;
            tx.prepare_cached("UPDATE jobs SET failures = failures + 1 WHERE id = ?1")?
                .execute([job])?;
            Ok(LastRun::Undelivered(error))
        }
        _ => Ok(LastRun::Ended),
    }
}

/// Whether an error of a send means that the place is lost, and further sends fail too.
pub(crate) fn is_place_lost(error: &str) -> bool {
    let losses = [
        PlaceLoss::Closed,
        PlaceLoss::Deleted,
        PlaceLoss::NoSuchGroup,
        PlaceLoss::ThreadLocked,
        PlaceLoss::ChannelGone,
        PlaceLoss::NotSeen,
        PlaceLoss::MayNotWrite,
        PlaceLoss::DmsClosed,
    ];
    losses.iter().any(|loss| loss.to_string() == error)
}

/// A run whose turn has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) job: i64,
    pub(crate) slot: i64,
    pub(crate) state: State,
    pub(crate) reason: Option<String>,
    /// Failures in a row, with this run.
    pub(crate) failures: u32,
}

/// Whether turns of jobs have ended that are not settled.
pub(crate) fn has_ended_turns(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM job_runs LEFT JOIN inbox ON inbox.id = inbox_id
               WHERE job_runs.state = 'queued' AND inbox_id IS NOT NULL AND (inbox.id IS NULL OR inbox.state <> 'waiting')";
    connection.prepare_cached(sql)?.exists([])
}

/// Writes down how turns of jobs ended, by their inbox rows.
pub(crate) fn settle(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<Vec<Settled>> {
    fail_points::writes(Write::JobEnd);
    let mut open = tx.prepare_cached(
        "SELECT job_id, slot, inbox.state, outcome FROM job_runs LEFT JOIN inbox ON inbox.id = inbox_id
         WHERE job_runs.state = 'queued' AND inbox_id IS NOT NULL AND (inbox.id IS NULL OR inbox.state <> 'waiting')",
    )?;
    let ended = open.query_map([], |row| {
        let (inbox, outcome): (Option<String>, Option<String>) = (row.get(2)?, row.get(3)?);
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, inbox, outcome))
    })?;
    let ended: Vec<_> = ended.collect::<rusqlite::Result<_>>()?;
    let mut settled = Vec::new();
    for (job, slot, inbox, outcome) in ended {
        let (state, reason) = ending(inbox.as_deref(), outcome);
        tx.prepare_cached(
            "UPDATE job_runs SET state = ?3, reason = coalesce(?4, reason), ended_at = ?5 WHERE job_id = ?1 AND slot = ?2",
        )?
        .execute(params![job, slot, state.as_str(), reason, now])?;
        let failures = note_end(tx, job, state, now)?;
        settled.push(Settled {
            job,
            slot,
            state,
            reason,
            failures,
        });
    }
    Ok(settled)
}

/// The end of a turn, by its inbox row.
fn ending(inbox: Option<&str>, outcome: Option<String>) -> (State, Option<String>) {
    match (inbox, outcome.as_deref()) {
        (Some("done"), Some(NOTHING)) => (State::Nothing, None),
        (Some("done"), Some("stopped" | "deleted" | "its place is gone")) => {
            (State::Stopped, outcome)
        }
        (Some("done"), _) => (State::Done, None),
        (Some("refused"), _) => (State::Refused, outcome),
        (Some(_), _) => (State::Failed, outcome),
        (None, _) => (State::Failed, Some("its message is gone".to_owned())),
    }
}

/// The outcome of a turn whose agent had nothing to say.
pub(crate) const NOTHING: &str = "nothing";

/// Counts failures in a row. Returns how many there are.
fn note_end(tx: &Transaction<'_>, job: i64, state: State, now: i64) -> rusqlite::Result<u32> {
    match state {
        State::Failed => note_failure(tx, job, now),
        State::Nothing => {
            let sql = "UPDATE jobs SET failures = 0, wait_until = 0 WHERE id = ?1";
            tx.prepare_cached(sql)?.execute([job])?;
            Ok(0)
        }
        _ => Ok(0),
    }
}

/// Counts a failure, and has the job wait. Returns how many there are in a row.
pub(crate) fn note_failure(tx: &Transaction<'_>, job: i64, now: i64) -> rusqlite::Result<u32> {
    let sql = "UPDATE jobs SET failures = failures + 1 WHERE id = ?1 RETURNING failures";
    let failures: Option<u32> = tx
        .prepare_cached(sql)?
        .query_row([job], |row| row.get(0))
        .optional()?;
    let failures = failures.unwrap_or(0);
    tx.prepare_cached("UPDATE jobs SET wait_until = ?2 WHERE id = ?1")?
        .execute(params![job, now + wait_after(failures)])?;
    Ok(failures)
}

fn wait_after(failures: u32) -> i64 {
    let doubled = failures.saturating_sub(1).min(20);
    (FIRST_WAIT_MS << doubled).min(LONGEST_WAIT_MS)
}

/// Slots that went by while the agent was away do not count as missed.
pub(crate) fn take_up(tx: &Transaction<'_>, agent: AgentUid, now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE jobs SET handled_upto = ?2 WHERE agent_uid = ?1 AND ended_at IS NULL";
    tx.execute(sql, params![agent.to_string(), now]).map(drop)
}

/// The conversations of an agent's jobs have the agent's id in their key.
pub(crate) fn rename_agent(
    tx: &Transaction<'_>,
    from: &AgentId,
    to: &AgentId,
) -> rusqlite::Result<()> {
    let sql =
        "UPDATE OR IGNORE places SET key = 'cron:' || ?2 || substr(key, length('cron:' || ?1) + 1)
               WHERE key GLOB 'cron:' || ?1 || ':*'";
    tx.execute(sql, params![from.as_str(), to.as_str()])
        .map(drop)
}

/// Deletes the jobs of a purged agent.
pub(crate) fn purge(tx: &Transaction<'_>, agent: AgentUid) -> rusqlite::Result<()> {
    let uid = agent.to_string();
    tx.execute(
        "DELETE FROM job_runs WHERE job_id IN (SELECT id FROM jobs WHERE agent_uid = ?1)",
        [&uid],
    )?;
    tx.execute("DELETE FROM jobs WHERE agent_uid = ?1", [&uid])
        .map(drop)
}

/// The runs of long ago, and jobs that are over.
pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    // The latest row of a job stays, because it keeps the slot from a second run.
    let runs = tx.execute(
        "DELETE FROM job_runs WHERE (job_id, slot) IN (
             SELECT job_id, slot FROM job_runs AS old WHERE at < ?1 AND state <> 'queued'
             AND slot < (SELECT max(slot) FROM job_runs WHERE job_id = old.job_id) LIMIT ?2)",
        params![now - RUNS_KEPT_MS, most],
    )?;
    let over = "SELECT id FROM jobs WHERE ended_at < ?1 LIMIT ?2";
    let bound = params![now - ENDED_KEPT_MS, most];
    tx.execute(
        &format!("DELETE FROM job_runs WHERE job_id IN ({over})"),
        bound,
    )?;
    let jobs = tx.execute(&format!("DELETE FROM jobs WHERE id IN ({over})"), bound)?;
    Ok(runs + jobs)
}
