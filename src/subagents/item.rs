//! A message or a turn as shown in a list.

use crate::access::Role;
use crate::clock::now_ms;
use crate::domain::PersonId;
use crate::records::inbox::Accepted;

/// A message waiting or being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The inbox rows of the message.
    pub ids: Vec<i64>,
    pub by: String,
    pub person: PersonId,
    /// The role that the turn runs with.
    pub role: Role,
    pub asks: String,
    /// Unix milliseconds.
    pub since: i64,
}

impl Item {
    pub(crate) fn of(accepted: &Accepted) -> Self {
        Item {
            ids: accepted.all().map(|accepted| accepted.id).collect(),
            by: accepted.inbound.person_name.clone(),
            person: accepted.inbound.origin.person.clone(),
            role: accepted.role,
            asks: accepted
                .messages()
                .map(|message| message.inbound.in_short())
                .collect::<Vec<_>>()
                .join(" / "),
            since: now_ms(),
        }
    }
}
