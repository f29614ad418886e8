//! Reads raw messages, edits and reactions. Pure: the same message always gives the same arrival.

use std::time::Duration;

use serde_json::Value;

use super::content;
use super::directory::{Surroundings, id, id_in, list};
use crate::channels::nicknames::Nicknames;
use crate::config::GroupSessions;
use crate::domain::{
    Addressed, Attachment, DiscordId, Extras, Inbound, MessageId, Note, Origin, PersonId,
    SessionKey, Together,
};

/// Plain messages and replies. All other types are Discord's own notices.
const MESSAGES_OF_PEOPLE: [u64; 2] = [0, 19];
/// Ids count from the beginning of 2015.
const EPOCH_MS: i64 = 1_420_070_400_000;
/// The lane's wait for the other files of the same message.
const FILES_WAIT: Duration = Duration::from_millis(200);

/// The settings for reading.
pub(super) struct Reader<'a> {
    pub(super) me: DiscordId,
    pub(super) group_sessions: GroupSessions,
    pub(super) nicknames: &'a Nicknames,
    /// Zero takes each message by itself.
    pub(super) gather: Duration,
}

/// A message, read.
#[derive(Debug, PartialEq)]
pub(super) enum Read {
    /// Several files make several messages, answered together.
    Messages(Vec<Inbound>),
    /// No content at all, as without the intent.
    Empty,
    /// Written by a bot, a webhook or Discord.
    NotForUs,
    Unreadable(&'static str),
}

impl Reader<'_> {
    pub(super) fn message(&self, raw: &Value, around: &Surroundings, note: Option<Note>) -> Read {
        if !self.is_from_a_person(raw) {
            return Read::NotForUs;
        }
        let (Some(id), Some(channel)) = (id_in(raw, "id"), id_in(raw, "channel_id")) else {
            return Read::Unreadable("a message without an id");
        };
        let Some(author) = id_in(&raw["author"], "id") else {
            return Read::Unreadable("a message without an author");
        };
        let forwarded = content::forwarded(raw);
        let inner = forwarded.unwrap_or(raw);
        let attachments = content::attachments(inner);
        let Some(written) = inner.get("content").and_then(Value::as_str) else {
            return Read::Unreadable("a message without content");
        };
        if written.is_empty() && attachments.is_empty() && inner.get("embeds").is_none_or(is_empty)
        {
            return Read::Empty;
        }
        let key = self.key(channel, author, around);
        // A mention in a forwarded message was not meant for the bot here.
        let (text, mentioned) = if forwarded.is_some() {
            (written, false)
        } else {
            self.without_call(written)
        };
        let text = content::readable(text, raw);
        let first = Inbound {
            update_id: update_id(id, raw, note),
            addressed: self.addressed(&key, raw, mentioned, &text),
            origin: origin(key, author, raw, around),
            person_name: content::display_name(&raw["author"], &raw["member"]),
            text: if text.is_empty() && attachments.is_empty() {
                WITHOUT_TEXT.to_owned()
            } else {
                text
            },
            message: MessageId(id.to_string()),
            sent_at: sent_at(id),
            extras: Extras {
                around: content::around(raw, self.me),
                note,
                replies_to: content::replied(raw),
                ..Extras::default()
            },
        };
        Read::Messages(self.with_files(first, attachments))
    }

    /// A new thread, with its name as the text.
    pub(super) fn thread_made(&self, raw: &Value, around: &Surroundings) -> Option<Inbound> {
        let (thread, owner) = (
            id_in(raw, "id")?,
            id_in(raw, "owner_id").filter(|owner| *owner != self.me)?,
        );
        let key = SessionKey::DiscordThread {
            channel: around.thread_of?,
            thread,
        };
        Some(Inbound {
            update_id: format!("thread:{thread}"),
            origin: origin(key, owner, &Value::Null, around),
            person_name: content::display_name(&Value::Null, &Value::Null),
            text: around.name.clone()?,
            addressed: Addressed::ByTopicName,
            message: MessageId(thread.to_string()),
            sent_at: sent_at(thread),
            extras: Extras::default(),
        })
    }

    /// A reaction to a message of the bot. The key names only the channel, until the gateway looks
    /// the message up.
    pub(super) fn reaction(&self, raw: &Value, around: &Surroundings) -> Option<Inbound> {
        let (person, channel, message) = (
            id_in(raw, "user_id")?,
            id_in(raw, "channel_id")?,
            id_in(raw, "message_id")?,
        );
        let is_about_us = id_in(raw, "message_author_id").is_none_or(|author| author == self.me);
        let is_a_person = person != self.me && raw["member"]["user"]["bot"] != true;
        let emoji = raw["emoji"]["name"].as_str()?;
        let emoji = if raw["emoji"]["id"].is_string() {
            format!(":{emoji}:")
        } else {
            emoji.to_owned()
        };
        let key = match (
            around.server.or_else(|| id_in(raw, "guild_id")),
            around.thread_of,
        ) {
            (None, _) => SessionKey::DiscordDm { user: person },
            (Some(_), Some(parent)) => SessionKey::DiscordThread {
                channel: parent,
                thread: channel,
            },
            (Some(_), None) => SessionKey::DiscordChannel {
                channel,
                member: None,
            },
        };
        (is_about_us && is_a_person).then(|| Inbound {
            update_id: format!("reaction:{message}:{person}:{emoji}"),
            origin: origin(key, person, raw, around),
            person_name: content::display_name(&raw["member"]["user"], &raw["member"]),
            text: emoji,
            addressed: Addressed::ByReply,
            message: MessageId(message.to_string()),
            sent_at: crate::clock::now_ms(),
            extras: Extras {
                note: Some(Note::Reaction),
                ..Extras::default()
            },
        })
    }

