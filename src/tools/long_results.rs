//! Results too long for a model: cut, with the whole text kept for the rest of the turn.
//!
//! A result may hold what only the people of the turn may see, so it is in no workspace: no other
//! turn and no other agent reads it, and it is gone with its turn.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use chrono::Local;
use uuid::Uuid;

use super::{Form, Outcome, Scope, background};
use crate::agents::{EntryKind, FileError, RESULTS, Workspace};

/// The longest result a model gets, in bytes.
pub(super) const MAX_RESULT_BYTES: usize = 32 * 1024;
/// The longest text that is kept, in bytes.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Texts of a turn kept at a time; a new text replaces the oldest.
const MOST_KEPT: usize = 20;
/// As much as a turn may keep.
const MOST_KEPT_MB: u32 = 100;
/// The folder with the results of all turns, in the home folder.
const FOLDER: &str = "results";

/// The long results of a turn. The end of the turn drops them, however it ends.
#[derive(Debug)]
pub(crate) struct Results {
    home: PathBuf,
    /// Opened with the first result.
    folder: OnceLock<Arc<Workspace>>,
}

impl Results {
    pub(crate) fn new(home: &Path) -> Self {
        Results {
            home: home.to_owned(),
            folder: OnceLock::new(),
        }
    }

    /// The folder of this turn, once there is a result.
    pub(super) fn folder(&self) -> Option<Arc<Workspace>> {
        self.folder.get().cloned()
    }

    fn opened(&self) -> Arc<Workspace> {
        let open = || {
            let name = Uuid::new_v4().simple().to_string();
            Arc::new(Workspace::new(
                self.home.join(FOLDER).join(name),
                MOST_KEPT_MB,
            ))
        };
        self.folder.get_or_init(open).clone()
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let Some(folder) = self.folder.take() else {
            return;
        };
        let root = folder.root().to_owned();
        // What cannot be removed now is removed at the next start.
        let remove = move || drop(std::fs::remove_dir_all(root));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// Removes results of an earlier process, and those that earlier versions kept in workspaces;
/// blocks on the disk.
pub(crate) fn clear<'a>(home: &Path, workspaces: impl Iterator<Item = &'a Arc<Workspace>>) {
    // There is nothing to remove after an orderly end.
    drop(std::fs::remove_dir_all(home.join(FOLDER)));
    for workspace in workspaces.filter(|workspace| workspace.root().join(RESULTS).exists()) {
        if let Err(error) = clear_former(workspace) {
            tracing::warn!("old results of tools were not removed: {error}");
        }
    }
}

fn clear_former(workspace: &Arc<Workspace>) -> Result<(), FileError> {
    let mut former = Vec::new();
    workspace.walk(Path::new(RESULTS), 1, |entry| {
        if entry.kind == EntryKind::File && is_former(&entry.path) {
            former.push(entry.path);
        }
        ControlFlow::Continue(())
    })?;
    former.iter().try_for_each(|path| workspace.remove(path))
}

/// `2026-11-16-101500-web_fetch-1a2b3c4d.txt`; other names are the agent's own files.
fn is_former(path: &Path) -> bool {
    let Some(stem) = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_suffix(".txt"))
    else {
        return false;
    };
    let parts: Vec<&str> = stem.split('-').collect();
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day, time, _, unique]
        if digits(year, 4) && digits(month, 2) && digits(day, 2) && digits(time, 6)
            && unique.len() == 8 && unique.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The text, or its beginning. With `is_kept` the whole text is kept, and the model is told where.
pub(super) async fn fit(scope: &Scope, tool: &str, is_kept: bool, outcome: Outcome) -> Outcome {
    if outcome.text.len() <= MAX_RESULT_BYTES {
        return outcome;
    }
    let Outcome {
        text,
        form,
        mut notes,
        effects,
        read,
        asks,
    } = outcome;
    let (bytes, beginning) = (text.len(), beginning(&text, &form).to_owned());
    let kept = if is_kept {
        keep(scope, tool, text).await
    } else {
        None
    };
    notes.push(match kept {
        Some(path) => format!(
            "cut: the whole result, {bytes} bytes, is in {} until the end of this turn; file_read and file_search read on",
            path.display()
        ),
        None => format!("cut: the result was {bytes} bytes"),
    });
    Outcome {
        text: beginning,
        form,
        notes,
        effects,
        read,
        asks,
    }
}

