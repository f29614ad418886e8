//! What people say.

use std::future::{IntoFuture, Ready, ready};

use serde_json::Value;

use super::content::store_file;
use super::messages::{Draft, Reference};
use super::places::Room;
use super::users::User;
use super::wire::UploadedFile;

/// What an action left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) channel_id: u64,
    pub(crate) message_id: u64,
}

/// A message about to be said; awaiting it stores and dispatches it.
#[must_use = "nothing is said until this is awaited"]
pub(crate) struct Speech {
    room: Room,
    draft: Draft,
    files: Vec<UploadedFile>,
}

impl Speech {
    pub(super) fn new(room: Room, user: User, text: &str) -> Self {
        Self {
            room,
            draft: Draft::new(user, text),
            files: Vec::new(),
        }
    }

    /// With the ping that Discord's client adds.
    pub(crate) fn replying_to(mut self, message_id: u64) -> Self {
        self.draft.reply_to = Some(Reference {
            channel_id: self.room.id,
            message_id,
        });
        self
    }

    /// The file can be fetched from the address in the message.
    pub(crate) fn attaching(mut self, filename: &str, content_type: &str, content: &[u8]) -> Self {
        let (index, filename) = (self.files.len().to_string(), filename.to_owned());
        self.files.push(UploadedFile {
            index,
            filename,
            content_type: Some(content_type.into()),
            content: content.to_vec(),
        });
        self
    }

    /// Said through a webhook, as bridges and integrations do.
    pub(crate) fn through_webhook(self, webhook_id: u64) -> Self {
        self.with("webhook_id", webhook_id.to_string())
    }

    /// A system message, such as 7 for somebody who joined or 6 for a pin.
    pub(crate) fn of_type(self, message_type: u64) -> Self {
        self.with("type", message_type)
    }

    /// Sets any field of the message.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.draft.fields[field] = value.into();
        self
    }

    fn say(mut self) -> Said {
        let (discord, channel_id) = (self.room.discord, self.room.id);
        let mut world = discord.world();
        if self.draft.fields.get("webhook_id").is_none() {
            world.users.insert(self.draft.author.id, self.draft.author);
        }
        if !self.files.is_empty() {
            let stored = self
                .files
                .iter()
                .map(|file| store_file(&mut world, channel_id, file, &[]));
            self.draft.fields["attachments"] = stored.collect();
        }
        world.unarchive(channel_id);
        let message_id = world.post(channel_id, self.draft);
        Said {
            channel_id,
            message_id,
        }
    }
}

impl IntoFuture for Speech {
    type Output = Said;
    type IntoFuture = Ready<Said>;

    fn into_future(self) -> Ready<Said> {
        ready(self.say())
    }
}
