//! Rules and messages as single lines, so the tests below read as tables.

use std::ops::Range;
use std::str::FromStr;

use super::{Pin, Route, Table, route};
use crate::config::{Binding, Problem, Spanned};
use crate::domain::{AgentId, DiscordId, Origin};

mod judged;
mod listing;
mod problems;
mod properties;
mod strength;

/// A rule per line: `telegram:group:-100 name=ops* users=telegram:5,telegram:6 locked -> agent`.
fn rules(text: &str) -> Vec<Binding> {
    let mut start = 0;
    let mut bindings = Vec::new();
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() {
            bindings.push(Binding {
                index: bindings.len(),
                line: bindings.len() + 1,
                ..rule(line, start)
            });
        }
        start += line.len();
    }
    bindings
}

fn rule(line: &str, start: usize) -> Binding {
    let (matched, agent) = line.split_once("->").expect("a rule ends with `-> agent`");
    let words: Vec<&str> = matched.split_whitespace().collect();
    let span = |word: &str| span_in(line, word, start);
    let spanned = |word: &str| Spanned {
        value: word.to_owned(),
        span: span(word),
    };
    let filter = |key: &str| {
        words
            .iter()
            .find_map(|word| word.strip_prefix(key))
            .map(spanned)
    };
    Binding {
        index: 0,
        line: 0,
        pattern: spanned(words[0]),
        agent: Spanned {
            value: AgentId::parse(agent.trim()).unwrap(),
            span: span(agent),
        },
        locked: words.contains(&"locked"),
        require_mention: filter("require_mention=").map(|written| written.value == "true"),
        users: filter("users=").map(list),
        roles: filter("roles=").map(list),
        name: filter("name="),
        tag: filter("tag="),
    }
}

fn span_in(line: &str, word: &str, start: usize) -> Range<usize> {
    let at = start + (word.as_ptr() as usize - line.as_ptr() as usize);
    at..at + word.len()
}

fn list<T: FromStr>(written: Spanned<String>) -> Spanned<Vec<T>> {
    Spanned {
        value: parts(&written.value),
        span: written.span,
    }
}

fn parts<T: FromStr>(text: &str) -> Vec<T> {
    text.split(',')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().ok().expect("an item of the right kind"))
        .collect()
}

/// `telegram:topic:-100:7 by=telegram:6 name=Ops server=8 category=3 roles=9,10 tags=bug`; by the
/// person 5 unless said.
fn message(text: &str) -> Origin {
    let words: Vec<&str> = text.split_whitespace().collect();
    let fact = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
    let platform = words[0].split(':').next().unwrap();
    let person = fact("by=").map_or(format!("{platform}:5"), str::to_owned);
    Origin {
        roles: fact("roles=").map(parts).unwrap_or_default(),
        server: fact("server=").map(|id| id.parse().unwrap()),
        category: fact("category=").map(|id| id.parse::<DiscordId>().unwrap()),
        name: fact("name=").map(str::to_owned),
        tags: fact("tags=").map(parts).unwrap_or_default(),
        ..Origin::new(words[0].parse().unwrap(), person.parse().unwrap())
    }
}

fn build(bindings: &[Binding]) -> (Table, Vec<Problem>) {
    let agents = bindings
        .iter()
        .map(|binding| binding.agent.value.clone())
        .chain([AgentId::main()]);
    Table::from_bindings(AgentId::main(), agents, bindings)
}

fn table(text: &str) -> Table {
    let (table, problems) = build(&rules(text));
    assert_eq!(problems, [], "{text}");
    table
}

fn routed(text: &str, place: &str) -> Route {
    route(&table(text), None, &message(place))
}

fn pin(agent: &str) -> Pin {
    Pin {
        agent: AgentId::parse(agent).unwrap(),
        once: false,
        set_by: "telegram:9".parse().unwrap(),
        set_by_name: None,
        set_at: 0,
        until: None,
    }
}
