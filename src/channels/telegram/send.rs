//! Sends to Telegram. Where something goes is decided by its destination alone.

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;
use teloxide::types::True;

use super::api::{Api, ApiError};
use super::buttons::{self, Button};
use super::render::{self, Entity, Rendered};
use crate::channels::answers::{ANSWER_FILE, ANSWER_TYPE, WHOLE_ANSWER, escaped, is_too_long, wants_quote};
use crate::channels::upload::{Content, File};
use crate::channels::{Part, PlaceLoss, SendError, Text};
use crate::config::{Answers, Quote};
use crate::domain::{ChatId, Destination, MessageId, SessionKey, TopicId};
use crate::signing::Signer;

/// What the Bot API wants to know about a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Address {
    pub(super) chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_thread_id: Option<i32>,
}

pub(super) fn address(to: &Destination) -> Option<Address> {
    address_of(to.place())
}

/// `None` for a place that is not on Telegram.
pub(super) fn address_of(place: &SessionKey) -> Option<Address> {
    let (chat_id, topic) = match place {
        SessionKey::TelegramDm { user, topic } => (user.0, *topic),
        SessionKey::TelegramTopic { chat, topic } => (chat.0, Some(*topic)),
        SessionKey::TelegramGroup { chat, .. } => (chat.0, None),
        _ => return None,
    };
    // Telegram refuses thread id 1, so General is sent without one.
    let message_thread_id = topic.filter(|topic| chat_id > 0 || *topic != TopicId::GENERAL).map(|topic| topic.0);
    Some(Address { chat_id, message_thread_id })
}

/// What an outbox row keeps of one call.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredPart {
    /// A whole answer, as a file.
    File {
        markdown: String,
    },
    Message(StoredMessage),
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredMessage {
    #[serde(flatten)]
    pub(super) message: Rendered,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) keyboard: Vec<Vec<Button>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quote: Option<Quoted>,
}

impl StoredMessage {
    pub(super) fn plain(message: Rendered) -> Self {
        StoredMessage { message, keyboard: Vec::new(), quote: None }
    }
}

/// A message to quote. With its chat, because a group that becomes a supergroup numbers its messages anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Quoted {
    chat_id: i64,
    message_id: i64,
}

/// The first part quotes, and buttons stand under the last. An answer of too many parts becomes its first and a file.
pub(super) fn render(signer: &Signer, style: Answers, to: &Destination, text: &Text<'_>) -> Vec<Part> {
    let mut rendered = with_speaker(style, text);
    let is_too_long = is_too_long(style, text, rendered.len());
    if is_too_long {
        rendered.truncate(1);
    }
    let last = rendered.len().saturating_sub(1);
    let part = |(number, message)| {
        let choices = if number == last { text.choices } else { &[] };
        let keyboard = address(to).map(|address| buttons::keyboard(signer, address, choices)).unwrap_or_default();
        let quote = if number == 0 { quoted(style.quote, to, text) } else { None };
        StoredPart::Message(StoredMessage { message, keyboard, quote })
    };
    let file = is_too_long.then(|| StoredPart::File { markdown: text.markdown.to_owned() });
    let parts = rendered.into_iter().enumerate().map(part).chain(file);
    parts.map(|part| Part(serde_json::to_string(&part).expect("text and numbers are JSON"))).collect()
}

fn with_speaker(style: Answers, text: &Text<'_>) -> Vec<Rendered> {
    let rendered = render::render(text.markdown);
    match text.speaker.filter(|_| style.show_agent && !rendered.is_empty()) {
        Some(speaker) => render::render(&format!("**{}**\n\n{}", escaped(speaker), text.markdown)),
        None => rendered,
    }
}

fn quoted(quote: Quote, to: &Destination, text: &Text<'_>) -> Option<Quoted> {
    let message_id = text.answers.filter(|_| wants_quote(quote, to, text))?.message.0.parse().ok()?;
    Some(Quoted { chat_id: address(to)?.chat_id, message_id })
}

