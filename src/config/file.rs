//! Reads `config.toml` from the home folder and makes a draft.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::reader::Problems;
use super::secrets::Vault;
use super::{Draft, Problem, Secrets, Source, check, redact};

/// The config file's name in the home folder.
pub(super) const FILE_NAME: &str = "config.toml";

/// Why there is no draft at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("There is no config file at {}. Run `parlor init` to write one.", .0.display())]
    Missing(PathBuf),
    #[error("{} is a link, and what it leads to is not there. Put the file back, or delete the link and run `parlor init`.", .0.display())]
    Astray(PathBuf),
    #[error("The config file {} is not UTF-8 text. Save it as UTF-8 and try again.", .0.display())]
    NotText(PathBuf),
    #[error("The config file {} cannot be read: {error}.", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
}

/// Reads the config of a home folder. Problems inside the file are in the draft.
pub fn load(home: &Path, secrets: Secrets) -> Result<Draft, LoadError> {
    let path = home.join(FILE_NAME);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(draft(Source { path, text }, home, secrets)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            Err(LoadError::Astray(path))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LoadError::Missing(path)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(LoadError::NotText(path)),
        Err(error) => Err(LoadError::Unreadable { path, error }),
    }
}

/// Checks the text of a config file.
pub fn draft(source: Source, home: &Path, secrets: Secrets) -> Draft {
    let environment = |name: &str| std::env::var(name).ok();
    draft_in(
        source,
        &Vault {
            home,
            secrets,
            environment: &environment,
        },
    )
}

pub(super) fn draft_in(source: Source, vault: &Vault<'_>) -> Draft {
    let (tree, errors) = DeTable::parse_recoverable(&source.text);
    let problems = Problems::default();
    let config = check::check(tree.get_ref(), vault, &problems);
    let problems = without_echoes(&errors, problems.into_vec(), &source.text);
    let text = redact::cover(&source.text, tree.get_ref(), errors.is_empty());
    Draft {
        config,
        problems,
        source: Source {
            path: source.path,
            text,
        },
    }
}

/// The parser's message about a missing or unquoted value.
const NO_QUOTES: &str = "string values must be quoted";
const DUPLICATE: &str = "duplicate key";

/// Replaces the parser's message where people would not understand it. The wrong text is not
/// repeated, because a secret may be written there.
fn syntax_problem(error: &toml::de::Error, text: &str) -> Problem {
    let span = error.span().unwrap_or_default();
    let (what, expected) = error
        .message()
        .split_once(", expected ")
        .unwrap_or((error.message(), ""));
    match what {
        DUPLICATE => {
            let message = format!(
                "`{}` is there twice",
                text.get(span.clone()).unwrap_or_default()
            );
            Problem::new(span, message)
                .label("the second one")
                .help("keep one of them")
        }
        NO_QUOTES if span.is_empty() => Problem::new(span, "a value is missing")
            .label("expected a value after `=`")
            .help("write one, or remove the line"),
        NO_QUOTES => Problem::new(span, "text must stand in quotes")
            .label("no quotes around this")
            .help("only numbers, `true` and `false` stand without quotes"),
        _ => {
            let label = if expected.is_empty() {
                "here".to_owned()
            } else {
                format!("expected {expected}")
            };
            Problem::new(span, format!("this is not TOML: {what}"))
                .label(label)
                .help("https://toml.io shows how it is written")
        }
    }
}

/// All problems, without consequences of a syntax error. The parser replaces an unreadable value by
/// a made-up value, and after an error outside a value whole tables may be missing.
fn without_echoes(errors: &[toml::de::Error], others: Vec<Problem>, text: &str) -> Vec<Problem> {
    let syntax: Vec<Problem> = errors
        .iter()
        .map(|error| syntax_problem(error, text))
        .collect();
    let is_local = |error: &toml::de::Error| {
        [DUPLICATE, NO_QUOTES]
            .iter()
            .any(|local| error.message().starts_with(local))
    };
    if syntax.is_empty() {
        return others;
    }
    if !errors.iter().all(is_local) {
        return syntax;
    }
    let line_of = |span: &Range<usize>| {
        text.bytes()
            .take(span.start)
            .filter(|byte| *byte == b'\n')
            .count()
    };
    let broken_lines: Vec<usize> = syntax
        .iter()
        .map(|problem| line_of(&problem.span))
        .collect();
    let is_echo = |problem: &Problem| {
        problem.span.is_empty() || broken_lines.contains(&line_of(&problem.span))
    };
    let rest = others.into_iter().filter(|problem| !is_echo(problem));
    syntax.iter().cloned().chain(rest).collect()
}
