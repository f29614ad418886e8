//! The database: whole, of this version's schema, and not from the future; and the waiting
//! messages.

use std::fs;

use rusqlite::Connection;

use super::Patient;
use crate::clock::now_ms;
use crate::delivery::{held, outbox};
use crate::operations::diagnosis::Finding;
use crate::records::inbox;
use crate::storage;

/// A log beside the database above this size is not merged as often as needed.
const LARGE_LOG: u64 = 256 * 1024 * 1024;
/// Rows may be a little ahead: clocks are set.
const AHEAD_MS: i64 = 60 * 1000;

pub(super) async fn check(patient: &Patient<'_>, problem: Option<String>) -> Vec<Finding> {
    let path = patient.home.database();
    if let Some(problem) = problem {
        let found = Finding::bad("database", "The database cannot be used.").cause(problem);
        return vec![found.fix("Bring back a backup: parlor restore FILE")];
    }
    let Some(db) = patient.db() else {
        return vec![match path.exists() {
            true => Finding::note("database", "The database is of an older version.")
                .fix("The next start brings it up to date, and keeps a copy in backups/."),
            false => Finding::note("database", "There is no database yet.")
                .fix("The first start makes one."),
        }];
    };
    let read = |connection: &Connection| {
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        let newest = inbox::newest_at(connection)?;
        Ok((found, newest, outbox::troubles(connection, now_ms())?))
    };
    let (found, newest, troubles) = match db.read(read).await {
        Ok(read) => read,
        Err(error) => {
            let found = Finding::bad("database", "The database cannot be read.");
            let found = found.cause(error.to_string());
            return vec![found.fix("Bring back a backup: parlor restore FILE")];
        }
    };
    let mut findings = vec![whole(patient, &found)];
    findings.extend(log(patient));
    if newest.is_some_and(|newest| newest > now_ms() + AHEAD_MS) {
        let text = "The newest message is from the future: the clock was set back.";
        findings.push(Finding::warn("clock", text).fix("timedatectl set-ntp true"));
    } else {
        findings.push(Finding::ok(
            "clock",
            "The clock of this machine fits the messages.",
        ));
    }
    findings.push(delivery(&troubles, patient.has_gateway()));
    findings
}

fn whole(patient: &Patient<'_>, found: &str) -> Finding {
    if found != "ok" {
        let damaged = Finding::bad("database", "The database is damaged.").cause(found);
        return damaged.fix("Bring back a backup: parlor restore FILE");
    }
    let bytes = fs::metadata(patient.home.database()).map_or(0, |metadata| metadata.len());
    Finding::ok(
        "database",
        format!(
            "The database is whole: schema {}, {} KB.",
            storage::schema(),
            bytes / 1000
        ),
    )
}

fn log(patient: &Patient<'_>) -> Option<Finding> {
    let path = patient.home.path().join("parlor.db-wal");
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let text = format!("parlor.db-wal has {} MB.", bytes / 1_000_000);
    (bytes > LARGE_LOG).then(|| {
        Finding::warn("database.log", text)
            .cause("another program keeps the database open for reading")
            .fix("Close it, or restart the gateway.")
    })
}

fn delivery(troubles: &outbox::Troubles, has_gateway: bool) -> Finding {
    if troubles.failed > 0 {
        let text = format!("{} answers could not be delivered.", troubles.failed);
        return Finding::warn("delivery", text).fix("parlor failed list, then parlor failed retry");
    }
    let unsent = || held::unsent(troubles.on_the_way, has_gateway);
    if troubles.on_the_way > 0 && !has_gateway {
        return Finding::note("delivery", unsent()).fix("parlor run");
    }
    if troubles.waiting > 0 {
        let text = match troubles.waiting {
            1 => "1 answer waits for more than a minute.".to_owned(),
            count => format!("{count} answers wait for more than a minute."),
        };
        let found = Finding::warn("delivery", text)
            .fix("Nothing; parlor status tells where and until when.");
        return match troubles.oldest.as_ref().and_then(|(_, why)| why.clone()) {
            Some(why) => found.cause(why),
            None => found,
        };
    }
    match troubles.on_the_way {
        0 => Finding::ok("delivery", "No answer waits to be delivered."),
        _ => Finding::ok("delivery", unsent()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_on_its_way_is_told() {
        let mut troubles = outbox::Troubles {
            failed: 0,
            kept: 0,
            waiting: 0,
            oldest: None,
            repeated: 0,
            on_the_way: 0,
        };
        let text = |troubles: &outbox::Troubles, has_gateway| delivery(troubles, has_gateway).text;
        assert_eq!(text(&troubles, false), "No answer waits to be delivered.");
        troubles.on_the_way = 1;
        assert_eq!(text(&troubles, true), "1 answer waits to be sent.");
        assert_eq!(
            text(&troubles, false),
            "1 answer waits to be sent; it goes out at the next `parlor run`."
        );
    }
}
