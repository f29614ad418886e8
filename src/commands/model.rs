//! `/models` and `/model`: list and choose the model of a place.

use super::agent::{current, is_locked};
use super::parse::ModelWish;
use super::texts::{agent as texts, words};
use super::{CommandError, Context, Effect, Outcome};
use crate::agents::{Agent, Chosen, Source};
use crate::channels::Choice;
use crate::config::ModelRef;
use crate::domain::{UserError, nearest};
use crate::signing::Signer;

/// The longest name on a choice. Longer names are replaced by their mark, because every platform's
/// buttons have room for marks.
const MAX_NAME_BYTES: usize = 40;

pub(super) async fn list(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let (agent, chosen) = here(context).await?;
    let lines: Vec<String> = agent
        .models
        .usable
        .iter()
        .map(|model| line(context, agent, &chosen, model))
        .collect();
    let text = format!(
        "{}\n\n{}",
        texts::models(&agent.label(), &lines),
        advice(agent, &chosen)
    );
    Ok(Outcome::say(with_ignored(text, &chosen)).offering(choices(agent, &chosen)))
}

pub(super) async fn run(wish: ModelWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    let (agent, chosen) = here(context).await?;
    match wish {
        ModelWish::Show => {
            let (model, source) = (words::model_used(&chosen.model), words::source(&chosen));
            let here = texts::model_here(&agent.label(), &model, Some(source));
            let text = format!("{here}\n{}", advice(agent, &chosen));
            Ok(Outcome::say(with_ignored(text, &chosen)).offering(choices(agent, &chosen)))
        }
        ModelWish::Choose(word) => Ok(choose(context, agent, &chosen, &word)?),
        ModelWish::Reset => Ok(reset(context, agent, &chosen)?),
    }
}

/// The agent of the place, and its model there.
pub(super) async fn here<'a>(
    context: &'a Context<'_>,
) -> Result<(&'a Agent, Chosen), CommandError> {
    let agent = current(context);
    Ok((
        agent,
        context
            .services
            .sessions
            .model(&context.inbound.origin.key, agent)
            .await?,
    ))
}

fn choose(
    context: &Context<'_>,
    agent: &Agent,
    chosen: &Chosen,
    word: &str,
) -> Result<Outcome, UserError> {
    refuse_where_locked(context)?;
    let model = find(agent, word)?;
    if chosen.source == Source::Override && chosen.model == *model {
        let already = texts::model_already(&agent.label(), &model.to_string());
        return Ok(Outcome::say(already).after_press(context, || choices(agent, chosen)));
    }
    let reply = texts::model_chosen(&agent.label(), &model.to_string());
    let outcome = Outcome::of(reply, Effect::ChooseModel(model.clone()));
    let then = agent.models.choose(Some(model));
    Ok(outcome.after_press(context, || choices(agent, &then)))
}

fn reset(context: &Context<'_>, agent: &Agent, chosen: &Chosen) -> Result<Outcome, UserError> {
    refuse_where_locked(context)?;
    let was_set = chosen.source == Source::Override || chosen.ignored.is_some();
    let own = agent.models.choose(None);
    let (model, source) = (words::model_used(&own.model), words::source(&own));
    let reply = match was_set {
        true => texts::model_reset(&agent.label(), &model, source),
        false => texts::no_model_chosen(&agent.label(), &model, source),
    };
    let outcome = Outcome::of(reply, Effect::ResetModel);
    Ok(outcome.after_press(context, || choices(agent, &own)))
}

fn refuse_where_locked(context: &Context<'_>) -> Result<(), UserError> {
    if is_locked(context) {
        Err(UserError::new(texts::MODEL_LOCKED))
    } else {
        Ok(())
    }
}

/// A usable model by its name, in upper or lower case, or by its mark.
fn find<'a>(agent: &'a Agent, word: &str) -> Result<&'a ModelRef, UserError> {
    let usable = &agent.models.usable;
    if let Some(mark) = word.strip_prefix('#') {
        return usable
            .iter()
            .find(|model| self::mark(model) == mark)
            .ok_or_else(|| UserError::new(texts::STALE_MODEL));
    }
    by_name(usable, word).ok_or_else(|| unknown(agent, word))
}

/// A model by its whole name, or by the part after a slash where only one model ends so.
fn by_name<'a>(usable: &'a [ModelRef], word: &str) -> Option<&'a ModelRef> {
    let is_whole = |model: &&ModelRef| model.to_string().eq_ignore_ascii_case(word);
    let end = format!("/{}", word.to_ascii_lowercase());
    let ends_so = |model: &&ModelRef| model.to_string().to_ascii_lowercase().ends_with(&end);
    let mut ending = usable.iter().filter(ends_so);
    let only = ending.next().filter(|_| ending.next().is_none());
    usable.iter().find(is_whole).or(only)
}

