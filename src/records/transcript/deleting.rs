//! Blanks the words of deleted messages.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction, params};

use super::super::{summaries, turn_notes};
use super::Conversation;
use crate::domain::{MessageId, Platform, SessionKey};
use crate::routing::places;

/// Replaces the words of a deleted message.
pub(super) const DELETED: &str = "[deleted]";

/// The rows of a single message, also in copies of a conversation at the terminal, whose own
/// messages have ids of another form. The `+` keeps SQLite from searching by place, because a
/// platform has most rows of the table.
const ALONE: &str = "SELECT id FROM messages WHERE written_as = ?1 AND +place_id IN (SELECT id FROM places WHERE key GLOB ?2 OR key GLOB 'local:*' OR key GLOB 'web:*')";
/// The rows of a message sent together with others, such as in an album.
const AMONG_OTHERS: &str = "SELECT id FROM messages
    WHERE instr(trim(written_as), ' ') > 0 AND instr(written_as, ?1) > 0 AND +place_id IN (SELECT id FROM places WHERE key GLOB ?2 OR key GLOB 'local:*' OR key GLOB 'web:*')";

/// Blanks the words of these messages of a platform, in every conversation. Summaries over these
/// messages are deleted, and prompts of their places. Messages taken as one share a row, and lose
/// all their words. Returns the number of rows.
pub(crate) fn blank(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
    now: i64,
) -> rusqlite::Result<usize> {
    let places = format!("{}:*", platform.as_str());
    let mut rows = BTreeSet::<i64>::new();
    for sql in [ALONE, AMONG_OTHERS] {
        let mut statement = tx.prepare_cached(sql)?;
        for message in messages {
            let found = statement
                .query_map(params![format!(" {} ", message.0), places], |row| {
                    row.get(0)
                })?;
            found
                .map(|row| row.map(|row| rows.insert(row)))
                .collect::<rusqlite::Result<Vec<_>>>()?;
        }
    }
    let mut statement = tx.prepare_cached(
        "UPDATE messages SET text = ?2, around = NULL, deleted_at = ?3 WHERE id = ?1 AND kind = 'person' AND deleted_at IS NULL",
    )?;
    let mut blanked = 0;
    for row in rows {
        blanked += statement.execute(params![row, DELETED, now])?;
        summaries::forget_covering(tx, row)?;
        turn_notes::forget_prompts_with(tx, row)?;
    }
    Ok(blanked)
}

/// Whether words of a conversation were blanked since this time, up to this row.
pub(crate) fn was_blanked(
    connection: &Connection,
    place: &SessionKey,
    conversation: Conversation,
    upto: i64,
    since: i64,
) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM messages WHERE place_id = ?1 AND conversation = ?2 AND id <= ?3 AND deleted_at >= ?4";
    connection.prepare_cached(sql)?.exists(params![
        places::id(connection, place)?,
        conversation.0,
        upto,
        since
    ])
}

#[cfg(test)]
mod tests {
    use super::super::super::inbox::Accepted;
    use super::super::super::journal::AskedMessage;
    use super::super::super::summaries::Summary;
    use super::super::super::view::View;
    use super::super::{Message, Spot, after, append_question, conversation};
    use super::*;
    use crate::domain::{Addressed, AgentUid, Extras, Inbound, Origin, Role};
    use crate::storage::Db;

    fn place() -> SessionKey {
        "discord:channel:5".parse().unwrap()
    }

    fn accepted(text: &str, message: &str) -> Accepted {
        let inbound = Inbound {
            update_id: message.into(),
            origin: Origin::new(place(), "discord:111".parse().unwrap()),
            person_name: "Alice".into(),
            text: text.into(),
            addressed: Addressed::Privately,
            message: MessageId(message.into()),
            sent_at: 0,
            extras: Extras::default(),
        };
        Accepted::new(0, inbound)
    }

