//! The files of an agent, and their names: its own workspace, and other folders opened by the
//! config.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub(crate) mod outside;
mod view;

pub use view::{FileView, Found, RESULTS};

use super::workspace::Workspace;
use crate::config::{Config, SharedPath, Siblings};
use crate::domain::AgentId;

/// The longest path a model may write, in bytes.
const MAX_PATH_BYTES: usize = 1024;
/// The most folders inside each other.
const MAX_STEPS: usize = 32;
/// The first step of paths into shared folders.
const SHARED: &str = "shared";

/// All workspaces of an agent. Made with the agent, so no id from a model is ever looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    own: Arc<Workspace>,
    others: Vec<Opened>,
}

/// A folder besides the agent's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The beginning of paths into the workspace: `@ada` or `shared/handbook`.
    pub prefix: String,
    workspace: Arc<Workspace>,
    pub may_write: bool,
}

/// The purpose of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Read,
    Write,
}

/// Where a path leads, before the sight of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Led {
    workspace: Arc<Workspace>,
    path: PathBuf,
    prefix: String,
}

/// Why a path leads nowhere. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error(
        "`{0}` leads out of the workspace. Paths begin in your workspace and have no `..`, such as `notes/today.md`."
    )]
    Outside(String),
    #[error(
        "This path cannot be used: it is too long, too deep, or has characters in it that cannot be seen."
    )]
    Unusable,
    #[error("`{0}` is not open to you. {1}")]
    NotOpen(String, String),
    #[error(
        "`{0}` is open to you for reading only, by the access list of the config. Nothing was changed."
    )]
    ReadOnly(String),
    #[error("`{0}` is a result of this turn and cannot be changed. Write to another name.")]
    Result(String),
}

impl Files {
    /// The boundary first, then the access list.
    fn find(&self, written: &str, want: Want) -> Result<Led, PathError> {
        let steps = steps(written)?;
        // `./shared` is a folder of the agent's own, with a name like a prefix.
        let is_own = written.starts_with("./") || steps.is_empty();
        let prefix = if is_own { None } else { prefix(&steps) };
        let Some(prefix) = prefix else {
            return Ok(Led {
                workspace: self.own.clone(),
                path: joined(&steps),
                prefix: String::new(),
            });
        };
        let opened = self.others.iter().find(|opened| opened.prefix == prefix);
        let opened =
            opened.ok_or_else(|| PathError::NotOpen(prefix.clone(), self.open_besides()))?;
        if want == Want::Write && !opened.may_write {
            return Err(PathError::ReadOnly(prefix));
        }
        let below = &steps[prefix.split('/').count()..];
        Ok(Led {
            workspace: opened.workspace.clone(),
            path: joined(below),
            prefix,
        })
    }

    pub fn own(&self) -> &Arc<Workspace> {
        &self.own
    }

    /// All but the agent's own.
    pub fn others(&self) -> &[Opened] {
        &self.others
    }

    fn open_besides(&self) -> String {
        let open: Vec<String> = self
            .others
            .iter()
            .map(|opened| format!("`{}`", opened.prefix))
            .collect();
        if open.is_empty() {
            "Only your own workspace is.".to_owned()
        } else {
            format!("Open besides your own: {}.", open.join(", "))
        }
    }
}

/// The workspaces of all agents, each opened once for all its users.
pub(super) struct Workspaces {
    of_agents: HashMap<AgentId, Arc<Workspace>>,
    shared: Vec<(SharedPath, Arc<Workspace>)>,
}

impl Workspaces {
    pub(super) fn new(config: &Config, home: &Path) -> Self {
        let of_agents = config.agents.iter().map(|spec| {
            let root = home.join("agents").join(spec.id.as_str()).join("workspace");
            (
                spec.id.clone(),
                Arc::new(Workspace::new(root, spec.tools.workspace_mb)),
            )
        });
        let shared = config.tools.shared.iter().map(|shared| {
            let workspace = match &shared.path {
                Some(path) => Workspace::outside(path.value.clone(), shared.max_mb),
                None => Workspace::new(home.join(SHARED).join(&shared.name), shared.max_mb),
            };
            (shared.clone(), Arc::new(workspace))
        });
        Workspaces {
            of_agents: of_agents.collect(),
            shared: shared.collect(),
        }
    }

    pub(super) fn of(&self, id: &AgentId, access: &Siblings) -> Files {
        let own = self
            .of_agents
            .get(id)
            .expect("every agent of the config has a workspace")
            .clone();
        let writes = |id: &AgentId| access.write.contains(id);
        let mut others: Vec<Opened> = Vec::new();
        for sibling in access
            .write
            .iter()
            .chain(access.read.iter().filter(|id| !writes(id)))
        {
            let Some(workspace) = self.of_agents.get(sibling) else {
                continue;
            };
            let opened = Opened {
                prefix: format!("@{sibling}"),
                workspace: workspace.clone(),
                may_write: writes(sibling),
            };
            if !others.contains(&opened) {
                others.push(opened);
            }
        }
        for (shared, workspace) in &self.shared {
            let may_write = shared.agents.write.contains(id);
            if may_write || shared.agents.read.contains(id) {
                others.push(Opened {
                    prefix: format!("{SHARED}/{}", shared.name),
                    workspace: workspace.clone(),
                    may_write,
                });
            }
        }
        Files { own, others }
    }
}

/// Characters that make a name look like another name, or like several lines.
pub fn is_odd(c: char) -> bool {
    let turns_text =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns_text || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The steps of a path. A path out of its folder is refused.
fn steps(written: &str) -> Result<Vec<&str>, PathError> {
    if written.len() > MAX_PATH_BYTES || written.contains(is_odd) {
        return Err(PathError::Unusable);
    }
    let mut steps = Vec::new();
    for component in Path::new(written).components() {
        match component {
            Component::Normal(step) => steps.extend(step.to_str()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(PathError::Outside(written.to_owned()));
            }
        }
    }
    if steps.len() > MAX_STEPS {
        Err(PathError::Unusable)
    } else {
        Ok(steps)
    }
}

/// The prefix of a path into another folder.
fn prefix(steps: &[&str]) -> Option<String> {
    match steps {
        [SHARED, name, ..] => Some(format!("{SHARED}/{name}")),
        [SHARED] => Some(SHARED.to_owned()),
        [first, ..] if first.starts_with('@') => Some((*first).to_owned()),
        _ => None,
    }
}

fn joined(steps: &[&str]) -> PathBuf {
    if steps.is_empty() {
        PathBuf::from(".")
    } else {
        steps.iter().collect()
    }
}

#[cfg(test)]
mod tests;
