//! Puts a restored home into the place of the present home, within the home folder, by renames.
//!
//! A note tells the progress, and every later process finishes the swap before using the home. So a
//! process killed on the way leaves the old home or the new home to be used, never a mix.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::BackupError;
use super::names::{NEW_NOTE, NOTE, STAGING, stays};
use crate::home::{Home, LockError};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// Names in the home folder.
    staging: String,
    aside: String,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// The old content goes aside.
    Out,
    /// The new content comes in.
    In,
}

/// Whether a restore was interrupted, or is under way.
pub(crate) fn is_unsettled(home: &Path) -> bool {
    home.join(NOTE).exists()
}

/// Finishes an interrupted restore. Refuses during a restore.
pub(crate) fn settle(home: &Home) -> Result<(), BackupError> {
    if !is_unsettled(home.path()) {
        return Ok(());
    }
    let _lock = home.lock().map_err(|error| match error {
        LockError::Held { .. } => BackupError::Conflict(UNDER_WAY.into()),
        error => error.into(),
    })?;
    go_on(home.path(), &mut || Ok(())).map_err(BackupError::disk(home.path()))
}

const UNDER_WAY: &str = "a restore is under way on this home. Try again when it is over";

/// Folders of killed restores, while no restore is under way.
pub(crate) fn leftovers(home: &Path) -> Vec<PathBuf> {
    if is_unsettled(home) {
        return Vec::new();
    }
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let left = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(STAGING));
    left.map(|entry| entry.path()).collect()
}

/// Swaps the content of `home` for the content of `staging`, and keeps the old content in `aside`.
/// Both are names in the home.
pub(super) fn swap(home: &Path, staging: &str, aside: &str) -> io::Result<()> {
    begin(home, staging, aside)?;
    go_on(home, &mut || Ok(()))
}

fn begin(home: &Path, staging: &str, aside: &str) -> io::Result<()> {
    let note = Note {
        staging: staging.to_owned(),
        aside: aside.to_owned(),
        phase: Phase::Out,
    };
    write_note(home, &note)
}

/// Goes on from the note. `before_each` is called before every step, for tests.
fn go_on(home: &Path, before_each: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut note: Note = serde_json::from_slice(&fs::read(home.join(NOTE))?)?;
    let (staging, aside) = (home.join(&note.staging), home.join(&note.aside));
    if note.phase == Phase::Out {
        make(&aside)?;
        for name in movable(home)? {
            before_each()?;
            fs::rename(home.join(&name), aside.join(&name))?;
        }
        sync(&aside)?;
        sync(home)?;
        before_each()?;
        note.phase = Phase::In;
        write_note(home, &note)?;
    }
    for name in names(&staging)? {
        before_each()?;
        make_room(home, &aside, &name)?;
        fs::rename(staging.join(&name), home.join(&name))?;
    }
    sync(home)?;
    before_each()?;
    match fs::remove_dir(&staging) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        removed => removed?,
    }
    // Empty where there was no home before.
    drop(fs::remove_dir(&aside));
    before_each()?;
    fs::remove_file(home.join(NOTE))?;
    sync(home)
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The content of the home to be replaced by a restore.
fn movable(home: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = names(home)?;
    names.retain(|name| !name.to_str().is_some_and(stays));
    Ok(names)
}

/// The entries of a folder in a fixed order. A missing folder has none.
fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<_> = entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// Entries made since the old content went aside go there too.
fn make_room(home: &Path, aside: &Path, name: &std::ffi::OsStr) -> io::Result<()> {
    let present = home.join(name);
    if fs::symlink_metadata(&present).is_err() {
        return Ok(());
    }
    make(aside)?;
    let mut free = aside.join(name);
    while fs::symlink_metadata(&free).is_ok() {
        free.as_mut_os_string().push(".later");
    }
    fs::rename(present, free)
}

fn write_note(home: &Path, note: &Note) -> io::Result<()> {
    let unfinished = home.join(NEW_NOTE);
    let mut file = File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec(note)?)?;
    file.sync_all()?;
    fs::rename(unfinished, home.join(NOTE))?;
    sync(home)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(home: &Path) -> Vec<(String, String)> {
        let (mut found, mut open) = (Vec::new(), vec![home.to_owned()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(home).unwrap().display().to_string();
                    found.push((name, fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    fn put(home: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn prepared() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        put(
            home.path(),
            &[
                ("config.toml", "old"),
                ("parlor.db", "old"),
                ("parlor.db-wal", "old"),
                ("agents/rose/SOUL.md", "old"),
                ("backups/parlor-schema-3.db", "stays"),
                ("parlor.lock", "stays"),
                (".restoring-1/config.toml", "new"),
                (".restoring-1/parlor.db", "new"),
                (".restoring-1/agents/ada/SOUL.md", "new"),
            ],
        );
        home
    }

    /// However often and wherever the process is killed, the next one finishes.
    #[test]
    fn a_swap_that_was_cut_short_anywhere_is_finished() {
        let whole = prepared();
        swap(whole.path(), ".restoring-1", "before-restore-1").unwrap();
        let expected = content(whole.path());
        insta::assert_debug_snapshot!(
            expected.iter().map(|(name, text)| format!("{name}: {text}")).collect::<Vec<_>>(),
            @r#"
        [
            "agents/ada/SOUL.md: new",
            "backups/parlor-schema-3.db: stays",
            "before-restore-1/agents/rose/SOUL.md: old",
            "before-restore-1/config.toml: old",
            "before-restore-1/parlor.db: old",
            "before-restore-1/parlor.db-wal: old",
            "config.toml: new",
            "parlor.db: new",
            "parlor.lock: stays",
        ]
        "#
        );
        let mut killed = 0;
        for steps in 0.. {
            let home = prepared();
            begin(home.path(), ".restoring-1", "before-restore-1").unwrap();
            let mut left = steps;
            let mut kill = || match left {
                0 => Err(io::Error::other("killed")),
                _ => {
                    left -= 1;
                    Ok(())
                }
            };
            if go_on(home.path(), &mut kill).is_ok() {
                break;
            }
            killed += 1;
            assert!(is_unsettled(home.path()), "after {steps} steps");
            settle(&Home::new(home.path())).unwrap();
            let pid_aside = |mut found: Vec<(String, String)>| {
                found.retain(|(name, _)| name != "parlor.lock");
                found
            };
            assert_eq!(
                pid_aside(content(home.path())),
                pid_aside(expected.clone()),
                "after {steps} steps"
            );
        }
        assert_eq!(killed, 10);
    }

    #[test]
    fn a_restore_under_way_keeps_others_out() {
        let home = prepared();
        begin(home.path(), ".restoring-1", "before-restore-1").unwrap();
        let home = Home::new(home.path());
        let _lock = home.lock().unwrap();
        let refused = settle(&home).unwrap_err().to_string();
        assert_eq!(refused, UNDER_WAY);
    }
}
