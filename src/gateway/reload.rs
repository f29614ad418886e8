//! Reads the config anew while the gateway runs: checks everything, then replaces the snapshot as a
//! whole. A file with a problem changes nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::person_pace::PersonPaces;
use super::platforms::Platforms;
use super::{GatewayState, owners};
use crate::clock::now_ms;
use crate::config::{LoadError, Secrets, WebChat, store};
use crate::delivery::outbox::{self, Source};
use crate::domain::Platform;
use crate::home::{
    CheckedConfig, ConfigError, Home, Reload, ReloadBy, ReloadRequests, Snapshot, changed_sections,
};
use crate::metrics::{self, Reloaded};
use crate::operations::ConfigText;
use crate::records::audit::{self, Action, Actor, Change};
use crate::storage::StoreError;
use crate::telemetry;

/// How a report begins that names a missing variable.
const UNSET_VARIABLE: &str = "error: the environment variable";
/// A process gets its variables at its start.
const NO_NEW_VARIABLES: &str = "A reload brings no new environment variables: set it where Parlor is started, then start Parlor again.";

/// How long a program may take between emptying a file and filling it.
const STILL_WRITTEN: Duration = Duration::from_millis(500);

/// Replaces the snapshot of a running gateway.
pub(super) struct Reloader {
    state: Arc<GatewayState>,
    platforms: Arc<Platforms>,
    home: Home,
    current: Mutex<Current>,
}

/// The file as it was last read.
struct Current {
    /// None when it could not be read as TOML.
    text: Option<ConfigText>,
    /// The problem that owners were told.
    problem: Option<String>,
}

/// Why the running config stays.
#[derive(Debug, thiserror::Error)]
enum Unchanged {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error(
        "it switches the web chat off and names neither [telegram] nor [discord], so the gateway would have nothing to listen to"
    )]
    NoChannel,
    #[error(
        "it names neither [telegram] nor [discord] any more; add [web] if the web chat alone is meant"
    )]
    PlatformsGone,
}

impl Unchanged {
    /// How many problems there are, and their report.
    fn told(&self) -> (usize, String) {
        match self {
            Unchanged::Config(ConfigError::Problems(report)) => {
                let mut told = report.render_problems(false).trim_end().to_owned();
                if told.contains(UNSET_VARIABLE) {
                    told = format!("{told}\n{NO_NEW_VARIABLES}");
                }
                (report.problems.len(), told)
            }
            Unchanged::Config(ConfigError::Load(LoadError::Missing(_) | LoadError::Astray(_))) => {
                (1, FILE_GONE.to_owned())
            }
            other => (1, other.to_string()),
        }
    }

    /// The word to the owners about `told`.
    fn for_owners(&self, count: usize, told: &str, found: Found) -> String {
        match self {
            Unchanged::Config(ConfigError::Problems(_)) => unchanged(count, told, found),
            Unchanged::Config(ConfigError::Load(_)) | Unchanged::Store(_) => {
                format!("The running config stays as it was. {told}")
            }
            Unchanged::NoChannel | Unchanged::PlatformsGone => {
                format!("config.toml was saved, and the running config stays as it was: {told}.")
            }
        }
    }
}

/// What brought a problem to light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The file has another text than the one that counts.
    OnSave,
    /// The same text does not count any more, such as after a change of a secret's file.
    OnReload,
}

const FILE_GONE: &str =
    "config.toml is gone. Put it back before the gateway stops, because the next start needs it.";

impl Reloader {
    pub(super) fn new(state: Arc<GatewayState>, platforms: Arc<Platforms>, home: Home) -> Self {
        let text = ConfigText::read(home.path());
        state.pulse.config_read(text.clone());
        Reloader {
            state,
            platforms,
            home,
            current: Mutex::new(Current {
                text,
                problem: None,
            }),
        }
    }

    /// Serves requests until the gateway stops.
    pub(super) async fn serve(self, mut requests: ReloadRequests) {
        loop {
            let request = tokio::select! {
                request = requests.recv() => request,
                () = self.state.stop.cancelled() => None,
            };
            let Some(request) = request else { return };
            let done = self
                .reload(&request.cause, request.is_asked_for, &request.by)
                .await;
            request.answer(done);
        }
    }

