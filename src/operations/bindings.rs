//! Bindings of single places, written into config.toml and taken out.

use rusqlite::Transaction;
use serde::Serialize;
use utoipa::ToSchema;

use super::agents::{find_agent, take_in};
use super::{Operations, Refusal};
use crate::clock::now_ms;
use crate::domain::SessionKey;
use crate::records::audit::{self, Action, Actor, Change};
use crate::routing::pins;
use crate::tenants::{self, Bound, Site};

/// A binding after a change.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Binding {
    pub(crate) place: String,
    /// The agent of the binding before.
    pub(crate) before: Option<String>,
    /// The agent of the binding now; null where it was taken out.
    pub(crate) agent: Option<String>,
    /// Its first line in config.toml: as written, or before it was taken out.
    pub(crate) line: Option<usize>,
    /// False where all was so already.
    pub(crate) changed: bool,
}

/// Binds exactly this place to an agent. A pin of the place goes, so that the binding counts.
pub(crate) async fn bind(
    operations: &Operations,
    actor: &Actor,
    place: &SessionKey,
    word: &str,
) -> Result<Binding, Refusal> {
    let snapshot = operations.snapshot().await?;
    let agent = find_agent(&snapshot.registry, word)?.id.clone();
    let bound = tenants::bind(&site(operations, actor), place, &agent).await?;
    let change = Change::new(Action::Bind).to(&agent);
    note(operations, actor, place, change, bound.as_ref()).await?;
    take_in(operations, "a binding").await;
    Ok(Binding {
        place: place.to_string(),
        before: bound.as_ref().and_then(before),
        agent: Some(agent.to_string()),
        line: bound.as_ref().map(|bound| bound.line),
        changed: bound.is_some(),
    })
}

/// Takes the binding of exactly this place out. None if there is none.
pub(crate) async fn unbind(
    operations: &Operations,
    actor: &Actor,
    place: &SessionKey,
) -> Result<Option<Binding>, Refusal> {
    let Some(bound) = tenants::unbind(&site(operations, actor), place).await? else {
        return Ok(None);
    };
    let change = Change::new(Action::Unbind);
    note(operations, actor, place, change, Some(&bound)).await?;
    take_in(operations, "a binding").await;
    Ok(Some(Binding {
        place: place.to_string(),
        before: before(&bound),
        agent: None,
        line: Some(bound.line),
        changed: true,
    }))
}

fn site(operations: &Operations, actor: &Actor) -> Site {
    Site {
        home: operations.home.clone(),
        db: operations.db.clone(),
        by: actor.clone(),
    }
}

fn before(bound: &Bound) -> Option<String> {
    bound.before.as_ref().map(ToString::to_string)
}

async fn note(
    operations: &Operations,
    actor: &Actor,
    place: &SessionKey,
    change: Change<'static>,
    bound: Option<&Bound>,
) -> Result<(), Refusal> {
    let (by, place, bound) = (actor.clone(), place.clone(), bound.cloned());
    let write = move |tx: &Transaction<'_>| {
        if change.action == Action::Bind {
            pins::clear(tx, &place)?;
        }
        let Some(bound) = bound else {
            return Ok(());
        };
        let change = match before(&bound) {
            Some(before) => change.from(before),
            None => change,
        };
        let change = Change {
            place: Some(&place),
            ..change
        };
        audit::note(tx, &by, &change, now_ms())
    };
    operations.db.write(write).await?;
    Ok(())
}
