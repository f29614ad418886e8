//! The rest of the config, as far as a bot follows it while connected.

use super::expected_places::ExpectedPlace;
use super::interactions::menu::Menu;

/// What the rest of the config asks of the bot. Followed while connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub menu: Menu,
    /// Places in bindings.
    pub expected: Vec<ExpectedPlace>,
    /// Every place of a server is answered in, not only bound ones.
    pub is_open: bool,
}
