//! The people's side: who says or does what, and where. Each action queues the update the real
//! server would send.

use std::future::{IntoFuture, Ready, ready};

use serde_json::{Map, Value, json};

use super::FakeTelegram;
use super::chats::{
    Chat, Draft, Kind, PARLOR_BOT, Role, Sender, User, entities_in, fields, unix_time, utf16_len,
};
use super::journal::SentMessage;
use super::wire::int;

/// What an action left behind: the queued update and, if there is one, its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) update_id: i64,
    pub(crate) message_id: i64,
}

/// A chat or one topic of it.
#[derive(Clone)]
pub(crate) struct Place {
    telegram: FakeTelegram,
    pub(crate) chat_id: i64,
    pub(crate) thread: Option<i64>,
}

impl Place {
    pub(super) fn new(telegram: FakeTelegram, chat_id: i64) -> Self {
        Self {
            telegram,
            chat_id,
            thread: None,
        }
    }

    /// A topic that exists since before the test; no update tells of it.
    pub(crate) fn topic(&self, topic_id: i64, name: &str) -> Self {
        let mut world = self.telegram.world();
        let chat = world.chat(self.chat_id);
        let creator = if let Kind::Private(user) = chat.kind {
            user
        } else {
            super::CAROL
        };
        if !chat.topics.contains_key(&topic_id) {
            chat.create_topic(topic_id, name, creator);
        }
        drop(world);
        Self {
            thread: Some(topic_id),
            ..self.clone()
        }
    }

    /// Queued when awaited; mentions and commands in the text get their entities.
    pub(crate) fn says(&self, user: User, text: &str) -> Speech {
        Speech::new(self.clone(), Sender::User(user), text)
    }

    /// An admin speaks in the name of the group.
    pub(crate) fn says_anonymously(&self, text: &str) -> Speech {
        Speech::new(self.clone(), Sender::AnonymousAdmin, text)
    }

    /// A post of a channel.
    pub(crate) fn posts(&self, text: &str) -> Speech {
        Speech::new(self.clone(), Sender::Channel, text)
    }

