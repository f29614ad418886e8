//! The models that a server offers, by its own list.

use std::time::Duration;

use serde_json::Value;

use crate::config::{Provider, ProviderKind};
use crate::http;

/// The largest lists of today have half a megabyte.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// Longer lists are cut: a person chooses from them.
const MOST: usize = 200;

/// Asks a server for its models. None for a server that is not there, refuses, or keeps no list.
pub(crate) async fn available(provider: &Provider, patience: Duration) -> Option<Vec<String>> {
    let client = http::through(http::client_builder(), provider.proxy.as_ref());
    let client = client.timeout(patience).build().ok()?;
    let base = provider.base_url.trim_end_matches('/');
    let path = match provider.kind {
        ProviderKind::Ollama => "api/tags",
        _ => "models",
    };
    let mut request = client.get(format!("{base}/{path}"));
    if let Some(key) = &provider.api_key {
        request = match provider.kind {
            ProviderKind::Anthropic => request
                .header("x-api-key", key.expose())
                .header("anthropic-version", "2023-06-01"),
            ProviderKind::Gemini => request.header("x-goog-api-key", key.expose()),
            _ => request.bearer_auth(key.expose()),
        };
    }
    let answer = request.send().await.ok()?;
    let answer = answer.error_for_status().ok()?;
    let list = http::beginning(answer, MAX_LIST_BYTES).await.ok()?;
    Some(names(&serde_json::from_slice(&list).ok()?))
}

/// `data` with ids at OpenAI and Anthropic, `models` with names at Gemini and Ollama.
fn names(list: &Value) -> Vec<String> {
    let entries = list["data"]
        .as_array()
        .or_else(|| list["models"].as_array());
    let name = |entry: &Value| {
        let name = entry["id"].as_str().or_else(|| entry["name"].as_str())?;
        let name = name.strip_prefix("models/").unwrap_or(name);
        let is_plain =
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
        is_plain.then(|| name.to_owned())
    };
    let names = entries.into_iter().flatten().filter_map(name);
    names.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_all_dialects_are_read() {
        let check = |list: Value, expected: &[&str]| assert_eq!(names(&list), expected, "{list}");
        check(
            json!({ "data": [{ "id": "gpt-5.4" }, { "id": "" }, {}] }),
            &["gpt-5.4"],
        );
        check(
            json!({ "models": [{ "name": "models/gemini-3" }] }),
            &["gemini-3"],
        );
        check(
            json!({ "models": [{ "name": "llama3:8b" }] }),
            &["llama3:8b"],
        );
        check(json!({ "models": [{ "name": "two words" }] }), &[]);
        check(json!({}), &[]);
    }
}
