//! `parlor job …`: the jobs of agents, their runs, and what can be done with them.

use clap::{Args, Subcommand};

use super::json::{Named, moment};
use super::names::Names;
use super::operator::{self, odd_reply};
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, meant_place, note, print};
use crate::config::Secrets;
use crate::home::{CheckedConfig, Home};
use crate::operations::job_lines::{JobDetails, JobLine};
use crate::operations::jobs::{JobView, JobWish};
use crate::operations::{JobReply, JobRequest, Reply, Request};
use crate::records::jobs::{RunRow, State};
use crate::storage::Db;

/// Without a verb, jobs are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List jobs with their next time and their last run
    #[command(visible_alias = "ls")]
    List {
        /// Only jobs of this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
    },
    /// Show a job with its next times and its latest runs
    Show(Which),
    /// Run a job now, whatever its schedule says
    Run(Which),
    /// Have a job rest
    Pause(Which),
    /// Have a job go on with its next time
    Resume(Which),
    /// Add a job; jobs can be in config.toml too
    Add(Add),
    /// Remove a job that is not in config.toml
    #[command(visible_alias = "rm")]
    Remove(Which),
}

#[derive(Args)]
struct Which {
    /// Number, AGENT/NAME, or a name that only one agent has
    #[arg(value_name = "JOB")]
    job: String,
}

#[derive(Args)]
struct Add {
    /// Name: small letters, digits, - and _
    name: String,
    /// What to do, in words for the agent
    task: String,
    /// Agent that does it [default: the default agent]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Minute, hour, day, month, weekday: '0 9 * * 1-5'
    #[arg(long, value_name = "CRON", group = "when")]
    cron: Option<String>,
    /// Again and again: 30m, 2h, 1d
    #[arg(long, value_name = "TIME", group = "when")]
    every: Option<String>,
    /// Once: '2026-12-24 18:00'
    #[arg(long, value_name = "WHEN", group = "when")]
    at: Option<String>,
    /// Zone of the times, such as Europe/Vienna [default: the agent's]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Place of the agent that gets the answer [default: nobody]
    #[arg(long, value_name = "PLACE")]
    place: Option<String>,
    /// Make the turns part of the conversation in the place
    #[arg(long, requires = "place")]
    in_conversation: bool,
    /// No run between these times of day: 22:00-07:00
    #[arg(long, value_name = "HOURS")]
    quiet_hours: Option<String>,
    /// Run once, late, for all runs that were missed
    #[arg(long)]
    once_if_missed: bool,
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let request = match verb.unwrap_or(Verb::List { agent: None }) {
        Verb::List { agent } => JobRequest::List { agent },
        Verb::Show(Which { job }) => JobRequest::Show { which: job },
        Verb::Run(Which { job }) => JobRequest::Run { which: job },
        Verb::Pause(Which { job }) => JobRequest::Pause { which: job },
        Verb::Resume(Which { job }) => JobRequest::Resume { which: job },
        Verb::Remove(Which { job }) => JobRequest::Remove { which: job },
        Verb::Add(add) => JobRequest::Add(Box::new(wish(&home, add).await?)),
    };
    let Reply::Job(reply) = operator::ask(&home, Request::Job(request)).await? else {
        return Err(odd_reply());
    };
    let config = CheckedConfig::load(&home, Secrets::WherePresent).ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let names = Names::load(&Db::open(&home.database()).await?, config).await?;
    match *reply {
        JobReply::List(jobs) => list(&jobs, &names, json),
        JobReply::Shown { job, runs } => show(&job, &runs, &names, json),
        JobReply::Began(job) => told(&job, &names, json, "has begun"),
        JobReply::Paused(job) => told(&job, &names, json, "is paused"),
        JobReply::Resumed(job) => told(&job, &names, json, &format!("goes on{}", with_next(&job))),
        JobReply::Removed(job) => told(&job, &names, json, "is removed"),
        JobReply::Added(job) => told(&job, &names, json, &format!("is added{}", with_next(&job))),
    }
}

async fn wish(home: &Home, add: Add) -> Result<JobWish, Failure> {
    Ok(JobWish {
        agent: add.agent,
        name: add.name,
        cron: add.cron,
        every: add.every,
        at: add.at,
        time_zone: add.time_zone,
        prompt: add.task,
        place: meant_place::place_if_any(home, add.place.as_deref()).await?,
        in_conversation: add.in_conversation,
        quiet: add.quiet_hours,
        once_if_missed: add.once_if_missed,
    })
}

