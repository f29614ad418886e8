//! A new agent with files, table and rows: all three, or nothing.
//!
//! Files come first, because the check of the table looks for the agent's skills; the table next;
//! rows last and in a single transaction. `recovery` removes the agent of a killed process if the
//! rows are missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Transaction;
use uuid::Uuid;

use super::editing::Editing;
use super::error::TenantError;
use super::fitting::{self, Fitted};
use super::folders::{self, Sizes};
use super::note::{self, Change, Note};
use super::rows;
use super::site::{Site, blocking, folder_of};
use crate::agents::agent_rows;
use crate::clock::now_ms;
use crate::config::AgentTable;
use crate::domain::{AgentId, AgentUid};
use crate::records::audit::Action;

/// Writes the rows of a new agent.
pub(crate) type WriteRows =
    Box<dyn FnOnce(&Transaction<'_>, AgentUid) -> rusqlite::Result<()> + Send>;

/// An agent on its way into the home.
pub(crate) struct Newcomer {
    pub(crate) id: AgentId,
    /// The agent's table at its old home.
    pub(crate) table: AgentTable,
    /// A folder with the agent's files, on the disk of the home, to become the agent's folder.
    pub(crate) files: PathBuf,
    /// Absent: everything is checked and nothing is kept.
    pub(crate) rows: Option<WriteRows>,
}

/// A moved-in agent.
#[derive(Debug)]
pub(crate) struct MovedIn {
    pub(crate) uid: AgentUid,
    /// The agent's table in the config.
    pub(crate) table: String,
    /// Files with their size.
    pub(crate) files: Sizes,
    /// Keys of the agent's table without effect here.
    pub(crate) left_out: Vec<String>,
    /// Limits that did not fit, for which the agent got read-only tools instead.
    pub(crate) tightened: Vec<String>,
}

pub(super) async fn move_in(
    site: &Site,
    editing: Arc<Editing>,
    newcomer: Newcomer,
) -> Result<MovedIn, TenantError> {
    let (id, uid) = (newcomer.id.clone(), AgentUid(Uuid::now_v7()));
    let only_look = newcomer.rows.is_none();
    let moving = Moving {
        editing: editing.clone(),
        id: id.clone(),
        uid,
        only_look,
    };
    let (table, from) = (newcomer.table, newcomer.files);
    let (fitted, files, _note) = blocking(move || moving.move_in(table, &from)).await?;
    if let Some(write_rows) = newcomer.rows {
        let (row_id, by) = (id.clone(), site.by.clone());
        let written = site.db.write(move |tx| {
            rows::note(tx, &by, Action::AgentImport, &row_id)?;
            agent_rows::add_new(tx, uid, &row_id, now_ms())?;
            write_rows(tx, uid)
        });
        if let Err(error) = written.await {
            editing.take_back(&fitted.text);
            folders::discard(&folder_of(&site.home, &id));
            return Err(error.into());
        }
    }
    Ok(MovedIn {
        uid,
        table: fitted.table,
        files,
        left_out: fitted.left_out,
        tightened: fitted.tightened,
    })
}

struct Moving {
    editing: Arc<Editing>,
    id: AgentId,
    uid: AgentUid,
    only_look: bool,
}

impl Moving {
    /// Moves the files, and writes the table. For a look, the files are taken away again.
    fn move_in(
        &self,
        table: AgentTable,
        from: &Path,
    ) -> Result<(Fitted, Sizes, Note), TenantError> {
        let change = Change::Import {
            id: self.id.clone(),
            uid: self.uid.to_string(),
        };
        let note = note::write(&self.editing.home, &change)?;
        let files = folders::sizes(from)?;
        let folder = folder_of(&self.editing.home, &self.id);
        let fitted = folders::relocate(from, &folder).and_then(|()| {
            let fitted = fitting::fit(&self.editing, table, &self.id)?;
            if !self.only_look {
                self.editing.commit(&fitted.text)?;
            }
            Ok(fitted)
        });
        if self.only_look || fitted.is_err() {
            folders::discard(&folder);
        }
        Ok((fitted?, files, note))
    }
}
