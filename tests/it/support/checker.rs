//! What must hold after every test that has a `House`, whatever the test is about: the promises
//! about messages, read off the store and the journals of the fakes.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::fake_discord::FakeDiscord;
use super::fake_telegram::FakeTelegram;

/// A promise that a test breaks on purpose, or that its far end makes impossible to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Promise {
    /// No row is left in a state that nothing takes up.
    NothingLeft,
    /// A message has at most one answer, and an answered message has one.
    AnsweredOnce,
    /// Every message of the bot is a row of the outbox, sent once, in the place of the row.
    SentOnce,
    /// The answers of a place arrive in the order in which they were written.
    InOrder,
    /// One turn at a time in a place.
    OneTurnAtATime,
}

/// A broken promise, for people.
type Fault = (Promise, String);

pub(crate) fn faults(
    store: &Connection,
    telegram: &FakeTelegram,
    discord: Option<&FakeDiscord>,
) -> Vec<Fault> {
    let known: i64 = rows(
        store,
        "SELECT count(*) FROM sqlite_schema WHERE name = 'inbox'",
        |row| row.get(0),
    )[0];
    if known == 0 {
        return Vec::new();
    }
    let mut faults = nothing_left(store);
    faults.extend(answered_once(store));
    let mut seen = shown_on_telegram(store, telegram);
    seen.extend(discord.into_iter().flat_map(shown_on_discord));
    faults.extend(sent_once(store, &seen));
    faults.extend(in_order(store));
    faults.extend(one_turn_at_a_time(store));
    faults
}

fn nothing_left(store: &Connection) -> Vec<Fault> {
    const QUESTIONS: [(&str, &str); 4] = [
        (
            "messages were left unanswered",
            "SELECT 'inbox row ' || id FROM inbox WHERE state = 'waiting'",
        ),
        (
            "answers were left undelivered",
            "SELECT 'outbox row ' || id || ' is ' || state FROM outbox WHERE state <> 'sent'",
        ),
        (
            "subagents were left running",
            "SELECT 'subagent ' || run FROM subagents WHERE state = 'running'",
        ),
        (
            "previews were left",
            "SELECT 'preview of inbox row ' || inbox_id FROM preview_messages
             WHERE inbox_id IN (SELECT id FROM inbox WHERE state <> 'waiting')",
        ),
    ];
    let left = QUESTIONS.iter().filter_map(|(what, sql)| {
        let rows: Vec<String> = rows(store, sql, |row| row.get(0));
        (!rows.is_empty()).then(|| (Promise::NothingLeft, format!("{what}: {}", rows.join(", "))))
    });
    left.collect()
}

fn answered_once(store: &Connection) -> Vec<Fault> {
    let twice = "SELECT 'inbox row ' || inbox_id || ' has ' || count(*) || ' answers: ' || group_concat(text, ' | ') FROM messages
                 WHERE kind = 'agent' AND inbox_id IS NOT NULL GROUP BY inbox_id, place_id HAVING count(*) > 1";
    // Messages that are answered together are closed together, with the end of their turn.
    let never = "SELECT 'inbox row ' || id || ' counts as answered without an answer' FROM inbox
                 WHERE state = 'done' AND outcome = 'answered'
                   AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.outcome = 'answered' AND (turns.inbox_id = inbox.id
                       OR (turns.place_id = inbox.place_id AND turns.ended_at = inbox.closed_at)))";
    let found = [twice, never]
        .into_iter()
        .flat_map(|sql| rows(store, sql, |row| row.get(0)));
    found.map(|fault| (Promise::AnsweredOnce, fault)).collect()
}

/// A message of the bot as a platform shows it.
struct Shown {
    /// The beginnings of session keys that the message may belong to.
    keys: Vec<String>,
    message_id: String,
}

