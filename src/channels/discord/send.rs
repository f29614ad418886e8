//! Sends to Discord. The destination alone decides the channel, and no message pings anybody.

use serde::Serialize;
use serde_json::{Value, json};
use serenity::builder::{CreateAllowedMentions, CreateMessage, EditMessage};
use serenity::model::channel::{MessageFlags, MessageReference, MessageReferenceKind, Nonce};
use serenity::model::id::{ChannelId, MessageId as SerenityMessageId};

use super::api::{ApiError, Call, FileToSend};
use super::bot::Bot;
use super::directory::id_in;
use super::render;
use super::stored_part::Content;
use crate::channels::answer_style::{
    ANSWER_FILE, ANSWER_TYPE, Quoting, WHOLE_ANSWER, escaped, is_too_long, quoting,
};
use crate::channels::upload;
use crate::channels::{PlaceLoss, SendError, Text, Ticket};
use crate::config::Answers;
use crate::domain::{Destination, DiscordId, MessageId, SessionKey};

/// <https://discord.com/developers/docs/topics/opcodes-and-status-codes#json-json-error-codes>
mod codes {
    pub(super) const UNKNOWN_CHANNEL: u64 = 10003;
    pub(super) const UNKNOWN_MESSAGE: u64 = 10008;
    pub(super) const NO_ACCESS: u64 = 50001;
    pub(super) const CANNOT_DM: u64 = 50007;
    pub(super) const NO_PERMISSION: u64 = 50013;
    pub(super) const THREAD_ARCHIVED: u64 = 50083;
    pub(super) const NO_COMMON_SERVER: u64 = 50278;
    pub(super) const THREAD_LOCKED: u64 = 160_005;
}

/// The first part quotes, and buttons stand under the last part. An answer of too many parts
/// becomes its first part and a file.
pub(super) fn render(
    style: Answers,
    to: &Destination,
    text: &Text<'_>,
    components: &[Value],
) -> Vec<Content> {
    let mut rendered = with_speaker(style, text);
    let is_too_long = is_too_long(style, text, rendered.len());
    if is_too_long {
        rendered.truncate(1);
    }
    let last = rendered.len().saturating_sub(1);
    let part = |(number, rendered_text)| {
        let (quote, if_others_wrote_after) = if number == 0 {
            quoted(style, to, text)
        } else {
            (None, None)
        };
        let components = if number == last {
            components.to_vec()
        } else {
            Vec::new()
        };
        Content::Message {
            text: rendered_text,
            quote,
            if_others_wrote_after,
            components,
        }
    };
    let file = is_too_long.then(|| Content::File {
        markdown: text.markdown.to_owned(),
    });
    rendered
        .into_iter()
        .enumerate()
        .map(part)
        .chain(file)
        .collect()
}

fn with_speaker(style: Answers, text: &Text<'_>) -> Vec<String> {
    let rendered = render::render(text.markdown);
    match text
        .speaker
        .filter(|_| style.show_agent && !rendered.is_empty())
    {
        Some(speaker) => render::render(&format!("**{}**\n\n{}", escaped(speaker), text.markdown)),
        None => rendered,
    }
}

/// The message to quote, and the message after which others must have written.
fn quoted(
    style: Answers,
    to: &Destination,
    text: &Text<'_>,
) -> (Option<DiscordId>, Option<DiscordId>) {
    let Some(question) = text.answers else {
        return (None, None);
    };
    let (message, upto) = (
        question.message.0.parse().ok(),
        question.upto.0.parse().ok(),
    );
    match quoting(style.quote, to, question) {
        Quoting::No => (None, None),
        Quoting::IfOthersWrote => (message.filter(|_| upto.is_some()), upto),
        Quoting::Yes => (message, None),
    }
}

impl Bot {
    pub(super) async fn send_content(
        &self,
        to: &Destination,
        content: &Content,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let channel = self.address(to).await?;
        let sent = match self.create(channel, content, ticket).await {
            Err(error) if is_asleep(&error) => {
                self.reopen(channel).await?;
                self.create(channel, content, ticket).await
            }
            created => created,
        };
        self.sent(channel, to, sent)
    }

    pub(super) fn sent(
        &self,
        channel: DiscordId,
        to: &Destination,
        sent: Result<Value, ApiError>,
    ) -> Result<MessageId, SendError> {
        match sent {
            Ok(sent) => {
                self.refused_channels.forget(channel);
                let id = id_in(&sent, "id")
                    .ok_or_else(|| SendError::Unknown("Discord gave the message no id".into()))?;
                Ok(MessageId(id.to_string()))
            }
            Err(error) => Err(self.send_error(channel, to, error)),
        }
    }

