//! Numbers, money, times and places in words.

use chrono::{DateTime, TimeZone};

use crate::agents::{Chosen, Source};
use crate::channels::escaped;
use crate::config::{Currency, ModelRef, Money};
use crate::domain::{AgentId, Origin, SessionKey};

/// `1 message`, `1,200 messages`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}s", grouped(number)),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `0.0033 USD`: always four decimals, so that amounts below each other can be compared.
pub(crate) fn money(amount: Money, currency: &Currency) -> String {
    // No amount is shown as nothing.
    let least = u64::from(amount.0 > 0);
    let rounded = (amount.0.saturating_add(50) / 100).max(least);
    format!(
        "{}.{:04} {currency}",
        grouped(rounded / 10_000),
        rounded % 10_000
    )
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

/// `+01:00` as `UTC+1`, `+05:30` as `UTC+5:30`.
fn zone_name(offset: &str) -> String {
    let (sign, rest) = offset.split_at(1);
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
    match (hours.trim_start_matches('0'), minutes) {
        ("", "00") => "UTC".to_owned(),
        ("", minutes) => format!("UTC{sign}0:{minutes}"),
        (hours, "00") => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes}"),
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
    let minutes = u64::try_from(ms).unwrap_or(0) / 60_000;
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
        | SessionKey::Local { topic: Some(_), .. } => "topic",
        SessionKey::TelegramGroup { .. } => "group",
        SessionKey::DiscordChannel { .. } => "channel",
        SessionKey::DiscordThread { .. } => "thread",
        SessionKey::TelegramDm { .. } | SessionKey::DiscordDm { .. } => "private chat",
        SessionKey::Local { .. } => "chat",
        SessionKey::Cron { .. } | SessionKey::Child { .. } | SessionKey::Import { .. } => "place",
    }
}

/// The name of a place, where it has one.
pub(crate) fn name(origin: &Origin) -> Option<&str> {
    let own = match &origin.key {
        SessionKey::Local {
            topic: Some(topic), ..
        } => Some(topic.as_str()),
        _ => None,
    };
    origin.name.as_deref().or(own)
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
    match (chosen.source, &chosen.model) {
        (Source::Override, _) => "chosen here with /model",
        (Source::Agent, _) => "the agent's own",
        (Source::Default, ModelRef::Demo) => "no other model is set",
        (Source::Default, ModelRef::Of { .. }) => "default_model",
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
            money(Money(0), &Currency::default()),
            money(Money(3_343), &Currency::default()),
            money(Money(2_345_678_901), &"EUR".parse().unwrap()),
            money(Money(1), &Currency::default()),
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
        0.0000 USD
        0.0033 USD
        2,345.6789 EUR
        0.0001 USD
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