    /// Four questions. The third has two messages taken as one.
    fn write(tx: &Transaction<'_>) -> rusqlite::Result<Vec<i64>> {
        let agent = "00000000-0000-0000-0000-000000000001"
            .parse::<AgentUid>()
            .unwrap();
        tx.execute(
            "INSERT INTO agents (uid, slug, created_at) VALUES (?1, 'a', 0)",
            [agent.to_string()],
        )?;
        let spot = Spot {
            conversation: conversation(tx, &place())?,
            part: None,
        };
        let together = Accepted {
            joined: vec![accepted("", "4")],
            ..accepted("", "3")
        };
        let said = [
            ("one", accepted("", "1")),
            ("two", accepted("", "22")),
            ("three and four", together),
            ("five", accepted("", "5")),
        ];
        for (words, accepted) in said {
            let inbound = Inbound {
                text: words.into(),
                ..accepted.inbound.clone()
            };
            let said = AskedMessage {
                inbound,
                role: Role::Guest,
                rows: vec![0],
            };
            append_question(tx, &accepted, &[said], spot, 10)?;
        }
        let rows: Vec<i64> = after(tx, &place(), spot.conversation, View::Whole, 0)?
            .iter()
            .map(|message| message.id)
            .collect();
        let summary = Summary {
            labels: crate::domain::Labels::NONE,
            text: "one, two".into(),
            upto: rows[1],
            messages: 2,
        };
        summaries::keep(
            tx,
            &place(),
            (spot.conversation, View::Whole),
            agent,
            &summary,
            11,
        )?;
        Ok(rows)
    }

    fn texts(tx: &Transaction<'_>) -> String {
        let messages = after(
            tx,
            &place(),
            conversation(tx, &place()).unwrap(),
            View::Whole,
            0,
        )
        .unwrap();
        messages
            .into_iter()
            .map(|Message { said, .. }| match said.around.as_slice() {
                [] => said.text.clone(),
                around => format!("[{}]", around[0]),
            })
            .collect::<Vec<_>>()
            .join(" / ")
    }

    fn delete(tx: &Transaction<'_>, message: &str, now: i64) -> rusqlite::Result<usize> {
        blank(tx, Platform::Discord, &[MessageId(message.into())], now)
    }

    #[tokio::test]
    async fn the_words_go_and_with_them_what_was_made_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let work = |tx: &Transaction<'_>| {
            let (rows, own) = (write(tx)?, conversation(tx, &place())?);
            let is_summed_up =
                || summaries::of(tx, &place(), own, View::Whole).map(|summary| summary.is_some());
            delete(tx, "2", 20)?;
            blank(tx, Platform::Telegram, &[MessageId("1".into())], 20)?;
            assert_eq!(
                texts(tx),
                "one / two / three and four / five",
                "those are other messages"
            );
            delete(tx, "5", 20)?;
            delete(tx, "4", 20)?;
            assert_eq!(texts(tx), "one / two / [deleted] / [deleted]");
            assert!(
                is_summed_up()?,
                "the summary stands for what was said before"
            );
            assert!(
                !was_blanked(tx, &place(), own, rows[1], 0)?
                    && was_blanked(tx, &place(), own, rows[3], 20)?
            );
            delete(tx, "1", 30)?;
            assert_eq!(texts(tx), "[deleted] / two / [deleted] / [deleted]");
            assert!(!is_summed_up()?, "it has words of it");
            assert!(
                was_blanked(tx, &place(), own, rows[1], 30)?
                    && !was_blanked(tx, &place(), own, rows[1], 31)?
            );
            delete(tx, "1", 40)?;
            assert!(
                !was_blanked(tx, &place(), own, rows[1], 31)?,
                "deleted once"
            );
            Ok(())
        };
        db.write(work).await.unwrap();
    }

    /// On a server with many deletions, a search through the whole table would be too slow.
    #[tokio::test]
    async fn few_rows_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        for (sql, index) in [
            (ALONE, "messages_written_as"),
            (AMONG_OTHERS, "messages_of_several"),
        ] {
            let explain = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: String = db
                .read(move |connection| {
                    connection.query_row(&explain, ["", ""], |row| row.get("detail"))
                })
                .await
                .unwrap();
            assert!(plan.contains(index), "{plan}");
        }
    }
}