    async fn create(
        &self,
        channel: DiscordId,
        content: &Content,
        ticket: &Ticket,
    ) -> Result<Value, ApiError> {
        let path = format!("/channels/{channel}/messages");
        match content {
            Content::Message {
                text,
                quote,
                if_others_wrote_after,
                components,
            } => {
                let is_clear =
                    if_others_wrote_after.is_some_and(|last| !self.newest.is_after(&channel, last));
                let message = quote.iter().filter(|_| !is_clear).fold(
                    new_message(self.style, text, ticket),
                    |message, quote| {
                        let reference = MessageReference::new(
                            MessageReferenceKind::Default,
                            serenity_channel(channel),
                        );
                        let quoted = reference
                            .message_id(SerenityMessageId::new(quote.0.max(1)))
                            .fail_if_not_exists(false);
                        message.reference_message(quoted)
                    },
                );
                self.api
                    .call(Call::post(
                        path,
                        with_components(body(&message), components),
                    ))
                    .await
            }
            Content::File { markdown } => {
                let content = upload::Content::Text(markdown.clone());
                let file = FileToSend {
                    name: ANSWER_FILE,
                    media_type: ANSWER_TYPE,
                    content,
                };
                self.api
                    .upload(
                        Call::post(path, body(&new_message(self.style, WHOLE_ANSWER, ticket))),
                        file,
                    )
                    .await
            }
        }
    }

    /// The channel of a place. Private chats have a channel of their own.
    pub(super) async fn address(&self, to: &Destination) -> Result<DiscordId, SendError> {
        let channel = match to.place() {
            SessionKey::DiscordDm { user } => {
                let opened = self.directory.private(&self.api, *user).await;
                opened.map_err(|error| before_sending(self.send_error(*user, to, error)))?
            }
            SessionKey::DiscordChannel { channel, .. } => *channel,
            SessionKey::DiscordThread { thread, .. } => *thread,
            other => return Err(SendError::Refused(format!("{other} is not on Discord"))),
        };
        match self.refused_channels.left_alone(channel) {
            Some(loss) => Err(SendError::PlaceLost(loss)),
            None => Ok(channel),
        }
    }

    /// Unarchives a thread. A locked thread stays closed, even if the bot has the permission to
    /// open threads.
    pub(super) async fn reopen(&self, thread: DiscordId) -> Result<(), SendError> {
        let locked = || {
            self.refused_channels.note(thread, PlaceLoss::ThreadLocked);
            Err(SendError::PlaceLost(PlaceLoss::ThreadLocked))
        };
        if self
            .directory
            .get(thread)
            .is_some_and(|known| known.is_locked)
        {
            return locked();
        }
        let call = Call::patch(format!("/channels/{thread}"), json!({ "archived": false }));
        match self.api.call::<Value>(call).await {
            Ok(raw) => {
                self.directory.learn(&raw, None);
                Ok(())
            }
            Err(ApiError::Answered {
                status: 400 | 403, ..
            }) => locked(),
            Err(error) => Err(before_sending(plain_error(error))),
        }
    }

    pub(super) fn send_error(
        &self,
        channel: DiscordId,
        to: &Destination,
        error: ApiError,
    ) -> SendError {
        match loss(to, &error) {
            Some(loss) => {
                self.refused_channels.note(channel, loss);
                SendError::PlaceLost(loss)
            }
            None => plain_error(error),
        }
    }
}

/// Discord archives a thread after some time of silence.
pub(super) fn is_asleep(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::Answered {
            code: codes::THREAD_ARCHIVED,
            ..
        }
    )
}

fn loss(to: &Destination, error: &ApiError) -> Option<PlaceLoss> {
    let ApiError::Answered {
        status: status @ (400 | 403 | 404),
        code,
        ..
    } = error
    else {
        return None;
    };
    match *code {
        codes::CANNOT_DM | codes::NO_COMMON_SERVER => Some(PlaceLoss::DmsClosed),
        codes::UNKNOWN_CHANNEL => Some(PlaceLoss::ChannelGone),
        codes::NO_ACCESS => Some(PlaceLoss::NotSeen),
        codes::NO_PERMISSION => Some(PlaceLoss::MayNotWrite),
        codes::THREAD_LOCKED | codes::THREAD_ARCHIVED => Some(PlaceLoss::ThreadLocked),
        _ if *status == 403 && to.place().is_private() => Some(PlaceLoss::DmsClosed),
        _ if *status == 403 => Some(PlaceLoss::MayNotWrite),
        _ => None,
    }
}

