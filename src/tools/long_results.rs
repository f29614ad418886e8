//! Results too long for a model: cut, with the whole text in the agent's workspace.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::Local;
use uuid::Uuid;

use super::{Scope, background};
use crate::agents::{EntryKind, FileError, Workspace};

/// The longest result a model gets, in bytes.
pub(super) const MAX_RESULT_BYTES: usize = 32 * 1024;
/// The longest text in the workspace, in bytes.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Texts kept at a time; a new text replaces the oldest.
const MOST_KEPT: usize = 20;
const FOLDER: &str = "tool-results";

/// The text, or its beginning with the path of the whole text. The path is only told to agents with
/// a tool to read files.
pub(super) async fn fit(scope: &Scope, tool: &str, can_read_files: bool, text: String) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text;
    }
    let (bytes, beginning) = (text.len(), head(&text, MAX_RESULT_BYTES).to_owned());
    let kept = if can_read_files {
        keep(scope, tool, text).await
    } else {
        None
    };
    match kept {
        Some(path) => format!(
            "{beginning}\n[cut: the whole result, {bytes} bytes, is in {}; file_read and file_search read on]",
            path.display()
        ),
        None => format!("{beginning}\n[cut: the result was {bytes} bytes]"),
    }
}

fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

async fn keep(scope: &Scope, tool: &str, text: String) -> Option<PathBuf> {
    // The time comes first, so that names sort by age.
    let unique = Uuid::new_v4().simple().to_string();
    let name = format!(
        "{}-{tool}-{}.txt",
        Local::now().format("%Y-%m-%d-%H%M%S"),
        &unique[..8]
    );
    let (path, workspace) = (
        Path::new(FOLDER).join(name),
        scope.agent.files.own().clone(),
    );
    let kept = path.clone();
    let written = background::run(scope, move || {
        workspace.write(&kept, head(&text, MAX_KEPT_BYTES).as_bytes())?;
        forget_oldest(&workspace)
    });
    match written.await {
        Ok(Ok(())) => Some(path),
        Ok(Err(error)) => {
            tracing::debug!(agent.id = %scope.agent.id, "a long result was not kept: {error}");
            None
        }
        Err(_) => None,
    }
}

fn forget_oldest(workspace: &Arc<Workspace>) -> Result<(), FileError> {
    let mut kept = Vec::new();
    workspace.walk(Path::new(FOLDER), 1, |entry| {
        if entry.kind == EntryKind::File {
            kept.push(entry.path);
        }
        ControlFlow::Continue(())
    })?;
    kept.sort();
    let too_many = kept.len().saturating_sub(MOST_KEPT);
    kept.iter()
        .take(too_many)
        .try_for_each(|path| workspace.remove(path))
}

#[cfg(test)]
mod tests {
    use super::super::tests::scope_in;
    use super::*;

    #[tokio::test]
    async fn a_long_result_is_cut_at_a_character_and_kept_whole() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        let text = "é".repeat(MAX_RESULT_BYTES);
        let told = fit(&scope, "web_fetch", true, text.clone()).await;
        assert!(told.len() < MAX_RESULT_BYTES + 200);
        let (_, rest) = told
            .split_once("\n[cut: the whole result, 65536 bytes, is in ")
            .expect("it says where");
        let path = rest.split(';').next().unwrap();
        assert_eq!(
            scope
                .agent
                .files
                .own()
                .read(Path::new(path), 1 << 20)
                .unwrap(),
            text.as_bytes()
        );
    }

    #[tokio::test]
    async fn who_cannot_read_files_is_not_pointed_to_one() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        let told = fit(&scope, "web_fetch", false, "x".repeat(MAX_RESULT_BYTES + 1)).await;
        assert!(told.ends_with("\n[cut: the result was 32769 bytes]"));
        assert!(!home.path().join("agents").exists());
        assert_eq!(fit(&scope, "now", true, "short".into()).await, "short");
    }

    #[tokio::test]
    async fn only_the_newest_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        for _ in 0..MOST_KEPT + 3 {
            fit(&scope, "web_fetch", true, "x".repeat(MAX_RESULT_BYTES + 1)).await;
        }
        let folder = scope.agent.folder.join("workspace").join(FOLDER);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), MOST_KEPT);
    }
}
