//! How a message is stored, and how it looks in answers and in events.
//!
//! <https://discord.com/developers/docs/resources/message#message-object>

use serde_json::{Value, json};

use super::clock::time_of;
use super::content::{check_not_empty, checked_fields, pings};
use super::json::{full_member, merge, partial_member};
use super::users::{PARLOR_BOT, User};
use super::wire::{Request, Result, id_in, list};
use super::world::World;

pub(super) const REPLY: u64 = 19;
const THREAD_CREATED: u64 = 18;
const THREAD_STARTER: u64 = 21;
const EPHEMERAL: u64 = 1 << 6;

pub(super) struct StoredMessage {
    /// As REST answers it: without `guild_id` and `member`.
    pub(super) json: Value,
    pub(super) author: u64,
    pub(super) is_ephemeral: bool,
    /// Who, with what.
    pub(super) reactions: Vec<(u64, String)>,
}

/// A message before it has an id.
pub(super) struct Draft {
    pub(super) author: User,
    /// Fields to set, `content` among them.
    pub(super) fields: Value,
    /// Type 0 becomes 19 by this.
    pub(super) reply_to: Option<Reference>,
    pub(super) pings: Pings,
}

#[derive(Clone, Copy)]
pub(super) struct Reference {
    pub(super) channel_id: u64,
    pub(super) message_id: u64,
}

/// Whom the mentions in a text reach.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pings {
    Everybody,
    /// Empty `allowed_mentions`: the text stays, nobody is pinged.
    Nobody,
}

impl Draft {
    pub(super) fn new(author: User, text: &str) -> Self {
        Self {
            author,
            fields: json!({ "content": text }),
            reply_to: None,
            pings: Pings::Everybody,
        }
    }
}

impl World {
    /// Stores a message, tells the bot, and returns its id.
    pub(super) fn post(&mut self, channel_id: u64, draft: Draft) -> u64 {
        let id = self.clock.next_id();
        self.post_as(id, channel_id, draft)
    }

    /// The first message of a forum post has the thread's id.
    pub(super) fn post_as(&mut self, id: u64, channel_id: u64, draft: Draft) -> u64 {
        let json = self.compose(id, channel_id, &draft);
        let is_ephemeral = json["flags"]
            .as_u64()
            .is_some_and(|flags| flags & EPHEMERAL != 0);
        let stored = StoredMessage {
            json,
            author: draft.author.id,
            is_ephemeral,
            reactions: Vec::new(),
        };
        self.channel(channel_id).messages.insert(id, stored);
        self.dispatch_message("MESSAGE_CREATE", channel_id, id);
        id
    }

    fn compose(&self, id: u64, channel_id: u64, draft: &Draft) -> Value {
        let mut message = json!({
            "id": id.to_string(), "channel_id": channel_id.to_string(), "type": 0, "author": draft.author.json(), "content": "",
            "timestamp": time_of(id), "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [],
            "mention_roles": [], "attachments": [], "embeds": [], "components": [], "pinned": false, "flags": 0,
        });
        let replied = draft.reply_to.and_then(|it| {
            self.channels
                .get(&it.channel_id)?
                .messages
                .get(&it.message_id)
        });
        if let Some(reference) = draft.reply_to {
            let guild = self
                .channels
                .get(&reference.channel_id)
                .and_then(|channel| channel.guild);
            message["type"] = REPLY.into();
            message["message_reference"] = json!({ "type": 0, "channel_id": reference.channel_id.to_string(), "message_id": reference.message_id.to_string() });
            if let Some(guild) = guild {
                message["message_reference"]["guild_id"] = guild.to_string().into();
            }
            message["referenced_message"] =
                replied.map_or(Value::Null, |replied| without_its_own_reply(&replied.json));
        }
        merge(&mut message, draft.fields.clone());
        let replied_author = replied.map(|replied| replied.author);
        self.set_mentions(
            &mut message,
            channel_id,
            replied_author.filter(|_| draft.pings == Pings::Everybody),
            draft.pings,
        );
        message
    }

