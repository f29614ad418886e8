//! The life of an agent: added, renamed, removed, brought back, destroyed, moved to another home.
//!
//! An agent is three things: tables in `config.toml`, a folder, and rows that hang on its uid.
//! Every change of an agent is made here, so that the three stay together and the same checks hold
//! everywhere. While a gateway runs on the home, the gateway makes the changes and takes them in,
//! by way of `operations`.
//!
//! Each function below first settles an unfinished change of a killed process, then calls its verb.
//! From the bottom up: `folders`, `archive`, `rows` and `editing` are the steps, `note` is the
//! journal of a change under way, the verbs put steps together, and `recovery` takes a noted change
//! to its end.

mod adding;
mod archive;
mod binding;
mod editing;
mod error;
mod export_import;
mod fitting;
mod folders;
pub(crate) mod health;
mod inventory;
mod lines;
mod moving_in;
mod note;
mod package;
mod purging;
mod recovery;
mod removing;
mod renaming;
mod restoring;
mod rows;
mod rules;
mod setting;
mod site;
mod steering;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::config::store::{self, EditLock};
use crate::domain::{AgentId, AgentUid, SessionKey};
use crate::home::registry;
use editing::Editing;

pub(crate) use adding::{Added, Adding};
pub(crate) use archive::{Archive, archives};
pub(crate) use binding::Bound;
pub(crate) use error::TenantError;
pub(crate) use export_import::{Exported, Imported, Wish};
pub(crate) use folders::{STAGING, leads_beside};
pub(crate) use inventory::{Origin, Rows, discovered, last_error, rows_of, stored_only};
pub(crate) use moving_in::{MovedIn, Newcomer, WriteRows};
pub(crate) use package::fuzz as fuzz_package;
pub(crate) use purging::{Purged, Stake};
pub(crate) use removing::Removed;
pub(crate) use renaming::{OldFolder, stop_leading, stop_leading_all};
pub(crate) use restoring::Restored;
pub(crate) use rows::KEEPS_OLD_ID;
pub(crate) use rules::{Additions, Section, Trial};
pub(crate) use setting::{Edited, Setting};
pub(crate) use site::Site;
pub(crate) use steering::{Steered, Steering, steer};

/// Whether a new agent can have this id.
pub(crate) async fn may_add(site: &Site, id: &str) -> Result<AgentId, TenantError> {
    begin(site).await?.unused(id)
}

/// Makes an agent with files from a template. Existing files are kept.
pub(crate) async fn add(site: &Site, adding: Adding) -> Result<Added, TenantError> {
    adding::add(site, begin(site).await?, adding).await
}

/// Takes a handmade folder into the config, or an agent whose table was deleted by hand.
pub(crate) async fn adopt(site: &Site, word: &str) -> Result<AgentId, TenantError> {
    adding::adopt(site, begin(site).await?, word).await
}

/// Makes an agent with the tables, identity files and skills of another, without its memories and
/// conversations.
pub(crate) async fn clone(site: &Site, from: &str, to: &str) -> Result<AgentId, TenantError> {
    adding::clone(site, begin(site).await?, from, to).await
}

/// Changes an agent's id. History, memory, pins and bindings stay.
pub(crate) async fn rename(
    site: &Site,
    ids: (&str, &str),
    old_folder: OldFolder,
) -> Result<(AgentId, AgentId), TenantError> {
    renaming::rename(site, begin(site).await?, ids, old_folder).await
}

/// Makes an agent the default, and tells whether the config changed.
pub(crate) async fn set_default(site: &Site, word: &str) -> Result<(AgentId, bool), TenantError> {
    renaming::set_default(begin(site).await?, word).await
}

/// Changes keys in an agent's table.
pub(crate) async fn set(
    site: &Site,
    word: &str,
    settings: Vec<Setting>,
) -> Result<Edited, TenantError> {
    setting::set(begin(site).await?, word, settings, setting::Then::Commit).await
}

/// The config as it would be after [`set`]. It may have problems, and nothing is written.
pub(crate) async fn preview(
    site: &Site,
    word: &str,
    settings: Vec<Setting>,
) -> Result<Edited, TenantError> {
    setting::set(begin(site).await?, word, settings, setting::Then::OnlyShow).await
}

