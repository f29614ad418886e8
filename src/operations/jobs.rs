//! Jobs for operators and for `/jobs`: listed, shown, run by hand, paused, resumed, added, removed.

use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};

use super::job_orders::{self, Obstacle, Taken};
use super::known_jobs::{self, Job};
use super::{Operations, Refusal, RefusalKind};
use crate::clock::now_ms;
use crate::config::JobPrompt;
use crate::domain::{AgentId, LocalName, SessionKey, Zone, nearest};
use crate::home::Snapshot;
use crate::jobs::{
    Cron, Hours, JobContext, Missed, Slot, Timetable, Verdict, When, parse_moment, parse_span,
};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::jobs::{self, Definition, NewJob, Paused, RunRow, Source};

/// Runs shown with a job.
const MOST_RUNS: u32 = 20;
/// The next times shown with a job.
pub(crate) const MOST_TIMES: usize = 3;
/// The shortest time between two runs of a job.
const SHORTEST_STEP_MS: i64 = 10_000;

/// A wish about jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobRequest {
    /// Of one agent, or of all.
    List {
        agent: Option<String>,
    },
    Show {
        which: String,
    },
    /// Now, whatever its schedule says.
    Run {
        which: String,
    },
    Pause {
        which: String,
    },
    Resume {
        which: String,
    },
    Remove {
        which: String,
    },
    Add(Box<JobWish>),
}

impl JobRequest {
    pub(crate) fn shares_home(&self) -> bool {
        matches!(self, JobRequest::List { .. } | JobRequest::Show { .. })
    }
}

/// A job to be added, as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobWish {
    /// None: the default agent.
    pub(crate) agent: Option<String>,
    pub(crate) name: String,
    pub(crate) cron: Option<String>,
    pub(crate) every: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) time_zone: Option<String>,
    pub(crate) prompt: String,
    pub(crate) place: Option<SessionKey>,
    pub(crate) in_conversation: bool,
    pub(crate) quiet: Option<String>,
    pub(crate) once_if_missed: bool,
}

/// A job for people and programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobView {
    pub(crate) id: i64,
    pub(crate) agent: AgentId,
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) when: String,
    /// Unix milliseconds.
    pub(crate) next: Vec<i64>,
    /// The zone of the schedule, if it has a name.
    pub(crate) zone: Option<String>,
    pub(crate) place: Option<SessionKey>,
    pub(crate) context: JobContext,
    pub(crate) quiet: Option<String>,
    pub(crate) missed: Missed,
    /// The words, or the file that has them.
    pub(crate) task: String,
    pub(crate) maker: Option<String>,
    pub(crate) maker_name: Option<String>,
    pub(crate) is_enabled: bool,
    pub(crate) paused: Option<Paused>,
    pub(crate) failures: u32,
    pub(crate) last: Option<RunRow>,
}

/// The result of a wish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobReply {
    List(Vec<JobView>),
    Shown { job: JobView, runs: Vec<RunRow> },
    Began(JobView),
    Paused(JobView),
    Resumed(JobView),
    Removed(JobView),
    Added(JobView),
}

pub(super) async fn run(
    operations: &Operations,
    actor: &Actor,
    request: JobRequest,
) -> Result<JobReply, Refusal> {
    match request {
        JobRequest::List { agent } => list(operations, agent.as_deref()).await.map(JobReply::List),
        JobRequest::Show { which } => show(operations, &which).await,
        JobRequest::Run { which } => run_now(operations, actor, &which).await,
        JobRequest::Pause { which } => change(operations, actor, &which, JobChange::Pause)
            .await
            .map(JobReply::Paused),
        JobRequest::Resume { which } => change(operations, actor, &which, JobChange::Resume)
            .await
            .map(JobReply::Resumed),
        JobRequest::Remove { which } => change(operations, actor, &which, JobChange::Remove)
            .await
            .map(JobReply::Removed),
        JobRequest::Add(wish) => add(operations, actor, *wish).await.map(JobReply::Added),
    }
}

/// The jobs of an agent, or of all, in the order of agents and names.
async fn list(operations: &Operations, agent: Option<&str>) -> Result<Vec<JobView>, Refusal> {
    let snapshot = operations.snapshot().await?;
    let only = agent.map(|word| found_agent(&snapshot, word)).transpose()?;
    let jobs = all(operations, &snapshot).await?;
    let now = now_ms();
    let mut views: Vec<JobView> = jobs
        .into_iter()
        .filter(|(job, _)| only.as_ref().is_none_or(|agent| job.agent.id == *agent))
        .map(|(job, last)| view(&job, last, now))
        .collect();
    views.sort_by(|one, other| (&one.agent, &one.name).cmp(&(&other.agent, &other.name)));
    Ok(views)
}

