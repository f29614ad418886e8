//! `/agents`: lists the agents open to the person, with a mark at the agent that answers here.

use super::texts::{agent as texts, words};
use super::{CommandError, Context, Outcome, agent, truth};
use crate::answering::Silence;
use crate::channels::Choice;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let answer = truth::now(context).await?;
    let lines = context.usable_agents().map(|agent| {
        let answers_here = answer.silence.is_none() && agent.id == *answer.agent();
        let label = words::with_id(&agent.label(), &agent.name, &agent.id);
        texts::line(&label, &words::model(&agent.models.model), answers_here)
    });
    let mut paragraphs = vec![lines.collect::<Vec<_>>().join("\n")];
    if paragraphs[0].is_empty() {
        return Ok(Outcome::say(texts::NO_AGENT_FOR_YOU));
    }
    if answer.silence.is_some() {
        paragraphs.push(truth::tell(context, &answer));
    }
    if !agent::is_locked(context) && answer.silence != Some(Silence::PlaceClosed) {
        let other = context
            .usable_agents()
            .find(|agent| agent.id != *answer.agent());
        paragraphs.extend(other.map(|agent| texts::switches(&agent.id, &agent.label())));
    }
    Ok(Outcome::say(paragraphs.join("\n\n")).offering(choices(context)))
}

/// Choices for the agents a person can switch to, and the way back from a pin.
pub(super) fn choices(context: &Context<'_>) -> Vec<Choice> {
    if agent::is_locked(context) {
        return Vec::new();
    }
    let others = context
        .usable_agents()
        .filter(|agent| agent.id != context.route.agent || !context.is_open);
    let mut choices: Vec<Choice> = others
        .map(|agent| Choice {
            label: agent.label(),
            command: format!("/agent {}", agent.id),
        })
        .collect();
    if context.pin.is_some() && agent::may_reset(context) {
        choices.push(Choice {
            label: texts::RESET_BUTTON.into(),
            command: "/agent reset".into(),
        });
    }
    choices
}
