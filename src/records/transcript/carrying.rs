//! Copies a conversation to another place, or moves everything said in a place to another.

use rusqlite::{Connection, Transaction, params};

use super::super::summaries;
use crate::routing::places::{PlaceId, Twin};

/// Copies the current conversation into the first conversation of a new place, with its summaries.
/// Returns the number of messages. No turn of the new place stands behind the copies. They keep the
/// platform's ids, so that a message deleted there is taken out of the copy too.
pub(crate) fn copy(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<usize> {
    let running = conversation_of(tx, old)?;
    let count = tx.execute(
        "INSERT INTO messages (place_id, conversation, kind, agent_uid, part_uid, person, person_name, role, around, text,
                               meta_json, written_as, observed, sent_at, created_at, deleted_at, labels)
         SELECT ?2, (SELECT conversation FROM places WHERE id = ?2), kind, agent_uid, part_uid, person, person_name, role,
                around, text, meta_json, written_as, observed, sent_at, created_at, deleted_at, labels
         FROM messages WHERE place_id = ?1 AND conversation = ?3 ORDER BY id",
        params![old, new, running],
    )?;
    summaries::copy(tx, Twin { old, new }, running)?;
    Ok(count)
}

/// Whether anything was ever said in a place.
pub(crate) fn has_any(connection: &Connection, place: PlaceId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM messages WHERE place_id = ?1)";
    connection.query_row(sql, [place], |row| row.get(0))
}

/// Moves everything said in a place to another, behind the conversations that are over there. The
/// old place begins a new conversation. Returns the number of messages.
pub(crate) fn move_all(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<usize> {
    let (in_old, in_new) = (conversation_of(tx, old)?, conversation_of(tx, new)?);
    let has_past = has_any(tx, new)?;
    let offset = if has_past { in_new } else { 0 };
    summaries::move_all(tx, Twin { old, new }, offset)?;
    let count = tx.execute(
        "UPDATE messages SET place_id = ?2, conversation = conversation + ?3 WHERE place_id = ?1",
        params![old, new, offset],
    )?;
    tx.execute(
        "UPDATE places SET conversation = ?3,
             active_at = max(coalesce(active_at, 0), coalesce((SELECT active_at FROM places WHERE id = ?1), 0))
         WHERE id = ?2",
        params![old, new, in_old + offset],
    )?;
    tx.execute(
        "UPDATE places SET conversation = conversation + 1, active_at = NULL WHERE id = ?1",
        [old],
    )?;
    Ok(count)
}

fn conversation_of(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<i64> {
    let sql = "SELECT conversation FROM places WHERE id = ?1";
    tx.query_row(sql, [place], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::places;
    use crate::storage::Db;

    const ROWS: &str = "
        INSERT INTO agents (uid, slug, created_at) VALUES ('u', 'rose', 0);
        INSERT INTO places (key, conversation, created_at, active_at) VALUES
            ('telegram:dm:5', 2, 0, 9), ('local:home:fork', 1, 0, NULL), ('telegram:dm:6', 2, 0, NULL);
        INSERT INTO messages (place_id, conversation, kind, text, created_at) VALUES
            (1, 1, 'person', 'old', 0), (1, 2, 'person', 'one', 0), (3, 1, 'person', 'past', 0),
            (1, 2, 'person', 'two', 0), (1, 2, 'person', 'three', 0);
        INSERT INTO summaries (place_id, conversation, part, upto, messages, agent_uid, text, created_at)
            VALUES (1, 2, '', 4, 2, 'u', 'one and two', 0);";
    /// The running conversation behind its summary.
    const REST: &str = "SELECT coalesce(group_concat(messages.text), '') FROM places
        JOIN summaries ON summaries.place_id = places.id AND summaries.conversation = places.conversation
        JOIN messages ON messages.place_id = places.id AND messages.conversation = places.conversation AND messages.id > upto
        WHERE places.id = ?1";

    async fn check(to: &'static str, work: fn(&Transaction<'_>, Twin)) {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let write = move |tx: &Transaction<'_>| {
            tx.execute_batch(ROWS)?;
            let id = |key: &str| places::id(tx, &key.parse().unwrap());
            let (old, new) = (id("telegram:dm:5")?.unwrap(), id(to)?.unwrap());
            work(tx, Twin { old, new });
            let rest: String = tx.query_row(REST, [new], |row| row.get(0))?;
            assert_eq!(rest, "three", "the summary stands for the messages before");
            Ok(())
        };
        db.write(write).await.unwrap();
    }

    fn said(tx: &Transaction<'_>, place: PlaceId) -> String {
        let sql = "SELECT group_concat(conversation || text, ' ') FROM (SELECT * FROM messages WHERE place_id = ?1 ORDER BY conversation, id)";
        let said: Option<String> = tx.query_row(sql, [place], |row| row.get(0)).unwrap();
        said.unwrap_or_default()
    }

    #[tokio::test]
    async fn a_copy_has_the_running_conversation_and_its_summary() {
        check("local:home:fork", |tx, twin| {
            assert_eq!(copy(tx, twin).unwrap(), 3);
            assert_eq!(said(tx, twin.new), "1one 1two 1three");
            assert_eq!(said(tx, twin.old), "1old 2one 2two 2three");
        })
        .await;
    }

    #[tokio::test]
    async fn what_is_moved_stands_behind_what_is_over_there() {
        check("telegram:dm:6", |tx, twin| {
            assert_eq!(move_all(tx, twin).unwrap(), 4);
            assert_eq!(said(tx, twin.new), "1past 3old 4one 4two 4three");
            assert_eq!(said(tx, twin.old), "");
        })
        .await;
    }
}
