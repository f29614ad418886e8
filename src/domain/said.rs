//! Words with their source, as they stand in a prompt.
//!
//! Words are raw here. [`super::Marks`] is the only place that makes a prompt's text of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AgentId, PersonId, Role};

/// Words of a single source. A history begins with the oldest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub by: Source,
    /// Everything that belongs to the message besides its words, in the order of the prompt.
    pub around: Vec<Around>,
    /// The words as they were written.
    pub text: String,
}

/// Where words come from. The list is closed: nothing else enters a prompt besides the operator's
/// files and the agent's own earlier messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Person(Voice),
    /// A person gave the place to another agent; the words name both agents.
    Handoff(Voice),
    /// Another agent in the conversation, or a peer.
    Agent(AgentId),
    /// The agent that reads, quoted in a note.
    You,
    /// The gateway itself.
    Gateway,
    /// A model's summary of earlier messages.
    Summary,
    Memory(MemoryMark),
    /// A web page, by its address.
    Page(String),
    /// A file, by its path.
    File(String),
    /// The task of a subagent, from the agent that started the subagent.
    Task(AgentId),
    /// The result of a subagent.
    Report(AgentId),
}

/// A person at the moment of writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    /// The name people see; people choose any name they like.
    pub name: String,
    pub person: Option<PersonId>,
    /// The person's number in this house: the same with every name and on every platform.
    pub number: Option<u32>,
    /// The role with the agent when this was written. None for rows from before roles were kept.
    pub role: Option<Role>,
    /// Unix milliseconds, by the platform's clock.
    pub at: i64,
}

/// The origin of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryMark {
    /// The day of the memory, such as `2026-11-17`.
    pub day: String,
    /// Set for another agent's memory.
    pub of: Option<String>,
    /// The person behind the memory, and the person's number.
    pub person: Option<PersonId>,
    pub by: Option<u32>,
    /// Set for a piece of a file.
    pub file: Option<String>,
}

/// A thing that belongs to a message besides its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Around {
    /// A new form of an earlier message.
    Edited,
    /// Forwarded, with the words of another person.
    Forward { from: Option<Author> },
    /// Answers another message, which is quoted.
    Reply { to: Author, quote: Option<String> },
    /// A reaction to this message of the agent; the words are the emoji.
    Reaction { to: String },
    /// A picture, file, sticker or the like, in words.
    With(String),
    /// The words are gone, because the message was deleted.
    Deleted,
}

/// The author of a quoted or forwarded message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The bot.
    You,
    Person {
        id: PersonId,
        name: String,
        #[serde(skip)]
        number: Option<u32>,
    },
    /// A channel, a group or a hidden account, by its name alone.
    Named(String),
    /// The message is gone, and its author's name too.
    Gone,
}

impl Said {
    pub fn new(by: Source, text: impl Into<String>) -> Self {
        Said {
            by,
            around: Vec::new(),
            text: text.into(),
        }
    }

    /// Words of the gateway itself.
    pub fn gateway(text: impl Into<String>) -> Self {
        Said::new(Source::Gateway, text)
    }

    /// All people named in the message.
    pub fn people(&self) -> impl Iterator<Item = &PersonId> {
        let writer = match &self.by {
            Source::Person(voice) | Source::Handoff(voice) => voice.person.as_ref(),
            Source::Memory(memory) => memory.person.as_ref(),
            _ => None,
        };
        let quoted = self.around.iter().filter_map(|around| match around {
            Around::Forward {
                from: Some(Author::Person { id, .. }),
            }
            | Around::Reply {
                to: Author::Person { id, .. },
                ..
            } => Some(id),
            _ => None,
        });
        writer.into_iter().chain(quoted)
    }

    /// Whether all people in the message have their number.
    pub fn is_counted(&self, number_of: impl Fn(&PersonId) -> Option<u32>) -> bool {
        let is_writer_counted = match &self.by {
            Source::Person(voice) | Source::Handoff(voice) => {
                voice.number == voice.person.as_ref().and_then(&number_of)
            }
            Source::Memory(memory) => memory.by == memory.person.as_ref().and_then(&number_of),
            _ => true,
        };
        is_writer_counted
            && self.around.iter().all(|around| match around {
                Around::Forward {
                    from: Some(Author::Person { id, number, .. }),
                }
                | Around::Reply {
                    to: Author::Person { id, number, .. },
                    ..
                } => *number == number_of(id),
                _ => true,
            })
    }

    /// Gives all people in the message their number.
    pub fn count(&mut self, number_of: impl Fn(&PersonId) -> Option<u32>) {
        if let Source::Person(voice) | Source::Handoff(voice) = &mut self.by {
            voice.number = voice.person.as_ref().and_then(&number_of);
        }
        if let Source::Memory(memory) = &mut self.by {
            memory.by = memory.person.as_ref().and_then(&number_of);
        }
        for around in &mut self.around {
            if let Around::Forward {
                from: Some(Author::Person { id, number, .. }),
            }
            | Around::Reply {
                to: Author::Person { id, number, .. },
                ..
            } = around
            {
                *number = number_of(id);
            }
        }
    }
}

impl Around {
    /// Whether these are words of a third party, neither the writer of the message nor the bot.
    pub(super) fn has_words_of_others(&self) -> bool {
        match self {
            Around::Forward { .. } => true,
            Around::Reply { to, .. } => *to != Author::You,
            Around::Edited | Around::Reaction { .. } | Around::With(_) | Around::Deleted => false,
        }
    }
}

/// For lists that people read; prompts have marks.
impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Around::Edited => f.write_str("edited"),
            Around::Deleted => f.write_str("deleted"),
            Around::Forward { from: None } => f.write_str("forwarded"),
            Around::Forward { from: Some(from) } => write!(f, "forwarded from {from}"),
            Around::Reply { to, quote: None } => write!(f, "replying to {to}"),
            Around::Reply {
                to,
                quote: Some(quote),
            } => write!(f, "replying to {to}: “{quote}”"),
            Around::Reaction { to } => write!(f, "reacted to “{to}”"),
            Around::With(what) => f.write_str(what),
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Author::You => "the bot",
            Author::Person { name, .. } | Author::Named(name) => name,
            Author::Gone => "a message that is gone",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_and_replies_to_others_have_their_words() {
        let check = |around: Around, expected: bool| {
            assert_eq!(around.has_words_of_others(), expected, "{around:?}");
        };
        let reply = |to| Around::Reply {
            to,
            quote: Some("words".into()),
        };
        let eve = Author::Person {
            id: "telegram:2".parse().unwrap(),
            name: "Eve".into(),
            number: None,
        };
        check(Around::Forward { from: None }, true);
        let from = Some(Author::You);
        check(Around::Forward { from }, true);
        check(reply(eve), true);
        check(reply(Author::Named("A channel".into())), true);
        check(reply(Author::Gone), true);
        check(reply(Author::You), false);
        let to = "words".into();
        check(Around::Reaction { to }, false);
        check(Around::With("photo".into()), false);
        check(Around::Edited, false);
        check(Around::Deleted, false);
    }
}
