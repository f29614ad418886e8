//! Shows problems in the config file with file, line, column and a pointer under the spot.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, normalize_untrusted_str};

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
}

/// All problems of a file, ready to print.
#[derive(Debug, Clone)]
pub struct Report {
    pub source: Source,
    pub problems: Vec<Problem>,
}

impl Problem {
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Problem {
            message: message.into(),
            span,
            label: String::new(),
            help: None,
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
}

impl Report {
    /// The whole text for a terminal or a log, without a line break at the end.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut in_file_order: Vec<&Problem> = self.problems.iter().collect();
        in_file_order.sort_by_key(|problem| problem.span.start);
        let mut text = String::new();
        for problem in in_file_order {
            text += &self.render_problem(problem, &renderer);
            text += "\n\n";
        }
        text + &self.summary()
    }

    fn render_problem(&self, problem: &Problem, renderer: &Renderer) -> String {
        let label = Some(problem.label.as_str()).filter(|label| !label.is_empty());
        let pointer = AnnotationKind::Primary
            .span(self.inside_text(&problem.span))
            .label(label);
        let snippet = Snippet::source(&self.source.text)
            .path(self.source.path.to_string_lossy())
            .annotation(pointer);
        let help = problem
            .help
            .as_ref()
            .map(|help| Level::HELP.message(normalize_untrusted_str(help)));
        renderer.render(&[Level::ERROR
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

    fn summary(&self) -> String {
        let file = self
            .source
            .path
            .file_name()
            .unwrap_or(self.source.path.as_os_str())
            .to_string_lossy();
        match self.problems.len() {
            1 => format!("1 problem in {file}; nothing was started."),
            count => format!("{count} problems in {file}; nothing was started."),
        }
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
    fn a_span_outside_the_text_is_still_shown() {
        let source = Source {
            path: "config.toml".into(),
            text: "name = \"ü\"\n".into(),
        };
        for span in [0..0, 9..9, 5..500, 500..600, 11..11] {
            let report = Report {
                source: source.clone(),
                problems: vec![Problem::new(span, "wrong")],
            };
            assert!(report.to_string().contains("config.toml:"));
        }
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        let source = Source {
            path: "config.toml".into(),
            text: "a = 1\n".into(),
        };
        let report = Report {
            source,
            problems: vec![Problem::new(0..1, "wrong")],
        };
        assert!(report.render(true).contains('\u{1b}'));
        assert!(!report.to_string().contains('\u{1b}'));
    }
}
