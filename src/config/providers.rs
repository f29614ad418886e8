//! Reads `[providers.<name>]`, and references to a provider's models.

use std::collections::BTreeMap;

use super::reader::{Named, Section, suggest};
use super::secrets::Vault;
use super::{ModelRef, Problem, Provider, ProviderKind, Spanned};
use super::{limits, models, proxy, schema};
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

pub(super) fn read(top: &Section<'_>, vault: &Vault<'_>) -> BTreeMap<String, Provider> {
    let mut providers = BTreeMap::new();
    for named in top.named("providers") {
        let name = checked_name(&named, top);
        let provider = named
            .section(&schema::PROVIDER)
            .and_then(|section| provider(&section, &named.name, vault));
        if let (Some(name), Some(provider)) = (name, provider) {
            providers.insert(name, provider);
        }
    }
    providers
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
    if name == ModelRef::OFFLINE {
        let problem = Problem::new(
            span.clone(),
            "`offline` is the built-in model and cannot be a provider",
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
                .label("not such a name")
                .help("use a-z, 0-9 and single hyphens inside, such as `my-server`"),
        );
        return None;
    }
    Some(name.clone())
}

fn provider(section: &Section<'_>, name: &Spanned<String>, vault: &Vault<'_>) -> Option<Provider> {
    let kind: Option<ProviderKind> = section.choice("kind");
    let default_url = kind.unwrap_or(ProviderKind::OpenAi).default_base_url();
    let address = section.address("base_url", default_url);
    let api_key = vault.secret(section, "api_key");
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
    let needs_key = kind != ProviderKind::Ollama && !address.is_loopback;
    if needs_key && api_key.is_none() {
        section.problems.note(missing_api_key(name));
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
    })
}

fn missing_api_key(name: &Spanned<String>) -> Problem {
    let variable = name.value.to_uppercase().replace('-', "_");
    Problem::new(name.span.clone(), "missing key `api_key`")
        .label("a server on another machine needs `api_key`")
        .help(format!(
            "add a line such as `api_key = {{ env = \"{variable}_API_KEY\" }}`"
        ))
}

fn unknown_provider(provider: &str, text: &Spanned<String>, providers: &[String]) -> Problem {
    let known: Vec<&str> = providers.iter().map(String::as_str).collect();
    let advice = match nearest(provider, known.iter().copied()) {
        Some(_) => suggest(provider, &known),
        None => format!("declare it under [providers.{provider}]"),
    };
    Problem::new(text.span.clone(), format!("unknown provider `{provider}`"))
        .label(format!("no [providers.{provider}] in this file"))
        .help(advice)
}

fn no_model(text: &Spanned<String>) -> Problem {
    Problem::new(
        text.span.clone(),
        format!("`{}` names no model", text.value),
    )
    .label("expected `provider/model` or `offline`")
    .help("write it like `openai/gpt-5.4`, or `offline` for the built-in stand-in")
}
