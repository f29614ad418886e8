//! The config while it is being changed: locked, checked before, checked after.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Site, TenantError, blocking, checked, folder_of, unfinished};
use crate::config::store::{self, EditLock};
use crate::config::{self, AgentSpec, Config, Secrets, Source};
use crate::domain::{AgentId, nearest};

/// Nobody else changes agents by program until this is dropped. A text that was edited by hand meanwhile is not overwritten.
pub(super) struct Editing {
    pub(super) home: PathBuf,
    lock: EditLock,
    /// The file as it was read.
    pub(super) text: String,
    /// What it means.
    pub(super) config: Config,
}

impl Editing {
    /// A config with problems is not edited.
    pub(super) async fn begin(site: &Site) -> Result<Arc<Self>, TenantError> {
        let home = site.home.clone();
        let lock = blocking(move || Ok(store::lock(&home)?)).await?;
        unfinished::settle(site, &lock).await?;
        let home = site.home.clone();
        blocking(move || {
            let text = store::read(&home)?;
            let draft = config::load(&home, Secrets::WherePresent)?;
            let (config, _) = checked(draft, &home).map_err(|report| TenantError::Broken(Box::new(report)))?;
            Ok(Arc::new(Editing { home, lock, text, config }))
        })
        .await
    }

    /// Whether a text would do as the config. Blocks on the disk, where the skills are.
    pub(super) fn check(&self, text: &str) -> Result<(), TenantError> {
        let source = Source { path: self.home.join("config.toml"), text: text.to_owned() };
        checked(config::draft(source, &self.home, Secrets::WherePresent), &self.home)?;
        Ok(())
    }

    /// Makes a text the config, if it would do. Blocks on the disk.
    pub(super) fn commit(&self, text: &str) -> Result<(), TenantError> {
        self.check(text)?;
        Ok(store::replace(&self.home, &self.lock, &self.text, text)?)
    }

    /// Undoes a commit whose other half failed. That error is the one to tell; this one goes to the log.
    pub(super) fn take_back(&self, text: &str) {
        if let Err(error) = store::replace(&self.home, &self.lock, text, &self.text) {
            tracing::error!("config.toml could not be put back as it was: {error}");
        }
    }

    pub(super) fn spec(&self, id: &AgentId) -> Option<&AgentSpec> {
        self.config.agents.iter().find(|spec| spec.id == *id)
    }

    /// An agent of the config, by its id.
    pub(super) fn find(&self, word: &str) -> Result<&AgentSpec, TenantError> {
        let found = AgentId::parse(word).ok().and_then(|id| self.spec(&id));
        found.ok_or_else(|| {
            let ids: Vec<&str> = self.config.agents.iter().map(|spec| spec.id.as_str()).collect();
            TenantError::unknown(match nearest(word, ids.iter().copied()) {
                Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
                None => format!("no agent is called {word}. There are: {}", ids.join(", ")),
            })
        })
    }

    /// An id that a new agent can have, and whose folder is not there.
    pub(super) fn free(&self, word: &str) -> Result<AgentId, TenantError> {
        let id = self.unused(word)?;
        if folder_of(&self.home, &id).exists() {
            return Err(TenantError::conflict(format!(
                "the folder agents/{id} is there already. `parlor agent adopt {id}` takes it in, or choose another id"
            )));
        }
        Ok(id)
    }

    /// The same for an agent that comes with an id, and can be given another.
    pub(super) fn free_as(&self, as_id: Option<&str>, own: &AgentId) -> Result<AgentId, TenantError> {
        match as_id {
            None if self.spec(own).is_some() => {
                Err(TenantError::conflict(format!("there is an agent called {own} already. `--as` gives this one another id")))
            }
            _ => self.free(as_id.unwrap_or(own.as_str())),
        }
    }

    /// An id that a new agent can have.
    pub(super) fn unused(&self, word: &str) -> Result<AgentId, TenantError> {
        let id = AgentId::parse(word).map_err(|error| TenantError::unknown(error.to_string()))?;
        if id == AgentId::main() {
            return Err(TenantError::conflict("`main` is the agent that every house has, so no other can be called that"));
        }
        if self.spec(&id).is_some() {
            return Err(TenantError::conflict(format!("there is an agent called {id} already. Choose another id")));
        }
        Ok(id)
    }
}
