//! Well-known model servers, and the lines that make a provider of each.

use super::ProviderKind;

/// A server that speaks OpenAI's dialect under another name.
pub(super) struct KnownServer {
    pub(super) title: &'static str,
    /// The server's names without capitals, spaces and signs.
    names: &'static [&'static str],
    pub(super) base_url: &'static str,
    /// The variable that its users keep the key in. A server on this machine needs no key.
    variable: Option<&'static str>,
}

const SERVERS: [KnownServer; 7] = [
    KnownServer {
        title: "OpenRouter",
        names: &["openrouter", "openrouterai"],
        base_url: "https://openrouter.ai/api/v1/",
        variable: Some("OPENROUTER_API_KEY"),
    },
    KnownServer {
        title: "Groq",
        names: &["groq", "groqcloud"],
        base_url: "https://api.groq.com/openai/v1/",
        variable: Some("GROQ_API_KEY"),
    },
    KnownServer {
        title: "Mistral",
        names: &["mistral", "mistralai"],
        base_url: "https://api.mistral.ai/v1/",
        variable: Some("MISTRAL_API_KEY"),
    },
    KnownServer {
        title: "DeepSeek",
        names: &["deepseek"],
        base_url: "https://api.deepseek.com/",
        variable: Some("DEEPSEEK_API_KEY"),
    },
    KnownServer {
        title: "LM Studio",
        names: &["lmstudio"],
        base_url: "http://127.0.0.1:1234/v1/",
        variable: None,
    },
    KnownServer {
        title: "vLLM",
        names: &["vllm"],
        base_url: "http://127.0.0.1:8000/v1/",
        variable: None,
    },
    KnownServer {
        title: "llama.cpp",
        names: &["llamacpp", "llamaserver"],
        base_url: "http://127.0.0.1:8080/v1/",
        variable: None,
    },
];

/// A model server for people to choose: because they have its key, or because the server runs here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelServer {
    pub(crate) title: &'static str,
    /// The name for `[providers.<name>]`.
    pub(crate) name: &'static str,
    pub(crate) kind: ProviderKind,
    /// None: the usual address of its kind.
    pub(crate) base_url: Option<&'static str>,
    /// None for a server on this machine.
    pub(crate) variable: Option<&'static str>,
    /// A model to suggest, where the server does not list its models.
    pub(crate) model: Option<&'static str>,
}

/// The servers with a dialect of their own, then the servers with OpenAI's.
pub(crate) fn model_servers() -> Vec<ModelServer> {
    let own = |title, name, kind, variable, model| ModelServer {
        title,
        name,
        kind,
        base_url: None,
        variable,
        model,
    };
    let mut servers = vec![
        own(
            "OpenAI",
            "openai",
            ProviderKind::OpenAi,
            Some("OPENAI_API_KEY"),
            Some("gpt-5.4"),
        ),
        own(
            "Anthropic",
            "anthropic",
            ProviderKind::Anthropic,
            Some("ANTHROPIC_API_KEY"),
            Some("claude-opus-4.6"),
        ),
        own(
            "Gemini",
            "gemini",
            ProviderKind::Gemini,
            Some("GEMINI_API_KEY"),
            None,
        ),
        own("Ollama", "ollama", ProviderKind::Ollama, None, None),
    ];
    servers.extend(SERVERS.iter().map(|server| ModelServer {
        title: server.title,
        name: server.names[0],
        kind: ProviderKind::OpenAi,
        base_url: Some(server.base_url),
        variable: server.variable,
        model: None,
    }));
    servers
}

/// Other names for the dialects.
const DIALECTS: [(ProviderKind, &[&str]); 5] = [
    (
        ProviderKind::OpenAi,
        &["openai", "chatgpt", "gpt", "openaicompatible", "compatible"],
    ),
    (
        ProviderKind::OpenAiResponses,
        &["openairesponses", "responses"],
    ),
    (ProviderKind::Anthropic, &["anthropic", "claude"]),
    (
        ProviderKind::Gemini,
        &["gemini", "google", "googleai", "googlegemini"],
    ),
    (ProviderKind::Ollama, &["ollama"]),
];

/// The server of this name, as people write the name.
pub(super) fn find(name: &str) -> Option<&'static KnownServer> {
    let name = plain(name);
    SERVERS
        .iter()
        .find(|server| server.names.contains(&name.as_str()))
}

/// The variable of the key for the server at an address.
pub(super) fn variable_at(address: &str) -> Option<&'static str> {
    let host = |url: &str| {
        url.split("://")
            .nth(1)?
            .split('/')
            .next()
            .map(str::to_owned)
    };
    let wanted = host(address)?;
    SERVERS
        .iter()
        .find(|server| host(server.base_url).as_deref() == Some(&wanted))?
        .variable
}

/// The variable of the key for a provider with this name.
pub(super) fn variable_of(name: &str) -> Option<&'static str> {
    find(name)?.variable
}

/// The dialect of this name, as people write the name.
pub(super) fn dialect(name: &str) -> Option<ProviderKind> {
    let name = plain(name);
    DIALECTS
        .iter()
        .find(|(_, names)| names.contains(&name.as_str()))
        .map(|(kind, _)| *kind)
}

/// The lines under `[providers.<name>]`, ready to paste.
pub(super) fn setup(name: &str) -> Option<String> {
    find(name)
        .map(KnownServer::setup)
        .or_else(|| dialect(name).map(setup_of))
}

impl KnownServer {
    pub(super) fn setup(&self) -> String {
        let key = self.variable.map(api_key).unwrap_or_default();
        format!("kind = \"openai\"\nbase_url = \"{}\"{key}", self.base_url)
    }
}

fn setup_of(kind: ProviderKind) -> String {
    let key = match kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => api_key("OPENAI_API_KEY"),
        ProviderKind::Anthropic => api_key("ANTHROPIC_API_KEY"),
        ProviderKind::Gemini => api_key("GEMINI_API_KEY"),
        ProviderKind::Ollama => String::new(),
    };
    format!("kind = \"{kind}\"{key}")
}

fn api_key(variable: &str) -> String {
    format!("\napi_key = {{ env = \"{variable}\" }}")
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect::<String>()
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_under_every_spelling() {
        for (name, title) in [
            ("openrouter", "OpenRouter"),
            ("OpenRouter", "OpenRouter"),
            ("open-router", "OpenRouter"),
            ("groq", "Groq"),
            ("mistral", "Mistral"),
            ("DeepSeek", "DeepSeek"),
            ("lm-studio", "LM Studio"),
            ("lm_studio", "LM Studio"),
            ("LM Studio", "LM Studio"),
            ("vLLM", "vLLM"),
            ("llama.cpp", "llama.cpp"),
            ("llama-cpp", "llama.cpp"),
        ] {
            assert_eq!(find(name).map(|server| server.title), Some(title), "{name}");
        }
        for name in ["my-server", "", "openai", "ollama"] {
            assert!(find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_kind_of_provider_is_a_dialect() {
        for kind in ProviderKind::ALL {
            assert_eq!(dialect(kind.as_str()), Some(*kind));
        }
        assert_eq!(dialect("claude"), Some(ProviderKind::Anthropic));
    }
}
