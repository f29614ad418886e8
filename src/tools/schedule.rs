//! Makes, lists and removes jobs: turns of the agent at a time, in the place of the turn.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Effect, Outcome, Risk, Scope, Tool, read_arguments};
use crate::clock::now_ms;
use crate::domain::Zone;
use crate::jobs::{Cron, Missed, Timetable, When, in_words, parse_moment, parse_span};
use crate::models::ToolSpec;

/// The longest task, in bytes.
const MAX_TASK_BYTES: usize = 8 * 1024;
/// The shortest time between two runs of a job that was made in chat.
pub(crate) const SHORTEST_STEP_MS: i64 = 15 * 60 * 1000;

pub(super) struct Schedule;

/// The name of the tool.
pub(crate) const SCHEDULE: &str = "schedule";

/// A change of the jobs of the turn's agent and place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleWish {
    Add(Box<NewSchedule>),
    List,
    /// By its number or name.
    Remove(String),
}

/// A job to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewSchedule {
    pub name: Option<String>,
    pub task: String,
    pub timetable: Timetable,
    /// The zone in which the person reads times.
    pub zone: Option<String>,
}

impl Eq for ScheduleWish {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    task: Option<String>,
    name: Option<String>,
    at: Option<String>,
    #[serde(rename = "in")]
    after: Option<String>,
    every: Option<String>,
    cron: Option<String>,
    time_zone: Option<String>,
    quiet: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Add,
    List,
    Remove,
}

#[async_trait]
impl Tool for Schedule {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SCHEDULE.into(),
            description: "Makes a job: at a time, you get `task` as if somebody had just asked, and your answer is sent here. For reminders \
                          and for things to be done again and again. `add` needs `task` and one of `in`, `at`, `every` and `cron`; `list` shows \
                          the jobs here; `remove` takes `name`. Only when a person asks for it."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "action": { "enum": ["add", "list", "remove"] },
                    "task": { "type": "string", "description": "What to do then, with everything you must know, such as whom to remind of what." },
                    "name": { "type": "string", "description": "A short name." },
                    "in": { "type": "string", "description": "Once, after this time: 20m, 2h, 3d." },
                    "at": { "type": "string", "description": "Once, at this time: 2026-12-24 18:00." },
                    "every": { "type": "string", "description": "Again and again: 1h, 1d. At least 15m." },
                    "cron": { "type": "string", "description": "Minute, hour, day, month, weekday: 0 9 * * 1-5." },
                    "time_zone": { "type": "string", "description": "The person's, such as Europe/Vienna. Needed only if the person names another one than usual." },
                    "quiet": { "type": "string", "description": "No run between these times of day: 22:00-07:00." },
                },
                "required": ["action"],
                "additionalProperties": false,
            })
            .into(),
        }
    }

    /// The turns of the job have no more rights than the person who asks for it.
    fn risk(&self) -> Risk {
        Risk::Change
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let arguments: Arguments = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        let wish = match arguments.action {
            Action::List => Ok(ScheduleWish::List),
            Action::Remove => arguments
                .name
                .map(ScheduleWish::Remove)
                .ok_or_else(|| "`name` says which job is to go.".to_owned()),
            Action::Add => new(scope, arguments),
        };
        match wish {
            Ok(wish) => Outcome::wish(Effect::Schedule(wish)),
            Err(refusal) => Outcome::say(format!("Nothing was done: {refusal}")),
        }
    }
}

fn new(scope: &Scope, arguments: Arguments) -> Result<ScheduleWish, String> {
    let task = arguments.task.unwrap_or_default().trim().to_owned();
    if task.is_empty() || task.len() > MAX_TASK_BYTES {
        return Err(format!("`task` has 1 to {MAX_TASK_BYTES} bytes."));
    }
    let zone = match &arguments.time_zone {
        Some(name) => Zone::named(name.trim()).ok_or_else(|| {
            format!("no time zone is called `{name}`. Use a name such as Europe/Vienna.")
        })?,
        None => zone_of(scope),
    };
    let given = [
        &arguments.after,
        &arguments.at,
        &arguments.every,
        &arguments.cron,
    ];
    if given.iter().filter(|given| given.is_some()).count() != 1 {
        return Err("say exactly one of `in`, `at`, `every` and `cron`.".to_owned());
    }
    let now = now_ms();
    let when = if let Some(text) = &arguments.cron {
        let cron = Cron::parse(text)
            .map_err(|error| format!("`{text}` is not a cron expression: {error}."))?;
        let zone = zone.clone();
        When::Cron { cron, zone }
    } else if let Some(text) = &arguments.every {
        When::Every {
            ms: span(text)?,
            from: now,
        }
    } else if let Some(text) = &arguments.after {
        When::At(now.saturating_add(span(text)?))
    } else {
        let text = arguments.at.as_deref().unwrap_or_default();
        let at = parse_moment(text, &zone)
            .ok_or_else(|| format!("`{text}` is not a date and a time. Write 2026-12-24 18:00."))?;
        When::At(at)
    };
    check(&when, now)?;
    let quiet = match &arguments.quiet {
        Some(text) => Some(
            text.parse()
                .map_err(|()| format!("`{text}` is not a part of the day. Write 22:00-07:00."))?,
        ),
        None => None,
    };
    let timetable = Timetable {
        quiet,
        // Somebody has asked for it, so it is done late rather than not at all.
        missed: Missed::Once,
        ..Timetable::new(when)
    };
    Ok(ScheduleWish::Add(Box::new(NewSchedule {
        name: arguments.name,
        task,
        timetable,
        zone: zone.name().map(str::to_owned),
    })))
}

/// The zone in which the person reads times, as far as config.toml has it; else the agent's.
fn zone_of(scope: &Scope) -> Zone {
    let known = scope.people.of(&scope.person);
    let own = known.and_then(|person| person.zone.clone());
    own.unwrap_or_else(|| scope.agent.zone.clone())
}

fn span(text: &str) -> Result<i64, String> {
    parse_span(text)
        .filter(|ms| *ms > 0)
        .ok_or_else(|| format!("`{text}` is not a length of time. Write 20m, 2h or 3d."))
}

/// Whether people may have a job with this schedule.
fn check(when: &When, now: i64) -> Result<(), String> {
    let Some(next) = when.next_after(now) else {
        return Err("that time is over.".to_owned());
    };
    match when.shortest_step(next) {
        Some(step) if step < SHORTEST_STEP_MS => Err(format!(
            "it would run more often than every {}.",
            in_words(SHORTEST_STEP_MS)
        )),
        _ => Ok(()),
    }
}
