//! The problems of a report as data, for editors and scripts: `parlor config check --json`.

use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use toml::de::{DeTable, DeValue};

use super::Report;

/// A problem with its place in numbers. All count from 1, columns in characters; the end is the
/// position behind the last wrong character.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ListedProblem {
    pub(crate) severity: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_line: usize,
    pub(crate) end_column: usize,
    /// The keys that lead to the spot. Empty where the file could not be read.
    pub(crate) key: Vec<Step>,
}

/// A part of a key's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Step {
    Name(String),
    /// An item of a list, counted from 0.
    Item(usize),
}

impl ListedProblem {
    /// A problem of the file as a whole.
    pub(crate) fn at_start(
        file: &Path,
        severity: &'static str,
        code: &'static str,
        message: String,
    ) -> Self {
        ListedProblem {
            severity,
            code,
            message,
            label: String::new(),
            help: None,
            file: file.to_string_lossy().into_owned(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 1,
            key: Vec::new(),
        }
    }
}

impl Report {
    /// All problems in the order of the file.
    pub(crate) fn listed(&self) -> Vec<ListedProblem> {
        // Secrets are covered in this text. A covered value is no TOML, but its key still is.
        let (tree, _) = DeTable::parse_recoverable(&self.source.text);
        let list = |problem: &super::Problem| {
            let (line, column) = self.position(problem.span.start);
            let (end_line, end_column) = self.position(problem.span.end.max(problem.span.start));
            ListedProblem {
                severity: self.severity(problem).as_str(),
                code: problem.fault.as_str(),
                message: problem.message.clone(),
                label: problem.label.clone(),
                help: problem.help.clone(),
                file: self.source.path.to_string_lossy().into_owned(),
                line,
                column,
                end_line,
                end_column,
                key: key_at(tree.get_ref(), &problem.span),
            }
        };
        self.in_file_order().into_iter().map(list).collect()
    }
}

/// The innermost key or value around a span.
fn key_at(tree: &DeTable<'_>, wanted: &Range<usize>) -> Vec<Step> {
    let mut best = None;
    let mut path = Vec::new();
    search_table(tree, wanted, &mut path, &mut best);
    best.map(|(_, path)| path).unwrap_or_default()
}

/// The best path so far, with the length of its span.
type Best = Option<(usize, Vec<Step>)>;

fn search_table(table: &DeTable<'_>, wanted: &Range<usize>, path: &mut Vec<Step>, best: &mut Best) {
    for (key, value) in table.iter() {
        path.push(Step::Name(key.get_ref().to_string()));
        consider(key.span(), wanted, path, best);
        search_value(value, wanted, path, best);
        path.pop();
    }
}

fn search_value(
    value: &toml::Spanned<DeValue<'_>>,
    wanted: &Range<usize>,
    path: &mut Vec<Step>,
    best: &mut Best,
) {
    consider(value.span(), wanted, path, best);
    match value.get_ref() {
        DeValue::Table(table) => search_table(table, wanted, path, best),
        DeValue::Array(array) => {
            for (index, item) in array.iter().enumerate() {
                path.push(Step::Item(index));
                search_value(item, wanted, path, best);
                path.pop();
            }
        }
        _ => {}
    }
}

fn consider(span: Range<usize>, wanted: &Range<usize>, path: &[Step], best: &mut Best) {
    let is_around = span.start <= wanted.start && wanted.end <= span.end;
    let is_closer = best
        .as_ref()
        .is_none_or(|(length, _)| span.len() <= *length);
    if is_around && is_closer {
        *best = Some((span.len(), path.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_leads_to_the_innermost_key() {
        let text = "default_agent = \"x\"\n\n[agents.rose]\nskills = [\"a\", \"b\"]\n\n[[bindings]]\nmatch = \"m\"\n\n[[bindings]]\nagent = \"r\"\n";
        let (tree, _) = DeTable::parse_recoverable(text);
        let check = |spot: &str, expected: serde_json::Value| {
            let start = text.find(spot).unwrap();
            let path = key_at(tree.get_ref(), &(start..start + spot.len()));
            assert_eq!(serde_json::to_value(path).unwrap(), expected, "{spot}");
        };
        check("\"x\"", serde_json::json!(["default_agent"]));
        check("default_agent", serde_json::json!(["default_agent"]));
        check("rose", serde_json::json!(["agents", "rose"]));
        check("\"b\"", serde_json::json!(["agents", "rose", "skills", 1]));
        check("\"m\"", serde_json::json!(["bindings", 0, "match"]));
        check("agent = ", serde_json::json!([]));
        check("\"r\"", serde_json::json!(["bindings", 1, "agent"]));
    }
}
