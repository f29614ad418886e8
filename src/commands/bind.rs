//! `/bind` and `/unbind`: an owner writes the agent of a place into config.toml, and takes it out.

use super::texts::{steering as texts, words};
use super::{CommandError, Context, Effect, Outcome, agent, truth};
use crate::access::Role;
use crate::domain::{SessionKey, UserError};
use crate::home::Reload;
use crate::records::audit::Actor;
use crate::tenants::{self, Bound, Site, TenantError};

pub(super) async fn bind(word: &str, context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    let known = context.snapshot.registry.find(word);
    let agent = known.ok_or_else(|| agent::unknown(context, word))?;
    let (place, this) = (key(context), this(context));
    let bound = tenants::bind(&site(context), &place, &agent.id).await;
    let label = agent.label();
    match bound.map_err(refused)? {
        None => Ok(Outcome::of(
            texts::bound_already(&label, &this),
            Effect::Bind {
                before: None,
                after: None,
            },
        )),
        Some(Bound { before, line }) => {
            reload(context, "/bind").await?;
            let reply = texts::bound(&label, &this, &place, &agent.id, line);
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
    let Some(Bound { before, line }) = unbound.map_err(refused)? else {
        return Err(UserError::new(texts::not_bound(&this, &place)).into());
    };
    reload(context, "/unbind").await?;
    let label = before.as_ref().map(|before| truth::label(context, before));
    let reply = texts::unbound(&label.unwrap_or_default(), &this, line);
    let after = None;
    Ok(Outcome::of(reply, Effect::Unbind { before, after }))
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
    match handle.ask_by(person, name, command).await {
        Some(Reload::Refused(problem)) => Err(UserError::new(texts::not_taken_in(&problem))),
        _ => Ok(()),
    }
}

fn refused(error: TenantError) -> UserError {
    let problem = match &error {
        TenantError::Problems(report) | TenantError::Broken(report) => {
            report.render_problems(false).trim_end().to_owned()
        }
        other => other.to_string(),
    };
    UserError::new(texts::not_written(&problem))
}
