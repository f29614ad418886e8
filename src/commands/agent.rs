//! `/agent`: shows and switches the agent of a place, opens a place and closes it.

use super::parse::AgentWish;
use super::texts::{agent as texts, steering as steering_texts, words};
use super::{CommandError, Context, Effect, Handoff, Outcome, agents, steering, truth};
use chrono::Local;

use crate::access::Role;
use crate::agents::Agent;
use crate::answering::{Answer, Silence};
use crate::clock::now_ms;
use crate::config::Groups;
use crate::domain::UserError;
use crate::routing::{self, FromChat, Opened, Pin, Rule};
use crate::storage::StoreError;

pub(super) async fn run(wish: AgentWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    match wish {
        AgentWish::Show => {
            Ok(Outcome::say(show(context).await?).offering(agents::choices(context)))
        }
        AgentWish::Why => Ok(Outcome::say(why(context).await?)),
        AgentWish::Switch { to, once } => switch(context, &to, once).await,
        AgentWish::SwitchFor { to, ms } => switch_for(context, &to, ms).await,
        AgentWish::Steer { wish, agent } => steering::run(wish, &agent, context).await,
        AgentWish::Reset => reset(context).await,
        AgentWish::Close => close(context).await,
    }
}

async fn show(context: &Context<'_>) -> Result<String, StoreError> {
    if let Some(closed) = context.closed {
        return Ok(super::not_for_you(context, closed).to_string());
    }
    let answer = truth::now(context).await?;
    let told = truth::tell(context, &answer);
    let mut others = context.usable_agents();
    let hint = match (&answer.silence, is_locked(context)) {
        (_, true) | (Some(Silence::PlaceClosed), _) => None,
        _ => others
            .find(|agent| agent.id != context.route.agent)
            .map(|other| texts::other(&other.id, &other.label())),
    };
    Ok(hint.map_or_else(|| told.clone(), |hint| format!("{told}\n{hint}")))
}

/// Who answers, and for owners and admins every rule on the way. The rules name other people and
/// places.
async fn why(context: &Context<'_>) -> Result<String, StoreError> {
    if let Some(closed) = context.closed {
        return Ok(super::not_for_you(context, closed).to_string());
    }
    let answer = truth::now(context).await?;
    let told = truth::tell(context, &answer);
    if !truth::may_open(context) {
        return Ok(format!("{told}\n{}", steering_texts::WHY_IN_SHORT));
    }
    let (table, origin) = (&context.snapshot.table, &context.inbound.origin);
    let walk = routing::explain(table, answer.resolved.pin.as_ref(), origin);
    Ok(steering_texts::why(&told, &walk.to_string()))
}

/// Gives an open place to an agent for some time.
async fn switch_for(context: &Context<'_>, to: &str, ms: i64) -> Result<Outcome, CommandError> {
    refuse_where_locked(context)?;
    let agent = context.snapshot.registry.find(to);
    let agent = agent.ok_or_else(|| unknown(context, to))?;
    refuse_where_closed(context, agent)?;
    if !context.is_open {
        return Err(UserError::new(texts::not_for_a_while(&truth::this(context))).into());
    }
    let now = now_ms();
    let until = now + ms;
    let pin = Pin {
        agent: agent.id.clone(),
        once: false,
        set_by: context.inbound.origin.person.clone(),
        set_by_name: Some(context.inbound.person_name.clone()),
        set_at: now,
        until: Some(until),
    };
    let then = FromChat {
        pin: Some(pin.clone()),
        opened: context.opened.cloned(),
        delivery_off: context.delivery_off.cloned(),
    };
    let answer = truth::after(context, then).await?;
    let end = format!(
        "{}, {}",
        words::time(&Local, until),
        words::day(&Local, until)
    );
    let told = steering_texts::for_a_while(&agent.label(), ms, &end);
    let told = match answer.silence {
        None => told,
        Some(_) => format!("{told}\n{}", truth::tell(context, &answer)),
    };
    let handoff = (agent.id != context.route.agent).then(|| handoff(context, agent));
    Ok(Outcome::of(
        told,
        Effect::PinUntil {
            agent: agent.uid,
            pin,
            until,
            handoff,
        },
    ))
}

