//! The people's side: who does what, and where. Each action dispatches the events the real gateway
//! would send.

use serde_json::{Value, json};

use super::FakeDiscord;
use super::journal::SentMessage;
use super::json;
use super::messages::{Draft, Pings};
use super::speech::Speech;
use super::users::User;
use super::world::{BotMay, Channel, FORUM, PRIVATE_THREAD};

/// A channel, a thread, a forum post or a DM.
#[derive(Clone)]
pub(crate) struct Room {
    pub(super) discord: FakeDiscord,
    pub(crate) id: u64,
}

impl Room {
    pub(super) fn new(discord: FakeDiscord, id: u64) -> Self {
        Self { discord, id }
    }

    /// Puts the channel below a category.
    pub(crate) fn below(self, category: &Room) -> Self {
        self.with_channel(|channel| channel.parent = Some(category.id));
        self.discord
            .world()
            .dispatch_channel("CHANNEL_UPDATE", self.id);
        self
    }

    /// Said when awaited; mentions such as `<@111>` are found in the text.
    pub(crate) fn says(&self, user: User, text: &str) -> Speech {
        Speech::new(self.clone(), user, text)
    }

    /// A thread that exists since before the test; no event tells of it.
    pub(crate) fn thread(&self, id: u64, name: &str) -> Self {
        let mut world = self.discord.world();
        if !world.channels.contains_key(&id) {
            world.add_thread(id, self.id, name, super::CAROL.id, Vec::new());
        }
        drop(world);
        Self::new(self.discord.clone(), id)
    }

    /// Like [`Room::thread`], for invited members only.
    pub(crate) fn private_thread(&self, id: u64, name: &str) -> Self {
        let thread = self.thread(id, name);
        thread.with_channel(|channel| channel.kind = PRIVATE_THREAD);
        thread
    }

    /// Somebody opens a thread now: `THREAD_CREATE`.
    pub(crate) async fn creates_thread(&self, user: User, name: &str) -> Self {
        let mut world = self.discord.world();
        let id = world.clock.next_id();
        world.add_thread(id, self.id, name, user.id, Vec::new());
        world.dispatch_channel("THREAD_CREATE", id);
        world.post_thread_created(id, user);
        drop(world);
        Self::new(self.discord.clone(), id)
    }

    /// Somebody opens a thread below a message, whose id it gets.
    pub(crate) async fn creates_thread_from(
        &self,
        user: User,
        message_id: u64,
        name: &str,
    ) -> Self {
        let mut world = self.discord.world();
        world.add_thread(message_id, self.id, name, user.id, Vec::new());
        world.dispatch_channel("THREAD_CREATE", message_id);
        world.post_thread_starter(message_id, user);
        drop(world);
        Self::new(self.discord.clone(), message_id)
    }

    /// Somebody posts in a forum: `THREAD_CREATE`, then `MESSAGE_CREATE` with the id of the thread.
    pub(crate) async fn posts(&self, user: User, title: &str, tags: &[u64], text: &str) -> Self {
        let mut world = self.discord.world();
        assert_eq!(
            world.channel(self.id).kind,
            FORUM,
            "only a forum takes posts"
        );
        world.users.insert(user.id, user);
        let id = world.clock.next_id();
        world.add_thread(id, self.id, title, user.id, tags.to_vec());
        world.dispatch_channel("THREAD_CREATE", id);
        world.post_as(id, id, Draft::new(user, text));
        drop(world);
        Self::new(self.discord.clone(), id)
    }

    /// Changes the text: `MESSAGE_UPDATE`.
    pub(crate) async fn edits(&self, message_id: u64, text: &str) {
        let mut world = self.discord.world();
        let mut after = world.channel(self.id).messages[&message_id].json.clone();
        after["content"] = text.into();
        world.set_mentions(&mut after, self.id, None, Pings::Everybody);
        world.store_edit(self.id, message_id, after);
    }

    /// Anybody deletes anybody's message: `MESSAGE_DELETE`.
    pub(crate) async fn deletes(&self, message_id: u64) {
        self.discord.world().delete(self.id, message_id);
    }

    /// A moderator deletes several at once: `MESSAGE_DELETE_BULK`.
    pub(crate) async fn deletes_all(&self, message_ids: &[u64]) {
        let mut world = self.discord.world();
        let channel = world.channel(self.id);
        channel.messages.retain(|id, _| !message_ids.contains(id));
        let (guild, ids) = (
            channel.guild,
            message_ids.iter().map(u64::to_string).collect::<Vec<_>>(),
        );
        let guild = guild
            .expect("there is nothing to moderate in private")
            .to_string();
        let data = json!({ "ids": ids, "channel_id": self.id.to_string(), "guild_id": guild });
        world.dispatch_in(self.id, "MESSAGE_DELETE_BULK", data);
    }

