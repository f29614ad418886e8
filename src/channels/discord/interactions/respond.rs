//! Responds to interactions. After a quarter of an hour the response is an ordinary message.
//!
//! <https://discord.com/developers/docs/interactions/receiving-and-responding#followup-messages>

use std::time::Duration;

use serde_json::{Value, json};

use super::callback::EPHEMERAL;
use super::handle::{Acknowledged, Handle};
use crate::channels::answer_style::{ANSWER_FILE, ANSWER_TYPE, WHOLE_ANSWER};
use crate::channels::discord::api::{ApiError, Call, FileToSend};
use crate::channels::discord::bot::Bot;
use crate::channels::discord::directory::id_in;
use crate::channels::discord::parse::sent_at;
use crate::channels::discord::send::{body, changed_message, plain_error, with_components};
use crate::channels::discord::stored_part::{Content, InteractionPart, StoredPart};
use crate::channels::upload;
use crate::channels::{SendError, Text, Ticket};
use crate::domain::{Destination, MessageId, SessionKey};

/// Discord takes responses for so long.
const TOKEN_LIVES: Duration = Duration::from_secs(15 * 60);

/// Discord's codes for a late response: unknown message, webhook or interaction, or an expired
/// token.
const TOO_LATE: [u64; 4] = [10008, 10015, 10062, 50027];

/// The kind of call for a part.
enum Way {
    /// Edits the message "thinking…".
    Original,
    /// An ephemeral follow-up.
    Ephemeral { thinking: Thinking },
    /// An ordinary channel message. Preferred, because its nonce makes a retry safe.
    ChannelMessage,
}

enum Thinking {
    /// The public "thinking…" is deleted first.
    MustGo,
    IsGone,
}

/// Gives each part its address: the waiting interaction of `to`, else the channel.
pub(crate) fn addressed(
    to: &Destination,
    text: &Text<'_>,
    contents: Vec<Content>,
) -> Vec<StoredPart> {
    let Some(handle) = to.reply().and_then(Handle::open) else {
        return contents
            .into_iter()
            .map(|content| StoredPart::Channel { content })
            .collect();
    };
    let is_ephemeral =
        text.is_for_asker_alone || handle.acknowledged == Acknowledged::DeferredEphemeral;
    let part = |(number, content)| InteractionPart {
        handle: handle.clone(),
        number,
        is_ephemeral,
        content,
    };
    contents
        .into_iter()
        .enumerate()
        .map(part)
        .map(StoredPart::Interaction)
        .collect()
}

impl Bot {
    pub(crate) async fn respond(
        &self,
        to: &Destination,
        part: &InteractionPart,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let way = part.way();
        if matches!(way, Way::ChannelMessage) {
            return self.send_content(to, &part.content, ticket).await;
        }
        // Discord refuses a response before the acknowledgement.
        self.interactions.acknowledged(part.handle.id).await;
        let responded = if part.is_too_late(self.api.now_ms()) {
            None
        } else {
            self.respond_in_time(part, &way).await?
        };
        match responded {
            Some(sent) => {
                let id = id_in(&sent, "id")
                    .ok_or_else(|| SendError::Unknown("Discord gave the answer no id".into()))?;
                Ok(MessageId(id.to_string()))
            }
            None if part.is_ephemeral => self.send_privately(part, ticket).await,
            None => self.send_content(to, &part.content, ticket).await,
        }
    }

    /// None when Discord takes no response any more.
    async fn respond_in_time(
        &self,
        part: &InteractionPart,
        way: &Way,
    ) -> Result<Option<Value>, SendError> {
        let Handle {
            application, token, ..
        } = &part.handle;
        let base = format!("/webhooks/{application}/{token}");
        let original = format!("{base}/messages/@original");
        let responded = match way {
            Way::Original => {
                self.hand_over(Call::patch, original, &part.content, 0)
                    .await
            }
            Way::Ephemeral { thinking } => {
                if matches!(thinking, Thinking::MustGo) {
                    // An earlier try may have deleted the message already.
                    drop(self.api.call::<Value>(Call::delete(original)).await);
                }
                self.hand_over(Call::post, base, &part.content, EPHEMERAL)
                    .await
            }
            Way::ChannelMessage => return Ok(None),
        };
        match responded {
            Ok(sent) => Ok(Some(sent)),
            Err(ApiError::Answered { code, .. }) if TOO_LATE.contains(&code) => Ok(None),
            Err(error) => Err(plain_error(error)),
        }
    }

    async fn hand_over<C>(
        &self,
        call: C,
        path: String,
        content: &Content,
        flags: u64,
    ) -> Result<Value, ApiError>
    where
        C: Fn(String, Value) -> Call,
    {
        let message = |text: &str| {
            let mut message = body(&changed_message(self.style, text));
            let others = message["flags"].as_u64().unwrap_or(0);
            if others | flags != 0 {
                message["flags"] = json!(others | flags);
            }
            message
        };
        match content {
            Content::Message {
                text, components, ..
            } => {
                self.api
                    .call(call(path, with_components(message(text), components)))
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
                    .upload(call(path, message(WHOLE_ANSWER)), file)
                    .await
            }
        }
    }

    /// A late ephemeral answer goes to the person's private chat, because the channel must not see
    /// the text.
    async fn send_privately(
        &self,
        part: &InteractionPart,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let to = Destination::stored(SessionKey::DiscordDm {
            user: part.handle.person,
        });
        self.send_content(&to, &part.content, ticket)
            .await
            .map_err(|error| match error {
                SendError::PlaceLost(loss) => SendError::Refused(format!(
                    "it was for one person alone and came too late for that: {loss}"
                )),
                other => other,
            })
    }
}

impl InteractionPart {
    /// Follow-ups have no nonce, so Discord does not recognise a repetition.
    pub(crate) fn has_no_nonce(&self) -> bool {
        matches!(self.way(), Way::Ephemeral { .. })
    }

    fn way(&self) -> Way {
        match (self.handle.acknowledged, self.is_ephemeral, self.number) {
            (Acknowledged::Deferred, false, 0) | (Acknowledged::DeferredEphemeral, _, 0) => {
                Way::Original
            }
            (_, false, _) => Way::ChannelMessage,
            (Acknowledged::Deferred, true, 0) => Way::Ephemeral {
                thinking: Thinking::MustGo,
            },
            (_, true, _) => Way::Ephemeral {
                thinking: Thinking::IsGone,
            },
        }
    }

    /// `now` is by Discord's clock, as the id of the interaction is.
    fn is_too_late(&self, now: i64) -> bool {
        let age = now - sent_at(self.handle.id);
        u128::try_from(age).is_ok_and(|age| age > TOKEN_LIVES.as_millis())
    }
}
