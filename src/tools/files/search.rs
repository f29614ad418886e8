//! `file_search`: files by name, and lines in them.

use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Failure, PATHS, failed, find, run, shown};
use crate::agents::{EntryKind, FileError, FileView, Found, Want};
use crate::models::ToolSpec;
use crate::tools::{Outcome, Risk, Scope, Tool};

/// Limits of a search: the first to be reached ends the search, and the result tells so.
const MAX_FILES: usize = 5_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const MAX_TIME: Duration = Duration::from_secs(5);
const MAX_RESULTS: usize = 100;
/// Bytes of a line that are searched, and characters of a line that are shown.
const MAX_LINE_BYTES: u64 = 64 * 1024;
const MAX_SHOWN_CHARS: usize = 200;
/// Memory of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

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
            }),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        run(scope, arguments, search).await
    }
}

fn search(
    files: &FileView,
    Arguments {
        path,
        glob,
        pattern,
    }: Arguments,
) -> Result<String, Failure> {
    if glob.is_none() && pattern.is_none() {
        return Err(Failure::Said("Give a `glob`, a `pattern`, or both.".into()));
    }
    let found = find(files, &path, Want::Read)?;
    let glob = glob.map(|glob| name_pattern(&glob)).transpose()?;
    let pattern = pattern.map(|pattern| line_pattern(&pattern)).transpose()?;
    let mut candidates =
        candidates(&found, glob.as_ref()).map_err(|error| failed(&path, &error))?;
    let mut search = Search {
        found,
        pattern,
        results: Vec::new(),
        bytes_left: MAX_BYTES,
        until: Instant::now() + MAX_TIME,
        end: None,
    };
    if candidates.len() > MAX_FILES {
        candidates.truncate(MAX_FILES);
        search.end = Some(format!("only {MAX_FILES} files were looked at"));
    }
    candidates.sort();
    search.through(&candidates);
    Ok(search.told())
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

fn line_pattern(pattern: &str) -> Result<Regex, Failure> {
    let built = RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .build();
    built.map_err(|error| Failure::Said(format!("The pattern does not work: {error}")))
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

struct Search {
    found: Found,
    pattern: Option<Regex>,
    results: Vec<String>,
    bytes_left: u64,
    until: Instant,
    /// The limit that ended the search.
    end: Option<String>,
}

impl Search {
    fn through(&mut self, files: &[PathBuf]) {
        for file in files {
            let went_on = match self.pattern.clone() {
                None => self.add(shown(&self.found.prefix, file)),
                Some(pattern) => self.lines_of(file, &pattern),
            };
            if went_on.is_break() {
                return;
            }
        }
    }

    /// Unreadable files and files without text are left out.
    fn lines_of(&mut self, path: &Path, pattern: &Regex) -> ControlFlow<()> {
        let Ok((file, _)) = self.found.workspace.open(path) else {
            return ControlFlow::Continue(());
        };
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            // A longer line is searched as several lines.
            let Ok(read) = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
            else {
                break;
            };
            if read == 0 || line.contains(&0) {
                break;
            }
            self.spend(read as u64)?;
            if pattern.is_match(line.trim_ascii_end()) {
                let text: String = String::from_utf8_lossy(&line)
                    .trim()
                    .chars()
                    .take(MAX_SHOWN_CHARS)
                    .collect();
                self.add(format!(
                    "{}:{number}: {text}",
                    shown(&self.found.prefix, path)
                ))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn spend(&mut self, bytes: u64) -> ControlFlow<()> {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.bytes_left == 0 {
            return self.stop(format!("{} MB were read", MAX_BYTES / (1024 * 1024)));
        }
        if Instant::now() > self.until {
            return self.stop(format!("it took {} s", MAX_TIME.as_secs()));
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, result: String) -> ControlFlow<()> {
        if self.results.len() == MAX_RESULTS {
            return self.stop(format!("there are more than {MAX_RESULTS} results"));
        }
        self.results.push(result);
        ControlFlow::Continue(())
    }

    fn stop(&mut self, reason: String) -> ControlFlow<()> {
        self.end = Some(reason);
        ControlFlow::Break(())
    }

    fn told(self) -> String {
        let mut lines = self.results;
        if lines.is_empty() {
            lines.push("Nothing was found.".into());
        }
        lines.extend(
            self.end
                .map(|reason| format!("[stopped early: {reason}; search more narrowly]")),
        );
        lines.join("\n")
    }
}
