//! The commands of people to the gateway itself. A closed list for every platform.
//!
//! A command looks and decides; its change is an [`Effect`], and the gateway writes the effect
//! together with the reply and the closed inbox row. So a command cut short by the end of the
//! process simply runs again.

mod again;
mod agent;
mod agents;
mod allow;
pub(crate) mod first_minute;
mod forget;
mod memory;
mod model;
mod pair;
mod parse;
mod pause;
mod people;
mod queue;
mod reach;
mod reload;
mod remember;
mod retry;
mod skills;
mod specs;
mod start;
mod status;
mod stop;
pub(crate) mod texts;
mod truth;
mod usage;
mod whoami;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Transaction;

use crate::access::people::{self as paired, Decider, Decision};
use crate::access::{NotForYou, Role, Standing};
use crate::agents::memory::{Forgetting, Saving};
use crate::agents::{Agent, Memories, Source};
use crate::channels::Choice;
use crate::config::ModelRef;
use crate::delivery::undelivered::{self, Undelivered, When};
use crate::domain::{AgentId, AgentUid, Inbound, PersonId, SessionKey, UserError};
use crate::home::{ReloadHandle, Snapshot, Snapshots};
use crate::lanes::Sessions;
use crate::operations::budgets::Raise;
use crate::operations::people::Plan;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::pauses::{self, Work};
use crate::records::{decisions, guest_notices, inbox, journal, model_overrides, transcript};
use crate::routing::{Opened, Pin, Route, Visit, openings, pins};
use crate::storage::{Db, StoreError};

pub(crate) use parse::{Command, Parsed, parse};
pub use specs::{Argument, Audience, Group, Offers, SPECS, Spec};

/// The services of commands.
pub struct CommandServices {
    pub db: Db,
    pub snapshots: Snapshots,
    pub memories: Memories,
    pub sessions: Sessions,
    /// The home folder.
    pub home: PathBuf,
    pub reload: ReloadHandle,
    pub started_at: i64,
}

/// The message of a command, with its place, person and route.
pub struct Context<'a> {
    pub services: &'a CommandServices,
    /// The snapshot of the moment the message came.
    pub snapshot: &'a Snapshot,
    pub inbound: &'a Inbound,
    /// The role of the person with the agent of the place.
    pub role: Role,
    pub standing: &'a Standing,
    pub route: &'a Route,
    pub pin: Option<&'a Pin>,
    /// Set when the place was opened from chat.
    pub opened: Option<&'a Opened>,
    /// The bot answers in this place at all. Owners and admins use commands in closed places too.
    pub is_open: bool,
    /// Set when the agent of the place is closed to the person.
    pub closed: Option<&'a NotForYou>,
}

impl Context<'_> {
    fn visit(&self) -> Visit<'_> {
        Visit {
            access: &self.snapshot.config.access,
            origin: &self.inbound.origin,
            standing: self.standing,
        }
    }

    /// Agents the person may give this place to, the current agent among them.
    fn usable_agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        let table = &self.snapshot.table;
        let all = self.snapshot.registry.all().iter();
        all.filter(move |agent| {
            (agent.id == self.route.agent && self.closed.is_none())
                || table.may_switch(&agent.id, self.visit()).is_ok()
        })
    }
}

/// The reply of a command, and its effect.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Markdown.
    pub reply: String,
    /// Fitting commands, for platforms with buttons.
    pub choices: Vec<Choice>,
    pub effect: Effect,
    /// The reply to a pressed button replaces the message with the button.
    pub is_in_place: bool,
}

/// A place changes hands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handoff {
    pub from: AgentId,
    pub to: AgentId,
    /// The role of the person behind it.
    pub role: Role,
}

/// The change a command makes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// Gives the place to an agent; the transcript tells of the handoff.
    Pin {
        agent: AgentUid,
        pin: Pin,
        /// Opens the place too.
        opens: Option<Opened>,
        handoff: Option<Handoff>,
    },
    Unpin {
        handoff: Option<Handoff>,
    },
    /// Takes back the opening of the place, and its pin.
    Close,
    StartAnew,
    ChooseModel(ModelRef),
    ResetModel,
    /// Lets in or turns away the guest with this code.
    Decide {
        code: String,
        decision: Decision,
    },
    /// Takes a pairing back.
    Revoke(PersonId),
    /// Ends the turns of these inbox rows.
    CallOff(Vec<i64>),
    /// Sends these again.
    Retry(Vec<Undelivered>),
    /// Has the messages of these inbox rows answered once more.
    Again(Vec<i64>),
    Remember(Saving),
    Forget(Forgetting),
    /// Changes a person's role, ids or name.
    ChangePerson(Box<Plan>),
    /// Raises a limit.
    Raise(Box<Raise>),
    Pause(Work),
    Resume(Work),
}

