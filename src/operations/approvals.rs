//! Approvals: listed, and decided by people at every door.

use std::sync::Arc;

use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::house::House;
use super::named::{Moment, Named};
use super::names::Names;
use super::{Operations, Refusal, RefusalKind};
use crate::access::people;
use crate::answering::approval_texts as texts;
use crate::clock::now_ms;
use crate::domain::{AgentId, MessageId, PersonId, Role, SessionKey};
use crate::home::Snapshot;
use crate::records::approvals::{self, Approval, Decided, Page, State, Verdict};
use crate::records::audit::{self, Action, Actor, Change};
use crate::storage::StoreError;

/// The most approvals of a list.
pub(crate) const MOST_LISTED: u32 = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalRequest {
    /// The newest first; without a state, all.
    List {
        state: Option<State>,
        most: u32,
    },
    Decide {
        id: i64,
        verdict: Verdict,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalReply {
    Listed(Vec<Shown>),
    Decided(Box<Shown>),
}

/// An approval, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) id: i64,
    pub(crate) state: State,
    /// The id of the agent; none for an agent that is gone.
    pub(crate) agent: Option<AgentId>,
    pub(crate) tool: String,
    /// A line for each, cut to a bound.
    pub(crate) arguments: String,
    /// SHA-256 of the tool's name and all of the arguments.
    pub(crate) hash: String,
    /// The rule that asks.
    pub(crate) why: String,
    /// What the turn had read of less trust than its asker's words.
    pub(crate) read: Option<String>,
    pub(crate) place: SessionKey,
    pub(crate) place_name: Option<String>,
    /// For whom the turn is.
    pub(crate) person: PersonId,
    pub(crate) person_name: String,
    pub(crate) role: Role,
    /// The lowest role that decides.
    pub(crate) least: Role,
    /// Unix milliseconds, as all times here.
    pub(crate) asked_at: i64,
    pub(crate) expires_at: i64,
    pub(crate) decided_at: Option<i64>,
    /// A person's id, or `cli`, `token`, `dashboard`.
    pub(crate) decided_by: Option<String>,
    pub(crate) decided_by_name: Option<String>,
    /// How it stands, in a sentence.
    pub(crate) outcome: String,
    /// The turn, by its inbox row.
    pub(crate) turn: i64,
}

/// An approval with names, for JSON and pages.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ApprovalLine {
    pub(crate) id: i64,
    /// waiting, allowed, refused, expired or cancelled.
    pub(crate) state: State,
    /// null for an agent that is gone.
    pub(crate) agent: Option<Named>,
    pub(crate) tool: String,
    /// A line for each, cut to a bound; invisible characters are written as their numbers.
    pub(crate) arguments: String,
    /// SHA-256 of the tool's name, a line break and all of the arguments.
    pub(crate) hash: String,
    /// The rule that asks.
    pub(crate) why: String,
    /// What the turn had read of less trust than its asker's words.
    pub(crate) read: Option<String>,
    pub(crate) place: Named,
    /// For whom the turn is.
    pub(crate) person: Named,
    pub(crate) role: &'static str,
    /// The lowest role that decides.
    pub(crate) least_role: &'static str,
    pub(crate) asked_at: Moment,
    pub(crate) expires_at: Moment,
    pub(crate) decided_at: Option<Moment>,
    pub(crate) decided_by: Option<Named>,
    /// How it stands, in a sentence.
    pub(crate) outcome: String,
    /// Number of the message that is being answered, as under /turns.
    pub(crate) turn: i64,
}

impl ApprovalLine {
    pub(crate) fn of(shown: &Shown, names: &Names) -> Self {
        let name = Some(shown.person_name.as_str()).filter(|name| !name.is_empty());
        let decider = shown.decided_by_name.as_deref();
        let by = shown.decided_by.as_ref();
        ApprovalLine {
            id: shown.id,
            state: shown.state,
            agent: shown.agent.as_ref().map(|id| names.agent(id)),
            tool: shown.tool.clone(),
            arguments: shown.arguments.clone(),
            hash: shown.hash.clone(),
            why: shown.why.clone(),
            read: shown.read.clone(),
            place: names.place(&shown.place),
            person: Named::new(&shown.person, name),
            role: shown.role.as_str(),
            least_role: shown.least.as_str(),
            asked_at: Moment(shown.asked_at),
            expires_at: Moment(shown.expires_at),
            decided_at: shown.decided_at.map(Moment),
            decided_by: by.map(|by| Named::new(by, decider.filter(|name| !name.is_empty()))),
            outcome: shown.outcome.clone(),
            turn: shown.turn,
        }
    }
}

