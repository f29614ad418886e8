//! Places that no rule gives to an agent. Rules that can never match are errors of the config.

use rusqlite::Connection;

use super::Patient;
use crate::operations::diagnosis::Finding;
use crate::operations::house::House;
use crate::records::sessions;
use crate::routing::Rank;

/// Places that are named.
const MOST_NAMED: usize = 5;

pub(super) async fn check(patient: &Patient<'_>) -> Option<Finding> {
    let (db, snapshot) = (patient.db()?, patient.snapshot.as_ref()?);
    let house = House::load(db, snapshot.config.clone(), snapshot.table.clone());
    let house = house.await.ok()?;
    let read = move |connection: &Connection| {
        let mut found = Vec::new();
        for place in sessions::all(connection, i64::MIN)? {
            // A private chat that falls to the default agent is what everybody expects.
            if !place.key.is_shared() {
                continue;
            }
            let holder = house.holder(connection, &place)?;
            if holder.resolved.route.rule.rank() == Rank::Default {
                found.push(place.key.to_string());
            }
        }
        Ok(found)
    };
    let found = db.read(read).await.ok()?;
    if found.is_empty() {
        return Some(Finding::ok(
            "routing",
            "Every shared place that was used has a rule.",
        ));
    }
    let named: Vec<&str> = found.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = match found.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let places = match found.len() {
        1 => "1 shared place has no rule and falls".to_owned(),
        count => format!("{count} shared places have no rule and fall"),
    };
    let text = format!("{places} to the default agent: {}{more}.", named.join(", "));
    let finding = Finding::note("routing", text);
    Some(finding.fix("Give them to agents with /bind NAME there, or in config.toml."))
}
