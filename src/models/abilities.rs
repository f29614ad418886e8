//! Abilities of models, as far as the config or their names tell.

use crate::config::{ModelRef, Provider, ProviderKind, Vision};

/// Parts of names of models that see.
const SEEING: &[&str] = &[
    "gpt-4o",
    "gpt-4.1",
    "gpt-4-turbo",
    "gpt-4.5",
    "gpt-5",
    "gpt-6", // OpenAI
    "claude-3",
    "claude-opus",
    "claude-sonnet",
    "claude-haiku", // Anthropic
    "gemini",
    "gemma-3",
    "gemma3",
    "gemma-4",
    "gemma4", // Google
    "llama-4",
    "llama4",
    "pixtral",
    "llava",
    "grok-4", // others
    "vision",
    "-vl",
    "vl-",
    "vl:",
];
/// Beginnings of names of models that see. They are too short to be looked for in the middle of a
/// name.
const SEEING_SERIES: &[&str] = &["o1", "o3", "o4"];
/// Exceptions from both.
const BLIND: &[&str] = &["o1-mini", "o1-preview", "o3-mini", "gpt-5-codex"];

/// Parts of names, and the tokens such models read at once. The first match counts.
const WINDOWS: &[(&str, u32)] = &[
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.5", 128_000),
    ("gpt-4", 8_000),
    ("gpt-3.5", 16_000),
    ("gpt-5", 272_000),
    ("gpt-6", 272_000),
    ("claude", 200_000),
    ("gemini", 1_000_000),
    ("grok", 128_000),
    ("deepseek", 64_000),
    ("mistral-large", 128_000),
    ("llama-4", 128_000),
    ("llama-3.1", 128_000),
    ("llama-3.3", 128_000),
    ("qwen3", 128_000),
];
const WINDOW_OF_SERIES: u32 = 200_000;
/// The window of models with unknown names, and of the demo model.
const UNKNOWN_WINDOW: u32 = 32_000;
/// Ollama loads models with a short window by default, and cuts without a word.
const OLLAMA_WINDOW: u32 = 8_000;

/// Whether a model is shown pictures. The demo model only counts them.
pub(super) fn sees(provider: Option<&Provider>, model: &ModelRef) -> bool {
    match (model, provider) {
        (ModelRef::Demo, _) => true,
        (ModelRef::Of { .. }, None) => false,
        (ModelRef::Of { model, .. }, Some(provider)) => match &provider.vision {
            Vision::All => true,
            Vision::None => false,
            Vision::These(names) => names.contains(model),
            Vision::ByName => sees_by_name(&model.to_lowercase()),
        },
    }
}

fn sees_by_name(name: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    !has(BLIND) && (has(SEEING) || is_of_series(name))
}

/// How many tokens a model reads at once, its answer included.
pub(super) fn window(provider: Option<&Provider>, model: &ModelRef) -> u32 {
    match (model, provider) {
        (ModelRef::Demo, _) | (ModelRef::Of { .. }, None) => UNKNOWN_WINDOW,
        (ModelRef::Of { model, .. }, Some(provider)) => {
            match (provider.context_tokens, provider.kind) {
                (Some(tokens), _) => tokens,
                (None, ProviderKind::Ollama) => OLLAMA_WINDOW,
                (None, _) => window_by_name(&model.to_lowercase()),
            }
        }
    }
}

fn window_by_name(name: &str) -> u32 {
    let known = WINDOWS
        .iter()
        .find(|(part, _)| name.contains(part))
        .map(|(_, tokens)| *tokens);
    let of_series = || is_of_series(name).then_some(WINDOW_OF_SERIES);
    known.or_else(of_series).unwrap_or(UNKNOWN_WINDOW)
}

/// Routers put the maker before the name: `openai/o3`.
fn is_of_series(name: &str) -> bool {
    let own = name.rsplit('/').next().unwrap_or(name);
    SEEING_SERIES
        .iter()
        .any(|series| own == *series || own.starts_with(&format!("{series}-")))
}

/// About how many tokens a text is, rather too many than too few: no two providers count alike.
pub fn estimate_tokens(text: &str) -> usize {
    // Most texts, and found out many bytes at a time.
    if text.is_ascii() {
        return text.len() * 2 / 7 + 1;
    }
    let (plain, other) = characters(text);
    plain * 2 / 7 + other + 1
}

