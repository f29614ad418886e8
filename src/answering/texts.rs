//! Texts for people when a turn ends without a whole answer.

use chrono::Local;

use crate::models::{Cut, ModelError};
use crate::tools::{Effect, sent_files};
use crate::turn::TurnError;

pub(super) const SAID_NOTHING: &str =
    "I came to the end without anything to say. Please ask again in other words.";

/// Closes the answer of a stopped turn.
pub(super) const STOPPED: &str = "_(stopped)_";

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
            "My answer was cut off {cut}, and all of it went into thinking. Please ask for something smaller; the operator can raise `max_tokens`."
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
    format!(
        "While I worked on this, {names} broke inside (ref {reference}). I went on without it; the operator can see more in the log."
    )
}

/// The answer of an agent that sent files without a word.
pub(super) fn sent(effects: &[Effect]) -> String {
    let names: Vec<&str> = sent_files(effects).map(|file| file.name.as_str()).collect();
    format!("Here is {}.", names.join(", "))
}

pub(super) fn panicked(reference: i64) -> String {
    format!(
        "Something broke while I was working on this (ref {reference}). Your message is kept; please send it again."
    )
}

pub(super) fn apology(error: &TurnError) -> String {
    match error {
        TurnError::Model(ModelError::RateLimited { retry_after: Some(delay) }) => {
            format!("My model provider asks for a pause of {} s. Please ask again after that.", delay.as_secs().max(1))
        }
        TurnError::Model(ModelError::RateLimited { retry_after: None } | ModelError::Overloaded) => {
            "My model provider is overloaded right now. Please ask again in a minute.".into()
        }
        TurnError::Model(ModelError::ContextTooLong) => {
            "This conversation has become longer than my model can read. /new starts a fresh one.".into()
        }
        TurnError::Model(ModelError::Refused(reason) | ModelError::Unavailable(reason)) => {
            format!("My model provider refused: {reason}. The operator can see more in the log.")
        }
        TurnError::Model(ModelError::TooMuch(what)) => {
            format!("My model sent {what}. I take in no more than that, so I stopped it. Please ask for something smaller.")
        }
        TurnError::Model(ModelError::CutOff) => "My answer was cut off on the way. Please ask again.".into(),
        TurnError::Model(ModelError::Broken(_) | ModelError::Stalled) => {
            "I cannot reach my model right now. Please ask again later; the operator can see more in the log.".into()
        }
        TurnError::TooSlow(_) => "This took me too long, so I stopped. A smaller question may help.".into(),
        TurnError::TooManySteps(_) => {
            "I took too many steps without coming to an answer, so I stopped. A smaller question may help.".into()
        }
        TurnError::TooManyTokens(_) => {
            "This took more tokens than I may use for one answer, so I stopped. A smaller question may help.".into()
        }
        TurnError::CallsCutOff(cut) => format!(
            "I wanted to use a tool, but was cut off {cut} before I had written down what for, so I stopped. Please ask for something smaller; the operator can raise `max_tokens`."
        ),
        TurnError::OverBudget(over) => format!("I stopped in the middle. {}", over.told(&Local)),
    }
}
