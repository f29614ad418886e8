//! The work of tools besides waiting: quick calls on threads for blocking work, and heavy calls, which
//! go over many files or need a child process.
//!
//! Both kinds have slots of their own, handed round by agent as turns are. So a backlog of one agent,
//! or of its guests, keeps no other agent's tools waiting.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock};

use super::Scope;
use crate::access::Role;
use crate::domain::{AgentUid, PersonId};
use crate::sandbox::{self, Job, Ran};
use crate::slots::{Slot, Slots};

/// Quick calls at the same time. Further calls wait, so that threads are left for other work.
const QUICK: usize = 6;
/// Heavy calls at the same time. Each takes a thread, and a child with memory of its own.
const HEAVY: usize = 4;
/// Heavy calls of all guests together.
const HEAVY_OF_GUESTS: usize = 2;
/// Heavy calls of a single guest.
const HEAVY_OF_A_GUEST: usize = 1;

static QUICK_SLOTS: LazyLock<Arc<Slots<Share>>> = LazyLock::new(|| Slots::new(QUICK, 2));
static HEAVY_SLOTS: LazyLock<Arc<Slots<Share>>> = LazyLock::new(|| Slots::new(HEAVY, 2));
static GUEST_SLOTS: LazyLock<Arc<Slots<PersonId>>> =
    LazyLock::new(|| Slots::with_most_of_one(HEAVY_OF_GUESTS, HEAVY_OF_A_GUEST));

/// A party that slots are handed round to: an agent, and apart from it the guests of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Share {
    agent: AgentUid,
    is_guest: bool,
}

impl Share {
    pub(super) fn of(scope: &Scope) -> Self {
        Share {
            agent: scope.agent.uid,
            is_guest: scope.role == Role::Guest,
        }
    }
}

/// The work panicked, so its effects are unknown.
#[derive(Debug, thiserror::Error)]
#[error("The tool broke while it ran, and nothing is known about what it did.")]
pub(super) struct Broke;

/// Runs a quick call on a thread for blocking work.
pub(super) async fn run<T: Send + 'static>(
    scope: &Scope,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Broke> {
    let slot = QUICK_SLOTS.acquire(Share::of(scope)).await;
    on_thread(slot, work).await
}

/// The right to heavy work. It is kept until the work has ended, also when the result is no longer
/// wanted.
#[derive(Clone)]
pub(super) struct HeavySlot {
    _kept: Arc<Kept>,
}

struct Kept {
    _share: Slot<Share>,
    _guest: Option<Slot<PersonId>>,
}

/// Waits for the right to heavy work.
pub(super) async fn heavy(scope: &Scope) -> HeavySlot {
    // A guest waits here, without a slot that others could use.
    let guest = match scope.role {
        Role::Guest => Some(GUEST_SLOTS.acquire(scope.person.clone()).await),
        _ => None,
    };
    let share = HEAVY_SLOTS.acquire(Share::of(scope)).await;
    let kept = Kept {
        _share: share,
        _guest: guest,
    };
    HeavySlot {
        _kept: Arc::new(kept),
    }
}

impl HeavySlot {
    /// Runs on a thread for blocking work.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Broke> {
        on_thread(self.clone(), work).await
    }

    /// Runs in a child process.
    pub(super) async fn run_in_child(
        &self,
        job: &'static Job,
        feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Ran {
        let slot = self.clone();
        let feed = move |to: &mut dyn Write| {
            let _slot = slot;
            feed(to)
        };
        sandbox::run(job, feed).await
    }
}

/// The slot stays with the work, which goes on when its result is no longer wanted.
async fn on_thread<T: Send + 'static>(
    slot: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Broke> {
    let span = tracing::Span::current();
    let working = tokio::task::spawn_blocking(move || {
        let (_slot, _inside) = (slot, span.enter());
        work()
    });
    working.await.map_err(|_| {
        // The panic hook has logged the place. The message is dropped, because words of a file may
        // be in there.
        tracing::error!("a tool broke");
        Broke
    })
}
