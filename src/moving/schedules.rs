//! Schedules of other systems, as jobs. All jobs come at rest, so that none acts before the
//! operator has looked.

use serde_json::Value;

use super::System;
use super::found::{Content, Found, FoundAgent};
use super::plan;
use super::report::Kind;
use super::source::Source;
use crate::clock::now_ms;
use crate::config::JobKeys;
use crate::domain::Zone;
use crate::jobs::{Cron, Timetable, When, parse_moment, parse_span};
use crate::records::jobs::plain_name;

/// The shortest step of a job.
const SHORTEST_STEP_MS: i64 = 10_000;

/// Makes jobs of the schedules of every agent. A schedule without a fitting job is kept as a file.
pub(super) fn carry(source: &Source, found: &mut Found, system: System) {
    for agent in &mut found.agents {
        let mut left = Vec::new();
        for schedule in std::mem::take(&mut agent.schedules) {
            let name = ["name", "id", "job_id"]
                .iter()
                .find_map(|key| schedule.get(key)?.as_str())
                .unwrap_or("a schedule")
                .to_owned();
            let what = format!("{}: {name}", agent.source_id);
            match job(&schedule, &free_name(agent, &name)) {
                Ok(keys) => {
                    let why = format!(
                        "it comes as the job `{}`, at rest: look at it, then give it a place and `enabled = true`",
                        keys.name()
                    );
                    agent.table.jobs.push(keys);
                    source.manual(Kind::Schedule, what, why);
                }
                Err(why) => {
                    let path = plan::beside(system).join("schedules.json");
                    let why = format!("{why}; it is kept in {}", path.display());
                    source.left(Kind::Schedule, what, why);
                    left.push(schedule);
                }
            }
        }
        if !left.is_empty() {
            let path = plan::beside(system).join("schedules.json");
            let text = serde_json::to_string_pretty(&left).unwrap_or_default();
            agent.add_file(Kind::File, path, Content::Text(text + "\n"));
        }
    }
}

fn free_name(agent: &FoundAgent, wanted: &str) -> String {
    let plain = plain_name(wanted);
    let is_free = |name: &str| agent.table.jobs.iter().all(|job| job.name() != name);
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let mut names = std::iter::once(plain.clone()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or(plain)
}

/// The job behind a schedule, or why there is none.
fn job(schedule: &Value, name: &str) -> Result<JobKeys, &'static str> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let kind = schedule["payload"]["kind"].as_str().unwrap_or_default();
    let runs_a_program = matches!(kind, "command" | "script")
        || schedule["job_type"] == "shell"
        || schedule["no_agent"] == true
        || schedule["script"]
            .as_str()
            .is_some_and(|script| !script.is_empty());
    if runs_a_program {
        return Err("it runs a program, and a job gives a task to an agent");
    }
    let prompt = [
        &schedule["payload"]["message"],
        &schedule["payload"]["text"],
        &schedule["payload_message"],
        &schedule["prompt"],
    ];
    let prompt = prompt.into_iter().find_map(text);
    let prompt = prompt.filter(|prompt| !prompt.trim().is_empty());
    let prompt = prompt.ok_or("it has no task in words")?;
    let (when, zone) = when(schedule)?;
    Ok(JobKeys::of(
        name,
        &Timetable::new(when),
        zone.as_deref(),
        prompt.trim(),
    ))
}

/// The times of a schedule, in any of the forms, and its zone.
fn when(schedule: &Value) -> Result<(When, Option<String>), &'static str> {
    let inner = match &schedule["schedule"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        inner => inner.clone(),
    };
    let first = |keys: &[&str]| {
        let inside = keys.iter().map(|key| &inner[*key]);
        let beside = keys.iter().map(|key| &schedule[*key]);
        inside.chain(beside).find(|value| !value.is_null()).cloned()
    };
    let expression = first(&["expr", "schedule_expr", "cron_expression", "expression"]);
    let zone = first(&["tz", "schedule_tz"]).and_then(|zone| zone.as_str().map(str::to_owned));
    let zone = zone.filter(|zone| !zone.is_empty());
    let rules = match &zone {
        Some(name) => Zone::named(name).ok_or("its time zone is not known here")?,
        None => Zone::default(),
    };
    if let Some(expression) = expression.as_ref().and_then(Value::as_str) {
        let cron = Cron::parse(expression).map_err(|_| "its cron expression is not known here")?;
        return Ok((When::Cron { cron, zone: rules }, zone));
    }
    let step = first(&["everyMs", "every_ms"]).and_then(|ms| number(&ms));
    let minutes = first(&["minutes"]).and_then(|minutes| number(&minutes));
    if let Some(ms) = step.or_else(|| minutes?.checked_mul(60_000)) {
        return match ms >= SHORTEST_STEP_MS {
            true => Ok((When::Every { ms, from: 0 }, zone)),
            false => Err("it comes more often than every 10 seconds"),
        };
    }
    let moment = first(&["at_ms"]).and_then(|ms| number(&ms));
    let written = first(&["at", "run_at"]);
    let written = written.and_then(|at| match &at {
        Value::String(text) => parse_moment(text, &rules),
        at => number(at),
    });
    match moment.or(written) {
        Some(at) if at > now_ms() => Ok((When::At(at), zone)),
        Some(_) => Err("its time is over"),
        None => Err("its times are of a kind that is not known here"),
    }
}

fn number(value: &Value) -> Option<i64> {
    let text = || {
        value
            .as_str()
            .and_then(|text| text.parse().ok().or_else(|| parse_span(text)))
    };
    value.as_i64().or_else(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schedules_of_all_systems_become_jobs() {
        let check = |schedule: Value, expected: Result<&str, &str>| {
            let made = when(&schedule).map(|(when, _)| when.in_words(&Zone::default()));
            assert_eq!(made.as_deref().map_err(|why| *why), expected, "{schedule}");
        };
        check(
            json!({ "schedule": { "kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Vienna" } }),
            Ok("0 9 * * 1-5 (Europe/Vienna)"),
        );
        check(
            json!({ "schedule": { "kind": "every", "everyMs": 1_800_000 } }),
            Ok("every 30m"),
        );
        check(
            json!({ "schedule": "{\"kind\":\"every\",\"every_ms\":60000}" }),
            Ok("every 1m"),
        );
        check(
            json!({ "schedule": { "kind": "interval", "minutes": 90 } }),
            Ok("every 1h 30m"),
        );
        check(json!({ "cron_expression": "@daily" }), Ok("@daily"));
        check(
            json!({ "schedule_kind": "every", "every_ms": "120000" }),
            Ok("every 2m"),
        );
        check(
            json!({ "schedule": { "kind": "at", "at": "2020-01-01T00:00:00Z" } }),
            Err("its time is over"),
        );
        check(
            json!({ "schedule": { "kind": "every", "everyMs": 10 } }),
            Err("it comes more often than every 10 seconds"),
        );
        check(
            json!({ "schedule": { "kind": "on-exit" } }),
            Err("its times are of a kind that is not known here"),
        );
        check(
            json!({ "schedule": { "kind": "cron", "expr": "soon" } }),
            Err("its cron expression is not known here"),
        );
    }

    #[test]
    fn a_schedule_that_runs_a_program_is_left() {
        let schedule =
            json!({ "schedule": { "expr": "@daily" }, "prompt": "x", "job_type": "shell" });
        assert!(job(&schedule, "x").is_err());
        let schedule = json!({ "schedule": { "expr": "@daily" } });
        assert_eq!(job(&schedule, "x").unwrap_err(), "it has no task in words");
    }
}
