//! The bot's own account: its name and its privacy mode.

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;

#[derive(Serialize)]
pub(super) struct GetMe {}

impl Payload for GetMe {
    type Output = Me;
    const NAME: &'static str = "getMe";
}

/// Servers leave out fields unknown to them, or send null.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Me {
    pub(super) username: Option<String>,
    pub(super) can_read_all_group_messages: Option<bool>,
}
