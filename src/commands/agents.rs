//! `/agents`: lists the agents open to the person, with a mark at the agent that answers here.

use super::texts::{agent as texts, words};
use super::{CommandError, Context, Outcome, agent, truth};
use crate::answering::Silence;
use crate::channels::Choice;
use crate::domain::AgentId;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let answer = truth::now(context).await?;
    let mut lines = Vec::new();
    for agent in context.usable_agents() {
        // A paused agent has the place all the same: its messages wait.
        let has_place = matches!(answer.silence, None | Some(Silence::Paused(_)));
        let is_here = has_place && agent.id == *answer.agent();
        let falters = truth::faltering(context, agent).await?;
        lines.push(texts::line(&texts::Listed {
            label: words::with_id(&agent.label(), &agent.name, &agent.id),
            model: words::model(&agent.models.model),
            is_paused: context.services.sessions.pause_of(agent.uid).is_some(),
            is_mute: falters.is_some_and(|falters| falters.instead.is_none()),
            is_here,
        }));
    }
    let mut paragraphs = vec![lines.join("\n")];
    if paragraphs[0].is_empty() {
        return Ok(Outcome::say(texts::NO_AGENT_FOR_YOU));
    }
    if answer.silence.is_some() || answer.faltering.is_some() {
        paragraphs.push(truth::tell(context, &answer));
    }
    if agent::may_switch(context) && answer.silence != Some(Silence::PlaceClosed) {
        let other = context
            .usable_agents()
            .find(|agent| agent.id != *answer.agent());
        paragraphs.extend(other.map(|agent| texts::switches(&agent.id, &agent.label())));
    } else if !agent::is_locked(context) && context.is_open {
        let mut others = context.usable_agents();
        let other = others.find(|agent| agent.id != *answer.agent());
        paragraphs.extend(other.map(|agent| texts::asks_once(&agent.id, &agent.label())));
    }
    Ok(Outcome::say(paragraphs.join("\n\n")).offering(choices(context)))
}

/// Choices for the agents a person can switch to, and the way back from a pin.
pub(super) fn choices(context: &Context<'_>) -> Vec<Choice> {
    let here = context.is_open.then_some(&context.route.agent);
    choices_besides(context, here, context.pin.is_some())
}

/// Choices for the agents a person can switch to, but for `here`, and the way back from a pin if
/// `is_switched`.
pub(super) fn choices_besides(
    context: &Context<'_>,
    here: Option<&AgentId>,
    is_switched: bool,
) -> Vec<Choice> {
    let may_switch = agent::may_switch(context);
    let others = context
        .usable_agents()
        .filter(|agent| may_switch && Some(&agent.id) != here);
    let mut choices: Vec<Choice> = others
        .map(|agent| Choice {
            label: agent.label(),
            command: format!("/agent {}", agent.id),
        })
        .collect();
    if is_switched && agent::may_reset(context) && !agent::is_locked(context) {
        choices.push(Choice {
            label: texts::RESET_BUTTON.into(),
            command: "/agent reset".into(),
        });
    }
    choices
}
