//! What a turn is asked: the words of all messages that are answered at once, with what came with them.

use super::files;
use super::pictures::{self, Looked};
use crate::agents::Agent;
use crate::channels;
use crate::delivery::Delivery;
use crate::domain::{Attachment, Extras, Inbound};
use crate::models::Image;
use crate::records::inbox::Accepted;

/// What is to be answered.
pub(super) struct Question {
    /// Each message in words, with everything that is part of it.
    pub(super) said: Vec<Inbound>,
    /// In the order they were sent.
    pub(super) images: Vec<Image>,
}

/// Files are in the agent's folder from here on. Pictures are read only where `someone_sees`: any model that may answer.
pub(super) async fn in_words(delivery: &Delivery, accepted: &Accepted, agent: &Agent, someone_sees: bool) -> Question {
    let mut question = Question { said: Vec::new(), images: Vec::new() };
    for message in accepted.messages() {
        let mut texts = Vec::new();
        for part in std::iter::once(message).chain(&message.joined) {
            let images = someone_sees.then_some(&mut question.images);
            texts.push(readable(delivery, &part.inbound, agent, images).await);
        }
        question.said.push(plain(&message.inbound, texts.join("\n")));
    }
    question
}

/// What an answer to these messages quotes. Of several, the last is the one people still have before them. None for what no
/// person wrote.
pub(super) fn to_quote(accepted: &Accepted, others_wrote: bool) -> Option<channels::Question> {
    let asked = accepted.messages().last().unwrap_or(accepted);
    let last = asked.joined.last().unwrap_or(asked);
    let (message, upto) = (asked.inbound.message.clone(), last.inbound.message.clone());
    asked.inbound.extras.internal.is_none().then_some(channels::Question { message, upto, others_wrote })
}

/// A message that is nothing but these words.
pub(super) fn plain(inbound: &Inbound, text: String) -> Inbound {
    Inbound { text, extras: Extras::default(), ..inbound.clone() }
}

/// A file that cannot be had is said to the agent and stops nothing.
async fn readable(delivery: &Delivery, inbound: &Inbound, agent: &Agent, images: Option<&mut Vec<Image>>) -> String {
    let Some(Attachment { description, file: Some(file) }) = &inbound.extras.attachment else { return inbound.readable() };
    let attached = match files::store(delivery, inbound, file, agent).await {
        Ok(stored) => {
            let remark = match images {
                Some(images) => shown(agent, &stored, images).await,
                None => String::new(),
            };
            format!("{description}, saved as {stored}{remark}")
        }
        Err(error) => {
            tracing::warn!(agent.id = %agent.id, session = %inbound.origin.key, "a file was not stored: {}", error.cause());
            format!("{description}, not saved: {error}")
        }
    };
    inbound.readable_with(Some(&attached))
}

/// Puts a picture to the others. What is said about one that the model does not get.
async fn shown(agent: &Agent, stored: &str, images: &mut Vec<Image>) -> String {
    let path = agent.folder.join("workspace").join(stored);
    match pictures::look(&path).await {
        Ok(Looked::Picture(_)) if images.len() >= Image::MOST => {
            format!(", not shown: more than {} pictures", Image::MOST)
        }
        Ok(Looked::Picture(image)) => {
            images.push(image);
            String::new()
        }
        Ok(Looked::TooLarge) => format!(", not shown: larger than {:.1} MB", pictures::max_mb()),
        Ok(Looked::SomethingElse) => String::new(),
        Err(error) => {
            tracing::warn!(agent.id = %agent.id, "a picture could not be read: {error}");
            ", not shown: it could not be read".to_owned()
        }
    }
}
