//! Shows problems in the config file with file, line, column and a pointer under the spot.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, normalize_untrusted_str};

use super::{Secrets, Spanned};

/// The file's path and text.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pub path: PathBuf,
    /// In a draft and a report, secrets in the text are already covered by asterisks.
    pub text: String,
}

/// A problem in the file, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The problem in a line: "unknown key `defualt_agent`".
    pub message: String,
    /// The wrong bytes of the file.
    pub span: Range<usize>,
    /// The text under the pointer.
    pub label: String,
    /// The remedy.
    pub help: Option<String>,
    /// Other spots of the file that belong to the problem, each with its label.
    pub related: Vec<Spanned<String>>,
    pub fault: Fault,
}

/// Kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// The file is not TOML here.
    Syntax,
    UnknownKey,
    MissingKey,
    /// A value of another type, or a number outside its range.
    WrongType,
    /// A word that the key does not take.
    WrongWord,
    /// The form is right, but not the meaning.
    #[default]
    Meaning,
    /// A secret missing on this machine.
    MissingSecret,
    /// A secret on this machine that cannot be used.
    BadSecret,
    /// A case of `[[route_tests]]` has another outcome.
    RouteTest,
    /// Right, but of no use as long as another part is missing.
    Idle,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The config cannot be used.
    Error,
    /// The config is right, but some or all of its parts cannot run on this machine.
    Warning,
}

/// All problems of a file, ready to print.
#[derive(Debug, Clone)]
pub struct Report {
    pub source: Source,
    pub problems: Vec<Problem>,
    /// The purpose of reading the config.
    pub purpose: Secrets,
}

impl Problem {
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Problem {
            message: message.into(),
            span,
            label: String::new(),
            help: None,
            related: Vec::new(),
            fault: Fault::default(),
        }
    }

    pub fn label(self, label: impl Into<String>) -> Self {
        Problem {
            label: label.into(),
            ..self
        }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Problem {
            help: Some(help.into()),
            ..self
        }
    }

    /// Adds another spot of the file.
    pub fn related(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.related.push(Spanned {
            value: label.into(),
            span,
        });
        self
    }

    pub(crate) fn fault(self, fault: Fault) -> Self {
        Problem { fault, ..self }
    }
}

impl Fault {
    /// The word in JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Fault::Syntax => "syntax",
            Fault::UnknownKey => "unknown-key",
            Fault::MissingKey => "missing-key",
            Fault::WrongType => "wrong-type",
            Fault::WrongWord => "wrong-word",
            Fault::Meaning => "meaning",
            Fault::MissingSecret => "missing-secret",
            Fault::BadSecret => "bad-secret",
            Fault::RouteTest => "route-test",
            Fault::Idle => "idle",
        }
    }
}

impl Severity {
    /// The word in JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Report {
    /// The whole text for a terminal or a log, without a line break at the end.
    pub fn render(&self, color: bool) -> String {
        self.render_problems(color) + &self.summary()
    }

    /// The problems alone. Each ends with an empty line.
    pub(crate) fn render_problems(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut text = String::new();
        for problem in self.in_file_order() {
            text += &self.render_problem(problem, &renderer);
            text += "\n\n";
        }
        text
    }

    pub(super) fn in_file_order(&self) -> Vec<&Problem> {
        let mut problems: Vec<&Problem> = self.problems.iter().collect();
        problems.sort_by_key(|problem| problem.span.start);
        problems
    }

    /// Only a config that is about to run needs the secrets.
    pub(crate) fn severity(&self, problem: &Problem) -> Severity {
        match (problem.fault, self.purpose) {
            (Fault::MissingSecret, Secrets::WherePresent) | (Fault::Idle, _) => Severity::Warning,
            _ => Severity::Error,
        }
    }