/// The person who decides.
#[derive(Debug, Clone)]
pub(crate) enum Decider {
    /// Somebody with all rights: the command line.
    Operator,
    /// Somebody with this role.
    WithRole(Role),
    /// A person in a place, with the pressed message.
    Person {
        id: PersonId,
        place: SessionKey,
        pressed: Option<MessageId>,
    },
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided {
    #[error("there is no approval {0}")]
    Unknown(i64),
    #[error("approval {} waits no longer: {}", .0.id, texts::outcome(.0))]
    Before(Box<Approval>),
    #[error("only {} may decide this", least(*.0))]
    Beyond(Role),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}", .0.text)]
    Failed(Refusal),
}

fn least(role: Role) -> String {
    match role {
        Role::Owner => "an owner".to_owned(),
        role => format!("{} or somebody with more rights", role.with_article()),
    }
}

impl From<Refusal> for Undecided {
    fn from(refusal: Refusal) -> Self {
        Undecided::Failed(refusal)
    }
}

impl From<Undecided> for Refusal {
    fn from(undecided: Undecided) -> Self {
        let kind = match undecided {
            Undecided::Unknown(_) => RefusalKind::WrongUse,
            Undecided::Before(_) => RefusalKind::Conflict,
            Undecided::Beyond(_) | Undecided::Store(_) => RefusalKind::Failed,
            Undecided::Failed(refusal) => return refusal,
        };
        Refusal {
            kind,
            ..Refusal::failed(undecided.to_string())
        }
    }
}

pub(super) async fn run(
    operations: &Operations,
    actor: &Actor,
    request: ApprovalRequest,
) -> Result<ApprovalReply, Refusal> {
    match request {
        ApprovalRequest::List { state, most } => {
            let page = Page {
                state,
                before: None,
                most: most.min(MOST_LISTED),
            };
            operations.approvals(page).await.map(ApprovalReply::Listed)
        }
        ApprovalRequest::Decide { id, verdict } => {
            let decided = operations.decide_approval(actor, Decider::Operator, id, verdict);
            let shown = operations.shown(vec![decided.await?]).await?.pop();
            let shown = shown.ok_or(Undecided::Unknown(id))?;
            Ok(ApprovalReply::Decided(Box::new(shown)))
        }
    }
}

impl Operations {
    /// A page of approvals, newest first.
    pub(crate) async fn approvals(&self, page: Page) -> Result<Vec<Shown>, Refusal> {
        let read = move |connection: &Connection| approvals::list(connection, page);
        let found = self.db.read(read).await?;
        self.shown(found).await
    }

    pub(crate) async fn approval(&self, id: i64) -> Result<Option<Shown>, Refusal> {
        let read = move |connection: &Connection| approvals::get(connection, id);
        let found = self.db.read(read).await?;
        Ok(self.shown(found.into_iter().collect()).await?.pop())
    }

    /// Decides an approval, once. The same function for every door.
    pub(crate) async fn decide_approval(
        &self,
        actor: &Actor,
        decider: Decider,
        id: i64,
        verdict: Verdict,
    ) -> Result<Approval, Undecided> {
        let house = self.house().await?;
        let snapshot = self.snapshot().await?;
        let deciding = Deciding {
            by: actor.clone(),
            decider,
            id,
            verdict,
            house,
            snapshot,
        };
        let write = move |tx: &Transaction<'_>| deciding.write(tx, now_ms());
        let approval = match self.db.write(write).await?? {
            Decided::Unknown => return Err(Undecided::Unknown(id)),
            Decided::Before(approval) => return Err(Undecided::Before(Box::new(approval))),
            Decided::Now(approval) => approval,
        };
        if let Some(live) = &self.live {
            let turn = approval.wanted.call.inbox_id;
            live.sessions.approvals_answered(&[turn]);
            live.sessions.approvals().decided();
        }
        Ok(approval)
    }