fn shown_on_telegram(store: &Connection, telegram: &FakeTelegram) -> Vec<Shown> {
    let moved: BTreeMap<i64, i64> = rows(store, "SELECT old, new FROM chat_aliases", |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
    .into_iter()
    .collect();
    let sent = telegram.sent().into_iter().filter(|sent| !sent.deleted);
    let shown = sent.map(|sent| {
        // A row belongs to the place where its group is now.
        let chats = std::iter::successors(Some(sent.chat_id), |chat| moved.get(chat).copied());
        let keys = chats.flat_map(|chat| {
            // The general topic of a forum has no number on the wire.
            let topic = sent.thread.unwrap_or(1);
            [
                format!("telegram:dm:{chat}"),
                format!("telegram:group:{chat}"),
                format!("telegram:topic:{chat}:{topic}"),
            ]
        });
        Shown {
            keys: keys.collect(),
            message_id: sent.message_id.to_string(),
        }
    });
    shown.collect()
}

fn shown_on_discord(discord: &FakeDiscord) -> Vec<Shown> {
    let sent = discord.sent().into_iter();
    let shown = sent
        .filter(|sent| !sent.deleted && !sent.ephemeral)
        .map(|sent| {
            let channel = sent.channel_id;
            let mut keys = vec![format!("discord:channel:{channel}"), format!(":{channel}")];
            keys.extend(
                discord
                    .dm_partner(channel)
                    .map(|user| format!("discord:dm:{user}")),
            );
            Shown {
                keys,
                message_id: sent.message_id.to_string(),
            }
        });
    shown.collect()
}

/// A row of the outbox that was sent.
struct SentRow {
    id: i64,
    key: String,
    message_id: Option<String>,
    target: Option<String>,
    is_repeated: bool,
}

fn sent_rows(store: &Connection) -> Vec<SentRow> {
    let sql = "SELECT outbox.id, key, message_id, target, repeated FROM outbox
               JOIN places ON places.id = place_id WHERE state = 'sent' ORDER BY outbox.id";
    rows(store, sql, |row| {
        Ok(SentRow {
            id: row.get(0)?,
            key: row.get(1)?,
            message_id: row.get(2)?,
            target: row.get(3)?,
            is_repeated: row.get(4)?,
        })
    })
}

fn sent_once(store: &Connection, shown: &[Shown]) -> Vec<Fault> {
    let sent = sent_rows(store);
    let mut known: BTreeMap<&str, Vec<&SentRow>> = BTreeMap::new();
    for row in &sent {
        let ids: BTreeSet<&str> = [&row.message_id, &row.target]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        for id in ids {
            known.entry(id).or_default().push(row);
        }
    }
    let previews: BTreeSet<String> =
        rows(store, "SELECT message_id FROM preview_messages", |row| {
            row.get(0)
        })
        .into_iter()
        .collect();
    let mut repeats = sent.iter().filter(|row| row.is_repeated).count();
    // Both calls of a row that was given up in doubt may have arrived.
    let in_doubt = "SELECT id FROM outbox WHERE state = 'failed' AND repeated = 1";
    repeats += 2 * rows(store, in_doubt, |row| row.get::<_, i64>(0)).len();
    let mut faults = Vec::new();
    for message in shown {
        let rows = known.get(message.message_id.as_str());
        match rows {
            None if previews.contains(&message.message_id) => {}
            // A call without an answer was made again, as documented; the first one counts too.
            None if repeats > 0 => repeats -= 1,
            None => faults.push(format!(
                "message {} in {} is no row of the outbox",
                message.message_id, message.keys[0]
            )),
            Some(rows) => {
                let is_at_home = |row: &&&SentRow| {
                    let keys = &message.keys;
                    keys.iter()
                        .any(|key| row.key.starts_with(key) || row.key.ends_with(key))
                };
                let is_at_home = rows.iter().any(|row| is_at_home(&row));
                // Chats count their messages alike, so the call that was made again may have the number of
                // another chat's row.
                if !is_at_home && repeats > 0 {
                    repeats -= 1;
                } else if !is_at_home {
                    faults.push(format!(
                        "message {} was sent to {}, and its row {} belongs to {}",
                        message.message_id, message.keys[0], rows[0].id, rows[0].key
                    ));
                }
            }
        }
    }
    let faults = faults.into_iter();
    faults.map(|fault| (Promise::SentOnce, fault)).collect()
}

fn in_order(store: &Connection) -> Vec<Fault> {
    let sql = "SELECT place_id, id, CAST(message_id AS INTEGER) FROM outbox
               WHERE state = 'sent' AND kind = 'final' AND target IS NULL AND CAST(message_id AS INTEGER) > 0
                 -- A group that has moved counts its messages anew.
                 AND NOT EXISTS (SELECT 1 FROM chat_aliases JOIN places ON instr(key, ':' || new) > 0
                     WHERE places.id = place_id)
               ORDER BY place_id, id";
    let sent: Vec<(i64, i64, i64)> = rows(store, sql, |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    let pairs = sent.iter().zip(sent.iter().skip(1));
    let crossed = pairs.filter(|(one, next)| one.0 == next.0 && one.2 > next.2);
    let told = crossed.map(|(one, next)| {
        (
            Promise::InOrder,
            format!("outbox row {} arrived before row {}", next.1, one.1),
        )
    });
    told.collect()
}

fn one_turn_at_a_time(store: &Connection) -> Vec<Fault> {
    // A message that is answered while a turn is parked has its turn inside the parked one.
    let sql = "SELECT 'the turns of inbox rows ' || one.inbox_id || ' and ' || other.inbox_id || ' overlap'
               FROM turns AS one JOIN turns AS other ON other.place_id = one.place_id AND other.id > one.id
                   AND 'a summary' NOT IN (one.route, other.route)
               WHERE one.started_at < other.ended_at AND other.started_at < one.ended_at
                 AND NOT EXISTS (SELECT 1 FROM decisions WHERE inbox_id IN (one.inbox_id, other.inbox_id))";
    let found = rows(store, sql, |row| row.get(0)).into_iter();
    found
        .map(|fault| (Promise::OneTurnAtATime, fault))
        .collect()
}

fn rows<T>(
    store: &Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    let mut statement = store.prepare(sql).expect("the question is right");
    let rows = statement.query_map([], read).expect("the store answers");
    rows.collect::<Result<_, _>>()
        .expect("the rows are readable")
}