/// Tells a model by few characters, the same after every start.
fn mark(model: &ModelRef) -> String {
    Signer::new(b"model").tag(&model.to_string())
}

fn choices(agent: &Agent, chosen: &Chosen) -> Vec<Choice> {
    let others = agent
        .models
        .usable
        .iter()
        .filter(|model| **model != chosen.model);
    let mut choices: Vec<Choice> = others.map(choice).collect();
    if chosen.source == Source::Override {
        choices.push(Choice {
            label: "↩ reset".into(),
            command: "/model reset".into(),
        });
    }
    choices
}

fn choice(model: &ModelRef) -> Choice {
    let name = model.to_string();
    let word = if name.len() <= MAX_NAME_BYTES {
        name.clone()
    } else {
        format!("#{}", mark(model))
    };
    Choice {
        label: name,
        command: format!("/model {word}"),
    }
}

fn line(context: &Context<'_>, agent: &Agent, chosen: &Chosen, model: &ModelRef) -> String {
    let models = &agent.models;
    let mut marks = Vec::new();
    if models.model == *model {
        marks.push("default".to_owned());
    }
    if models.fallback.contains(model) {
        marks.push("fallback".to_owned());
    }
    if let Some(rest) = context.snapshot.models.rests_for(model) {
        marks.push(format!(
            "resting for {} after a failure",
            words::duration(i64::try_from(rest.as_millis()).unwrap_or(0).max(1_000))
        ));
    }
    let marks = if marks.is_empty() {
        String::new()
    } else {
        format!(" ({})", marks.join("; "))
    };
    let here = match (chosen.model == *model, chosen.source) {
        (false, _) => "",
        (true, Source::Override) => " ← chosen here",
        (true, _) => " ← used here",
    };
    format!("- `{model}`{marks}{here}")
}

fn advice(agent: &Agent, chosen: &Chosen) -> String {
    let mut usable = agent.models.usable.iter();
    match usable.find(|model| **model != chosen.model) {
        Some(_) if chosen.source == Source::Override => {
            texts::model_back(&agent.models.model.to_string())
        }
        Some(other) => texts::other_model(&other.to_string()),
        None => texts::NO_OTHER_MODEL.to_owned(),
    }
}

fn with_ignored(text: String, chosen: &Chosen) -> String {
    match &chosen.ignored {
        Some(ignored) => {
            format!("{text}\n{}", texts::model_not_offered(&ignored.to_string()))
        }
        None => text,
    }
}

fn unknown(agent: &Agent, word: &str) -> UserError {
    let names: Vec<String> = agent
        .models
        .usable
        .iter()
        .map(ModelRef::to_string)
        .collect();
    let shown: String = word.chars().take(64).collect();
    let near = nearest(word, names.iter().map(String::as_str));
    UserError::new(texts::no_such_model(&agent.label(), &shown, near, &names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_means_the_only_model_that_ends_so() {
        let usable = [
            "openai/tiny-1",
            "openai/tiny-2",
            "router/openai/tiny-2",
            "local/mini",
        ]
        .map(|name| name.parse::<ModelRef>().expect("a model"));
        let check = |word, expected: Option<&str>| {
            let found = by_name(&usable, word).map(ToString::to_string);
            assert_eq!(found.as_deref(), expected, "{word}");
        };
        check("tiny-1", Some("openai/tiny-1"));
        check("MINI", Some("local/mini"));
        check("openai/tiny-2", Some("openai/tiny-2"));
        check("router/openai/tiny-2", Some("router/openai/tiny-2"));
        check("tiny-2", None);
        check("ny-1", None);
        check("", None);
    }

    #[test]
    fn long_names_fit_on_a_button_by_their_mark() {
        let long: ModelRef = format!("router/{}", "x".repeat(80))
            .parse()
            .expect("a model");
        let choice = choice(&long);
        assert_eq!(choice.label, long.to_string());
        assert_eq!(choice.command, format!("/model #{}", mark(&long)));
        // 64 bytes, less the signature's 16.
        assert!(choice.command.len() <= 48 && "/model ".len() + MAX_NAME_BYTES <= 48);
        assert_ne!(mark(&long), mark(&"router/y".parse().expect("a model")));
    }
}
