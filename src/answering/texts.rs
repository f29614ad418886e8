//! Texts for people when a turn ends without a whole answer.

use chrono::Local;

use crate::access::Role;
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::config::{Caps, Currency, ModelRef, ProviderKind};
use crate::figures::grouped;
use crate::models::{Cut, ModelError, Models, Unanswered, Unavailable};
use crate::records::ledger::Warned;
use crate::tools::{Effect, sent_files};
use crate::turn::TurnError;
use crate::turn::budget::{self, Limit, Span, Spent, in_words};

/// The model ended its answer before the first word.
pub(super) fn said_nothing(model: &ModelRef, models: &Models) -> String {
    let other = match models.offers_another(model) {
        true => ", and `/model` chooses another model",
        false => "",
    };
    format!("The model `{model}` gave an empty answer. Retry asks it once more{other}.")
}

/// Those whose budget runs out.
#[derive(Clone, Copy)]
pub(super) enum Spending<'a> {
    Agent(&'a Agent),
    House,
}

/// For owners: little or nothing is left of a limit.
pub(super) fn running_out(
    whose: Spending<'_>,
    limit: Limit,
    (spent, caps): (Spent, Caps),
    told: Warned,
    currency: &Currency,
) -> String {
    let (what, percent, of, span) = match limit {
        Limit::Cost(span) => {
            let most = caps.cost.unwrap_or_default();
            let percent = budget::percent(spent.cost.0, most.0);
            let of = format!("{} of {}", spent.cost, most.in_currency(currency));
            ("money", percent, of, span)
        }
        Limit::Tokens(span) => {
            let most = caps.tokens.unwrap_or_default();
            let percent = budget::percent(spent.tokens, most);
            (
                "tokens",
                percent,
                format!("{} of {}", grouped(spent.tokens), grouped(most)),
                span,
            )
        }
        Limit::TurnsPerMinute(_) => ("turns", 100, String::new(), Span::Day),
    };
    let (when, next) = match span {
        Span::Day => ("today's", "tomorrow"),
        Span::Month => ("this month's", "next month"),
    };
    let (name, id, section, stops) = match whose {
        Spending::Agent(agent) => (
            agent.label(),
            agent.id.to_string(),
            format!("[agents.{}.limits]", agent.id),
            "it stops answering",
        ),
        Spending::House => (
            "All agents together".to_owned(),
            "house".to_owned(),
            "[limits]".to_owned(),
            "nobody answers",
        ),
    };
    let has = match whose {
        Spending::Agent(_) => "has",
        Spending::House => "have",
    };
    let amount = if what == "money" {
        "2.00"
    } else {
        "50000 tokens"
    };
    let span = span.as_str();
    match told {
        Warned::NothingLeft => format!(
            "{name} {has} used up {when} {what}: {of}, so {stops} until {next}. `/allow {id} {amount} {span}` gives more; the limit is in config.toml, under `{section}`."
        ),
        Warned::LittleLeft | Warned::Nothing => format!(
            "{name} {has} used {percent} % of {when} {what}: {of}. At 100 % {stops} until {next}. `/usage` shows who asked; the limit is in config.toml, under `{section}`."
        ),
    }
}

/// The button under a failed answer.
pub(super) const RETRY: &str = "🔄 Retry";

/// Closes the answer of a stopped turn.
pub(super) const STOPPED: &str = "_(stopped)_";

/// Told once in a place, when its first message waits for a paused agent.
pub(super) fn paused(label: &str, role: Role) -> String {
    let kept =
        format!("{label} is paused. Your messages are kept and answered when an owner resumes it");
    match role {
        Role::Guest => format!("{kept}."),
        Role::Member | Role::Admin | Role::Owner => {
            format!("{kept}; `/agent` with another agent's name has that one answer here.")
        }
    }
}

/// The line in a transcript when config.toml gives a conversation to another agent.
pub(super) fn handed_over(from: &str, to: &str) -> String {
    format!("handed over from {from} to {to} by config.toml")
}

