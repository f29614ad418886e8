//! Sends to Telegram. The destination alone decides the address.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teloxide::requests::Payload;

use super::address::{Address, address, is_private_topic, thread_to_send};
use super::api::{Api, ApiError, Done};
use super::buttons::{self, AnswerCallbackQuery, Button};
use super::presses::Presses;
use super::render::{self, Entity, EntityKind, Rendered};
use crate::channels::answer_style::{
    ANSWER_FILE, ANSWER_TYPE, Quoting, WHOLE_ANSWER, escaped, is_too_long, quoting,
};
use crate::channels::button_owner;
use crate::channels::upload::{Content, File};
use crate::channels::{Part, PlaceLoss, SendError, Text, newest};
use crate::config::{Answers, Quote};
use crate::domain::{ChatId, Destination, MessageId, TopicId};
use crate::signing::Signer;

/// The content of an outbox row.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredPart {
    /// A whole answer, as a file.
    File {
        markdown: String,
    },
    /// For the person who pressed a button, alone.
    PopUp {
        query: String,
        pop_up: Rendered,
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
        StoredMessage {
            message,
            keyboard: Vec::new(),
            quote: None,
        }
    }
}

/// A message to quote. With its chat, because a group that becomes a supergroup numbers its
/// messages anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Quoted {
    chat_id: i64,
    message_id: i64,
    /// Quoted only if a later message than this was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_others_wrote_after: Option<i64>,
}

/// The first part quotes, and buttons stand under the last. An answer of too many parts becomes its
/// first and a file.
pub(super) fn render(
    signer: &Signer,
    style: Answers,
    to: &Destination,
    text: &Text<'_>,
) -> Vec<Part> {
    let mut rendered = with_speaker(style, text);
    if let (Some(press), true) = (to.reply(), text.is_for_asker_alone)
        && !rendered.is_empty()
    {
        let pop_up = StoredPart::PopUp {
            query: press.0.clone(),
            pop_up: rendered.swap_remove(0),
        };
        return vec![stored(&pop_up)];
    }
    let is_too_long = is_too_long(style, text, rendered.len());
    if is_too_long {
        rendered.truncate(1);
    }
    let last = rendered.len().saturating_sub(1);
    let part = |(number, message)| {
        let choices = if number == last { text.choices } else { &[] };
        let app = text.app.filter(|_| number == last);
        let keyboard = address(to).map(|address| {
            let app = app.and_then(|app| buttons::app_row(address, app));
            let choices = button_owner::marked(to.place(), choices);
            let rows = buttons::keyboard(signer, address, &choices);
            app.into_iter().chain(rows).collect()
        });
        let keyboard: Vec<Vec<Button>> = keyboard.unwrap_or_default();
        let quote = if number == 0 {
            quoted(style.quote, to, text)
        } else {
            None
        };
        StoredPart::Message(StoredMessage {
            message,
            keyboard,
            quote,
        })
    };
    let file = is_too_long.then(|| StoredPart::File {
        markdown: text.markdown.to_owned(),
    });
    let parts = rendered.into_iter().enumerate().map(part).chain(file);
    parts.map(|part| stored(&part)).collect()
}

fn stored(part: &StoredPart) -> Part {
    Part(serde_json::to_string(part).expect("text and numbers are JSON"))
}

fn with_speaker(style: Answers, text: &Text<'_>) -> Vec<Rendered> {
    let rendered = render::render(text.markdown);
    match text
        .speaker
        .filter(|_| style.show_agent && !rendered.is_empty())
    {
        Some(speaker) => render::render(&format!("**{}**\n\n{}", escaped(speaker), text.markdown)),
        None => rendered,
    }
}

fn quoted(quote: Quote, to: &Destination, text: &Text<'_>) -> Option<Quoted> {
    let question = text.answers?;
    let (message_id, chat_id) = (question.message.0.parse().ok()?, address(to)?.chat_id);
    let if_others_wrote_after = match quoting(quote, to, question) {
        Quoting::No => return None,
        Quoting::IfOthersWrote => Some(question.upto.0.parse().ok()?),
        Quoting::Yes => None,
    };
    Some(Quoted {
        chat_id,
        message_id,
        if_others_wrote_after,
    })
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

/// None leaves the preview to Telegram, and Telegram shows a preview.
pub(super) fn link_preview(style: Answers) -> Option<LinkPreviewOptions> {
    (!style.link_previews).then_some(LinkPreviewOptions { is_disabled: true })
}

#[derive(Serialize)]
pub(super) struct InlineKeyboard<'a> {
    pub(super) inline_keyboard: &'a [Vec<Button>],
}

