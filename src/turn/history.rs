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

/// `named` marks people's messages with their names, for places where several talk.
pub fn for_model(history: &[Said], current: Said, agent: &AgentId, named: bool) -> Vec<ModelMessage> {
    let mut messages: Vec<ModelMessage> = Vec::new();
    for said in recent(history).iter().chain([&current]) {
        match &said.by {
            Speaker::Agent(by) if by == agent => {
                messages.push(ModelMessage::Assistant { text: said.text.clone(), tool_calls: Vec::new() });
            }
            Speaker::Agent(by) => messages.push(ModelMessage::User(format!("[@{by}] {}", said.text))),
            Speaker::Person(name) if named => messages.push(ModelMessage::User(format!("[{name}] {}", said.text))),
            Speaker::Person(_) => messages.push(ModelMessage::User(said.text.clone())),
            // A mark before anything was said hands over nothing.
            Speaker::Handoff if messages.is_empty() => {}
            Speaker::Handoff => messages.push(ModelMessage::User(format!("[{}]", said.text))),
        }
    }
    messages
}

/// Puts what the agent is reminded of before what it is to answer: after all that is the same from turn to turn, which a
/// provider may have cached. It is for this turn only and never stored.
pub fn reminded(mut messages: Vec<ModelMessage>, reminder: Option<String>) -> Vec<ModelMessage> {
    if let Some(reminder) = reminder {
        messages.insert(messages.len().saturating_sub(1), ModelMessage::User(reminder));
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
            for_model(&history, person("more"), &rose(), false),
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
        assert_eq!(for_model(&[handoff], person("hi"), &rose(), false), [ModelMessage::User("hi".into())]);
    }

    #[test]
    fn a_reminder_stands_right_before_what_is_answered() {
        let messages = for_model(&[person("hi"), agent("rose", "hello")], person("and now?"), &rose(), false);
        let with = reminded(messages.clone(), Some("[tea]".into()));
        assert_eq!(with[..2], messages[..2]);
        assert_eq!(with[2..], [ModelMessage::User("[tea]".into()), ModelMessage::User("and now?".into())]);
        assert_eq!(reminded(messages.clone(), None), messages);
    }

    #[test]
    fn people_are_named_where_several_talk() {
        assert_eq!(for_model(&[], person("hi"), &rose(), true), [ModelMessage::User("[Alice] hi".into())]);
    }

    #[test]
    fn the_oldest_are_left_out_first() {
        let long = "x".repeat(MAX_BYTES / 2);
        let history = [agent("rose", "old"), agent("rose", &long), agent("rose", "y"), agent("rose", &long[1..])];
        let messages = for_model(&history, person("now"), &rose(), false);
        assert_eq!(messages.len(), 4, "three of four fit, and the current one");
    }
}
