//! Deletes old rows now and then while the process runs.
//!
//! Rows people may want to look back on stay: conversations, memories, failed sends.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Transaction;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use super::GatewayState;
use crate::access::people;
use crate::channels::outgoing;
use crate::clock::now_ms;
use crate::delivery::{outbox, preview_messages};
use crate::records::{
    approvals, audit, decisions, guest_notices, http_keys, inbox, jobs, journal, ledger,
    mini_app_entries, subagents, summaries, transcript, turn_log, turn_notes,
};
use crate::routing::places;
use crate::storage::{Db, Durability, StoreError};

/// Cleaning waits until the start is over.
const FIRST_CLEANING_AFTER: Duration = Duration::from_secs(60);
const CLEAN_EVERY: Duration = Duration::from_secs(6 * 60 * 60);
/// Idle chats and people are forgotten this often. Until then their limits stay in memory.
const FORGET_IDLE_EVERY: Duration = Duration::from_secs(10 * 60);
/// Rows of a table deleted in a single transaction. The writer is busy for a millisecond or two.
const PORTION: u32 = 200;

/// A clock corrected by less has not jumped.
const MOST_DRIFT_MS: i64 = 5 * 60 * 1000;
/// After a longer time without any write, the gateway was off, or the clock is wrong.
const LONGEST_AWAY_MS: i64 = 14 * 24 * 60 * 60 * 1000;

