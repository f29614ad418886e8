//! What a turn has read before its first model call: the labels of everything in its prompt, and the
//! web addresses that trusted people wrote.

use crate::agents::{Identity, IdentityFile};
use crate::domain::{Label, Labels, Source};
use crate::records::inbox::Accepted;
use crate::records::journal::Recorded;
use crate::records::summaries::Summary;
use crate::records::transcript::{History, Message};
use crate::subagents::InternalTurn;
use crate::tools::Addresses;

/// The labels of the question. A turn that goes on knows what it had read before, also if a message
/// is gone by now.
pub(super) fn of_question(
    accepted: &Accepted,
    internal: Option<&InternalTurn>,
    recorded: Option<&Recorded>,
) -> Labels {
    let before = recorded.map(|recorded| recorded.turn.read);
    let asked = match (internal, before) {
        (Some(InternalTurn::Subagent(known)), _) => known.subagent.labels_of_task(),
        (Some(InternalTurn::Report(known)), _) => known.labels(),
        (Some(InternalTurn::Job(run)), _) => {
            Labels::of(accepted.role) | Labels::from_bits(run.read)
        }
        // The record has the labels of all messages.
        (None, Some(_)) => Labels::of(accepted.role),
        (None, None) => accepted.messages().map(Accepted::labels).collect(),
    };
    asked | before.unwrap_or_default()
}

/// The labels of a conversation as it is read.
pub(crate) fn of_history(history: &History) -> Labels {
    of_conversation(&history.messages, history.summary.as_ref())
}

/// The labels of the conversation.
pub(super) fn of_conversation(messages: &[Message], summary: Option<&Summary>) -> Labels {
    let said = messages.iter().map(|message| message.labels);
    let summed_up = summary.map(|summary| summary.labels.with(Label::Summary));
    said.chain(summed_up).collect()
}

/// Web addresses in words of people whose words count for as much as those of the asker.
pub(super) fn addresses(accepted: &Accepted, before: &[Message]) -> Addresses {
    let mut addresses = Addresses::default();
    let is_trusted = |labels: Labels| labels.below(accepted.role).is_empty();
    if accepted.inbound.extras.internal.is_none() {
        let asked = accepted
            .all()
            .filter(|part| is_trusted(part.inbound.labels(part.role)));
        asked.for_each(|part| addresses.learn(&part.inbound.text));
    }
    let said = before.iter().filter(|message| {
        matches!(message.said.by, Source::Person(_))
            && !message.labels.has(Label::Agent)
            && is_trusted(message.labels)
    });
    said.for_each(|message| addresses.learn(&message.said.text));
    addresses
}

/// Web addresses in the operator's words. MEMORY.md is the agent's own to write.
pub(super) fn addresses_of(identity: &Identity) -> Addresses {
    let mut addresses = Addresses::default();
    let files = identity
        .files()
        .iter()
        .filter(|loaded| loaded.file != IdentityFile::Memory)
        .map(|loaded| loaded.content.as_str());
    let config = identity.system_prompt();
    files.chain(config).for_each(|text| addresses.learn(text));
    addresses
}
