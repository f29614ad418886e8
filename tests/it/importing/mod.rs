//! `parlor import`: sources written after the layouts of five systems, opened with real SQLite.

mod archives;
mod exporting;
mod hermes;
mod hostile;
mod moltis;
mod openclaw;
mod signet;
mod zeroclaw;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{Ran, run};
use crate::tenants::files;

/// A folder of another system.
pub(crate) struct Source {
    folder: TempDir,
    name: &'static str,
}

impl Source {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(name)).expect("a folder");
        Source { folder, name }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        fs::write(path, text).expect("writes");
    }

    /// Runs statements on a database of the source, and closes it.
    fn database(&self, path: &str, sql: &str) -> Connection {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        let connection = Connection::open(path).expect("opens");
        connection.execute_batch(sql).expect("runs");
        connection
    }

    /// Everything below, to see that it stays as it is.
    fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.folder.path().to_owned()];
        while let Some(next) = open.pop() {
            for path in fs::read_dir(&next)
                .expect("reads")
                .flatten()
                .map(|entry| entry.path())
            {
                let kind = fs::symlink_metadata(&path).expect("is there");
                match () {
                    () if kind.is_dir() => open.push(path),
                    () if kind.is_file() && kind.len() < 10_000_000 => {
                        found.insert(path.clone(), fs::read(&path).expect("reads"));
                    }
                    () => {
                        found.insert(path, Vec::new());
                    }
                }
            }
        }
        found
    }

    fn text(&self) -> String {
        self.path().display().to_string()
    }

    async fn import(&self, home: &Path, options: &[&str]) -> Ran {
        let (system, folder) = (self.name.trim_start_matches('.'), self.text());
        let mut arguments = vec!["import", system, &folder];
        arguments.extend(options);
        let before = self.content();
        let mut ran = run(home, &arguments).await;
        assert_eq!(self.content(), before, "the source is never touched");
        ran.stdout = ran.stdout.replace(&folder, "SOURCE");
        ran.stderr = ran.stderr.replace(&folder, "SOURCE");
        ran
    }

    /// Imports, and returns the report.
    async fn report(&self, home: &Path, options: &[&str]) -> Report {
        let mut all = vec!["--json"];
        all.extend(options);
        let ran = self.import(home, &all).await;
        assert_eq!(ran.code, 0, "{}{}", ran.stderr, ran.stdout);
        Report(serde_json::from_str(&ran.stdout).expect("JSON"))
    }
}

/// All five systems in the folder of a user, where each is usually.
pub(crate) fn installed_in(user: &Path) {
    let all = [
        (openclaw::source(), ".openclaw"),
        (hermes::source(), ".hermes"),
        (zeroclaw::source(), ".zeroclaw"),
        (moltis::source(), ".moltis"),
        (signet::source(signet::LATE), ".agents"),
    ];
    for (source, name) in all {
        copy(&source.path(), &user.join(name));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("makes");
    for entry in fs::read_dir(from).expect("reads").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(&from, &to).expect("copies")),
        }
    }
}

struct Report(Value);

impl Report {
    /// The items of a kind as lines.
    fn lines(&self, kind: &str) -> String {
        let items = self.0["items"].as_array().expect("items");
        let items = items.iter().filter(|item| item["kind"] == kind);
        let word = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let lines = items.map(|item| {
            let (source, target) = (word(item, "source"), word(item, "target"));
            format!(
                "{}: {source} → {target} ({})",
                word(item, "state"),
                word(item, "why")
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn count(&self, state: &str) -> usize {
        let items = self.0["items"].as_array().expect("items");
        items.iter().filter(|item| item["state"] == state).count()
    }
}

/// Everything that an import could change.
fn state(home: &Path) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<String>) {
    let mut files = files(home);
    files.retain(|name, _| !name.ends_with("config.lock"));
    let tables = [
        "agents",
        "memories",
        "messages",
        "places",
        "people",
        "imports",
        "audit",
        "summaries",
    ];
    let count = |table| crate::support::house::ask(home, &format!("SELECT count(*) FROM {table}"));
    (files, tables.map(count).to_vec())
}
