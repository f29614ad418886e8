//! Explains in plain words the things that stand twice in a file, and where the first stands.

use std::ops::Range;

use super::syntax::Broken;
use super::{Problem, commented_out, schema};
use crate::domain::AgentId;

/// A section's header: `[agents.rose]`.
struct Header<'a> {
    span: Range<usize>,
    /// Without brackets.
    name: &'a str,
    is_double: bool,
}

impl Broken<'_> {
    /// `None` for a consequence of a problem told elsewhere.
    pub(super) fn duplicate(&self, span: Range<usize>) -> Option<Problem> {
        let headers = self.headers();
        let at = headers
            .iter()
            .rposition(|header| header.span.start <= span.start);
        let is_header = at.is_some_and(|at| headers[at].span.contains(&span.start));
        let header = at.map(|at| &headers[at]);
        if let Some(list) = header.filter(|header| is_list_of_tables(header.name))
            && let Some(problem) = self.single_brackets(&headers, list.name)
        {
            return Some(problem);
        }
        if header.is_some_and(|header| header.is_double && is_group(header.name)) {
            return self.nameless_brackets(header?);
        }
        if let (true, Some(header)) = (is_header, header) {
            return Some(self.second_header(&headers, header));
        }
        // The header is told already, and its keys are consequences.
        let is_second = header.is_some_and(|header| {
            headers
                .iter()
                .any(|other| other.span.start < header.span.start && other.name == header.name)
        });
        if is_second && !header.is_some_and(|header| header.is_double) {
            return None;
        }
        self.second_key(span, header)
    }

    /// `None` behind a lost header, if the header is told already at a key above.
    fn second_key(&self, span: Range<usize>, header: Option<&Header<'_>>) -> Option<Problem> {
        let section = header.map_or(0, |header| header.span.end);
        let key = self.covered.get(span.clone()).unwrap_or_default();
        let above = self.keys_between(section, span.start);
        let written = self.text.get(span.clone()).unwrap_or_default();
        let first = above.iter().find(|(name, _)| *name == written);
        let problem = Problem::new(span.clone(), format!("`{key}` is set twice"))
            .label("the second one")
            .help("delete one of the two lines");
        let Some((_, first)) = first else {
            return Some(problem);
        };
        let is_again = |(name, place): &(&str, Range<usize>)| {
            let mut earlier = above.iter().filter(|(_, other)| other.start < place.start);
            earlier.any(|(other, _)| other == name)
        };
        let told_before = above.iter().find(|key| is_again(key));
        let problem = problem.related(first.clone(), "the first one");
        let lost = commented_out::header_above(self.text, span.start);
        if let Some((line, name)) = lost.filter(|(line, _)| *line > self.line_number(first.start)) {
            let is_told =
                told_before.is_some_and(|(_, place)| self.line_number(place.start) > line);
            return (!is_told).then(|| {
                problem
                    .label(commented_out::label(line, name))
                    .help(commented_out::advice(line, name))
            });
        }
        match header.filter(|header| header.is_double) {
            Some(_) if told_before.is_some() => None,
            Some(header) => {
                let shown = &self.covered[header.span.clone()];
                Some(problem.help(format!(
                    "write `{shown}` above it, if another one begins here; if not, delete one of the two lines"
                )))
            }
            None => Some(problem),
        }
    }

    /// The keys at the beginnings of lines.
    fn keys_between(&self, from: usize, to: usize) -> Vec<(&str, Range<usize>)> {
        let mut keys = Vec::new();
        let mut start = from;
        for line in self.text[from..to].split_inclusive('\n') {
            let at = start + (line.len() - line.trim_start().len());
            if let Some((key, _)) = line.split_once('=') {
                let key = key.trim();
                keys.push((key, at..at + key.len()));
            }
            start += line.len();
        }
        keys
    }

    fn second_header(&self, headers: &[Header<'_>], header: &Header<'_>) -> Problem {
        let shown = self.covered[header.span.clone()].trim();
        let problem = Problem::new(header.span.clone(), format!("`{shown}` is there twice"))
            .label("the second one");
        let first = headers
            .iter()
            .find(|other| other.name == header.name && other.span.start < header.span.start);
        match first {
            Some(first) => problem
                .related(first.span.clone(), "the first one")
                .help("move the lines below it to the first one, and delete this header"),
            None => problem.help(format!(
                "`{}` is set above; keep one of the two",
                header.name
            )),
        }
    }

    /// `[[agents]]` beside `[agents.main]`.
    fn nameless_brackets(&self, header: &Header<'_>) -> Option<Problem> {
        let below = &self.covered[header.span.end..];
        let below = below.split("\n[").next().unwrap_or_default();
        let value = |wanted: &str| {
            let mut lines = below.lines().filter_map(|line| line.split_once('='));
            lines.find_map(|(key, value)| {
                (key.trim() == wanted).then(|| value.trim().trim_matches(['"', '\'']))
            })
        };
        let name = value("id").or_else(|| value("name"));
        Some(double_brackets(header.span.clone(), header.name, name))
    }

    /// `[bindings]`, written several times.
    fn single_brackets(&self, headers: &[Header<'_>], name: &str) -> Option<Problem> {
        const MOST_SHOWN: usize = 4;
        let single: Vec<&Header<'_>> = headers
            .iter()
            .filter(|header| header.name == name && !header.is_double)
            .collect();
        let (first, others) = single.split_first()?;
        let count = match single.len() {
            1 => "before each".to_owned(),
            2 => "in both places".to_owned(),
            count => format!("in all {count} places"),
        };
        let problem = Problem::new(
            first.span.clone(),
            format!("`[{name}]` needs double brackets"),
        )
        .label(format!("write `[[{name}]]`"))
        .help(format!(
            "each one is an item of a list, so write `[[{name}]]` {count}"
        ));
        Some(
            others
                .iter()
                .take(MOST_SHOWN)
                .fold(problem, |problem, other| {
                    problem.related(other.span.clone(), "here too")
                }),
        )
    }

    fn headers(&self) -> Vec<Header<'_>> {
        let mut headers = Vec::new();
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            let shown = line.split('#').next().unwrap_or_default().trim();
            if shown.starts_with('[') && shown.ends_with(']') {
                let at = start + line.find('[').unwrap_or_default();
                headers.push(Header {
                    span: at..at + shown.len(),
                    name: shown.trim_matches(['[', ']']).trim(),
                    is_double: shown.starts_with("[["),
                });
            }
            start += line.len();
        }
        headers
    }
}

