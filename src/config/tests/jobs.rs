//! Jobs and heartbeats in the file.

use super::{config, report};
use crate::config::JobPrompt;
use crate::jobs::{JobContext, Missed, When};

fn job(keys: &str) -> String {
    report(&format!("[[agents.rose.jobs]]\n{keys}"))
}

/// S4.26
#[test]
fn jobs_belong_to_the_agent_of_their_table() {
    let config = config(
        r#"
[agents.rose]
time_zone = "Europe/Vienna"
[[agents.rose.jobs]]
name = "plan"
cron = "0 9 * * 1-5"
prompt = "Plan the day."
place = "telegram:topic:-100:7"
context = "place"
missed = "once"
[[agents.rose.jobs]]
name = "tidy"
every = "2h"
jitter = "5m"
prompt_file = "jobs/tidy.md"
enabled = false
[agents.rose.heartbeat]
every = "30m"
hours = "8-22"
"#,
    );
    let rose = &config.agents[1];
    let [plan, tidy, heartbeat] = rose.jobs.as_slice() else {
        panic!("three jobs: {:?}", rose.jobs)
    };
    assert!(config.agents[0].jobs.is_empty());
    assert_eq!(
        (plan.context, plan.timetable.missed),
        (JobContext::Place, Missed::Once)
    );
    assert_eq!(plan.zone.name(), Some("Europe/Vienna"));
    assert_eq!(tidy.prompt, JobPrompt::File("jobs/tidy.md".into()));
    assert_eq!((tidy.enabled, tidy.timetable.jitter_ms), (false, 300_000));
    assert_eq!(
        heartbeat.timetable.when,
        When::Every {
            ms: 1_800_000,
            from: 0
        }
    );
    let quiet = heartbeat.timetable.quiet.map(|quiet| quiet.to_string());
    assert_eq!(quiet.as_deref(), Some("22:00-08:00"));
}

/// Every one of these sentences is in the report.
fn says(report: &str, sentences: &[&str]) {
    for sentence in sentences {
        assert!(report.contains(sentence), "{sentence}: {report}");
    }
}

#[test]
fn a_job_says_when_and_what() {
    says(
        &job("name = \"plan\"\n"),
        &[
            "the job does not say when it runs",
            "the job does not say what to do",
        ],
    );
    let both = "name = \"plan\"\nevery = \"1h\"\nat = \"2026-12-24 18:00\"\nprompt = \"x\"\nprompt_file = \"y\"\n";
    says(
        &job(both),
        &[
            "the job says more than once when it runs",
            "the job has two tasks",
        ],
    );
}

#[test]
fn wrong_times_are_told_with_the_right_form() {
    says(
        &job("name = \"Plan B\"\ncron = \"0 25 * * *\"\nprompt = \"x\"\n"),
        &[
            "`Plan B` cannot be the name of a job",
            "`0 25 * * *` is not a cron expression",
        ],
    );
    says(
        &job("name = \"plan\"\ncron = \"0 0 31 2 *\"\nprompt = \"x\"\n"),
        &["the job would never run"],
    );
    says(
        &job("name = \"plan\"\nevery = \"2s\"\nprompt = \" \"\nquiet = \"night\"\n"),
        &[
            "`every` is too short",
            "`prompt` is empty",
            "`night` is not a part of the day",
        ],
    );
    says(
        &job("name = \"plan\"\nat = \"tomorrow\"\nprompt_file = \"../x\"\nplace = \"here\"\n"),
        &[
            "`tomorrow` is not a date and a time",
            "`prompt_file` is not a file of the agent's folder",
            "`here` is not the key of a place",
        ],
    );
}

#[test]
fn a_context_needs_a_place_and_names_differ() {
    says(
        &job(
            "name = \"plan\"\nevery = \"1h\"\njitter = \"2h\"\nprompt = \"x\"\ncontext = \"place\"\n",
        ),
        &[
            "`jitter` is too long",
            "`context = \"place\"` needs a place",
        ],
    );
    let twice = "[[agents.rose.jobs]]\nname = \"plan\"\nevery = \"1h\"\nprompt = \"x\"\n".repeat(2);
    says(&report(&twice), &["two jobs are called `plan`"]);
    says(
        &report("[agents.rose.heartbeat]\nevery = \"10s\"\n"),
        &["`every` is too short"],
    );
    says(
        &job("name = \"heartbeat\"\nevery = \"1h\"\nprompt = \"x\"\n"),
        &["a job cannot be called `heartbeat`"],
    );
}

/// The field that is wrong is named, with values that are right.
#[test]
fn a_wrong_field_of_a_cron_expression_is_named() {
    let told = |cron: &str| {
        let told = job(&format!(
            "name = \"a\"\ncron = \"{cron}\"\nprompt = \"b\"\n"
        ));
        let label = told.lines().find(|line| line.contains("^^"));
        let label = label.and_then(|line| line.split_once("^ "));
        label.map(|(_, label)| label.to_owned()).unwrap_or(told)
    };
    let all = [
        "61 * * * *",
        "0 25 * * *",
        "0 9 32 * *",
        "0 9 * 13 *",
        "0 9 * * 8",
        "x * * * *",
        "0 9 * * MONDAY",
        "*/0 * * * *",
        "0 9 5-1 * *",
        "@dayly",
        "0 9 * *",
    ];
    insta::assert_snapshot!(all.map(|cron| format!("{cron}: {}", told(cron))).join("\n"), @"
    61 * * * *: `61` is no minute: 0 to 59, such as `0`, `0,30` or `*/15`
    0 25 * * *: `25` is no hour: 0 to 23, such as `9`, `8-17` or `*/2`
    0 9 32 * *: `32` is no day of the month: 1 to 31, or L for the last, such as `1`, `1,15` or `L`
    0 9 * 13 *: `13` is no month: 1 to 12, or JAN to DEC, such as `6`, `1-3` or `JAN`
    0 9 * * 8: `8` is no weekday: 0 to 7 (0 and 7 are Sunday), or SUN to SAT, such as `1-5` or `MON`
    x * * * *: `x` is no minute: 0 to 59, such as `0`, `0,30` or `*/15`
    0 9 * * MONDAY: `MONDAY` is no weekday: 0 to 7 (0 and 7 are Sunday), or SUN to SAT, such as `1-5` or `MON`
    */0 * * * *: `*/0` is no minute: 0 to 59, such as `0`, `0,30` or `*/15`
    0 9 5-1 * *: `5-1` is no day of the month: 1 to 31, or L for the last, such as `1`, `1,15` or `L`
    @dayly: the words are @hourly, @daily, @weekly, @monthly and @yearly
    0 9 * *: it has 4 fields, and a job has five: minute, hour, day, month, weekday
    ");
}
