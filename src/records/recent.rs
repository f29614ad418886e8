//! Conversations as turns read them last, so that a turn reads only the messages since.
//!
//! A copy is true for every snapshot of the database in which its place has the same count of
//! edits: the count goes up in the transaction that changes or deletes a message of the place.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, MAIN_DB};

use super::summaries;
use super::transcript::{Conversation, History, Message, after, counts, history, newest};
use super::view::View;
use crate::access::numbers;
use crate::config::People;
use crate::domain::{Around, SessionKey, Source};
use crate::routing::places::PlaceId;
use crate::turn::history::MAX_MESSAGES;

/// Bytes of all copies, about. With more, those that were read longest ago are dropped.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// A longer conversation is read from the database each time.
const MOST_BYTES_OF_ONE: usize = 128 * 1024;

/// The copies. One for the whole gateway.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    copies: HashMap<Key, KeptCopy>,
    bytes: usize,
    /// Counts reads.
    clock: u64,
}

type Key = (PlaceId, View);

#[derive(Debug)]
struct KeptCopy {
    /// When the copy was read last.
    read_at: u64,
    bytes: usize,
    as_of: AsOf,
    messages: Vec<Message>,
}

/// What the copy is a copy of. Another value means other messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AsOf {
    conversation: Conversation,
    edits: i64,
    /// The last message that a summary stands for.
    summed_up: i64,
}

impl Recent {
    /// The same as [`history`], with the numbers of people.
    pub(crate) fn history(
        &self,
        connection: &Connection,
        place: &SessionKey,
        view: View,
        people: &People,
    ) -> rusqlite::Result<History> {
        // What a writer reads may be undone.
        let counts = match connection.is_readonly(MAIN_DB)? {
            true => counts(connection, place)?,
            false => None,
        };
        let Some((id, conversation, edits)) = counts else {
            let mut history = history(connection, place, view)?;
            count(connection, people, &mut history.messages)?;
            return Ok(history);
        };
        let summary = summaries::of(connection, place, conversation, view)?;
        let as_of = AsOf {
            conversation,
            edits,
            summed_up: summary.as_ref().map_or(0, |summary| summary.upto),
        };
        let mut messages = self.known((id, view), as_of).unwrap_or_default();
        let last = messages.last().map_or(as_of.summed_up, |last| last.id);
        let mut since = after(connection, place, conversation, view, last)?;
        if since.is_empty() && last > newest(connection)? {
            // The copy is of a later snapshot, and may have lost its oldest messages.
            messages.clear();
            since = after(connection, place, conversation, view, as_of.summed_up)?;
        }
        messages.extend(since);
        let most = usize::try_from(MAX_MESSAGES).unwrap_or(usize::MAX);
        messages.drain(..messages.len().saturating_sub(most));
        count(connection, people, &mut messages)?;
        self.keep((id, view), as_of, &messages);
        Ok(History {
            conversation,
            summary,
            messages,
        })
    }

    fn known(&self, key: Key, as_of: AsOf) -> Option<Vec<Message>> {
        let kept = self.lock();
        let copy = kept.copies.get(&key)?;
        (copy.as_of == as_of).then(|| copy.messages.clone())
    }

