//! Reads the items of lists: people, and names of agents, tools and other things.

use super::reader::{Value, wrong_type};
use super::{Problem, Spanned};
use crate::domain::PersonId;

/// A name, such as that of a tool or an agent. Whether it exists is checked elsewhere.
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
    const ADVICE: &str = "write the platform and the number, such as `telegram:12345678`; /whoami in the chat shows it";
    let Some(text) = value.get_ref().as_str() else {
        return Err(wrong_type("a person's id", value, "text in quotes").help(ADVICE));
    };
    text.parse().map_err(|()| {
        Problem::new(value.span(), format!("`{text}` does not name a person"))
            .label("not a person's id")
            .help(ADVICE)
    })
}