/// `[[agents]]`: a list, where each section has a name of its own.
pub(super) fn double_brackets(span: Range<usize>, group: &str, name: Option<&str>) -> Problem {
    let example = schema::TOP.key(group).map(schema::Key::usage);
    let header = match name.and_then(usable_name) {
        Some(name) => format!("[{group}.{name}]"),
        None => example.unwrap_or_default(),
    };
    Problem::new(
        span,
        format!("`[[{group}]]` is a list, and {group} have names"),
    )
    .label("a section with a name in single brackets belongs here")
    .help(format!(
        "write `{header}` before the keys of this one, and so for each"
    ))
}

/// A possible name of a section, made of this text.
pub(super) fn usable_name(text: &str) -> Option<AgentId> {
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    AgentId::parse(&words.collect::<Vec<_>>().join("-").to_lowercase()).ok()
}

/// Whether the sections of this kind have names, as `[agents.rose]` has.
fn is_group(name: &str) -> bool {
    let key = schema::TOP.key(name);
    key.is_some_and(|key| key.is_table() && key.usage().contains('.'))
}

fn is_list_of_tables(name: &str) -> bool {
    let is_jobs = name.starts_with("agents.") && name.ends_with(".jobs");
    let key = schema::TOP.key(name);
    is_jobs || key.is_some_and(schema::Key::is_list_of_tables)
}
