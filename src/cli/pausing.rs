//! `parlor pause` and `parlor resume`: the switch for work that nobody waits for. Works while the
//! gateway runs.

use clap::Args;
use serde_json::json;

use super::actor::actor;
use super::{Failure, Outcome, database, operator, print};
use crate::clock::now_ms;
use crate::home::Home;
use crate::operations::{JobReply, JobRequest, Reply, Request};
use crate::records::pauses::{self, Work};

#[derive(Args)]
pub(super) struct Arguments {
    /// background: summaries, subagents that report later, and jobs
    #[arg(value_name = "WHAT")]
    what: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn work(&self) -> Result<Work, Failure> {
        let what = &self.what;
        Work::parse(what).ok_or_else(|| {
            Failure::WrongUse(format!("{what} has no switch here; `background` has one"))
                .hint(format!("`parlor agent pause {what}` pauses an agent of that name, `parlor agent resume {what}` lets it go on"))
        })
    }
}

pub(super) async fn pause(home: Home, arguments: Arguments) -> Outcome {
    let (work, json) = (arguments.work()?, arguments.json);
    let db = database::open(&home.database()).await?;
    let paused = db.write(move |tx| pauses::pause(tx, work, &actor(), now_ms()));
    let told = match paused.await? {
        true => self::told(jobs_ahead(&home).await),
        false => "Background work is paused already.".to_owned(),
    };
    tell(json, work, true, &told)
}

pub(super) async fn resume(home: Home, arguments: Arguments) -> Outcome {
    let (work, json) = (arguments.work()?, arguments.json);
    let db = database::open(&home.database()).await?;
    let resumed = db.write(move |tx| pauses::resume(tx, work, &actor(), now_ms()));
    let told = match resumed.await? {
        true => "Background work goes on, and jobs that waited for it run within a minute.",
        false => "Background work was not paused.",
    };
    tell(json, work, false, told)
}

fn tell(json: bool, work: Work, is_paused: bool, told: &str) -> Outcome {
    let result = json!({ "what": work.as_str(), "paused": is_paused });
    print::result(json, &result, format_args!("{told}"))
}

/// The number of jobs with a time ahead. None where they cannot be read.
async fn jobs_ahead(home: &Home) -> Option<usize> {
    let request = Request::Job(JobRequest::List { agent: None });
    let Ok(Reply::Job(reply)) = operator::ask(home, request).await else {
        return None;
    };
    let JobReply::List(jobs) = *reply else {
        return None;
    };
    Some(jobs.iter().filter(|job| !job.next.is_empty()).count())
}

fn told(jobs: Option<usize>) -> String {
    let rest = match jobs {
        None | Some(0) => "jobs rest".to_owned(),
        Some(1) => "the one job of the house rests".to_owned(),
        Some(jobs) => format!("the {jobs} jobs of the house rest"),
    };
    format!(
        "Background work is paused: no summaries, no subagents that nobody waits for, and {rest}.\nJobs that come once, such as reminders, run after the pause; others skip their times.\nPeople are answered as before. {} lets it go on.",
        print::to_type("`parlor resume background`")
    )
}
