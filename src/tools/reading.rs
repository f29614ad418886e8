//! What a turn has read, as its tools know it, and how far a call reaches.

use std::sync::Arc;

use super::addresses::Addresses;
use crate::domain::Labels;

/// What a turn has read so far.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Everything in the prompt, and all results of tools.
    pub labels: Labels,
    /// Web addresses from the operator and from people with at least the role of the asker.
    pub(crate) addresses: Arc<Addresses>,
}

impl Reading {
    pub(crate) fn new(labels: Labels, addresses: Addresses) -> Self {
        Reading {
            labels,
            addresses: Arc::new(addresses),
        }
    }

    /// Takes in words of the operator, such as a skill.
    pub(crate) fn trust(&mut self, text: &str) {
        let mut known = Addresses::default();
        known.learn(text);
        Arc::make_mut(&mut self.addresses).join(known);
    }
}

/// Where a call takes words, if not only to the people of the turn's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Another place.
    Place,
    /// Another agent, or its files.
    Agent,
    /// The web server of this address.
    Address(String),
    /// The prompts of everybody who talks to the agent.
    Everybody,
    /// Somewhere else.
    Elsewhere,
}
