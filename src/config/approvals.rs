//! Reads `[approvals]`: who decides about calls of tools that ask, and for how long they can.

use std::time::Duration;

use super::reader::Section;
use crate::domain::Role;

/// The rules for approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approvals {
    pub by: Approver,
    /// An approval without a decision counts as refused after this time.
    pub expire_after: Duration,
}

/// The lowest role that decides. A person with more rights asks only people with as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approver {
    Member,
    #[default]
    Admin,
    Owner,
}

const EXPIRE_MINUTES: u32 = 60;
/// A week. What a call would do is less and less what its approver expects.
const MOST_MINUTES: u32 = 7 * 24 * 60;

impl Approver {
    pub(crate) fn role(self) -> Role {
        match self {
            Approver::Member => Role::Member,
            Approver::Admin => Role::Admin,
            Approver::Owner => Role::Owner,
        }
    }
}

impl Default for Approvals {
    fn default() -> Self {
        Approvals {
            by: Approver::default(),
            expire_after: minutes(EXPIRE_MINUTES),
        }
    }
}

pub(super) fn read(section: &Section<'_>) -> Approvals {
    let most = section
        .at_least_one("expires_minutes")
        .unwrap_or(EXPIRE_MINUTES);
    Approvals {
        by: section.choice("by").unwrap_or_default(),
        expire_after: minutes(most.min(MOST_MINUTES)),
    }
}

fn minutes(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 60)
}
