//! Reads `[[agents.<id>.jobs]]` and `[agents.<id>.heartbeat]`.

use std::ops::Range;

use super::personality::inside;
use super::reader::Section;
use super::{Problem, Spanned, agents, odd_characters, schema};
use crate::domain::{LocalName, SessionKey, Zone};
use crate::jobs::{
    Cron, Hours, InvalidCron, JobContext, Timetable, When, parse_moment, parse_span,
};

/// The shortest time between two runs of a job.
const SHORTEST_STEP_MS: i64 = 10_000;
/// A job's delay is at most this long.
const LONGEST_JITTER_MS: i64 = 24 * 3_600_000;
/// The longest prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 32 * 1024;
/// The name of a heartbeat's job.
pub const HEARTBEAT: &str = "heartbeat";

/// A job of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    pub name: LocalName,
    pub timetable: Timetable,
    /// The zone of the schedule and of quiet hours.
    pub zone: Zone,
    pub prompt: JobPrompt,
    /// Where the answer goes. None: nowhere.
    pub place: Option<SessionKey>,
    pub context: JobContext,
    pub enabled: bool,
}

/// The task of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobPrompt {
    Text(String),
    /// A file, seen from the agent's folder. Read at each run.
    File(String),
    /// HEARTBEAT.md of the agent's folder, with the question whether anything is to be done.
    Heartbeat,
}

pub(super) fn read(section: &Section<'_>, agents_zone: &Zone) -> Vec<JobSpec> {
    let mut jobs: Vec<JobSpec> = Vec::new();
    for item in section.items("jobs") {
        let span = item.name.span.clone();
        let Some(table) = item.section(&schema::JOB) else {
            continue;
        };
        let Some(job) = job(&table, span, agents_zone) else {
            continue;
        };
        if jobs.iter().any(|other| other.name == job.value.name) {
            let problem = Problem::new(
                job.span,
                format!("two jobs are called `{}`", job.value.name),
            )
            .label("the second one")
            .help("give each job of an agent its own name");
            section.problems.note(problem);
        } else {
            jobs.push(job.value);
        }
    }
    jobs.extend(heartbeat(section, agents_zone));
    jobs
}

/// The job, with the place of its name. Broken values are noted and left out; a config with a
/// problem is never used.
fn job(table: &Section<'_>, span: Range<usize>, agents_zone: &Zone) -> Option<Spanned<JobSpec>> {
    let name = name(table);
    let zone = agents::zone(table).unwrap_or_else(|| agents_zone.clone());
    let when = when(table, &span, &zone);
    let prompt = prompt(table, &span);
    let quiet = hours(table, "quiet");
    let missed = table.choice("missed").unwrap_or_default();
    let jitter_ms = jitter(table, when.as_ref());
    let place = place(table);
    let context = context(table, place.as_ref());
    let enabled = table.boolean("enabled").unwrap_or(true);
    let name = name?;
    Some(Spanned {
        span: name.span,
        value: JobSpec {
            name: name.value,
            timetable: Timetable {
                when: when?,
                quiet,
                missed,
                jitter_ms,
            },
            zone,
            prompt: prompt?,
            place,
            context,
            enabled,
        },
    })
}

fn name(table: &Section<'_>) -> Option<Spanned<LocalName>> {
    let text = table.text("name")?;
    let problem = match text.value.parse::<LocalName>() {
        Ok(name) if name.as_str() == HEARTBEAT => {
            Problem::new(text.span, "a job cannot be called `heartbeat`")
                .label("the name of the job that [agents.<id>.heartbeat] makes")
                .help("choose another name")
        }
        Ok(value) => {
            return Some(Spanned {
                value,
                span: text.span,
            });
        }
        Err(()) => Problem::new(
            text.span,
            format!("`{}` cannot be the name of a job", text.value),
        )
        .label("small letters, digits, `-` and `_`")
        .help(format!("write it like `{}`", table.usage("name"))),
    };
    table.problems.note(problem);
    None
}