/// How many characters of a text are ASCII, and how many are not. Eight bytes at a time, because a
/// turn estimates every message of its conversation, and their marks are not ASCII.
fn characters(text: &str) -> (usize, usize) {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let (mut high, mut inner) = (0, 0);
    for word in words {
        let word = u64::from_ne_bytes(*word);
        // The two highest bits: 0_ begins ASCII, 11 another character, and 10 goes on with it.
        high += (word & HIGH).count_ones();
        inner += (word & HIGH & !(word << 1)).count_ones();
    }
    let [high, inner] = [high, inner].map(|count| count as usize);
    let high_rest = rest.iter().filter(|byte| !byte.is_ascii()).count();
    let inner_rest = rest.iter().filter(|byte| **byte & 0xc0 == 0x80).count();
    let high = high + high_rest;
    (text.len() - high, high - (inner + inner_rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProviderLines;

    fn provider(kind: ProviderKind) -> Provider {
        Provider {
            kind,
            base_url: String::new(),
            api_key: None,
            proxy: None,
            prices: Default::default(),
            models: Vec::new(),
            vision: Vision::ByName,
            context_tokens: None,
            missing_key: None,
            lines: ProviderLines::default(),
        }
    }

    fn model(name: &str) -> ModelRef {
        ModelRef::Of {
            provider: "p".into(),
            model: name.into(),
        }
    }

    #[test]
    fn names_tell_who_sees() {
        let check = |name: &str, expected| {
            assert_eq!(
                sees(Some(&provider(ProviderKind::OpenAi)), &model(name)),
                expected,
                "{name}"
            );
        };
        for name in [
            "gpt-4o-mini",
            "gpt-5.4",
            "o3",
            "openai/o4-mini",
            "claude-opus-4.6",
            "Claude-3-Haiku",
            "gemini-3-pro",
        ] {
            check(name, true);
        }
        for name in ["qwen2.5-vl:7b", "llama3.2-vision", "google/gemma-3-27b"] {
            check(name, true);
        }
        for name in [
            "gpt-4",
            "gpt-3.5-turbo",
            "o3-mini",
            "claude-2.1",
            "llama3:8b",
            "foo3",
            "mistral-large",
            "deepseek-chat",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn the_config_decides_over_names() {
        let check = |vision: Vision, name: &str, expected| {
            let provider = Provider {
                vision,
                ..provider(ProviderKind::OpenAi)
            };
            assert_eq!(sees(Some(&provider), &model(name)), expected, "{name}");
        };
        check(Vision::All, "llama3:8b", true);
        check(Vision::None, "gpt-4o", false);
        check(Vision::These(vec!["mine".into()]), "mine", true);
        check(Vision::These(vec!["mine".into()]), "gpt-4o", false);
    }

    #[test]
    fn windows_are_told_by_config_kind_and_name() {
        let check = |kind, name: &str, expected| {
            assert_eq!(
                window(Some(&provider(kind)), &model(name)),
                expected,
                "{name}"
            );
        };
        check(ProviderKind::Anthropic, "claude-opus-4.6", 200_000);
        check(ProviderKind::OpenAi, "gpt-4", 8_000);
        check(ProviderKind::OpenAi, "gpt-4.1-mini", 1_000_000);
        check(ProviderKind::OpenAi, "o3", 200_000);
        check(ProviderKind::OpenAi, "something", 32_000);
        check(ProviderKind::Ollama, "llama-4", 8_000);
        let own = Provider {
            context_tokens: Some(5_000),
            ..provider(ProviderKind::Ollama)
        };
        assert_eq!(window(Some(&own), &model("llama-4")), 5_000);
        assert_eq!(window(None, &ModelRef::Demo), 32_000);
    }

    proptest::proptest! {
        #[test]
        fn characters_are_counted_as_they_are(text in ".{0,40}", more in "[a-zäß€🌹]{0,40}") {
            let text = text + &more;
            let plain = text.chars().filter(char::is_ascii).count();
            assert_eq!(characters(&text), (plain, text.chars().count() - plain));
        }
    }

    #[test]
    fn estimates_are_rather_high() {
        let check = |text: &str, at_least: usize, at_most: usize| {
            let estimate = estimate_tokens(text);
            assert!(
                (at_least..=at_most).contains(&estimate),
                "{text}: {estimate}"
            );
        };
        check("", 1, 1);
        // Nine for OpenAI's counter.
        check("The quick brown fox jumps over the dog.", 9, 13);
        // Some tokenizers need a token for each character.
        check("日本語のテキスト", 8, 9);
    }
}
