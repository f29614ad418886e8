//! Daily notes: lines added to `memory/YYYY-MM-DD.md`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use chrono::{DateTime, FixedOffset};

use super::index::NOTES_FOLDER;
use super::memory_file::{EditError, create_folder};
use crate::domain::UserError;

/// The notes of a day are no longer than this.
const MAX_DAY_BYTES: u64 = 256 * 1024;
/// A note.
const MAX_NOTE_BYTES: usize = 4 * 1024;

/// Adds a note to the day's file and returns its path in the agent's folder; blocks on the disk.
pub(super) fn append(
    folder: &Path,
    text: &str,
    now: DateTime<FixedOffset>,
) -> Result<String, EditError> {
    let line = line(text, now)?;
    create_folder(&folder.join(NOTES_FOLDER))?;
    let path = format!("{NOTES_FOLDER}/{}.md", now.format("%Y-%m-%d"));
    // Opening a pipe waits for its other end, perhaps for ever.
    if std::fs::metadata(folder.join(&path)).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(
            UserError::new(format!("{path} is no regular file, so nothing was noted.")).into(),
        );
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(folder.join(&path))?;
    if file.metadata()?.len() + line.len() as u64 > MAX_DAY_BYTES {
        return Err(UserError::new(
            "Today's notes are full. Save what matters with `memory_save` instead.",
        )
        .into());
    }
    // A single call, so that two notes at once do not mix.
    file.write_all(line.as_bytes())?;
    file.sync_data()?;
    Ok(path)
}

/// `- 14:05 text`; further lines are indented, as parts of the item.
fn line(text: &str, now: DateTime<FixedOffset>) -> Result<String, UserError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UserError::new("There is nothing to note."));
    }
    if text.len() > MAX_NOTE_BYTES {
        return Err(UserError::new(format!(
            "A note has at most {} KiB. Make it shorter.",
            MAX_NOTE_BYTES / 1024
        )));
    }
    Ok(format!(
        "- {} {}\n",
        now.format("%H:%M"),
        text.replace('\n', "\n  ")
    ))
}

#[cfg(test)]
mod tests {
    use chrono::{TimeZone, Utc};
    use tempfile::TempDir;

    use super::*;

    /// S1.8, S3.20
    #[test]
    fn notes_go_under_the_local_date() {
        let folder = TempDir::new().unwrap();
        let late = Utc
            .with_ymd_and_hms(2026, 11, 16, 23, 59, 30)
            .unwrap()
            .fixed_offset();
        assert_eq!(
            append(folder.path(), "tea\nwith milk", late).unwrap(),
            "memory/2026-11-16.md"
        );
        append(folder.path(), "bed", late).unwrap();
        append(folder.path(), "dream", late + chrono::Duration::minutes(1)).unwrap();
        let read =
            |day: &str| std::fs::read_to_string(folder.path().join("memory").join(day)).unwrap();
        assert_eq!(
            read("2026-11-16.md"),
            "- 23:59 tea\n  with milk\n- 23:59 bed\n"
        );
        assert_eq!(read("2026-11-17.md"), "- 00:00 dream\n");
        assert!(append(folder.path(), " \n", late).is_err());
        assert!(append(folder.path(), &"x".repeat(MAX_NOTE_BYTES + 1), late).is_err());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_days_notes_is_waited_for_by_nobody() {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("memory")).unwrap();
        let pipe = folder.path().join("memory/2026-11-16.md");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let noon = Utc
            .with_ymd_and_hms(2026, 11, 16, 12, 0, 0)
            .unwrap()
            .fixed_offset();
        let told = append(folder.path(), "tea", noon).unwrap_err().to_string();
        assert_eq!(
            told,
            "memory/2026-11-16.md is no regular file, so nothing was noted."
        );
    }
}