    /// `is_forced` reads the file also where its text is the same: secrets may have changed.
    async fn reload(&self, cause: &str, is_forced: bool, by: &ReloadBy) -> Reload {
        let mut current = self.current.lock().await;
        let text = ConfigText::read(self.home.path());
        if !is_forced && text.is_some() && text == current.text && current.problem.is_none() {
            return Reload::Same;
        }
        let (replaced, text) = self.replace_settled(text, is_forced).await;
        match replaced {
            Ok(renewed) => {
                let changed = match (&current.text, &text) {
                    (Some(before), Some(now)) => changed_sections(&before.table, &now.table),
                    _ => Vec::new(),
                };
                let was_broken = current.problem.take().is_some();
                self.state.pulse.config_read(text.clone());
                *current = Current {
                    text,
                    problem: None,
                };
                // Other comments move the lines that people are told, and change nothing else.
                if !is_forced && !was_broken && changed.is_empty() && renewed.is_empty() {
                    return Reload::Same;
                }
                match changed.join(" ") {
                    what if what.is_empty() => tracing::info!(cause, "reload"),
                    what => tracing::info!(cause, changed = %what, "reload"),
                }
                metrics::reloaded(Reloaded::Done);
                self.note(by, &changed).await;
                self.state.tell_missing_keys().await;
                for platform in &renewed {
                    tracing::info!(%platform, "{platform} is being connected anew, because its settings changed");
                }
                if was_broken {
                    self.tell_owners("config.toml is fine again and counts now.")
                        .await;
                }
                Reload::Done { changed, renewed }
            }
            Err(problem) => {
                metrics::reloaded(Reloaded::Refused);
                let (refused, (count, problem)) = (&problem, problem.told());
                tracing::error!(cause, "the running config stays as it was:\n{problem}");
                if current.problem.as_ref() != Some(&problem) {
                    let found = match text == current.text {
                        true => Found::OnReload,
                        false => Found::OnSave,
                    };
                    let told = refused.for_owners(count, &problem, found);
                    self.tell_owners(&told).await;
                }
                self.state.pulse.config_problem(&problem);
                current.problem = Some(problem.clone());
                Reload::Refused(problem)
            }
        }
    }

    /// A file that is still being written gets a second look before its problem counts.
    async fn replace_settled(
        &self,
        text: Option<ConfigText>,
        is_forced: bool,
    ) -> (Result<Vec<Platform>, Unchanged>, Option<ConfigText>) {
        let replaced = self.replace().await;
        if is_forced || replaced.is_ok() {
            return (replaced, text);
        }
        tokio::time::sleep(STILL_WRITTEN).await;
        match ConfigText::read(self.home.path()) {
            now if now == text => (replaced, text),
            now => (self.replace().await, now),
        }
    }

    async fn replace(&self) -> Result<Vec<Platform>, Unchanged> {
        let (home, is_alone) = (self.home.clone(), self.platforms.is_alone());
        // The terminal needs no token of a platform.
        let secrets = if is_alone {
            Secrets::WherePresent
        } else {
            Secrets::Required
        };
        let load = move || {
            // A change of an agent is taken in as a whole. A home that cannot be locked has none.
            let lock = store::lock(home.path()).ok();
            CheckedConfig::load(&home, secrets).map(|checked| (checked, lock))
        };
        let (checked, _lock) = tokio::task::spawn_blocking(load)
            .await
            .expect("reading a config does not panic")?;
        if !is_alone && !checked.config.has_channel() {
            return Err(Unchanged::NoChannel);
        }
        // An emptied file, more likely than a wish.
        let running = self.state.services.snapshots.current();
        if running.config.has_platform() && checked.config.web == WebChat::Implied {
            return Err(Unchanged::PlatformsGone);
        }
        let services = &self.state.services;
        let (registry, _) = checked.registry(&self.home, &services.db).await?;
        let _replacing = self.state.replacing.lock().await;
        let checked = checked.with_grants(&services.db).await?;
        let before = services.snapshots.current();
        let next = Snapshot::after(&before, &checked, Arc::new(registry));
        let access = &next.config.access;
        if access.limits != before.config.access.limits {
            self.state
                .paces
                .send_replace(Arc::new(PersonPaces::new(&access.limits)));
        }
        self.state.delivery.set_owners(owners(&next.config));
        // A terminal that has the gateway for itself shows its own lines only.
        if !self.state.terminals.are_of_a_chat() {
            telemetry::follow(self.home.path(), &next.config.log);
        }
        let agents: Vec<_> = next.registry.all().iter().map(|agent| agent.uid).collect();
        services.sessions.renew(next);
        metrics::retire_others(&agents);
        Ok(self.platforms.follow(&self.state))
    }

