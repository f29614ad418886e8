//! The time zone of an agent: a zone by its name, or the machine's own.

use chrono::{DateTime, FixedOffset, Local};
use jiff::Timestamp;
use jiff::tz::TimeZone;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Zone {
    /// None: the machine's.
    named: Option<TimeZone>,
}

impl Zone {
    /// A zone of the IANA database, such as `Europe/Vienna`.
    pub fn named(name: &str) -> Option<Self> {
        let zone = TimeZone::get(name).ok()?;
        Some(Zone { named: Some(zone) })
    }

    /// The name of a zone that was surely meant, also without its continent.
    pub fn meant(name: &str) -> Option<String> {
        const SURE: f64 = 0.9;
        let written = name.trim().replace(' ', "_").to_lowercase();
        let zones = jiff::tz::db().available();
        let likeness = |zone: &str| {
            let zone = zone.to_lowercase();
            let city = zone.rsplit('/').next().unwrap_or_default();
            let of_city = match written.contains('/') {
                true => 0.0,
                false => strsim::jaro_winkler(&written, city),
            };
            of_city.max(strsim::jaro_winkler(&written, &zone))
        };
        let scored = zones.map(|zone| (likeness(zone.as_str()), zone));
        let sure = scored.filter(|(score, _)| *score >= SURE);
        let best = sure.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, zone)| zone.as_str().to_owned())
    }

    /// The name, if the zone has a name of its own.
    pub fn name(&self) -> Option<&str> {
        self.named.as_ref()?.iana_name()
    }

    /// A moment in the local time of the zone.
    pub fn at(&self, millis: i64) -> DateTime<FixedOffset> {
        let utc = DateTime::from_timestamp_millis(millis).unwrap_or_default();
        let offset = self.offset_seconds(millis).and_then(FixedOffset::east_opt);
        match offset {
            Some(offset) => utc.with_timezone(&offset),
            None => utc.with_timezone(&Local).fixed_offset(),
        }
    }

    /// The rules of the zone, for calendars.
    pub(crate) fn rules(&self) -> TimeZone {
        self.named.clone().unwrap_or_else(TimeZone::system)
    }

    fn offset_seconds(&self, millis: i64) -> Option<i32> {
        let zone = self.named.as_ref()?;
        let moment = Timestamp::from_millisecond(millis).ok()?;
        Some(zone.to_offset(moment).seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(zone: &str, millis: i64) -> String {
        let zone = Zone::named(zone).expect("a zone");
        zone.at(millis).format("%Y-%m-%d %H:%M %:z").to_string()
    }

    /// 30 June 2026 and 31 December 2026, half past ten in the evening in Greenwich.
    const SUMMER: i64 = 1_782_858_600_000;
    const WINTER: i64 = 1_798_756_200_000;

    #[test]
    fn a_zone_has_its_own_day_and_its_own_summer() {
        assert_eq!(shown("Europe/Vienna", SUMMER), "2026-07-01 00:30 +02:00");
        assert_eq!(shown("Europe/Vienna", WINTER), "2026-12-31 23:30 +01:00");
        assert_eq!(shown("America/New_York", SUMMER), "2026-06-30 18:30 -04:00");
        assert_eq!(shown("Asia/Kathmandu", WINTER), "2027-01-01 04:15 +05:45");
        assert_eq!(shown("UTC", SUMMER), "2026-06-30 22:30 +00:00");
    }

    #[test]
    fn a_zone_that_is_not_there_is_none() {
        for name in ["", "Europe/Wien", "+02:00", "/etc/localtime", "../UTC"] {
            assert_eq!(Zone::named(name), None, "{name}");
        }
    }
}
