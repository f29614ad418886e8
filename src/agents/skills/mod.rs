//! Skills: folders with a `SKILL.md`, in the shared pool `skills/` or in an agent's own
//! `agents/<id>/skills/`.
//!
//! An agent's skills are decided here and nowhere else: the prompt lists them, the `skill` tool
//! reads them. They are looked up for every turn, so a new skill counts from the next message on.

mod check;
pub(crate) mod format;
mod reading;
mod shelf;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Agent;

pub(crate) use check::check;
pub(crate) use format::Flaw;
pub(crate) use reading::{Content, read};
pub(crate) use shelf::{Entry, read as read_shelf};

/// The skills of an agent, and the skills withheld from the agent, with reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// The agent's skills, by name.
    pub readable: Vec<Skill>,
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub origin: SkillOrigin,
    pub because: Because,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillOrigin {
    /// Shared by all agents.
    Pool,
    /// A skill of this agent only.
    Local,
}

/// Why an agent has a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// There is no `skills` list, so the whole pool is its.
    WholePool,
    /// The skill is in the agent's folder.
    Own,
    /// As `Own`, in place of a skill of the same name in the pool.
    OwnInsteadOfPool,
    /// The skill is in the agent's `skills` list.
    Listed,
}

/// A skill withheld from an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    pub origin: SkillOrigin,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    NotListed,
    /// The skill is in the list `deny` of the agent's `skills`.
    Denied,
    /// The agent has an own skill of the same name.
    Overshadowed,
    Broken {
        path: PathBuf,
        flaws: Vec<Flaw>,
    },
}

impl Skills {
    /// Blocks on the disk.
    pub fn load(agent: &Agent) -> Self {
        let mut skills = Skills::default();
        let own = shelf::read(&shelf_of(agent, SkillOrigin::Local));
        let pool = shelf::read(&shelf_of(agent, SkillOrigin::Pool));
        let is_own = |entry: &Entry| own.iter().any(|other| other.name == entry.name);
        for entry in &pool {
            skills.sort_in(agent, entry, SkillOrigin::Pool, is_own(entry));
        }
        for entry in &own {
            let in_pool = pool.iter().any(|other| other.name == entry.name);
            skills.sort_in(agent, entry, SkillOrigin::Local, in_pool);
        }
        skills.readable.sort_by(|a, b| a.name.cmp(&b.name));
        skills
    }

    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.readable.iter().find(|skill| skill.name == name)
    }

    pub fn names(&self) -> Vec<&str> {
        self.readable
            .iter()
            .map(|skill| skill.name.as_str())
            .collect()
    }

    /// `twice`: the other shelf has a skill of the same name.
    fn sort_in(&mut self, agent: &Agent, entry: &Entry, origin: SkillOrigin, twice: bool) {
        let listed = agent.skills.as_ref().map(|list| list.contains(&entry.name));
        let reason = match (&*entry.state, listed, origin) {
            _ if agent.denied_skills.contains(&entry.name) => Reason::Denied,
            (_, Some(false), _) => Reason::NotListed,
            (_, _, SkillOrigin::Pool) if twice => Reason::Overshadowed,
            (Err(flaws), _, _) => Reason::Broken {
                path: entry.path.clone(),
                flaws: flaws.clone(),
            },
            (Ok(manifest), _, _) => {
                let because = match (origin, listed) {
                    (SkillOrigin::Local, _) if twice => Because::OwnInsteadOfPool,
                    (_, Some(_)) => Because::Listed,
                    (SkillOrigin::Local, None) => Because::Own,
                    (SkillOrigin::Pool, None) => Because::WholePool,
                };
                let (name, description) = (manifest.name.clone(), manifest.description.clone());
                return self.readable.push(Skill {
                    name,
                    description,
                    origin,
                    because,
                });
            }
        };
        self.left_out.push(LeftOut {
            name: entry.name.clone(),
            origin,
            reason,
        });
    }
}

/// The folders of an agent's skills.
fn shelf_of(agent: &Agent, origin: SkillOrigin) -> PathBuf {
    match origin {
        SkillOrigin::Pool => pool(&agent.home),
        SkillOrigin::Local => agent.folder.join("skills"),
    }
}

/// The shared pool of a home folder.
pub(crate) fn pool(home: &Path) -> PathBuf {
    home.join("skills")
}

impl fmt::Display for SkillOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SkillOrigin::Pool => "pool",
            SkillOrigin::Local => "local",
        })
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Because::WholePool => "no `skills` list",
            Because::Own => "in its own folder",
            Because::OwnInsteadOfPool => "its own, used instead of the pool's",
            Because::Listed => "its `skills` names it",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotListed => f.write_str("its `skills` does not name it"),
            Reason::Denied => f.write_str("its `skills` denies it"),
            Reason::Overshadowed => f.write_str("its own of this name is used instead"),
            Reason::Broken { flaws, .. } => {
                let first = flaws.first();
                write!(
                    f,
                    "broken, line {}: {}",
                    first.map_or(1, |flaw| flaw.line),
                    first.map_or("", |flaw| flaw.message.as_str())
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