    pub(super) fn is_from_a_person(&self, raw: &Value) -> bool {
        let is_plain = raw["type"]
            .as_u64()
            .is_none_or(|kind| MESSAGES_OF_PEOPLE.contains(&kind));
        let is_bot =
            raw["author"]["bot"] == true || raw.get("webhook_id").is_some_and(|id| !id.is_null());
        is_plain && !is_bot && !self.is_ours(raw)
    }

    /// Whether the bot is the author.
    pub(super) fn is_ours(&self, raw: &Value) -> bool {
        id_in(&raw["author"], "id") == Some(self.me)
    }

    pub(super) fn key(
        &self,
        channel: DiscordId,
        author: DiscordId,
        around: &Surroundings,
    ) -> SessionKey {
        place(self.group_sessions, channel, author, around)
    }

    /// The text without a mention of the bot at its beginning, and whether the bot is mentioned
    /// anywhere.
    fn without_call<'t>(&self, text: &'t str) -> (&'t str, bool) {
        let names = [format!("<@{}>", self.me), format!("<@!{}>", self.me)];
        let is_mentioned = names.iter().any(|name| text.contains(name));
        let begun = text.trim_start();
        let rest = names.iter().find_map(|name| begun.strip_prefix(name));
        let rest = rest.map(|rest| {
            rest.trim_start_matches([',', ':', '.', '!', '?'])
                .trim_start()
        });
        // A mention alone stays as the text, because models refuse empty messages.
        (
            rest.filter(|rest| !rest.is_empty()).unwrap_or(text),
            is_mentioned,
        )
    }

    fn addressed(&self, key: &SessionKey, raw: &Value, mentioned: bool, text: &str) -> Addressed {
        if key.is_private() {
            Addressed::Privately
        } else if mentioned || self.nicknames.are_in(text) {
            Addressed::ByMention
        } else if raw["type"] == 19
            && id_in(&raw["referenced_message"]["author"], "id") == Some(self.me)
        {
            Addressed::ByReply
        } else {
            Addressed::NotAtAll
        }
    }

    /// An `Inbound` has a single file, so each further file is a message of its own, taken together
    /// with the first.
    fn with_files(&self, first: Inbound, attachments: Vec<Attachment>) -> Vec<Inbound> {
        let together = match (self.gather.is_zero(), attachments.len()) {
            (true, 0 | 1) => None,
            (true, _) => Some(Together {
                with: format!("files {}", first.message.0),
                wait_ms: millis(FILES_WAIT),
            }),
            (false, _) => Some(Together {
                with: "gathered".to_owned(),
                wait_ms: millis(self.gather),
            }),
        };
        let mut attachments = attachments.into_iter();
        let mut whole = first;
        whole.extras.together = together;
        whole.extras.attachment = attachments.next();
        let further = attachments.enumerate().map(|(index, attachment)| Inbound {
            update_id: format!("{}:{}", whole.update_id, index + 1),
            text: String::new(),
            extras: Extras {
                around: Vec::new(),
                attachment: Some(attachment),
                ..whole.extras.clone()
            },
            ..whole.clone()
        });
        // An edit changes only the text.
        let further: Vec<Inbound> = further.filter(|_| whole.extras.note.is_none()).collect();
        std::iter::once(whole).chain(further).collect()
    }
}

pub(super) fn place(
    sessions: GroupSessions,
    channel: DiscordId,
    author: DiscordId,
    around: &Surroundings,
) -> SessionKey {
    match (around.server, around.thread_of) {
        (None, _) => SessionKey::DiscordDm { user: author },
        (Some(_), Some(parent)) => SessionKey::DiscordThread {
            channel: parent,
            thread: channel,
        },
        (Some(_), None) => {
            let member = (sessions == GroupSessions::PerUser).then_some(author);
            SessionKey::DiscordChannel { channel, member }
        }
    }
}

pub(super) fn origin(
    key: SessionKey,
    person: DiscordId,
    raw: &Value,
    around: &Surroundings,
) -> Origin {
    let roles = list(&raw["member"], "roles").filter_map(id);
    Origin {
        roles: roles.collect(),
        server: around.server,
        category: around.category,
        name: around.name.clone(),
        group: around.path.clone(),
        tags: around.tags.clone(),
        ..Origin::new(key, PersonId::Discord(person))
    }
}

/// Every version of a message is an update of its own.
fn update_id(id: DiscordId, raw: &Value, note: Option<Note>) -> String {
    match note {
        Some(_) => format!(
            "edit:{id}:{}",
            raw["edited_timestamp"].as_str().unwrap_or_default()
        ),
        None => format!("message:{id}"),
    }
}

/// The time of creation, from an id.
pub(super) fn sent_at(id: DiscordId) -> i64 {
    i64::try_from(id.0 >> 22).unwrap_or(0) + EPOCH_MS
}

/// The smallest possible id of this time.
pub(super) fn first_id_at(time_ms: i64) -> DiscordId {
    DiscordId(u64::try_from(time_ms - EPOCH_MS).unwrap_or(0) << 22)
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const WITHOUT_TEXT: &str = "[a message without text]";

#[cfg(test)]
mod tests;