/// The id of a sent message.
#[derive(Deserialize)]
pub(super) struct Sent {
    message_id: Option<i64>,
}

impl Sent {
    /// A pop-up is no message.
    const NOWHERE: Sent = Sent { message_id: None };

    /// Zero when Telegram does not tell the id. The message is there all the same, but cannot be
    /// changed any more.
    pub(super) fn id(&self) -> MessageId {
        MessageId(self.message_id.unwrap_or_default().to_string())
    }
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
    type Output = Done;
    const NAME: &'static str = "sendChatAction";
}

/// The newest message of each chat and topic.
pub(super) type Newest = newest::Newest<Address, i64>;

/// Remembers the newest message of a place, of any person to anybody.
pub(super) fn note_newest(newest: &Newest, update: &Value) {
    let written = &update["message"];
    let (Some(chat_id), Some(message)) = (
        written["chat"]["id"].as_i64(),
        written["message_id"].as_i64(),
    ) else {
        return;
    };
    let thread = written["message_thread_id"]
        .as_i64()
        .filter(|_| written["is_topic_message"] == true);
    let topic = thread
        .and_then(|thread| i32::try_from(thread).ok())
        .map(TopicId);
    newest.note(
        Address {
            chat_id,
            message_thread_id: thread_to_send(chat_id, topic),
        },
        message,
    );
}

/// What came in, as far as it matters for a send.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) newest: &'a Newest,
    pub(super) presses: &'a Presses,
}

pub(super) async fn send(
    api: &Api,
    style: Answers,
    seen: Seen<'_>,
    to: &Destination,
    part: &Part,
) -> Result<MessageId, SendError> {
    let stored: StoredPart =
        serde_json::from_str(&part.0).map_err(|error| SendError::Refused(error.to_string()))?;
    let address = address(to)
        .ok_or_else(|| SendError::Refused(format!("{} is not on Telegram", to.place())))?;
    let sent = match stored {
        StoredPart::Message(mut message) => {
            message.quote.take_if(|quote| {
                quote
                    .if_others_wrote_after
                    .is_some_and(|last| !seen.newest.is_after(&address, last))
            });
            send_message(api, style, address, &message).await
        }
        StoredPart::File { markdown } => send_file(api, address, &markdown).await,
        StoredPart::PopUp { query, pop_up } => {
            if seen.presses.take(&query) {
                let answer = AnswerCallbackQuery::pop_up(query, &pop_up.text);
                match api.call(&answer).await {
                    // Too late for a pop-up, so the words go to the place.
                    Err(ApiError::Answered { code: 400, .. }) => {}
                    shown => return shown.map(|_| Sent::NOWHERE.id()).map_err(send_error),
                }
            }
            send_message(api, style, address, &StoredMessage::plain(pop_up)).await
        }
    };
    sent.map(|sent| sent.id()).map_err(send_error)
}

pub(super) async fn send_message(
    api: &Api,
    style: Answers,
    address: Address,
    stored: &StoredMessage,
) -> Result<Sent, ApiError> {
    match send_styled(api, style, address, stored).await {
        Err(error)
            if is_private_topic(address) && topic_loss(&error) == Some(PlaceLoss::Deleted) =>
        {
            tracing::warn!(
                chat = address.chat_id,
                "Telegram does not know this private topic; sending without it"
            );
            send_styled(
                api,
                style,
                Address {
                    message_thread_id: None,
                    ..address
                },
                stored,
            )
            .await
        }
        sent => sent,
    }
}

