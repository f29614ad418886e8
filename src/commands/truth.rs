//! Asks for the agent that answers in the place of a command. All commands that tell the agent use
//! this.

use chrono::Local;

use super::Context;
use super::texts::place::{self, MayOpen, Reader, Wording};
use super::texts::words;
use crate::access::Role;
use crate::agents::{Agent, shown_name};
use crate::answering::{Answer, Faltering, Question, who_answers};
use crate::config::Config;
use crate::domain::AgentId;
use crate::operations::named::Named;
use crate::operations::names::Names;
use crate::operations::opening::Opening;
use crate::routing::{FromChat, Table, Visit};
use crate::storage::StoreError;

/// The agent that answers the person here now.
pub(super) async fn now(context: &Context<'_>) -> Result<Answer, StoreError> {
    after(context, from_chat(context)).await
}

/// The agent that would answer with other settings from chat.
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
    let place = &context.inbound.origin.key;
    let operations = &context.services.operations;
    let obstacles = operations.all_obstacles(place, person, answer.needs_mention);
    let obstacles = obstacles.await?;
    Ok(answer.with_models(faltering).behind(obstacles))
}

/// Whether the agent's models answer, the model chosen here first.
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

/// An answer in one or two sentences, for the person of the command.
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

/// Whether the place is the conversation of a single member in a group.
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
            is_owner: context.standing.role() == Role::Owner,
        },
        label: &AgentId::to_string,
        name: &AgentId::to_string,
    }
}

/// An answer in one or two sentences, for an operator who asks about a person.
pub(crate) fn tell_operator(
    (config, table): (&Config, &Table),
    answer: &Answer,
    visit: Visit<'_>,
    names: &Names,
) -> String {
    let origin = visit.origin;
    let name = |id: &AgentId| {
        let spec = config.agents.iter().find(|spec| spec.id == *id);
        spec.map_or_else(|| id.to_string(), shown_name)
    };
    let about = if origin.person.is_nobody() {
        visit.standing.role().with_article().to_owned()
    } else {
        names.person(&origin.person).text()
    };
    let place = names.place(&origin.key);
    let place = match place.words() {
        Some(_) => place,
        None => Named::new(&origin.key, origin.place_name()),
    };
    let wording = Wording {
        here: format!("in {}", place.text()),
        this: format!("this {}", words::kind(&origin.key)),
        reader: Reader::Operator {
            about: &about,
            opening: &|agent| Opening::of(config, table, &origin.key, agent).told(),
        },
        label: &name,
        name: &name,
    };
    place::tell(answer, &wording, &Local)
}