impl Outcome {
    fn say(reply: impl Into<String>) -> Self {
        Outcome::of(reply, Effect::Nothing)
    }

    fn of(reply: impl Into<String>, effect: Effect) -> Self {
        Outcome {
            reply: reply.into(),
            choices: Vec::new(),
            effect,
            is_in_place: false,
        }
    }

    fn offering(self, choices: Vec<Choice>) -> Self {
        Outcome { choices, ..self }
    }

    /// Replaces the message whose button was pressed.
    fn in_place(self) -> Self {
        Outcome {
            is_in_place: true,
            ..self
        }
    }
}

/// The reason for a failed command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A sentence for the person.
    #[error("{0}")]
    User(#[from] UserError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) async fn run(command: Command, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if let Some(closed) = context.closed.filter(|_| command.is_about_the_agent()) {
        return Err(not_for_you(context, closed).into());
    }
    match command {
        Command::Agent(wish) => agent::run(wish, context).await,
        Command::Agents => agents::run(context).await,
        Command::Stop(which) => Ok(stop::run(which, context)),
        Command::Queue(wish) => Ok(queue::run(wish, context)),
        Command::Model(wish) => model::run(wish, context).await,
        Command::Models => model::list(context).await,
        Command::Whoami => Ok(Outcome::say(whoami::run(context).await?)),
        Command::New => start_anew(context).await,
        Command::Status => Ok(Outcome::say(status::run(context).await?)),
        Command::Usage(period) => Ok(Outcome::say(usage::run(period, context).await?)),
        Command::Start => Ok(Outcome::say(start::run(context))),
        Command::Help => Ok(Outcome::say(texts::help::help(context.standing.role()))),
        Command::Pair(wish) => pair::run(wish, context).await,
        Command::Unpair(person) => pair::revoke(person, context).await,
        Command::People(wish) => people::run(wish, context).await,
        Command::Allow(wish) => allow::run(wish, context).await,
        Command::Pause(work) => pause::pause(work, context).await,
        Command::Resume(work) => pause::resume(work, context).await,
        Command::Skills => Ok(Outcome::say(skills::run(context).await)),
        Command::Reload => reload::run(context).await,
        Command::Retry => retry::run(context).await,
        Command::Again(id) => again::run(id, context).await,
        Command::Memory => memory::run(context).await,
        Command::Remember { text, visibility } => remember::run(&text, visibility, context).await,
        Command::Forget(wish) => forget::run(wish, context).await,
    }
}

/// Tells a person that an agent is closed to them, and which agents are open.
pub(crate) fn not_for_you(context: &Context<'_>, closed: &NotForYou) -> UserError {
    let open: Vec<String> = context
        .usable_agents()
        .map(|agent| format!("`/agent {}`", agent.id))
        .collect();
    let label = truth::label(context, &closed.agent);
    UserError::new(texts::agent::not_for_you(&label, closed, &open))
}

impl Effect {
    /// Whether the effect changes the place's pin.
    pub fn changes_pin(&self) -> bool {
        matches!(
            self,
            Effect::Pin { .. } | Effect::Unpin { .. } | Effect::Close
        )
    }

    /// Whether a guest was let in or turned away.
    pub fn decides(&self) -> bool {
        matches!(self, Effect::Decide { .. } | Effect::Revoke(_))
    }

    /// Whether words leave the database for good.
    pub fn forgets(&self) -> bool {
        matches!(self, Effect::Forget(_))
    }