/// Deletes old rows, at most the given number, and returns how many are gone.
type Forget = fn(&Transaction<'_>, i64, u32) -> rusqlite::Result<usize>;

/// Tables to clean, with the function for each.
const CHORES: [(&str, Forget); 19] = [
    ("inbox", inbox::forget_old),
    ("outbox", outbox::forget_old),
    ("preview_messages", preview_messages::forget_old),
    ("people", people::forget_old),
    ("guest_notices", guest_notices::forget_old),
    ("decisions", decisions::forget_old),
    ("audit", audit::forget_old),
    ("http_keys", http_keys::forget_old),
    ("turn_notes", turn_notes::forget_old),
    ("turns", turn_log::forget_old),
    ("mini_app_entries", mini_app_entries::forget_old),
    (
        "spending, budgets, budget_notices, month_budgets",
        ledger::forget_old,
    ),
    ("subagents", subagents::forget_old),
    ("approvals", approvals::forget_old),
    ("jobs, job_runs", jobs::forget_old),
    ("messages", transcript::forget_old),
    ("places", places::forget_old),
    ("summaries", summaries::forget_old),
    ("open_turns, rounds, tool_calls", journal::forget_orphans),
];

pub(super) async fn keep_house(state: Arc<GatewayState>) {
    let mut cleaning = interval_at(Instant::now() + FIRST_CLEANING_AFTER, CLEAN_EVERY);
    let mut forgetting = interval_at(Instant::now() + FORGET_IDLE_EVERY, FORGET_IDLE_EVERY);
    let newest = state
        .services
        .db
        .read(inbox::newest_at)
        .await
        .ok()
        .flatten();
    let mut clock = ClockWatch::begin(newest, now_ms(), Instant::now());
    loop {
        tokio::select! {
            _ = cleaning.tick() => {
                if clock.is_steady(now_ms(), Instant::now()) {
                    clean(&state.services.db, now_ms(), &state.stop).await;
                    tidy_outgoing(&state).await;
                    wipe_index(&state).await;
                } else {
                    tracing::debug!("the clock has jumped, or nothing was written for long; old rows are kept until the next look");
                }
            }
            _ = forgetting.tick() => {
                state.delivery.forget_idle();
                state.services.sessions.forget_idle();
                state.paces.borrow().forget_idle();
                state.ignored.forget_idle();
            }
            () = state.stop.cancelled() => return,
        }
    }
}

/// Watches the clock between two cleanings, because a wrong clock makes all rows look old.
struct ClockWatch {
    wall_ms: i64,
    at: Instant,
    /// False if the time at the beginning of the watch is in doubt.
    is_trusted: bool,
}

impl ClockWatch {
    /// `newest` is the time of the last write by an earlier process.
    fn begin(newest: Option<i64>, wall_ms: i64, at: Instant) -> Self {
        let is_trusted =
            newest.is_some_and(|newest| wall_ms.saturating_sub(newest) <= LONGEST_AWAY_MS);
        ClockWatch {
            wall_ms,
            at,
            is_trusted,
        }
    }

    /// Whether the clock and the elapsed time agree since the last check.
    fn is_steady(&mut self, wall_ms: i64, at: Instant) -> bool {
        let passed = i64::try_from((at - self.at).as_millis()).unwrap_or(i64::MAX);
        let jumped = wall_ms.saturating_sub(self.wall_ms).saturating_sub(passed);
        let was_trusted = self.is_trusted;
        *self = ClockWatch {
            wall_ms,
            at,
            is_trusted: true,
        };
        was_trusted && jumped.saturating_abs() <= MOST_DRIFT_MS
    }
}

async fn clean(db: &Db, now: i64, stop: &CancellationToken) {
    for (tables, forget) in CHORES {
        match clean_one(db, forget, now, stop).await {
            Ok(rows) => tracing::debug!("forgot {rows} old rows of {tables}"),
            Err(error) => tracing::warn!("old rows of {tables} could not be forgotten: {error}"),
        }
    }
}

/// In portions, so writes people wait for come in between.
async fn clean_one(
    db: &Db,
    forget: Forget,
    now: i64,
    stop: &CancellationToken,
) -> Result<usize, StoreError> {
    let mut all = 0;
    while !stop.is_cancelled() {
        // Rows brought back by a power cut are deleted the next time.
        let rows = db
            .write_as(Durability::Kill, move |tx| forget(tx, now, PORTION))
            .await?;
        all += rows;
        if rows < PORTION as usize {
            break;
        }
    }
    Ok(all)
}

/// Words of changed files, and of memories forgotten right before a kill.
async fn wipe_index(state: &GatewayState) {
    if let Err(error) = state.services.memories.wipe().await {
        tracing::warn!("deleted words could not be taken out of the index: {error}");
    }
}

/// Removes copies of files with no outbox row left.
async fn tidy_outgoing(state: &GatewayState) {
    let folder = outgoing::folder(&state.home);
    let removed = match state.services.db.read(outbox::files).await {
        Ok(referred) => tokio::task::spawn_blocking(move || outgoing::tidy(&folder, &referred))
            .await
            .unwrap_or(0),
        Err(_) => 0,
    };
    tracing::debug!("removed {removed} files that nothing sends");
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    const NOW: i64 = 1_000 * DAY_MS;

    /// Tables never cleaned, because people want their rows, or because they cannot grow.
    const KEPT: &[&str] = &[
        "agent_former_ids",
        "agents",
        "chat_aliases",
        "chat_waits",
        "config_history",
        "declined",
        "delivery_off",
        "discord_channels",
        "discord_commands",
        "discord_heard",
        "discord_seen",
        "discord_servers",
        "imports",
        "keys",
        "memories",
        "memories_fts",
        "memories_fts_config",
        "memories_fts_data",
        "memories_fts_docsize",
        "memories_fts_idx",
        "memory_files",
        "memory_scopes",
        "model_overrides",
        "openings",
        "pause_notices",
        "paused_agents",
        "pauses",
        "people_revision",
        "person_links",
        "person_names",
        "person_numbers",
        "person_roles",
        "pins",
        "prompts_forgotten",
        "provider_notices",
        "speakers",
        "telegram_menus",
        "timed_pins",
        "web_screen",
    ];

    async fn open() -> (tempfile::TempDir, Db) {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Db::open(&folder.path().join("parlor.db"))
            .await
            .expect("the store opens");
        (folder, db)
    }

    async fn count(db: &Db, sql: &'static str) -> i64 {
        db.read(move |connection| connection.query_row(sql, [], |row| row.get(0)))
            .await
            .expect("the question has an answer")
    }

    /// A new table is either cleaned, or listed above for a reason.
    #[tokio::test]
    async fn every_table_is_cleaned_or_kept_for_a_reason() {
        let (_folder, db) = open().await;
        let sql =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let tables = db.read(move |connection| {
            let mut statement = connection.prepare(sql)?;
            statement
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<rusqlite::Result<Vec<_>>>()
        });
        let mut known: Vec<&str> = CHORES
            .iter()
            .flat_map(|(tables, _)| tables.split(", "))
            .chain(KEPT.iter().copied())
            .collect();
        let mut tables = tables.await.expect("the schema can be read");
        known.sort_unstable();
        tables.sort_unstable();
        assert_eq!(tables, known);
    }

    #[test]
    fn a_clock_that_jumps_makes_nothing_old() {
        let (began, hours) = (Instant::now(), |hours: u64| {
            Duration::from_secs(hours * 60 * 60)
        });
        let hour_ms = DAY_MS / 24;
        let mut clock = ClockWatch::begin(Some(NOW - DAY_MS), NOW, began);
        assert!(
            clock.is_steady(NOW + 6 * hour_ms + 1000, began + hours(6)),
            "a second of drift is none"
        );
        assert!(
            !clock.is_steady(NOW + 30 * DAY_MS, began + hours(12)),
            "a month ahead within six hours"
        );
        assert!(
            !clock.is_steady(NOW + 18 * hour_ms, began + hours(18)),
            "and back"
        );
        assert!(clock.is_steady(NOW + 24 * hour_ms, began + hours(24)));
        let mut wrong_at_the_start = ClockWatch::begin(Some(NOW - 3_650 * DAY_MS), NOW, began);
        assert!(!wrong_at_the_start.is_steady(NOW, began));
        assert!(
            wrong_at_the_start.is_steady(NOW + 6 * hour_ms, began + hours(6)),
            "the house was closed for long after all"
        );
    }

    /// Turns, files and previews are named after the id of a message.
    #[tokio::test]
    async fn ids_go_on_where_cleaning_has_emptied_a_table() {
        let (_folder, db) = open().await;
        let arrive = |update: i64| {
            let sql = "INSERT INTO inbox (platform, update_id, state, received_at, closed_at) VALUES ('telegram', ?1, 'done', 0, 0)";
            db.write(move |tx| {
                tx.execute(sql, [update.to_string()])
                    .map(|_| tx.last_insert_rowid())
            })
        };
        let (first, second) = (arrive(1).await, arrive(2).await);
        assert_eq!((first.expect("goes in"), second.expect("goes in")), (1, 2));
        clean(&db, NOW, &CancellationToken::new()).await;
        assert_eq!(count(&db, "SELECT count(*) FROM inbox").await, 0);
        assert_eq!(arrive(3).await.expect("goes in"), 3);
    }

    #[tokio::test]
    async fn old_turns_go_in_portions_and_new_ones_stay() {
        let (_folder, db) = open().await;
        let fill = format!(
            "INSERT INTO agents (uid, slug, created_at) VALUES ('a', 'main', 0);
             WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 450)
             INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome)
                 SELECT number, 1, 'a', 'm', 'r', 0, {NOW} - 91 * {DAY_MS}, 'answered' FROM numbers;
             INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome)
                 VALUES (451, 1, 'a', 'm', 'r', 0, {NOW} - 89 * {DAY_MS}, 'answered');"
        );
        db.write(move |tx| tx.execute_batch(&fill))
            .await
            .expect("they are there");
        let portion = db.write(|tx| turn_log::forget_old(tx, NOW, 100)).await;
        assert_eq!(portion.expect("it works"), 100, "no more than it was let");
        clean(&db, NOW, &CancellationToken::new()).await;
        assert_eq!(count(&db, "SELECT count(*) FROM turns").await, 1);
    }

    #[tokio::test]
    async fn what_runs_said_goes_and_what_people_said_stays() {
        let (_folder, db) = open().await;
        let fill = format!(
            "INSERT INTO agents (uid, slug, created_at) VALUES ('a', 'main', 0);
             INSERT INTO places (id, key, conversation, created_at, active_at) VALUES
                 (1, 'telegram:dm:1', 2, 0, 0), (2, 'child:1-0-0', 1, 0, {NOW} - 451 * {DAY_MS}),
                 (3, 'child:2-0-0', 1, 0, {NOW}), (4, 'child:3-0-0', 1, {NOW} - 31 * {DAY_MS}, {NOW} - 31 * {DAY_MS});
             INSERT INTO messages (place_id, conversation, kind, text, created_at) VALUES
                 (1, 1, 'person', 'hello', 0), (2, 1, 'person', 'a task', 0), (3, 1, 'person', 'a new task', 0),
                 (4, 1, 'person', 'a task of last month', 0);
             INSERT INTO summaries (place_id, conversation, part, upto, messages, agent_uid, text, created_at) VALUES
                 (1, 1, '', 1, 1, 'a', 'of the conversation before', 0), (1, 2, '', 1, 1, 'a', 'of the present conversation', 0),
                 (2, 1, '', 1, 1, 'a', 'of the subagent', 0);"
        );
        db.write(move |tx| tx.execute_batch(&fill))
            .await
            .expect("they are there");
        clean(&db, NOW, &CancellationToken::new()).await;
        assert_eq!(
            count(
                &db,
                "SELECT count(*) FROM messages WHERE text IN ('hello', 'a new task')"
            )
            .await,
            2
        );
        assert_eq!(count(&db, "SELECT count(*) FROM messages").await, 2);
        assert_eq!(count(&db, "SELECT count(*) FROM places").await, 3);
        assert_eq!(
            count(
                &db,
                "SELECT count(*) FROM summaries WHERE text = 'of the present conversation'"
            )
            .await,
            1
        );
        assert_eq!(count(&db, "SELECT count(*) FROM summaries").await, 1);
    }
}
