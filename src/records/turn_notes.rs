//! The durations of ended turns, stage by stage: the `turn_notes` table.
//!
//! The notes have numbers and names, and no words of people. The prompt beside them has such words,
//! so only the newest turns keep a prompt, and a request to forget words removes the prompt.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::domain::SessionKey;
use crate::routing::places;
use crate::turn::ModelCall;

/// Notes are kept this long.
const KEPT_MS: i64 = 30 * DAY_MS;
/// Prompts are kept this long.
const PROMPT_KEPT_MS: i64 = 7 * DAY_MS;
/// The turns of the whole house, counted back from the newest, that can have a prompt.
const MOST_WITH_PROMPT: i64 = 2_000;
/// Bytes of the words of a prompt. The rest is left out, and the prompt says so.
const MOST_PROMPT_BYTES: usize = 512 * 1024;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The notes about a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Notes {
    /// The time from the arrival of the message to the commit of its row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored_ms: Option<u64>,
    /// The wait behind earlier messages of the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queued_ms: Option<u64>,
    /// The wait for a slot: only a number of turns may run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot_ms: Option<u64>,
    /// The time from the slot to the first model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prepared_ms: Option<u64>,
    /// Memories in the prompt.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) recalled: usize,
    /// Set where the message was left by an earlier process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) taken_up_at: Option<i64>,
    /// How often the unfinished answer was shown.
    #[serde(skip_serializing_if = "is_none_shown")]
    pub(crate) previews: u32,
    pub(crate) calls: Vec<ModelCall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<ToolNote>,
    /// The sections of the prompt, with their tokens.
    pub(crate) sections: Vec<(String, usize)>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_none_shown(number: &u32) -> bool {
    *number == 0
}

/// A call of a tool, without its arguments and its result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ToolNote {
    pub(crate) round: u32,
    pub(crate) tool: String,
    /// When its round began.
    pub(crate) at: Option<i64>,
    /// Absent for a call interrupted before its end.
    pub(crate) ended_at: Option<i64>,
    pub(crate) result_bytes: Option<u64>,
}

/// The words of a prompt, by section.
pub(crate) type Sections = Vec<(String, String)>;

/// A prompt to be kept.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    /// Two compressed parts, behind the length of the first.
    bytes: Vec<u8>,
    /// The number of turns of a place with a kept prompt.
    kept: u32,
    started_at: i64,
}

impl Prompt {
    /// `steady` is the same in most turns of an agent, and is compressed only once.
    pub(crate) fn new(kept: u32, started_at: i64, (steady, moving): (Sections, Sections)) -> Self {
        let steady = compressed_once(steady);
        let length = u32::try_from(steady.len()).unwrap_or(u32::MAX);
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(&steady);
        bytes.extend(compressed(&bounded(moving)));
        Prompt {
            bytes,
            kept,
            started_at,
        }
    }
}

/// The last steady parts with their compressed form, the latest used last.
static COMPRESSED: Mutex<Vec<(Sections, Arc<[u8]>)>> = Mutex::new(Vec::new());
/// Compressed parts in memory: on most machines, enough for each agent and kind of place in use.
const MOST_COMPRESSED: usize = 32;

fn compressed_once(steady: Sections) -> Arc<[u8]> {
    let lock = || COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = lock();
    if let Some(at) = known.iter().position(|(sections, _)| *sections == steady) {
        let found = known.remove(at);
        let bytes = found.1.clone();
        known.push(found);
        return bytes;
    }
    drop(known);
    let bytes: Arc<[u8]> = compressed(&steady).into();
    let mut known = lock();
    if known.len() >= MOST_COMPRESSED {
        known.remove(0);
    }
    known.push((steady, bytes.clone()));
    bytes
}

/// Writes the notes of a turn that has just got its row.
pub(crate) fn write(
    tx: &Transaction<'_>,
    (turn_id, place): (i64, &SessionKey),
    notes: &Notes,
    prompt: Option<&Prompt>,
) -> rusqlite::Result<()> {
    let notes = serde_json::to_string(notes)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let Some(prompt) = prompt else {
        return tx
            .prepare_cached("INSERT INTO turn_notes (turn_id, notes) VALUES (?1, ?2)")?
            .execute(params![turn_id, notes])
            .map(drop);
    };
    tx.prepare_cached(
        "INSERT INTO turn_notes (turn_id, notes, prompt) VALUES (?1, ?2,
         CASE WHEN ?4 > (SELECT coalesce(max(at), 0) FROM prompts_forgotten) THEN ?3 END)",
    )?
    .execute(params![turn_id, notes, prompt.bytes, prompt.started_at])?;
    let older = "UPDATE turn_notes SET prompt = NULL WHERE prompt IS NOT NULL AND turn_id IN (?1,
                 (SELECT id FROM turns WHERE place_id = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3))";
    tx.prepare_cached(older)?
        .execute(params![
            turn_id - MOST_WITH_PROMPT,
            places::id(tx, place)?,
            prompt.kept
        ])
        .map(drop)
}