/// Reads `cron`, `every` or `at`. A job has exactly one of the three.
fn when(table: &Section<'_>, span: &Range<usize>, zone: &Zone) -> Option<When> {
    let (cron, every, at) = (table.text("cron"), table.text("every"), table.text("at"));
    let written = ["cron", "every", "at"].map(|key| table.value(key).is_some());
    match written.iter().filter(|is_written| **is_written).count() {
        1 => {}
        0 => {
            let problem = Problem::new(span.clone(), "the job does not say when it runs")
                .label("one of `cron`, `every` and `at` is needed")
                .help(format!(
                    "add a line such as `{}`, `{}` or `{}`",
                    table.usage("cron"),
                    table.usage("every"),
                    table.usage("at")
                ));
            table.problems.note(problem);
        }
        _ => {
            let problem = Problem::new(span.clone(), "the job says more than once when it runs")
                .label("`cron`, `every` and `at` are three ways to say it")
                .help("keep one of them, or write a job for each");
            table.problems.note(problem);
            return None;
        }
    }
    if let Some(text) = cron {
        return self::cron(table, &text, zone);
    }
    if let Some(text) = every {
        return step(table, "every", &text, SHORTEST_STEP_MS).map(|ms| When::Every { ms, from: 0 });
    }
    let text = at?;
    let moment = parse_moment(&text.value, zone);
    if moment.is_none() {
        let problem = Problem::new(
            text.span,
            format!("`{}` is not a date and a time", text.value),
        )
        .label("expected year, month, day and time")
        .help(format!("write it like `{}`", table.usage("at")));
        table.problems.note(problem);
    }
    moment.map(When::At)
}

fn cron(table: &Section<'_>, text: &Spanned<String>, zone: &Zone) -> Option<When> {
    let problem = match Cron::parse(&text.value) {
        Ok(cron) => {
            return Some(When::Cron {
                cron,
                zone: zone.clone(),
            });
        }
        Err(InvalidCron::Never) => Problem::new(text.span.clone(), "the job would never run")
            .label("no day fits")
            .help("look at the day and the month"),
        Err(InvalidCron::Form(reason)) => {
            Problem::new(text.span.clone(), format!("`{}` is not a cron expression", text.value))
                .label(reason)
                .help(format!(
                    "write minute, hour, day, month and weekday, such as `{}` for nine o'clock from Monday to Friday",
                    table.usage("cron")
                ))
        }
    };
    table.problems.note(problem);
    None
}

/// A length of time of at least so much.
pub(super) fn step(
    table: &Section<'_>,
    key: &str,
    text: &Spanned<String>,
    least: i64,
) -> Option<i64> {
    let problem = match parse_span(&text.value) {
        Some(ms) if ms >= least => return Some(ms),
        Some(_) => Problem::new(text.span.clone(), format!("`{key}` is too short"))
            .label(format!("at least {}", crate::jobs::in_words(least)))
            .help(format!("write it like `{}`", table.usage(key))),
        None => Problem::new(
            text.span.clone(),
            format!("`{}` is not a length of time", text.value),
        )
        .label("expected a number and one of s, m, h, d")
        .help(format!("write it like `{}`", table.usage(key))),
    };
    table.problems.note(problem);
    None
}

fn prompt(table: &Section<'_>, span: &Range<usize>) -> Option<JobPrompt> {
    let (text, file) = (table.text("prompt"), table.text("prompt_file"));
    let both = [table.value("prompt"), table.value("prompt_file")];
    let problem = match (text, file, both) {
        (Some(text), None, _) => match text.value.trim() {
            "" => Problem::new(text.span, "`prompt` is empty")
                .label("nothing to do")
                .help(format!(
                    "write the task, such as `{}`",
                    table.usage("prompt")
                )),
            words if words.len() > MAX_PROMPT_BYTES => {
                Problem::new(text.span, "`prompt` is too long")
                    .label(format!("at most {} KB", MAX_PROMPT_BYTES / 1024))
                    .help(
                        "put it into a file of the agent's folder, and name that in `prompt_file`",
                    )
            }
            words => return Some(JobPrompt::Text(words.to_owned())),
        },
        (None, Some(file), _) => match inside(&file.value) {
            Ok(path) => return Some(JobPrompt::File(path)),
            Err((_, label)) => Problem::new(
                file.span,
                "`prompt_file` is not a file of the agent's folder",
            )
            .label(label)
            .help(format!(
                "write the path from the agent's own folder on, such as `{}`",
                table.usage("prompt_file")
            )),
        },
        (_, _, [None, None]) => Problem::new(span.clone(), "the job does not say what to do")
            .label("`prompt` or `prompt_file` is needed")
            .help(format!("add a line such as `{}`", table.usage("prompt"))),
        (_, _, [Some(_), Some(_)]) => Problem::new(span.clone(), "the job has two tasks")
            .label("`prompt` and `prompt_file` are two ways to say it")
            .help("keep one of them"),
        // A wrong type is told already.
        _ => return None,
    };
    table.problems.note(problem);
    None
}

