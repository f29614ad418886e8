//! The commands of people to the gateway itself. A closed list for every platform.
//!
//! A command looks and decides; its change is an `Effect`, and the gateway writes the effect
//! together with the reply and the closed inbox row. So a command cut short by the end of the
//! process simply runs again.

mod again;
mod agent;
mod agents;
mod allow;
mod approvals;
mod audit;
mod bind;
mod dashboard;
mod deliver;
mod doctor;
pub(crate) mod first_minute;
mod forget;
mod jobs;
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
mod steering;
mod stop;
pub(crate) mod texts;
mod trace;
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
use crate::channels::{AppButton, Choice};
use crate::config::ModelRef;
use crate::delivery::undelivered::{self, Undelivered, When};
use crate::domain::{AgentId, AgentUid, Inbound, PersonId, SessionKey, UserError};
use crate::home::{ReloadHandle, Snapshot, Snapshots};
use crate::lanes::Sessions;
use crate::operations::budgets::Raise;
use crate::operations::jobs::{JobChange, write_change};
use crate::operations::people::Plan;
use crate::operations::{self, Operations, places, work};
use crate::records::audit::{self as audit_rows, Action, Actor, Change};
use crate::records::pauses::{self, Work};
use crate::records::{guest_notices, inbox, model_overrides, transcript};
use crate::routing::{DeliveryOff, Opened, Pin, Route, Visit, delivery_off, openings, pins};
use crate::storage::{Db, StoreError};
use crate::tenants::{Steering, steer};

pub(crate) use parse::{AgentWish, Command, HelpWish, ModelWish, Parsed, QueueWish, Which, parse};
pub use specs::{Argument, Audience, Group, Offers, SPECS, Spec};
pub(crate) use truth::tell_operator;

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
    /// Everything that the command line can do too.
    pub(crate) operations: Operations,
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
    /// Set when answers are kept instead of sent.
    pub delivery_off: Option<&'a DeliveryOff>,
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
    /// A page to open, for platforms with such buttons.
    pub app: Option<AppButton>,
    pub effect: Effect,
    /// The reply to a pressed button replaces the message with the button.
    pub is_in_place: bool,
    /// The reply is about the guest with this code, and is changed after the decision.
    pub code: Option<String>,
}

/// A place changes hands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handoff {
    pub from: AgentId,
    pub to: AgentId,
    /// The role of the person behind the handoff.
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
        from: AgentId,
        handoff: Option<Handoff>,
    },
    /// Takes a pin back; a pin beneath counts again.
    Unpin {
        pin: Pin,
        handoff: Option<Handoff>,
    },
    /// Gives the place to an agent until a time.
    PinUntil {
        agent: AgentUid,
        pin: Pin,
        until: i64,
        from: AgentId,
        handoff: Option<Handoff>,
    },
    /// config.toml gives the place to an agent, and a pin does not count any more.
    Bind {
        before: Option<AgentId>,
        /// None: the binding was there.
        after: Option<AgentId>,
    },
    Unbind {
        before: Option<AgentId>,
        after: Option<AgentId>,
    },
    /// Pauses, resumes, restarts or clears an agent.
    Steer {
        steering: Steering,
        agent: AgentUid,
        id: AgentId,
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
    Revoke {
        person: PersonId,
        name: String,
    },
    /// Ends the turns of these inbox rows.
    CallOff(Vec<i64>),
    /// Sends these again.
    Retry(Vec<Undelivered>),
    /// Has the messages of these inbox rows answered once more.
    Again(Vec<i64>),
    Remember(Saving),
    Forget {
        agent: AgentId,
        id: i64,
        forgetting: Forgetting,
    },
    /// Keeps answers of the place from now on.
    DeliveryOff(DeliveryOff),
    /// Sends the kept answers, and all later ones.
    DeliveryOn,
    /// Changes a person's role, ids or name.
    ChangePerson(Box<Plan>),
    /// Raises a limit.
    Raise(Box<Raise>),
    Pause(Work),
    Resume(Work),
    /// Pauses, resumes or removes a job.
    Job {
        id: i64,
        agent: AgentId,
        name: String,
        change: JobChange,
    },
}

impl Outcome {
    fn say(reply: impl Into<String>) -> Self {
        Outcome::of(reply, Effect::Nothing)
    }