/// Closes an answer the model could not finish. Only people get the hint to reply.
pub(super) fn cut_off(cut: Cut, is_told: bool) -> String {
    match cut {
        _ if !is_told => format!("_(cut off {cut})_"),
        Cut::AtTokens(_) => format!("_(Cut off {cut}. Reply \"go on\" for the rest.)_"),
        Cut::WindowFull => {
            format!("_(Cut off, {cut}. Reply \"go on\" for the rest, or /new for a fresh start.)_")
        }
    }
}

/// The model thought, and was cut off before its first word.
pub(super) fn cut_before_a_word(cut: Cut) -> String {
    match cut {
        Cut::AtTokens(_) => format!(
            "My answer was cut off {cut}, and all of it went into thinking. Please ask for something smaller; an owner can raise `max_tokens`."
        ),
        Cut::WindowFull => {
            "My model's window was full before the first word of my answer. /new starts a fresh conversation.".into()
        }
    }
}

/// A note for the agent's next turn, after a cut answer.
pub(super) fn noted_cut(cut: Cut) -> String {
    match cut {
        Cut::AtTokens(Some(tokens)) => format!("this answer was cut off at {tokens} tokens"),
        Cut::AtTokens(None) | Cut::WindowFull => "this answer was cut off before its end".into(),
    }
}

pub(super) fn tools_broke(tools: &[String], reference: i64) -> String {
    let names = tools
        .iter()
        .map(|tool| format!("`{tool}`"))
        .collect::<Vec<_>>()
        .join(", ");
    format!("While I worked on this, {names} broke, so I went on without it. [ref {reference}]")
}

/// The answer of an agent that sent files without a word.
pub(super) fn sent(effects: &[Effect]) -> String {
    let names: Vec<&str> = sent_files(effects).map(|file| file.name.as_str()).collect();
    format!("Here is {}.", names.join(", "))
}

pub(super) fn panicked(reference: i64) -> String {
    format!(
        "Something broke while I was working on this, so there is no answer. Please try again. [ref {reference}]"
    )
}

/// The person who reads about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Person,
    /// Learns what to do about the failure.
    Owner,
    /// Learns the cause too, which is not for a whole group.
    OwnerAlone,
}

/// A failed turn in the words for the chat.
pub(super) fn apology(
    error: &TurnError,
    models: &Models,
    reader: Reader,
    reference: i64,
) -> String {
    match error {
        TurnError::Model(failure) => {
            let advice = match reader {
                Reader::Person => None,
                Reader::Owner | Reader::OwnerAlone => advice(failure, models),
            };
            let cause = match reader {
                Reader::OwnerAlone => cause(failure, models),
                Reader::Person | Reader::Owner => None,
            };
            let sentences: Vec<String> =
                [Some(trouble(failure)), advice].into_iter().flatten().collect();
            let cause = cause.map_or_else(String::new, |cause| format!("\n{cause}"));
            format!("{} [ref {reference}]{cause}", sentences.join(" "))
        }
        TurnError::TooSlow(limit) => format!(
            "This took longer than {}, so I stopped. A smaller question may help.",
            in_words(*limit)
        ),
        TurnError::TooManySteps(steps) => format!(
            "I didn't get to an answer in {steps} steps, so I stopped. A smaller question may help."
        ),
        TurnError::TooManyTokens(_) => {
            "This took more tokens than one answer may use, so I stopped. A smaller question may help.".into()
        }
        TurnError::CallsCutOff(cut) => format!(
            "I wanted to use a tool, but was cut off {cut} before the call was complete, so I stopped. Please ask for something smaller; an owner can raise `max_tokens`."
        ),
        TurnError::OverBudget(over) => {
            format!("I had to stop in the middle. {}", over.told(&Local, now_ms()))
        }
    }
}