/// The notes of an ended turn, and whether the turn has a prompt.
pub(crate) fn of(connection: &Connection, turn_id: i64) -> rusqlite::Result<Option<(Notes, bool)>> {
    let sql = "SELECT notes, prompt IS NOT NULL FROM turn_notes WHERE turn_id = ?1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([turn_id], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .optional()?;
    Ok(found
        .map(|(notes, has_prompt)| (serde_json::from_str(&notes).unwrap_or_default(), has_prompt)))
}

/// The prompt of a turn, if kept.
pub(crate) fn prompt(connection: &Connection, turn_id: i64) -> rusqlite::Result<Option<Sections>> {
    let sql = "SELECT prompt FROM turn_notes WHERE turn_id = ?1 AND prompt IS NOT NULL";
    let found = connection
        .prepare_cached(sql)?
        .query_row([turn_id], |row| row.get::<_, Vec<u8>>(0))
        .optional()?;
    Ok(found.and_then(|bytes| read(&bytes)))
}

/// The turn of the same agent before this turn in its place, and its prompt if kept.
pub(crate) fn prompt_before(
    connection: &Connection,
    turn_id: i64,
) -> rusqlite::Result<Option<(i64, Option<Sections>)>> {
    let sql = "SELECT before.id, before.inbox_id FROM turns AS this JOIN turns AS before
               ON before.place_id = this.place_id AND before.id < this.id AND before.agent_uid = this.agent_uid
               WHERE this.id = ?1 AND before.route <> 'a summary' ORDER BY before.id DESC LIMIT 1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([turn_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((before, inbox_id)): Option<(i64, i64)> = found else {
        return Ok(None);
    };
    Ok(Some((inbox_id, prompt(connection, before)?)))
}

/// Drops all prompts, because any prompt may have the forgotten words. Turns under way, which may
/// have read the words too, will keep no prompt.
pub(crate) fn forget_prompts(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE turn_notes SET prompt = NULL WHERE prompt IS NOT NULL",
        [],
    )?;
    not_before(tx, now)
}

/// Drops the prompts of the places with this row of a transcript, and the prompts of subagents.
pub(crate) fn forget_prompts_with(tx: &Transaction<'_>, message: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE turn_notes SET prompt = NULL WHERE prompt IS NOT NULL AND turn_id IN
        (SELECT turns.id FROM turns JOIN places ON places.id = place_id
         WHERE place_id = (SELECT place_id FROM messages WHERE id = ?1) OR key GLOB 'child:*')";
    tx.prepare_cached(sql)?.execute([message]).map(drop)
}

/// Words are forgotten: turns that have begun by now keep no prompt.
pub(crate) fn not_before(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO prompts_forgotten (id, at) VALUES (1, ?1)")?
        .execute([now])
        .map(drop)
}

/// Old notes go, and old prompts before them. Returns how many of both.
pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let prompts = "UPDATE turn_notes SET prompt = NULL WHERE turn_id IN
        (SELECT turn_id FROM turn_notes JOIN turns ON turns.id = turn_id WHERE prompt IS NOT NULL
         AND (ended_at < ?1 OR turn_id <= (SELECT max(id) FROM turns) - ?3) LIMIT ?2)";
    let notes = "DELETE FROM turn_notes WHERE turn_id IN
        (SELECT turn_id FROM turn_notes JOIN turns ON turns.id = turn_id WHERE ended_at < ?1 LIMIT ?2)";
    let dropped = tx.execute(
        prompts,
        params![now - PROMPT_KEPT_MS, most, MOST_WITH_PROMPT],
    )?;
    let left = most.saturating_sub(u32::try_from(dropped).unwrap_or(u32::MAX));
    Ok(dropped + tx.execute(notes, params![now - KEPT_MS, left])?)
}

/// Cuts the excess, from the end.
fn bounded(mut sections: Sections) -> Sections {
    let mut room = MOST_PROMPT_BYTES;
    for (_, text) in &mut sections {
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room));
            text.push_str("\n[the rest is not kept]");
            room = 0;
        } else {
            room -= text.len();
        }
    }
    sections
}

