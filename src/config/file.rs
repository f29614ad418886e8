//! Reads `config.toml` from the home folder and makes a draft.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::reader::Problems;
use super::report::{Lines, line_of};
use super::secrets::Vault;
use super::syntax::{self, Broken};
use super::system_error::in_words;
use super::{Draft, Problem, Secrets, Source, check, commented_out, redact};

/// The config file's name in the home folder.
pub(super) const FILE_NAME: &str = "config.toml";

/// Why there is no draft at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("There is no config file at {}. Run `parlor init` to write one.", .0.display())]
    Missing(PathBuf),
    #[error("{} is a link to a file that does not exist. Put the file back, or delete the link and run `parlor init`.", .0.display())]
    Astray(PathBuf),
    #[error("The config file {} is not UTF-8 text: line {line} has other bytes. Save it as UTF-8 and try again.", path.display())]
    NotText { path: PathBuf, line: usize },
    #[error("{} is a folder, but the config must be a file. Move the folder away and run `parlor init`.", .0.display())]
    Folder(PathBuf),
    #[error("You may not read the config file {}. Run this as the user who owns the file, or as that user: `chmod u+r {}`.", .0.display(), .0.display())]
    NotAllowed(PathBuf),
    #[error("The config file {} may not be read by this user. Run the command as the user who runs Parlor.", .0.display())]
    NotEntered(PathBuf),
    #[error("The config file {} cannot be read: {}.", path.display(), in_words(error))]
    Unreadable { path: PathBuf, error: io::Error },
}

impl LoadError {
    pub fn path(&self) -> &Path {
        match self {
            LoadError::Missing(path)
            | LoadError::Astray(path)
            | LoadError::NotText { path, .. }
            | LoadError::Folder(path)
            | LoadError::NotAllowed(path)
            | LoadError::NotEntered(path)
            | LoadError::Unreadable { path, .. } => path,
        }
    }
}

/// Reads the config of a home folder. Problems inside the file are in the draft.
pub fn load(home: &Path, secrets: Secrets) -> Result<Draft, LoadError> {
    Ok(draft(read_home(home)?, home, secrets))
}

/// The text of a home folder's config.
pub(crate) fn read_home(home: &Path) -> Result<Source, LoadError> {
    read_file(&home.join(FILE_NAME))
}

/// The text of any file.
pub(crate) fn read_file(path: &Path) -> Result<Source, LoadError> {
    let path = path.to_owned();
    match fs::read(&path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Source { path, text }),
            Err(error) => {
                let fine = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = fine.iter().filter(|byte| **byte == b'\n').count() + 1;
                Err(LoadError::NotText { path, line })
            }
        },
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => LoadError::Astray(path),
            io::ErrorKind::NotFound => LoadError::Missing(path),
            io::ErrorKind::IsADirectory => LoadError::Folder(path),
            // A file that is seen may still not be read; a closed folder shows none.
            io::ErrorKind::PermissionDenied => match fs::symlink_metadata(&path) {
                Ok(_) => LoadError::NotAllowed(path),
                Err(_) => LoadError::NotEntered(path),
            },
            _ => LoadError::Unreadable { path, error },
        }),
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
    let mut config = check::check(tree.get_ref(), &source.text, vault, &problems);
    let lines = Lines::of(&source.text);
    for binding in &mut config.bindings {
        binding.line = lines.line_at(binding.pattern.span.start);
    }
    let covered = redact::cover(&source.text, tree.get_ref(), errors.is_empty());
    let broken = Broken {
        text: &source.text,
        covered: &covered,
    };
    let (problems, warnings) = problems.into_lists();
    let mut problems = without_echoes(&errors, problems, &broken);
    commented_out::explain(&source.text, &mut problems);
    Draft {
        config,
        problems,
        warnings,
        source: Source {
            path: source.path,
            text: covered,
        },
        purpose: vault.secrets,
    }
}

/// All problems, without consequences of a syntax error. The parser replaces an unreadable value by
/// a made-up value, and after an error outside a value whole tables may be missing.
fn without_echoes(
    errors: &[toml::de::Error],
    others: Vec<Problem>,
    broken: &Broken<'_>,
) -> Vec<Problem> {
    if errors.is_empty() {
        return others;
    }
    let syntax = syntax::problems(errors, broken);
    if !errors.iter().all(syntax::is_local) || syntax.iter().any(syntax::hides_tables) {
        return syntax;
    }
    let line = |span: &Range<usize>| line_of(&broken.text[..span.start]);
    let spots = errors.iter().filter_map(toml::de::Error::span);
    let broken_lines: Vec<usize> = spots
        .chain(syntax.iter().map(|problem| problem.span.clone()))
        .map(|span| line(&span))
        .collect();
    let is_echo =
        |problem: &Problem| problem.span.is_empty() || broken_lines.contains(&line(&problem.span));
    let rest = others.into_iter().filter(|problem| !is_echo(problem));
    syntax.iter().cloned().chain(rest).collect()
}