    /// What the bot's messages here say now.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.telegram.texts_in(self.chat_id, self.thread)
    }

    /// Waits until the bot has sent `count` messages here since the start, and returns the last of
    /// those.
    pub(crate) async fn wait_for_sent(&self, count: usize) -> SentMessage {
        self.telegram
            .wait_for_sent_in(self.chat_id, self.thread, count)
            .await
    }

    /// Waits until what the bot's messages here say is as it should be.
    pub(crate) async fn wait_for(&self, what: &str, done: impl Fn(&[String]) -> bool) {
        let (chat, thread) = (self.chat_id, self.thread);
        self.telegram
            .wait(&format!("{what} in {chat}"), |world| {
                done(&world.journal.texts_in(chat, thread)).then_some(())
            })
            .await;
    }

    pub(crate) async fn edits(&self, message_id: i64, text: &str) -> Pushed {
        let update = self.with_chat(|chat| {
            let stored = chat
                .messages
                .get_mut(&message_id)
                .expect("the edited message is in this chat");
            let message = stored.json.as_object_mut().expect("a message is an object");
            message.extend(fields(json!({ "text": text, "edit_date": unix_time() })));
            match entities_in(text) {
                entities if entities.is_empty() => message.remove("entities"),
                entities => message.insert("entities".into(), entities.into()),
            };
            json!({ "edited_message": message })
        });
        Pushed {
            update_id: self.telegram.push_raw(update),
            message_id,
        }
    }

    /// A press on an inline button below one of the bot's messages.
    pub(crate) async fn presses(&self, user: User, message_id: i64, data: &str) -> Pushed {
        let message = self.with_chat(|chat| chat.messages[&message_id].json.clone());
        let mut world = self.telegram.world();
        world.callbacks_issued += 1;
        let query_id = format!("77{:06}", world.callbacks_issued);
        world.open_callbacks.insert(query_id.clone());
        drop(world);
        let instance = self.chat_id.to_string();
        let query = json!({ "id": query_id, "from": user.json(), "message": message, "chat_instance": instance, "data": data });
        Pushed {
            update_id: self.telegram.push_raw(json!({ "callback_query": query })),
            message_id,
        }
    }

    pub(crate) async fn reacts(&self, user: User, message_id: i64, emoji: &str) -> Pushed {
        let chat = self.with_chat(|chat| chat.json());
        let new = json!([{ "type": "emoji", "emoji": emoji }]);
        let reaction = json!({ "chat": chat, "message_id": message_id, "user": user.json(), "date": unix_time(), "old_reaction": [], "new_reaction": new });
        Pushed {
            update_id: self
                .telegram
                .push_raw(json!({ "message_reaction": reaction })),
            message_id,
        }
    }

    /// A message without text, such as `service(BOB, "new_chat_members", …)`.
    pub(crate) async fn service(&self, user: User, field: &str, value: Value) -> Pushed {
        Speech::new(self.clone(), Sender::User(user), "")
            .without("text")
            .with(field, value)
            .push()
    }

    /// Somebody opens a new topic now.
    pub(crate) async fn creates_topic(&self, user: User, name: &str) -> Self {
        let (topic_id, creation) = self.with_chat(|chat| {
            let topic_id = chat.next_message_id();
            (topic_id, chat.create_topic(topic_id, name, user))
        });
        self.telegram.push_raw(json!({ "message": creation }));
        Self {
            thread: Some(topic_id),
            ..self.clone()
        }
    }

    pub(crate) async fn renames_topic(&self, user: User, name: &str) -> Pushed {
        self.service(user, "forum_topic_edited", json!({ "name": name }))
            .await
    }

    pub(crate) async fn closes_topic(&self, user: User) -> Pushed {
        self.set_closed(true);
        self.service(user, "forum_topic_closed", json!({})).await
    }

    pub(crate) async fn reopens_topic(&self, user: User) -> Pushed {
        self.set_closed(false);
        self.service(user, "forum_topic_reopened", json!({})).await
    }

    /// The server tells nobody; the bot notices at the next send.
    pub(crate) fn deletes_topic(&self) {
        let topic_id = self.topic_id();
        self.with_chat(|chat| chat.topics.remove(&topic_id));
    }

    /// The group becomes a supergroup: one service message in the old chat, one in the new.
    pub(crate) async fn migrates_to(&self, new_chat_id: i64) -> Self {
        let new = self.telegram.supergroup(new_chat_id);
        self.service(super::CAROL, "migrate_to_chat_id", new_chat_id.into())
            .await;
        new.service(super::CAROL, "migrate_from_chat_id", self.chat_id.into())
            .await;
        self.with_chat(|chat| chat.role = Role::MigratedTo(new_chat_id));
        new
    }

    pub(crate) async fn adds_bot(&self, user: User) -> Pushed {
        self.with_chat(|chat| chat.role = Role::Welcome);
        self.changes_bot(user, "left", "member")
    }

    pub(crate) async fn promotes_bot(&self, user: User) -> Pushed {
        self.with_chat(|chat| chat.bot_is_admin = true);
        self.changes_bot(user, "member", "administrator")
    }

    /// Only admins may write here from now on; no update tells of it.
    pub(crate) fn silences_members(&self) {
        self.with_chat(|chat| chat.members_may_write = false);
    }

    /// From now on the bot's calls for this chat answer 403.
    pub(crate) async fn removes_bot(&self, user: User) -> Pushed {
        self.with_chat(|chat| chat.role = Role::Removed);
        self.changes_bot(user, "member", "kicked")
    }

    fn changes_bot(&self, user: User, old: &str, new: &str) -> Pushed {
        let chat = self.with_chat(|chat| chat.json());
        let (old, new) = (membership(old), membership(new));
        let change = json!({ "chat": chat, "from": user.json(), "date": unix_time(), "old_chat_member": old, "new_chat_member": new });
        Pushed {
            update_id: self.telegram.push_raw(json!({ "my_chat_member": change })),
            message_id: 0,
        }
    }

    fn set_closed(&self, closed: bool) {
        let topic_id = self.topic_id();
        self.with_chat(|chat| {
            chat.topics
                .get_mut(&topic_id)
                .expect("the topic exists")
                .closed = closed;
        });
    }

    fn topic_id(&self) -> i64 {
        self.thread.expect("General has no topic id")
    }

    fn with_chat<T>(&self, work: impl FnOnce(&mut Chat) -> T) -> T {
        work(self.telegram.world().chat(self.chat_id))
    }
}

/// A private chat, where only one person speaks.
#[derive(Clone)]
pub(crate) struct Dm {
    place: Place,
    user: User,
}

impl Dm {
    pub(super) fn new(place: Place, user: User) -> Self {
        Self { place, user }
    }