    fn of(reply: impl Into<String>, effect: Effect) -> Self {
        Outcome {
            reply: reply.into(),
            choices: Vec::new(),
            app: None,
            effect,
            is_in_place: false,
            code: None,
        }
    }

    fn offering(self, choices: Vec<Choice>) -> Self {
        Outcome { choices, ..self }
    }

    /// The reply is about the guest with this code.
    fn about_guest(self, code: String) -> Self {
        Outcome {
            code: Some(code),
            ..self
        }
    }

    /// Replaces the message whose button was pressed.
    fn in_place(self) -> Self {
        Outcome {
            is_in_place: true,
            ..self
        }
    }

    /// After a press, the message with the button is changed to the outcome and the remaining
    /// choices. Where others read along, the message names the person. A written command gets a
    /// usual reply.
    fn after_press(self, context: &Context<'_>, left: impl FnOnce() -> Vec<Choice>) -> Self {
        let inbound = context.inbound;
        if inbound.extras.pressed.is_none() {
            return self;
        }
        let reply = match inbound.origin.key.is_private() {
            true => self.reply,
            false => texts::words::pressed_by(&self.reply, &inbound.person_name),
        };
        Outcome { reply, ..self }.offering(left()).in_place()
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

/// What the person may do in the place.
fn asker(context: &Context<'_>) -> texts::help::Asker {
    let role = context.standing.role();
    let is_locked = agent::is_locked(context);
    texts::help::Asker {
        role,
        has_agent: context.closed.is_none(),
        may_switch: agent::may_switch(context),
        may_fetch: !is_locked && context.is_open,
        may_choose_model: !is_locked,
        may_forget: role > Role::Guest || context.inbound.origin.key.is_private(),
    }
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
        Command::Help(wish) => {
            let asker = asker(context);
            Ok(Outcome::say(match wish {
                HelpWish::InShort => texts::help::in_short(&asker),
                HelpWish::All => texts::help::all(&asker),
            }))
        }
        Command::Pair(wish) => pair::run(wish, context).await,
        Command::Unpair(person) => pair::revoke(person, context).await,
        Command::Bind(word) => bind::bind(&word, context).await,
        Command::Unbind => bind::unbind(context).await,
        Command::Audit(wish) => audit::run(wish, context).await,
        Command::People(wish) => people::run(wish, context).await,
        Command::Allow(wish) => allow::run(wish, context).await,
        Command::Pause(work) => pause::pause(work, context).await,
        Command::Resume(work) => pause::resume(work, context).await,
        Command::Doctor => doctor::run(context).await,
        Command::Jobs(wish) => jobs::run(wish, context).await,
        Command::Trace => trace::run(context).await,
        Command::Dashboard => dashboard::run(context),
        Command::Skills => Ok(Outcome::say(skills::run(context).await)),
        Command::Reload => reload::run(context).await,
        Command::Retry => retry::run(context).await,
        Command::Again(id) => again::run(id, context).await,
        Command::Memory => memory::run(context).await,
        Command::Remember { text, visibility } => remember::run(&text, visibility, context).await,
        Command::Forget(wish) => forget::run(wish, context).await,
        Command::Deliver(wish) => deliver::run(wish, context).await,
        Command::Approvals => approvals::list(context).await,
        Command::Decide { id, verdict } => approvals::decide(id, verdict, context).await,
    }
}

/// Tells a person about an agent that is closed to them, and the open agents.
pub(crate) fn not_for_you(context: &Context<'_>, closed: &NotForYou) -> UserError {
    let open: Vec<String> = context
        .usable_agents()
        .filter(|_| agent::may_switch(context))
        .map(|agent| format!("`/agent {}`", agent.id))
        .collect();
    let label = truth::label(context, &closed.agent);
    UserError::new(texts::agent::not_for_you(&label, closed, &open))
}

impl Effect {
    /// Whether the effect changes the settings of a place that are cached with its pin.
    pub(crate) fn changes_pin(&self) -> bool {
        matches!(
            self,
            Effect::Pin { .. }
                | Effect::Unpin { .. }
                | Effect::PinUntil { .. }
                | Effect::Bind { .. }
                | Effect::Close
                | Effect::DeliveryOff(_)
                | Effect::DeliveryOn
        )
    }

