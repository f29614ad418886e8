//! Reads `[providers.<name>]`, and references to a provider's models.

use std::collections::BTreeMap;

use super::choices::Choice;
use super::reader::{Named, Section};
use super::secrets::{Secret, Vault};
use super::{Fault, known_servers, limits, models, proxy, schema};
use super::{ModelRef, Problem, Provider, ProviderKind, ProviderLines, Spanned};
use crate::domain::{AgentId, nearest};

/// Every name under `[providers]`. Names of broken providers are included, so that models do not
/// repeat the problem.
pub(super) fn names(top: &Section<'_>) -> Vec<String> {
    let table = top
        .value("providers")
        .and_then(|value| value.get_ref().as_table());
    table
        .into_iter()
        .flat_map(|table| table.keys())
        .map(|key| key.get_ref().to_string())
        .collect()
}

pub(super) fn read(
    top: &Section<'_>,
    source: &str,
    vault: &Vault<'_>,
) -> BTreeMap<String, Provider> {
    let mut providers = BTreeMap::new();
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
pub(super) fn model(section: &Section<'_>, name: &str, providers: &[String]) -> Option<ModelRef> {
    let text = section.text(name)?;
    known_model(&text, providers)
        .map_err(|problem| section.problems.note(problem))
        .ok()
}

/// The model with this name, of an existing provider.
pub(super) fn known_model(
    text: &Spanned<String>,
    providers: &[String],
) -> Result<ModelRef, Problem> {
    match text.value.parse() {
        Ok(ModelRef::Of { provider, .. }) if !providers.contains(&provider) => {
            Err(unknown_provider(&provider, text, providers))
        }
        Ok(model) => Ok(model),
        Err(()) => Err(no_model(text)),
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
    if let Some(problem) = wrong_server(section, name, kind) {
        section.problems.note(problem);
    }
    let needs_key = kind != ProviderKind::Ollama && !address.is_loopback;
    if needs_key && api_key.is_none() {
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

/// `kind = "openrouter"`: a server with a dialect that Parlor knows.
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

fn unknown_provider(provider: &str, text: &Spanned<String>, providers: &[String]) -> Problem {
    let known: Vec<&str> = providers.iter().map(String::as_str).collect();
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

fn no_model(text: &Spanned<String>) -> Problem {
    Problem::new(
        text.span.clone(),
        format!("`{}` does not name a model", text.value),
    )
    .label("expected `provider/model` or `demo`")
    .help("write it like `openai/gpt-5.4`, or `demo` for the built-in demo model")
}
