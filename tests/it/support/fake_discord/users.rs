//! Who takes part.

use serde_json::{Value, json};

/// A person, a bot or a webhook's face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    pub(crate) is_bot: bool,
}

pub(crate) const ALICE: User = User::person(111, "Alice");
pub(crate) const BOB: User = User::person(222, "Bob");
pub(crate) const CAROL: User = User::person(333, "Carol");
pub(crate) const OTHER_BOT: User = User::bot(444, "Other");
/// The bot under test. Its application has another id, as with old bots, so that mixing them up
/// shows.
pub(crate) const PARLOR_BOT: User = User::bot(700_701, "Parlor");
pub(crate) const APPLICATION_ID: u64 = 700_700;

impl User {
    pub(crate) const fn person(id: u64, name: &'static str) -> Self {
        Self {
            id,
            name,
            is_bot: false,
        }
    }

    pub(crate) const fn bot(id: u64, name: &'static str) -> Self {
        Self {
            id,
            name,
            is_bot: true,
        }
    }

    /// How a text mentions the user: `<@111>`.
    pub(crate) fn mention(self) -> String {
        format!("<@{}>", self.id)
    }

    /// <https://discord.com/developers/docs/resources/user#user-object>
    pub(crate) fn json(self) -> Value {
        let discriminator = if self.is_bot { "4711" } else { "0" };
        let mut user = json!({
            "id": self.id.to_string(),
            "username": self.name.to_lowercase(),
            "global_name": if self.is_bot { Value::Null } else { self.name.into() },
            "discriminator": discriminator,
            "avatar": null,
            "public_flags": 0,
        });
        if self.is_bot {
            user["bot"] = true.into();
        }
        user
    }
}