    /// Whether open questions about calls may be taken back.
    pub(crate) fn takes_questions_back(&self) -> bool {
        matches!(self, Effect::StartAnew | Effect::CallOff(_))
    }

    /// Whether a pin ends by itself.
    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(self, Effect::PinUntil { .. })
    }

    /// The steering in this effect, and its agent.
    pub(crate) fn steered(&self) -> Option<(Steering, AgentUid)> {
        match self {
            Effect::Steer {
                steering, agent, ..
            } => Some((*steering, *agent)),
            _ => None,
        }
    }

    /// Whether kept rows of the place wait to be sent now.
    pub(crate) fn releases(&self) -> bool {
        matches!(self, Effect::DeliveryOn)
    }

    /// Whether a guest was let in or turned away.
    pub(crate) fn decides(&self) -> bool {
        matches!(self, Effect::Decide { .. } | Effect::Revoke { .. })
    }

    /// The member who is a guest again, and their name.
    pub(crate) fn put_out(&self) -> Option<(&PersonId, &str)> {
        match self {
            Effect::Revoke { person, name } => Some((person, name)),
            _ => None,
        }
    }

    /// Whether words leave the database for good.
    pub(crate) fn forgets(&self) -> bool {
        matches!(self, Effect::Forget { .. })
    }

    /// Whether jobs are others now.
    pub(crate) fn changes_jobs(&self) -> bool {
        matches!(self, Effect::Job { .. } | Effect::Resume(_))
    }

