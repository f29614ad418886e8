//! The conversation of a place, as the next agent reads it.
//!
//! A switch is a handoff: the new agent reads the words of people and other agents, each with its
//! writer's mark. Where the config keeps agents separate, an agent gets its own part only;
//! `records::view` sees to this. Tool calls and recalled memory of other agents are never shown.

use std::borrow::Borrow;

use super::Layout;
use crate::domain::{AgentId, Marks, Said, Source};
use crate::models::{ModelMessage, estimate_tokens};

/// Messages a turn looks back on.
pub(crate) const MAX_MESSAGES: u32 = 200;
/// Tokens of earlier messages a turn looks back on, however much its model could read: they are
/// paid for in every step.
const MAX_TOKENS: usize = 64_000;
/// Tokens for the mark of a message.
const TOKENS_AROUND: usize = 16;

/// Tokens for earlier messages beside a prompt: half of the rest, because tools and the answer need
/// room too.
pub(crate) fn room(window: usize, system: &str) -> usize {
    (window.saturating_sub(estimate_tokens(system)) / 2).min(MAX_TOKENS)
}

/// The system prompt for a summary.
pub(crate) fn how_to_sum_up(agent: &str, marks: &Marks) -> String {
    format!(
        "You are {agent}, an agent in a chat. You write a summary for yourself, so that you can go on with a conversation whose beginning you will no longer see.\n{}",
        marks.rules()
    )
}

/// The request for a summary: the conversation, after the summary of the part before.
pub(crate) fn to_sum_up<'a>(
    before: Option<&str>,
    said: impl Iterator<Item = &'a Said>,
    marks: &Marks,
) -> String {
    let before = before.map(|before| Said::new(Source::Summary, before));
    let wish = Said::gateway(
        "Sum all of this up in at most 500 words. Keep who wants what, with their numbers and roles, names, numbers, decisions, promises, files and open questions, and what people asked you to keep in mind. Leave out greetings. Write nothing but the summary, in the language of the conversation.",
    );
    let mut writer = marks.writer();
    let mut text: Vec<String> = before.iter().map(|before| writer.mark(before)).collect();
    text.extend(said.map(|said| writer.mark(said)));
    text.push(writer.mark(&wish));
    text.join("\n\n")
}

/// A conversation for a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversation<'a, S = Said> {
    /// The summary of the messages before.
    pub summary: Option<&'a str>,
    /// Oldest first.
    pub history: &'a [S],
    /// Recalled memories. They stand behind everything a provider may have cached, and are never
    /// stored.
    pub recalled: &'a [Said],
}

/// The messages for this turn to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current<'a> {
    /// Several when they came while the agent was busy.
    pub said: &'a [Said],
    /// The history ends with the question already, because the agent was interrupted at work.
    pub is_interrupted: bool,
    /// Notes about subagents and about the agent's parked turns.
    pub aside: &'a [Said],
}

/// `room` is how many tokens of history fit; the oldest are left out first. Returns the messages, and
/// how many there are of each kind.
pub(crate) fn for_model<S: Borrow<Said>>(
    conversation: Conversation<'_, S>,
    current: Current<'_>,
    agent: &AgentId,
    marks: &Marks,
    room: usize,
) -> (Vec<ModelMessage>, Layout) {
    let mut writer = marks.writer();
    let mut messages: Vec<ModelMessage> = Vec::new();
    if let Some(summary) = conversation.summary {
        let summary = Said::new(Source::Summary, summary);
        messages.push(ModelMessage::user(writer.mark(&summary)));
    }
    let mut is_empty = true;
    for said in recent(conversation.history, room) {
        let said = said.borrow();
        match &said.by {
            Source::Agent(by) if by == agent => messages.push(ModelMessage::Assistant {
                text: marks.escape(&said.text).into_owned(),
                tool_calls: Vec::new(),
            }),
            // A line before anything was said hands over nothing.
            Source::Gateway | Source::Handoff(_) if is_empty => continue,
            _ => messages.push(ModelMessage::user(writer.mark(said))),
        }
        is_empty = false;
    }
    let summary = usize::from(conversation.summary.is_some());
    let layout = Layout {
        summary,
        history: messages.len() - summary,
        notes: current.aside.len(),
        recalled: conversation.recalled.len(),
    };
    let asides = current.aside.iter().chain(conversation.recalled);
    messages.extend(asides.map(|said| ModelMessage::user(writer.mark(said))));
    let question: Vec<String> = introduced(&current)
        .iter()
        .chain(current.said)
        .map(|said| writer.mark(said))
        .collect();
    messages.push(ModelMessage::user(question.join("\n\n")));
    (messages, layout)
}