async fn send_styled(
    api: &Api,
    style: Answers,
    address: Address,
    stored: &StoredMessage,
) -> Result<Sent, ApiError> {
    let Rendered { text, entities } = &stored.message;
    let send = async |entities: &[Entity]| {
        let reply_markup = (!stored.keyboard.is_empty()).then_some(InlineKeyboard {
            inline_keyboard: &stored.keyboard,
        });
        let quote = stored
            .quote
            .filter(|quote| quote.chat_id == address.chat_id);
        let reply_parameters = quote.map(|quote| ReplyParameters {
            message_id: quote.message_id,
            allow_sending_without_reply: true,
        });
        let link_preview_options = link_preview(style);
        api.call(&SendMessage {
            address,
            text,
            entities,
            reply_markup,
            reply_parameters,
            link_preview_options,
        })
        .await
    };
    match send(entities).await {
        Err(error) if dislikes_style(&error, entities) => send(&hiding(entities)).await,
        sent => sent,
    }
}

/// Whether the plain text is worth another try, because Telegram refused the entities.
pub(super) fn dislikes_style(error: &ApiError, entities: &[Entity]) -> bool {
    let ApiError::Answered {
        code: 400,
        description,
        ..
    } = error
    else {
        return false;
    };
    let is_about_style = STYLE_TROUBLES
        .iter()
        .any(|words| description.to_lowercase().contains(words));
    if is_about_style && !entities.is_empty() {
        tracing::warn!(
            "Telegram did not take how a text is styled, so it goes out plain: {description}"
        );
    }
    is_about_style && !entities.is_empty()
}

/// Telegram's words for unusable entities.
const STYLE_TROUBLES: [&str; 4] = [
    "can't parse entities",
    "can't parse messageentity",
    "entity_",
    "entities_too_long",
];

/// The spoilers among the entities: hidden words must not become readable in a plain text.
pub(super) fn hiding(entities: &[Entity]) -> Vec<Entity> {
    entities
        .iter()
        .filter(|entity| entity.kind == EntityKind::Spoiler)
        .cloned()
        .collect()
}

/// Telegram's words for a bot that may not write in a group.
const MUTE: [&str; 5] = [
    "not enough rights to send",
    "have no rights to send",
    "CHAT_WRITE_FORBIDDEN",
    "CHAT_RESTRICTED",
    "need administrator rights",
];
/// Telegram's words for a bot that is not in a group.
const REMOVED: [&str; 3] = ["bot was kicked", "bot is not a member", "CHANNEL_PRIVATE"];

/// Telegram has no codes for these, only words.
pub(super) fn topic_loss(error: &ApiError) -> Option<PlaceLoss> {
    let told = |words: &[&str]| {
        matches!(error, ApiError::Answered { code: 400 | 403, description, .. }
            if words.iter().any(|words| description.contains(words)))
    };
    match error {
        ApiError::Answered {
            code: 400,
            description,
            ..
        } if description.contains("TOPIC_CLOSED") => Some(PlaceLoss::Closed),
        ApiError::Answered {
            code: 400,
            description,
            ..
        } if description.contains("thread not found") || description.contains("TOPIC_DELETED") => {
            Some(PlaceLoss::Deleted)
        }
        _ if told(&REMOVED) => Some(PlaceLoss::Removed),
        _ if told(&MUTE) => Some(PlaceLoss::Mute),
        _ => None,
    }
}

/// A group that Telegram does not know. In private chats the same words mean that the person never
/// wrote to the bot.
pub(super) fn without_group(to: &Destination, error: SendError) -> SendError {
    match error {
        SendError::Refused(text)
            if text.contains(CHAT_NOT_FOUND) && to.place().telegram_group().is_some() =>
        {
            SendError::PlaceLost(PlaceLoss::NoSuchGroup)
        }
        error => error,
    }
}

/// Telegram's words for a chat that it does not know, or not to this bot.
pub(super) const CHAT_NOT_FOUND: &str = "chat not found";

async fn send_file(api: &Api, address: Address, markdown: &str) -> Result<Sent, ApiError> {
    let content = Content::Text(markdown.to_owned());
    let file = File {
        field: "document",
        name: ANSWER_FILE,
        media_type: ANSWER_TYPE,
        content,
    };
    api.upload(
        &SendDocument {
            address,
            caption: WHOLE_ANSWER,
        },
        file,
    )
    .await
}

