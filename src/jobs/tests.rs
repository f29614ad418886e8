//! Slots over changes of the clock, against an oracle that looks at every minute.

use std::collections::BTreeSet;

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

use super::*;
use crate::domain::Zone;

fn cron(text: &str, zone: &str) -> When {
    When::Cron {
        cron: Cron::parse(text).unwrap(),
        zone: Zone::named(zone).unwrap(),
    }
}

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

/// The slots between two moments, as clocks in the zone show them.
fn shown(text: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (ms(from), ms(to));
    let rules = Zone::named(zone).unwrap().rules();
    let slots = cron(text, zone).slots_after(from);
    slots
        .take_while(|slot| *slot < to)
        .map(|slot| {
            let zoned = Timestamp::from_millisecond(slot)
                .unwrap()
                .to_zoned(rules.clone());
            zoned.strftime("%d. %H:%M %:z").to_string()
        })
        .collect()
}

#[test]
fn a_job_in_the_spring_gap_runs_once_and_others_are_not_repeated() {
    let day = |text| {
        shown(
            text,
            "Europe/Berlin",
            "2026-03-29T00:00:00+01:00",
            "2026-03-30T00:00:00+02:00",
        )
    };
    assert_eq!(day("30 2 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(day("30 1 * * *"), ["29. 01:30 +01:00"]);
    assert_eq!(day("0 3 * * *"), ["29. 03:00 +02:00"]);
    assert_eq!(day("0 * * * *").len(), 22);
}

#[test]
fn a_job_in_the_autumn_hour_runs_once_and_steps_run_in_both() {
    let day = |text| {
        shown(
            text,
            "Europe/Berlin",
            "2026-10-25T00:00:00+02:00",
            "2026-10-26T00:00:00+01:00",
        )
    };
    assert_eq!(day("30 2 * * *"), ["25. 02:30 +02:00"]);
    assert_eq!(day("*/30 1-3 * * *").len(), 8);
    assert_eq!(day("0 * * * *").len(), 24);
}

#[test]
fn a_job_on_the_leap_day_waits_for_leap_years() {
    let slots = shown(
        "0 12 29 2 *",
        "UTC",
        "2026-01-01T00:00:00Z",
        "2040-01-01T00:00:00Z",
    );
    assert_eq!(slots.len(), 3);
    assert_eq!(
        cron("0 12 29 2 *", "UTC").next_after(ms("2026-01-01T00:00:00Z")),
        Some(ms("2028-02-29T12:00:00Z"))
    );
}

#[test]
fn a_year_of_slots_has_every_hour_once() {
    let hourly = cron("0 * * * *", "America/New_York");
    let (from, to) = (ms("2026-01-01T05:00:00Z"), ms("2027-01-01T05:00:00Z"));
    let count = hourly
        .slots_after(from)
        .take_while(|slot| *slot <= to)
        .count();
    assert_eq!(count, 365 * 24);
}

/// Where the clock jumps at midnight, croner alone gives wrong times on that day.
#[test]
fn daily_jobs_keep_their_time_around_every_change_of_the_clock() {
    for zone in [
        "Europe/Berlin",
        "America/New_York",
        "Africa/Cairo",
        "America/Santiago",
        "Australia/Lord_Howe",
    ] {
        let rules = TimeZone::get(zone).unwrap();
        let start = date(2026, 1, 1)
            .at(0, 0, 0, 0)
            .to_zoned(rules.clone())
            .unwrap();
        let year = rules
            .following(start.timestamp())
            .take_while(|change| change.timestamp() < (start.timestamp() + (366 * 24).hours()));
        for change in year {
            let from = change.timestamp() - 40.hours();
            for minute in (0..24 * 60).step_by(30) {
                let text = format!("{} {} * * *", minute % 60, minute / 60);
                let when = cron(&text, zone);
                let until = change.timestamp() + 40.hours();
                let slots: Vec<i64> = when
                    .slots_after(from.as_millisecond())
                    .take_while(|slot| *slot <= until.as_millisecond())
                    .collect();
                let expected = oracle(&rules, minute, from, until);
                assert_eq!(slots, expected, "{text} in {zone}");
            }
        }
    }
}

/// A daily job runs on each day at its time: the first of two, and the end of the gap where the time
/// is left out.
fn oracle(rules: &TimeZone, minute: i64, from: Timestamp, until: Timestamp) -> Vec<i64> {
    let first = from.to_zoned(rules.clone()).date().yesterday().unwrap();
    let mut slots = BTreeSet::new();
    for day in 0..6 {
        let date = first + day.days();
        let time: DateTime = date.at(0, 0, 0, 0) + minute.minutes();
        let ambiguous = rules.to_ambiguous_timestamp(time);
        let slot = match ambiguous.offset() {
            jiff::tz::AmbiguousOffset::Gap { .. } => {
                let before = ambiguous.earlier().unwrap();
                let after = rules.following(before - 24.hours()).next().unwrap();
                after.timestamp()
            }
            _ => ambiguous.earlier().unwrap(),
        };
        slots.insert(slot.as_millisecond());
    }
    let inside = |slot: &i64| *slot > from.as_millisecond() && *slot <= until.as_millisecond();
    slots.into_iter().filter(inside).collect()
}

#[test]
fn expressions_that_are_none_are_told() {
    let told = |text| Cron::parse(text).unwrap_err().to_string();
    insta::assert_snapshot!(told("*/5 * * * * *"), @"it has 6 fields, and a job has five: minute, hour, day, month, weekday");
    insta::assert_snapshot!(told("daily"), @"it has 1 fields, and a job has five: minute, hour, day, month, weekday");
    insta::assert_snapshot!(told("0 0 31 2 *"), @"no day fits, so it would never run");
    for bad in ["0 25 * * *", "0 x * * *", "5-1 * * * *"] {
        assert!(Cron::parse(bad).is_err(), "{bad}");
    }
    for good in [
        "@daily",
        "0 9 * * MON-FRI",
        "0 9 * * 7",
        "0 9 L * *",
        "0 9 * * MON#2",
        " 0  9 * * * ",
    ] {
        assert!(Cron::parse(good).is_ok(), "{good}");
    }
}

#[test]
fn spans_and_hours_are_read_and_written() {
    for (text, span) in [
        ("30m", 1_800_000),
        ("1h30m", 5_400_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1w", 604_800_000),
        ("90s", 90_000),
    ] {
        assert_eq!(parse_span(text), Some(span), "{text}");
    }
    for bad in [
        "",
        "30",
        "m",
        "30 minutes",
        "1m1h",
        "-5m",
        "1.5h",
        "99999999999999999999d",
    ] {
        assert_eq!(parse_span(bad), None, "{bad}");
    }
    assert_eq!(in_words(5_400_000), "1h 30m");
    for (text, hours) in [
        ("22:00-07:00", "22:00-07:00"),
        ("22-7", "22:00-07:00"),
        ("0:00-24:00", ""),
        ("13:30 – 14:00", "13:30-14:00"),
    ] {
        let read = text
            .parse::<Hours>()
            .map_or_else(|()| String::new(), |hours| hours.to_string());
        assert_eq!(read, hours, "{text}");
    }
    let (night, vienna) = (
        "22:00-07:00".parse::<Hours>().unwrap(),
        Zone::named("Europe/Vienna").unwrap(),
    );
    assert!(night.has(&vienna, ms("2026-07-01T20:00:00Z")));
    assert!(night.has(&vienna, ms("2026-07-01T04:59:00Z")));
    assert!(!night.has(&vienna, ms("2026-07-01T05:00:00Z")));
}

#[test]
fn moments_are_read_in_the_zone_unless_they_have_their_own() {
    let vienna = Zone::named("Europe/Vienna").unwrap();
    assert_eq!(
        parse_moment("2026-12-24 18:00", &vienna),
        Some(ms("2026-12-24T17:00:00Z"))
    );
    assert_eq!(
        parse_moment("2026-12-24T18:00:00", &vienna),
        Some(ms("2026-12-24T17:00:00Z"))
    );
    assert_eq!(
        parse_moment("2026-12-24T18:00:00Z", &vienna),
        Some(ms("2026-12-24T18:00:00Z"))
    );
    assert_eq!(
        parse_moment("2026-12-24T18:00:00+05:00", &vienna),
        Some(ms("2026-12-24T13:00:00Z"))
    );
    assert_eq!(parse_moment("tomorrow", &vienna), None);
}

#[test]
fn missed_slots_are_skipped_or_made_up_for_once() {
    let at = |text: &str| ms(&format!("2026-06-01T{text}:00Z"));
    let mut table = Timetable::new(cron("0 * * * *", "UTC"));
    let look = |table: &Timetable, handled, now| {
        table.look(&Zone::named("UTC").unwrap(), "rose", handled, now)
    };
    let slot = |verdict, hour: &str, missed_before| {
        Some(Slot {
            at: at(hour),
            verdict,
            missed_before,
        })
    };
    assert_eq!(look(&table, at("09:00"), at("09:30")).due, None);
    assert_eq!(
        look(&table, at("09:00"), at("10:00")).due,
        slot(Verdict::Run, "10:00", 0)
    );
    assert_eq!(
        look(&table, at("09:00"), at("15:30")).due,
        slot(Verdict::Skip(SkipReason::Missed), "15:00", 5)
    );
    table.missed = Missed::Once;
    let late = look(&table, at("09:00"), at("15:30"));
    assert_eq!(late.due, slot(Verdict::RunLate, "15:00", 5));
    assert_eq!(late.next, Some(at("16:00")));
    // A late run waits for the end of the quiet hours.
    table.quiet = "14-17".parse().ok();
    let owed = look(&table, at("09:00"), at("15:30"));
    assert_eq!((owed.due, owed.next), (None, Some(at("17:00"))));
    assert_eq!(
        look(&table, at("09:00"), at("17:00")).due,
        slot(Verdict::Run, "17:00", 7)
    );
    // Nothing is owed for slots that were quiet themselves.
    let quiet = slot(Verdict::Skip(SkipReason::Quiet), "15:00", 1);
    assert_eq!(look(&table, at("13:00"), at("15:30")).due, quiet);
    table.missed = Missed::Skip;
    let quiet = slot(Verdict::Skip(SkipReason::Quiet), "15:00", 5);
    assert_eq!(look(&table, at("09:00"), at("15:30")).due, quiet);
}

fn any_when() -> impl Strategy<Value = When> {
    prop_oneof![
        (1_i64..5_000, 0_i64..100_000).prop_map(|(minutes, from)| When::Every {
            ms: minutes * 60_000,
            from
        }),
        (0_u32..60, 0_u32..24)
            .prop_map(|(minute, hour)| cron(&format!("{minute} {hour} * * *"), "Europe/Berlin")),
        (1_u32..30).prop_map(|step| cron(&format!("*/{step} * * * *"), "America/New_York")),
        (0_i64..500_000_000).prop_map(|later| When::At(START + later)),
    ]
}

/// The beginning of March 2026, so that the spring change is near.
const START: i64 = 1_772_323_200_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However the looks are spread, every slot is looked at once, in order, as due or as counted.
    #[test]
    fn looks_find_every_slot_once(when in any_when(), steps in proptest::collection::vec(1_i64..40_000_000, 1..30), jitter in 0_i64..600_000) {
        let table = Timetable { jitter_ms: jitter, ..Timetable::new(when) };
        let zone = Zone::named("UTC").unwrap();
        let (mut handled, mut now, mut seen) = (START, START, 0);
        for step in steps {
            now += step;
            let look = table.look(&zone, "rose", handled, now);
            if let Some(slot) = look.due {
                prop_assert!(slot.at > handled && slot.at <= now);
                prop_assert!(slot.missed_before < MOST_COUNTED);
                seen += slot.missed_before + 1;
                handled = slot.at;
            }
            if let Some(next) = look.next {
                prop_assert!(next > now);
            }
        }
        let all = table.when.slots_after(START).take_while(|slot| *slot <= handled).count();
        prop_assert_eq!(seen, all);
    }
}
