//! Cron expressions with five fields, in a time zone.

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// A checked expression, kept as text. A compiled expression takes 10 KB, so each use compiles
/// anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron(Box<str>);

/// Why a text is no cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    #[error("{0}")]
    Form(String),
    /// An expression such as `0 0 31 2 *`.
    #[error("no day fits, so it would never run")]
    Never,
}

impl Cron {
    /// An expression with five fields, or a word such as `@daily`.
    pub fn parse(text: &str) -> Result<Self, InvalidCron> {
        let words = text.split_whitespace().collect::<Vec<_>>();
        let is_word = words.len() == 1 && text.trim().starts_with('@');
        if words.len() != 5 && !is_word {
            let count = words.len();
            return Err(InvalidCron::Form(format!(
                "it has {count} fields, and a job has five: minute, hour, day, month, weekday"
            )));
        }
        let cron = Cron(words.join(" ").into());
        let compiled = compile(&cron.0).map_err(|error| InvalidCron::Form(reason(&error)))?;
        if is_word || has_plain_day(words[2]) {
            return Ok(cron);
        }
        let start = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        match compiled.find_next_occurrence(&start, false) {
            Ok(_) => Ok(cron),
            Err(_) => Err(InvalidCron::Never),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The slots after a moment, in order.
    pub(super) fn after(&self, zone: &TimeZone, after: i64) -> Slots {
        let from = Timestamp::from_millisecond(after).map(|moment| moment.to_zoned(zone.clone()));
        Slots {
            cron: compile(&self.0).ok(),
            from: from.ok(),
        }
    }
}

/// The slots of an expression.
pub(super) struct Slots {
    cron: Option<croner::Cron>,
    from: Option<Zoned>,
}

impl Iterator for Slots {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let run = next_run(self.cron.as_ref()?, self.from.as_ref()?).ok()?;
        let slot = run.timestamp().as_millisecond();
        self.from = Some(run);
        Some(slot)
    }
}

/// Whether every month has a day that fits the field for days, so that a search for one is not
/// needed. A house may have thousands of jobs.
fn has_plain_day(field: &str) -> bool {
    let has = |part: &str| part == "*" || part.parse().is_ok_and(|day: u8| (1..=28).contains(&day));
    field.split(',').any(has)
}

fn compile(text: &str) -> Result<croner::Cron, CronError> {
    let builder = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed);
    builder.build().parse(text)
}

fn reason(error: &CronError) -> String {
    let text = error.to_string();
    let known = [
        "Invalid pattern: ",
        "Component error: ",
        "Pattern contains illegal characters: ",
    ];
    let plain = known.iter().find_map(|start| text.strip_prefix(start));
    plain.unwrap_or(&text).trim_end_matches('.').to_owned()
}

/// The next run after `after`. croner 4.0.2 gives the end of a spring gap as a run even when
/// nothing was due inside the gap.
fn next_run(cron: &croner::Cron, after: &Zoned) -> Result<Zoned, CronError> {
    let mut from = after.clone();
    loop {
        let run = cron.find_next_occurrence(&from, false)?;
        if cron.is_time_matching(&run)? || is_due_in_gap_before(cron, &run)? {
            return Ok(run);
        }
        from = run;
    }
}

/// Whether the job is due at a wall-clock time skipped right before `run`.
fn is_due_in_gap_before(cron: &croner::Cron, run: &Zoned) -> Result<bool, CronError> {
    let skipped_from = (run - 1.second()).datetime() + 1.second();
    let as_utc = |time: DateTime| {
        time.to_zoned(TimeZone::UTC)
            .map_err(|_| CronError::InvalidTime)
    };
    Ok(cron.find_next_occurrence(&as_utc(skipped_from)?, true)? < as_utc(run.datetime())?)
}