#[derive(Serialize)]
struct SendMessage<'a> {
    #[serde(flatten)]
    address: Address,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [Entity],
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<InlineKeyboard<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_preview_options: Option<LinkPreviewOptions>,
}

#[derive(Serialize)]
struct ReplyParameters {
    message_id: i64,
    /// The message may be deleted by now.
    allow_sending_without_reply: bool,
}

#[derive(Serialize)]
pub(super) struct LinkPreviewOptions {
    is_disabled: bool,
}

/// None leaves it to Telegram, which shows one.
pub(super) fn link_preview(style: Answers) -> Option<LinkPreviewOptions> {
    (!style.link_previews).then_some(LinkPreviewOptions { is_disabled: true })
}

#[derive(Serialize)]
pub(super) struct InlineKeyboard<'a> {
    pub(super) inline_keyboard: &'a [Vec<Button>],
}

/// The one thing we keep of what Telegram says it sent.
#[derive(Deserialize)]
pub(super) struct Sent {
    pub(super) message_id: i64,
}

impl Payload for SendMessage<'_> {
    type Output = Sent;
    const NAME: &'static str = "sendMessage";
}

#[derive(Serialize)]
struct SendDocument {
    #[serde(flatten)]
    address: Address,
    caption: &'static str,
}

impl Payload for SendDocument {
    type Output = Sent;
    const NAME: &'static str = "sendDocument";
}

#[derive(Serialize)]
struct SendChatAction {
    #[serde(flatten)]
    address: Address,
    action: &'static str,
}

impl Payload for SendChatAction {
    type Output = True;
    const NAME: &'static str = "sendChatAction";
}

pub(super) async fn send(api: &Api, style: Answers, to: &Destination, part: &Part) -> Result<MessageId, SendError> {
    let stored: StoredPart = serde_json::from_str(&part.0).map_err(|error| SendError::Refused(error.to_string()))?;
    let address = address(to).ok_or_else(|| SendError::Refused(format!("{} is not on Telegram", to.place())))?;
    let sent = match &stored {
        StoredPart::Message(message) => send_message(api, style, address, message).await,
        StoredPart::File { markdown } => send_file(api, address, markdown).await,
    };
    sent.map(|sent| MessageId(sent.message_id.to_string())).map_err(send_error)
}

pub(super) async fn send_message(api: &Api, style: Answers, address: Address, stored: &StoredMessage) -> Result<Sent, ApiError> {
    let Rendered { text, entities } = &stored.message;
    let reply_markup = (!stored.keyboard.is_empty()).then_some(InlineKeyboard { inline_keyboard: &stored.keyboard });
    let quote = stored.quote.filter(|quote| quote.chat_id == address.chat_id);
    let reply_parameters = quote.map(|quote| ReplyParameters { message_id: quote.message_id, allow_sending_without_reply: true });
    let link_preview_options = link_preview(style);
    let request = SendMessage { address, text, entities, reply_markup, reply_parameters, link_preview_options };
    match api.call(&request).await {
        Err(error) if is_private_topic(address) && topic_loss(&error) == Some(PlaceLoss::Deleted) => {
            tracing::warn!(chat = address.chat_id, "Telegram does not know this private topic; sending without it");
            api.call(&SendMessage { address: Address { message_thread_id: None, ..address }, ..request }).await
        }
        called => called,
    }
}

/// Private topics come and go with the person's settings, and the chat has nobody else in it. In a group, General would be
/// somebody else's place.
pub(super) fn is_private_topic(address: Address) -> bool {
    address.chat_id > 0 && address.message_thread_id.is_some()
}

/// Telegram has no codes for these, only words.
pub(super) fn topic_loss(error: &ApiError) -> Option<PlaceLoss> {
    match error {
        ApiError::Answered { code: 400, description, .. } if description.contains("TOPIC_CLOSED") => Some(PlaceLoss::Closed),
        ApiError::Answered { code: 400, description, .. }
            if description.contains("thread not found") || description.contains("TOPIC_DELETED") =>
        {
            Some(PlaceLoss::Deleted)
        }
        _ => None,
    }
}

