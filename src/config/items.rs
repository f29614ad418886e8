//! Reads the items of lists: people, and names of agents, tools and other things.

use super::reader::{Value, whole_number, wrong_type};
use super::{Problem, Spanned, odd_characters};
use crate::domain::PersonId;

/// A name, as of a tool or an agent. Whether the name exists is checked elsewhere.
pub(super) fn name(value: &Value<'_>, subject: &str) -> Result<Spanned<String>, Problem> {
    match value.get_ref().as_str() {
        Some(text) => Ok(Spanned {
            value: text.to_owned(),
            span: value.span(),
        }),
        None => Err(wrong_type(subject, value, "text in quotes")),
    }
}

/// A person's id.
pub(super) fn person(value: &Value<'_>) -> Result<PersonId, Problem> {
    let Some(text) = value.get_ref().as_str() else {
        let number = whole_number(value.get_ref()).map(|number| number.to_string());
        let advice = person_advice(&number.unwrap_or_default());
        return Err(wrong_type("a person's id", value, "text in quotes").help(advice));
    };
    text.parse().map_err(|()| {
        let written = Spanned {
            value: text.to_owned(),
            span: value.span(),
        };
        if let Some(problem) = odd_characters::refused(&written) {
            return problem;
        }
        Problem::new(value.span(), format!("`{text}` does not name a person"))
            .label("not a person's id")
            .help(person_advice(text))
    })
}

/// The advice to a person who wrote an id in a wrong form.
fn person_advice(text: &str) -> String {
    /// Ids of Discord have 17 digits or more, ids of Telegram fewer.
    const DISCORD_DIGITS: usize = 17;
    let digits = text.rsplit(':').next().unwrap_or_default().trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_discord = text.to_lowercase().starts_with("discord") || digits.len() >= DISCORD_DIGITS;
    let (platform, title) = match is_discord {
        true => ("discord", "Discord"),
        false => ("telegram", "Telegram"),
    };
    if is_number && digits.parse::<u64>().is_ok_and(|id| id > 0) {
        return format!(
            "write `\"{platform}:{digits}\"`, if that is the id on {title}; /whoami in the chat shows it"
        );
    }
    let example = if is_discord {
        "discord:123456789012345678"
    } else {
        "telegram:12345678"
    };
    format!("write the platform and the number, such as `{example}`; /whoami in the chat shows it")
}