/// Writes a binding of exactly this place into the config, or gives the existing binding to another
/// agent. None if the binding has the agent already.
pub(crate) async fn bind(
    site: &Site,
    place: &SessionKey,
    agent: &AgentId,
) -> Result<Option<Bound>, TenantError> {
    binding::bind(begin(site).await?, place, agent).await
}

/// Takes the binding of exactly this place out of the config. None if there is none.
pub(crate) async fn unbind(site: &Site, place: &SessionKey) -> Result<Option<Bound>, TenantError> {
    binding::unbind(begin(site).await?, place).await
}

/// Puts an agent aside: tables and files go into the archive, rows are hidden. Nothing is lost.
pub(crate) async fn remove(site: &Site, word: &str) -> Result<Removed, TenantError> {
    removing::remove(site, begin(site).await?, word).await
}

/// Brings an agent back, under its own id or another.
pub(crate) async fn restore(
    site: &Site,
    which: &str,
    as_id: Option<&str>,
) -> Result<Restored, TenantError> {
    restoring::restore(site, begin(site).await?, which, as_id).await
}

/// Finds the only agent with this id or archive name, in use or removed, and counts its files and
/// rows.
pub(crate) async fn at_stake(site: &Site, which: &str) -> Result<Stake, TenantError> {
    purging::at_stake(site, begin(site).await, which).await
}

/// Destroys a removed agent: its files and rows.
pub(crate) async fn purge(site: &Site, which: &str) -> Result<Purged, TenantError> {
    settle(site).await?;
    purging::purge(site, which).await
}

/// Writes an agent's files, memories and conversations into a single file. The agent stays.
pub(crate) async fn export(site: &Site, word: &str, path: &Path) -> Result<Exported, TenantError> {
    export_import::export(site, begin(site).await?, word, path).await
}

/// Takes in a package, or only looks at the package.
pub(crate) async fn import(
    site: &Site,
    path: &Path,
    wish: Wish<'_>,
) -> Result<Imported, TenantError> {
    export_import::import(site, begin(site).await?, path, wish).await
}

/// Adds an agent with its files, table and rows, or only looks whether that can be done.
pub(crate) async fn move_in(site: &Site, newcomer: Newcomer) -> Result<MovedIn, TenantError> {
    let editing = begin(site).await?;
    editing.free(newcomer.id.as_str())?;
    moving_in::move_in(site, editing, newcomer).await
}

/// The present agents by their uids, and the config.
pub(crate) async fn known(
    site: &Site,
) -> Result<(HashMap<AgentUid, AgentId>, Config), TenantError> {
    let editing = begin(site).await?;
    let (registry, _) = registry(&editing.config, &site.home, &site.db).await?;
    let agents = registry.all().iter();
    let agents = agents.map(|agent| (agent.uid, agent.id.clone()));
    Ok((agents.collect(), editing.config.clone()))
}

/// Tries each section and binding, and writes none.
pub(crate) async fn try_out(site: &Site, additions: Additions) -> Result<Trial, TenantError> {
    rules::try_out(begin(site).await?, additions).await
}

/// Writes all fitting sections and bindings into the config, and reports on each.
pub(crate) async fn add_rules(site: &Site, additions: Additions) -> Result<Trial, TenantError> {
    rules::add(begin(site).await?, additions).await
}

/// Finishes or undoes a change interrupted by a kill. Every verb above does so by itself; the
/// gateway does so before reading the config.
pub(crate) async fn settle(site: &Site) -> Result<(), TenantError> {
    locked_and_settled(site).await.map(drop)
}

/// Whether a killed process left a change to settle.
pub(crate) fn is_unsettled(home: &Path) -> bool {
    note::exists(home)
}

/// The config, locked for a verb.
async fn begin(site: &Site) -> Result<Arc<Editing>, TenantError> {
    let lock = locked_and_settled(site).await?;
    Editing::open(&site.home, lock).await
}

async fn locked_and_settled(site: &Site) -> Result<EditLock, TenantError> {
    let home = site.home.clone();
    let lock = site::blocking(move || Ok(store::lock(&home)?)).await?;
    recovery::settle(site, &lock).await?;
    Ok(lock)
}
