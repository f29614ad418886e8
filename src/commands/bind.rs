//! `/bind` and `/unbind`: an owner writes the agent of a place into config.toml, or takes the agent
//! out.

use super::texts::{steering as texts, words};
use super::{CommandError, Context, Effect, Outcome, agent, truth};
use crate::access::{Role, Standing};
use crate::answering::{Answer, Question, who_answers};
use crate::channels::local::person_of;
use crate::config::{Groups, Report};
use crate::domain::{AgentId, Origin, SessionKey, UserError};
use crate::home::Reload;
use crate::records::audit::Actor;
use crate::routing::{FromChat, Rule, Visit};
use crate::tenants::{self, Bound, Site, TenantError};

pub(super) async fn bind(word: &str, context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    let known = context.snapshot.registry.find(word);
    let agent = known.ok_or_else(|| agent::unknown(context, word))?;
    let (place, this) = (key(context), this(context));
    let bound = tenants::bind(&site(context), &place, &agent.id).await;
    let label = agent.label();
    match bound.map_err(|error| refused(context, &error))? {
        None => Ok(Outcome::of(
            texts::bound_already(&label, &this),
            Effect::Bind {
                before: None,
                after: None,
            },
        )),
        Some(Bound { before, line }) => {
            reload(context, "/bind").await?;
            let mut reply = texts::bound(&label, &this, &place, &agent.id, line);
            if !place.is_private() && leaves_people_out(context, &agent.id) {
                reply = format!("{reply}\n{}", texts::bound_for_all(&label, &this));
            }
            let effect = Effect::Bind {
                before,
                after: Some(agent.id.clone()),
            };
            Ok(Outcome::of(reply, effect))
        }
    }
}

pub(super) async fn unbind(context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    let (place, this) = (key(context), this(context));
    let unbound = tenants::unbind(&site(context), &place).await;
    let unbound = unbound.map_err(|error| refused(context, &error))?;
    let Some(Bound { before, line }) = unbound else {
        return Err(UserError::new(texts::not_bound(&this, &place)).into());
    };
    reload(context, "/unbind").await?;
    let label = before.as_ref().map(|before| truth::label(context, before));
    let snapshot = context.services.snapshots.current();
    let now = Context {
        snapshot: &snapshot,
        ..*context
    };
    let answer = truth::now(&now).await?;
    let then = truth::tell(&now, &answer);
    let mut reply = texts::unbound(&label.unwrap_or_default(), &this, line, &then);
    let is_closed_for_others = answer.is_open && !is_open_for_others(&now, &place);
    if is_closed_for_others {
        reply.push(' ');
        reply.push_str(&texts::closed_for_others(&this));
    }
    if let Some(why) = why_open(&now, &answer).filter(|_| !is_closed_for_others) {
        reply.push(' ');
        reply.push_str(&why);
    }
    let after = None;
    Ok(Outcome::of(reply, Effect::Unbind { before, after }))
}

/// Whether the `who` of an agent is written, and is not everybody.
fn leaves_people_out(context: &Context<'_>, agent: &AgentId) -> bool {
    let mut written = context.snapshot.config.agents.iter();
    written
        .any(|spec| spec.id == *agent && spec.who.is_written && spec.who.role != Some(Role::Guest))
}

/// Why a shared place stays open though no binding and no pin gives it to an agent.
fn why_open(context: &Context<'_>, answer: &Answer) -> Option<String> {
    let (key, resolved) = (&context.inbound.origin.key, &answer.resolved);
    if key.is_private() || !answer.is_open || !matches!(resolved.route.rule, Rule::Default) {
        return None;
    }
    let this = this(context);
    match &resolved.opened {
        Some(opened) => {
            let by = opened
                .by_name
                .clone()
                .unwrap_or_else(|| opened.by.to_string());
            Some(texts::open_from_chat(&this, &by))
        }
        None if context.snapshot.config.access.groups == Groups::Open => {
            Some(texts::open_as_all(&this))
        }
        None => None,
    }
}

/// Whether a stranger would be answered in the place. Where each member of a group has a
/// conversation of their own, `/agent` opens the group for the member who wrote it only.
fn is_open_for_others(context: &Context<'_>, place: &SessionKey) -> bool {
    if !truth::is_members_own(context) {
        return true;
    }
    let origin = Origin {
        key: place.clone(),
        person: person_of(place),
        roles: Vec::new(),
        ..context.inbound.origin.clone()
    };
    let visit = Visit {
        origin: &origin,
        standing: &Standing::GUEST,
        ..context.visit()
    };
    let table = &context.snapshot.table;
    who_answers(Question::said_to_the_bot(table, visit, FromChat::default())).is_open
}

fn refuse_others(context: &Context<'_>) -> Result<(), UserError> {
    match context.standing.role() {
        Role::Owner => Ok(()),
        _ => Err(UserError::new(texts::BIND_NEEDS_OWNER)),
    }
}

/// The key of a binding for this place. Each member of a plain group has a conversation of their
/// own, but people see the group as the place.
fn key(context: &Context<'_>) -> SessionKey {
    let key = &context.inbound.origin.key;
    let group = key.whole_group().filter(|_| !key.is_shared());
    group.unwrap_or_else(|| key.clone())
}

fn this(context: &Context<'_>) -> String {
    format!("this {}", words::kind(&context.inbound.origin.key))
}

fn site(context: &Context<'_>) -> Site {
    Site {
        home: context.services.home.clone(),
        db: context.services.db.clone(),
        by: Actor::of(context.inbound),
    }
}

/// Has the running gateway take the change in at once.
async fn reload(context: &Context<'_>, command: &str) -> Result<(), UserError> {
    let (person, name) = (&context.inbound.origin.person, &context.inbound.person_name);
    let handle = &context.services.reload;
    let is_private = context.inbound.origin.key.is_private();
    match handle.ask_by(person, name, command).await {
        Some(Reload::Refused(_)) if !is_private => Err(UserError::new(texts::BROKEN_SINCE)),
        Some(Reload::Refused(problem)) => Err(UserError::new(texts::not_taken_in(&problem))),
        _ => Ok(()),
    }
}

/// Where others read along, neither paths nor lines of config.toml are shown.
fn refused(context: &Context<'_>, error: &TenantError) -> UserError {
    let is_private = context.inbound.origin.key.is_private();
    UserError::new(match error {
        TenantError::Broken(_) | TenantError::Load(_) if !is_private => {
            texts::BROKEN_BEFORE.to_owned()
        }
        TenantError::Problems(report) if !is_private => texts::not_written(&in_short(report)),
        TenantError::Problems(report) | TenantError::Broken(report) => {
            texts::not_written(report.render_problems(false).trim_end())
        }
        other => texts::not_written(&other.to_string()),
    })
}

/// The problems of a report, a line each.
fn in_short(report: &Report) -> String {
    let problems = report.problems.iter();
    let lines: Vec<&str> = problems.map(|problem| problem.message.as_str()).collect();
    lines.join("\n")
}
