//! What was said in a place, as the agent that answers next gets to see it.
//!
//! A switch is a handoff: the new agent reads what people and other agents said here, each marked with who said it.
//! Tool calls and recalled memory of other agents are never part of it.

use crate::domain::AgentId;
use crate::models::ModelMessage;

/// Messages a turn looks back on.
pub const MAX_MESSAGES: u32 = 200;
/// Bytes of earlier messages a turn looks back on; the oldest are left out first.
const MAX_BYTES: usize = 96 * 1024;

/// One thing that was said, oldest first in a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub by: Speaker,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// With the name people see.
    Person(String),
    Agent(AgentId),
    /// The place changed hands; the text says how.
    Handoff,
}

/// What is to be answered now.
#[derive(Debug, Clone, Copy)]
pub struct Current<'a> {
    /// Several when they came while the agent was busy.
    pub said: &'a [Said],
    /// The history has it already: the agent was interrupted while it worked on it.
    pub is_interrupted: bool,
    /// What the agent put aside to answer this, as [`reminder`] tells it.
    pub aside: &'a [String],
}

/// `named` marks people's messages with their names, for places where several talk.
pub fn for_model(history: &[Said], current: &Current<'_>, agent: &AgentId, named: bool) -> Vec<ModelMessage> {
    let mut messages = said_before(history, agent, named);
    messages.extend(current.aside.iter().cloned().map(ModelMessage::User));
    let words = in_words(current.said, named);
    messages.push(ModelMessage::User(if current.is_interrupted { go_on_with(&words) } else { words }));
    messages
}

fn in_words(said: &[Said], named: bool) -> String {
    let one = |said: &Said| match &said.by {
        Speaker::Person(name) if named => format!("[{name}] {}", said.text),
        _ => said.text.clone(),
    };
    match said {
        [said] => one(said),
        several => format!("[Backlog]\n{}", several.iter().map(one).collect::<Vec<_>>().join("\n\n")),
    }
}

/// What an agent is told about a task it was put aside from, while it answers something else.
pub fn reminder(question: &str, rounds: u32, said: &str) -> String {
    let said = if said.is_empty() { String::new() } else { format!(" You have said so far: {}", head(said, MAX_REMINDED_BYTES)) };
    format!(
        "[You are in the middle of a task, after {}: {}{said}]\n[The next message came meanwhile. Answer only that now; the task goes on by itself afterwards, and you will know what was said.]",
        if rounds == 1 { "a round of tools".to_owned() } else { format!("{rounds} rounds of tools") },
        head(question, MAX_REMINDED_BYTES)
    )
}

/// What an agent is told when it goes on with a task: what was asked and answered since.
pub fn meanwhile<'a>(exchanges: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let told = exchanges.map(|(question, answer)| {
        format!("{}\n[you answered] {}\n", head(question, MAX_REMINDED_BYTES), head(answer, MAX_REMINDED_BYTES))
    });
    format!(
        "[While you were at this, people wrote, and you have answered:]\n{}[Go on with your task, with what they said in mind. Do not answer them again.]",
        told.collect::<String>()
    )
}

fn go_on_with(question: &str) -> String {
    format!("[You were working on this when you were interrupted. Go on with it.]\n{question}")
}

/// How much of a question or an answer a reminder repeats.
const MAX_REMINDED_BYTES: usize = 2048;

fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

fn said_before(history: &[Said], agent: &AgentId, named: bool) -> Vec<ModelMessage> {
    let mut messages: Vec<ModelMessage> = Vec::new();
    for said in recent(history) {
        match &said.by {
            Speaker::Agent(by) if by == agent => {
                messages.push(ModelMessage::Assistant { text: said.text.clone(), tool_calls: Vec::new() });
            }
            Speaker::Agent(by) => messages.push(ModelMessage::User(format!("[@{by}] {}", said.text))),
            Speaker::Person(name) if named => messages.push(ModelMessage::User(format!("[{name}] {}", said.text))),
            Speaker::Person(_) => messages.push(ModelMessage::User(said.text.clone())),
            // A mark before anything was said hands over nothing.
            Speaker::Handoff if messages.is_empty() => {}
            // One that has brackets already says who it is about.
            Speaker::Handoff if said.text.starts_with('[') => messages.push(ModelMessage::User(said.text.clone())),
            Speaker::Handoff => messages.push(ModelMessage::User(format!("[{}]", said.text))),
        }
    }
    messages
}

fn recent(history: &[Said]) -> &[Said] {
    let mut bytes = 0;
    let kept = history.iter().rev().take_while(|said| {
        bytes += said.text.len();
        bytes <= MAX_BYTES
    });
    &history[history.len() - kept.count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(text: &str) -> Said {
        Said { by: Speaker::Person("Alice".into()), text: text.into() }
    }

    fn agent(id: &str, text: &str) -> Said {
        Said { by: Speaker::Agent(AgentId::parse(id).unwrap()), text: text.into() }
    }

    fn rose() -> AgentId {
        AgentId::parse("rose").unwrap()
    }

    /// S1.24
    #[test]
    fn the_new_agent_reads_who_said_what() {
        let handoff = Said { by: Speaker::Handoff, text: "Alice handed over from main to rose".into() };
        let history = [person("hi"), agent("main", "hello"), handoff, person("a poem?"), agent("rose", "roses")];
        assert_eq!(
            for_model(&history, &Current { said: &[person("more")], is_interrupted: false, aside: &[] }, &rose(), false),
            [
                ModelMessage::User("hi".into()),
                ModelMessage::User("[@main] hello".into()),
                ModelMessage::User("[Alice handed over from main to rose]".into()),
                ModelMessage::User("a poem?".into()),
                ModelMessage::Assistant { text: "roses".into(), tool_calls: Vec::new() },
                ModelMessage::User("more".into()),
            ]
        );
    }

    #[test]
    fn a_handoff_of_an_empty_place_is_not_shown() {
        let handoff = Said { by: Speaker::Handoff, text: "Alice handed over from main to rose".into() };
        assert_eq!(
            for_model(&[handoff], &Current { said: &[person("hi")], is_interrupted: false, aside: &[] }, &rose(), false),
            [ModelMessage::User("hi".into())]
        );
    }

    #[test]
    fn people_are_named_where_several_talk() {
        assert_eq!(
            for_model(&[], &Current { said: &[person("hi")], is_interrupted: false, aside: &[] }, &rose(), true),
            [ModelMessage::User("[Alice] hi".into())]
        );
    }

    #[test]
    fn the_oldest_are_left_out_first() {
        let long = "x".repeat(MAX_BYTES / 2);
        let history = [agent("rose", "old"), agent("rose", &long), agent("rose", "y"), agent("rose", &long[1..])];
        let messages =
            for_model(&history, &Current { said: &[person("now")], is_interrupted: false, aside: &[] }, &rose(), false);
        assert_eq!(messages.len(), 4, "three of four fit, and the current one");
    }
}