/// All jobs with their last run. Jobs that config.toml has and no gateway has seen yet are added.
async fn all(
    operations: &Operations,
    snapshot: &std::sync::Arc<Snapshot>,
) -> Result<Vec<(Job, Option<RunRow>)>, Refusal> {
    follow(operations, snapshot).await?;
    let snapshot = snapshot.clone();
    let read = move |connection: &Connection| {
        let jobs = known_jobs::all(connection, &snapshot)?.into_iter();
        let with_last = jobs.map(|job| {
            let last = jobs::runs(connection, job.row.id, 1)?.into_iter().next();
            Ok((job, last))
        });
        with_last.collect()
    };
    Ok(operations.db.read(read).await?)
}

async fn follow(operations: &Operations, snapshot: &Snapshot) -> Result<(), Refusal> {
    let agents: Vec<_> = snapshot
        .registry
        .all()
        .iter()
        .map(|agent| agent.uid)
        .collect();
    let written = known_jobs::of_config(snapshot);
    let rows = operations.db.read(jobs::all).await?;
    if !jobs::is_config_followed(&rows, &agents, &written) {
        let follow =
            move |tx: &Transaction<'_>| jobs::follow_config(tx, &agents, &written, now_ms());
        operations.db.write(follow).await?;
    }
    Ok(())
}

/// A job as people see it.
pub(crate) fn view(job: &Job, last: Option<RunRow>, now: i64) -> JobView {
    let task = match &job.prompt {
        JobPrompt::Text(text) => text.clone(),
        JobPrompt::File(name) => name.clone(),
        JobPrompt::Heartbeat => job_orders::HEARTBEAT_FILE.to_owned(),
    };
    JobView {
        id: job.row.id,
        agent: job.agent.id.clone(),
        name: job.row.name.to_string(),
        source: job.row.source,
        when: job.timetable.when.in_words(&job.zone),
        next: job.upcoming(now, MOST_TIMES),
        zone: job.zone.name().map(str::to_owned),
        place: job.place.clone(),
        context: job.context,
        quiet: job.timetable.quiet.map(|quiet| quiet.to_string()),
        missed: job.timetable.missed,
        task,
        maker: job.row.maker.as_ref().map(ToString::to_string),
        maker_name: job.row.maker_name.clone(),
        is_enabled: job.is_enabled,
        paused: job.row.paused.clone(),
        failures: job.row.failures,
        last,
    }
}

/// The job that a word means: its number, `agent/name`, or a name that only one agent has.
async fn find(operations: &Operations, which: &str) -> Result<(Job, Option<RunRow>), Refusal> {
    let snapshot = operations.snapshot().await?;
    let jobs = all(operations, &snapshot).await?;
    let called = |job: &Job| {
        let full = format!("{}/{}", job.agent.id, job.row.name);
        which.trim_start_matches('#') == job.row.id.to_string()
            || which == full
            || which == job.row.name.as_str()
    };
    let names: Vec<String> = jobs
        .iter()
        .map(|(job, _)| format!("{}/{}", job.agent.id, job.row.name))
        .collect();
    let mut found: Vec<(Job, Option<RunRow>)> =
        jobs.into_iter().filter(|(job, _)| called(job)).collect();
    if found.len() > 1 {
        let several: Vec<String> = found
            .iter()
            .map(|(job, _)| format!("{}/{}", job.agent.id, job.row.name))
            .collect();
        return Err(
            Refusal::wrong_use(format!("several jobs are called `{which}`"))
                .hint(format!("write one of {}", several.join(", "))),
        );
    }
    found.pop().ok_or_else(|| {
        let refusal = Refusal::wrong_use(format!("no job is called `{which}`"));
        match nearest(which, names.iter().map(String::as_str)) {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal.hint("`parlor job list` shows all jobs"),
        }
    })
}

async fn show(operations: &Operations, which: &str) -> Result<JobReply, Refusal> {
    let (job, last) = find(operations, which).await?;
    let id = job.row.id;
    let runs = operations
        .db
        .read(move |connection| jobs::runs(connection, id, MOST_RUNS))
        .await?;
    Ok(JobReply::Shown {
        job: view(&job, last, now_ms()),
        runs,
    })
}