async fn send_file(api: &Api, address: Address, markdown: &str) -> Result<Sent, ApiError> {
    let content = Content::Text(markdown.to_owned());
    let file = File { field: "document", name: ANSWER_FILE, media_type: ANSWER_TYPE, content };
    api.upload(&SendDocument { address, caption: WHOLE_ANSWER }, file).await
}

pub(super) async fn typing(api: &Api, to: &Destination) -> Result<(), SendError> {
    let Some(address) = address(to) else { return Ok(()) };
    api.call(&SendChatAction { address, action: "typing" }).await.map(drop).map_err(send_error)
}

pub(super) fn send_error(error: ApiError) -> SendError {
    if let Some(loss) = topic_loss(&error) {
        return SendError::PlaceLost(loss);
    }
    let text = error.to_string();
    match error {
        ApiError::Answered { moved_to: Some(chat), .. } => SendError::Moved(ChatId(chat)),
        ApiError::Answered { retry_after: Some(delay), .. } => SendError::RetryAfter(delay),
        // 401 and 404 are about the token, as when polling: the answer is kept until there is a valid one.
        ApiError::Answered { code: 401 | 404 | 429, .. } | ApiError::NotReached(_) => SendError::NotSent(text),
        // An error inside Telegram, or of what stands in front of it, may come after the message was taken.
        ApiError::Answered { code: 500.., .. } | ApiError::InBetween { .. } | ApiError::NoAnswer(_) => SendError::Unknown(text),
        ApiError::Answered { .. } => SendError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: &str, expected: &str) {
        let destination = Destination::stored(place.parse().unwrap());
        let written = address(&destination).map(|address| serde_json::to_string(&address).unwrap());
        assert_eq!(written.as_deref().unwrap_or("nowhere"), expected, "{place}");
    }

    #[test]
    fn only_telegram_itself_can_say_that_a_message_was_not_taken() {
        let answered = |code| ApiError::Answered { code, description: "words".into(), retry_after: None, moved_to: None };
        let check = |error: ApiError, expected: &str| {
            let (asked, found) = (error.to_string(), format!("{:?}", send_error(error)));
            assert!(found.starts_with(expected), "{asked}: {found}");
        };
        check(answered(400), "Refused");
        check(answered(403), "Refused");
        check(answered(401), "NotSent");
        check(answered(404), "NotSent");
        check(answered(429), "NotSent");
        check(ApiError::NotReached("refused".into()), "NotSent");
        check(answered(500), "Unknown");
        check(answered(502), "Unknown");
        for code in [302, 403, 404, 413, 429, 500, 502, 504] {
            check(ApiError::InBetween { code }, "Unknown");
        }
        check(ApiError::NoAnswer("cut off".into()), "Unknown");
    }

    #[test]
    fn a_name_above_an_answer_is_no_markdown() {
        let style = Answers { show_agent: true, ..Answers::default() };
        let says = |markdown| Text { speaker: Some("*_[R]`\\"), ..Text::plain(markdown) };
        assert_eq!(with_speaker(style, &says("- one"))[0].text, "*_[R]`\\\n\n• one");
        assert!(with_speaker(style, &says("\n")).is_empty(), "a name alone is no answer");
    }

    #[test]
    fn an_answer_goes_to_the_place_its_key_names() {
        check("telegram:topic:-1001:101", r#"{"chat_id":-1001,"message_thread_id":101}"#);
        check("telegram:topic:-1001:1", r#"{"chat_id":-1001}"#);
        check("telegram:group:-5:7", r#"{"chat_id":-5}"#);
        check("telegram:group:-5", r#"{"chat_id":-5}"#);
        check("telegram:dm:7", r#"{"chat_id":7}"#);
        check("telegram:dm:7:1", r#"{"chat_id":7,"message_thread_id":1}"#);
        check("telegram:dm:7:33", r#"{"chat_id":7,"message_thread_id":33}"#);
        check("local:home", "nowhere");
        check("discord:dm:7", "nowhere");
    }
}
