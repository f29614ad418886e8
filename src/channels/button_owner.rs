//! Buttons for one person: in a group where each member has a conversation of their own, a message
//! with buttons belongs to one member, and a press by another must not change it.

use super::Choice;
use crate::domain::SessionKey;

/// Shown to a person who presses a button of somebody else.
pub(super) const NOT_YOURS: &str =
    "These buttons are for somebody else. Write the command yourself.";

/// Commands whose buttons anybody may press: the row of the approval says who decides.
const FOR_ANYBODY: [&str; 2] = ["/approve ", "/refuse "];

/// The choices as the buttons of a place carry them: `@<person> /agent rose` for one member of a
/// group, else the command alone.
pub(super) fn marked(place: &SessionKey, choices: &[Choice]) -> Vec<Choice> {
    let owner = match place {
        SessionKey::TelegramGroup { member, .. } => member.map(|member| member.to_string()),
        SessionKey::DiscordChannel { member, .. } => member.map(|member| member.to_string()),
        _ => None,
    };
    let mark = |choice: &Choice| Choice {
        label: choice.label.clone(),
        command: match &owner {
            Some(owner) if !is_for_anybody(&choice.command) => {
                format!("@{owner} {}", choice.command)
            }
            _ => choice.command.clone(),
        },
    };
    choices.iter().map(mark).collect()
}

fn is_for_anybody(command: &str) -> bool {
    FOR_ANYBODY.iter().any(|known| command.starts_with(known))
}

/// The command of a button, for the person who presses it. None where the button is for another
/// person.
pub(super) fn command_for<'a>(person: &str, carried: &'a str) -> Option<&'a str> {
    match carried.strip_prefix('@') {
        Some(marked) => {
            let (owner, command) = marked.split_once(' ')?;
            (owner == person).then_some(command)
        }
        None => Some(carried),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_in_a_members_conversation_is_for_that_member() {
        let carried = |place: &str| {
            let choice = Choice {
                label: "Rose".into(),
                command: "/agent rose".into(),
            };
            let place = place.parse().expect("a place");
            marked(&place, &[choice]).remove(0).command
        };
        let check = |place: &str, person: &str, is_for: bool| {
            let (carried, expected) = (carried(place), is_for.then_some("/agent rose"));
            assert_eq!(command_for(person, &carried), expected, "{place} {person}");
        };
        check("telegram:group:-1001:111", "111", true);
        check("telegram:group:-1001:111", "222", false);
        check("telegram:group:-1001", "222", true);
        check("telegram:topic:-1001:101", "222", true);
        check("telegram:dm:111", "111", true);
        assert_eq!(command_for("1", "@1"), None, "torn");
        let place = "telegram:group:-1001:111".parse().expect("a place");
        let allow = Choice {
            label: "Allow".into(),
            command: "/approve 7".into(),
        };
        let carried = marked(&place, &[allow]).remove(0).command;
        assert_eq!(command_for("222", &carried), Some("/approve 7"));
    }
}