    /// Inbox rows of turns to end now.
    pub(crate) fn called_off(&self) -> Vec<i64> {
        match self {
            Effect::CallOff(ids) => ids.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether the effect changes the place's model.
    pub(crate) fn changes_model(&self) -> bool {
        matches!(
            self,
            Effect::ChooseModel(_) | Effect::ResetModel | Effect::StartAnew
        )
    }

    /// Inbox rows that wait again.
    pub(crate) fn again(&self) -> Vec<i64> {
        match self {
            Effect::Again(ids) => ids.clone(),
            _ => Vec::new(),
        }
    }

    /// Rows back in the outbox, by place.
    pub(crate) fn retried(&self) -> BTreeMap<SessionKey, usize> {
        match self {
            Effect::Retry(rows) => undelivered::by_place(rows),
            _ => BTreeMap::new(),
        }
    }

    pub(crate) fn write(
        &self,
        tx: &Transaction<'_>,
        inbound: &Inbound,
        now: i64,
    ) -> rusqlite::Result<()> {
        let (place, actor) = (&inbound.origin.key, Actor::of(inbound));
        self.changes(place)
            .iter()
            .try_for_each(|change| audit_rows::note(tx, &actor, change, now))?;
        match self {
            Effect::Nothing => Ok(()),
            Effect::Pin {
                agent,
                pin,
                opens,
                handoff,
                ..
            } => {
                places::give(tx, place, (*agent, pin), opens.as_ref(), now)?;
                note_handoff(tx, inbound, handoff.as_ref(), now)
            }
            Effect::PinUntil {
                agent,
                pin,
                until,
                handoff,
                ..
            } => {
                pins::set_until(tx, &inbound.origin, *agent, pin, *until, now)?;
                note_handoff(tx, inbound, handoff.as_ref(), now)
            }
            // The next turn notes the handoff, as for every rule of the config.
            Effect::Bind { .. } => pins::clear(tx, place),
            Effect::Unbind { .. } => Ok(()),
            Effect::Steer {
                steering,
                agent,
                id,
            } => steer(tx, *steering, (*agent, id), &actor, now).map(drop),
            Effect::Unpin { pin, handoff } => {
                pins::remove(tx, place, pin)?;
                note_handoff(tx, inbound, handoff.as_ref(), now)
            }
            Effect::Close => {
                pins::clear(tx, place)?;
                openings::clear(tx, place)
            }
            Effect::StartAnew => places::begin_anew(tx, place, now),
            Effect::ChooseModel(model) => {
                model_overrides::set(tx, place, model, &inbound.origin.person, now)
            }
            Effect::ResetModel => model_overrides::clear(tx, place),
            Effect::Decide { code, decision } => decide(tx, inbound, code, *decision, now),
            Effect::Revoke { person, .. } => paired::revoke(tx, person).map(drop),
            Effect::CallOff(ids) => work::call_off(tx, place, ids, now),
            Effect::Retry(rows) => operations::resend(tx, &actor, rows, When::Now, now),
            Effect::Again(ids) => {
                inbox::reopen(tx, ids)?;
                // The next end of the turn writes the question again.
                transcript::take_back(tx, ids)
            }
            Effect::Remember(saving) => saving.write(tx).map(drop),
            Effect::Forget {
                agent,
                id,
                forgetting,
            } => operations::forget(tx, &actor, (agent, *id), forgetting, now),
            Effect::DeliveryOff(off) => delivery_off::set(tx, place, off),
            Effect::DeliveryOn => {
                delivery_off::clear(tx, place)?;
                undelivered::release(tx, place, now)
            }
            Effect::ChangePerson(plan) => plan.write(tx, &actor, now),
            Effect::Raise(raise) => raise.write(tx, &actor, now),
            Effect::Pause(work) => pauses::pause(tx, *work, &actor, now).map(drop),
            Effect::Resume(work) => pauses::resume(tx, *work, &actor, now).map(drop),
            Effect::Job {
                id,
                agent,
                name,
                change,
            } => write_change(tx, &actor, (*id, agent, name), *change, now).map(drop),
        }
    }
}

/// Lets a guest in or turns them away.
fn decide(
    tx: &Transaction<'_>,
    inbound: &Inbound,
    code: &str,
    decision: Decision,
    now: i64,
) -> rusqlite::Result<()> {
    let by = Decider {
        id: inbound.origin.person.to_string(),
        name: inbound.person_name.clone(),
    };
    if let Some(known) = paired::decide(tx, code, decision, &by, now)? {
        let action = match decision.lets_in() {
            true => Action::Pair,
            false => Action::TurnAway,
        };
        let change = Change::new(action).about(known.person);
        let change = match decision {
            Decision::MadeOwner => change.to(Role::Owner),
            _ => change,
        };
        audit_rows::note(tx, &Actor::of(inbound), &change, now)?;
    }
    match &inbound.extras.pressed {
        Some(pressed) => guest_notices::forget_pressed(tx, &inbound.origin.key, pressed),
        None => Ok(()),
    }
}

impl Effect {
    /// Entries for the audit.
    fn changes<'a>(&self, place: &'a SessionKey) -> Vec<Change<'a>> {
        let switch = |from: &AgentId, to: &AgentId| {
            let change = Change::new(Action::Switch).at(place);
            change.from(from).to(to)
        };
        match self {
            Effect::Pin {
                opens, from, pin, ..
            } => {
                let open = opens.as_ref().map(|_| Change::new(Action::Open).at(place));
                let change = switch(from, &pin.agent);
                let change = match pin.once {
                    true => change.about(texts::steering::ONCE),
                    false => change,
                };
                open.into_iter().chain([change]).collect()
            }
            Effect::Unpin { handoff, .. } => handoff
                .iter()
                .map(|Handoff { from, to, .. }| switch(from, to))
                .collect(),
            Effect::PinUntil {
                from, pin, until, ..
            } => {
                let change = switch(from, &pin.agent);
                vec![change.about(texts::steering::for_so_long(until - pin.set_at))]
            }
            Effect::Bind { before, after } | Effect::Unbind { before, after } => {
                let action = match self {
                    Effect::Bind { .. } => Action::Bind,
                    _ => Action::Unbind,
                };
                let change = Change::new(action).at(place);
                let change = match before {
                    Some(before) => change.from(before),
                    None => change,
                };
                let change = match after {
                    Some(after) => change.to(after),
                    None => change,
                };
                // A binding that existed before is no change.
                let is_change = before.is_some() || after.is_some();
                is_change.then_some(change).into_iter().collect()
            }
            Effect::Close => vec![Change::new(Action::Close).at(place)],
            Effect::Revoke { person, .. } => vec![Change::new(Action::Unpair).about(person)],
            Effect::DeliveryOff(_) => {
                vec![Change::new(Action::Deliver).at(place).from("on").to("off")]
            }
            Effect::DeliveryOn => {
                vec![Change::new(Action::Deliver).at(place).from("off").to("on")]
            }
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
