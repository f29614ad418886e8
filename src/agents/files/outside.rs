//! Checks on the disk whether a folder outside the home may be opened to agents.

use std::path::{Path, PathBuf};

use crate::config::{Config, Problem, Spanned};

/// Folders of the system with special files, which are no documents.
const OF_THE_SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

pub(crate) fn check(config: &Config, home: &Path) -> Vec<Problem> {
    let paths = config
        .tools
        .shared
        .iter()
        .filter_map(|shared| shared.path.as_ref());
    let problems = paths.map(|path| problem(path, home));
    problems.flatten().collect()
}

fn problem(path: &Spanned<PathBuf>, home: &Path) -> Option<Problem> {
    let noted = |what: &str, label: &str, help: &str| {
        let what = format!("`{}` {what}", path.value.display());
        let problem = Problem::new(path.span.clone(), what);
        Some(problem.label(label.to_owned()).help(help.to_owned()))
    };
    let Ok(real) = path.value.canonicalize() else {
        return noted(
            "is not there",
            "no such folder, or it may not be looked into",
            "make the folder first, or correct the path",
        );
    };
    if !real.is_dir() {
        return noted(
            "is not a folder",
            "a file",
            "write the path of the folder that it is in",
        );
    }
    if real != path.value {
        let help = format!("write `path = \"{}\"`", real.display());
        return noted(
            "is reached through a link",
            "not the folder's own path",
            &help,
        );
    }
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    if real.starts_with(&home) || home.starts_with(&real) {
        return noted(
            "and the home folder are one inside the other",
            "agents could reach the database, secrets and other agents",
            "share a folder that has nothing to do with the home; without `path` a folder in the home is made",
        );
    }
    if OF_THE_SYSTEM.iter().any(|system| real.starts_with(system)) {
        return noted(
            "belongs to the system",
            "not a folder for files",
            "share a folder with files of people",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// What is wrong with a folder, in a few words.
    fn told(path: &Path, home: &Path) -> Option<String> {
        let path = Spanned {
            value: path.to_owned(),
            span: 0..1,
        };
        problem(&path, home).map(|problem| problem.message)
    }

    /// S6.6
    #[test]
    fn only_a_real_folder_that_has_nothing_to_do_with_the_home_is_opened() {
        let around = TempDir::new().unwrap();
        let around = around.path().canonicalize().unwrap();
        let (home, fine, link) = (
            around.join("home"),
            around.join("fine"),
            around.join("link"),
        );
        for folder in [home.join("shared"), fine.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(around.join("file"), "").unwrap();
        symlink(&home, &link).unwrap();
        assert_eq!(told(&fine, &home), None);
        for bad in [
            home.clone(),
            home.join("shared"),
            around.clone(),
            link,
            around.join("file"),
            around.join("gone"),
            PathBuf::from("/"),
            PathBuf::from("/proc"),
            PathBuf::from("/dev/shm"),
        ] {
            assert!(told(&bad, &home).is_some(), "{}", bad.display());
        }
    }
}
