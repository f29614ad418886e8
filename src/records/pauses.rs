//! Work that an owner has paused for the whole house: the `pauses` table.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::audit::{self, Action, Actor, Change};
use crate::access::grants::Grantor;

/// A kind of work with a switch. The text form is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Model calls without a waiting person: summaries, subagents that report later, jobs.
    Background,
}

impl Work {
    pub(crate) const ALL: [Work; 1] = [Work::Background];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Work::Background => "background",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Work::ALL.into_iter().find(|work| work.as_str() == text)
    }
}

/// The author and the time of a pause. None while the work goes on.
pub(crate) fn get(connection: &Connection, what: Work) -> rusqlite::Result<Option<Grantor>> {
    connection
        .prepare_cached("SELECT set_by, set_name, set_at FROM pauses WHERE what = ?1")?
        .query_row([what.as_str()], |row| {
            Ok(Grantor {
                id: row.get(0)?,
                name: row.get(1)?,
                at: row.get(2)?,
            })
        })
        .optional()
}

/// False if the work was paused before.
pub(crate) fn pause(
    tx: &Transaction<'_>,
    what: Work,
    actor: &Actor,
    now: i64,
) -> rusqlite::Result<bool> {
    let by = actor.grantor(now);
    let paused = tx.execute(
        "INSERT OR IGNORE INTO pauses (what, set_by, set_name, set_at) VALUES (?1, ?2, ?3, ?4)",
        params![what.as_str(), by.id, by.name, by.at],
    )?;
    note(tx, Action::Pause, what, actor, now, paused == 1)
}

/// False if the work was not paused.
pub(crate) fn resume(
    tx: &Transaction<'_>,
    what: Work,
    actor: &Actor,
    now: i64,
) -> rusqlite::Result<bool> {
    let resumed = tx.execute("DELETE FROM pauses WHERE what = ?1", [what.as_str()])?;
    note(tx, Action::Resume, what, actor, now, resumed == 1)
}

fn note(
    tx: &Transaction<'_>,
    action: Action,
    what: Work,
    actor: &Actor,
    now: i64,
    has_changed: bool,
) -> rusqlite::Result<bool> {
    if has_changed {
        let change = Change::new(action).about(what.as_str());
        audit::note(tx, actor, &change, now)?;
    }
    Ok(has_changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    #[tokio::test]
    async fn a_switch_is_told_by_whom_and_audited_once() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let work = move |tx: &Transaction<'_>| {
            let cli = Actor::Cli {
                login: "ada".into(),
            };
            assert!(!resume(tx, Work::Background, &cli, 1)?);
            assert!(pause(tx, Work::Background, &cli, 2)?);
            assert!(!pause(tx, Work::Background, &cli, 3)?);
            let by = get(tx, Work::Background)?.expect("paused");
            assert_eq!((by.name.as_deref(), by.at), (Some("ada"), 2));
            assert!(resume(tx, Work::Background, &cli, 4)?);
            assert_eq!(get(tx, Work::Background)?, None);
            assert_eq!(audit::latest(tx, &audit::Wanted::default(), 10)?.len(), 2);
            Ok(())
        };
        db.write(work).await.unwrap();
    }
}