    /// Finds out who is mentioned. A user's mention stands in `mentions` whether or not it pings; a
    /// role's and everybody's do not.
    pub(super) fn set_mentions(
        &self,
        message: &mut Value,
        channel_id: u64,
        also: Option<u64>,
        pings: Pings,
    ) {
        let content = message["content"].as_str().unwrap_or("").to_owned();
        let guild = self
            .channels
            .get(&channel_id)
            .and_then(|channel| channel.guild);
        let mut ids: Vec<u64> = ids_after(&content, "<@")
            .into_iter()
            .chain(ids_after(&content, "<@!"))
            .chain(also)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let users = ids
            .iter()
            .filter_map(|id| self.users.get(id))
            .map(|user| user.json());
        message["mentions"] = users.collect::<Vec<Value>>().into();
        let loud = pings == Pings::Everybody;
        let is_role = |id: &u64| {
            guild
                .and_then(|guild| self.guilds.get(&guild))
                .is_some_and(|guild| guild.roles.contains_key(id))
        };
        let roles: Vec<String> = ids_after(&content, "<@&")
            .into_iter()
            .filter(|id| loud && is_role(id))
            .map(|id| id.to_string())
            .collect();
        message["mention_roles"] = roles.into();
        message["mention_everyone"] =
            (loud && (content.contains("@everyone") || content.contains("@here"))).into();
    }

    /// A message as an event has it: with its guild and the author's membership.
    pub(super) fn message_event(&self, channel_id: u64, message_id: u64) -> Value {
        let channel = &self.channels[&channel_id];
        let stored = &channel.messages[&message_id];
        let mut data = stored.json.clone();
        if let Some(guild) = channel.guild {
            data["guild_id"] = guild.to_string().into();
            if data.get("webhook_id").is_none() {
                data["member"] = partial_member(&self.member(guild, stored.author));
            }
            for mentioned in data["mentions"]
                .as_array_mut()
                .expect("mentions are a list")
            {
                let id = id_in(mentioned, "id").expect("a user has an id");
                mentioned["member"] = partial_member(&self.member(guild, id));
            }
        }
        data
    }

    pub(super) fn dispatch_message(&mut self, event: &str, channel_id: u64, message_id: u64) {
        if self.channels[&channel_id].messages[&message_id].is_ephemeral {
            return;
        }
        let data = self.message_event(channel_id, message_id);
        self.dispatch_in(channel_id, event, data);
    }

    /// A message as REST answers it.
    pub(super) fn message_answer(&self, channel_id: u64, message_id: u64) -> Value {
        let channel = &self.channels[&channel_id];
        let json = &channel.messages[&message_id].json;
        if self.gateway.portal_shows_content || channel.guild.is_none() {
            json.clone()
        } else {
            without_content(json)
        }
    }
}

/// What a bot without the message content intent gets of a message that does not concern it.
pub(super) fn without_content(message: &Value) -> Value {
    let bot = PARLOR_BOT.id.to_string();
    let own = message["author"]["id"] == bot.as_str();
    let mentioned = list(message, "mentions")
        .iter()
        .any(|user| user["id"] == bot.as_str());
    let mut message = message.clone();
    if !own && !mentioned {
        merge(
            &mut message,
            json!({ "content": "", "attachments": [], "embeds": [], "components": [] }),
        );
    }
    message
}

fn without_its_own_reply(message: &Value) -> Value {
    let mut message = message.clone();
    message
        .as_object_mut()
        .expect("a message is an object")
        .remove("referenced_message");
    message
}

/// The ids in marks such as `<@111>`.
fn ids_after(text: &str, mark: &str) -> Vec<u64> {
    let starts = text
        .match_indices(mark)
        .map(|(start, _)| &text[start + mark.len()..]);
    starts
        .filter_map(|rest| rest.split_once('>')?.0.parse().ok())
        .collect()
}

/// What happens to messages that exist.
impl World {
    /// Like [`World::post`], and noted as sent by the bot.
    pub(super) fn post_of_bot(&mut self, channel_id: u64, draft: Draft) -> u64 {
        let id = self.clock.next_id();
        self.post_of_bot_as(id, channel_id, draft)
    }

    pub(super) fn post_of_bot_as(&mut self, id: u64, channel_id: u64, draft: Draft) -> u64 {
        self.post_as(id, channel_id, draft);
        let stored = &self.channels[&channel_id].messages[&id];
        self.journal
            .note_sent(channel_id, id, &stored.json, stored.is_ephemeral);
        id
    }

