//! Looks at a whole house and tells its problems, with the fix for each.
//!
//! A check returns [`Finding`]s and changes nothing. Inside a running gateway the checks use its
//! config and its tokens, and never poll Telegram; on a home without a gateway they use the files,
//! as far as they can be read.

mod belongings;
pub(crate) mod bundle;
mod database;
pub(crate) mod expectations;
mod files;
pub(crate) mod fixing;
mod habitat;
mod jobs;
mod models;
mod platforms;
mod routing;
mod secrets;
pub(crate) mod security;
mod working;

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::agents::Registry;
use crate::backups::{self, BACKUPS};
use crate::clock::now_ms;
use crate::config::{Config, Secrets, read_home};
use crate::domain::{AgentUid, Platform};
use crate::home::{CheckedConfig, Home, Snapshot};
use crate::operations::diagnosis::{Diagnosis, Finding};
use crate::operations::{Link, Operations, Refusal, Status, status};
use crate::storage::{self, Db};

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Files, rows, and the gateway's own knowledge: at once.
    Quick,
    /// All checks, and a question to every model and every platform: some seconds.
    Full,
}

/// The house under examination.
struct Patient<'a> {
    home: &'a Home,
    /// None where the database cannot be used.
    operations: Option<&'a Operations>,
    /// None where the config cannot be used.
    snapshot: Option<Arc<Snapshot>>,
    /// Only with a running gateway.
    status: Option<Status>,
    depth: Depth,
}

impl Patient<'_> {
    /// Whether this process is the gateway, with its environment.
    fn is_gateway(&self) -> bool {
        self.operations.is_some_and(Operations::is_live)
    }

    /// Whether a gateway runs on the home, in this process or another.
    fn has_gateway(&self) -> bool {
        self.is_gateway() || self.home.is_running()
    }

    fn db(&self) -> Option<&Db> {
        self.operations.map(Operations::db)
    }
}

/// Looks at the house of a running gateway.
pub(crate) async fn in_gateway(
    operations: &Operations,
    depth: Depth,
) -> Result<Diagnosis, Refusal> {
    let home = Home::new(operations.home());
    let snapshot = operations.snapshot().await?;
    let status = status(operations).await?;
    let mut findings = vec![running(&status)];
    findings.extend(config_of_gateway(&status));
    findings.extend(listener(&status));
    let patient = Patient {
        home: &home,
        operations: Some(operations),
        snapshot: Some(snapshot),
        status: Some(status),
        depth,
    };
    Ok(examine(&patient, findings, None).await)
}

/// Looks at a home without a gateway to ask.
pub(crate) async fn on_home(home: &Home) -> Diagnosis {
    let (config, table) = config_on_disk(home);
    let gateway = match home.is_running() {
        true => Finding::bad(
            "gateway",
            "A gateway runs on this home, but does not answer.",
        )
        .fix("Restart it, if parlor status does not reach it either."),
        false => not_running(table.as_ref().map(|checked| &*checked.config)),
    };
    let findings = vec![gateway, config];
    let opened = open(home).await;
    let (operations, problem) = match opened {
        Ok(db) => (
            db.map(|db| Operations::on_home(home.path().to_owned(), db)),
            None,
        ),
        Err(problem) => (None, Some(problem)),
    };
    let snapshot = match (&operations, table) {
        (Some(operations), Some(_)) => operations.snapshot().await.ok(),
        (None, Some(checked)) => Some(without_rows(home.path(), checked)),
        (_, None) => None,
    };
    let patient = Patient {
        home,
        operations: operations.as_ref(),
        snapshot,
        status: None,
        depth: Depth::Full,
    };
    examine(&patient, findings, problem).await
}

/// A snapshot for a home without a database.
fn without_rows(home: &Path, checked: CheckedConfig) -> Arc<Snapshot> {
    // Nothing is stored, so the numbers of agents are made up.
    let agents = checked.config.agents.iter();
    let uids = agents
        .map(|agent| (agent.id.clone(), AgentUid(Uuid::now_v7())))
        .collect();
    let registry = Registry::new(&checked.config, home, &uids);
    Arc::new(Snapshot::new(
        checked.config,
        checked.table,
        Arc::new(registry),
    ))
}

/// The database, unless missing or of another schema: a look makes none and upgrades none.
async fn open(home: &Home) -> Result<Option<Db>, String> {
    let path = home.database();
    storage::check_presence(&path).map_err(|error| error.to_string())?;
    if !path.exists() {
        return Ok(None);
    }
    let schema = storage::peek(&path, |connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))
    });
    if schema.is_some_and(|schema| schema < storage::schema()) {
        return Ok(None);
    }
    let opened = Db::open(&path).await;
    opened.map(Some).map_err(|error| error.to_string())
}

