//! What a turn is asked: the words of all messages that are answered as one, with what came with them.

use super::inbox::Accepted;
use super::{Inner, files};
use crate::agents::Agent;
use crate::domain::{Attachment, Besides, Inbound};

/// One message with the words of all. Their files are in the agent's folder from here on.
pub(super) async fn whole(inner: &Inner, accepted: &Accepted, agent: &Agent) -> Accepted {
    let mut texts = Vec::new();
    for said in accepted.all() {
        texts.push(readable(inner, &said.inbound, agent).await);
    }
    let mut whole = accepted.clone();
    whole.inbound.text = texts.join("\n");
    whole.inbound.besides = Besides::default();
    whole
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