    /// Applies an edit by the bot, checked.
    pub(super) fn edit_of_bot(
        &mut self,
        channel_id: u64,
        message_id: u64,
        request: &Request,
        body: &Value,
    ) -> Result<()> {
        let mut fields = checked_fields(self, channel_id, body, &request.files)?;
        if body.get("content").is_some_and(Value::is_null) {
            fields["content"] = "".into();
        }
        let before = &self.channels[&channel_id].messages[&message_id].json;
        let mut after = before.clone();
        let kept = kept_attachments(before, body.get("attachments").and_then(Value::as_array));
        let added = list(&fields, "attachments").to_vec();
        fields["attachments"] = kept.into_iter().chain(added).collect();
        merge(&mut after, fields);
        check_not_empty(&after)?;
        let pings = pings(self, request, body);
        self.set_mentions(&mut after, channel_id, None, pings);
        self.store_edit(channel_id, message_id, after);
        Ok(())
    }

    /// Replaces a message by its edited form and tells of it.
    pub(super) fn store_edit(&mut self, channel_id: u64, message_id: u64, mut after: Value) {
        after["edited_timestamp"] = time_of(self.clock.next_id()).into();
        self.journal.note_edited(message_id, &after);
        let stored = self
            .channel(channel_id)
            .messages
            .get_mut(&message_id)
            .expect("the edited message exists");
        stored.json = after;
        self.dispatch_message("MESSAGE_UPDATE", channel_id, message_id);
    }

    pub(super) fn delete(&mut self, channel_id: u64, message_id: u64) {
        let channel = self.channel(channel_id);
        let guild = channel.guild;
        let removed = channel
            .messages
            .remove(&message_id)
            .expect("the deleted message exists");
        self.journal.note_deleted(message_id);
        let mut data =
            json!({ "id": message_id.to_string(), "channel_id": channel_id.to_string() });
        if let Some(guild) = guild {
            data["guild_id"] = guild.to_string().into();
        }
        if !removed.is_ephemeral {
            self.dispatch_in(channel_id, "MESSAGE_DELETE", data);
        }
    }

    /// The line in the channel that tells of a thread opened without a message.
    pub(super) fn post_thread_created(&mut self, thread_id: u64, creator: User) {
        let thread = self.channel(thread_id);
        let (name, parent) = (
            thread.name.clone(),
            thread.parent.expect("a thread has a channel"),
        );
        let reference = json!({ "type": 0, "channel_id": thread_id.to_string(), "guild_id": thread.guild.map(|id| id.to_string()) });
        let fields =
            json!({ "type": THREAD_CREATED, "content": name, "message_reference": reference });
        self.post(
            parent,
            Draft {
                fields,
                ..Draft::new(creator, "")
            },
        );
    }

    /// The line on top of a thread that was opened below a message.
    pub(super) fn post_thread_starter(&mut self, thread_id: u64, creator: User) {
        let parent = self
            .channel(thread_id)
            .parent
            .expect("a thread has a channel");
        let reply_to = Some(Reference {
            channel_id: parent,
            message_id: thread_id,
        });
        let fields = json!({ "type": THREAD_STARTER, "content": "" });
        self.post(
            thread_id,
            Draft {
                fields,
                reply_to,
                pings: Pings::Nobody,
                ..Draft::new(creator, "")
            },
        );
    }

    /// Adds or takes away a reaction.
    pub(super) fn reaction(
        &mut self,
        event: &str,
        channel_id: u64,
        message_id: u64,
        user: User,
        emoji: &str,
    ) {
        let guild = self.channel(channel_id).guild;
        let emoji_json = json!({ "id": null, "name": emoji });
        let mut data = json!({
            "user_id": user.id.to_string(), "channel_id": channel_id.to_string(), "message_id": message_id.to_string(),
            "emoji": emoji_json, "type": 0, "burst": false,
        });
        if let Some(guild) = guild {
            data["guild_id"] = guild.to_string().into();
            data["member"] = full_member(user, &self.member(guild, user.id));
        }
        let message = self
            .channel(channel_id)
            .messages
            .get_mut(&message_id)
            .expect("the message exists");
        message
            .reactions
            .retain(|(by, with)| !(*by == user.id && with == emoji));
        if event == "MESSAGE_REACTION_ADD" {
            message.reactions.push((user.id, emoji.to_owned()));
            data["message_author_id"] = message.author.to_string().into();
        }
        self.dispatch_in(channel_id, event, data);
    }
}

/// Those of the old files that an edit names. One that names none at all leaves them as they are.
fn kept_attachments(before: &Value, listed: Option<&Vec<Value>>) -> Vec<Value> {
    let is_kept = |file: &&Value| {
        listed.is_none_or(|listed| listed.iter().any(|it| id_in(it, "id") == id_in(file, "id")))
    };
    list(before, "attachments")
        .iter()
        .filter(is_kept)
        .cloned()
        .collect()
}