pub(super) async fn typing(api: &Api, to: &Destination) -> Result<(), SendError> {
    let Some(address) = address(to) else {
        return Ok(());
    };
    api.call(&SendChatAction {
        address,
        action: "typing",
    })
    .await
    .map(drop)
    .map_err(send_error)
}

pub(super) fn send_error(error: ApiError) -> SendError {
    if let Some(loss) = topic_loss(&error) {
        return SendError::PlaceLost(loss);
    }
    let text = error.to_string();
    match error {
        ApiError::Answered {
            moved_to: Some(chat),
            ..
        } => SendError::Moved(ChatId(chat)),
        ApiError::Answered {
            retry_after: Some(delay),
            ..
        } => SendError::RetryAfter(delay),
        // 401 and 404 are about the token, as when polling: the answer is kept until there is a
        // valid token.
        ApiError::Answered {
            code: 401 | 404 | 429,
            ..
        }
        | ApiError::NotReached(_) => SendError::NotSent(text),
        // An error inside Telegram, or of a proxy on the way, may come after Telegram took the
        // message.
        ApiError::Answered { code: 500.., .. }
        | ApiError::InBetween { .. }
        | ApiError::NoAnswer(_) => SendError::Unknown(text),
        ApiError::Answered { .. } => SendError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_telegram_itself_can_say_that_a_message_was_not_taken() {
        let answered = |code| ApiError::Answered {
            code,
            description: "words".into(),
            retry_after: None,
            moved_to: None,
        };
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
    fn a_bot_without_rights_is_told_from_a_refused_message() {
        let check = |code, description: &str, expected: Option<PlaceLoss>| {
            let error = ApiError::Answered {
                code,
                description: description.into(),
                retry_after: None,
                moved_to: None,
            };
            assert_eq!(topic_loss(&error), expected, "{description}");
        };
        let (mute, removed) = (Some(PlaceLoss::Mute), Some(PlaceLoss::Removed));
        check(
            400,
            "Bad Request: not enough rights to send text messages to the chat",
            mute,
        );
        check(400, "Bad Request: CHAT_WRITE_FORBIDDEN", mute);
        check(400, "Bad Request: have no rights to send a message", mute);
        check(
            403,
            "Forbidden: bot was kicked from the supergroup chat",
            removed,
        );
        check(
            403,
            "Forbidden: bot is not a member of the supergroup chat",
            removed,
        );
        check(403, "Forbidden: bot was blocked by the user", None);
    }

    #[test]
    fn a_name_above_an_answer_is_no_markdown() {
        let style = Answers {
            show_agent: true,
            ..Answers::default()
        };
        let says = |markdown| Text {
            speaker: Some("*_[R]`\\"),
            ..Text::plain(markdown)
        };
        assert_eq!(
            with_speaker(style, &says("- one"))[0].text,
            "*_[R]`\\\n\n• one"
        );
        assert!(
            with_speaker(style, &says("\n")).is_empty(),
            "a name alone is no answer"
        );
    }

    #[test]
    fn only_trouble_with_styles_is_worth_plain_words() {
        let bold = [Entity {
            kind: EntityKind::Bold,
            offset: 0,
            length: 1,
        }];
        let check = |code: u16, description: &str, entities: &[Entity], expected: bool| {
            let error = ApiError::Answered {
                code,
                description: description.into(),
                retry_after: None,
                moved_to: None,
            };
            assert_eq!(
                dislikes_style(&error, entities),
                expected,
                "{code} {description}"
            );
        };
        check(
            400,
            "Bad Request: can't parse entities: unsupported type",
            &bold,
            true,
        );
        check(
            400,
            "Bad Request: can't parse MessageEntity: no offset",
            &bold,
            true,
        );
        check(400, "Bad Request: ENTITY_BOUNDS_INVALID", &bold, true);
        check(400, "Bad Request: can't parse entities", &[], false);
        check(400, "Bad Request: message is too long", &bold, false);
        check(500, "can't parse entities", &bold, false);
        let hidden = Entity {
            kind: EntityKind::Spoiler,
            offset: 2,
            length: 3,
        };
        assert_eq!(hiding(&[bold[0].clone(), hidden.clone()]), [hidden]);
    }
}
