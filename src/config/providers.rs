//! Reads `[providers.<name>]`, and references to a provider's models.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::choices::Choice;
use super::reader::{Named, Nameless, Section};
use super::secrets::{Secret, Vault};
use super::{Fault, elsewhere, known_servers, limits, models, proxy, schema};
use super::{ModelRef, Problem, Provider, ProviderKind, ProviderLines, Spanned};
use crate::domain::{AgentId, nearest};

/// Every name under `[providers]`. Names of broken providers are included, so that models do not
/// repeat the problem.
pub(super) struct ProviderNames {
    names: Vec<String>,
    /// Providers are written in a form without names. The problem is told there.
    is_unread: bool,
}

impl ProviderNames {
    pub(super) fn of(top: &Section<'_>) -> Self {
        let value = top.value("providers").map(|value| value.get_ref());
        let is_table = value.is_none_or(DeValue::is_table);
        let table = value.and_then(DeValue::as_table).into_iter().flatten();
        let mut names: Vec<String> = table.map(|(key, _)| key.get_ref().to_string()).collect();
        names.extend(top.names_below("provider"));
        names.extend(top.names_below("models"));
        ProviderNames {
            names,
            is_unread: !is_table || top.nameless("providers", &schema::PROVIDER).is_some(),
        }
    }

    fn contains(&self, name: &str) -> bool {
        // A name with capitals is refused at its table, so a model may use the corrected name.
        let is_it = |known: &String| {
            let is_refused = AgentId::parse(known).is_err();
            known == name || is_refused && known.eq_ignore_ascii_case(name)
        };
        self.is_unread || self.names.iter().any(is_it)
    }

