//! How far the house trusts a person.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The house's trust in a person, the least first. A role counts for all agents or for a single
/// agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Not let in by the house; may write in places open to all people.
    Guest,
    /// Let in with a code, or named in `[people]`.
    Member,
    /// Lets people in, and switches agents in locked places.
    Admin,
    /// Named in `[access] owners` or `[people]`, or sitting at this machine's terminal.
    Owner,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Guest, Role::Member, Role::Admin, Role::Owner];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Guest => "guest",
            Role::Member => "member",
            Role::Admin => "admin",
            Role::Owner => "owner",
        }
    }

    /// The role with its article: `a guest`, `an owner`.
    pub fn with_article(self) -> &'static str {
        match self {
            Role::Guest => "a guest",
            Role::Member => "a member",
            Role::Admin => "an admin",
            Role::Owner => "an owner",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Role::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(())
    }
}