async fn run_now(operations: &Operations, actor: &Actor, which: &str) -> Result<JobReply, Refusal> {
    let (job, last) = find(operations, which).await?;
    let Some(live) = operations.live.clone() else {
        return Err(
            Refusal::failed("no gateway runs on this home, so nobody can do the job")
                .hint("start it with `parlor run`"),
        );
    };
    let now = now_ms();
    let slot = Slot {
        at: now,
        verdict: Verdict::Run,
        missed_before: 0,
    };
    let mut orders = operations.orders(&[(job.clone(), slot)]).await?;
    let Some(mut order) = orders.pop() else {
        return Err(Refusal::failed("the job cannot be run"));
    };
    order.by_hand = true;
    // What keeps a scheduled run back for a while is told, and nothing is counted as a failure.
    if let Err(Obstacle::Failure(why) | Obstacle::Lasting(why)) = order.task {
        order.task = Err(Obstacle::Passing(why));
    }
    let (by, handled) = (actor.clone(), job.row.handled);
    let write = move |tx: &Transaction<'_>| {
        let now = now_ms();
        let taken = job_orders::take(tx, &order, now)?;
        // The schedule goes on where it was.
        jobs::set_handled(tx, order.job.row.id, handled)?;
        if matches!(taken, Taken::Queued(_)) {
            let change = Change::new(Action::JobRun).of(&order.job.agent.id);
            audit::note(tx, &by, &change.about(&order.job.row.name), now)?;
        }
        Ok(taken)
    };
    match operations.db.write(write).await? {
        Taken::Queued(accepted) => {
            live.sessions.queue_job(*accepted);
            Ok(JobReply::Began(view(&job, last, now)))
        }
        Taken::Skipped(why) | Taken::Kept(why) | Taken::Paused(why) => Err(Refusal {
            kind: RefusalKind::Conflict,
            ..Refusal::failed(format!("the job was not run: {why}"))
        }),
        Taken::Before => Err(Refusal::failed("the job was begun in this very moment")),
    }
}

/// A change of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobChange {
    Pause,
    Resume,
    Remove,
}

/// Writes a change with its entry in the audit. False if there was nothing to change.
pub(crate) fn write_change(
    tx: &Transaction<'_>,
    actor: &Actor,
    (id, agent, name): (i64, &AgentId, &str),
    change: JobChange,
    now: i64,
) -> rusqlite::Result<bool> {
    let (action, is_changed) = match change {
        JobChange::Pause => (Action::JobPause, jobs::pause(tx, id, actor, None, now)?),
        JobChange::Resume => (Action::JobResume, jobs::resume(tx, id, now)?),
        JobChange::Remove => {
            jobs::end(tx, id, now)?;
            (Action::JobRemove, true)
        }
    };
    if is_changed {
        audit::note(tx, actor, &Change::new(action).of(agent).about(name), now)?;
    }
    Ok(is_changed)
}

/// A job of config.toml is removed there.
pub(crate) const IN_CONFIG: &str = "this job is in config.toml; take it out there, or pause it";

async fn change(
    operations: &Operations,
    actor: &Actor,
    which: &str,
    change: JobChange,
) -> Result<JobView, Refusal> {
    let (job, last) = find(operations, which).await?;
    if change == JobChange::Remove && job.row.definition.is_none() {
        return Err(Refusal {
            kind: RefusalKind::Conflict,
            ..Refusal::failed(IN_CONFIG)
        });
    }
    let (by, id) = (actor.clone(), job.row.id);
    let (agent, name) = (job.agent.id.clone(), job.row.name.to_string());
    let write = move |tx: &Transaction<'_>| {
        let is_changed = write_change(tx, &by, (id, &agent, &name), change, now_ms())?;
        Ok((is_changed, jobs::get(tx, id)?))
    };
    let (is_changed, row) = operations.db.write(write).await?;
    if !is_changed {
        let told = match change {
            JobChange::Pause => "the job is paused already",
            _ => "the job is not paused",
        };
        return Err(Refusal {
            kind: RefusalKind::Conflict,
            ..Refusal::failed(told)
        });
    }
    operations.jobs_changed();
    let job = Job {
        row: row.unwrap_or(job.row),
        ..job
    };
    Ok(view(&job, last, now_ms()))
}

impl Operations {
    /// Call after the commit of a change of jobs.
    pub(crate) fn jobs_changed(&self) {
        if let Some(live) = &self.live {
            live.sessions.alarm().changed();
        }
    }
}

fn found_agent(snapshot: &Snapshot, word: &str) -> Result<AgentId, Refusal> {
    match snapshot.registry.find(word) {
        Some(agent) => Ok(agent.id.clone()),
        None => Err(Refusal::wrong_use(format!("no agent is called `{word}`"))
            .hint("`parlor agent list` shows all agents")),
    }
}

