//! `file_search`: files by name, and lines in them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Asker, Failure, PATHS, failed, find, shown};
use super::matching::{
    Limit, MAX_BYTES, MAX_PATTERN_BYTES, MAX_RESULTS, MAX_SHOWN_CHARS, MAX_TIME, SEARCH, Told,
    Wanted,
};
use super::stream;
use crate::agents::{EntryKind, FileError, FileView, Found, Want};
use crate::domain::Labels;
use crate::models::ToolSpec;
use crate::sandbox::{self, Ran};
use crate::tools::{Outcome, Risk, Scope, Tool, background, read_arguments};

/// Files that a search looks into.
const MAX_FILES: usize = 5_000;
const MAX_GLOB_BYTES: usize = 1024;

pub(super) struct FileSearch;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    path: String,
    glob: Option<String>,
    pattern: Option<String>,
}

#[async_trait]
impl Tool for FileSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_search".into(),
            description: format!(
                "Finds files by name (glob), lines by a regular expression (pattern), or both. Without a path, in your whole \
                 workspace. {PATHS}"
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "A folder or a file to search in." },
                    "glob": { "type": "string", "description": "Such as *.md or notes/**/2026-*." },
                    "pattern": { "type": "string", "description": "A regular expression; (?i) ignores case." },
                },
                "additionalProperties": false,
            }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let arguments: Arguments = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        match search(scope, arguments).await {
            Ok((told, labels)) => Outcome::say(told).labelled(labels),
            Err(told) => Outcome::say(told),
        }
    }
}

/// Names are looked at here. Lines are looked at in a child, which gets the contents of the files and
/// no way to others.
async fn search(scope: &Scope, arguments: Arguments) -> Result<(String, Labels), String> {
    let pattern = arguments.pattern.clone();
    check(&arguments).map_err(|failure| failure.to_string())?;
    let (files, slot) = (scope.files(), background::heavy(scope).await);
    let planned = slot.run(move || plan(&files, &arguments)).await;
    let plan = planned
        .map_err(|broke| broke.to_string())?
        .map_err(|failure| failure.to_string())?;
    let Some(pattern) = pattern else {
        return Ok(plan.names(&Asker::of(scope)));
    };
    let files = (plan.found.clone(), plan.files.clone());
    let ran = slot
        .run_in_child(&SEARCH, move |to| send(to, pattern, &files.0, &files.1))
        .await;
    plan.lines(&ran, &Asker::of(scope))
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    let is_over =
        |text: &Option<String>, most: usize| text.as_ref().is_some_and(|text| text.len() > most);
    let said = |text: String| Err(Failure::Said(text));
    match arguments {
        Arguments {
            glob: None,
            pattern: None,
            ..
        } => said("Give a `glob`, a `pattern`, or both.".into()),
        Arguments { glob, .. } if is_over(glob, MAX_GLOB_BYTES) => {
            said(format!("The glob has more than {MAX_GLOB_BYTES} bytes."))
        }
        Arguments { pattern, .. } if is_over(pattern, MAX_PATTERN_BYTES) => said(format!(
            "The pattern has more than {} KB.",
            MAX_PATTERN_BYTES / 1024
        )),
        _ => Ok(()),
    }
}

/// The files of a search.
struct Plan {
    found: Found,
    /// In order.
    files: Vec<PathBuf>,
    /// There were more.
    is_cut: bool,
}

fn plan(files: &FileView, arguments: &Arguments) -> Result<Plan, Failure> {
    let path = &arguments.path;
    let found = find(files, path, Want::Read)?;
    let names = arguments.glob.as_deref().map(name_pattern).transpose()?;
    let mut files = candidates(&found, names.as_ref()).map_err(|error| failed(path, &error))?;
    let is_cut = files.len() > MAX_FILES;
    files.truncate(MAX_FILES);
    files.sort();
    Ok(Plan {
        found,
        files,
        is_cut,
    })
}

/// The input of the child. Unreadable files are sent as empty ones.
fn send(to: &mut dyn Write, pattern: String, found: &Found, files: &[PathBuf]) -> io::Result<()> {
    serde_json::to_writer(&mut *to, &Wanted { pattern })?;
    to.write_all(b"\n")?;
    for path in files {
        match found.workspace.open(path) {
            Ok((file, _)) => stream::write(to, file)?,
            Err(_) => stream::write(to, io::empty())?,
        }
    }
    Ok(())
}

