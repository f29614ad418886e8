//! Requests to read the config anew, and their answers.

use tokio::sync::{mpsc, oneshot};

use crate::domain::{PersonId, Platform};

/// Requests waiting to be served. When full, further ones wait.
const WAITING: usize = 16;

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The file has not changed, or in its comments alone.
    Same,
    Done {
        /// Names of changed sections, such as `agents.rose`.
        changed: Vec<String>,
        /// Platforms connected anew.
        renewed: Vec<Platform>,
    },
    /// Nothing changed, for this reason.
    Refused(String),
}

/// Asks the gateway to read its config anew. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ReloadHandle {
    requests: mpsc::Sender<ReloadRequest>,
}

/// The author of a request, for the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadBy {
    /// A saved file.
    File,
    /// A signal to the process.
    Signal,
    Person {
        id: PersonId,
        name: String,
    },
    /// The asker writes the audit.
    Other,
}

#[derive(Debug)]
pub struct ReloadRequest {
    /// For the log: a file, a signal, a command.
    pub cause: String,
    /// Whether the text counts as changed anyway: secrets may have changed.
    pub is_asked_for: bool,
    pub by: ReloadBy,
    answer: oneshot::Sender<Reload>,
}

pub type ReloadRequests = mpsc::Receiver<ReloadRequest>;

impl ReloadRequest {
    pub fn answer(self, done: Reload) {
        // The asker may have gone away.
        drop(self.answer.send(done));
    }
}

impl ReloadHandle {
    pub fn new() -> (Self, ReloadRequests) {
        let (requests, served) = mpsc::channel(WAITING);
        (ReloadHandle { requests }, served)
    }

    /// Reads the config anew. `None`: the gateway stops.
    pub async fn ask(&self, cause: impl Into<String>) -> Option<Reload> {
        self.request(cause.into(), true, ReloadBy::Other).await
    }

    /// Reads the config anew after a signal. `None`: the gateway stops.
    pub async fn ask_by_signal(&self, cause: impl Into<String>) -> Option<Reload> {
        self.request(cause.into(), true, ReloadBy::Signal).await
    }

    /// Reads the config anew for a person's command. `None`: the gateway stops.
    pub async fn ask_by(&self, id: &PersonId, name: &str, command: &str) -> Option<Reload> {
        let by = ReloadBy::Person {
            id: id.clone(),
            name: name.to_owned(),
        };
        self.request(format!("{command} by {id}"), true, by).await
    }

    /// Reads the config anew if the file's text has changed. `None`: the gateway stops.
    pub async fn file_changed(&self, file: impl Into<String>) -> Option<Reload> {
        self.request(file.into(), false, ReloadBy::File).await
    }

    async fn request(&self, cause: String, is_asked_for: bool, by: ReloadBy) -> Option<Reload> {
        let (answer, answered) = oneshot::channel();
        let request = ReloadRequest {
            cause,
            is_asked_for,
            by,
            answer,
        };
        self.requests.send(request).await.ok()?;
        answered.await.ok()
    }
}

/// Tables with named entries. Changes are told entry by entry.
const BY_ENTRY: [&str; 5] = ["agents", "providers", "people", "peer_groups", "hooks"];

/// The sections with a difference between two texts of the config.
pub fn changed_sections(before: &toml::Table, now: &toml::Table) -> Vec<String> {
    let mut changed = Vec::new();
    for key in keys(before, now) {
        match (before.get(key), now.get(key)) {
            (before, now) if before == now => {}
            (before, now) if BY_ENTRY.contains(&key) => {
                let empty = toml::Table::new();
                let table = |value: Option<&toml::Value>| {
                    value
                        .and_then(toml::Value::as_table)
                        .unwrap_or(&empty)
                        .clone()
                };
                let (before, now) = (table(before), table(now));
                let entries = keys(&before, &now)
                    .into_iter()
                    .filter(|entry| before.get(*entry) != now.get(*entry));
                changed.extend(entries.map(|entry| format!("{key}.{entry}")));
            }
            _ => changed.push(key.to_owned()),
        }
    }
    changed
}

fn keys<'a>(before: &'a toml::Table, now: &'a toml::Table) -> Vec<&'a str> {
    let mut keys: Vec<&str> = before
        .keys()
        .chain(now.keys())
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_sections_are_named() {
        let check = |before: &str, now: &str, expected: &[&str]| {
            let (before, now) = (before.parse().unwrap(), now.parse().unwrap());
            assert_eq!(changed_sections(&before, &now), expected);
        };
        check("a = 1", "a = 1", &[]);
        check(
            "default_agent = \"main\"",
            "default_agent = \"rose\"",
            &["default_agent"],
        );
        check(
            "[agents.rose]\n[agents.ada]\nname = \"Ada\"",
            "[agents.ada]\nname = \"A\"\n[agents.dot]",
            &["agents.ada", "agents.dot", "agents.rose"],
        );
        check(
            "",
            "[telegram]\n[[bindings]]\nagent = \"x\"",
            &["bindings", "telegram"],
        );
    }
}