    fn known(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

pub(super) fn read(
    top: &Section<'_>,
    source: &str,
    vault: &Vault<'_>,
) -> BTreeMap<String, Provider> {
    let mut providers = BTreeMap::new();
    if let Some(nameless) = top.nameless("providers", &schema::PROVIDER) {
        top.problems.note(without_name(&nameless));
        return providers;
    }
    for named in top.named("providers") {
        let name = checked_name(&named, top);
        let provider = named.section(&schema::PROVIDER).and_then(|section| {
            let lines = lines(&section, &named.name, source);
            Some(Provider {
                lines,
                ..provider(&section, &named.name, vault)?
            })
        });
        if let (Some(name), Some(provider)) = (name, provider) {
            providers.insert(name, provider);
        }
    }
    providers
}

fn lines(section: &Section<'_>, name: &Spanned<String>, source: &str) -> ProviderLines {
    let line = |at: usize| {
        let before = source.as_bytes().get(..at)?;
        Some(before.iter().filter(|byte| **byte == b'\n').count() + 1)
    };
    let of_key = |key| {
        section
            .value(key)
            .and_then(|value| line(value.span().start))
    };
    ProviderLines {
        section: line(name.span.start),
        api_key: of_key("api_key"),
        base_url: of_key("base_url"),
    }
}

/// The model under a key, if its provider is known.
pub(super) fn model(
    section: &Section<'_>,
    name: &str,
    providers: &ProviderNames,
) -> Option<ModelRef> {
    let text = section.text(name)?;
    known_model(&text, providers)
        .map_err(|problem| section.problems.note(problem))
        .ok()
}

/// The model with this name, of an existing provider.
pub(super) fn known_model(
    text: &Spanned<String>,
    providers: &ProviderNames,
) -> Result<ModelRef, Problem> {
    match text.value.parse() {
        Ok(ModelRef::Of { provider, .. }) if !providers.contains(&provider) => {
            Err(unknown_provider(&provider, text, providers))
        }
        Ok(model) => Ok(model),
        Err(()) => Err(no_model(text, providers)),
    }
}

/// A provider's name has the form of an agent's id, so the first slash of a model always ends the
/// provider's name.
fn checked_name(named: &Named<'_>, top: &Section<'_>) -> Option<String> {
    let Spanned { value: name, span } = &named.name;
    if name == ModelRef::DEMO {
        let problem = Problem::new(
            span.clone(),
            "`demo` is the built-in model and cannot be a provider",
        );
        top.problems.note(
            problem
                .label("a reserved name")
                .help("choose another name for this provider"),
        );
        return None;
    }
    if AgentId::parse(name).is_err() {
        let problem = Problem::new(
            span.clone(),
            format!("`{name}` cannot be a provider's name"),
        );
        top.problems.note(
            problem
                .label("expected a short name")
                .help("use a-z, 0-9 and single hyphens inside, such as `my-server`"),
        );
        return None;
    }
    Some(name.clone())
}

fn provider(section: &Section<'_>, name: &Spanned<String>, vault: &Vault<'_>) -> Option<Provider> {
    let kind = kind(section);
    let default_url = kind.unwrap_or(ProviderKind::OpenAi).default_base_url();
    let address = section.address("base_url", default_url);
    let (api_key, missing_key) =
        match vault.optional(section, "api_key", &format!("providers.{}", name.value)) {
            None => (None, None),
            Some(Ok(key)) => (Some(key), None),
            // The gateway starts all the same: other providers may work, and owners are told.
            Some(Err(why)) => (Some(Secret::default()), Some(why)),
        };
    let server = proxy::Server {
        url: address
            .as_ref()
            .map_or(default_url, |address| address.url.as_str()),
        key: "base_url",
    };
    let proxy = proxy::read(section, vault, &server);
    let prices = limits::prices(section).into_iter().collect();
    let (models, vision) = (models::offered(section), models::vision(section));
    let context_tokens = models::context_tokens(section);
    // All keys are read before the first return, so that all problems are noted.
    let (kind, address) = (kind?, address?);
    for problem in [
        wrong_server(section, name, kind),
        endpoint(section, &address.url),
    ]
    .into_iter()
    .flatten()
    {
        section.problems.note(problem);
    }
    let needs_key = kind != ProviderKind::Ollama && !address.is_loopback;
    if needs_key && !section.has_under_any_name("api_key") {
        section.problems.note(missing_api_key(name, &address.url));
    }
    Some(Provider {
        kind,
        base_url: address.url,
        api_key,
        proxy,
        prices,
        models,
        vision,
        context_tokens,
        missing_key,
        lines: ProviderLines::default(),
    })
}

fn kind(section: &Section<'_>) -> Option<ProviderKind> {
    let text = section.text("kind")?;
    let kind = text.value.parse().ok();
    if kind.is_none() {
        match foreign_kind(&text) {
            Some(problem) => section.problems.note(problem),
            None => section.refuse_word("kind", &text, &ProviderKind::words()),
        }
    }
    kind
}

/// `kind = "openrouter"`: a server with a dialect known to Parlor.
fn foreign_kind(text: &Spanned<String>) -> Option<Problem> {
    let problem = |label: &str| {
        Problem::new(
            text.span.clone(),
            format!("`kind` cannot be `{}`", text.value),
        )
        .label(label)
        .fault(Fault::WrongWord)
    };
    if let Some(server) = known_servers::find(&text.value) {
        let label = format!("{} speaks OpenAI's dialect", server.title);
        return Some(problem(&label).help(format!("write\n{}", server.setup())));
    }
    let kind = known_servers::dialect(&text.value)?;
    Some(problem("known here by another name").help(format!("write `kind = \"{kind}\"`")))
}

/// `[providers.groq]` with OpenAI's address would send Groq's key to OpenAI.
fn wrong_server(
    section: &Section<'_>,
    name: &Spanned<String>,
    kind: ProviderKind,
) -> Option<Problem> {
    let is_openai = matches!(kind, ProviderKind::OpenAi | ProviderKind::OpenAiResponses);
    let server = known_servers::find(&name.value)
        .filter(|_| is_openai && section.value("base_url").is_none())?;
    Some(
        Problem::new(
            name.span.clone(),
            format!("{} needs a `base_url`", server.title),
        )
        .label("without it, OpenAI would get these messages and this key")
        .help(format!("add the line `base_url = \"{}\"`", server.base_url)),
    )
}

fn missing_api_key(name: &Spanned<String>, base_url: &str) -> Problem {
    let known = known_servers::variable_at(base_url).or(known_servers::variable_of(&name.value));
    let own = || format!("{}_API_KEY", name.value.to_uppercase().replace('-', "_"));
    let variable = known.map_or_else(own, str::to_owned);
    Problem::new(name.span.clone(), "missing key `api_key`")
        .label("a server on another machine needs `api_key`")
        .help(format!(
            "add a line such as `api_key = {{ env = \"{variable}\" }}`"
        ))
}

fn unknown_provider(provider: &str, text: &Spanned<String>, providers: &ProviderNames) -> Problem {
    let known = providers.known();
    let advice = match (
        nearest(provider, known.iter().copied()),
        known_servers::setup(provider),
    ) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(lines)) => format!("add this section\n[providers.{provider}]\n{lines}"),
        (None, None) => format!("declare it in a section [providers.{provider}]"),
    };
    Problem::new(text.span.clone(), format!("unknown provider `{provider}`"))
        .label(format!("this file has no [providers.{provider}]"))
        .help(advice)
}

