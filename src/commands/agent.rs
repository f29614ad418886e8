//! `/agent`: shows and switches the agent of a place, opens and closes a place.

use super::parse::AgentWish;
use super::texts::agent::{self as texts, Borrows};
use super::texts::{steering as steering_texts, words};
use super::{CommandError, Context, Effect, Handoff, Outcome, agents, steering, truth};
use chrono::Local;
use rusqlite::Connection;

use crate::access::{NotForYou, Role};
use crate::agents::Agent;
use crate::answering::{Answer, Question, Silence, who_answers};
use crate::clock::now_ms;
use crate::config::Groups;
use crate::domain::{AgentId, UserError};
use crate::routing::{self, FromChat, Opened, Pin, Rule, pins};
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
    let hint = match (&answer.silence, may_switch(context)) {
        (_, false) | (Some(Silence::PlaceClosed), _) => None,
        _ => others
            .find(|agent| agent.id != context.route.agent)
            .map(|other| texts::other(&other.id, &other.label())),
    };
    Ok(hint.map_or_else(|| told.clone(), |hint| format!("{told}\n{hint}")))
}

/// Tells the agent that answers, and to owners and admins every rule on the way. The rules name
/// other people and places.
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
    let mut walk = walk.in_short();
    walk.is_silent = answer.silence.is_some();
    Ok(steering_texts::why(&told, &walk.to_string()))
}