    /// Inbox rows of turns to end now.
    pub fn called_off(&self) -> Vec<i64> {
        match self {
            Effect::CallOff(ids) => ids.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether the effect changes the place's model.
    pub fn changes_model(&self) -> bool {
        matches!(
            self,
            Effect::ChooseModel(_) | Effect::ResetModel | Effect::StartAnew
        )
    }

    /// Inbox rows that wait again.
    pub fn again(&self) -> Vec<i64> {
        match self {
            Effect::Again(ids) => ids.clone(),
            _ => Vec::new(),
        }
    }

    /// Rows back in the outbox, by place.
    pub fn retried(&self) -> BTreeMap<SessionKey, usize> {
        match self {
            Effect::Retry(rows) => undelivered::by_place(rows),
            _ => BTreeMap::new(),
        }
    }

    pub fn write(&self, tx: &Transaction<'_>, inbound: &Inbound, now: i64) -> rusqlite::Result<()> {
        let place = &inbound.origin.key;
        self.changes(place)
            .iter()
            .try_for_each(|change| audit::note(tx, &Actor::of(inbound), change, now))?;
        match self {
            Effect::Nothing => Ok(()),
            Effect::Pin {
                agent,
                pin,
                opens,
                handoff,
            } => {
                pins::set(tx, place, *agent, pin, now)?;
                if let Some(opened) = opens {
                    openings::set(tx, place, opened)?;
                }
                note_handoff(tx, inbound, handoff.as_ref(), now)
            }
            Effect::Unpin { handoff } => {
                pins::clear(tx, place)?;
                note_handoff(tx, inbound, handoff.as_ref(), now)
            }
            Effect::Close => {
                pins::clear(tx, place)?;
                openings::clear(tx, place)
            }
            Effect::StartAnew => {
                model_overrides::clear(tx, place)?;
                transcript::start_anew(tx, place, now)
            }
            Effect::ChooseModel(model) => {
                model_overrides::set(tx, place, model, &inbound.origin.person, now)
            }
            Effect::ResetModel => model_overrides::clear(tx, place),
            Effect::Decide { code, decision } => {
                let by = Decider {
                    id: inbound.origin.person.to_string(),
                    name: inbound.person_name.clone(),
                };
                if let Some(known) = paired::decide(tx, code, *decision, &by, now)?
                    && decision.lets_in()
                {
                    let change = Change::new(Action::Pair).about(known.person);
                    audit::note(tx, &Actor::of(inbound), &change, now)?;
                }
                inbound.extras.pressed.as_ref().map_or(Ok(()), |pressed| {
                    guest_notices::forget_pressed(tx, place, pressed)
                })
            }
            Effect::Revoke(person) => paired::revoke(tx, person).map(drop),
            Effect::CallOff(ids) => {
                // `ids` lacks the rows absorbed by a turn of an earlier process; the journal has
                // them.
                inbox::call_off(tx, &journal::with_members(tx, ids)?, now)?;
                ids.iter().try_for_each(|id| {
                    decisions::note(tx, place, *id, decisions::Decision::Stopped, now)
                })
            }
            Effect::Retry(rows) => undelivered::retry(tx, rows, When::Now, now),
            Effect::Again(ids) => {
                inbox::reopen(tx, ids)?;
                // The next end of the turn writes the question again.
                transcript::take_back(tx, ids)
            }
            Effect::Remember(saving) => saving.write(tx).map(drop),
            Effect::Forget(forgetting) => forgetting.write(tx).map(drop),
            Effect::ChangePerson(plan) => plan.write(tx, &Actor::of(inbound), now),
            Effect::Raise(raise) => raise.write(tx, &Actor::of(inbound), now),
            Effect::Pause(work) => pauses::pause(tx, *work, &Actor::of(inbound), now).map(drop),
            Effect::Resume(work) => pauses::resume(tx, *work, &Actor::of(inbound), now).map(drop),
        }
    }
}

impl Effect {
    /// Entries for the audit.
    fn changes<'a>(&self, place: &'a SessionKey) -> Vec<Change<'a>> {
        let switch = |handoff: &Handoff| {
            let change = Change::new(Action::Switch).at(place);
            change.from(&handoff.from).to(&handoff.to)
        };
        match self {
            Effect::Pin { opens, handoff, .. } => {
                let open = opens.as_ref().map(|_| Change::new(Action::Open).at(place));
                open.into_iter()
                    .chain(handoff.as_ref().map(switch))
                    .collect()
            }
            Effect::Unpin { handoff } => handoff.iter().map(switch).collect(),
            Effect::Close => vec![Change::new(Action::Close).at(place)],
            Effect::Revoke(person) => vec![Change::new(Action::Unpair).about(person)],
            _ => Vec::new(),
        }
    }
}

/// A model chosen for the conversation goes with the conversation.
async fn start_anew(context: &Context<'_>) -> Result<Outcome, CommandError> {
    reach::may_start_anew(context).await?;
    let (agent, chosen) = model::here(context).await?;
    let reply = match chosen.source {
        Source::Override => {
            texts::work::new_with_model(&agent.label(), &agent.models.model.to_string())
        }
        Source::Agent | Source::Default => texts::work::NEW.to_owned(),
    };
    Ok(Outcome::of(reply, Effect::StartAnew))
}

fn note_handoff(
    tx: &Transaction<'_>,
    inbound: &Inbound,
    handoff: Option<&Handoff>,
    now: i64,
) -> rusqlite::Result<()> {
    handoff.map_or(Ok(()), |Handoff { from, to, role }| {
        let text = format!("from {from} to {to}");
        transcript::append_handoff(tx, (inbound, *role), &text, now)
    })
}
