//! Finds memories by their words, the best fitting first. The time does not depend on the memories
//! of other agents.

use rusqlite::{Connection, named_params, params};

use super::filter::Filter;
use super::rows::{self, Entry};
use super::scope::{Clause, Values};
use super::{stop_words, tokenizer};

/// Words of a question to look for, the longest first.
const MAX_WORDS: usize = 16;
/// Ranking a row costs about a microsecond, so no question ranks more than this many.
const MOST_RANKED: u32 = 1000;
/// Words to look for when every word is in very many rows.
const MOST_COMMON_WORDS: usize = 3;

/// The request to the index.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    /// No visible row has any of the words.
    Nothing,
    /// Rows with any of these words, the best first.
    Best(Vec<String>),
    /// Every word is in very many rows: the newest rows, rows with all of these words first.
    Newest(Vec<String>),
}

/// The rows to choose from.
#[derive(Clone, Copy)]
struct Among<'a> {
    clause: &'a Clause,
    filter: &'a Filter,
}

/// The limit counts the rows let through by the clause and the filter.
pub(super) fn search(
    connection: &Connection,
    clause: &Clause,
    filter: &Filter,
    text: &str,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let among = Among { clause, filter };
    let numbers = clause.numbers(connection)?;
    match question(connection, &numbers, text)? {
        Question::Nothing => Ok(Vec::new()),
        Question::Best(words) => ask(
            connection,
            among,
            &any(&numbers, &words),
            Order::Best,
            limit,
        ),
        Question::Newest(words) => {
            let mut found = newest(connection, among, &numbers, limit, |number| {
                all(&[number], &words)
            })?;
            if found.len() < limit as usize {
                let others = newest(connection, among, &numbers, limit, |number| {
                    any(&[number], &words)
                })?;
                let known: Vec<i64> = found.iter().map(|entry| entry.id).collect();
                found.extend(
                    others
                        .into_iter()
                        .filter(|entry| !known.contains(&entry.id)),
                );
                found.truncate(limit as usize);
            }
            Ok(found)
        }
    }
}

/// Describes the request of a search, for people.
pub(super) fn explain(
    connection: &Connection,
    clause: &Clause,
    text: &str,
) -> rusqlite::Result<String> {
    let numbers = clause.numbers(connection)?;
    Ok(match question(connection, &numbers, text)? {
        Question::Nothing if asked_words(text).is_empty() => {
            "nothing: these words are in almost every text".to_owned()
        }
        Question::Nothing => "nothing: none of these memories has any of the words".to_owned(),
        Question::Best(words) => format!("any of: {}; the best match first", words.join(", ")),
        Question::Newest(words) => format!(
            "{}; the newest first, because each word is in more than {MOST_RANKED} memories",
            words.join(", ")
        ),
    })
}

#[derive(Debug, Clone, Copy)]
enum Order {
    /// The best first, by bm25.
    Best,
    /// The newest first, by slot: within a scope, by age.
    Newest,
}

fn ask(
    connection: &Connection,
    Among { clause, filter }: Among<'_>,
    words: &str,
    order: Order,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let order = match order {
        Order::Best => "f.rank",
        Order::Newest => "f.rowid DESC",
    };
    // A cross join keeps the order of the two: first the index, then its rows.
    let from = "memories_fts AS f CROSS JOIN memories AS m ON m.slot = f.rowid";
    let rest = format!(
        "WHERE memories_fts MATCH :words AND {}{} ORDER BY {order} LIMIT :limit",
        clause.sql(),
        filter.sql()
    );
    let Values {
        owners,
        people,
        place,
    } = clause.values();
    let mut statement = connection.prepare_cached(&rows::select(from, &rest))?;
    let found = statement.query_map(
        named_params! {
            ":owners": owners, ":people": people, ":place": place, ":words": words, ":limit": limit,
        },
        rows::entry,
    )?;
    found.collect()
}

/// The newest rows of each scope, and of these the newest.
fn newest(
    connection: &Connection,
    among: Among<'_>,
    numbers: &[i64],
    limit: u32,
    words: impl Fn(i64) -> String,
) -> rusqlite::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for number in numbers {
        found.extend(ask(
            connection,
            among,
            &words(*number),
            Order::Newest,
            limit,
        )?);
    }
    found.sort_by_key(|entry| std::cmp::Reverse(entry.id));
    found.truncate(limit as usize);
    Ok(found)
}

/// Rare words tell more and cost less, so they are taken first, for as long as their rows can be
/// ranked.
fn question(connection: &Connection, numbers: &[i64], text: &str) -> rusqlite::Result<Question> {
    if numbers.is_empty() {
        return Ok(Question::Nothing);
    }
    let mut counted = Vec::new();
    for word in asked_words(text) {
        let rows = count(connection, &forms(numbers, &word))?;
        if rows > 0 {
            counted.push((rows, word));
        }
    }
    // Stable: among equals, the longest word stays first.
    counted.sort_by_key(|(rows, _)| *rows);
    let mut room = MOST_RANKED;
    let fits = |(rows, _): &&(u32, String)| {
        let fits = *rows <= room;
        room = room.saturating_sub(*rows);
        fits
    };
    let rare: Vec<String> = counted
        .iter()
        .take_while(fits)
        .map(|(_, word)| word.clone())
        .collect();
    Ok(match (rare.is_empty(), counted.is_empty()) {
        (_, true) => Question::Nothing,
        (false, _) => Question::Best(rare),
        (true, _) => Question::Newest(
            counted
                .into_iter()
                .take(MOST_COMMON_WORDS)
                .map(|(_, word)| word)
                .collect(),
        ),
    })
}

/// Words found in every text are left out, so a question without other words finds nothing.
fn asked_words(text: &str) -> Vec<String> {
    let mut words = stop_words::telling(text);
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    words.truncate(MAX_WORDS);
    words
}

/// The number of rows with the word; all numbers above [`MOST_RANKED`] count the same.
fn count(connection: &Connection, forms: &str) -> rusqlite::Result<u32> {
    let sql =
        "SELECT count(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH ?1 LIMIT ?2)";
    connection
        .prepare_cached(sql)?
        .query_row(params![forms, MOST_RANKED + 1], |row| row.get(0))
}

/// A word in all its visible forms, in the language of the index. Words have letters and digits
/// only, so quotes are enough.
fn forms(numbers: &[i64], word: &str) -> String {
    let quoted = numbers
        .iter()
        .map(|number| format!("\"{}\"", tokenizer::scoped(*number, word)));
    quoted.collect::<Vec<_>>().join(" OR ")
}

fn any(numbers: &[i64], words: &[String]) -> String {
    words
        .iter()
        .map(|word| forms(numbers, word))
        .collect::<Vec<_>>()
        .join(" OR ")
}

fn all(numbers: &[i64], words: &[String]) -> String {
    words
        .iter()
        .map(|word| format!("({})", forms(numbers, word)))
        .collect::<Vec<_>>()
        .join(" AND ")
}
