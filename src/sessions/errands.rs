//! Turns that no person asked for: what they are about, who does them, and what is said before their question.

use std::sync::Arc;

use super::Inner;
use super::children::{self, Known};
use super::inbox::Accepted;
use super::request::Asked;
use super::runs;
use crate::agents::Agent;
use crate::domain::{AgentUid, Inbound, Internal};
use crate::routing::{self, Route};
use crate::storage::StoreError;
use crate::tools::{Parent, Then};
use crate::turn::history::{Said, Speaker};

/// Why a turn is run that no person asked for.
#[derive(Debug, Clone)]
pub(super) enum Errand {
    /// Another turn asked for it.
    Run(Box<Known>),
    /// A run has ended that people here are to hear about.
    Report(Box<Known>),
}

impl Errand {
    fn known(&self) -> &Known {
        match self {
            Errand::Run(known) | Errand::Report(known) => known,
        }
    }

    /// Another turn goes on only when this one is over.
    pub(super) fn is_waited_for(&self) -> bool {
        matches!(self, Errand::Run(known) if known.child.then == Then::Wait)
    }

    /// Who does it.
    fn agent(&self) -> AgentUid {
        match self {
            Errand::Run(known) => known.child.agent,
            Errand::Report(known) => known.child.parent_agent,
        }
    }
}

/// What a message of the gateway's own is about. One that nobody knows any more is answered like a person's.
pub(super) async fn errand(inner: &Inner, inbound: &Inbound) -> Result<Option<Errand>, StoreError> {
    let Some(internal) = inbound.besides.internal.clone() else { return Ok(None) };
    let (Internal::Child { run } | Internal::Report { run }) = internal.clone();
    let known = inner.parts.db.read(move |connection| children::get(connection, &run)).await?;
    Ok(known.map(Box::new).map(|known| match internal {
        Internal::Child { .. } => Errand::Run(known),
        Internal::Report { .. } => Errand::Report(known),
    }))
}

/// Who does it, and what routing says about its place.
pub(super) fn send_on(inner: &Inner, accepted: &Accepted, errand: &Errand) -> (Arc<Agent>, Route) {
    let parts = &inner.parts;
    let agent = parts.registry.by_uid(errand.agent()).unwrap_or_else(|| parts.registry.default_agent()).clone();
    let route = routing::route(&parts.table, None, &accepted.inbound.origin);
    tracing::info!(agent.id = %agent.id, run = %errand.known().child.run, inbox.id = accepted.id, "{} works", agent.id);
    (agent, route)
}

impl Asked<'_> {
    /// What the agent is told before the question and nobody remembers.
    pub(super) fn ephemeral(&self, unseen: &[Known]) -> Vec<String> {
        let reported = match self.errand {
            Some(Errand::Report(known)) => Some(&known.child.run),
            _ => None,
        };
        let introduced = match self.errand {
            Some(Errand::Run(known)) => Some(runs::introduction(known)),
            _ => None,
        };
        let news = unseen.iter().filter(|known| Some(&known.child.run) != reported).map(runs::summary);
        introduced.into_iter().chain(news).chain(self.aside.iter().cloned()).collect()
    }

    pub(super) fn parent(&self, inner: &Inner) -> Option<Arc<Parent>> {
        match self.errand {
            Some(Errand::Run(known)) => Some(runs::parent(inner, known)),
            _ => None,
        }
    }

    pub(super) fn speaker_of(&self, inbound: &Inbound) -> Said {
        let by = match self.errand {
            Some(Errand::Report(_)) => Speaker::Handoff,
            _ => Speaker::Person(inbound.person_name.clone()),
        };
        Said { by, text: inbound.readable() }
    }
}