fn list(jobs: &[JobView], names: &Names, json: bool) -> Outcome {
    if json {
        let listed: Vec<JobLine> = jobs.iter().map(|job| JobLine::of(job, names)).collect();
        return data_json(&listed);
    }
    if jobs.is_empty() {
        data(format_args!("There are no jobs."));
        note(format_args!(
            "`parlor job add` makes one, a [[agents.<id>.jobs]] in config.toml does too, and people can ask an agent for one."
        ));
        return Ok(());
    }
    let columns = [
        Column::Number("ID"),
        Column::Words("JOB"),
        Column::Words("WHEN"),
        Column::Words("NEXT"),
        Column::Words("PLACE"),
        Column::Words("LAST RUN"),
    ];
    let cells = jobs.iter().map(|job| {
        [
            job.id.to_string(),
            format!("{}/{}", job.agent, job.name),
            job.when.clone(),
            state(job),
            place(job, names),
            job.last.as_ref().map_or_else(|| "never".to_owned(), last),
        ]
    });
    data(format_args!("{}", table(columns, cells.collect())));
    Ok(())
}

/// The next time, or why there is none.
fn state(job: &JobView) -> String {
    match (&job.paused, job.next.first()) {
        (Some(_), _) => "paused".to_owned(),
        (None, _) if !job.is_enabled => "off".to_owned(),
        (None, Some(next)) => moment(*next),
        (None, None) => "over".to_owned(),
    }
}

fn place(job: &JobView, names: &Names) -> String {
    let named = job.place.as_ref().map(|place| names.place(place).text());
    named.unwrap_or_else(|| "nowhere".to_owned())
}

fn last(run: &RunRow) -> String {
    let reason = run.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{} {}{reason}", moment(run.at), in_words(run.state))
}

fn in_words(state: State) -> &'static str {
    match state {
        State::Queued => "under way",
        State::Nothing => "nothing to say",
        State::Refused => "at a limit",
        State::Undelivered => "not delivered",
        state => state.as_str(),
    }
}

fn show(job: &JobView, runs: &[RunRow], names: &Names, json: bool) -> Outcome {
    if json {
        return data_json(&JobDetails::of(job, runs, names));
    }
    let next: Vec<String> = job.next.iter().map(|at| moment(*at)).collect();
    let maker = match (&job.maker_name, &job.maker) {
        (Some(name), Some(id)) => Named::new(id, Some(name)).text(),
        _ => "the operator".to_owned(),
    };
    let mut lines = vec![
        format!("{}/{} (#{})", job.agent, job.name, job.id),
        format!("  when      {}", job.when),
        format!(
            "  next      {}",
            if next.is_empty() {
                state(job)
            } else {
                next.join(", ")
            }
        ),
        format!("  place     {}", place(job, names)),
        format!("  context   {}", job.context),
        format!("  missed    {}", job.missed),
    ];
    lines.extend(
        job.quiet
            .as_ref()
            .map(|quiet| format!("  quiet     {quiet}")),
    );
    lines.push(format!("  made by   {maker}, {}", job.source.as_str()));
    let why = job.paused.as_ref().and_then(|paused| paused.why.as_ref());
    lines.extend(why.map(|why| format!("  paused    {why}")));
    lines.push(format!(
        "  task      {}",
        job.task.lines().next().unwrap_or_default()
    ));
    lines.push("  runs".to_owned());
    lines.extend(
        runs.iter()
            .map(|run| format!("    {}{}", last(run), missed(run))),
    );
    if runs.is_empty() {
        lines.push("    none yet".to_owned());
    }
    data(format_args!("{}", lines.join("\n")));
    Ok(())
}

fn missed(run: &RunRow) -> String {
    match run.missed {
        0 => String::new(),
        1 => " (and 1 missed before)".to_owned(),
        count => format!(" (and {count} missed before)"),
    }
}

fn with_next(job: &JobView) -> String {
    let next: Vec<String> = job.next.iter().map(|at| moment(*at)).collect();
    match next.is_empty() {
        true => String::new(),
        false => format!(". Next: {}", next.join(", ")),
    }
}

fn told(job: &JobView, names: &Names, json: bool, what: &str) -> Outcome {
    let line = format!("The job {}/{} {what}.", job.agent, job.name);
    print::result(json, &JobLine::of(job, names), format_args!("{line}"))
}