    fn render_problem(&self, problem: &Problem, renderer: &Renderer) -> String {
        let label = Some(problem.label.as_str()).filter(|label| !label.is_empty());
        let pointer = AnnotationKind::Primary
            .span(self.inside_text(&problem.span))
            .label(label);
        let others = problem.related.iter().map(|other| {
            AnnotationKind::Context
                .span(self.inside_text(&other.span))
                .label(other.value.as_str())
        });
        let snippet = Snippet::source(&self.source.text)
            .path(self.source.path.to_string_lossy())
            .annotation(pointer)
            .annotations(others);
        let help = problem
            .help
            .as_ref()
            .map(|help| Level::HELP.message(normalize_untrusted_str(help)));
        let level = match self.severity(problem) {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        renderer.render(&[level
            .primary_title(&problem.message)
            .element(snippet)
            .elements(help)])
    }

    /// The nearest span inside the text, because the printer fails on a span outside.
    fn inside_text(&self, span: &Range<usize>) -> Range<usize> {
        let text = &self.source.text;
        let start = text.floor_char_boundary(span.start);
        let end = text.ceil_char_boundary(span.end.min(text.len()));
        start..end.max(start)
    }

    /// Line and column of a byte, both counted from 1, columns in characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let before = &self.source.text[..self.source.text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (line_of(before), before[line_start..].chars().count() + 1)
    }

    /// The number of problems, and their file. A program that was to start adds that the start
    /// failed.
    fn summary(&self) -> String {
        let file = self
            .source
            .path
            .file_name()
            .unwrap_or(self.source.path.as_os_str())
            .to_string_lossy();
        let is_warning = |problem: &&Problem| self.severity(problem) == Severity::Warning;
        let warnings = self.problems.iter().filter(is_warning).count();
        let count = |number: usize, noun: &str| match number {
            1 => format!("1 {noun}"),
            number => format!("{number} {noun}s"),
        };
        let problems = match (self.problems.len() - warnings, warnings) {
            (errors, 0) => count(errors, "problem"),
            (0, warnings) => count(warnings, "warning"),
            (errors, warnings) => {
                let (errors, warnings) = (count(errors, "problem"), count(warnings, "warning"));
                format!("{errors} and {warnings}")
            }
        };
        match self.purpose {
            Secrets::Required => format!("{problems} in {file}. Parlor was not started."),
            Secrets::WherePresent => format!("{problems} in {file}."),
        }
    }
}

/// The line in which a text ends, counted from 1.
pub(super) fn line_of(before: &str) -> usize {
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// The lines of a text, for many spots: each is found without a walk through the text before it.
pub(super) struct Lines {
    /// Of the line breaks.
    positions: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Lines {
            positions: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
        }
    }

    /// The line, counted from 1, of the byte at this position.
    pub(super) fn line_at(&self, position: usize) -> usize {
        self.positions.partition_point(|end| *end < position) + 1
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Report {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_a_walk_through_the_text() {
        for text in ["", "\n", "one", "one\ntwo\n\nfour", "\n\nthree\n"] {
            let lines = Lines::of(text);
            for position in 0..=text.len() {
                let walked = line_of(&text[..position]);
                assert_eq!(lines.line_at(position), walked, "{text:?} at {position}");
            }
        }
    }

    fn report(text: &str, problem: Problem) -> Report {
        Report {
            source: Source {
                path: "config.toml".into(),
                text: text.into(),
            },
            problems: vec![problem],
            purpose: Secrets::WherePresent,
        }
    }

    #[test]
    fn a_span_outside_the_text_is_still_shown() {
        for span in [0..0, 9..9, 5..500, 500..600, 11..11] {
            let problem = Problem::new(span.clone(), "wrong").related(span, "and this");
            let report = report("name = \"ü\"\n", problem);
            assert!(report.to_string().contains("config.toml:"));
        }
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        let report = report("a = 1\n", Problem::new(0..1, "wrong"));
        assert!(report.render(true).contains('\u{1b}'));
        assert!(!report.to_string().contains('\u{1b}'));
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let report = report("a = 1\nü = \"x\"\n", Problem::new(0..1, "wrong"));
        for (at, expected) in [
            (0, (1, 1)),
            (5, (1, 6)),
            (6, (2, 1)),
            (8, (2, 2)),
            (7, (2, 1)),
            (99, (3, 1)),
        ] {
            assert_eq!(report.position(at), expected, "{at}");
        }
    }

    /// A missing secret stops a start, and is worth a word for a person who only checks.
    #[test]
    fn a_missing_secret_is_a_warning_unless_parlor_is_to_start() {
        let problem = Problem::new(0..1, "X is not set").fault(Fault::MissingSecret);
        let checked = report("a = 1\n", problem);
        let started = Report {
            purpose: Secrets::Required,
            ..checked.clone()
        };
        assert!(checked.to_string().starts_with("warning: X is not set"));
        assert!(checked.to_string().ends_with("1 warning in config.toml."));
        assert!(started.to_string().starts_with("error: X is not set"));
        assert!(started.to_string().ends_with("Parlor was not started."));
    }
}
