//! The config after all checks, with its routing table.

use std::path::Path;
use std::sync::Arc;

use super::folder::Home;
use super::registry::registry;
use super::route_tests;
use crate::access::grants;
use crate::agents::files::outside;
use crate::agents::{AgentRows, Registry, check_personalities, skills};
use crate::config::{
    self, Access, Config, Draft, Fault, LoadError, People, Problem, Report, Secrets, Source,
};
use crate::routing::Table;
use crate::storage::{Db, StoreError};
use crate::tools::{self, policy};

/// A config without problems. The gateway and every verb load theirs here.
#[derive(Debug, Clone)]
pub struct CheckedConfig {
    pub config: Arc<Config>,
    pub table: Arc<Table>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{0}")]
    Problems(#[from] Report),
}

impl CheckedConfig {
    pub fn load(home: &Home, secrets: Secrets) -> Result<Self, ConfigError> {
        Ok(Self::of(config::read_home(home.path())?, home, secrets)?)
    }

    /// Checks a text, which may differ from the file's.
    pub(crate) fn of(source: Source, home: &Home, secrets: Secrets) -> Result<Self, Report> {
        let draft = config::draft(source, home.path(), secrets);
        let (config, table) = check(draft, home.path())?;
        Ok(CheckedConfig {
            config: Arc::new(config),
            table: Arc::new(table),
        })
    }

    /// This config with the ids and roles granted by owners while the gateway ran.
    pub async fn with_grants(self, db: &Db) -> Result<Self, StoreError> {
        let people = self.config.access.people.clone();
        let people = db
            .read(move |connection| grants::people(connection, &people))
            .await?;
        Ok(CheckedConfig {
            config: Arc::new(with_people(&self.config, people)),
            table: self.table,
        })
    }

    pub async fn registry(
        &self,
        home: &Home,
        db: &Db,
    ) -> Result<(Registry, AgentRows), StoreError> {
        registry(&self.config, home.path(), db).await
    }
}

pub(super) fn with_people(config: &Config, people: People) -> Config {
    Config {
        access: Access {
            people,
            ..config.access.clone()
        },
        ..config.clone()
    }
}

/// Checks a draft from every side: routing, skills, shared folders, personalities, tools.
pub fn check(mut draft: Draft, home: &Path) -> Result<(Config, Table), Report> {
    let (table, problems) = Table::build(&draft.config);
    // Rules with a problem give other answers than the operator means.
    let is_secret =
        |problem: &Problem| matches!(problem.fault, Fault::MissingSecret | Fault::BadSecret);
    if draft.problems.iter().all(is_secret) && problems.is_empty() {
        draft
            .problems
            .extend(route_tests::check(&draft.config, &table));
    }
    draft.problems.extend(problems);
    draft.problems.extend(skills::check(&draft.config, home));
    draft.problems.extend(outside::check(&draft.config, home));
    draft
        .problems
        .extend(check_personalities(&draft.config, home));
    draft
        .problems
        .extend(policy::check(&draft.config, tools::KNOWN.iter().copied()));
    Ok((draft.finish()?, table))
}
