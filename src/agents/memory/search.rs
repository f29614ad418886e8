//! Finds memories by their words, the best fitting first, in a time that does not depend on what others remember.

use rusqlite::{Connection, params};

use super::rows::{self, Entry};
use super::scope::Clause;
use super::words;

/// Words of a question that are looked for; of more, the longest.
const MAX_WORDS: usize = 16;
/// Ranking a row costs about a microsecond, so no question ranks more than this many.
const MOST_RANKED: u32 = 2000;
/// Words that are looked for when all of them are in very many rows.
const MOST_COMMON_WORDS: usize = 3;

/// What is asked of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    /// No visible row has any of the words.
    Nothing,
    /// Rows with any of these words.
    Any(Vec<Term>),
    /// Every word is in very many rows: the newest with all of these.
    NewestWithAll(Vec<Term>),
}

/// A word in all its visible forms, in the language of the index. Words have letters and digits only, so quotes are enough.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term(String);

/// The limit counts rows that were let through by the clause.
pub(super) fn search(connection: &Connection, clause: &Clause, text: &str, limit: u32) -> rusqlite::Result<Vec<Entry>> {
    match question(connection, clause, text)? {
        Question::Nothing => Ok(Vec::new()),
        Question::Any(terms) => ask(connection, clause, &any(&terms), Order::Best, limit),
        Question::NewestWithAll(terms) => {
            let mut found = ask(connection, clause, &all(&terms), Order::Newest, limit)?;
            if found.len() < limit as usize {
                let others = ask(connection, clause, &any(&terms), Order::Newest, limit)?;
                let more: Vec<Entry> =
                    others.into_iter().filter(|other| found.iter().all(|entry| entry.id != other.id)).collect();
                found.extend(more);
                found.truncate(limit as usize);
            }
            Ok(found)
        }
    }
}

/// What a search would ask, for people.
pub(super) fn explain(connection: &Connection, clause: &Clause, text: &str) -> rusqlite::Result<String> {
    let asked = match question(connection, clause, text)? {
        Question::Nothing => "nothing: no visible memory has any of these words".to_owned(),
        Question::Any(terms) => format!("{}, best first (bm25)", any(&terms)),
        Question::NewestWithAll(terms) => format!("{}, newest first: each is in more than {MOST_RANKED}", all(&terms)),
    };
    Ok(format!("clause: {}\nwords:  {asked}", clause.shown()))
}

#[derive(Debug, Clone, Copy)]
enum Order {
    /// By bm25.
    Best,
    Newest,
}

fn ask(connection: &Connection, clause: &Clause, words: &str, order: Order, limit: u32) -> rusqlite::Result<Vec<Entry>> {
    let order = match order {
        Order::Best => "f.rank",
        Order::Newest => "f.rowid DESC",
    };
    // A cross join keeps the order of the two: first the index, then the rows it names.
    let from = "memories_fts AS f CROSS JOIN memories AS m ON m.id = f.rowid";
    let rest = format!("WHERE memories_fts MATCH ?2 AND {} ORDER BY {order} LIMIT ?3", Clause::SQL);
    let mut statement = connection.prepare_cached(&rows::select(from, &rest))?;
    let found = statement.query_map(params![clause.owners(), words, limit], rows::entry)?;
    found.collect()
}

/// Rare words tell more and cost less, so they are taken first, for as long as their rows can be ranked.
fn question(connection: &Connection, clause: &Clause, text: &str) -> rusqlite::Result<Question> {
    let numbers = clause.numbers(connection)?;
    let mut counted = Vec::new();
    for word in asked_words(text) {
        let term = Term::new(&numbers, &word);
        let rows = count(connection, &term)?;
        if rows > 0 {
            counted.push((rows, term));
        }
    }
    // Stable: among equals, the longest word stays first.
    counted.sort_by_key(|(rows, _)| *rows);
    let mut room = MOST_RANKED;
    let rare: Vec<Term> = counted
        .iter()
        .take_while(|(rows, _)| {
            let fits = *rows <= room;
            room = room.saturating_sub(*rows);
            fits
        })
        .map(|(_, term)| term.clone())
        .collect();
    Ok(match (rare.is_empty(), counted.is_empty()) {
        (_, true) => Question::Nothing,
        (false, _) => Question::Any(rare),
        (true, _) => Question::NewestWithAll(counted.into_iter().take(MOST_COMMON_WORDS).map(|(_, term)| term).collect()),
    })
}

fn asked_words(text: &str) -> Vec<String> {
    let mut words = words::distinct(text);
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    words.truncate(MAX_WORDS);
    words
}

/// Visible rows with the word; everything above [`MOST_RANKED`] is the same.
fn count(connection: &Connection, term: &Term) -> rusqlite::Result<u32> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH ?1 LIMIT ?2)";
    connection.prepare_cached(sql)?.query_row(params![term.0, MOST_RANKED + 1], |row| row.get(0))
}

impl Term {
    fn new(numbers: &[i64], word: &str) -> Self {
        let forms: Vec<String> = numbers.iter().map(|number| format!("\"{}\"", words::scoped(*number, word))).collect();
        Term(forms.join(" OR "))
    }
}

fn any(terms: &[Term]) -> String {
    terms.iter().map(|term| term.0.as_str()).collect::<Vec<_>>().join(" OR ")
}

fn all(terms: &[Term]) -> String {
    terms.iter().map(|term| format!("({})", term.0)).collect::<Vec<_>>().join(" AND ")
}
