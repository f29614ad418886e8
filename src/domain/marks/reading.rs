//! Reads a prompt's text back, for tests of its unambiguity.

use chrono::{DateTime, Local, NaiveDateTime, TimeZone};

use super::{CLOSE, ESCAPE, Marks, OPEN, SEPARATOR, is_around, unescape};
use crate::domain::said::{Around, Author, MemoryMark, Said, Source, Voice};
use crate::domain::{AgentId, Role};

impl Marks {
    /// The sources and words of a text. Panics for a text not written by [`Marks`]. People have no
    /// id in a text, and times have no seconds.
    pub(crate) fn read(&self, text: &str) -> Vec<Said> {
        let begin = format!("{OPEN}{} ", self.word);
        let mut all: Vec<Said> = Vec::new();
        let mut day = String::new();
        let mut pieces = text.split(OPEN);
        assert_eq!(pieces.next(), Some(""), "words without a source: {text:?}");
        let pieces: Vec<&str> = pieces.collect();
        for (index, piece) in pieces.iter().enumerate() {
            let (mark, words) = piece.split_once(CLOSE).expect("a mark ends");
            let mark = mark
                .strip_prefix(&begin[OPEN.len_utf8()..])
                .expect("a mark has the word");
            let is_last = index + 1 == pieces.len();
            let next_is_head = pieces
                .get(index + 1)
                .is_some_and(|next| !belongs_to_message(next, &self.word));
            let words = match () {
                () if is_last => words,
                () if next_is_head => words.strip_suffix(SEPARATOR).expect("a separator"),
                () => words
                    .strip_suffix(' ')
                    .expect("a space between marks of a message"),
            };
            if belongs_to_message(piece, &self.word) {
                let said = all.last_mut().expect("a source before");
                said.around.push(read_around(mark));
                said.text = read_words(words);
            } else {
                all.push(Said::new(read_head(mark, &mut day), read_words(words)));
            }
        }
        all
    }
}

fn read_words(words: &str) -> String {
    unescape(words.strip_prefix(' ').unwrap_or(words))
}

fn belongs_to_message(piece: &str, word: &str) -> bool {
    let mark = piece
        .strip_prefix(word)
        .and_then(|mark| mark.strip_prefix(' '));
    mark.is_some_and(is_around)
}

fn read_head(mark: &str, day: &mut String) -> Source {
    let agent = |text: &str| AgentId::parse(text).expect("an agent");
    if let Some(url) = mark.strip_prefix("page ") {
        return Source::Page(unescape(url));
    }
    if let Some(path) = mark.strip_prefix("file ") {
        return Source::File(unescape(path));
    }
    match mark {
        "you" => Source::You,
        "gateway" => Source::Gateway,
        "summary" => Source::Summary,
        mark if mark.starts_with('#') => Source::Person(read_voice(mark, day)),
        mark if mark.starts_with('@') => Source::Agent(agent(&mark[1..])),
        mark => {
            if let Some(rest) = mark.strip_prefix("handed over by ") {
                Source::Handoff(read_voice(rest, day))
            } else if let Some(rest) = mark.strip_prefix("task from @") {
                Source::Task(agent(rest))
            } else if let Some(rest) = mark.strip_prefix("report of @") {
                Source::Report(agent(rest))
            } else {
                let rest = mark.strip_prefix("memory ").expect("a known kind");
                Source::Memory(read_memory(rest))
            }
        }
    }
}

fn read_number(text: &str) -> Option<u32> {
    text.strip_prefix('#').expect("a number").parse().ok()
}

fn read_voice(mark: &str, day: &mut String) -> Voice {
    let mut fields = mark.splitn(4, ' ');
    let mut next = || fields.next().expect("a field");
    let number = read_number(next());
    let role = next().parse::<Role>().ok();
    let (time, name) = match (next(), next()) {
        (date, rest) if date.contains('-') => {
            let (zone, rest) = rest.split_once(' ').expect("a zone");
            let (time, name) = rest.split_once(' ').expect("a name");
            *day = format!("{date} {zone}");
            (time, name)
        }
        (time, name) => (time, name),
    };
    Voice {
        name: unescape(name),
        person: None,
        number,
        role,
        at: read_time(&format!("{day} {time}")),
    }
}

fn read_time(text: &str) -> i64 {
    let read = DateTime::parse_from_str(text, "%Y-%m-%d %:z %H:%M");
    read.map_or_else(
        |_| {
            let plain = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").expect("a time");
            Local
                .from_local_datetime(&plain)
                .single()
                .expect("a time")
                .timestamp_millis()
        },
        |time| time.timestamp_millis(),
    )
}

fn read_memory(mark: &str) -> MemoryMark {
    let (day, mut rest) = mark.split_once(' ').unwrap_or((mark, ""));
    let mut memory = MemoryMark {
        day: day.to_owned(),
        ..MemoryMark::default()
    };
    if let Some(of) = rest.strip_prefix("of @") {
        let (of, behind) = of.split_once(' ').unwrap_or((of, ""));
        (memory.of, rest) = (Some(unescape(of)), behind);
    }
    if let Some(by) = rest.strip_prefix("by ") {
        let (by, behind) = by.split_once(' ').unwrap_or((by, ""));
        (memory.by, rest) = (read_number(by), behind);
    }
    memory.file = rest.strip_prefix("in ").map(unescape);
    memory
}

fn read_around(mark: &str) -> Around {
    match mark {
        "edited" => return Around::Edited,
        "deleted" => return Around::Deleted,
        "forwarded" => return Around::Forward { from: None },
        _ => {}
    }
    if let Some(what) = mark.strip_prefix("with ") {
        return Around::With(unescape(what));
    }
    if let Some(to) = mark.strip_prefix("reacted to: ") {
        return Around::Reaction { to: unescape(to) };
    }
    if let Some(from) = mark.strip_prefix("forwarded from ") {
        return Around::Forward {
            from: Some(read_author(from)),
        };
    }
    let to = mark.strip_prefix("replying to ").expect("a known kind");
    match split_quote(to) {
        Some((to, quote)) => Around::Reply {
            to: read_author(to),
            quote: Some(unescape(quote)),
        },
        None => Around::Reply {
            to: read_author(to),
            quote: None,
        },
    }
}

/// Splits at the first colon without an escape.
fn split_quote(text: &str) -> Option<(&str, &str)> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ESCAPE => drop(chars.next()),
            ':' => return Some((&text[..at], text[at + 1..].strip_prefix(' ')?)),
            _ => {}
        }
    }
    None
}

fn read_author(text: &str) -> Author {
    match text {
        "you" => Author::You,
        "a message that is gone" => Author::Gone,
        text => match text.strip_prefix('“') {
            Some(name) => Author::Named(unescape(name.strip_suffix('”').expect("a quote ends"))),
            None => {
                let (number, name) = text.split_once(' ').expect("a number and a name");
                Author::Person {
                    id: "telegram:1".parse().expect("an id"),
                    name: unescape(name),
                    number: read_number(number),
                }
            }
        },
    }
}
