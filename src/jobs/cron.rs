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
        let compiled = compile(&cron.0).map_err(|_| InvalidCron::Form(reason(&words)))?;
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

/// The fields of an expression: name, values, examples.
const FIELDS: [(&str, &str, &str); 5] = [
    ("minute", "0 to 59", "`0`, `0,30` or `*/15`"),
    ("hour", "0 to 23", "`9`, `8-17` or `*/2`"),
    (
        "day of the month",
        "1 to 31, or L for the last",
        "`1`, `1,15` or `L`",
    ),
    ("month", "1 to 12, or JAN to DEC", "`6`, `1-3` or `JAN`"),
    (
        "weekday",
        "0 to 7 (0 and 7 are Sunday), or SUN to SAT",
        "`1-5` or `MON`",
    ),
];

/// The field that is wrong by itself, with its values and an example.
fn reason(words: &[&str]) -> String {
    let [_, _, _, _, _] = words else {
        return "the words are @hourly, @daily, @weekly, @monthly and @yearly".to_owned();
    };
    let alone = |at: usize| {
        let mut fields = ["*"; 5];
        fields[at] = words[at];
        compile(&fields.join(" "))
    };
    match (0..FIELDS.len()).find(|at| alone(*at).is_err()) {
        Some(at) => {
            let (name, values, examples) = FIELDS[at];
            format!("`{}` is no {name}: {values}, such as {examples}", words[at])
        }
        None => "its fields do not fit together".to_owned(),
    }
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
