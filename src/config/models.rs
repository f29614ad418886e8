//! Reads the keys about models: names, abilities, and the settings of an agent.

use toml::de::DeValue;

use super::providers;
use super::reader::{Section, Value, whole_number, wrong_type};
use super::schema::{LEAST_CONTEXT, MAX_TEMPERATURE};
use super::{Fault, ModelRef, ModelSettings, Problem, Spanned, Vision};

/// More would only keep a person waiting for the last of them.
const MOST_FALLBACKS: usize = 8;
/// More fit on no screen.
const MOST_OFFERED: usize = 50;

/// The fallback models of an agent. Every provider must exist.
pub(super) fn fallback(
    section: &Section<'_>,
    providers: &providers::ProviderNames,
) -> Vec<ModelRef> {
    let item =
        |value: &Value<'_>| match value.get_ref().as_str() {
            Some(text) => providers::known_model(
                &Spanned {
                    value: text.to_owned(),
                    span: value.span(),
                },
                providers,
            ),
            None => Err(wrong_type("a model", value, "text in quotes")
                .help("write it like `openai/gpt-5.4`")),
        };
    at_most(
        section,
        "fallback",
        MOST_FALLBACKS,
        section.list("fallback", item),
    )
}

pub(super) fn settings(section: &Section<'_>) -> ModelSettings {
    ModelSettings {
        temperature: temperature(section),
        max_tokens: at_least(section, "max_tokens", 1),
        reasoning: section.choice("reasoning"),
    }
}

/// Models of a provider for people to choose.
pub(super) fn offered(section: &Section<'_>) -> Vec<String> {
    at_most(
        section,
        "models",
        MOST_OFFERED,
        section.list("models", |value| model_name(value, "models")),
    )
}

pub(super) fn vision(section: &Section<'_>) -> Vision {
    match section.value("vision").map(|value| value.get_ref()) {
        None => Vision::ByName,
        Some(DeValue::Boolean(true)) => Vision::All,
        Some(DeValue::Boolean(false)) => Vision::None,
        Some(DeValue::Array(_)) => {
            let names = section.list("vision", |value| model_name(value, "vision"));
            Vision::These(names.map(|names| names.value).unwrap_or_default())
        }
        Some(_) => {
            section.refuse_type("vision", "`true`, `false` or a list of models");
            Vision::ByName
        }
    }
}

pub(super) fn context_tokens(section: &Section<'_>) -> Option<u32> {
    at_least(section, "context_tokens", LEAST_CONTEXT)
}

/// A model's name at its provider. Names can have slashes, so a provider in front cannot be
/// recognised as a mistake.
fn model_name(value: &Value<'_>, key: &str) -> Result<String, Problem> {
    let advice = format!("write it like `{key} = [\"gpt-5.4\"]`, without the provider");
    match value.get_ref().as_str() {
        None => Err(wrong_type("a model", value, "text in quotes").help(advice)),
        Some(text)
            if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) =>
        {
            Err(
                Problem::new(value.span(), format!("`{text}` does not name a model"))
                    .label("not a model's name")
                    .help(advice),
            )
        }
        Some(text) => Ok(text.to_owned()),
    }
}

fn at_most<T>(
    section: &Section<'_>,
    key: &str,
    most: usize,
    list: Option<Spanned<Vec<T>>>,
) -> Vec<T> {
    let Some(list) = list else { return Vec::new() };
    if list.value.len() > most {
        let problem = Problem::new(list.span, format!("`{key}` is too long"))
            .label(format!("expected at most {most} models"));
        section
            .problems
            .note(problem.help("keep the ones that matter"));
    }
    list.value
}

fn at_least(section: &Section<'_>, key: &str, least: u32) -> Option<u32> {
    let count = section.count(key)?;
    if count < least {
        let span = section.value(key)?.span();
        let problem = Problem::new(span, format!("`{key}` is too small"))
            .label(format!("expected {least} or more"))
            .fault(Fault::WrongType);
        section.problems.note(problem.help(format!(
            "write it like `{}`, or delete the line",
            section.usage(key)
        )));
        return None;
    }
    Some(count)
}

fn temperature(section: &Section<'_>) -> Option<f64> {
    let value = section.value("temperature")?;
    let number = match value.get_ref() {
        DeValue::Float(float) => float.as_str().parse().ok(),
        other => whole_number(other)
            .and_then(|number| u32::try_from(number).ok())
            .map(f64::from),
    };
    let fitting = number.filter(|number| (0.0..=MAX_TEMPERATURE).contains(number));
    if fitting.is_none() {
        let problem = Problem::new(value.span(), "`temperature` must be a number from 0 to 2")
            .label("not such a number")
            .fault(Fault::WrongType);
        section
            .problems
            .note(problem.help(format!("write it like `{}`", section.usage("temperature"))));
    }
    fitting
}