    /// The same chat, for what all places can do.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn topic(&self, topic_id: i64, name: &str) -> Self {
        Self {
            place: self.place.topic(topic_id, name),
            user: self.user,
        }
    }

    pub(crate) fn says(&self, text: &str) -> Speech {
        self.place.says(self.user, text)
    }

    pub(crate) async fn presses(&self, message_id: i64, data: &str) -> Pushed {
        self.place.presses(self.user, message_id, data).await
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.place.texts()
    }

    pub(crate) async fn wait_for_sent(&self, count: usize) -> SentMessage {
        self.place.wait_for_sent(count).await
    }

    pub(crate) async fn edits(&self, message_id: i64, text: &str) -> Pushed {
        self.place.edits(message_id, text).await
    }

    pub(crate) async fn blocks_bot(&self) -> Pushed {
        self.place.removes_bot(self.user).await
    }
}

/// A message about to be said; awaiting it queues the update.
#[must_use = "nothing is said until this is awaited"]
pub(crate) struct Speech {
    place: Place,
    sender: Sender,
    reply_to: Option<i64>,
    content: Map<String, Value>,
    entities: Vec<Value>,
}

impl Speech {
    fn new(place: Place, sender: Sender, text: &str) -> Self {
        Self {
            place,
            sender,
            reply_to: None,
            content: fields(json!({ "text": text })),
            entities: entities_in(text),
        }
    }

    pub(crate) fn replying_to(mut self, message_id: i64) -> Self {
        self.reply_to = Some(message_id);
        self
    }

    /// Marks the first occurrence of `part` with an entity type that Telegram does not find by
    /// itself.
    pub(crate) fn marking(self, part: &str, entity_type: &str) -> Self {
        self.mark(part, json!({ "type": entity_type }))
    }

    /// Marks `part` as a mention of somebody without a username.
    pub(crate) fn mentioning(self, part: &str, user: User) -> Self {
        self.mark(part, json!({ "type": "text_mention", "user": user.json() }))
    }

    /// Sets any field of the message, such as `photo`.
    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.content.insert(field.into(), value);
        self
    }

    pub(crate) fn without(mut self, field: &str) -> Self {
        self.content.remove(field);
        self
    }

    fn mark(mut self, part: &str, mut entity: Value) -> Self {
        let text = self.content["text"].as_str().expect("the text is text");
        let start = text.find(part).expect("the marked part is in the text");
        entity["offset"] = utf16_len(&text[..start]).into();
        entity["length"] = utf16_len(part).into();
        self.entities.push(entity);
        self
    }

    fn push(mut self) -> Pushed {
        if !self.entities.is_empty() {
            self.content.insert("entities".into(), self.entities.into());
        }
        let Place {
            telegram,
            chat_id,
            thread,
        } = self.place;
        let draft = Draft {
            sender: self.sender,
            topic: thread,
            reply_to: self.reply_to,
            content: self.content,
        };
        let message = telegram.world().chat(chat_id).post(draft);
        let message_id = int(&message, "message_id").expect("every message has an id");
        let kind = if self.sender == Sender::Channel {
            "channel_post"
        } else {
            "message"
        };
        Pushed {
            update_id: telegram.push_raw(json!({ kind: message })),
            message_id,
        }
    }
}

impl IntoFuture for Speech {
    type Output = Pushed;
    type IntoFuture = Ready<Pushed>;

    fn into_future(self) -> Ready<Pushed> {
        ready(self.push())
    }
}

/// <https://core.telegram.org/bots/api#chatmember>
pub(super) fn membership(status: &str) -> Value {
    let mut member = json!({ "user": PARLOR_BOT.json(), "status": status });
    let extra = match status {
        "kicked" => json!({ "until_date": 0 }),
        "administrator" => administrator_rights(),
        _ => json!({}),
    };
    member
        .as_object_mut()
        .expect("built as an object")
        .extend(fields(extra));
    member
}

fn administrator_rights() -> Value {
    json!({
        "can_be_edited": false,
        "can_manage_chat": true,
        "can_change_info": false,
        "can_delete_messages": true,
        "can_invite_users": false,
        "can_restrict_members": false,
        "can_pin_messages": false,
        "can_manage_topics": true,
        "can_promote_members": false,
        "can_manage_video_chats": false,
        "can_post_stories": false,
        "can_edit_stories": false,
        "can_delete_stories": false,
        "can_send_welcome_messages": false,
        "is_anonymous": false,
    })
}