    /// Notes who has changed what. The names of sections are no secrets.
    async fn note(&self, by: &ReloadBy, changed: &[String]) {
        let actor = match by {
            ReloadBy::File => Actor::Config,
            ReloadBy::Signal => Actor::Cli {
                login: "a signal".to_owned(),
            },
            ReloadBy::Person { id, name } => Actor::Person {
                id: id.clone(),
                name: name.clone(),
            },
            ReloadBy::Other => return,
        };
        let changed = changed.join(" ");
        let note = move |tx: &rusqlite::Transaction<'_>| {
            let change = Change::new(Action::Reload).to(changed);
            audit::note(tx, &actor, &change, now_ms())
        };
        if let Err(error) = self.state.services.db.write(note).await {
            tracing::warn!("a reload is not in the audit: {error}");
        }
    }

    async fn tell_owners(&self, text: &str) {
        let rows = Arc::new(self.state.delivery.draft_for_owners(text));
        let written = rows.clone();
        let write = move |tx: &rusqlite::Transaction<'_>| {
            outbox::insert(tx, &written, Source::default(), now_ms())
        };
        match self.state.services.db.write(write).await {
            Ok(()) => self.state.delivery.submit_drafted(&rows),
            Err(error) => tracing::warn!("the owners are not told about the config: {error}"),
        }
    }
}

/// The first problems are enough for a chat, each one whole.
fn unchanged(count: usize, problem: &str, found: Found) -> String {
    let (problem, hint) = match problem.strip_suffix(NO_NEW_VARIABLES) {
        Some(problem) => (problem, format!("\n{NO_NEW_VARIABLES}")),
        None => (problem, String::new()),
    };
    let shown = first_problems(problem);
    let problems = match count {
        1 => "a problem".to_owned(),
        count => format!("{count} problems"),
    };
    let (what, then) = match found {
        Found::OnSave => (format!("config.toml was saved with {problems}"), ""),
        Found::OnReload => (
            format!("A reload found {problems}"),
            " Once that is put right, /reload reads it again.",
        ),
    };
    format!(
        "{what}, so the running config stays as it was.{then} `parlor config check` shows the whole report, which begins:\n```\n{}\n```{hint}",
        shown.trim_end()
    )
}

/// Whole problems of a report, and at least one. An empty line ends each.
fn first_problems(report: &str) -> String {
    const MOST_LINES: usize = 12;
    let mut lines = 0;
    let mut problems = report.split("\n\n");
    let first = problems.next().unwrap_or_default();
    let fitting = problems.take_while(|problem| {
        lines += problem.lines().count() + 1;
        lines + first.lines().count() <= MOST_LINES
    });
    std::iter::once(first)
        .chain(fitting)
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::{Found, first_problems, unchanged};

    #[test]
    fn a_problem_of_a_reload_is_not_told_as_one_of_a_save() {
        let problem = "error: the file secrets/key is open to other users of this machine";
        let saved = unchanged(1, problem, Found::OnSave);
        assert!(
            saved.starts_with("config.toml was saved with a problem, so"),
            "{saved}"
        );
        let found = unchanged(1, problem, Found::OnReload);
        assert!(found.starts_with("A reload found a problem, so"), "{found}");
        assert!(found.contains("/reload reads it again"), "{found}");
    }

    #[test]
    fn problems_are_shown_whole() {
        let problem = |number: usize| format!("error: {number}\n --> f\n  |\n  = help: x");
        let all: Vec<String> = (1..5).map(problem).collect();
        let report = format!("{}\n\n4 problems in config.toml.", all.join("\n\n"));
        assert_eq!(first_problems(&report), all[..2].join("\n\n"));
        let long = format!("error: long{}", "\n  |".repeat(20));
        assert_eq!(first_problems(&format!("{long}\n\n1 problem")), long);
    }
}
