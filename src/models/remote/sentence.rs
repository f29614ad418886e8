//! What a provider says about its error, without keys. Pure.
//!
//! Providers name their errors in free text, with keys and prompts among the words. Only the field
//! with the message is taken. Words of the request leave in `models::quotes`.

use serde_json::Value;

use super::bounds::within_values;
use crate::printable::printable_line;

/// The longest error page without fields that is taken for a sentence, in bytes.
const MAX_PLAIN_BYTES: usize = 300;
/// Enough to find quotes of the request in it, in characters.
const MAX_CHARS: usize = 2_000;
/// Longer words with a digit look like a key.
const LONGEST_WORD: usize = 19;
const HIDDEN: &str = "***";

/// The provider's sentence in the body of an error, if there is any.
pub(super) fn sentence(body: &str, key: Option<&str>) -> Option<String> {
    cleaned(&message(body)?, key)
}

/// A text without keys, in one line.
pub(super) fn cleaned(said: &str, key: Option<&str>) -> Option<String> {
    let said: String = said.chars().take(MAX_CHARS).collect();
    let said = match key.filter(|key| !key.is_empty()) {
        Some(key) => said.replace(key, HIDDEN),
        None => said,
    };
    let line = printable_line(&said);
    let words: Vec<String> = line.split_whitespace().map(without_secret).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The field with the message, in the forms that servers use. A page that is no JSON says
/// something only if it is short and no HTML.
fn message(body: &str) -> Option<String> {
    let is_json = within_values(body).is_ok();
    let Some(value) = is_json
        .then(|| serde_json::from_str::<Value>(body).ok())
        .flatten()
    else {
        let line = body.trim();
        let is_page = line.starts_with(['<', '{', '[']) || line.len() > MAX_PLAIN_BYTES;
        return (!is_page && !line.is_empty()).then(|| line.to_owned());
    };
    const FIELDS: &[&str] = &[
        "/error/message",
        "/response/error/message",
        "/0/error/message",
        "/message",
        "/error",
        "/detail/0/msg",
        "/detail",
    ];
    FIELDS
        .iter()
        .find_map(|field| value.pointer(field)?.as_str())
        .map(str::to_owned)
}

/// Keys have prefixes, or are long words with digits.
fn without_secret(word: &str) -> String {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let has_prefix = ["sk-", "sk_", "gsk_", "xai-", "AIza", "key-"]
        .iter()
        .any(|prefix| bare.starts_with(prefix));
    let is_long =
        bare.chars().count() > LONGEST_WORD && bare.contains(|c: char| c.is_ascii_digit());
    // An address has no secrets besides its query.
    let is_address = bare.contains("://") && !bare.contains(['?', '@']);
    let is_model = bare.contains('-') && bare.chars().all(|c| !c.is_uppercase()) && !has_prefix;
    match has_prefix || (is_long && !is_address && !is_model) {
        true => word.replace(bare, HIDDEN),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    fn said(body: &str) -> String {
        sentence(body, Some("hunter2-secret")).unwrap_or_else(|| "nothing".into())
    }

    #[test]
    fn the_message_is_found_in_every_form() {
        assert_snapshot!(said(r#"{"error":{"message":"No such model."}}"#), @"No such model.");
        assert_snapshot!(said(r#"{"error":"model not found, try pulling it"}"#), @"model not found, try pulling it");
        assert_snapshot!(said(r#"{"message":"Unauthorized"}"#), @"Unauthorized");
        assert_snapshot!(said(r#"{"detail":[{"msg":"field required"}]}"#), @"field required");
        assert_snapshot!(said(r#"[{"error":{"message":"quota"}}]"#), @"quota");
        assert_snapshot!(said("upstream connect error"), @"upstream connect error");
        assert_snapshot!(said("<html>nginx</html>"), @"nothing");
        assert_snapshot!(said(r#"{"error":{"code":3}}"#), @"nothing");
        assert_snapshot!(said(""), @"nothing");
        assert_eq!(said("{\"message\":\"a\\u001b[31mb\\nc\"}"), "a[31mb c");
    }

    #[test]
    fn keys_are_hidden() {
        let said = |text: &str| said(&json!({"error": {"message": text}}).to_string());
        assert_snapshot!(said("Incorrect API key provided: sk-proj-abc123. Get one."), @"Incorrect API key provided: ***. Get one.");
        assert_snapshot!(said("bad key 'hunter2-secret'"), @"bad key '***'");
        assert_snapshot!(said("token A1b2C3d4E5f6G7h8I9j0K1 refused"), @"token *** refused");
        assert_snapshot!(said("The model `claude-sonnet-4-5-20250929` is unknown"), @"The model `claude-sonnet-4-5-20250929` is unknown");
        assert_snapshot!(said("See https://platform.openai.com/account/api-keys-2 for help"), @"See https://platform.openai.com/account/api-keys-2 for help");
    }
}