fn hours(table: &Section<'_>, key: &str) -> Option<Hours> {
    let text = table.text(key)?;
    let hours = text.value.parse().ok();
    if hours.is_none() {
        let problem = Problem::new(
            text.span,
            format!("`{}` is not a part of the day", text.value),
        )
        .label("expected two times of day")
        .help(format!("write it like `{}`", table.usage(key)));
        table.problems.note(problem);
    }
    hours
}

fn jitter(table: &Section<'_>, when: Option<&When>) -> i64 {
    let Some(text) = table.text("jitter") else {
        return 0;
    };
    let span = text.span.clone();
    let Some(jitter) = step(table, "jitter", &text, 0) else {
        return 0;
    };
    let most = match when {
        Some(When::Every { ms, .. }) => *ms,
        _ => LONGEST_JITTER_MS,
    };
    if jitter >= most && jitter > 0 {
        let problem = Problem::new(span, "`jitter` is too long")
            .label(format!("shorter than {}", crate::jobs::in_words(most)))
            .help(format!("write it like `{}`", table.usage("jitter")));
        table.problems.note(problem);
        return 0;
    }
    jitter
}

/// A place where people are.
pub(super) fn place(table: &Section<'_>) -> Option<SessionKey> {
    let text = table.text("place")?;
    let place = text.value.parse().ok();
    let place = place.filter(|place: &SessionKey| !place.is_internal());
    if place.is_none() {
        if let Some(problem) = odd_characters::refused(&text) {
            table.problems.note(problem);
            return None;
        }
        let problem = Problem::new(
            text.span,
            format!("`{}` is not the key of a place", text.value),
        )
        .label("no place where people talk")
        .help(format!(
            "write what /whoami prints there, such as `{}`",
            table.usage("place")
        ));
        table.problems.note(problem);
    }
    place
}

pub(super) fn context(table: &Section<'_>, place: Option<&SessionKey>) -> JobContext {
    let context = table.choice("context").unwrap_or_default();
    if context == JobContext::Place && place.is_none() && table.value("place").is_none() {
        let span = table
            .value("context")
            .map(|value| value.span())
            .unwrap_or_default();
        let problem = Problem::new(span, "`context = \"place\"` needs a place")
            .label("there is no conversation to be part of")
            .help(format!("add a line such as `{}`", table.usage("place")));
        table.problems.note(problem);
    }
    context
}

/// The heartbeat as a job.
fn heartbeat(section: &Section<'_>, agents_zone: &Zone) -> Option<JobSpec> {
    const SHORTEST_MS: i64 = 60_000;
    let table = section.section("heartbeat", &schema::HEARTBEAT)?;
    let every = table.text("every");
    let every = every.and_then(|text| step(&table, "every", &text, SHORTEST_MS));
    let zone = agents_zone.clone();
    let active = hours(&table, "hours");
    let place = place(&table);
    let context = context(&table, place.as_ref());
    let enabled = table.boolean("enabled").unwrap_or(true);
    Some(JobSpec {
        name: HEARTBEAT.parse().ok()?,
        timetable: Timetable {
            quiet: active.map(Hours::inverse),
            ..Timetable::new(When::Every {
                ms: every?,
                from: 0,
            })
        },
        zone,
        prompt: JobPrompt::Heartbeat,
        place,
        context,
        enabled,
    })
}
