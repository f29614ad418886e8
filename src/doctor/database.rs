//! The database: whole, of this version's schema, and not from the future; and the messages that
//! wait in it.

use std::fs;

use rusqlite::Connection;

use super::Patient;
use crate::clock::now_ms;
use crate::delivery::outbox;
use crate::operations::diagnosis::Finding;
use crate::records::inbox;
use crate::storage;

/// A log beside the database that is larger than this is not merged as it should be.
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
        findings.push(Finding::ok("clock", "The clock goes with the messages."));
    }
    findings.push(delivery(&troubles));
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

fn delivery(troubles: &outbox::Troubles) -> Finding {
    if troubles.failed > 0 {
        let text = format!("{} answers could not be delivered.", troubles.failed);
        return Finding::warn("delivery", text).fix("parlor failed list, then parlor failed retry");
    }
    if troubles.waiting > 0 {
        let text = format!("{} answers wait for more than a minute.", troubles.waiting);
        let found = Finding::warn("delivery", text).fix("parlor status");
        return match troubles.oldest.as_ref().and_then(|(_, why)| why.clone()) {
            Some(why) => found.cause(why),
            None => found,
        };
    }
    Finding::ok("delivery", "No answer waits to be delivered.")
}
