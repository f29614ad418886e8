//! Brings the answer to where the person waits for it. After a quarter of an hour that is an ordinary message.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::first::FOR_ASKER_ALONE;
use super::read::{First, Handle};
use crate::channels::answer_style::{ANSWER_FILE, ANSWER_TYPE, WHOLE_ANSWER};
use crate::channels::discord::DiscordChannel;
use crate::channels::discord::api::{ApiError, Call, FileToSend};
use crate::channels::discord::directory::id_in;
use crate::channels::discord::parse::sent_at;
use crate::channels::discord::send::{StoredPart, body, changed_message, plain_error, stored, with_components};
use crate::channels::upload::Content;
use crate::channels::{Part, SendError, Text, Ticket};
use crate::domain::{Destination, MessageId, SessionKey};

/// Discord takes answers for so long.
const TOKEN_LIVES: Duration = Duration::from_secs(15 * 60);

/// What Discord says when it takes no more answers: no such message, webhook or interaction, or a token that is too old.
const TOO_LATE: [u64; 4] = [10008, 10015, 10062, 50027];

/// One part of an answer to an interaction.
#[derive(Serialize, Deserialize)]
struct Slip {
    answers: Handle,
    /// Which part it is, from 0.
    number: usize,
    is_for_asker_alone: bool,
    /// As it would be sent to a channel.
    part: String,
}

/// How a part gets to the person.
enum Way {
    /// In the message that says "thinking…".
    InPlaceOfThinking,
    /// In a message that only they see.
    Alone { thinking: Thinking },
    /// As everything else that is said there. It can be told from its repetition, so this way is taken where there is a choice.
    Ordinary,
}

enum Thinking {
    /// Everyone sees it, so it is taken away first.
    MustGo,
    IsGone,
}

impl DiscordChannel {
    /// Makes rendered parts answers, if `to` is waiting for one.
    pub(in crate::channels::discord) fn answering(&self, to: &Destination, text: &Text<'_>, parts: Vec<Part>) -> Vec<Part> {
        let Some(handle) = to.reply().and_then(Handle::open) else { return parts };
        let is_for_asker_alone = text.is_for_asker_alone || handle.first == First::LaterForAskerAlone;
        let slip = |(number, Part(part))| Slip { answers: handle.clone(), number, is_for_asker_alone, part };
        let slips = parts.into_iter().enumerate().map(slip);
        slips.map(|slip| Part(serde_json::to_string(&slip).expect("texts and numbers are JSON"))).collect()
    }

    pub(in crate::channels::discord) async fn send_any(
        &self,
        to: &Destination,
        part: &Part,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let Ok(slip) = serde_json::from_str::<Slip>(&part.0) else { return self.send_part(to, part, ticket).await };
        let plain = Part(slip.part.clone());
        let way = slip.way();
        if matches!(way, Way::Ordinary) {
            return self.send_part(to, &plain, ticket).await;
        }
        // An answer that overtook the first one would be refused.
        self.interactions.first_is_given(slip.answers.id).await;
        let answered =
            if slip.is_too_late(self.api.now_ms()) { None } else { self.answer(&slip, &way, &stored(&plain)?).await? };
        match answered {
            Some(sent) => {
                let id = id_in(&sent, "id").ok_or_else(|| SendError::Unknown("Discord gave the answer no id".into()))?;
                Ok(MessageId(id.to_string()))
            }
            None if slip.is_for_asker_alone => self.send_privately(&slip, &plain, ticket).await,
            None => self.send_part(to, &plain, ticket).await,
        }
    }

    /// None when it is too late.
    async fn answer(&self, slip: &Slip, way: &Way, part: &StoredPart) -> Result<Option<Value>, SendError> {
        let Handle { application, token, .. } = &slip.answers;
        let base = format!("/webhooks/{application}/{token}");
        let original = format!("{base}/messages/@original");
        let answered = match way {
            Way::InPlaceOfThinking => self.hand_over(Call::patch, original, part, 0).await,
            Way::Alone { thinking } => {
                if matches!(thinking, Thinking::MustGo) {
                    // It may be gone already, from an earlier try.
                    drop(self.api.call::<Value>(Call::delete(original)).await);
                }
                self.hand_over(Call::post, base, part, FOR_ASKER_ALONE).await
            }
            Way::Ordinary => return Ok(None),
        };
        match answered {
            Ok(sent) => Ok(Some(sent)),
            Err(ApiError::Answered { code, .. }) if TOO_LATE.contains(&code) => Ok(None),
            Err(error) => Err(plain_error(error)),
        }
    }

    async fn hand_over<C>(&self, call: C, path: String, part: &StoredPart, flags: u64) -> Result<Value, ApiError>
    where
        C: Fn(String, Value) -> Call,
    {
        let text = |content: &str| {
            let mut message = body(&changed_message(self.style, content));
            let others = message["flags"].as_u64().unwrap_or(0);
            if others | flags != 0 {
                message["flags"] = json!(others | flags);
            }
            message
        };
        match part {
            StoredPart::Message { content, components, .. } => {
                self.api.call(call(path, with_components(text(content), components))).await
            }
            StoredPart::File { markdown } => {
                let content = Content::Text(markdown.clone());
                let file = FileToSend { name: ANSWER_FILE, media_type: ANSWER_TYPE, content };
                self.api.upload(call(path, text(WHOLE_ANSWER)), file).await
            }
        }
    }

    /// What was for one person alone is not shown to others because it came late.
    async fn send_privately(&self, slip: &Slip, plain: &Part, ticket: &Ticket) -> Result<MessageId, SendError> {
        let to = Destination::stored(SessionKey::DiscordDm { user: slip.answers.person });
        self.send_part(&to, plain, ticket).await.map_err(|error| match error {
            SendError::PlaceLost(loss) => {
                SendError::Refused(format!("it was for one person alone and came too late for that: {loss}"))
            }
            other => other,
        })
    }
}

/// What only one person sees has no nonce, and so cannot be told from its repetition.
pub(in crate::channels::discord) fn is_for_asker_alone(part: &Part) -> bool {
    serde_json::from_str::<Slip>(&part.0).is_ok_and(|slip| matches!(slip.way(), Way::Alone { .. }))
}

impl Slip {
    fn way(&self) -> Way {
        match (self.answers.first, self.is_for_asker_alone, self.number) {
            (First::Later, false, 0) | (First::LaterForAskerAlone, _, 0) => Way::InPlaceOfThinking,
            (_, false, _) => Way::Ordinary,
            (First::Later, true, 0) => Way::Alone { thinking: Thinking::MustGo },
            (_, true, _) => Way::Alone { thinking: Thinking::IsGone },
        }
    }

    /// By Discord's clock.
    fn is_too_late(&self, now: i64) -> bool {
        let age = now - sent_at(self.answers.id);
        u128::try_from(age).is_ok_and(|age| age > TOKEN_LIVES.as_millis())
    }
}