/// Gives an open place to an agent for some time.
async fn switch_for(context: &Context<'_>, to: &str, ms: i64) -> Result<Outcome, CommandError> {
    refuse_where_locked(context)?;
    let agent = context.snapshot.registry.find(to);
    let agent = agent.ok_or_else(|| unknown(context, to))?;
    refuse_where_closed(context, agent)?;
    if let Some(closed) = context.closed.filter(|_| may_not_take(context).is_some()) {
        let told = not_yours(context, closed, agent, Borrows::Once);
        return Err(UserError::new(told).into());
    }
    if !is_open_later(context) {
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
            from: context.route.agent.clone(),
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
    if has_place(context, agent) {
        return already(context, agent).await;
    }
    refuse_where_closed(context, agent)?;
    let pin = Pin {
        agent: agent.id.clone(),
        once,
        set_by: context.inbound.origin.person.clone(),
        set_by_name: Some(context.inbound.person_name.clone()),
        set_at: now_ms(),
        until: None,
    };
    if !once {
        refuse_taking(context, agent).await?;
    }
    let opens = !is_open_later(context) && !once && truth::may_open(context);
    let opens = opens.then(|| opened(context));
    let reply = switched(context, agent, &pin, opens.as_ref()).await?;
    let handoff = (agent.id != context.route.agent).then(|| handoff(context, agent));
    let effect = Effect::Pin {
        agent: agent.uid,
        pin,
        opens,
        from: context.route.agent.clone(),
        handoff,
    };
    Ok(Outcome::of(reply, effect).after_press(context, || {
        agents::choices_besides(context, Some(&agent.id), true)
    }))
}

/// Whether the agent answers the person here, with no end in sight.
fn has_place(context: &Context<'_>, agent: &Agent) -> bool {
    let is_lasting = match context.pin {
        // A turn may be using up the pin right now, so the wish is written anew.
        Some(pin) => !pin.once && pin.until.is_none(),
        None => true,
    };
    let answers = context.is_open && context.closed.is_none();
    is_lasting && answers && context.route.agent == agent.id
}

async fn already(context: &Context<'_>, agent: &Agent) -> Result<Outcome, CommandError> {
    let answer = truth::now(context).await?;
    let told = match &answer.silence {
        Some(Silence::Paused(_)) => truth::tell(context, &answer),
        _ => texts::already(&agent.label()),
    };
    Ok(Outcome::say(told).after_press(context, || agents::choices(context)))
}

/// Whether the place is open beyond the next message. A pin for a single message opens a place for
/// this message only.
fn is_open_later(context: &Context<'_>) -> bool {
    let settings = FromChat {
        pin: context.pin.filter(|pin| !pin.once).cloned(),
        ..truth::from_chat(context)
    };
    let table = &context.snapshot.table;
    let question = Question::said_to_the_bot(table, context.visit(), settings);
    who_answers(question).is_open
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
        (true, _) => texts::once(&label, (!is_open_later(context)).then_some(this.as_str())),
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

/// Takes the pin back. A pin beneath counts again, and the place stays open.
async fn reset(context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_where_locked(context)?;
    let Some(pin) = context.pin else {
        let answer = truth::now(context).await?;
        let told = texts::nothing_switched(&truth::tell(context, &answer));
        let told = with_way_to_close(context, told, &answer);
        return Ok(Outcome::say(told).after_press(context, || agents::choices(context)));
    };
    let beneath = beneath(context, pin).await?;
    let then = FromChat {
        pin: beneath,
        opened: context.opened.cloned(),
        delivery_off: context.delivery_off.cloned(),
    };
    let answer = truth::after(context, then).await?;
    let agent = context.snapshot.registry.get(answer.agent());
    let agent = agent.ok_or_else(|| UserError::new(texts::NO_AGENT_IN_CONFIG))?;
    refuse_reset(context, pin, &answer, agent)?;
    let handoff = (agent.id != context.route.agent).then(|| handoff(context, agent));
    let effect = Effect::Unpin {
        pin: pin.clone(),
        handoff,
    };
    let outcome = Outcome::of(reset_told(context, &answer), effect);
    Ok(outcome.after_press(context, || {
        let here = answer.is_open.then(|| answer.agent());
        agents::choices_besides(context, here, answer.resolved.pin.is_some())
    }))
}

/// The pin that counts once this pin is gone.
async fn beneath(context: &Context<'_>, pin: &Pin) -> Result<Option<Pin>, StoreError> {
    let (place, pin) = (context.inbound.origin.key.clone(), pin.clone());
    let read = move |connection: &Connection| pins::beneath(connection, &place, &pin);
    context.services.db.read(read).await
}

fn reset_told(context: &Context<'_>, answer: &Answer) -> String {
    let (then, this) = (truth::tell(context, answer), truth::this(context));
    let told = match (&answer.resolved.pin, &answer.silence) {
        (Some(_), _) => texts::reset_to_earlier(&then),
        (None, Some(Silence::PlaceClosed)) => texts::reset_and_silent(&this),
        (None, _) => texts::reset(&then),
    };
    with_way_to_close(context, told, answer)
}

/// Adds the command that closes the place, for people with the right to close.
fn with_way_to_close(context: &Context<'_>, told: String, answer: &Answer) -> String {
    let may_close = truth::may_open(context)
        && context.opened.is_some()
        && answer.resolved.route.rule == Rule::Default;
    match may_close {
        true => format!("{told}\n{}", texts::may_close(&truth::this(context))),
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

/// Whether the person may give the place to another agent for good.
pub(super) fn may_switch(context: &Context<'_>) -> bool {
    !is_locked(context) && may_not_take(context).is_none()
}

/// Locked places are changed by admins and owners only.
pub(super) fn is_locked(context: &Context<'_>) -> bool {
    context.route.locked && context.role < Role::Admin
}

/// A reset to an agent with a limited `who` would close a shared place to some of its people, and
/// only admins and owners close places. A person's own switch is theirs to undo.
fn refuse_reset(
    context: &Context<'_>,
    pin: &Pin,
    then: &Answer,
    agent: &Agent,
) -> Result<(), UserError> {
    if truth::may_open(context) || is_own(context, pin) {
        return Ok(());
    }
    if let Some(closed) = may_not_take(context) {
        let label = truth::label(context, &pin.agent);
        let closed = (&closed, is_for_reader(context, &closed));
        return Err(UserError::new(texts::reset_is_not_yours(&label, closed)));
    }
    // A pin in force was checked for all people of its place.
    let closes = then.resolved.pin.is_none() && !is_for_everybody(context, &agent.id);
    match closes {
        true => Err(UserError::new(texts::reset_would_close(&agent.label()))),
        false => Ok(()),
    }
}

/// Whether the person may take the pin back, for the button.
pub(super) fn may_reset(context: &Context<'_>) -> bool {
    if truth::may_open(context) || context.pin.is_some_and(|pin| is_own(context, pin)) {
        return true;
    }
    let bound = routing::route(&context.snapshot.table, None, &context.inbound.origin);
    may_not_take(context).is_none() && is_for_everybody(context, &bound.agent)
}

fn is_for_everybody(context: &Context<'_>, agent: &AgentId) -> bool {
    let table = &context.snapshot.table;
    table.may_switch(agent, context.visit()).is_ok()
}

fn is_own(context: &Context<'_>, pin: &Pin) -> bool {
    let people = &context.snapshot.config.access.people;
    people.is_same(&pin.set_by, &context.inbound.origin.person)
}

/// Set when the person could not give the place back to its present agent. Apart from owners and
/// admins, only people who could do so may take a shared place from the agent for good.
pub(super) fn may_not_take(context: &Context<'_>) -> Option<NotForYou> {
    let is_free = !context.inbound.origin.key.is_shared()
        || truth::may_open(context)
        || context.pin.is_some_and(|pin| is_own(context, pin));
    let table = &context.snapshot.table;
    match is_free {
        true => None,
        false => table
            .may_switch(&context.route.agent, context.visit())
            .err(),
    }
}

/// Refuses to take a shared place from its agent for good, to people who could not give the place
/// back. A pin for a while or for a single message has its lasting agent beneath.
async fn refuse_taking(context: &Context<'_>, to: &Agent) -> Result<(), CommandError> {
    let key = &context.inbound.origin.key;
    if !key.is_shared() || truth::may_open(context) {
        return Ok(());
    }
    let place = key.clone();
    let read = move |connection: &Connection| pins::lasting(connection, &place);
    let lasting = context.services.db.read(read).await?;
    if lasting.as_ref().is_some_and(|pin| is_own(context, pin)) {
        return Ok(());
    }
    let settings = FromChat {
        pin: lasting,
        ..truth::from_chat(context)
    };
    let table = &context.snapshot.table;
    let holder = routing::resolve(table, settings, context.visit())
        .route
        .agent;
    let Err(closed) = table.may_switch(&holder, context.visit()) else {
        return Ok(());
    };
    if holder == to.id {
        return Ok(());
    }
    let borrows = match context.closed {
        Some(_) => Borrows::Once,
        None => Borrows::ForAWhile,
    };
    Err(UserError::new(not_yours(context, &closed, to, borrows)).into())
}

fn not_yours(context: &Context<'_>, closed: &NotForYou, to: &Agent, borrows: Borrows) -> String {
    let (label, this) = (truth::label(context, &closed.agent), truth::this(context));
    let closed = (closed, is_for_reader(context, closed));
    texts::not_yours_to_take(&label, &this, closed, &to.id, borrows)
}

/// Whether an agent that is closed to others in the place is open to the person.
fn is_for_reader(context: &Context<'_>, closed: &NotForYou) -> bool {
    let table = &context.snapshot.table;
    table.may_call(&closed.agent, context.visit()).is_ok()
}

/// Refuses to fetch an agent that is closed to the person, or to others who can write in the place.
fn refuse_where_closed(context: &Context<'_>, agent: &Agent) -> Result<(), UserError> {
    let (table, visit) = (&context.snapshot.table, context.visit());
    let Err(closed) = table.may_switch(&agent.id, visit) else {
        return Ok(());
    };
    if has_place(context, agent) {
        return Err(UserError::new(texts::already(&agent.label())));
    }
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
