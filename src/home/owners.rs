//! Makes a person an owner in config.toml.

use std::path::Path;

use super::checked_config::{ConfigError, check};
use crate::config::edit::{self, EditError};
use crate::config::store::{self, StoreConfigError};
use crate::config::{self, Secrets, Source};
use crate::domain::PersonId;

/// The reason why a person was not made an owner.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnerError {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Edit(#[from] EditError),
    #[error("{0}")]
    Store(#[from] StoreConfigError),
}

/// Adds an owner to the config, if the config is right before and after. Blocks.
pub(crate) fn add_owner(home: &Path, owner: &PersonId) -> Result<(), OwnerError> {
    let lock = store::lock(home)?;
    let text = store::read(home)?;
    let new = edit::add_owner(&text, owner)?;
    let source = Source {
        path: home.join("config.toml"),
        text: new.clone(),
    };
    let draft = config::draft(source, home, Secrets::WherePresent);
    check(draft, home).map_err(ConfigError::from)?;
    Ok(store::replace(home, &lock, &text, &new)?)
}
