//! `/jobs`: the jobs of the agent here, and `/jobs pause N` and its like.

use rusqlite::Connection;

use super::parse::JobsWish;
use super::texts::jobs as texts;
use super::{CommandError, Context, Effect, Outcome, truth};
use crate::access::Role;
use crate::clock::now_ms;
use crate::domain::{PersonId, UserError};
use crate::home::Snapshot;
use crate::operations::jobs::{JobChange, JobView, view};
use crate::operations::known_jobs::{self, Job};
use crate::records::jobs as rows;
use crate::storage::StoreError;

/// The most jobs in a list.
const MOST_SHOWN: usize = 20;

pub(super) async fn run(wish: JobsWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.role < Role::Member {
        return Err(UserError::new(texts::MEMBERS_ONLY).into());
    }
    let jobs = seen(context).await?;
    match wish {
        JobsWish::List => Ok(Outcome::say(list(context, &jobs))),
        JobsWish::Change { change, which } => changed(context, &jobs, change, &which),
    }
}

fn list(context: &Context<'_>, jobs: &[(Job, JobView)]) -> String {
    let label = truth::label(context, &context.route.agent);
    let lines = jobs.iter().take(MOST_SHOWN).map(|(job, view)| {
        let here = job.place.as_ref() == Some(&context.inbound.origin.key);
        texts::line(view, &job.zone, here)
    });
    texts::list(&label, &lines.collect::<Vec<_>>(), jobs.len())
}

fn changed(
    context: &Context<'_>,
    jobs: &[(Job, JobView)],
    change: JobChange,
    which: &str,
) -> Result<Outcome, CommandError> {
    let word = which.trim_start_matches('#');
    let found = jobs
        .iter()
        .find(|(job, _)| job.row.id.to_string() == word || job.row.name.as_str() == word);
    let Some((job, view)) = found else {
        return Err(UserError::new(texts::no_such_job(which)).into());
    };
    if !may_change(context, job) {
        return Err(UserError::new(texts::NOT_YOURS).into());
    }
    let refusal = match (change, &job.row.paused) {
        (JobChange::Pause, Some(_)) => Some(texts::PAUSED_ALREADY),
        (JobChange::Resume, None) => Some(texts::NOT_PAUSED),
        (JobChange::Remove, _) if job.row.definition.is_none() => Some(texts::IN_CONFIG),
        _ => None,
    };
    if let Some(refusal) = refusal {
        return Err(UserError::new(refusal).into());
    }
    let reply = texts::changed(change, &view.name);
    let effect = Effect::Job {
        id: job.row.id,
        agent: job.agent.id.clone(),
        name: view.name.clone(),
        change,
    };
    Ok(Outcome::of(reply, effect))
}

/// The jobs of the agent that the person may see: jobs of this place, the person's own, and for
/// admins all.
async fn seen(context: &Context<'_>) -> Result<Vec<(Job, JobView)>, StoreError> {
    let snapshot: std::sync::Arc<Snapshot> = context.services.snapshots.current();
    let agent = context.route.agent.clone();
    let (place, is_admin) = (context.inbound.origin.key.clone(), is_admin(context));
    let ids = ids(context);
    let read = move |connection: &Connection| {
        let jobs = known_jobs::all(connection, &snapshot)?.into_iter();
        let mut seen = Vec::new();
        for job in jobs.filter(|job| job.agent.id == agent) {
            let is_here = job.place.as_ref() == Some(&place);
            if is_admin || is_here || is_of(&job, &ids) {
                let last = rows::runs(connection, job.row.id, 1)?.into_iter().next();
                let view = view(&job, last, now_ms());
                seen.push((job, view));
            }
        }
        Ok(seen)
    };
    context.services.db.read(read).await
}

fn is_admin(context: &Context<'_>) -> bool {
    context.role >= Role::Admin
}

fn may_change(context: &Context<'_>, job: &Job) -> bool {
    is_admin(context) || is_of(job, &ids(context))
}

fn ids(context: &Context<'_>) -> Vec<PersonId> {
    let people = &context.snapshot.config.access.people;
    people.ids_of(&context.inbound.origin.person).to_vec()
}

fn is_of(job: &Job, ids: &[PersonId]) -> bool {
    let maker = job.row.maker.as_ref();
    maker.is_some_and(|maker| ids.contains(maker))
}
