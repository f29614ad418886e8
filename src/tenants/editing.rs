//! The config during a change: locked, checked before, checked after.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::{DocumentMut, Item};

use super::error::TenantError;
use super::site::{blocking, folder_of};
use crate::config::edit::EditError;
use crate::config::store::{self, EditLock};
use crate::config::{self, AgentSpec, Config, Secrets, Source};
use crate::domain::{AgentId, nearest};
use crate::home;

/// A locked config. Other processes change no agents until this is dropped, and a text that a
/// person edited meanwhile is not overwritten.
pub(super) struct Editing {
    pub(super) home: PathBuf,
    lock: EditLock,
    /// The text of the file before the change.
    pub(super) text: String,
    pub(super) config: Config,
}

impl Editing {
    /// Reads the config under a lock; the caller has settled any interrupted change. A config with
    /// problems is not edited.
    pub(super) async fn open(home: &Path, lock: EditLock) -> Result<Arc<Self>, TenantError> {
        let home = home.to_owned();
        blocking(move || {
            let text = store::read(&home)?;
            let draft = config::load(&home, Secrets::WherePresent)?;
            let (config, _) = home::check(draft, &home)
                .map_err(|report| TenantError::Broken(Box::new(report)))?;
            Ok(Arc::new(Editing {
                home,
                lock,
                text,
                config,
            }))
        })
        .await
    }

    /// Checks a text as the config would be checked. Blocks on the disk, because skills are looked
    /// up there.
    pub(super) fn check(&self, text: &str) -> Result<(), TenantError> {
        let source = Source {
            path: self.home.join("config.toml"),
            text: text.to_owned(),
        };
        home::check(
            config::draft(source, &self.home, Secrets::WherePresent),
            &self.home,
        )?;
        Ok(())
    }

    /// Writes a text as the new config, if the text passes the check. Blocks on the disk.
    pub(super) fn commit(&self, text: &str) -> Result<(), TenantError> {
        self.check(text)?;
        Ok(store::replace(&self.home, &self.lock, &self.text, text)?)
    }

    /// Undoes a commit after a later step failed. The caller tells that step's error; an error here
    /// only goes to the log.
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
            let ids: Vec<&str> = self
                .config
                .agents
                .iter()
                .map(|spec| spec.id.as_str())
                .collect();
            TenantError::unknown(match nearest(word, ids.iter().copied()) {
                Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
                None => format!(
                    "no agent is called {word}. The agents are: {}",
                    ids.join(", ")
                ),
            })
        })
    }

    /// An id for a new agent, without table or folder so far.
    pub(super) fn free(&self, word: &str) -> Result<AgentId, TenantError> {
        let id = self.unused(word)?;
        if folder_of(&self.home, &id).exists() {
            return Err(TenantError::conflict(format!(
                "the folder agents/{id} is there already. `parlor agent adopt {id}` takes it in, or choose another id"
            )));
        }
        Ok(id)
    }

    /// An id for an agent with an id of its own, which a person may replace by `as_id`.
    pub(super) fn free_as(
        &self,
        as_id: Option<&str>,
        own: &AgentId,
    ) -> Result<AgentId, TenantError> {
        match as_id {
            None if self.spec(own).is_some() => Err(TenantError::conflict(format!(
                "there is an agent called {own} already. `--as` gives this one another id"
            ))),
            _ => self.free(as_id.unwrap_or(own.as_str())),
        }
    }

    /// An id for a new agent. A folder of that name may exist.
    pub(super) fn unused(&self, word: &str) -> Result<AgentId, TenantError> {
        let id = AgentId::parse(word).map_err(|error| TenantError::unknown(error.to_string()))?;
        if id == AgentId::main() {
            return Err(TenantError::conflict(
                "`main` is there already, because Parlor always has an agent with this id",
            ));
        }
        if self.spec(&id).is_some() {
            return Err(TenantError::conflict(format!(
                "there is an agent called {id} already. Choose another id"
            )));
        }
        Ok(id)
    }
}

/// Whether the config names the agent. The rest of the file may have problems.
pub(super) fn config_has(home: &Path, id: &AgentId) -> Result<bool, TenantError> {
    let text = store::read(home)?;
    let document: DocumentMut = text.parse().map_err(|_| EditError::NotToml)?;
    Ok(document
        .get("agents")
        .and_then(Item::as_table_like)
        .is_some_and(|agents| agents.contains_key(id.as_str())))
}
