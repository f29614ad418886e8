//! The question of a turn: the words, attachments and writers of all its messages.

use super::files;
use super::pictures::{self, Looked};
use crate::access::Role;
use crate::agents::Agent;
use crate::channels;
use crate::delivery::Delivery;
use crate::domain::{Around, Attachment, Extras, Inbound, Said, Source, Voice};
use crate::models::Image;
use crate::records::inbox::Accepted;
use crate::records::journal::AskedMessage;
use crate::subagents::{self, InternalTurn};

/// The messages of a question, each with all its parts, and the pictures in the order they were sent.
/// Stores files in the agent's workspace. Pictures are read only with `someone_sees`: some model of
/// the lineup takes pictures.
pub(super) async fn in_words(
    delivery: &Delivery,
    accepted: &Accepted,
    agent: &Agent,
    someone_sees: bool,
) -> (Vec<AskedMessage>, Vec<Image>) {
    let (mut said, mut pictures) = (Vec::new(), Vec::new());
    for message in accepted.messages() {
        let (mut texts, mut around, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for part in std::iter::once(message).chain(&message.joined) {
            let images = someone_sees.then_some(&mut pictures);
            around.extend(around_of(delivery, &part.inbound, agent, accepted.role, images).await);
            texts.extend(Some(part.inbound.text.as_str()).filter(|text| !text.is_empty()));
            rows.push(part.id);
        }
        said.push(AskedMessage {
            inbound: plain(&message.inbound, texts.join("\n"), around),
            role: message.standing.with(&agent.id),
            rows,
        });
    }
    (said, pictures)
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

/// The message with this text, and this around it.
fn plain(inbound: &Inbound, text: String, around: Vec<Around>) -> Inbound {
    Inbound {
        text,
        extras: Extras {
            around,
            ..Extras::default()
        },
        ..inbound.clone()
    }
}

/// What belongs to a message besides its words, with its file. If a file cannot be fetched, the
/// agent is told and the turn goes on.
async fn around_of(
    delivery: &Delivery,
    inbound: &Inbound,
    agent: &Agent,
    role: Role,
    images: Option<&mut Vec<Image>>,
) -> Vec<Around> {
    let Some(Attachment {
        description,
        file: Some(file),
    }) = &inbound.extras.attachment
    else {
        return inbound.around();
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
    inbound.around_with(Some(attached))
}

/// The messages of a question as the agent reads them. The numbers of people are still to be filled
/// in.
pub(super) fn as_said(asked: &[AskedMessage], internal: Option<&InternalTurn>) -> Vec<Said> {
    match internal {
        Some(InternalTurn::Report(known)) => subagents::to_report(known),
        Some(InternalTurn::Subagent(known)) => asked
            .iter()
            .map(|message| subagents::asked(known, message.inbound.text.clone()))
            .collect(),
        Some(InternalTurn::Job(_)) | None => asked.iter().map(of_person).collect(),
    }
}

fn of_person(AskedMessage { inbound, role, .. }: &AskedMessage) -> Said {
    let voice = Voice {
        name: inbound.person_name.clone(),
        person: Some(inbound.origin.person.clone()),
        number: None,
        role: Some(*role),
        at: inbound.sent_at,
    };
    Said {
        by: Source::Person(voice),
        around: inbound.around(),
        text: inbound.text.clone(),
    }
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