/// What has failed, for everybody.
pub(super) fn trouble(failure: &Unanswered) -> String {
    let (provider, model) = names(&failure.model);
    match &failure.error {
        ModelError::RateLimited {
            retry_after: Some(delay),
        } => format!(
            "`{provider}` asks for a pause. Please try again in {}.",
            in_words(*delay)
        ),
        ModelError::RateLimited { retry_after: None } => {
            format!("`{provider}` gets too many requests right now. Please try again in a minute.")
        }
        ModelError::Overloaded => {
            format!("`{provider}` is overloaded right now. Please try again in a minute.")
        }
        ModelError::ContextTooLong => {
            "This conversation is longer than my model can read. /new starts a fresh one.".into()
        }
        ModelError::TooMuch(what) => format!(
            "My model sent {what}, which is more than I take in, so I stopped it. Please ask for something smaller."
        ),
        ModelError::CutOff => "My answer was cut off on the way. Please try again.".into(),
        ModelError::Refused(reason) => format!("`{provider}` refused this: {reason}."),
        ModelError::Unavailable(why) => {
            format!("I can't answer: {}.", unavailable(why, provider, model))
        }
        ModelError::Unreachable(why) => {
            format!("I can't answer: `{provider}` can't be reached ({why}).")
        }
        ModelError::Stalled => {
            format!("I can't answer: `{provider}` didn't answer in time. Please try again.")
        }
        ModelError::Broken(why) => {
            let why = why.strip_prefix("the model server failed ").unwrap_or(why);
            let why = why.trim_matches(['(', ')']);
            format!("I can't answer: `{provider}` failed ({why}). Please try again.")
        }
    }
}

fn unavailable(why: &Unavailable, provider: &str, model: &str) -> String {
    match why {
        Unavailable::KeyMissing(_) if why.open_file().is_some() => {
            format!(
                "the file with the API key for `{provider}` is open to others, so I don't use it"
            )
        }
        Unavailable::KeyMissing(_) => format!("the API key for `{provider}` is missing"),
        Unavailable::KeyRejected(code) => {
            format!("the API key for `{provider}` was rejected{}", status(*code))
        }
        Unavailable::KeyWanted(code) => {
            format!(
                "`{provider}` wants an API key, and none is set{}",
                status(*code)
            )
        }
        Unavailable::NotAllowed(code) => format!(
            "the API key for `{provider}` may not use `{model}`{}",
            status(*code)
        ),
        Unavailable::NoCredit(code) => format!(
            "the account at `{provider}` has no credit left{}",
            status(*code)
        ),
        Unavailable::NoSuchModel(code) => {
            format!("`{provider}` has no model `{model}`{}", status(*code))
        }
        Unavailable::Moved(code) => {
            format!(
                "the address of `{provider}` leads elsewhere{}",
                status(*code)
            )
        }
        Unavailable::WebPage => {
            format!("at the address of `{provider}` is a web page and no model server")
        }
        Unavailable::NoProvider => format!("there is no provider `{provider}` any more"),
    }
}

/// What an owner can do.
pub(super) fn advice(failure: &Unanswered, models: &Models) -> Option<String> {
    let (provider, model) = names(&failure.model);
    let config = models.provider_of(&failure.model);
    let lines = config.map(|config| config.lines).unwrap_or_default();
    let key = || spot("api_key", provider, lines.api_key.or(lines.section));
    let address = || spot("base_url", provider, lines.base_url.or(lines.section));
    match &failure.error {
        ModelError::Unavailable(why) => Some(match why {
            Unavailable::KeyMissing(cause) => {
                let open = why.open_file().map(|name| format!("`chmod 600 {name}`, in the home folder, closes it; /reload reads it again."));
                let why = cause;
                let (first, rest) = why.split_at(why.len().min(1));
                let why = format!("{}{rest}", first.to_uppercase());
                let what_to_do = if let Some(open) = &open {
                    open
                } else if why.starts_with("The environment variable") {
                    // A process gets its variables at its start, and a reload brings none.
                    "Set it where Parlor is started, then start Parlor again: a reload brings no new variables."
                } else {
                    "Put that right; /reload reads it again."
                };
                format!("{why} ({}). {what_to_do}", key())
            }
            Unavailable::KeyRejected(_) => format!(
                "Put a valid key where {} points. /reload reads a file again; a new environment variable needs a new start.",
                key()
            ),
            Unavailable::KeyWanted(_) => format!(
                "Add a line such as `api_key = {{ env = \"{}_API_KEY\" }}` to [providers.{provider}], {}config.toml.",
                variable(provider),
                line(lines.section)
            ),
            Unavailable::NotAllowed(_) => format!(
                "Check at the provider what the key may do, or use another key for {}.",
                key()
            ),
            Unavailable::NoCredit(_) => {
                match models.offers_another(&failure.model) {
                    true => "Add credit at the provider, or choose another model with `/model`.".into(),
                    false => "Add credit at the provider.".into(),
                }
            }
            Unavailable::NoSuchModel(_) => no_such_model(failure, models, model),
            Unavailable::Moved(_) | Unavailable::WebPage => format!("Check {}.", address()),
            Unavailable::NoProvider => match models.offers_another(&failure.model) {
                true => "`/model` chooses another model, and `/model reset` goes back to the agent's own.",
                false => "`/model reset` goes back to the agent's own model.",
            }
            .into(),
        }),
        ModelError::Unreachable(_) => Some(match config {
            Some(config) if config.kind == ProviderKind::Ollama => {
                format!(
                    "Is Ollama running? `ollama serve` starts it. Its address is {}.",
                    address()
                )
            }
            _ => format!("Is the server running? Its address is {}.", address()),
        }),
        _ => None,
    }
}

