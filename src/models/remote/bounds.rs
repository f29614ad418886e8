//! Limits on everything from a model server: a hostile or broken server costs a few megabytes at
//! most.

use crate::models::ModelError;

/// The longest text of an answer.
pub(super) const MAX_TEXT_BYTES: usize = 512 * KB;
/// Thoughts of an answer. People do not see them, but Anthropic's are kept for the next call.
pub(super) const MAX_THOUGHT_BYTES: usize = 2 * MB;
/// Ids, names and arguments of all tool calls of an answer together.
pub(super) const MAX_CALL_BYTES: usize = 512 * KB;
/// The name of a tool. Providers allow 64 letters.
pub(super) const MAX_NAME_BYTES: usize = KB;
/// Tool calls of an answer. A longer list is a model gone wrong.
pub(super) const MOST_CALLS: usize = 64;
/// An event of a stream. Last events of OpenAI Responses repeat the prompt, the tools and the whole
/// answer.
pub(super) const MAX_EVENT_BYTES: usize = 4 * MB;
/// All events of a stream. Each token is wrapped in a few hundred bytes.
pub(super) const MAX_STREAM_BYTES: usize = 128 * MB;
/// JSON values in an event, or in the arguments of a call. A value of two bytes takes a hundred in
/// memory.
const MOST_VALUES: usize = 20_000;
/// The beginning of an error page is enough to know the kind of error.
pub(super) const MAX_ERROR_BYTES: usize = 64 * KB;

const KB: usize = 1024;
const MB: usize = 1024 * KB;

/// An error if there is more than the most. `what` is in the plural or without a number: "text",
/// "tool calls".
pub(super) fn within_bytes(bytes: usize, most: usize, what: &str) -> Result<(), ModelError> {
    let limit = || {
        if most.is_multiple_of(MB) {
            format!("{} MB", most / MB)
        } else {
            format!("{} KB", most / KB)
        }
    };
    if bytes <= most {
        Ok(())
    } else {
        Err(too_much(&limit(), what))
    }
}

pub(super) fn within_count(count: usize, most: usize, what: &str) -> Result<(), ModelError> {
    if count <= most {
        Ok(())
    } else {
        Err(too_much(&most.to_string(), what))
    }
}

fn too_much(limit: &str, what: &str) -> ModelError {
    ModelError::TooMuch(format!("more than {limit} {what}"))
}

/// Counts the values of a JSON text before any of them takes memory.
pub(super) fn within_values(json: &str) -> Result<(), ModelError> {
    // Each value has a byte, so most events need no count.
    if json.len() <= MOST_VALUES {
        return Ok(());
    }
    let (mut values, mut in_string, mut is_escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    within_count(values, MOST_VALUES, "values in one event")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_in_plain_units() {
        let what = |result: Result<(), ModelError>| result.expect_err("one too many").to_string();
        assert_eq!(
            what(within_bytes(MAX_TEXT_BYTES + 1, MAX_TEXT_BYTES, "of text")),
            "the model server sent more than 512 KB of text; it was stopped"
        );
        assert_eq!(
            what(within_bytes(
                MAX_EVENT_BYTES + 1,
                MAX_EVENT_BYTES,
                "in one event"
            )),
            "the model server sent more than 4 MB in one event; it was stopped"
        );
        assert_eq!(
            what(within_count(65, MOST_CALLS, "tool calls")),
            "the model server sent more than 64 tool calls; it was stopped"
        );
        assert_eq!(within_bytes(MAX_TEXT_BYTES, MAX_TEXT_BYTES, ""), Ok(()));
        assert_eq!(within_count(MOST_CALLS, MOST_CALLS, ""), Ok(()));
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        let few = format!(r#"{{"text": "{}"}}"#, r#"[{,\"\\"#.repeat(MOST_VALUES));
        assert_eq!(within_values(&few), Ok(()));
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert!(within_values(&many).is_err());
        let after_a_string = format!(r#"["\\", {}0]"#, "[],".repeat(MOST_VALUES));
        assert!(within_values(&after_a_string).is_err());
    }
}