async fn add(operations: &Operations, actor: &Actor, wish: JobWish) -> Result<JobView, Refusal> {
    let snapshot = operations.snapshot().await?;
    let id = match &wish.agent {
        Some(word) => found_agent(&snapshot, word)?,
        None => snapshot.config.default_agent.clone(),
    };
    let Some(agent) = snapshot.registry.get(&id).cloned() else {
        return Err(Refusal::failed(format!("there is no agent `{id}`")));
    };
    let zone = match &wish.time_zone {
        Some(name) => Zone::named(name).ok_or_else(|| {
            Refusal::wrong_use(format!("no time zone is called `{name}`"))
                .hint("write a continent and a city, such as Europe/Vienna, or UTC")
        })?,
        None => agent.zone.clone(),
    };
    let job = NewJob {
        agent: agent.uid,
        agent_id: id.clone(),
        name: name(&wish.name)?,
        source: match actor {
            Actor::Person { .. } => Source::Chat,
            _ => Source::Cli,
        },
        definition: definition(&wish, &zone)?,
        place: wish.place,
        maker: match actor {
            Actor::Person { id, name } => Some((id.clone(), name.clone())),
            _ => None,
        },
        is_paused: false,
    };
    let (by, taken) = (actor.clone(), job.name.clone());
    let write = move |tx: &Transaction<'_>| match jobs::insert(tx, &job, &by, now_ms())? {
        Some(id) => jobs::get(tx, id),
        None => Ok(None),
    };
    let Some(row) = operations.db.write(write).await? else {
        return Err(Refusal {
            kind: RefusalKind::Conflict,
            ..Refusal::failed(format!("{id} has a job called `{taken}` already"))
        });
    };
    operations.jobs_changed();
    let known = known_jobs::known(&snapshot, vec![row]);
    let added = known.into_iter().next();
    added
        .map(|job| view(&job, None, now_ms()))
        .ok_or_else(|| Refusal::failed("the job cannot be read"))
}

fn name(text: &str) -> Result<LocalName, Refusal> {
    let name: Result<LocalName, ()> = text.parse();
    name.ok()
        .filter(|name| name.as_str() != crate::config::HEARTBEAT)
        .ok_or_else(|| {
            Refusal::wrong_use(format!("`{text}` cannot be the name of a job"))
                .hint("use small letters, digits, `-` and `_`, such as morning-plan")
        })
}

fn definition(wish: &JobWish, zone: &Zone) -> Result<Definition, Refusal> {
    if wish.prompt.trim().is_empty() {
        return Err(Refusal::wrong_use("the job has nothing to do"));
    }
    if wish.in_conversation && wish.place.is_none() {
        return Err(Refusal::wrong_use(
            "without a place there is no conversation to be part of",
        ));
    }
    let quiet: Option<Hours> = match &wish.quiet {
        Some(text) => Some(text.parse().map_err(|()| {
            Refusal::wrong_use(format!("`{text}` is not a part of the day"))
                .hint("write 22:00-07:00")
        })?),
        None => None,
    };
    let missed = match wish.once_if_missed {
        true => Missed::Once,
        false => Missed::Skip,
    };
    Ok(Definition {
        timetable: Timetable {
            quiet,
            missed,
            ..Timetable::new(when(wish, zone)?)
        },
        zone: zone.name().map(str::to_owned),
        prompt: wish.prompt.trim().to_owned(),
        context: match wish.in_conversation {
            true => JobContext::Place,
            false => JobContext::Own,
        },
        read: 0,
    })
}

fn when(wish: &JobWish, zone: &Zone) -> Result<When, Refusal> {
    match (&wish.cron, &wish.every, &wish.at) {
        (Some(text), None, None) => {
            let cron = Cron::parse(text).map_err(|error| {
                Refusal::wrong_use(format!("`{text}` is not a cron expression: {error}"))
                    .hint("write minute, hour, day, month and weekday, such as '0 9 * * 1-5'")
            })?;
            Ok(When::Cron {
                cron,
                zone: zone.clone(),
            })
        }
        (None, Some(text), None) => {
            let ms = parse_span(text).filter(|ms| *ms >= SHORTEST_STEP_MS);
            let ms = ms.ok_or_else(|| {
                Refusal::wrong_use(format!("`{text}` is not a length of time of 10s or more"))
                    .hint("write 30m, 2h or 1d")
            })?;
            Ok(When::Every { ms, from: now_ms() })
        }
        (None, None, Some(text)) => {
            let at = parse_moment(text, zone).ok_or_else(|| {
                Refusal::wrong_use(format!("`{text}` is not a date and a time"))
                    .hint("write '2026-12-24 18:00'")
            })?;
            match at > now_ms() {
                true => Ok(When::At(at)),
                false => Err(Refusal::wrong_use(format!("`{text}` is over"))),
            }
        }
        _ => Err(Refusal::wrong_use(
            "say exactly one of --cron, --every and --at",
        )),
    }
}
