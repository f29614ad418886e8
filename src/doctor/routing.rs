//! Places without a rule for an agent, and places where people are ignored. Rules without any
//! possible match are errors of the config.

use rusqlite::Connection;

use super::Patient;
use crate::access::PLACE_CLOSED;
use crate::clock::now_ms;
use crate::config::Config;
use crate::console::group_of;
use crate::domain::SessionKey;
use crate::operations::Operations;
use crate::operations::diagnosis::Finding;
use crate::operations::house::{House, Settings};
use crate::operations::named::Named;
use crate::operations::opening::Opening;
use crate::records::inbox;
use crate::records::sessions;
use crate::routing::Rank;

/// Places told by name.
const MOST_NAMED: usize = 5;
/// Messages ignored longer ago are no news.
const LATELY_MS: i64 = 24 * 60 * 60 * 1000;

/// Shared places, by the oddity found.
struct Found {
    /// Open, and without a rule.
    by_default: Vec<String>,
    /// Closed, and people wrote there.
    ignored: Vec<Named>,
    /// How to open the first closed place.
    opening: Option<Opening>,
}

pub(super) async fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let idle = patient
        .snapshot
        .as_ref()
        .and_then(|snapshot| idle(&snapshot.config));
    let places = look(patient).await.map_or_else(Vec::new, findings);
    idle.into_iter().chain(places).collect()
}

/// Bindings to a switched-off platform.
fn idle(config: &Config) -> Option<Finding> {
    let problems = crate::routing::check::idle(config);
    let first = problems.first()?;
    let text = match problems.len() {
        1 => "1 binding is to a platform that is off.".to_owned(),
        count => format!("{count} bindings are to platforms that are off."),
    };
    let finding = Finding::warn("routing.off", text).cause(first.label.clone());
    Some(finding.fix("parlor setup connects a bot; or delete the bindings from config.toml"))
}

async fn look(patient: &Patient<'_>) -> Option<Found> {
    let (db, snapshot) = (patient.db()?, patient.snapshot.as_ref()?);
    let house = House::load(db, snapshot.config.clone(), snapshot.table.clone());
    let names = patient.operations.map(Operations::ignored_names);
    let house = house.await.ok()?.with_places(names.unwrap_or_default());
    let agent = snapshot.config.default_agent.clone();
    let read = move |connection: &Connection| {
        let (mut by_default, settings) = (Vec::new(), Settings::load(connection)?);
        for place in sessions::all(connection, i64::MIN)? {
            // A private chat with the default agent is the usual case.
            if !place.key.is_shared() {
                continue;
            }
            let holder = house.holder_among(&settings, &place.key, Some(&place))?;
            let is_default = holder.resolved.route.rule.rank() == Rank::Default;
            if is_default && holder.silence.is_none() {
                by_default.push(house.names.place(&place.key).text());
            }
        }
        let mut ignored: Vec<SessionKey> = Vec::new();
        for row in inbox::ignored(connection, now_ms() - LATELY_MS)? {
            let place = group_of(&row.place);
            if row.reason != PLACE_CLOSED || ignored.contains(&place) {
                continue;
            }
            // The place may have been opened since.
            let of_place = sessions::of(connection, &row.place)?;
            let holder = house.holder_among(&settings, &row.place, of_place.as_ref())?;
            if holder.silence.is_some() || !holder.is_sure {
                ignored.push(place);
            }
        }
        let first = ignored.first();
        let opening = first.map(|place| Opening::of(&house.config, &house.table, place, &agent));
        Ok(Found {
            opening,
            ignored: ignored.iter().map(|key| house.names.place(key)).collect(),
            by_default,
        })
    };
    db.read(read).await.ok()
}

fn findings(
    Found {
        by_default,
        ignored,
        opening,
    }: Found,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !by_default.is_empty() {
        let places = match by_default.len() {
            1 => "1 shared place has no rule and falls".to_owned(),
            count => format!("{count} shared places have no rule and fall"),
        };
        let text = format!("{places} to the default agent: {}.", named(&by_default));
        let finding = Finding::note("routing", text);
        findings.push(finding.fix("Give them to agents with /bind NAME there, or in config.toml."));
    }
    findings.extend(of_ignored(&ignored, opening.as_ref()));
    if findings.is_empty() {
        let text = "Every shared place that was used has a rule.";
        findings.push(Finding::ok("routing", text));
    }
    findings
}

fn of_ignored(places: &[Named], opening: Option<&Opening>) -> Option<Finding> {
    let (text, fix) = match places {
        [] => return None,
        [place] => (
            format!(
                "Messages in {} were ignored today, because no rule opens it.",
                place.text()
            ),
            opening.map(Opening::fix).unwrap_or_default(),
        ),
        several => {
            let names: Vec<String> = several.iter().map(Named::text).collect();
            (
                format!(
                    "Messages in {} places were ignored today, because no rule opens them: {}.",
                    several.len(),
                    named(&names)
                ),
                "parlor sessions list --ignored, then /bind NAME there, written by an owner; parlor route explain PLACE tells whether parlor pin does it too"
                    .to_owned(),
            )
        }
    };
    Some(Finding::note("routing.ignored", text).fix(fix))
}

fn named(places: &[String]) -> String {
    let named = places[..places.len().min(MOST_NAMED)].join(", ");
    match places.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