/// The words of the gateway before the question.
fn introduced(current: &Current<'_>) -> Option<Said> {
    if current.is_interrupted {
        Some(Said::gateway(
            "You were working on this when you were interrupted. Go on with it.",
        ))
    } else if current.said.len() > 1 && current.said.iter().all(is_persons) {
        Some(Said::gateway("Backlog"))
    } else {
        None
    }
}

fn is_persons(said: &Said) -> bool {
    matches!(said.by, Source::Person(_))
}

/// The note about an agent's own parked turn, for a turn in between.
pub(crate) fn reminder(question: &[Said], rounds: u32, said: &str) -> Vec<Said> {
    let rounds = match rounds {
        1 => "a round of tools".to_owned(),
        rounds => format!("{rounds} rounds of tools"),
    };
    let begin = Said::gateway(format!(
        "You are in the middle of this task, after {rounds}:"
    ));
    let so_far = (!said.is_empty()).then(|| Said::new(Source::You, head(said)));
    let end = Said::gateway(
        "The next message came meanwhile. Answer only that now; the task goes on by itself afterwards, and you will know what was said.",
    );
    [begin]
        .into_iter()
        .chain(question.iter().map(shortened))
        .chain(so_far)
        .chain([end])
        .collect()
}

/// The note about a parked turn of another agent, without any of its work so far.
pub(crate) fn somebody_elses(agent: &AgentId) -> Said {
    Said::gateway(format!(
        "@{agent} is still at work on an earlier message here, and will answer it. Answer only the next message."
    ))
}

/// A question with its answer from the time of a parked turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchanged<'a> {
    pub question: &'a [Said],
    /// None: the agent itself.
    pub by: Option<&'a AgentId>,
    pub answer: &'a str,
}

/// The message to a parked turn when it goes on: questions and answers since, from people with a
/// say in the task.
pub(crate) fn meanwhile<'a>(exchanges: impl Iterator<Item = Exchanged<'a>>) -> Vec<Said> {
    let told: Vec<Said> = exchanges
        .flat_map(|exchange| {
            let by = exchange
                .by
                .map_or(Source::You, |agent| Source::Agent(agent.clone()));
            let answer = Said::new(by, head(exchange.answer));
            exchange.question.iter().map(shortened).chain([answer])
        })
        .collect();
    if told.is_empty() {
        return vec![Said::gateway(
            "You were put aside for a while. Nothing was said meanwhile that your task depends on. Go on with it.",
        )];
    }
    let begin = Said::gateway("While you were at this, people wrote and were answered:");
    let end = Said::gateway(
        "Go on with your task, with what they said in mind. Do not answer them again.",
    );
    [begin].into_iter().chain(told).chain([end]).collect()
}

/// How much of a question or an answer a reminder repeats.
const MAX_REMINDED_BYTES: usize = 2048;

fn shortened(said: &Said) -> Said {
    Said {
        text: head(&said.text).to_owned(),
        ..said.clone()
    }
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_REMINDED_BYTES)]
}

/// Tokens of a message.
pub(crate) fn cost(said: &Said) -> usize {
    let around = said.around.iter().map(|around| around.to_string());
    let around = around.map(|around| estimate_tokens(&around) + TOKENS_AROUND);
    estimate_tokens(&said.text) + TOKENS_AROUND + around.sum::<usize>()
}

fn recent<S: Borrow<Said>>(history: &[S], room: usize) -> &[S] {
    let mut tokens = 0;
    let kept = history.iter().rev().take_while(|said| {
        tokens += cost((*said).borrow());
        tokens <= room
    });
    &history[history.len() - kept.count()..]
}

#[cfg(test)]
mod tests;