fn no_such_model(failure: &Unanswered, models: &Models, model: &str) -> String {
    let is_ollama = models
        .provider_of(&failure.model)
        .is_some_and(|config| config.kind == ProviderKind::Ollama);
    match models.similar(&failure.model) {
        Some(similar) => format!("Did you mean `{similar}`?"),
        None if is_ollama => format!("`ollama pull {model}` fetches it."),
        None if models.offers_another(&failure.model) => {
            "Check the model's name in config.toml; `/models` lists other models.".into()
        }
        None => "Check the model's name in config.toml.".into(),
    }
}

/// `api_key` in [providers.openai], line 12 of config.toml
fn spot(key: &str, provider: &str, line: Option<usize>) -> String {
    format!(
        "`{key}` in [providers.{provider}], {}config.toml",
        self::line(line)
    )
}

/// `line 12 of `, if the line is known.
fn line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line} of "))
}

/// The name of a provider as part of a variable's name.
fn variable(provider: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    provider.chars().map(plain).collect()
}

/// The words of the provider or of the network, with their host.
pub(super) fn cause(failure: &Unanswered, models: &Models) -> Option<String> {
    if matches!(
        failure.error,
        ModelError::ContextTooLong | ModelError::CutOff | ModelError::Overloaded
    ) {
        // The sentence before says all of it.
        return None;
    }
    let said = failure.detail.as_deref()?.replace('`', "'");
    let host = models.host(&failure.model)?;
    Some(match failure.error {
        // A machine out of reach has said nothing.
        ModelError::Unreachable(_) => format!("Could not connect to {host}: `{said}`"),
        _ => format!("{host} says: `{said}`"),
    })
}

/// Why a model does not answer, to follow a colon.
pub(super) fn why_not(failure: &Unanswered, models: &Models) -> String {
    let (provider, model) = names(&failure.model);
    match &failure.error {
        ModelError::Unavailable(why) => unavailable(why, provider, model),
        ModelError::Unreachable(why) => match models.host(&failure.model) {
            Some(host) => format!("could not connect to {host}, {why}"),
            None => why.to_string(),
        },
        error => error.to_string(),
    }
}

/// The same from a stored error.
pub(super) fn as_told(error: &str) -> String {
    let cause = error.strip_prefix("the model provider refused: ");
    cause.unwrap_or(error).to_owned()
}

fn names(model: &ModelRef) -> (&str, &str) {
    match model {
        ModelRef::Demo => (ModelRef::DEMO, ModelRef::DEMO),
        ModelRef::Of { provider, model } => (provider, model),
    }
}

fn status(code: u16) -> String {
    match code {
        0 => String::new(),
        code => format!(" ({code})"),
    }
}

/// Tells owners, in private, that a provider has begun to refuse.
pub(super) fn began_to_refuse(failure: &Unanswered, models: &Models) -> String {
    let (provider, _) = names(&failure.model);
    let what = trouble(failure);
    let what = what.strip_prefix("I can't answer: ").unwrap_or(&what);
    let advice = advice(failure, models).map_or_else(String::new, |advice| format!(" {advice}"));
    let cause = cause(failure, models).map_or_else(String::new, |cause| format!("\n{cause}"));
    format!("⚠️ My agents can't use `{provider}`: {what}{advice}{cause}")
}

pub(super) fn works_again(subject: &str) -> String {
    format!("✅ `{subject}` answers again.")
}

#[cfg(test)]
mod tests;
