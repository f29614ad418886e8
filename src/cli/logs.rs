//! `parlor logs`: reads the log file of a gateway, running or not.

mod entry;
mod reading;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Duration, Local, NaiveDate, NaiveDateTime, NaiveTime};
use clap::Args;

use super::{Failure, Outcome, data, data_json, data_json_text, note};
use super::{database, meant_place, running_config};
use crate::commands::texts::trace;
use crate::config::{self, Secrets};
use crate::domain::nearest;
use crate::home::Home;
use crate::operations::house::House;
use crate::operations::turns::{self, Sight};
use entry::Entry;
use reading::{Follower, each_line};

/// Lines without a question about a time or a message.
const NEWEST: usize = 200;

#[derive(Args)]
pub(super) struct Arguments {
    /// Only lines about this agent; `system` for lines about none
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// Only lines about this place and the places in it: a key such as
    /// telegram:topic:-100:7, or a name such as Garden or Family/Garden
    #[arg(long, short, value_name = "PLACE")]
    place: Option<String>,
    /// Only lines about the message with this reference, as errors in chat
    /// show it
    #[arg(long = "ref", value_name = "NUMBER")]
    reference: Option<u64>,
    /// Only lines from this time on: 30m, 2h, 3d, 09:00, 2026-11-17 or
    /// 2026-11-17T09:00
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<DateTime<Local>>,
    /// The newest lines; 0 for all [default: 200, or all with --ref or
    /// --since]
    #[arg(long, short = 'n', value_name = "NUMBER")]
    lines: Option<usize>,
    /// Wait for further lines until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Print the lines as JSON: a list, or with --follow an object in each line
    #[arg(long)]
    json: bool,
}

/// A time in the past, as people write one.
fn since(text: &str) -> Result<DateTime<Local>, String> {
    let now = Local::now();
    let ago = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            _ => return None,
        };
        let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
        now.checked_sub_signed(Duration::try_seconds(number.checked_mul(seconds)?)?)
    };
    let local = |time: NaiveDateTime| time.and_local_timezone(Local).earliest();
    let clock = || {
        let time = NaiveTime::parse_from_str(text, "%H:%M").ok()?;
        local(now.date_naive().and_time(time))
    };
    let day = || local(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN));
    let moment = || {
        let minutes = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").ok();
        local(minutes.or_else(|| text.parse().ok())?)
    };
    let exact = || {
        Some(
            DateTime::parse_from_rfc3339(text)
                .ok()?
                .with_timezone(&Local),
        )
    };
    ago()
        .or_else(clock)
        .or_else(day)
        .or_else(moment)
        .or_else(exact)
        .ok_or_else(|| {
            "write how long ago, such as 30m, 2h or 3d, or a time such as 09:00 or 2026-11-17T09:00"
                .into()
        })
}

pub(super) async fn run(home: Home, mut arguments: Arguments) -> Outcome {
    let Some(path) = file(&home)? else {
        return match arguments {
            Arguments {
                reference: Some(reference),
                json: false,
                follow: false,
                ..
            } => stored(&home, reference).await,
            _ => Err(Failure::Failed(NO_FILE.to_owned()).hint(HOW_TO)),
        };
    };
    if let Some(word) = &arguments.place {
        let place = meant_place::place(&home, word).await?;
        arguments.place = Some(place.to_string());
    }
    let unknown = unknown_agent(&home, arguments.agent.as_deref()).await;
    read(&path, &arguments, unknown)
}

/// The mistake in the name of an agent. Agents that are gone have lines all the same.
async fn unknown_agent(home: &Home, agent: Option<&str>) -> Option<Failure> {
    let agent = agent.filter(|agent| *agent != "system")?;
    let checked = running_config::checked(home).await.ok()?;
    let ids = checked.config.agents.iter().map(|spec| spec.id.as_str());
    let known: Vec<&str> = ids.collect();
    if known.contains(&agent) {
        return None;
    }
    let told = Failure::WrongUse(format!("no agent is called {agent}, and no line names it"));
    Some(match nearest(agent, known.iter().copied()) {
        Some(near) => told.hint(format!("did you mean `{near}`?")),
        None => told.hint(format!("known: {}, and system", known.join(", "))),
    })
}

