//! The caller of a handler, and the three extractors that ask for a scope.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::admin::problem::Problem;
use crate::records::audit::Actor;
use crate::records::http_keys::{Key, Kind, Scope};

/// Somebody whom the door let in.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) scope: Scope,
    /// For the audit.
    pub(crate) who: Actor,
    /// The number of the token or sign-in.
    pub(crate) key: i64,
    pub(crate) kind: Kind,
}

impl Caller {
    pub(super) fn of(key: &Key) -> Self {
        let name = key.name.clone();
        let person = key.person.as_ref().and_then(|person| person.parse().ok());
        let who = match (key.kind, person) {
            (Kind::Token, _) => Actor::Token { name },
            (Kind::SignIn, Some(id)) => Actor::Person { id, name },
            (Kind::SignIn, None) => Actor::Dashboard { name },
        };
        Caller {
            scope: key.scope,
            who,
            key: key.id,
            kind: key.kind,
        }
    }

    pub(crate) fn needs(&self, scope: Scope) -> Result<(), Problem> {
        match self.scope >= scope {
            true => Ok(()),
            false => Err(Problem::needs_scope(scope)),
        }
    }
}

/// A caller who may look.
#[derive(Debug, Clone)]
pub(crate) struct Reads(pub(crate) Caller);

/// A caller who may do what runs the house from day to day.
#[derive(Debug, Clone)]
pub(crate) struct Operates(pub(crate) Caller);

/// A caller who may change agents, config, roles and tokens.
#[derive(Debug, Clone)]
pub(crate) struct Administers(pub(crate) Caller);

fn caller(head: &Parts, scope: Scope) -> Result<Caller, Problem> {
    let caller = head.extensions.get::<Caller>();
    let caller = caller.ok_or_else(Problem::needs_key)?;
    caller.needs(scope)?;
    Ok(caller.clone())
}

impl<S: Sync> FromRequestParts<S> for Reads {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Problem> {
        caller(head, Scope::Read).map(Reads)
    }
}

impl<S: Sync> FromRequestParts<S> for Operates {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Problem> {
        caller(head, Scope::Operate).map(Operates)
    }
}

impl<S: Sync> FromRequestParts<S> for Administers {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Problem> {
        caller(head, Scope::Admin).map(Administers)
    }
}
