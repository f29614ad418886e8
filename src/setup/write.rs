//! Writes the changes of a confirmed step: files, secrets, config.toml, and a line of the audit for
//! each. A change made before is not written again.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::plan::{Change, entry};
use super::questions::{Answer, Stop};
use crate::agents::{Team, write_home};
use crate::clock::now_ms;
use crate::config::{self, Secret, Secrets, Source, store};
use crate::home::{Home, check};
use crate::operations;
use crate::records::audit::{self, Action};
use crate::records::declined;
use crate::storage::Db;
use crate::tenants::{self, Adding, Site};

/// A secret for a file below the home folder.
pub(super) struct NewSecret {
    /// `secrets/telegram`.
    pub(super) path: String,
    pub(super) secret: Secret,
}

pub(super) async fn write(home: &Home, changes: &[Change], secrets: &[NewSecret]) -> Answer<()> {
    let is_new = changes
        .iter()
        .any(|change| matches!(change, Change::Home { .. }));
    if is_new {
        write_home(home.path(), Team::Whole).map_err(Stop::failed)?;
        home.keep_private().map_err(Stop::failed)?;
    }
    for secret in secrets {
        keep(home.path(), secret)?;
    }
    let (folder, edits) = (home.path().to_owned(), changes.to_vec());
    let edited = tokio::task::spawn_blocking(move || edit(&folder, &edits)).await;
    let edited = edited.map_err(Stop::failed)??;
    for change in changes {
        settle(home, change).await?;
    }
    match edited || !changes.iter().all(is_edit) {
        true => note(home, changes).await,
        false => Ok(()),
    }
}

/// Edits of the config alone. Agents have files too.
fn is_edit(change: &Change) -> bool {
    !matches!(change, Change::Agent { .. } | Change::Removal { .. })
}

fn edit(home: &Path, changes: &[Change]) -> Answer<bool> {
    let lock = store::lock(home).map_err(Stop::failed)?;
    let text = store::read(home).map_err(Stop::failed)?;
    let mut edits = changes.iter().filter(|change| is_edit(change));
    let new = edits.try_fold(text.clone(), |text, change| {
        change.edit(&text).map_err(Stop::failed)
    })?;
    if new == text {
        return Ok(false);
    }
    let source = Source {
        path: home.join("config.toml"),
        text: new.clone(),
    };
    let draft = config::draft(source, home, Secrets::WherePresent);
    check(draft, home).map_err(|report| Stop::Failed(report.render_problems(false)))?;
    store::replace(home, &lock, &text, &new).map_err(Stop::failed)?;
    Ok(true)
}

/// Has agents added and removed where all verbs do so.
async fn settle(home: &Home, change: &Change) -> Answer<()> {
    match change {
        Change::Agent {
            id,
            name,
            personality,
            skills,
        } => {
            let adding = Adding {
                id: id.to_string(),
                entry: entry(name, skills),
                personality: personality.clone(),
                bindings: Vec::new(),
            };
            tenants::add(&site(home).await?, adding)
                .await
                .map_err(told)?;
        }
        Change::Removal { agent } => {
            tenants::remove(&site(home).await?, agent.as_str())
                .await
                .map_err(told)?;
        }
        _ => {}
    }
    Ok(())
}

fn told(error: tenants::TenantError) -> Stop {
    match &error {
        tenants::TenantError::Problems(report) | tenants::TenantError::Broken(report) => {
            Stop::Failed(report.render_problems(false))
        }
        other => Stop::failed(other),
    }
}

/// Where agents are added, removed and brought to.
pub(super) async fn site(home: &Home) -> Answer<Site> {
    Ok(Site {
        home: home.path().to_owned(),
        db: Db::open(&home.database()).await.map_err(Stop::failed)?,
        by: operations::actor(nix::unistd::geteuid().as_raw()),
    })
}

async fn note(home: &Home, changes: &[Change]) -> Answer<()> {
    let Site { db, by, .. } = site(home).await?;
    let changes = changes.to_vec();
    let noted = db.write(move |tx| {
        let mut entries = changes.iter().filter_map(entry_of);
        entries.try_for_each(|entry| audit::note(tx, &by, &entry, now_ms()))
    });
    noted.await.map_err(Stop::failed)
}

fn entry_of(change: &Change) -> Option<audit::Change<'_>> {
    let setup = || audit::Change::new(Action::Setup);
    Some(match change {
        Change::Model { model, .. } => setup().about("model").to(model),
        Change::Platform { platform, .. } => setup().about(platform.as_str()),
        Change::Owner { person } => audit::Change::new(Action::Role).about(person).to("owner"),
        Change::Binding { place, agent } => audit::Change::new(Action::Bind)
            .at(place)
            .of(agent)
            .to(agent),
        Change::Unbinding { place } => audit::Change::new(Action::Unbind).at(place),
        Change::Agent { id, .. } => audit::Change::new(Action::AgentAdd).of(id),
        Change::Removal { agent } => audit::Change::new(Action::AgentRemove).of(agent),
        _ => return None,
    })
}

/// Remembers declined offers.
pub(super) async fn decline(home: &Home, offers: Vec<String>) -> Answer<()> {
    let db = site(home).await?.db;
    let noted = db.write(move |tx| {
        let mut offers = offers.iter();
        offers.try_for_each(|what| declined::decline(tx, what, now_ms()))
    });
    noted.await.map_err(Stop::failed)
}

/// Writes a secret's file, unless the file has the secret already.
fn keep(home: &Path, new: &NewSecret) -> Answer<()> {
    let path = home.join(&new.path);
    if fs::read_to_string(&path).is_ok_and(|old| old.trim() == new.secret.expose()) {
        return Ok(());
    }
    let text = format!("{}\n", new.secret.expose());
    private_file(&path, text.as_bytes())
        .map_err(|error| Stop::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Writes a file for its owner alone, whole or not at all.
pub(super) fn private_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
    }
    let beside = path.with_extension("new");
    // An existing file would keep its mode.
    drop(fs::remove_file(&beside));
    let mut file = OpenOptions::new();
    let mut file = file
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
