//! The files of a home that belong into a backup.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::BackupError;
use super::names::is_elsewhere;
use crate::config::{ENVIRONMENT_FILE, Keeper, KeptSecret};
use crate::tenants;

/// Depth of nested folders in a walk.
const MAX_DEPTH: usize = 60;

/// Whether files with secrets go along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepSecrets {
    Yes,
    No,
}

/// Everything to be packed but the database, seen from the home.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) files: Vec<PathBuf>,
    pub(super) folders: Vec<PathBuf>,
    /// Dead links, pipes, sockets, unreadable folders.
    pub(super) left_out: Vec<PathBuf>,
    /// Files with secrets, or for secrets.
    pub(super) secrets: Vec<PathBuf>,
}

/// Looks through a home.
pub(super) fn contents(
    home: &Path,
    named: &[KeptSecret],
    keep: KeepSecrets,
) -> Result<Contents, BackupError> {
    let named = named.iter().filter_map(|secret| match &secret.keeper {
        Keeper::File(path) => path.strip_prefix(home).ok().map(Path::to_owned),
        Keeper::Variable(_) => None,
    });
    let mut walk = Walk {
        home,
        named: named.collect(),
        keep,
        above: Vec::new(),
        found: Contents::default(),
    };
    walk.folder(Path::new(""))
        .map_err(BackupError::disk(home))?;
    let mut found = walk.found;
    found.files.sort();
    found.folders.sort();
    Ok(found)
}

struct Walk<'a> {
    home: &'a Path,
    /// Files for secrets, named by the config.
    named: HashSet<PathBuf>,
    keep: KeepSecrets,
    /// The folders around the present folder, without links.
    above: Vec<PathBuf>,
    found: Contents,
}

impl Walk<'_> {
    fn folder(&mut self, within: &Path) -> io::Result<()> {
        let folder = self.home.join(within);
        let real = fs::canonicalize(&folder)?;
        // A link to a folder above would go round for ever.
        if self.above.contains(&real) || self.above.len() > MAX_DEPTH {
            self.found.left_out.push(within.to_owned());
            return Ok(());
        }
        self.above.push(real);
        for entry in fs::read_dir(&folder)? {
            let path = within.join(entry?.file_name());
            if !is_elsewhere(&path) {
                self.entry(path)?;
            }
        }
        self.above.pop();
        Ok(())
    }

    fn entry(&mut self, path: PathBuf) -> io::Result<()> {
        let Some(metadata) = self.look(&path)? else {
            return Ok(());
        };
        if metadata.is_dir() {
            self.found.folders.push(path.clone());
            match self.folder(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        } else if !metadata.is_file() || is_of_a_tenant(&path) && metadata.nlink() > 1 {
            self.found.left_out.push(path);
        } else if self.is_secret(&path) {
            if self.keep == KeepSecrets::Yes {
                self.found.files.push(path.clone());
            }
            self.found.secrets.push(path);
        } else {
            self.found.files.push(path);
        }
        Ok(())
    }

    /// The metadata of an entry, behind a link of the operator too. None for entries outside a
    /// backup.
    fn look(&mut self, path: &Path) -> io::Result<Option<Metadata>> {
        let whole = self.home.join(path);
        let metadata = match fs::symlink_metadata(&whole) {
            // Deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?,
        };
        if !metadata.is_symlink() {
            return Ok(Some(metadata));
        }
        // The old name of a renamed agent: its files are under the new name.
        let is_old_name =
            path.parent() == Some(Path::new("agents")) && tenants::leads_beside(&whole);
        if is_old_name {
            return Ok(None);
        }
        let behind = fs::metadata(&whole).ok().filter(|_| !is_of_a_tenant(path));
        if behind.is_none() {
            self.found.left_out.push(path.to_owned());
        }
        Ok(behind)
    }

    fn is_secret(&self, path: &Path) -> bool {
        path.starts_with("secrets")
            || path == Path::new(ENVIRONMENT_FILE)
            || self.named.contains(path)
    }
}

/// Whether an agent can write here. A link made by an agent, of either kind, may lead to a file
/// closed to the agent, and would be a file of the agent's own after a restore.
pub(super) fn is_of_a_tenant(path: &Path) -> bool {
    let names: Vec<_> = path.components().map(|name| name.as_os_str()).collect();
    match names.first().and_then(|name| name.to_str()) {
        Some("agents") => names.len() > 2 && !is_identity(&names),
        Some("shared" | "outgoing" | "web" | "archive") => true,
        _ => false,
    }
}

/// A file like `agents/rose/SOUL.md`, or a skill of an agent: written by the operator.
fn is_identity(names: &[&std::ffi::OsStr]) -> bool {
    let name = names
        .get(2)
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    name == "skills" || (names.len() == 3 && name.ends_with(".md") && name != "MEMORY.md")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_of_operators_are_followed_and_those_of_agents_are_not() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("agents/rose/workspace")).unwrap();
        fs::write(elsewhere.path().join("text"), "x").unwrap();
        let text = elsewhere.path().join("text");
        symlink(&text, at("config.toml")).unwrap();
        symlink(&text, at("agents/rose/SOUL.md")).unwrap();
        symlink(&text, at("agents/rose/MEMORY.md")).unwrap();
        symlink(&text, at("agents/rose/workspace/passwords")).unwrap();
        symlink("rose", at("agents/lily")).unwrap();
        symlink(elsewhere.path(), at("skills")).unwrap();
        symlink(home.path(), at("round")).unwrap();
        symlink("nothing", at("USER.md")).unwrap();
        let found = contents(home.path(), &[], KeepSecrets::Yes).unwrap();
        let named = |paths: &[PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        assert_eq!(
            named(&found.files),
            ["agents/rose/SOUL.md", "config.toml", "skills/text"]
        );
        let mut left_out = named(&found.left_out);
        left_out.sort();
        assert_eq!(
            left_out,
            [
                "USER.md",
                "agents/rose/MEMORY.md",
                "agents/rose/workspace/passwords",
                "round"
            ]
        );
    }

    #[test]
    fn secrets_can_be_left_out() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("secrets")).unwrap();
        for name in [
            "secrets/telegram",
            "key",
            "config.toml",
            "parlor.db",
            "parlor.lock",
        ] {
            fs::write(home.path().join(name), "x").unwrap();
        }
        let named = [KeptSecret {
            key: "a".into(),
            keeper: Keeper::File(home.path().join("key")),
        }];
        let found = |keep| contents(home.path(), &named, keep).unwrap();
        assert_eq!(found(KeepSecrets::No).files, [PathBuf::from("config.toml")]);
        assert_eq!(found(KeepSecrets::No).secrets.len(), 2);
        assert_eq!(found(KeepSecrets::Yes).files.len(), 3);
    }
}