pub(super) fn plain_error(error: ApiError) -> SendError {
    let text = error.to_string();
    match error {
        ApiError::TooFast(wait) => SendError::RetryAfter(wait),
        ApiError::Answered {
            status: 404,
            code: codes::UNKNOWN_MESSAGE,
            ..
        } => SendError::Gone,
        // A 401 is about the token: the answer waits for a valid token.
        ApiError::Answered { status: 401, .. } | ApiError::NotReached(_) => {
            SendError::NotSent(text)
        }
        // An error of Discord, or of a proxy in front, may come after the message was taken.
        ApiError::Answered { status: 500.., .. }
        | ApiError::InBetween { .. }
        | ApiError::NoAnswer(_) => SendError::Unknown(text),
        ApiError::Answered { .. } => SendError::Refused(text),
    }
}

/// For calls before the message itself: without them the message was surely not sent.
fn before_sending(error: SendError) -> SendError {
    match error {
        SendError::Unknown(text) => SendError::NotSent(text),
        other => other,
    }
}

/// The nonce makes a second try of the same message no second message.
pub(super) fn new_message(style: Answers, content: &str, ticket: &Ticket) -> CreateMessage {
    let message = CreateMessage::new()
        .content(content)
        .allowed_mentions(nobody());
    let message = message
        .nonce(Nonce::String(ticket.0.clone()))
        .enforce_nonce(true);
    if style.link_previews {
        message
    } else {
        message.flags(MessageFlags::SUPPRESS_EMBEDS)
    }
}

pub(super) fn changed_message(style: Answers, content: &str) -> EditMessage {
    let message = EditMessage::new()
        .content(content)
        .allowed_mentions(nobody());
    if style.link_previews {
        message
    } else {
        message.suppress_embeds(true)
    }
}

pub(super) fn with_components(mut message: Value, components: &[Value]) -> Value {
    if !components.is_empty() {
        message["components"] = components.into();
    }
    message
}

/// Texts of models may contain `@everyone`. The mention is shown, and pings no person.
fn nobody() -> CreateAllowedMentions {
    CreateAllowedMentions::new().replied_user(false)
}

/// serenity writes an empty list of attachments. To Discord an empty list means "no attachments",
/// so the field is removed.
pub(super) fn body(message: &impl Serialize) -> Value {
    let mut body = serde_json::to_value(message).expect("texts and numbers are JSON");
    if let Some(fields) = body.as_object_mut() {
        fields.remove("attachments");
    }
    body
}

fn serenity_channel(channel: DiscordId) -> ChannelId {
    // Zero is no id, and serenity would panic.
    ChannelId::new(channel.0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: &str, status: u16, code: u64, expected: &str) {
        let to = Destination::stored(place.parse().unwrap());
        let error = ApiError::Answered {
            status,
            code,
            message: "words".into(),
        };
        let found = loss(&to, &error).map_or_else(
            || format!("{:?}", plain_error(error)),
            |loss| loss.to_string(),
        );
        assert!(
            found.starts_with(expected),
            "{place} {status} {code}: {found}"
        );
    }

    #[test]
    fn every_refusal_has_a_meaning() {
        let (channel, dm) = ("discord:channel:5", "discord:dm:5");
        check(channel, 404, 10003, "the channel is gone");
        check(channel, 404, 10008, "Gone");
        check(channel, 403, 50001, "I may not see");
        check(channel, 403, 50013, "I may not write");
        check(channel, 403, 0, "I may not write");
        check("discord:thread:5:6", 400, 50083, "the thread is locked");
        check("discord:thread:5:6", 403, 160_005, "the thread is locked");
        check(dm, 403, 50007, "this person takes no");
        check(dm, 400, 50007, "this person takes no");
        check(channel, 401, 0, "NotSent");
        check(channel, 500, 0, "Unknown");
        check(channel, 503, 0, "Unknown");
        check(channel, 400, 50035, "Refused");
    }

    #[test]
    fn whatever_is_sent_pings_nobody() {
        let ticket = Ticket("o1-2".into());
        let sent = body(&new_message(Answers::default(), "@everyone", &ticket));
        let changed = body(&changed_message(Answers::default(), "@everyone"));
        for message in [&sent, &changed] {
            assert_eq!(
                message["allowed_mentions"],
                json!({ "parse": [], "users": [], "roles": [], "replied_user": false })
            );
            assert_eq!(message["flags"], 4);
            assert_eq!(
                message.get("attachments"),
                None,
                "an edit without a list leaves files as they are"
            );
        }
        assert_eq!(
            (&sent["nonce"], &sent["enforce_nonce"]),
            (&json!("o1-2"), &json!(true))
        );
        let previews = Answers {
            link_previews: true,
            ..Answers::default()
        };
        assert_eq!(
            body(&new_message(previews, "x", &ticket)).get("flags"),
            None
        );
    }
}
