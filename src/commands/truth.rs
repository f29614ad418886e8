//! Asks who answers in the place of a command, for every command that tells it.

use chrono::Local;

use super::Context;
use super::texts::place::{self, MayOpen, Reader, Wording};
use super::texts::words;
use crate::access::Role;
use crate::agents::Agent;
use crate::answering::{Answer, Faltering, Question, who_answers};
use crate::domain::AgentId;
use crate::routing::FromChat;
use crate::storage::StoreError;

/// Who answers the person here now.
pub(super) async fn now(context: &Context<'_>) -> Result<Answer, StoreError> {
    after(context, from_chat(context)).await
}

/// Who would answer with other settings from chat.
pub(super) async fn after(
    context: &Context<'_>,
    from_chat: FromChat,
) -> Result<Answer, StoreError> {
    let table = &context.snapshot.table;
    let answer = who_answers(Question::said_to_the_bot(table, context.visit(), from_chat));
    let (person, agent) = (
        &context.inbound.origin.person,
        context.snapshot.agent_of(&answer.resolved.route),
    );
    let role = context.standing.with(&agent.id);
    let sessions = &context.services.sessions;
    let over = sessions.over_now(context.snapshot, &agent, person, role);
    let (over, pause) = (over.await?, sessions.pause_of(agent.uid));
    let faltering = faltering(context, &agent).await?;
    let answer = answer.unless_paused(pause).within(over);
    Ok(answer.with_models(faltering))
}

/// Whether the agent's models answer, the one chosen here first.
pub(super) async fn faltering(
    context: &Context<'_>,
    agent: &Agent,
) -> Result<Option<Faltering>, StoreError> {
    let (sessions, place) = (&context.services.sessions, &context.inbound.origin.key);
    let chosen = sessions.model(place, agent).await?;
    let lineup = agent.models.lineup(&chosen);
    Ok(Faltering::now(&context.snapshot.models, &lineup))
}

pub(super) fn from_chat(context: &Context<'_>) -> FromChat {
    FromChat {
        pin: context.pin.cloned(),
        opened: context.opened.cloned(),
        delivery_off: context.delivery_off.cloned(),
    }
}

/// One or two sentences.
pub(super) fn tell(context: &Context<'_>, answer: &Answer) -> String {
    let label = |id: &AgentId| label(context, id);
    let name = |id: &AgentId| {
        let known = context.snapshot.registry.get(id);
        known.map_or_else(|| id.to_string(), |agent| agent.name.clone())
    };
    let wording = Wording {
        label: &label,
        name: &name,
        ..wording(context)
    };
    place::tell(answer, &wording, &Local)
}

pub(super) fn label(context: &Context<'_>, agent: &AgentId) -> String {
    let known = context.snapshot.registry.get(agent);
    known.map_or_else(|| agent.to_string(), |agent| agent.label())
}

/// `this topic`.
pub(super) fn this(context: &Context<'_>) -> String {
    format!("this {}", words::kind(&context.inbound.origin.key))
}

/// Whether the place is the conversation of one member in a group.
pub(super) fn is_members_own(context: &Context<'_>) -> bool {
    let key = &context.inbound.origin.key;
    key.whole_group().is_some() && !key.is_shared()
}

/// Whether the person may open and close places.
pub(super) fn may_open(context: &Context<'_>) -> bool {
    context.standing.role() >= Role::Admin
}

/// The wording with ids for names.
fn wording<'a>(context: &'a Context<'_>) -> Wording<'a> {
    let this = this(context);
    Wording {
        here: if is_members_own(context) {
            format!("you in {this}")
        } else {
            "here".to_owned()
        },
        this,
        reader: Reader::Person {
            id: &context.inbound.origin.person,
            may_open: match (may_open(context), is_members_own(context)) {
                (false, _) => MayOpen::No,
                (true, false) => MayOpen::Yes,
                (true, true) => MayOpen::ForSelf,
            },
        },
        label: &AgentId::to_string,
        name: &AgentId::to_string,
    }
}