    fn keep(&self, key: Key, as_of: AsOf, messages: &[Message]) {
        let mut kept = self.lock();
        kept.clock += 1;
        let read_at = kept.clock;
        let newest = |messages: &[Message]| messages.last().map(|message| message.id);
        if let Some(copy) = kept.copies.get_mut(&key)
            && copy.as_of == as_of
            && newest(&copy.messages) >= newest(messages)
        {
            copy.read_at = read_at;
            return;
        }
        kept.drop_copy(&key);
        let bytes = messages.iter().map(Message::bytes).sum();
        if bytes > MOST_BYTES_OF_ONE {
            return;
        }
        kept.bytes += bytes;
        let messages = messages.to_vec();
        kept.copies.insert(
            key,
            KeptCopy {
                read_at,
                bytes,
                as_of,
                messages,
            },
        );
        kept.make_room();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn drop_copy(&mut self, key: &Key) {
        if let Some(copy) = self.copies.remove(key) {
            self.bytes -= copy.bytes;
        }
    }

    /// Drops the older half, so that this is rare.
    fn make_room(&mut self) {
        if self.bytes <= MOST_BYTES {
            return;
        }
        let mut times: Vec<u64> = self.copies.values().map(|copy| copy.read_at).collect();
        times.sort_unstable();
        let middle = times[times.len() / 2];
        self.copies.retain(|_, copy| copy.read_at > middle);
        self.bytes = self.copies.values().map(|copy| copy.bytes).sum();
    }
}

fn count(
    connection: &Connection,
    people: &People,
    messages: &mut [Message],
) -> rusqlite::Result<()> {
    let said = messages.iter_mut().map(|message| &mut message.said);
    numbers::fill_in_shared(connection, people, said)
}

impl Message {
    /// Of its texts and of itself, about.
    fn bytes(&self) -> usize {
        let name = match &self.said.by {
            Source::Person(voice) | Source::Handoff(voice) => voice.name.len(),
            _ => 0,
        };
        let around = self.said.around.iter().map(|around| match around {
            Around::Reply {
                quote: Some(text), ..
            }
            | Around::Reaction { to: text }
            | Around::With(text) => text.len(),
            _ => 0,
        });
        let around: usize = around.map(|bytes| bytes + size_of::<Around>()).sum();
        size_of::<Message>() + size_of_val(&*self.said) + self.said.text.len() + name + around
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::{OpenFlags, params};
    use tempfile::TempDir;

    use super::*;
    use crate::domain::AgentUid;
    use crate::storage::Db;

    const PLACE: &str = "telegram:topic:-1001:5";

    fn uid(agent: u8) -> AgentUid {
        format!("00000000-0000-0000-0000-00000000000{}", agent % 2)
            .parse()
            .unwrap()
    }

    struct House {
        home: TempDir,
        writer: Connection,
        readers: [Connection; 2],
        recent: Recent,
    }

    impl House {
        async fn new() -> Self {
            let home = TempDir::new().unwrap();
            let path = home.path().join("parlor.db");
            drop(Db::open(&path).await.unwrap());
            let writer = Connection::open(&path).unwrap();
            writer
                .execute_batch(&format!(
                    "INSERT INTO agents (uid, slug, created_at) VALUES ('{}', 'ada', 0), ('{}', 'bo', 0);
                     INSERT INTO places (key, created_at) VALUES ('{PLACE}', 0), ('telegram:topic:-1001:6', 0);
                     INSERT INTO person_numbers (person) VALUES ('telegram:1')",
                    uid(0),
                    uid(1)
                ))
                .unwrap();
            let read_only =
                || Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
            House {
                readers: [read_only(), read_only()],
                home,
                writer,
                recent: Recent::default(),
            }
        }

        fn say(&self, kind: &str, by: u8, text: &str) {
            let sql = "INSERT INTO messages (place_id, conversation, kind, agent_uid, part_uid, person, person_name, text, created_at)
                       SELECT id, conversation, ?1, iif(?1 = 'agent', ?2, NULL), ?2, ?3, 'somebody', ?4, 0 FROM places WHERE key = ?5";
            let person = format!("telegram:{}", by % 3);
            self.writer
                .execute(sql, params![kind, uid(by).to_string(), person, text, PLACE])
                .unwrap();
        }

        fn happen(&self, (what, which): (u8, u8)) {
            // One of the messages, if there is any.
            let one = format!(
                "(SELECT id FROM messages ORDER BY id LIMIT 1 OFFSET {which} % max(1, (SELECT count(*) FROM messages)))"
            );
            let sql = match what {
                0..3 => return self.say("person", which, &format!("words {what} {which}")),
                3..6 => return self.say("agent", which, &format!("answer {what} {which}")),
                6 => format!("UPDATE messages SET text = '', deleted_at = 1 WHERE id = {one}"),
                7 => format!("DELETE FROM messages WHERE id = {one}"),
                8 => "UPDATE places SET conversation = conversation + 1 WHERE id = 1".to_owned(),
                9 => format!(
                    "INSERT INTO summaries (place_id, conversation, part, upto, messages, agent_uid, text, created_at)
                     SELECT 1, conversation, '', coalesce({one}, 0), 1, '{}', 'summed up', 0 FROM places WHERE id = 1
                     ON CONFLICT DO UPDATE SET upto = max(upto, excluded.upto)",
                    uid(0)
                ),
                10 => format!(
                    "UPDATE agents SET slug = 'agent-{which}' WHERE uid = '{}'",
                    uid(which)
                ),
                11 => format!("UPDATE messages SET place_id = 3 - place_id WHERE id = {one}"),
                12 => format!("UPDATE messages SET labels = {which} WHERE id = {one}"),
                13 => format!(
                    "INSERT OR IGNORE INTO person_numbers (person) VALUES ('telegram:{}')",
                    which % 3
                ),
                _ => {
                    let many = usize::from(which);
                    return (0..many).for_each(|_| self.say("person", which, "many"));
                }
            };
            self.writer.execute(&sql, []).unwrap();
        }

        /// What a turn reads, and what it would read without a copy.
        fn read(&self, reader: &Connection, view: View) -> [Vec<Message>; 2] {
            let (place, people) = (PLACE.parse().unwrap(), People::default());
            let read = self.recent.history(reader, &place, view, &people);
            let mut anew = history(reader, &place, view).unwrap();
            count(reader, &people, &mut anew.messages).unwrap();
            let read = read.unwrap();
            assert_eq!(read.conversation, anew.conversation);
            assert_eq!(read.summary, anew.summary);
            [read.messages, anew.messages]
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_copy_is_what_the_database_has(
            events in proptest::collection::vec((0..15_u8, any::<u8>()), 1..60)
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let house = runtime.block_on(House::new());
            for event in events {
                let [now, before] = &house.readers;
                // A snapshot from before the event is still read when the copy has the event.
                before.execute_batch("BEGIN").unwrap();
                let newest = newest(before).unwrap();
                house.happen(event);
                for view in [View::Whole, View::PartOf(uid(0))] {
                    let [read, anew] = house.read(now, view);
                    prop_assert_eq!(read, anew);
                    let [read, anew] = house.read(before, view);
                    prop_assert_eq!(&read, &anew);
                    prop_assert!(read.iter().all(|message| message.id <= newest));
                }
                before.execute_batch("COMMIT").unwrap();
            }
        }
    }

    #[tokio::test]
    async fn only_new_messages_are_read() {
        let house = House::new().await;
        let [reader, _] = &house.readers;
        (0..50).for_each(|number| house.say("person", number, "words"));
        let [first, _] = house.read(reader, View::Whole);
        house.say("agent", 0, "an answer");
        let [second, _] = house.read(reader, View::Whole);
        assert_eq!((first.len(), second.len()), (50, 51));
        let shared = first.iter().zip(&second);
        let is_shared =
            |(one, other): (&Message, &Message)| std::sync::Arc::ptr_eq(&one.said, &other.said);
        assert_eq!(shared.filter(|pair| is_shared(*pair)).count(), 50);
    }

    #[tokio::test]
    async fn what_may_be_undone_is_not_kept() {
        let house = House::new().await;
        house.say("person", 0, "words");
        let people = People::default();
        let place = PLACE.parse().unwrap();
        let read = |connection: &Connection| {
            let history = house
                .recent
                .history(connection, &place, View::Whole, &people);
            history.unwrap().messages.len()
        };
        house.writer.execute_batch("BEGIN").unwrap();
        house.say("person", 0, "words that nobody said");
        assert_eq!(read(&house.writer), 2);
        house.writer.execute_batch("ROLLBACK").unwrap();
        assert_eq!(read(&house.readers[0]), 1);
    }

    #[tokio::test]
    async fn copies_have_a_bound() {
        let house = House::new().await;
        let long = "x".repeat(MOST_BYTES_OF_ONE - 1024);
        for place in 0..40 {
            let key = format!("telegram:topic:-1002:{}", place + 2);
            let sql = "INSERT INTO places (key, created_at) VALUES (?1, 0)";
            house.writer.execute(sql, [&key]).unwrap();
            let sql = "INSERT INTO messages (place_id, conversation, kind, text, created_at) VALUES (?1, 1, 'person', ?2, 0)";
            let id = house.writer.last_insert_rowid();
            house.writer.execute(sql, params![id, long]).unwrap();
            let place = key.parse().unwrap();
            let people = People::default();
            let read = house
                .recent
                .history(&house.readers[0], &place, View::Whole, &people);
            assert_eq!(read.unwrap().messages.len(), 1);
            let kept = house.recent.lock();
            assert!(kept.bytes <= MOST_BYTES && kept.copies.len() <= 17);
            let bytes: usize = kept.copies.values().map(|copy| copy.bytes).sum();
            assert_eq!(kept.bytes, bytes);
        }
        house.say("person", 0, &"x".repeat(MOST_BYTES_OF_ONE));
        let before = house.recent.lock().copies.len();
        let [read, _] = house.read(&house.readers[0], View::Whole);
        assert_eq!(read.len(), 1);
        assert_eq!(
            house.recent.lock().copies.len(),
            before,
            "too long for a copy"
        );
        assert!(house.home.path().is_dir());
    }
}
