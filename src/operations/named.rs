//! People, places and agents with a name beside the id, and times with their zone.

use std::fmt;

use chrono::{DateTime, Local, SecondsFormat};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

/// A person, place or agent. The name is absent where nobody ever told one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// For people, where the name alone would mislead: `Bob's private chat`. Programs have the id.
    #[serde(skip)]
    words: Option<String>,
}

impl Named {
    pub(crate) fn new(id: impl ToString, name: Option<&str>) -> Self {
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        Named {
            id: id.to_string(),
            name: name.map(str::to_owned),
            words: None,
        }
    }

    /// The same with other words for people.
    pub(crate) fn called(self, words: Option<String>) -> Self {
        Named { words, ..self }
    }

    /// For people, without the id: `Alice`, `Bob's private chat`.
    pub(crate) fn words(&self) -> Option<&str> {
        self.words.as_deref().or(self.name.as_deref())
    }

    /// For people: `Alice (telegram:11)`, or the id alone.
    pub(crate) fn text(&self) -> String {
        match self.words() {
            Some(words) if words != self.id => format!("{words} ({})", self.id),
            _ => self.id.clone(),
        }
    }
}

/// A stored time: RFC 3339 for programs, local for people.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub(crate) struct Moment(pub(crate) i64);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time(self.0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&moment(self.0))
    }
}

/// A stored time as RFC 3339, in the zone of this machine: `2026-11-17T08:30:00+01:00`.
pub(crate) fn time(millis: i64) -> String {
    local(millis).to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// A stored time for people: `2026-11-17 08:30 +01:00`.
pub(crate) fn moment(millis: i64) -> String {
    local(millis).format("%Y-%m-%d %H:%M %:z").to_string()
}

/// A length of time for people: `80 ms`, `1.4 s`, `3 min 5 s`.
pub(crate) fn lasting(ms: i64) -> String {
    match ms.max(0) {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms @ 1_000..60_000 => format!("{}.{} s", ms / 1_000, ms / 100 % 10),
        ms @ 60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        ms => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

fn local(millis: i64) -> DateTime<Local> {
    DateTime::from_timestamp_millis(millis)
        .unwrap_or_default()
        .with_timezone(&Local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_before_ids() {
        let check = |name, expected| assert_eq!(Named::new("dot", name).text(), expected);
        check(Some("Dot"), "Dot (dot)");
        check(Some("dot"), "dot");
        check(Some(" "), "dot");
        check(None, "dot");
    }

    #[test]
    fn lengths_of_time_are_short() {
        let told = [-5, 80, 1_450, 185_000, 3_660_000].map(lasting);
        assert_eq!(told, ["0 ms", "80 ms", "1.4 s", "3 min 5 s", "1 h 1 min"]);
    }

    #[test]
    fn times_have_a_zone() {
        let read = DateTime::parse_from_rfc3339(&time(1_700_000_000_000)).unwrap();
        assert_eq!(read.timestamp(), 1_700_000_000);
    }
}