fn compressed(sections: &Sections) -> Vec<u8> {
    let text = serde_json::to_vec(sections).unwrap_or_default();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(&text).and_then(|()| encoder.finish());
    written.expect("memory takes every byte")
}

/// Both parts of a prompt.
fn read(bytes: &[u8]) -> Option<Sections> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (steady, moving) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let mut sections = decompressed(steady)?;
    sections.extend(decompressed(moving)?);
    Some(sections)
}

fn decompressed(bytes: &[u8]) -> Option<Sections> {
    let mut text = Vec::new();
    DeflateDecoder::new(bytes).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    const NOW: i64 = 1_000 * DAY_MS;

    async fn open() -> (tempfile::TempDir, Db) {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let fill = "INSERT INTO agents (uid, slug, created_at) VALUES ('a', 'main', 0);
                    INSERT INTO places (id, key, created_at) VALUES (1, 'telegram:dm:1', 0), (2, 'telegram:dm:2', 0);";
        db.write(move |tx| tx.execute_batch(fill)).await.unwrap();
        (folder, db)
    }

    /// Writes a turn that began and ended at this time.
    fn turn(tx: &Transaction<'_>, place: i64, at: i64, words: &str) -> rusqlite::Result<i64> {
        let sql = "INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome)
                   VALUES (?2, ?1, 'a', 'm', 'r', ?2, ?2, 'answered')";
        tx.execute(sql, params![place, at])?;
        let (id, key) = (tx.last_insert_rowid(), format!("telegram:dm:{place}"));
        let steady = vec![("SOUL.md".into(), "You are kind.".into())];
        let moving = vec![("Question".into(), words.into())];
        let prompt = Prompt::new(2, at, (steady, moving));
        let about = (id, &key.parse().unwrap());
        write(tx, about, &Notes::default(), Some(&prompt))?;
        Ok(id)
    }

    fn kept(tx: &Transaction<'_>) -> Vec<String> {
        let sql = "SELECT turn_id FROM turn_notes WHERE prompt IS NOT NULL ORDER BY turn_id";
        let mut statement = tx.prepare(sql).unwrap();
        let ids = statement.query_map([], |row| row.get(0)).unwrap();
        let ids = ids.map(|id| prompt(tx, id.unwrap()).unwrap().unwrap());
        ids.map(|sections| sections[1].1.clone()).collect()
    }

    #[tokio::test]
    async fn the_newest_turns_of_a_place_keep_their_prompts() {
        let (_folder, db) = open().await;
        let check = |tx: &Transaction<'_>| {
            for (place, words) in [(1, "one"), (1, "two"), (2, "other"), (1, "three")] {
                turn(tx, place, NOW, words)?;
            }
            assert_eq!(kept(tx), ["two", "other", "three"]);
            let before = prompt_before(tx, 4)?.unwrap();
            assert_eq!(before.1.unwrap()[1].1, "two");
            assert_eq!(forget_old(tx, NOW + 8 * DAY_MS, 100)?, 3);
            assert!(kept(tx).is_empty());
            assert!(of(tx, 4)?.is_some(), "the notes stay for longer");
            assert_eq!(forget_old(tx, NOW + 31 * DAY_MS, 100)?, 4);
            assert!(of(tx, 4)?.is_none());
            Ok(())
        };
        db.write(check).await.unwrap();
    }

    #[tokio::test]
    async fn forgotten_words_are_in_no_prompt_from_then_on() {
        let (_folder, db) = open().await;
        let check = |tx: &Transaction<'_>| {
            turn(tx, 1, NOW, "before")?;
            forget_prompts(tx, NOW + 10)?;
            assert!(kept(tx).is_empty());
            turn(tx, 1, NOW + 5, "under way at that time")?;
            assert!(kept(tx).is_empty());
            turn(tx, 1, NOW + 11, "after")?;
            assert_eq!(kept(tx), ["after"]);
            Ok(())
        };
        db.write(check).await.unwrap();
    }

    #[test]
    fn a_prompt_of_any_length_is_kept_up_to_its_bound() {
        let long = "é".repeat(MOST_PROMPT_BYTES);
        let moving = vec![("a".to_owned(), long), ("b".to_owned(), "more".to_owned())];
        let read = read(&Prompt::new(1, 0, (Vec::new(), moving)).bytes).unwrap();
        let bytes: usize = read.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes <= MOST_PROMPT_BYTES + 100, "{bytes}");
        assert!(read[0].1.ends_with("[the rest is not kept]"));
        assert_eq!(read[1].1, "\n[the rest is not kept]");
    }
}
