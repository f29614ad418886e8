//! What a turn is asked: the words of all messages that are answered at once, with what came with them.

use super::inbox::Accepted;
use super::{Inner, files};
use crate::agents::Agent;
use crate::domain::{Attachment, Besides, Inbound};

/// Each message in words, with everything that is part of it. Their files are in the agent's folder from here on.
pub(super) async fn in_words(inner: &Inner, accepted: &Accepted, agent: &Agent) -> Vec<Inbound> {
    let mut said = Vec::new();
    for message in accepted.messages() {
        said.push(whole(inner, message, agent).await);
    }
    said
}

/// A message that is nothing but these words.
pub(super) fn plain(inbound: &Inbound, text: String) -> Inbound {
    Inbound { text, besides: Besides::default(), ..inbound.clone() }
}

async fn whole(inner: &Inner, message: &Accepted, agent: &Agent) -> Inbound {
    let mut texts = Vec::new();
    for part in std::iter::once(message).chain(&message.joined) {
        texts.push(readable(inner, &part.inbound, agent).await);
    }
    plain(&message.inbound, texts.join("\n"))
}

/// A file that cannot be had is said to the agent and stops nothing.
async fn readable(inner: &Inner, inbound: &Inbound, agent: &Agent) -> String {
    let Some(Attachment { description, file: Some(file) }) = &inbound.besides.attachment else { return inbound.readable() };
    let attached = match files::store(inner, inbound, file, agent).await {
        Ok(stored) => format!("{description}, saved as {stored}"),
        Err(error) => {
            tracing::warn!(agent.id = %agent.id, session = %inbound.origin.key, "a file was not stored: {}", error.cause());
            format!("{description}, not saved: {error}")
        }
    };
    inbound.readable_with(Some(&attached))
}
