//! The HTTP request of a model call, without its body.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::classify::malformed;
use crate::config::{Provider, ProviderKind, Reasoning, Secret};
use crate::models::ModelError;

/// The last event of OpenAI's streams, and of others that follow OpenAI.
pub(super) const DONE: &str = "[DONE]";

const ANTHROPIC_VERSION: &str = "2023-06-01";

/// OpenAI's words.
pub(super) fn effort(reasoning: Reasoning) -> &'static str {
    match reasoning {
        Reasoning::None => "none",
        Reasoning::Low => "low",
        Reasoning::Medium => "medium",
        Reasoning::High => "high",
    }
}

pub(super) fn address(provider: &Provider, model: &str) -> Result<Url, ModelError> {
    let mut url = Url::parse(&provider.base_url).map_err(|_| malformed())?;
    let path = match provider.kind {
        ProviderKind::OpenAi => "chat/completions".to_owned(),
        ProviderKind::OpenAiResponses => "responses".to_owned(),
        ProviderKind::Anthropic => "messages".to_owned(),
        ProviderKind::Gemini => format!("models/{model}:streamGenerateContent"),
        ProviderKind::Ollama => "api/chat".to_owned(),
    };
    url.set_path(&format!("{}{path}", url.path()));
    if provider.kind == ProviderKind::Gemini {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    Ok(url)
}

pub(super) fn headers(provider: &Provider) -> Result<HeaderMap, ModelError> {
    let mut headers =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    if provider.kind == ProviderKind::Anthropic {
        headers.insert(
            HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(ANTHROPIC_VERSION),
        );
    }
    if let Some(key) = &provider.api_key {
        let (name, value) = key_header(provider.kind, key);
        let mut value = HeaderValue::from_str(&value).map_err(|_| malformed())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn key_header(kind: ProviderKind, key: &Secret) -> (HeaderName, String) {
    let key = key.expose();
    match kind {
        // An Ollama behind a proxy may want a key.
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Ollama => {
            (AUTHORIZATION, format!("Bearer {key}"))
        }
        ProviderKind::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        ProviderKind::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ProviderLines, Vision};

    fn provider(kind: ProviderKind, base_url: &str, key: Option<&str>) -> Provider {
        Provider {
            kind,
            base_url: base_url.to_owned(),
            api_key: key.map(Secret::new),
            proxy: None,
            prices: Default::default(),
            models: Vec::new(),
            vision: Vision::ByName,
            context_tokens: None,
            missing_key: None,
            lines: ProviderLines::default(),
        }
    }

    #[test]
    fn addresses_are_joined_to_the_base() {
        let check = |kind, base_url, model, expected: &str| {
            let url = address(&provider(kind, base_url, None), model).expect("an address");
            assert_eq!(url.as_str(), expected);
        };
        let base = "https://example.org/v1/";
        check(
            ProviderKind::OpenAi,
            base,
            "a",
            "https://example.org/v1/chat/completions",
        );
        check(
            ProviderKind::OpenAiResponses,
            base,
            "a",
            "https://example.org/v1/responses",
        );
        check(
            ProviderKind::Anthropic,
            base,
            "a",
            "https://example.org/v1/messages",
        );
        check(
            ProviderKind::Ollama,
            "http://localhost:11434/",
            "a",
            "http://localhost:11434/api/chat",
        );
        let stream = "https://example.org/v1/models/gemini-3-pro:streamGenerateContent?alt=sse";
        check(ProviderKind::Gemini, base, "gemini-3-pro", stream);
        check(
            ProviderKind::Gemini,
            base,
            "a?b#c",
            "https://example.org/v1/models/a%3Fb%23c:streamGenerateContent?alt=sse",
        );
        assert_eq!(
            address(&provider(ProviderKind::OpenAi, "nowhere", None), "a"),
            Err(malformed())
        );
    }

    #[test]
    fn keys_stay_secret() {
        let headers =
            headers(&provider(ProviderKind::OpenAi, "", Some("hunter2"))).expect("headers");
        assert_eq!(headers[AUTHORIZATION], "Bearer hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"));
        assert_eq!(
            super::headers(&provider(ProviderKind::Gemini, "", Some("a\nb"))),
            Err(malformed())
        );
        let none = super::headers(&provider(ProviderKind::Anthropic, "", None)).expect("headers");
        assert_eq!(none.len(), 2, "no key, no header for it: {none:?}");
    }
}
