//! Numbers, money, times and places in words.

use chrono::{DateTime, TimeZone};

use crate::agents::{Chosen, Source};
use crate::channels::escaped;
use crate::config::ModelRef;
use crate::domain::{AgentId, SessionKey};
pub(crate) use crate::figures::grouped;
use crate::figures::zone_name;

/// `1 message`, `1,200 messages`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}s", grouped(number)),
    }
}

/// `16 Nov 2026`.
pub(crate) fn day<Z: TimeZone>(zone: &Z, at: i64) -> String
where
    Z::Offset: std::fmt::Display,
{
    moment(zone, at).format("%-d %b %Y").to_string()
}

/// `00:00 UTC+1`.
pub(crate) fn time<Z: TimeZone>(zone: &Z, at: i64) -> String
where
    Z::Offset: std::fmt::Display,
{
    let moment = moment(zone, at);
    let (time, offset) = (
        moment.format("%H:%M").to_string(),
        moment.format("%:z").to_string(),
    );
    format!("{time} {}", zone_name(&offset))
}

/// `14:05:36 UTC+1`.
pub(crate) fn clock<Z: TimeZone>(zone: &Z, at: i64) -> String
where
    Z::Offset: std::fmt::Display,
{
    let moment = moment(zone, at);
    let (time, offset) = (
        moment.format("%H:%M:%S").to_string(),
        moment.format("%:z").to_string(),
    );
    format!("{time} {}", zone_name(&offset))
}

/// `14:05 UTC+1`, before today `16 Nov 2026, 14:05 UTC+1`.
pub(crate) fn since<Z: TimeZone>(zone: &Z, at: i64, now: i64) -> String
where
    Z::Offset: std::fmt::Display,
{
    let (time, day) = (time(zone, at), day(zone, at));
    match day == self::day(zone, now) {
        true => time,
        false => format!("{day}, {time}"),
    }
}

fn moment<Z: TimeZone>(zone: &Z, at: i64) -> DateTime<Z> {
    zone.from_utc_datetime(
        &DateTime::from_timestamp_millis(at)
            .unwrap_or_default()
            .naive_utc(),
    )
}

/// `2 s`, `1 min 15 s`.
pub(crate) fn duration(ms: i64) -> String {
    match ms.max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A chosen time: `90 minutes`, `2 hours`, `1 day`.
pub(crate) fn duration_of(ms: i64) -> String {
    // A measured time may lack a moment.
    let minutes = u64::try_from(ms).unwrap_or(0).saturating_add(30_000) / 60_000;
    match minutes {
        minutes if minutes > 0 && minutes.is_multiple_of(24 * 60) => {
            count(minutes / (24 * 60), "day")
        }
        minutes if minutes > 0 && minutes.is_multiple_of(60) => count(minutes / 60, "hour"),
        minutes => count(minutes, "minute"),
    }
}

/// `12 minutes`, `2 d 2 h`.
pub(crate) fn uptime(ms: i64) -> String {
    let minutes = u64::try_from(ms).unwrap_or(0) / 60_000;
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => count(minutes, "minute"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// The kind of a place: `topic`.
pub(crate) fn kind(place: &SessionKey) -> &'static str {
    match place {
        SessionKey::TelegramTopic { .. }
        | SessionKey::TelegramDm { topic: Some(_), .. }
        | SessionKey::Local { topic: Some(_), .. }
        | SessionKey::Web { topic: Some(_), .. } => "topic",
        SessionKey::TelegramGroup { .. } => "group",
        SessionKey::DiscordChannel { .. } => "channel",
        SessionKey::DiscordThread { .. } => "thread",
        SessionKey::TelegramDm { .. } | SessionKey::DiscordDm { .. } => "private chat",
        SessionKey::Local { .. } | SessionKey::Web { .. } => "chat",
        SessionKey::Cron { .. } | SessionKey::Child { .. } | SessionKey::Import { .. } => "place",
    }
}

/// The agent's id behind its name, where `/agent` with the name in lower case would not do.
pub(crate) fn with_id(label: &str, name: &str, id: &AgentId) -> String {
    if name.to_lowercase() == id.as_str() {
        label.to_owned()
    } else {
        format!("{label} (`{id}`)")
    }
}

/// The model behind an agent's name.
pub(crate) fn model(model: &ModelRef) -> String {
    match model {
        ModelRef::Of { .. } => model.to_string(),
        ModelRef::Demo => "demo model (echoes only)".to_owned(),
    }
}

/// The model in a sentence.
pub(crate) fn model_used(model: &ModelRef) -> String {
    match model {
        ModelRef::Of { .. } => format!("`{model}`"),
        ModelRef::Demo => "the demo model (echoes only)".to_owned(),
    }
}

/// A reply that takes the place of a message with buttons.
pub(crate) fn pressed_by(reply: &str, person: &str) -> String {
    format!("{reply}\nPressed by {}.", escaped(person))
}

/// Where the choice of a model comes from.
pub(crate) fn source(chosen: &Chosen) -> &'static str {
    source_of(chosen.source, chosen.model == ModelRef::Demo)
}

pub(crate) fn source_of(source: Source, is_demo: bool) -> &'static str {
    match (source, is_demo) {
        (Source::Override, _) => "chosen here with /model",
        (Source::Agent, _) => "the agent's own",
        (Source::Default, true) => "no other model is set",
        (Source::Default, false) => "the default model",
    }
}

/// `one`, `one and two`, `one, two and three`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, Utc};

    use super::*;
    use crate::config::{Currency, Money};

    #[test]
    fn numbers_money_and_times_read_well() {
        let east = FixedOffset::east_opt(5 * 3600 + 1800).unwrap();
        let west = FixedOffset::west_opt(3600).unwrap();
        let at = 1_794_000_000_000;
        let texts = [
            count(0, "message"),
            count(1, "message"),
            count(1_200, "message"),
            grouped(1_234_567),
            Money(0).in_currency(&Currency::default()),
            Money(3_343).in_currency(&Currency::default()),
            Money(29_700).in_currency(&Currency::default()),
            Money(12_243).in_currency(&Currency::default()),
            Money(1_008_000).in_currency(&Currency::default()),
            Money(2_345_678_901).in_currency(&"EUR".parse().unwrap()),
            Money(1).in_currency(&Currency::default()),
            day(&Utc, at),
            time(&Utc, at),
            time(&east, at),
            time(&west, at),
            since(&Utc, at, at + 2 * 60 * 60 * 1000),
            since(&Utc, at, at + 3 * 60 * 60 * 1000),
            duration(2_000),
            duration(75_000),
            uptime(0),
            uptime(61 * 60_000),
            uptime(50 * 60 * 60_000),
            listed(&["a".into(), "b".into(), "c".into()]),
        ];
        insta::assert_snapshot!(texts.join("\n"), @"
        0 messages
        1 message
        1,200 messages
        1,234,567
        0.00 USD
        0.0033 USD
        0.0297 USD
        0.0122 USD
        1.008 USD
        2345.6789 EUR
        0.000001 USD
        6 Nov 2026
        21:20 UTC
        02:50 UTC+5:30
        20:20 UTC-1
        21:20 UTC
        6 Nov 2026, 21:20 UTC
        2 s
        1 min 15 s
        0 minutes
        1 h 1 min
        2 d 2 h
        a, b and c
        ");
    }
}