impl Plan {
    fn names(&self, asker: &Asker) -> (String, Labels) {
        let shown = self.files.iter().take(MAX_RESULTS);
        let labels = shown.map(|file| asker.sent(&self.found, file)).collect();
        let mut names: Vec<String> = self.files.iter().map(|file| self.shown(file)).collect();
        let limit = (names.len() > MAX_RESULTS).then_some(Limit::Results);
        names.truncate(MAX_RESULTS);
        let text = told(names, limit.map(reason).or_else(|| self.cut()));
        (text, labels)
    }

    /// The lines that the child found, and why it found no more.
    fn lines(&self, ran: &Ran, asker: &Asker) -> Result<(String, Labels), String> {
        let mut end = match ran.end {
            Ok(()) => self.cut(),
            Err(sandbox::Failure::Time(_)) => Some(reason(Limit::Time)),
            Err(failure @ sandbox::Failure::Memory) => Some(format!("it {failure}")),
            Err(failure) => return Err(format!("The search {failure}.")),
        };
        let (mut lines, mut shown) = (Vec::new(), BTreeSet::new());
        for line in ran.output.split(|byte| *byte == b'\n') {
            // The last line of a child that was ended may be torn.
            match serde_json::from_slice(line) {
                Ok(Told::Line { file, number, text }) => {
                    lines.extend(self.line(file, number, &text));
                    shown.extend(self.files.get(file));
                }
                Ok(Told::Stopped(limit)) => end = Some(reason(limit)),
                Ok(Told::Refused(error)) => {
                    return Err(format!("The pattern does not work: {error}"));
                }
                Err(_) => {}
            }
        }
        lines.truncate(MAX_RESULTS);
        let labels = shown
            .into_iter()
            .map(|path| asker.labels(&self.found, path))
            .collect();
        Ok((told(lines, end), labels))
    }

    /// None for a file that was not sent.
    fn line(&self, file: usize, number: u64, text: &str) -> Option<String> {
        let path = self.shown(self.files.get(file)?);
        let text: String = text
            .chars()
            .filter(|c| *c != '\n')
            .take(MAX_SHOWN_CHARS)
            .collect();
        Some(format!("{path}:{number}: {text}"))
    }

    fn shown(&self, file: &Path) -> String {
        shown(&self.found.prefix, file)
    }

    fn cut(&self) -> Option<String> {
        self.is_cut
            .then(|| format!("only {MAX_FILES} files were looked at"))
    }
}

fn reason(limit: Limit) -> String {
    match limit {
        Limit::Bytes => format!("{} MB were read", MAX_BYTES / (1024 * 1024)),
        Limit::Time => format!("it took {} s", MAX_TIME.as_secs()),
        Limit::Results => format!("there are more than {MAX_RESULTS} results"),
    }
}

fn told(mut lines: Vec<String>, end: Option<String>) -> String {
    if lines.is_empty() {
        lines.push("Nothing was found.".into());
    }
    lines.extend(end.map(|reason| format!("[stopped early: {reason}; search more narrowly]")));
    lines.join("\n")
}

fn name_pattern(glob: &str) -> Result<Names, Failure> {
    let build = |glob: &str| {
        GlobBuilder::new(glob)
            .literal_separator(true)
            .build()
            .map(|glob| glob.compile_matcher())
    };
    let matcher = build(glob.trim_start_matches("./"))
        .map_err(|error| Failure::Said(format!("The glob does not work: {error}.")))?;
    // A glob without a slash, like `*.md`, is about names in all folders.
    Ok(Names {
        matcher,
        is_bare: !glob.contains('/'),
    })
}

struct Names {
    matcher: GlobMatcher,
    is_bare: bool,
}

impl Names {
    fn fits(&self, path: &Path) -> bool {
        let path = if self.is_bare {
            Path::new(path.file_name().unwrap_or_default())
        } else {
            path
        };
        self.matcher.is_match(path)
    }
}

/// All files with a fitting name. A file above the limit is added, to tell that the limit was
/// reached.
fn candidates(found: &Found, names: Option<&Names>) -> Result<Vec<PathBuf>, FileError> {
    let fits = |path: &Path| names.is_none_or(|names| names.fits(path));
    if found.path != Path::new(".") && found.workspace.look(&found.path)? == EntryKind::File {
        return Ok(Some(found.path.clone())
            .filter(|path| fits(path))
            .into_iter()
            .collect());
    }
    let until = Instant::now() + MAX_TIME;
    let mut files = Vec::new();
    found.workspace.walk(&found.path, usize::MAX, |entry| {
        // A glob is about paths below the searched folder.
        let below = entry.path.strip_prefix(&found.path).unwrap_or(&entry.path);
        if entry.kind == EntryKind::File && fits(below) {
            files.push(entry.path);
        }
        let is_enough = files.len() > MAX_FILES || Instant::now() > until;
        if is_enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(files)
}