async fn switch(context: &Context<'_>, to: &str, once: bool) -> Result<Outcome, CommandError> {
    refuse_where_locked(context)?;
    let agent = context
        .snapshot
        .registry
        .find(to)
        .ok_or_else(|| unknown(context, to))?;
    refuse_where_closed(context, agent)?;
    let already = match context.pin {
        // A turn may be using up the pin right now, so the wish is written anew.
        Some(pin) if pin.once || pin.until.is_some() => false,
        Some(pin) => pin.agent == agent.id && context.is_open,
        None => once && context.route.agent == agent.id && context.is_open,
    };
    if already {
        let answer = truth::now(context).await?;
        let already = match &answer.silence {
            Some(Silence::Paused(_)) => truth::tell(context, &answer),
            _ => texts::already(&agent.label()),
        };
        let already = Outcome::say(already);
        return Ok(already.after_press(context, || agents::choices(context)));
    }
    let pin = Pin {
        agent: agent.id.clone(),
        once,
        set_by: context.inbound.origin.person.clone(),
        set_by_name: Some(context.inbound.person_name.clone()),
        set_at: now_ms(),
        until: None,
    };
    let opens = (!context.is_open && !once && truth::may_open(context)).then(|| opened(context));
    let reply = switched(context, agent, &pin, opens.as_ref()).await?;
    let handoff = (agent.id != context.route.agent).then(|| handoff(context, agent));
    let effect = Effect::Pin {
        agent: agent.uid,
        pin,
        opens,
        handoff,
    };
    Ok(Outcome::of(reply, effect).after_press(context, || {
        agents::choices_besides(context, Some(&agent.id), true)
    }))
}

fn opened(context: &Context<'_>) -> Opened {
    Opened {
        by: context.inbound.origin.person.clone(),
        by_name: Some(context.inbound.person_name.clone()),
        at: now_ms(),
    }
}

/// The reply to a switch. A limit that keeps the new agent from answering is told too.
async fn switched(
    context: &Context<'_>,
    agent: &Agent,
    pin: &Pin,
    opens: Option<&Opened>,
) -> Result<String, StoreError> {
    let (label, this) = (agent.label(), truth::this(context));
    let whose = if truth::is_members_own(context) {
        texts::Whose::Members
    } else {
        texts::Whose::Everybodys
    };
    let told = match (pin.once, opens) {
        (true, _) => texts::once(&label, (!context.is_open).then_some(this.as_str())),
        (false, Some(_)) => texts::opened(&label, whose, &this),
        (false, None) => texts::switched(&label, whose, &this),
    };
    let then = FromChat {
        pin: Some(pin.clone()),
        opened: opens.or(context.opened).cloned(),
        delivery_off: context.delivery_off.cloned(),
    };
    let answer = truth::after(context, then).await?;
    if let Some(Silence::Paused(_)) = answer.silence
        && !pin.once
        && opens.is_none()
    {
        return Ok(texts::switched_to_paused(&label, &agent.id));
    }
    let is_plain = answer.silence.is_none() && answer.resolved.delivery_off.is_none();
    Ok(match is_plain {
        true => told,
        false => format!("{told}\n{}", truth::tell(context, &answer)),
    })
}

/// Takes the pin back. The place stays open.
async fn reset(context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_where_locked(context)?;
    let bound = routing::route(&context.snapshot.table, None, &context.inbound.origin);
    let Some(agent) = context.snapshot.registry.get(&bound.agent) else {
        return Err(UserError::new(texts::NO_AGENT_IN_CONFIG).into());
    };
    refuse_reset_that_closes(context, agent)?;
    let then = FromChat {
        pin: None,
        opened: context.opened.cloned(),
        delivery_off: context.delivery_off.cloned(),
    };
    let answer = truth::after(context, then).await?;
    let handoff = context
        .pin
        .filter(|_| agent.id != context.route.agent)
        .map(|_| handoff(context, agent));
    let outcome = Outcome::of(reset_told(context, &answer), Effect::Unpin { handoff });
    Ok(outcome.after_press(context, || {
        let here = answer.is_open.then(|| answer.agent());
        agents::choices_besides(context, here, false)
    }))
}

