//! `/agents`: lists the agents open to the person, with a mark at the agent of this place.

use super::{Context, Outcome};
use crate::channels::Choice;

pub(super) fn run(context: &Context<'_>) -> Outcome {
    let lines = context.usable_agents().map(|agent| {
        let here = if agent.id == context.route.agent {
            " ← answers here"
        } else {
            ""
        };
        format!(
            "- {} (`{}`), {}{here}",
            agent.label(),
            agent.id,
            agent.models.model
        )
    });
    let list = lines.collect::<Vec<_>>().join("\n");
    if list.is_empty() {
        return Outcome::say("No agent is open to you here. Ask an owner if you need one.");
    }
    Outcome::say(format!(
        "{list}\n\n`/agent <id>` gives this place to another."
    ))
    .offering(choices(context))
}

/// Choices for the agents a person can switch to, and the way back from a pin.
pub(super) fn choices(context: &Context<'_>) -> Vec<Choice> {
    let others = context
        .usable_agents()
        .filter(|agent| agent.id != context.route.agent);
    let mut choices: Vec<Choice> = others
        .map(|agent| Choice {
            label: agent.label(),
            command: format!("/agent {}", agent.id),
        })
        .collect();
    if context.pin.is_some() {
        choices.push(Choice {
            label: "↩ reset".into(),
            command: "/agent reset".into(),
        });
    }
    choices
}