async fn examine(
    patient: &Patient<'_>,
    mut findings: Vec<Finding>,
    problem: Option<String>,
) -> Diagnosis {
    findings.extend(habitat::check(patient.home));
    findings.extend(database::check(patient, problem).await);
    findings.extend(secrets::check(patient.home, patient.is_gateway()));
    let (models, platforms) = match patient.depth {
        Depth::Full => tokio::join!(models::ask(patient), platforms::ask(patient)),
        Depth::Quick => (models::known(patient), platforms::known(patient)),
    };
    findings.extend(models);
    findings.extend(platforms);
    findings.extend(working::check(patient).await);
    findings.extend(routing::check(patient).await);
    findings.extend(jobs::check(patient).await);
    findings.extend(security::check(patient).await);
    findings.push(backup(patient.home));
    findings.extend(files::check(patient));
    Diagnosis {
        findings,
        belongings: belongings::of(patient.home.path()),
    }
}

/// Without a bot there is nothing to run yet.
fn not_running(config: Option<&Config>) -> Finding {
    let has_bot = config.is_none_or(|config| config.telegram.is_some() || config.discord.is_some());
    Finding::note("gateway", "No gateway runs on this home.").fix(match has_bot {
        true => "parlor run",
        false => "parlor setup connects a bot, then parlor run",
    })
}

fn running(status: &Status) -> Finding {
    let Some(gateway) = &status.gateway else {
        return not_running(None);
    };
    let down = gateway
        .platforms
        .iter()
        // The web chat has a finding of its own.
        .find(|link| link.state == Link::Down && link.platform != Platform::Web);
    match down {
        Some(link) => Finding::bad(
            "gateway",
            format!(
                "The gateway runs, but has no connection to {}.",
                link.platform
            ),
        )
        .cause(link.reason.clone().unwrap_or_default())
        .fix(format!(
            "See the findings about {} below; parlor reload has the gateway try at once",
            link.platform
        )),
        None => Finding::ok(
            "gateway",
            format!("Parlor {} runs (pid {}).", gateway.version, gateway.pid),
        ),
    }
}

fn listener(status: &Status) -> Option<Finding> {
    let reason = status.gateway.as_ref()?.listener.as_ref()?;
    let found = Finding::bad("admin", "The dashboard and the web chat cannot be reached.");
    Some(found.cause(reason.as_str()).fix(
        "Stop the program that has the address, or set another listen of [admin], then parlor reload",
    ))
}

fn config_of_gateway(status: &Status) -> Option<Finding> {
    let config = &status.gateway.as_ref()?.config;
    Some(match &config.problem {
        Some(problem) => Finding::bad(
            "config",
            "config.toml has a problem, so the gateway goes on with the one from before.",
        )
        .cause(problem.trim_end())
        .fix("parlor config check, put it right, then parlor reload"),
        None if config.differs => Finding::warn(
            "config",
            "The gateway runs with another config.toml than the one on disk.",
        )
        .fix("parlor reload"),
        None => Finding::ok("config", "config.toml is fine, and in use."),
    })
}

fn config_on_disk(home: &Home) -> (Finding, Option<CheckedConfig>) {
    if let Err(error) = read_home(home.path()) {
        let found = Finding::bad("config", error.to_string());
        return (found.fix("parlor init"), None);
    }
    match CheckedConfig::load(home, Secrets::WherePresent) {
        Ok(checked) => {
            let found = Finding::ok("config", "config.toml is fine.");
            (found, Some(checked))
        }
        Err(error) => {
            let found = Finding::bad("config", "config.toml has problems, so nothing starts.");
            let found = found.cause(error.to_string().trim_end());
            (found.fix("parlor config check"), None)
        }
    }
}

/// A backup of this age is old.
const OLD_DAYS: i64 = 7;

/// Backups elsewhere are not seen, so a missing backup is only a note.
fn backup(home: &Home) -> Finding {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let Some(newest) = backups::newest(&home.path().join(BACKUPS)) else {
        let text = "No backup is in backups/ of the home folder.";
        return Finding::note("backup", text).fix("parlor backup --keep 7, every night");
    };
    match (now_ms() - newest.made_at) / DAY_MS {
        0 => Finding::ok("backup", "The newest backup is less than a day old."),
        days if days < OLD_DAYS => {
            Finding::ok("backup", format!("The newest backup is {days} days old."))
        }
        days => Finding::warn("backup", format!("The newest backup is {days} days old."))
            .fix("parlor backup --keep 7, every night"),
    }
}