fn read(path: &Path, arguments: &Arguments, unknown: Option<Failure>) -> Outcome {
    let newest = match arguments.lines {
        Some(0) => usize::MAX,
        Some(lines) => lines,
        None if arguments.reference.is_some() || arguments.since.is_some() => usize::MAX,
        None => NEWEST,
    };
    let mut found = VecDeque::new();
    // Opened before the look at the lines, so that no line comes in between.
    let follower = arguments.follow.then(|| Follower::new(path));
    each_line(path, follower.as_ref(), |line| {
        let entry = Entry::read(line);
        if arguments.wants(&entry) {
            if found.len() == newest {
                found.pop_front();
            }
            found.push_back(entry);
        }
    })
    .map_err(|error| unread(path, &error))?;
    if let Some(unknown) = unknown.filter(|_| found.is_empty()) {
        return Err(unknown);
    }
    if arguments.json && !arguments.follow {
        let all: Vec<_> = found.iter().map(Entry::as_json).collect();
        return data_json(&all);
    }
    if found.is_empty() && !arguments.follow {
        note(format_args!("No line of {} matches.", path.display()));
    }
    found.iter().for_each(|entry| arguments.print(entry));
    if let Some(mut follower) = follower {
        loop {
            follower.wait_for_more(|line| {
                let entry = Entry::read(line);
                if arguments.wants(&entry) {
                    arguments.print(&entry);
                }
            });
        }
    }
    Ok(())
}

impl Arguments {
    fn wants(&self, entry: &Entry) -> bool {
        self.agent
            .as_ref()
            .is_none_or(|agent| entry.is_about_agent(agent))
            && self
                .place
                .as_ref()
                .is_none_or(|place| entry.is_about_place(place))
            && self
                .reference
                .is_none_or(|reference| entry.is_about_message(reference))
            && self.since.is_none_or(|since| entry.is_since(since))
    }

    fn print(&self, entry: &Entry) {
        if self.json {
            data_json_text(&entry.as_json().to_string());
        } else {
            data(format_args!("{}", entry.as_text()));
        }
    }
}

/// The file that the config names. A config with problems elsewhere does not matter here.
fn file(home: &Home) -> Result<Option<PathBuf>, Failure> {
    let log = config::load(home.path(), Secrets::WherePresent)?.config.log;
    Ok(log.file.map(|file| home.path().join(file.path)))
}

/// Tells about a message from the database, where no log file is kept.
async fn stored(home: &Home, reference: u64) -> Outcome {
    let db = database::open(&home.database()).await?;
    let checked = running_config::checked(home).await?;
    let house = House::load(&db, checked.config.clone(), checked.table.clone()).await?;
    let names = house.names.clone();
    let id = i64::try_from(reference).unwrap_or(i64::MAX);
    let turn = db
        .read(move |connection| turns::one(connection, &house, id, Sight::Sizes))
        .await?;
    let Some(turn) = turn else {
        let why = format!("nothing is kept about a message with the reference {reference}");
        return Err(Failure::Failed(why).hint(HOW_TO));
    };
    let told = trace::told(&turn, None, &|id| trace::called(&names, id));
    data(format_args!("{told}"));
    note(format_args!("{FROM_DATABASE}"));
    Ok(())
}

fn unread(path: &std::path::Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::Failed(format!(
            "there is no log file {} yet. `parlor run` writes it.",
            path.display()
        )),
        _ => Failure::Failed(format!(
            "the log file {} cannot be read: {error}",
            path.display()
        )),
    }
}

const NO_FILE: &str = "config.toml names no log file, so there is nothing to read";
const FROM_DATABASE: &str = "This is from the database: config.toml names no log file. With `file = \"logs/parlor.log\"` under [log] the lines are kept too.";
const HOW_TO: &str = "to keep one from now on, add to config.toml:\n\n[log]\nfile = \"logs/parlor.log\"\n\nA gateway that systemd runs has its lines in the journal: journalctl -u parlor";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let ago = |text| {
            let since = since(text).unwrap();
            (Local::now() - since).num_minutes()
        };
        assert_eq!([ago("90s"), ago("30m"), ago("2h")], [1, 30, 120]);
        for text in [
            "3d",
            "09:00",
            "2026-11-17",
            "2026-11-17T09:00",
            "2026-11-17T09:00:30",
            "2026-11-17T09:00:30+01:00",
        ] {
            assert!(since(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "m",
            "-3d",
            "yesterday",
            "2026-13-01",
            "99999999999999999d",
            "é",
        ] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