    pub(crate) async fn shown(&self, found: Vec<Approval>) -> Result<Vec<Shown>, Refusal> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let house = self.house().await?;
        Ok(found
            .into_iter()
            .map(|approval| {
                let agent = house.agent_of(approval.wanted.agent).cloned();
                let place_name = house.names.place(&approval.wanted.place).name;
                Shown::of(approval, agent, place_name)
            })
            .collect())
    }
}

/// A decision before it is written.
struct Deciding {
    by: Actor,
    decider: Decider,
    id: i64,
    verdict: Verdict,
    house: House,
    snapshot: Arc<Snapshot>,
}

impl Deciding {
    fn write(
        &self,
        tx: &Transaction<'_>,
        now: i64,
    ) -> rusqlite::Result<Result<Decided, Undecided>> {
        let Some(approval) = approvals::get(tx, self.id)? else {
            return Ok(Err(Undecided::Unknown(self.id)));
        };
        if !self.may_decide(tx, &approval)? {
            return Ok(Err(Undecided::Beyond(approval.wanted.least)));
        }
        let decided = approvals::decide(tx, self.id, self.verdict, &self.by, now)?;
        if let Decider::Person {
            place,
            pressed: Some(message),
            ..
        } = &self.decider
        {
            approvals::forget_pressed(tx, self.id, place, message)?;
        }
        if let Decided::Now(approval) = &decided {
            let action = match self.verdict {
                Verdict::Allow => Action::ApprovalAllow,
                Verdict::Refuse => Action::ApprovalRefuse,
            };
            let mut change = Change::new(action).at(&approval.wanted.place);
            change.agent = self.house.agent_of(approval.wanted.agent);
            let subject = format!("{} ({})", approval.wanted.tool, self.id);
            audit::note(tx, &self.by, &change.about(subject), now)?;
        }
        Ok(Ok(decided))
    }

    fn may_decide(
        &self,
        connection: &Connection,
        Approval { wanted, .. }: &Approval,
    ) -> rusqlite::Result<bool> {
        Ok(match &self.decider {
            Decider::Operator => true,
            Decider::WithRole(role) => *role >= wanted.least,
            Decider::Person { id, place, .. } => {
                let access = &self.snapshot.config.access;
                let standing = people::standing(connection, access, id)?;
                let role = match self.house.agent_of(wanted.agent) {
                    Some(agent) => standing.with(agent),
                    None => standing.role(),
                };
                // Members have a say where they are, admins and owners everywhere.
                let is_here = is_same_place(place, &wanted.place);
                role >= wanted.least && (is_here || role >= Role::Admin)
            }
        })
    }
}

impl Shown {
    fn of(approval: Approval, agent: Option<AgentId>, place_name: Option<String>) -> Self {
        let (outcome, wanted) = (texts::outcome(&approval), approval.wanted);
        let read = wanted.read.below(wanted.role);
        Shown {
            id: approval.id,
            state: approval.state,
            agent,
            tool: wanted.tool,
            arguments: wanted.arguments,
            hash: wanted.hash,
            why: wanted.why,
            read: (!read.is_empty()).then(|| read.in_words()),
            place: wanted.place,
            place_name,
            person: wanted.person,
            person_name: wanted.person_name,
            role: wanted.role,
            least: wanted.least,
            asked_at: wanted.asked_at,
            expires_at: wanted.expires_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by,
            decided_by_name: approval.decided_by_name,
            outcome,
            turn: wanted.call.inbox_id,
        }
    }
}

/// Members of a plain group have conversations of their own where all read along.
pub(crate) fn is_same_place(one: &SessionKey, other: &SessionKey) -> bool {
    let group = |place: &SessionKey| place.whole_group().filter(|_| !place.is_shared());
    one == other || (group(one).is_some() && group(one) == group(other))
}