/// A text with marks is cut before a mark, not inside of one.
fn beginning<'a>(text: &'a str, form: &Form) -> &'a str {
    let head = head(text, MAX_RESULT_BYTES);
    match form {
        Form::Marked => head.rfind("\n\n⟦").map_or(head, |end| &head[..end]),
        Form::Plain | Form::Of(_) => head,
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
    let (path, folder) = (Path::new(RESULTS).join(&name), scope.results.opened());
    let written = background::run(scope, move || {
        folder.write(Path::new(&name), head(&text, MAX_KEPT_BYTES).as_bytes())?;
        forget_oldest(&folder)
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

fn forget_oldest(folder: &Arc<Workspace>) -> Result<(), FileError> {
    let mut kept = Vec::new();
    folder.walk(Path::new("."), 1, |entry| {
        if entry.kind == EntryKind::File {
            kept.push(entry.path);
        }
        ControlFlow::Continue(())
    })?;
    kept.sort();
    let too_many = kept.len().saturating_sub(MOST_KEPT);
    kept.iter()
        .take(too_many)
        .try_for_each(|path| folder.remove(path))
}

#[cfg(test)]
mod tests {
    use super::super::tests::scope_in;
    use super::*;
    use crate::agents::Want;

    #[tokio::test]
    async fn a_long_result_is_cut_at_a_character_and_kept_whole() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        let text = "é".repeat(MAX_RESULT_BYTES);
        let told = fit(&scope, "web_fetch", true, Outcome::say(text.clone())).await;
        assert!(told.text.len() <= MAX_RESULT_BYTES);
        let rest = told.notes[0]
            .strip_prefix("cut: the whole result, 65536 bytes, is in ")
            .expect("it says where");
        let path = rest.split(' ').next().unwrap();
        let found = scope.files().find(path, Want::Read).unwrap();
        let (mut file, _) = found.workspace.open(&found.path).unwrap();
        let mut kept = String::new();
        std::io::Read::read_to_string(&mut file, &mut kept).unwrap();
        assert_eq!(kept, text);
        assert!(scope.files().find(path, Want::Write).is_err());
        assert!(
            !home.path().join("agents").exists(),
            "it is in no workspace"
        );
        let other = scope_in(home.path());
        let found = other.files().find(path, Want::Read).unwrap();
        assert_eq!(
            found.workspace.open(&found.path).unwrap_err(),
            FileError::NotFound,
            "no other turn reads it"
        );
        drop(scope);
        let results = home.path().join(FOLDER);
        while std::fs::read_dir(&results).unwrap().count() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_cannot_read_files_is_not_pointed_to_one() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        let long = Outcome::say("x".repeat(MAX_RESULT_BYTES + 1));
        let told = fit(&scope, "web_fetch", false, long).await;
        assert_eq!(told.notes, ["cut: the result was 32769 bytes"]);
        assert!(!home.path().join("agents").exists());
        let short = Outcome::say("short");
        assert_eq!(fit(&scope, "now", true, short.clone()).await, short);
    }

    #[tokio::test]
    async fn only_the_newest_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        for _ in 0..MOST_KEPT + 3 {
            let long = Outcome::say("x".repeat(MAX_RESULT_BYTES + 1));
            fit(&scope, "web_fetch", true, long).await;
        }
        let folder = scope.results.folder().unwrap();
        assert_eq!(std::fs::read_dir(folder.root()).unwrap().count(), MOST_KEPT);
    }

    #[test]
    fn a_start_removes_what_was_left_and_what_earlier_versions_kept() {
        let home = tempfile::tempdir().unwrap();
        let scope = scope_in(home.path());
        let own = scope.agent.files.own();
        for name in [
            "2026-11-16-101500-memory_search-1a2b3c4d.txt",
            "2026-11-16-plan.txt",
        ] {
            own.write(&Path::new(RESULTS).join(name), b"x").unwrap();
        }
        std::fs::create_dir_all(home.path().join(FOLDER).join("left")).unwrap();
        clear(home.path(), [own].into_iter());
        assert!(!home.path().join(FOLDER).exists());
        let left = std::fs::read_dir(own.root().join(RESULTS)).unwrap();
        let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["2026-11-16-plan.txt"]);
    }
}
