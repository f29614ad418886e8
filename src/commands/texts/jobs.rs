//! `/jobs`.

use crate::domain::Zone;
use crate::operations::jobs::{JobChange, JobView};
use crate::records::jobs::State;

pub(crate) const MEMBERS_ONLY: &str = "Jobs are for members.";
pub(crate) const NOT_YOURS: &str =
    "That job is somebody else's. Its maker and admins can change it.";
pub(crate) const PAUSED_ALREADY: &str = "That job is paused already.";
pub(crate) const NOT_PAUSED: &str = "That job isn't paused.";
pub(crate) const IN_CONFIG: &str =
    "That job is in config.toml, and only the operator takes it out there. You can pause it.";
pub(crate) const USAGE: &str = "Write `/jobs` to see the jobs here, or `/jobs pause 3`, `/jobs resume 3` or `/jobs remove 3` with the number of one.";

pub(crate) fn no_such_job(which: &str) -> String {
    format!("There is no job {which} here. `/jobs` lists them with their numbers.")
}

pub(crate) fn list(label: &str, lines: &[String], count: usize) -> String {
    if lines.is_empty() {
        return format!(
            "{label} has no jobs here. Ask for one in your own words, such as “remind me tomorrow at nine”."
        );
    }
    let more = match count - lines.len() {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    format!("Jobs of {label}:\n{}{more}", lines.join("\n"))
}

/// A job in one line.
pub(crate) fn line(job: &JobView, zone: &Zone, is_here: bool) -> String {
    let state = match (&job.paused, job.next.first()) {
        (Some(paused), _) => match &paused.why {
            Some(why) => format!("paused: {why}"),
            None => "paused".to_owned(),
        },
        (None, _) if !job.is_enabled => "off".to_owned(),
        (None, Some(next)) => format!("next {}", zone.at(*next).format("%a %-d %b %H:%M")),
        (None, None) => "over".to_owned(),
    };
    let elsewhere = match (&job.place, is_here) {
        (_, true) => String::new(),
        (Some(place), false) => format!(", in `{place}`"),
        (None, false) => ", tells nobody".to_owned(),
    };
    let failed = match &job.last {
        Some(run) if matches!(run.state, State::Failed | State::Undelivered) => ", failed last",
        _ => "",
    };
    format!(
        "#{} **{}** · {} · {state}{elsewhere}{failed}",
        job.id, job.name, job.when
    )
}

pub(crate) fn changed(change: JobChange, name: &str) -> String {
    match change {
        JobChange::Pause => format!("The job {name} is paused."),
        JobChange::Resume => format!("The job {name} goes on with its next time."),
        JobChange::Remove => format!("The job {name} is removed."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AgentId;
    use crate::jobs::{JobContext, Missed};
    use crate::records::jobs::{Paused, Source};

    fn job() -> JobView {
        JobView {
            id: 3,
            agent: AgentId::main(),
            name: "tea".into(),
            source: Source::Chat,
            when: "0 9 * * 1-5 (Europe/Vienna)".into(),
            next: vec![1_795_075_200_000],
            zone: Some("Europe/Vienna".into()),
            place: "telegram:topic:-100:7".parse().ok(),
            context: JobContext::Place,
            quiet: None,
            missed: Missed::Once,
            task: "Tea.".into(),
            maker: None,
            maker_name: None,
            is_enabled: true,
            paused: None,
            failures: 0,
            last: None,
        }
    }

    #[test]
    fn jobs_are_listed_with_number_time_and_state() {
        let zone = Zone::named("Europe/Vienna").unwrap();
        let paused = JobView {
            paused: Some(Paused {
                at: 0,
                by: "gateway".into(),
                why: Some("it failed 5 times in a row".into()),
            }),
            ..job()
        };
        let lines = [line(&job(), &zone, true), line(&paused, &zone, false)];
        insta::assert_snapshot!(list("Rose", &lines, 3), @"
        Jobs of Rose:
        #3 **tea** · 0 9 * * 1-5 (Europe/Vienna) · next Thu 19 Nov 09:00
        #3 **tea** · 0 9 * * 1-5 (Europe/Vienna) · paused: it failed 5 times in a row, in `telegram:topic:-100:7`
        and 1 more
        ");
        insta::assert_snapshot!(list("Rose", &[], 0), @"Rose has no jobs here. Ask for one in your own words, such as “remind me tomorrow at nine”.");
    }
}
