//! `/agent`: shows and switches the agent of a place.

use super::parse::AgentWish;
use super::{Context, Effect, Outcome, agents};
use crate::access::Role;
use crate::agents::Agent;
use crate::domain::UserError;
use crate::routing::{self, Pin};

pub(super) fn run(wish: AgentWish, context: &Context<'_>) -> Result<Outcome, UserError> {
    match wish {
        AgentWish::Show => Ok(Outcome::say(show(context)).offering(agents::choices(context))),
        AgentWish::Switch { to, once } => switch(context, &to, once),
        AgentWish::Reset => reset(context),
    }
}

fn show(context: &Context<'_>) -> String {
    let current = current(context);
    let other = context.usable_agents().find(|agent| agent.id != current.id);
    if let Some(closed) = context.closed {
        return super::not_for_you(context, closed).to_string();
    }
    match other {
        None => format!("{} answers here ({}).", who(current), context.route.rule),
        Some(other) => format!(
            "{} answers here ({}).\n`/agent {}` would give the place to {}; /agents lists everyone.",
            who(current),
            context.route.rule,
            other.id,
            other.label(),
        ),
    }
}

fn switch(context: &Context<'_>, to: &str, once: bool) -> Result<Outcome, UserError> {
    refuse_where_locked(context)?;
    let agent = context
        .snapshot
        .registry
        .find(to)
        .ok_or_else(|| unknown(context, to))?;
    refuse_where_closed(context, agent)?;
    let already = match context.pin {
        // A turn may be using up the pin right now, so the wish is written anew.
        Some(pin) if pin.once => false,
        Some(pin) => pin.agent == agent.id,
        None => once && context.route.agent == agent.id,
    };
    if already {
        return Ok(Outcome::say(format!(
            "{} already answers here.",
            who(agent)
        )));
    }
    let pin = Pin {
        agent: agent.id.clone(),
        once,
        set_by: context.inbound.origin.person.clone(),
    };
    let reply = match once {
        true => format!(
            "{} takes your next message here, and only that one.",
            who(agent)
        ),
        false => format!(
            "{} answers here from now on. `/agent reset` undoes that.",
            who(agent)
        ),
    };
    let handoff = (agent.id != context.route.agent).then(|| handoff(context, agent));
    Ok(Outcome::of(
        reply,
        Effect::Pin {
            agent: agent.uid,
            pin,
            handoff,
        },
    ))
}

fn reset(context: &Context<'_>) -> Result<Outcome, UserError> {
    refuse_where_locked(context)?;
    let bound = routing::route(&context.snapshot.table, None, &context.inbound.origin);
    let Some(agent) = context.snapshot.registry.get(&bound.agent) else {
        return Err(UserError::new("The config names no agent for this place."));
    };
    let reply = match context.pin {
        Some(_) => format!("{} answers here again ({}).", who(agent), bound.rule),
        None => format!(
            "Nothing was switched here. {} answers ({}).",
            who(agent),
            bound.rule
        ),
    };
    let handoff = context
        .pin
        .filter(|_| agent.id != context.route.agent)
        .map(|_| handoff(context, agent));
    Ok(Outcome::of(reply, Effect::Unpin { handoff }))
}

/// Locked places are changed by admins and owners only.
pub(super) fn is_locked(context: &Context<'_>) -> bool {
    context.route.locked && context.role < Role::Admin
}

/// Nobody fetches an agent that is closed to them, or to others who can write in the place.
fn refuse_where_closed(context: &Context<'_>, agent: &Agent) -> Result<(), UserError> {
    let (table, visit) = (&context.snapshot.table, context.visit());
    let Err(closed) = table.may_switch(&agent.id, visit) else {
        return Ok(());
    };
    if table.may_call(&agent.id, visit).is_err() {
        return Err(super::not_for_you(context, &closed));
    }
    Err(UserError::new(match context.role {
        Role::Owner => format!(
            "{closed}, and guests can write here. To open it here, bind this place to it in config.toml, or write `who = \"guest\"` under [agents.{}].",
            agent.id
        ),
        _ => format!("{closed}, and guests can write here. An owner can give this place to it."),
    }))
}

fn refuse_where_locked(context: &Context<'_>) -> Result<(), UserError> {
    if is_locked(context) {
        return Err(UserError::new(
            "This place is locked to its agent; only an owner or admin can switch it.",
        ));
    }
    Ok(())
}

fn unknown(context: &Context<'_>, word: &str) -> UserError {
    let registry = &context.snapshot.registry;
    let near: Vec<String> = registry
        .suggest(word)
        .iter()
        .filter(|near| context.usable_agents().any(|agent| agent.id == near.id))
        .map(|agent| format!("`/agent {}`", agent.id))
        .collect();
    let shown: String = word.chars().take(64).collect();
    UserError::new(match near.is_empty() {
        false => format!(
            "No agent is called {shown}. Did you mean {}?",
            near.join(" or ")
        ),
        true => {
            let known: Vec<&str> = context
                .usable_agents()
                .map(|agent| agent.id.as_str())
                .collect();
            format!(
                "No agent is called {shown}. There are: {}.",
                known.join(", ")
            )
        }
    })
}

pub(super) fn current<'a>(context: &'a Context<'_>) -> &'a Agent {
    let registry = &context.snapshot.registry;
    registry
        .get(&context.route.agent)
        .unwrap_or_else(|| registry.default_agent())
}

fn who(agent: &Agent) -> String {
    format!("{} ({})", agent.label(), agent.id)
}

fn handoff(context: &Context<'_>, to: &Agent) -> String {
    format!(
        "{} handed this place from {} to {}",
        context.inbound.person_name, context.route.agent, to.id
    )
}
