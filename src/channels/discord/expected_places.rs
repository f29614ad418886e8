//! The places in bindings, for the checks at the start and for catching up.

use crate::domain::DiscordId;

/// The place of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedPlace {
    /// The binding's `match`, for the operator.
    pub binding: String,
    pub what: Expected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Server(DiscordId),
    Category(DiscordId),
    /// Or a thread.
    Channel(DiscordId),
}
