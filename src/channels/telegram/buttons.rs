//! Buttons under a message. A pressed button takes the same way as its command in writing.

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;

use super::address::Address;
use super::api::{Api, Done};
use crate::channels::{AppButton, Choice};
use crate::signing::Signer;

/// Telegram's limit for the data of a button.
const MAX_DATA_BYTES: usize = 64;
const BUTTONS_PER_ROW: usize = 2;
/// More would not fit on a screen; the text lists them all.
const MOST_BUTTONS: usize = 20;

/// A button in the Bot API's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Button {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback_data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    web_app: Option<WebApp>,
}

/// A page that Telegram opens as a Mini App: <https://core.telegram.org/bots/api#webappinfo>.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WebApp {
    url: String,
}

/// A row with a button that opens a Mini App. Telegram has such buttons in private chats only.
pub(super) fn app_row(address: Address, app: &AppButton) -> Option<Vec<Button>> {
    (address.chat_id > 0).then(|| {
        vec![Button {
            text: app.label.clone(),
            callback_data: None,
            web_app: Some(WebApp {
                url: app.url.clone(),
            }),
        }]
    })
}

/// Rows of buttons. A command too long for a button can still be written.
pub(super) fn keyboard(signer: &Signer, address: Address, choices: &[Choice]) -> Vec<Vec<Button>> {
    let button = |choice: &Choice| {
        let callback_data = format!(
            "{}{}",
            signer.tag(&signed(address, &choice.command)),
            choice.command
        );
        (callback_data.len() <= MAX_DATA_BYTES).then(|| Button {
            text: choice.label.clone(),
            callback_data: Some(callback_data),
            web_app: None,
        })
    };
    let buttons: Vec<Button> = choices
        .iter()
        .filter_map(button)
        .take(MOST_BUTTONS)
        .collect();
    buttons
        .chunks(BUTTONS_PER_ROW)
        .map(<[Button]>::to_vec)
        .collect()
}

/// The command of a pressed button; none for a button not made by us for this place.
pub(super) fn pressed<'a>(signer: &Signer, address: Address, data: &'a str) -> Option<&'a str> {
    let tag_chars = signer.tag("").len();
    let (tag, command) = (data.get(..tag_chars)?, data.get(tag_chars..)?);
    signer
        .accepts(&signed(address, command), tag)
        .then_some(command)
}

/// The place is signed too, so that a button does not count elsewhere.
fn signed(address: Address, command: &str) -> String {
    format!(
        "{}:{}:{command}",
        address.chat_id,
        address.message_thread_id.unwrap_or(0)
    )
}

/// A pressed button. Telegram waits for an answer.
pub(super) struct Press {
    pub(super) query_id: String,
    /// Why the press does not count: the button was not made by us, or was made for another place or
    /// person.
    pub(super) refusal: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct AnswerCallbackQuery {
    callback_query_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Stays until the person closes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    show_alert: bool,
}

impl Payload for AnswerCallbackQuery {
    type Output = Done;
    const NAME: &'static str = "answerCallbackQuery";
}

impl AnswerCallbackQuery {
    pub(super) fn new(callback_query_id: String, text: Option<&str>) -> Self {
        AnswerCallbackQuery {
            callback_query_id,
            text: text.map(str::to_owned),
            show_alert: false,
        }
    }

    /// Seen by the pressing person alone.
    pub(super) fn pop_up(callback_query_id: String, text: &str) -> Self {
        AnswerCallbackQuery {
            callback_query_id,
            text: Some(cut(text)),
            show_alert: true,
        }
    }

    /// Ends the waiting sign on the button. Telegram refuses a late answer, and no harm is done.
    pub(super) async fn send(self, api: &Api) {
        if let Err(error) = api.call(&self).await {
            tracing::debug!("a button's press was not answered: {error}");
        }
    }
}

/// Telegram's limit for a pop-up.
const MAX_POP_UP_CHARS: usize = 200;

/// Whole words within the limit.
fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_POP_UP_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX_POP_UP_CHARS - 1).collect();
    let words = head
        .rsplit_once(char::is_whitespace)
        .map_or(head.as_str(), |(words, _)| words);
    format!("{words}…")
}

pub(super) const STALE: &str = "This button is from another time. Write the command instead.";

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Address = Address {
        chat_id: -1001,
        message_thread_id: Some(7),
    };

    fn choice(command: &str) -> Choice {
        Choice {
            label: "x".into(),
            command: command.into(),
        }
    }

    #[test]
    fn a_button_counts_in_its_own_place_only() {
        let signer = Signer::new(&[7; 32]);
        let rows = keyboard(&signer, PLACE, &[choice("/agent rose")]);
        let data = rows[0][0].callback_data.as_deref().expect("a command");
        assert!(data.len() <= MAX_DATA_BYTES);
        assert_eq!(pressed(&signer, PLACE, data), Some("/agent rose"));
        assert_eq!(
            pressed(
                &signer,
                Address {
                    message_thread_id: Some(8),
                    ..PLACE
                },
                data
            ),
            None
        );
        assert_eq!(pressed(&signer, PLACE, &data.replace("rose", "main")), None);
        assert_eq!(pressed(&Signer::new(&[8; 32]), PLACE, data), None);
        for torn in ["", "x", "😀😀😀😀😀", &data[..10]] {
            assert_eq!(pressed(&signer, PLACE, torn), None, "{torn}");
        }
    }

    #[test]
    fn a_pop_up_keeps_within_its_limit() {
        assert_eq!(cut("Only owners."), "Only owners.");
        let long = cut(&"word ".repeat(60));
        assert!(long.chars().count() <= MAX_POP_UP_CHARS, "{long}");
        assert!(long.ends_with("word…"), "{long}");
        assert_eq!(cut(&"é".repeat(300)).chars().count(), MAX_POP_UP_CHARS);
    }

    #[test]
    fn a_command_that_does_not_fit_has_no_button() {
        let signer = Signer::new(&[7; 32]);
        let long = choice(&format!("/agent {}", "x".repeat(64)));
        assert_eq!(
            keyboard(
                &signer,
                PLACE,
                &[
                    long,
                    choice("/agent a"),
                    choice("/agent b"),
                    choice("/agent c")
                ]
            )
            .len(),
            2
        );
    }
}
