//! `file_list`: the entries of a folder.

use std::ops::ControlFlow;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Asker, Failure, PATHS, failed, find, run_reading, shown};
use crate::agents::{Entry, EntryKind, FileView, Want, is_odd};
use crate::domain::Labels;
use crate::models::ToolSpec;
use crate::tools::{Outcome, Risk, Scope, Tool};

/// Entries in a result.
const MAX_ENTRIES: usize = 300;
/// Entries that a call looks at. Of a larger folder, any of the entries may be missing.
const MAX_SEEN: usize = 20_000;

pub(super) struct FileList;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    path: String,
    #[serde(default)]
    recursive: bool,
}

#[async_trait]
impl Tool for FileList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_list".into(),
            description: format!(
                "Lists a folder: names, and sizes in bytes. Without a path, your workspace. {PATHS}"
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "recursive": { "type": "boolean", "description": "Also what is in its folders." },
                },
                "additionalProperties": false,
            }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        run_reading(scope, arguments, list).await
    }
}

fn list(
    files: &FileView,
    Arguments { path, recursive }: Arguments,
    asker: &Asker,
) -> Result<(String, Labels), Failure> {
    let found = find(files, &path, Want::Read)?;
    let mut entries: Vec<Entry> = Vec::new();
    let depth = if recursive { usize::MAX } else { 1 };
    let walked = found.workspace.walk(&found.path, depth, |entry| {
        entries.push(entry);
        if entries.len() < MAX_SEEN {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    walked.map_err(|error| failed(&path, &error))?;
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let mut lines: Vec<String> = entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|entry| line(&found.prefix, entry))
        .collect();
    if entries.is_empty() {
        lines.push("(nothing is in it)".into());
    }
    if entries.len() > MAX_ENTRIES {
        let more = if entries.len() == MAX_SEEN {
            "more".to_owned()
        } else {
            format!("{} more", entries.len() - MAX_ENTRIES)
        };
        lines.push(format!(
            "[cut: {more} not shown; list one of the folders, or search]"
        ));
    }
    let is_own_root = found.prefix.is_empty() && found.path == std::path::Path::new(".");
    if is_own_root && !files.others().is_empty() {
        lines.push(besides(files));
    }
    // People choose the names of their files.
    let labels = entries
        .iter()
        .take(MAX_ENTRIES)
        .filter(|entry| entry.kind == EntryKind::File)
        .map(|entry| asker.sent(&found, &entry.path))
        .collect();
    Ok((lines.join("\n"), labels))
}

fn line(prefix: &str, entry: &Entry) -> String {
    let path = shown(prefix, &entry.path);
    let odd = match entry.path.to_str() {
        None => " (its name is no UTF-8, so it cannot be used)",
        Some(name) if name.contains(is_odd) => {
            " (its name has characters that cannot be seen, so it cannot be used)"
        }
        Some(_) => "",
    };
    match entry.kind {
        EntryKind::File => format!("{path}  {}{odd}", entry.bytes),
        EntryKind::Folder => format!("{path}/{odd}"),
        EntryKind::Link => format!("{path}  (a link){odd}"),
        EntryKind::Other => format!("{path}  (no file){odd}"),
    }
}

fn besides(files: &FileView) -> String {
    let open = files.others().iter().map(|opened| {
        let right = if opened.may_write {
            "read and write"
        } else {
            "read"
        };
        format!("{}/ ({right})", opened.prefix)
    });
    format!(
        "[also open to you: {}]",
        open.collect::<Vec<_>>().join(", ")
    )
}
