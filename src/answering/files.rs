//! Files sent by people, in the agent's folder: `workspace/inbox/<place>/<date>-<message id>-<name>`, and what
//! guests sent in `workspace/inbox/<place>/guests/`.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use uuid::Uuid;

use crate::access::Role;
use crate::agents::{Agent, FileError, GUESTS, inbox_folder};
use crate::channels::FetchError;
use crate::delivery::Delivery;
use crate::domain::{FileRef, Inbound};

/// The longest name of a stored file without date and id. Most systems take 255 bytes in all.
const MAX_NAME_CHARS: usize = 48;
/// The longest file ending kept when a name is too long.
const MAX_ENDING_CHARS: usize = 12;
const BYTES_PER_MB: u64 = 1_000_000;
/// The folder for files being fetched, in the home folder.
const UNFINISHED: &str = "incoming";

/// Fetches the file and returns its path within the agent's workspace.
pub(super) async fn store(
    delivery: &Delivery,
    inbound: &Inbound,
    file: &FileRef,
    agent: &Agent,
    role: Role,
) -> Result<String, FetchError> {
    let channel = delivery.channel_of(&inbound.origin.key);
    let channel =
        channel.ok_or_else(|| FetchError::Failed("its platform is not connected".into()))?;
    let workspace = agent.files.own().clone();
    let expected = file.bytes.unwrap_or(0);
    let part = blocking({
        let (workspace, home) = (workspace.clone(), agent.home.clone());
        move || {
            if role == Role::Guest {
                workspace.make_room_for_guest(expected)?;
            }
            workspace.has_room_for(expected)?;
            unfinished(&home)
        }
    })
    .await?;
    let path = folder(inbound, role).join(name(inbound, &file.name));
    let fetched = match channel.fetch(file, &part).await {
        Ok(()) => {
            let part = part.clone();
            blocking(move || {
                if role == Role::Guest {
                    // The platform's word about the size may be wrong.
                    workspace.make_room_for_guest(std::fs::metadata(&part)?.len())?;
                }
                workspace.take_in(&part, &path)
            })
            .await
        }
        Err(error) => Err(error),
    };
    if fetched.is_err() {
        // The file may not exist.
        drop(tokio::fs::remove_file(&part).await);
    }
    fetched.map(|path| path.display().to_string())
}

/// Removes files half fetched by an earlier process.
pub(crate) async fn clear_unfinished(home: &Path) {
    // There is nothing to remove after an orderly end.
    drop(tokio::fs::remove_dir_all(home.join(UNFINISHED)).await);
}

fn unfinished(home: &Path) -> Result<PathBuf, FileError> {
    let folder = home.join(UNFINISHED);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    Ok(folder.join(Uuid::new_v4().simple().to_string()))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| FetchError::Failed(format!("storing it: {error}")))?;
    done.map_err(|error| match error {
        FileError::Full { .. } => FetchError::NoRoom,
        FileError::TooLarge { max_bytes, .. } if max_bytes < BYTES_PER_MB => FetchError::NoRoom,
        FileError::TooLarge { max_bytes, .. } => FetchError::TooLarge {
            max_mb: u32::try_from(max_bytes / BYTES_PER_MB).unwrap_or(u32::MAX),
        },
        error => FetchError::Failed(format!("the file {error}")),
    })
}

fn folder(inbound: &Inbound, role: Role) -> PathBuf {
    let folder = inbox_folder(&inbound.origin.key);
    match role {
        Role::Guest => folder.join(GUESTS),
        Role::Member | Role::Admin | Role::Owner => folder,
    }
}

fn name(inbound: &Inbound, sent_as: &str) -> String {
    let day = DateTime::from_timestamp_millis(inbound.sent_at)
        .unwrap_or_default()
        .format("%Y-%m-%d");
    format!("{day}-{}-{}", safe(&inbound.message.0), safe(sent_as))
}

/// Keeps letters and digits of any language and `._-`; other characters become `_`. Leading dots
/// and hyphens go.
fn safe(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let (stem, ending) = match plain.rsplit_once('.') {
        Some((stem, ending)) if ending.chars().count() <= MAX_ENDING_CHARS => {
            (stem, format!(".{ending}"))
        }
        _ => (plain, String::new()),
    };
    let kept: String = stem
        .chars()
        .take(MAX_NAME_CHARS)
        .chain(ending.chars())
        .collect();
    if kept.is_empty() {
        "file".to_owned()
    } else {
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_safe() {
        for (sent_as, expected) in [
            ("report.pdf", "report.pdf"),
            ("Über uns (2).pdf", "Über_uns__2_.pdf"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..\\..\\x.exe", "_.._x.exe"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\nb\0c", "a_b_c"),
            ("", "file"),
            ("...", "file"),
            ("txt\u{202e}fdp.exe", "txt_fdp.exe"),
        ] {
            assert_eq!(safe(sent_as), expected, "{sent_as:?}");
        }
        let long = safe(&format!("{}.tar", "x".repeat(500)));
        assert_eq!(long, format!("{}.tar", "x".repeat(MAX_NAME_CHARS)));
    }

    proptest! {
        #[test]
        fn no_name_leaves_the_folder(sent_as in any::<String>()) {
            let name = safe(&sent_as);
            let parts: Vec<_> = Path::new(&name).components().collect();
            prop_assert!(matches!(parts[..], [std::path::Component::Normal(_)]), "{}", name);
            prop_assert!(!name.starts_with('.') && name.len() <= 4 * (MAX_NAME_CHARS + MAX_ENDING_CHARS + 1));
        }
    }
}
