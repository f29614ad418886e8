//! Buttons and menus under a message, each for a command that could also be written.

use serde_json::{Value, json};

use super::payload::person;
use crate::channels::discord::directory::id_in;
use crate::channels::{Choice, button_owner};
use crate::domain::{Destination, DiscordId, SessionKey};
use crate::signing::Signer;

/// Discord's limits.
const MAX_PAYLOAD_CHARS: usize = 100;
const MAX_LABEL_CHARS: usize = 80;
const BUTTONS_IN_A_ROW: usize = 5;
/// Discord's limit for a menu; the text of the message lists all choices.
const MOST_IN_A_MENU: usize = 25;

/// The menu's own id. The signed commands are in its choices.
const MENU: &str = "choose";

/// `type` and `style` of components: <https://discord.com/developers/docs/components/reference>
mod kinds {
    pub(super) const ROW: u8 = 1;
    pub(super) const BUTTON: u8 = 2;
    pub(super) const MENU: u8 = 3;
    pub(super) const GREY: u8 = 2;
}

/// The place in which a button is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Or a thread.
    Channel(DiscordId),
    Private(DiscordId),
}

/// A few choices are buttons, more are a menu. Commands above Discord's limit have no button and
/// can be written.
pub(super) fn components(signer: &Signer, to: &Destination, choices: &[Choice]) -> Vec<Value> {
    let Some(scope) = scope(to.place()) else {
        return Vec::new();
    };
    let choices = button_owner::marked(to.place(), choices);
    let payload = |choice: &Choice| {
        format!(
            "{}{}",
            signer.tag(&signed(scope, &choice.command)),
            choice.command
        )
    };
    let fitting = choices
        .iter()
        .map(|choice| (shortened(&choice.label), payload(choice)));
    let fitting = fitting.filter(|(_, payload)| payload.chars().count() <= MAX_PAYLOAD_CHARS);
    let fitting: Vec<_> = fitting.take(MOST_IN_A_MENU).collect();
    let button = |(label, payload): &(String, String)| json!({ "type": kinds::BUTTON, "style": kinds::GREY, "label": label, "custom_id": payload });
    let option = |(label, payload): &(String, String)| json!({ "label": label, "value": payload });
    let row: Vec<Value> = match fitting.len() {
        0 => return Vec::new(),
        1..=BUTTONS_IN_A_ROW => fitting.iter().map(button).collect(),
        _ => {
            let options: Vec<Value> = fitting.iter().map(option).collect();
            vec![json!({ "type": kinds::MENU, "custom_id": MENU, "options": options })]
        }
    };
    vec![json!({ "type": kinds::ROW, "components": row })]
}

/// The command behind a press or choice; none without Parlor's signature for this place, or for
/// another person.
pub(crate) fn pressed(signer: &Signer, raw: &Value) -> Option<String> {
    let carried = made_by_us(signer, raw)?;
    let person = person(raw)?.to_string();
    button_owner::command_for(&person, &carried).map(str::to_owned)
}

/// Why a press without a command does not count.
pub(super) fn refusal(signer: &Signer, raw: &Value) -> &'static str {
    match made_by_us(signer, raw) {
        Some(_) => button_owner::NOT_YOURS,
        None => STALE,
    }
}

const STALE: &str = "This button is from another time. Write the command instead.";

fn made_by_us(signer: &Signer, raw: &Value) -> Option<String> {
    let data = &raw["data"];
    let payload = data["values"][0]
        .as_str()
        .or_else(|| data["custom_id"].as_str())?;
    let scope = match id_in(raw, "guild_id") {
        Some(_) => Scope::Channel(id_in(raw, "channel_id")?),
        None => Scope::Private(person(raw)?),
    };
    signed_command(signer, scope, payload).map(str::to_owned)
}

fn signed_command<'a>(signer: &Signer, scope: Scope, payload: &'a str) -> Option<&'a str> {
    let tag_chars = signer.tag("").len();
    let (tag, command) = (payload.get(..tag_chars)?, payload.get(tag_chars..)?);
    signer
        .accepts(&signed(scope, command), tag)
        .then_some(command)
}

fn scope(place: &SessionKey) -> Option<Scope> {
    match place {
        SessionKey::DiscordDm { user } => Some(Scope::Private(*user)),
        SessionKey::DiscordChannel { channel, .. } => Some(Scope::Channel(*channel)),
        SessionKey::DiscordThread { thread, .. } => Some(Scope::Channel(*thread)),
        _ => None,
    }
}

fn signed(scope: Scope, command: &str) -> String {
    match scope {
        Scope::Channel(channel) => format!("discord:{channel}:{command}"),
        Scope::Private(person) => format!("discord:dm:{person}:{command}"),
    }
}

fn shortened(label: &str) -> String {
    label.chars().take(MAX_LABEL_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(count: usize) -> Vec<Choice> {
        (0..count)
            .map(|number| Choice {
                label: format!("{number}"),
                command: format!("/agent a{number}"),
            })
            .collect()
    }

    fn to(place: &str) -> Destination {
        Destination::stored(place.parse().unwrap())
    }

    #[test]
    fn a_button_counts_in_its_own_place_only() {
        let signer = Signer::new(&[7; 32]);
        let row = &components(&signer, &to("discord:thread:5:6"), &choices(1))[0];
        let payload = row["components"][0]["custom_id"].as_str().unwrap();
        assert_eq!(
            signed_command(&signer, Scope::Channel(DiscordId(6)), payload),
            Some("/agent a0")
        );
        assert_eq!(
            signed_command(&signer, Scope::Channel(DiscordId(5)), payload),
            None
        );
        assert_eq!(
            signed_command(&signer, Scope::Private(DiscordId(6)), payload),
            None
        );
        assert_eq!(
            signed_command(
                &signer,
                Scope::Channel(DiscordId(6)),
                &payload.replace("a0", "a1")
            ),
            None
        );
        for torn in ["", "x", "😀😀😀😀😀", &payload[..10]] {
            assert_eq!(
                signed_command(&signer, Scope::Channel(DiscordId(6)), torn),
                None,
                "{torn}"
            );
        }
    }

    #[test]
    fn many_choices_become_a_menu_and_long_ones_are_left_out() {
        let signer = Signer::new(&[7; 32]);
        let made = |choices: &[Choice]| components(&signer, &to("discord:dm:5"), choices);
        assert_eq!(made(&[]), Vec::<Value>::new());
        assert_eq!(
            made(&choices(5))[0]["components"].as_array().unwrap().len(),
            5
        );
        let menu = &made(&choices(40))[0]["components"];
        assert_eq!(
            (
                menu.as_array().unwrap().len(),
                menu[0]["options"].as_array().unwrap().len()
            ),
            (1, 25)
        );
        let long = Choice {
            label: "x".repeat(200),
            command: format!("/agent {}", "x".repeat(100)),
        };
        assert_eq!(made(&[long]), Vec::<Value>::new());
    }
}