fn reset_told(context: &Context<'_>, answer: &Answer) -> String {
    let (then, this) = (truth::tell(context, answer), truth::this(context));
    let told = match (context.pin, &answer.silence) {
        (None, _) => texts::nothing_switched(&then),
        (Some(_), Some(Silence::PlaceClosed)) => texts::reset_and_silent(&this),
        (Some(_), _) => texts::reset(&then),
    };
    // Only the way of people who may go it.
    let may_close = truth::may_open(context)
        && context.opened.is_some()
        && answer.resolved.route.rule == Rule::Default;
    match may_close {
        true => format!("{told}\n{}", texts::may_close(&this)),
        false => told,
    }
}

async fn close(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if !truth::may_open(context) {
        return Err(UserError::new(texts::CLOSE_NEEDS_ADMIN).into());
    }
    if context.inbound.origin.key.is_private() {
        return Err(UserError::new(texts::CLOSE_IN_PRIVATE).into());
    }
    let this = truth::this(context);
    let then = truth::after(context, FromChat::default()).await?;
    Ok(match then.is_open {
        true => Outcome::say(texts::open_by_config(&this, &opened_by(context, &then))),
        false if !context.is_open => Outcome::say(texts::closed_before(&this)),
        false => Outcome::of(texts::closed(&this), Effect::Close),
    })
}

/// Why a place stays open.
fn opened_by(context: &Context<'_>, then: &Answer) -> String {
    match &then.resolved.route.rule {
        Rule::Binding { line, matches, .. } if then.resolved.route.opens_place => {
            texts::bound_by(*line, matches)
        }
        _ => {
            debug_assert_eq!(context.snapshot.config.access.groups, Groups::Open);
            texts::ALL_GROUPS_OPEN.to_owned()
        }
    }
}

/// Locked places are changed by admins and owners only.
pub(super) fn is_locked(context: &Context<'_>) -> bool {
    context.route.locked && context.role < Role::Admin
}

/// A reset to an agent that is not for everybody would close a shared place to some of its people,
/// and only admins and owners close places.
fn refuse_reset_that_closes(context: &Context<'_>, agent: &Agent) -> Result<(), UserError> {
    if context.pin.is_some() && !may_reset(context) {
        return Err(UserError::new(texts::reset_would_close(&agent.label())));
    }
    Ok(())
}

/// Whether the person may take the pin back.
pub(super) fn may_reset(context: &Context<'_>) -> bool {
    let table = &context.snapshot.table;
    let bound = routing::route(table, None, &context.inbound.origin);
    truth::may_open(context) || table.may_switch(&bound.agent, context.visit()).is_ok()
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
    let owners_agent = (context.role == Role::Owner).then_some(&agent.id);
    Err(UserError::new(texts::not_for_guests(
        &agent.label(),
        &closed,
        owners_agent,
    )))
}

fn refuse_where_locked(context: &Context<'_>) -> Result<(), UserError> {
    if is_locked(context) {
        return Err(UserError::new(texts::locked(&current(context).label())));
    }
    Ok(())
}

pub(super) fn unknown(context: &Context<'_>, word: &str) -> UserError {
    let registry = &context.snapshot.registry;
    let near: Vec<String> = registry
        .suggest(word)
        .iter()
        .filter(|near| context.usable_agents().any(|agent| agent.id == near.id))
        .map(|agent| format!("`/agent {}`", agent.id))
        .collect();
    let shown: String = word.chars().take(64).collect();
    let known: Vec<String> = context
        .usable_agents()
        .map(|agent| agent.id.to_string())
        .collect();
    UserError::new(texts::no_such_agent(&shown, &near, &known))
}

pub(super) fn current<'a>(context: &'a Context<'_>) -> &'a Agent {
    let registry = &context.snapshot.registry;
    registry
        .get(&context.route.agent)
        .unwrap_or_else(|| registry.default_agent())
}

fn handoff(context: &Context<'_>, to: &Agent) -> Handoff {
    Handoff {
        from: context.route.agent.clone(),
        to: to.id.clone(),
        role: context.role,
    }
}
