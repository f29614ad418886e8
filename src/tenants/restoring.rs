//! Brings a removed agent back from the archive.

use std::sync::Arc;

use rusqlite::Transaction;

use super::archive::{self, refuse_in_use};
use super::editing::Editing;
use super::error::TenantError;
use super::inventory::Rows;
use super::note::{self, Change};
use super::site::{Site, blocking, folder_of};
use super::{folders, rows};
use crate::config::edit::{self, NewAgent};
use crate::domain::AgentId;
use crate::records::audit::Action;

/// An agent after its return.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Restored {
    pub id: AgentId,
    pub rows: Rows,
    /// Bindings that did not come back, because other agents have their places now.
    pub lost_bindings: Vec<String>,
    /// Lists that named the agent, and no longer do.
    pub lost_mentions: Vec<String>,
}

/// Brings an agent back, under its own id or another.
pub(super) async fn restore(
    site: &Site,
    editing: Arc<Editing>,
    which: &str,
    as_id: Option<&str>,
) -> Result<Restored, TenantError> {
    let archive = archive::find(&site.home, which)?;
    refuse_in_use(site, &archive).await?;
    let id = editing.free_as(as_id, &archive.id)?;
    let (committing, back, new_id) = (editing.clone(), archive.clone(), id.clone());
    let (fitting, _note) = blocking(move || {
        let mut tables = edit::rename_agent(&back.tables()?, &back.id, &new_id)?;
        if tables.trim().is_empty() {
            tables = edit::add_agent("", &new_id, &NewAgent::default())?;
        }
        let folder = folder_of(&committing.home, &new_id);
        // The files come first, because the check of the tables looks for their skills.
        let change = Change::Restore {
            id: new_id.clone(),
            uid: back.uid.to_string(),
            archive: back.name.clone(),
        };
        let note = note::write(&committing.home, &change)?;
        folders::relocate(&back.files(), &folder)?;
        let fitting = fitting(&committing, &tables, &back.mentions, &new_id);
        let done = fitting.and_then(|fitting| committing.commit(&fitting.text).map(|()| fitting));
        done.map(|fitting| (fitting, note))
            .inspect_err(|_| folders::move_back(&folder, &back.files()))
    })
    .await?;
    let (uid, row_id, by) = (archive.uid, id.clone(), site.by.clone());
    let take_up = move |tx: &Transaction<'_>| {
        rows::note(tx, &by, Action::AgentRestore, &row_id)?;
        rows::take_up(tx, uid, &row_id)
    };
    let rows = match site.db.write(take_up).await {
        Ok(rows) => rows,
        Err(error) => {
            editing.take_back(&fitting.text);
            folders::move_back(&folder_of(&site.home, &id), &archive.files());
            return Err(error.into());
        }
    };
    blocking(move || archive.destroy()).await?;
    let Fitting {
        lost_bindings,
        lost_mentions,
        ..
    } = fitting;
    Ok(Restored {
        id,
        rows,
        lost_bindings,
        lost_mentions,
    })
}

/// A config with the agent's tables in place.
struct Fitting {
    text: String,
    lost_bindings: Vec<String>,
    lost_mentions: Vec<String>,
}

/// Adds the tables, bindings and mentions, as far as they still fit.
fn fitting(
    editing: &Editing,
    tables: &str,
    mentions: &[String],
    id: &AgentId,
) -> Result<Fitting, TenantError> {
    let (mut text, lost_bindings) = with_tables(editing, tables)?;
    let mut lost_mentions = Vec::new();
    for list in mentions {
        match edit::add_mention(&text, list, id)?.filter(|more| editing.check(more).is_ok()) {
            Some(more) => text = more,
            None => lost_mentions.push(list.clone()),
        }
    }
    Ok(Fitting {
        text,
        lost_bindings,
        lost_mentions,
    })
}

fn with_tables(editing: &Editing, tables: &str) -> Result<(String, Vec<String>), TenantError> {
    let put_back = |tables: &str| -> Result<String, TenantError> {
        let text = edit::put_back(&editing.text, tables)?;
        editing.check(&text)?;
        Ok(text)
    };
    if let Ok(whole) = put_back(tables) {
        return Ok((whole, Vec::new()));
    }
    let (agent_only, bindings) = edit::without_bindings(tables)?;
    Ok((put_back(&agent_only)?, bindings))
}
