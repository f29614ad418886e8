//! The question of a turn: the words and attachments of all its messages.

use super::files;
use super::pictures::{self, Looked};
use crate::access::Role;
use crate::agents::Agent;
use crate::channels;
use crate::delivery::Delivery;
use crate::domain::{Attachment, Extras, Inbound};
use crate::models::Image;
use crate::records::inbox::Accepted;

/// The question of a turn.
pub(super) struct Question {
    /// The text of each message, with all its parts.
    pub(super) said: Vec<Inbound>,
    /// In the order they were sent.
    pub(super) images: Vec<Image>,
}

/// Stores files in the agent's workspace. Pictures are read only with `someone_sees`: some model of
/// the lineup takes pictures.
pub(super) async fn in_words(
    delivery: &Delivery,
    accepted: &Accepted,
    agent: &Agent,
    someone_sees: bool,
) -> Question {
    let mut question = Question {
        said: Vec::new(),
        images: Vec::new(),
    };
    for message in accepted.messages() {
        let mut texts = Vec::new();
        for part in std::iter::once(message).chain(&message.joined) {
            let images = someone_sees.then_some(&mut question.images);
            texts.push(readable(delivery, &part.inbound, agent, accepted.role, images).await);
        }
        question
            .said
            .push(plain(&message.inbound, texts.join("\n")));
    }
    question
}

/// The message for an answer to quote. Of several messages the last is quoted, because people still
/// have it before them. None for an internal message.
pub(super) fn to_quote(accepted: &Accepted, others_wrote: bool) -> Option<channels::Question> {
    let asked = accepted.messages().last().unwrap_or(accepted);
    let last = asked.joined.last().unwrap_or(asked);
    let (message, upto) = (asked.inbound.message.clone(), last.inbound.message.clone());
    asked
        .inbound
        .extras
        .internal
        .is_none()
        .then_some(channels::Question {
            message,
            upto,
            others_wrote,
        })
}

/// The message with this text and nothing else.
pub(super) fn plain(inbound: &Inbound, text: String) -> Inbound {
    Inbound {
        text,
        extras: Extras::default(),
        ..inbound.clone()
    }
}

/// The text of a message with its file. If a file cannot be fetched, the agent is told and the turn
/// goes on.
async fn readable(
    delivery: &Delivery,
    inbound: &Inbound,
    agent: &Agent,
    role: Role,
    images: Option<&mut Vec<Image>>,
) -> String {
    let Some(Attachment {
        description,
        file: Some(file),
    }) = &inbound.extras.attachment
    else {
        return inbound.readable();
    };
    let attached = match files::store(delivery, inbound, file, agent, role).await {
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

/// Adds a picture to `images`. Returns a remark about a picture withheld from the model.
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