    pub(crate) async fn reacts(&self, user: User, message_id: u64, emoji: &str) {
        self.discord
            .world()
            .reaction("MESSAGE_REACTION_ADD", self.id, message_id, user, emoji);
    }

    pub(crate) async fn takes_reaction_back(&self, user: User, message_id: u64, emoji: &str) {
        self.discord
            .world()
            .reaction("MESSAGE_REACTION_REMOVE", self.id, message_id, user, emoji);
    }

    pub(crate) async fn types(&self, user: User) {
        let mut world = self.discord.world();
        let guild = world.channel(self.id).guild;
        let mut data = json!({ "channel_id": self.id.to_string(), "user_id": user.id.to_string(), "timestamp": 1_700_000_000 });
        if let Some(guild) = guild {
            data["guild_id"] = guild.to_string().into();
            data["member"] = json::full_member(user, &world.member(guild, user.id));
        }
        world.dispatch_in(self.id, "TYPING_START", data);
    }

    pub(crate) async fn renames(&self, name: &str) {
        self.changes(|channel| channel.name = name.into());
    }

    pub(crate) async fn archives(&self) {
        self.changes(|channel| channel.thread.as_mut().expect("a thread").archived = true);
    }

    /// Archived and locked: writing does not bring it back.
    pub(crate) async fn locks(&self) {
        self.changes(|channel| {
            let thread = channel.thread.as_mut().expect("a thread");
            (thread.archived, thread.locked) = (true, true);
        });
    }

    /// Takes messages again.
    pub(crate) async fn unlocks(&self) {
        self.changes(|channel| {
            let thread = channel.thread.as_mut().expect("a thread");
            (thread.archived, thread.locked) = (false, false);
        });
    }

    /// The channel or thread is gone, and its threads with it.
    pub(crate) async fn is_deleted(&self) {
        let mut world = self.discord.world();
        let channel = &world.channels[&self.id];
        let data = json::channel(channel);
        let event = if channel.thread.is_some() {
            "THREAD_DELETE"
        } else {
            "CHANNEL_DELETE"
        };
        world.dispatch_in(self.id, event, data);
        world
            .channels
            .retain(|id, channel| *id != self.id && channel.parent != Some(self.id));
    }

    /// What the bot may do here from now on; nothing tells it but the next answer.
    pub(crate) fn lets_bot(&self, may: BotMay) {
        self.with_channel(|channel| channel.bot_may = may);
    }

    fn changes(&self, change: impl FnOnce(&mut Channel)) {
        let mut world = self.discord.world();
        let channel = world.channel(self.id);
        change(channel);
        let event = if channel.thread.is_some() {
            "THREAD_UPDATE"
        } else {
            "CHANNEL_UPDATE"
        };
        world.dispatch_channel(event, self.id);
    }

    /// What the bot's messages here say now; ephemeral and deleted ones left out.
    pub(crate) fn texts(&self) -> Vec<String> {
        let world = self.discord.world();
        let shown = world
            .journal
            .sent_in(self.id)
            .filter(|sent| !sent.deleted && !sent.ephemeral);
        shown.map(|sent| sent.text.clone()).collect()
    }

    /// Waits until the bot has sent `count` messages here since the start, and returns the last of
    /// those.
    pub(crate) async fn wait_for_sent(&self, count: usize) -> SentMessage {
        self.discord.wait_for_sent_in(self.id, count).await
    }

    /// Everything that stands here, people's messages too, as REST shows it; the oldest first.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.with_channel(|channel| {
            channel
                .messages
                .values()
                .map(|message| message.json.clone())
                .collect()
        })
    }

    /// Whose reactions a message has, and which.
    pub(crate) fn reactions_to(&self, message_id: u64) -> Vec<(u64, String)> {
        self.with_channel(|channel| channel.messages[&message_id].reactions.clone())
    }

    /// Whether a thread is archived now.
    pub(crate) fn is_archived(&self) -> bool {
        self.with_channel(|channel| channel.thread.as_ref().expect("a thread").archived)
    }

    pub(super) fn with_channel<T>(&self, work: impl FnOnce(&mut Channel) -> T) -> T {
        work(self.discord.world().channel(self.id))
    }
}

/// A private conversation, where only one person speaks.
#[derive(Clone)]
pub(crate) struct Dm {
    room: Room,
    user: User,
}

impl Dm {
    pub(super) fn new(room: Room, user: User) -> Self {
        Self { room, user }
    }

    /// The same conversation, for what all rooms can do.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    pub(crate) fn id(&self) -> u64 {
        self.room.id
    }

    pub(crate) fn says(&self, text: &str) -> Speech {
        self.room.says(self.user, text)
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.room.texts()
    }

    pub(crate) async fn wait_for_sent(&self, count: usize) -> SentMessage {
        self.room.wait_for_sent(count).await
    }

    /// From now on the bot's messages are refused with 50007.
    pub(crate) fn blocks_bot(&self) {
        self.room.lets_bot(BotMay::OnlyRead);
    }
}