fn no_model(text: &Spanned<String>, providers: &ProviderNames) -> Problem {
    let written = text.value.trim();
    let advice = match meant_model(written, providers) {
        Some(model) => format!("write `{model}`"),
        None => "write it like `openai/gpt-5.4`, or `demo` for the built-in demo model".to_owned(),
    };
    Problem::new(
        text.span.clone(),
        format!("`{}` does not name a model", text.value),
    )
    .label("expected `provider/model` or `demo`")
    .help(advice)
}

/// `anthropic:claude-x`, or a model alone beside a single provider.
fn meant_model(written: &str, providers: &ProviderNames) -> Option<String> {
    let is_demo = elsewhere::nearest_slip(&written.to_lowercase(), [ModelRef::DEMO]).is_some();
    if is_demo {
        return Some(ModelRef::DEMO.to_owned());
    }
    let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let is_usable = |name: &str| name != ModelRef::DEMO && AgentId::parse(name).is_ok();
    let parts = written.split_once(':');
    let with_colon = parts.filter(|(provider, model)| {
        is_name(model) && (providers.contains(provider) || known_servers::setup(provider).is_some())
    });
    match (with_colon, providers.known().as_slice()) {
        (Some((provider, model)), _) => Some(format!("{provider}/{model}")),
        (None, [only]) if is_usable(only) && is_name(written) && !written.contains('/') => {
            Some(format!("{only}/{written}"))
        }
        _ => None,
    }
}

/// `[providers]` with the keys of a single provider.
fn without_name(nameless: &Nameless<'_>) -> Problem {
    let kind = nameless
        .text("kind")
        .filter(|kind| AgentId::parse(kind).is_ok());
    let name = kind.unwrap_or("openai");
    Problem::new(
        nameless.span.clone(),
        "a provider needs a name in its section's name",
    )
    .label("a key of a provider, but of which?")
    .help(format!(
        "write `[providers.{name}]` above it in place of `[providers]`"
    ))
}

/// Ends of addresses that Parlor adds by itself.
const ENDPOINTS: [&str; 9] = [
    "chat/completions/",
    "completions/",
    "responses/",
    "messages/",
    "models/",
    "embeddings/",
    "api/chat/",
    "api/generate/",
    "api/tags/",
];

/// `https://api.openai.com/v1/chat/completions`
fn endpoint(section: &Section<'_>, url: &str) -> Option<Problem> {
    let base = ENDPOINTS.iter().find_map(|end| url.strip_suffix(end))?;
    let span = section.value("base_url")?.span();
    Some(
        Problem::new(span, "`base_url` is the address of a single call")
            .label("Parlor adds the last part by itself")
            .help(format!("write `base_url = \"{base}\"`")),
    )
}
