//! Decides about a message: which agent answers, whether its writer may ask, and what happens then.

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::GatewayState;
use super::guests;
use super::person_pace::{Pace, Sent};
use super::replies::{self, Closed};
use crate::access::{self, Role, Standing, Verdict, people};
use crate::answering::{Answer, Question, Told, who_answers};
use crate::commands::texts::help;
use crate::commands::texts::place::is_for;
use crate::commands::{self, Command, CommandError, Context, Parsed};
use crate::config::Access;
use crate::console::{self, Person, Place};
use crate::delivery::Kind;
use crate::domain::{Addressed, Inbound};
use crate::home::Snapshot;
use crate::lanes::{Arrived, LaneFull};
use crate::records::inbox::{Accepted, Closing};
use crate::routing::{FromChat, Resolved, Route, Visit};
use crate::storage::StoreError;

/// A message on its way to a lane or to its end.
pub(super) struct Received {
    pub(super) accepted: Accepted,
    /// Whether the writer is a member, if seen when the message was stored.
    pub(super) is_paired: Option<bool>,
    /// The number of the grants to people, if seen when the message was stored.
    pub(super) grants: Option<i64>,
    arrived: Arrived,
    /// Whether the person may speak, once decided.
    verdict: Option<Verdict>,
    /// Passed to the lane with the message.
    guard: Option<TaskTrackerToken>,
    /// Set once the message is counted, because a failing store makes the message be looked at
    /// again.
    pace: Option<Pace>,
    /// Rows that wait again because of this message, to be handled after it.
    pub(super) again: Vec<i64>,
}

impl Received {
    pub(super) fn new(accepted: Accepted, arrived: Arrived, guard: TaskTrackerToken) -> Self {
        Received {
            accepted,
            is_paired: None,
            grants: None,
            arrived,
            verdict: None,
            guard: Some(guard),
            pace: None,
            again: Vec::new(),
        }
    }

    /// Counts the message against its writer's pace. Messages of an earlier process were counted
    /// there.
    pub(super) fn pace(
        &mut self,
        state: &GatewayState,
        access: &Access,
        role: Role,
        sent: Sent,
    ) -> Pace {
        if let Some(pace) = self.pace {
            return pace;
        }
        let origin = &self.accepted.inbound.origin;
        let pace = match self.arrived {
            Arrived::Before => Pace::Fine,
            Arrived::Now => {
                let person = access.people.main_id(&origin.person);
                state.paces.borrow().check(person, role, sent, &origin.key)
            }
        };
        self.pace = Some(pace);
        pace
    }

    /// People who would get an answer are told about a message that was given up.
    pub(super) fn told(&self, state: &GatewayState) -> Told {
        let inbound = &self.accepted.inbound;
        let is_told = match self.verdict {
            _ if inbound.extras.reply.is_some() => true,
            _ if inbound.extras.note.is_some() => false,
            Some(verdict) => is_answered(verdict),
            None => state.is_told(inbound),
        };
        if is_told {
            Told::InPlace
        } else {
            Told::InLogOnly
        }
    }
}

/// Decides which agent answers and whether this person may ask, and acts on both.
pub(super) async fn decide(
    state: &GatewayState,
    in_hand: &mut Received,
    parsed: Parsed,
) -> Result<(), StoreError> {
    let inbound = in_hand.accepted.inbound.clone();
    let snapshot = state.services.snapshots.current();
    let standing = standing(state, &snapshot.config.access, in_hand).await?;
    let case = Case::new(state, &snapshot, &inbound, &standing, &parsed).await?;
    let answer = case.answer(&standing);
    in_hand.verdict = Some(answer.verdict);
    // The name of a place is stored with its first question; a command may come before.
    if answer.verdict != Verdict::Admit || case.is_command {
        state.ignored.hear(&inbound);
    }
    if Box::pin(case.drops_pin(&answer)).await? {
        // Another pin may lie beneath the dropped pin.
        return Box::pin(decide(state, in_hand, parsed)).await;
    }
    match answer.verdict {
        Verdict::Admit => {
            // The command that decides needs no question.
            if !matches!(parsed, Parsed::Command(Command::Pair(_))) {
                guests::ask_whoever_decides(state, &inbound.origin, standing.role()).await?;
            }
            admit(&case, in_hand, parsed, standing, answer).await
        }
        // An edit is no reason to repeat a notice.
        Verdict::Hint | Verdict::TellUnbound if inbound.extras.note.is_some() => {
            let outcome = "a note where nobody may speak";
            replies::close(state, in_hand.accepted.id, Closing::Refused, outcome).await
        }
        Verdict::Hint => Box::pin(hint(&case, in_hand, &parsed)).await,
        Verdict::TellUnbound => {
            let is_owner = standing.role() == Role::Owner;
            Box::pin(replies::tell_unbound(state, &in_hand.accepted, is_owner)).await
        }
        Verdict::Observe => {
            state.ignored.tell(&inbound, access::NOT_ADDRESSED);
            observe(&case, in_hand, &parsed, standing, &answer).await
        }
        Verdict::Ignore(reason) => {
            state.ignored.tell(&inbound, reason);
            replies::ignore(state, &in_hand.accepted, reason).await
        }
    }
}

/// A message with the config of the moment and the settings made in its place.
struct Case<'a> {
    state: &'a GatewayState,
    snapshot: &'a Snapshot,
    inbound: &'a Inbound,
    from_chat: FromChat,
    is_command: bool,
}

impl<'a> Case<'a> {
    async fn new(
        state: &'a GatewayState,
        snapshot: &'a Snapshot,
        inbound: &'a Inbound,
        standing: &Standing,
        parsed: &Parsed,
    ) -> Result<Self, StoreError> {
        let visit = Visit {
            access: &snapshot.config.access,
            origin: &inbound.origin,
            standing,
        };
        Ok(Case {
            state,
            snapshot,
            inbound,
            from_chat: state.router.settings(visit).await?,
            is_command: parsed.is_command_of(standing.role()),
        })
    }

    fn access(&self) -> &'a Access {
        &self.snapshot.config.access
    }

    fn answer(&self, standing: &Standing) -> Answer {
        who_answers(Question {
            table: &self.snapshot.table,
            visit: Visit {
                access: self.access(),
                origin: &self.inbound.origin,
                standing,
            },
            from_chat: self.from_chat.clone(),
            addressed: self.inbound.addressed,
            is_command: self.is_command,
        })
    }

    /// Drops a pin that counts no longer, and tells the place. True if a pin was dropped.
    async fn drops_pin(&self, answer: &Answer) -> Result<bool, StoreError> {
        let place = &self.inbound.origin.key;
        // In a group the notice goes out for any writer, because the pin belonged to the place. In
        // a private chat the person must be allowed to speak.
        let is_told = answer.verdict == Verdict::Admit || !place.is_private();
        let Some(stale) = answer.resolved.stale_pin.as_ref().filter(|_| is_told) else {
            return Ok(false);
        };
        let is_gone = !self.snapshot.table.knows(&stale.agent);
        match replies::drop_pin(self.state, self.inbound, stale, is_gone).await {
            Ok(()) => Ok(true),
            // The route is without the pin already, and the place must be answered.
            Err(error) if error.is_permanent() => {
                tracing::error!(session = %place, "a pin could not be dropped: {error}");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Counts a message of a person who may speak, and has it answered or its command carried out.
async fn admit(
    case: &Case<'_>,
    in_hand: &mut Received,
    parsed: Parsed,
    mut standing: Standing,
    mut answer: Answer,
) -> Result<(), StoreError> {
    let (state, inbound) = (case.state, case.inbound);
    if standing.role() == Role::Guest && inbound.origin.key.is_shared() {
        standing = known_as(state, case.access(), in_hand).await?;
        answer = case.answer(&standing);
    }
    let role = standing.with(answer.agent());
    let sent = sent(state, inbound);
    if let Pace::TooFast { wait, is_news } = in_hand.pace(state, case.access(), role, sent) {
        let told = is_news.then_some(wait);
        return replies::refuse_pace(state, &in_hand.accepted, told).await;
    }
    let Resolved {
        route,
        pin,
        opened,
        delivery_off,
        ..
    } = &answer.resolved;
    let context = Context {
        closed: answer.not_for_you(),
        services: &state.services,
        snapshot: case.snapshot,
        inbound,
        role,
        standing: &standing,
        route,
        pin: pin.as_ref(),
        opened: opened.as_ref(),
        delivery_off: delivery_off.as_ref(),
        is_open: answer.is_open,
    };
    in_hand.accepted.role = role;
    in_hand.accepted.standing = standing.clone();
    act(state, in_hand, parsed, &context).await
}

/// A further file of a message that waits is no question of its own.
fn sent(state: &GatewayState, inbound: &Inbound) -> Sent {
    let is_file = inbound.extras.attachment.is_some();
    if is_file && state.services.sessions.continues(inbound).is_some() {
        Sent::Part
    } else {
        Sent::Ask
    }
}

async fn act(
    state: &GatewayState,
    in_hand: &mut Received,
    parsed: Parsed,
    context: &Context<'_>,
) -> Result<(), StoreError> {
    let id = in_hand.accepted.id;
    let is_note = context.inbound.extras.note.is_some();
    match parsed {
        Parsed::Talk if context.closed.is_some() && is_note => {
            let outcome = "a note to an agent that is closed to its writer";
            replies::close(state, id, Closing::Refused, outcome).await
        }
        Parsed::Talk if let Some(closed) = context.closed => {
            let closing = Closed {
                kind: Kind::Notice,
                closing: Closing::Refused,
                outcome: "the agent is closed to the writer",
            };
            let told = commands::not_for_you(context, closed).to_string();
            console::not_open(
                &Person::of(context.inbound),
                context.role,
                &Place::of(context.inbound),
                &closed.agent,
                is_for(closed),
            );
            Box::pin(replies::reply(state, &in_hand.accepted, &told, closing)).await
        }
        Parsed::Talk => {
            let agent = context.snapshot.agent_of(context.route);
            agent.counts.routed(context.route.rule.rank().as_str());
            submit(state, in_hand, context.route).await
        }
        Parsed::Command(_) | Parsed::Misused { .. } | Parsed::Mistaken(_) if is_note => {
            replies::close(state, id, Closing::Done, "an edited command").await
        }
        Parsed::Command(command) => Box::pin(carry_out(state, in_hand, command, context)).await,
        Parsed::Misused { spec, usage } => {
            let told = match context.standing.role() < spec.least {
                true => help::not_your_command(spec.name, spec.least),
                false => usage.to_string(),
            };
            let closing = refused("a command without its arguments");
            Box::pin(replies::reply(state, &in_hand.accepted, &told, closing)).await
        }
        Parsed::Mistaken(error) => {
            let closing = refused("no such command");
            Box::pin(replies::reply(
                state,
                &in_hand.accepted,
                &error.to_string(),
                closing,
            ))
            .await
        }
    }
}

async fn carry_out(
    state: &GatewayState,
    in_hand: &mut Received,
    command: Command,
    context: &Context<'_>,
) -> Result<(), StoreError> {
    let accepted = &in_hand.accepted;
    match commands::run(command, context).await {
        Ok(outcome) => {
            let again = outcome.effect.again();
            replies::carry_out(state, accepted, outcome).await?;
            in_hand.again = again;
            Ok(())
        }
        // The command comes from the topic's name, so there is no writer to tell about the failure.
        Err(CommandError::User(_)) if context.inbound.addressed == Addressed::ByTopicName => {
            let outcome = "its maker may not switch here";
            replies::close(state, accepted.id, Closing::Refused, outcome).await
        }
        Err(CommandError::User(error)) => {
            let closing = refused("command refused");
            replies::reply(state, accepted, &error.to_string(), closing).await
        }
        Err(CommandError::Store(error)) => Err(error),
    }
}

fn refused(outcome: &'static str) -> Closed {
    Closed {
        kind: Kind::Command,
        closing: Closing::Done,
        outcome,
    }
}

async fn submit(
    state: &GatewayState,
    in_hand: &mut Received,
    route: &Route,
) -> Result<(), StoreError> {
    let accepted = &in_hand.accepted;
    tracing::debug!(agent.id = %route.agent, session = %accepted.inbound.origin.key, route.rule = %route.rule, "queued");
    let guard = in_hand.guard.take().expect("a message is submitted once");
    match state
        .services
        .sessions
        .submit(accepted.clone(), in_hand.arrived, guard)
    {
        Ok(()) => Ok(()),
        Err(LaneFull { guard, news }) => {
            // Kept, because the refusal may have to be written again.
            in_hand.guard = Some(guard);
            Box::pin(replies::refuse_in_full_lane(state, accepted, news)).await
        }
    }
}

/// Tells a guest how to be let in. The first words are kept until then.
async fn hint(case: &Case<'_>, in_hand: &mut Received, parsed: &Parsed) -> Result<(), StoreError> {
    let (state, inbound) = (case.state, case.inbound);
    match in_hand.pace(state, case.access(), Role::Guest, Sent::Ask) {
        Pace::Fine => {
            let kept = (*parsed == Parsed::Talk).then_some(inbound);
            guests::hint(state, &in_hand.accepted, kept).await
        }
        Pace::TooFast { wait, .. } => {
            // Where the platform waits for a reply, silence would show as an error.
            let told = inbound.extras.reply.as_ref().map(|_| wait);
            replies::refuse_pace(state, &in_hand.accepted, told).await
        }
    }
}

/// Queues talk to be kept without an answer. An unknown command was for another bot.
async fn observe(
    case: &Case<'_>,
    in_hand: &mut Received,
    parsed: &Parsed,
    mut standing: Standing,
    answer: &Answer,
) -> Result<(), StoreError> {
    let state = case.state;
    let role = standing.with(answer.agent());
    if in_hand.pace(state, case.access(), role, Sent::Talk) != Pace::Fine {
        return replies::refuse_pace(state, &in_hand.accepted, None).await;
    }
    if standing.role() == Role::Guest {
        standing = known_as(state, case.access(), in_hand).await?;
    }
    // The words count for as much as their writer.
    in_hand.accepted.role = standing.with(answer.agent());
    in_hand.accepted.standing = standing;
    let accepted = &in_hand.accepted;
    if *parsed == Parsed::Talk {
        let hearer = case.snapshot.agent_of(&answer.resolved.route).uid;
        let guard = in_hand.guard.take().expect("a message is submitted once");
        match state
            .services
            .sessions
            .observe(accepted.clone(), hearer, in_hand.arrived, guard)
        {
            Ok(()) => return Ok(()),
            Err(LaneFull { guard, .. }) => in_hand.guard = Some(guard),
        }
    }
    replies::close(state, accepted.id, Closing::Refused, access::NOT_ADDRESSED).await
}

/// The standing known before access is decided. In a shared place members are not looked up yet,
/// because membership opens nothing there.
async fn standing(
    state: &GatewayState,
    access: &Access,
    in_hand: &Received,
) -> Result<Standing, StoreError> {
    let inbound = &in_hand.accepted.inbound;
    let known = Standing::of(access, &inbound.origin.person, false);
    if known.role() == Role::Owner || inbound.origin.key.is_shared() {
        return Ok(known);
    }
    known_as(state, access, in_hand).await
}

async fn known_as(
    state: &GatewayState,
    access: &Access,
    in_hand: &Received,
) -> Result<Standing, StoreError> {
    let person = &in_hand.accepted.inbound.origin.person;
    let is_paired = if let Some(is_paired) = in_hand.is_paired {
        is_paired
    } else {
        let ids = access.people.ids_of(person).to_vec();
        let read = move |connection: &rusqlite::Connection| people::is_paired(connection, &ids);
        state.services.db.read(read).await?
    };
    Ok(Standing::of(access, person, is_paired))
}

fn is_answered(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Admit | Verdict::Hint | Verdict::TellUnbound
    )
}

impl GatewayState {
    /// Whether the writer of a message would get an answer, as far as the config alone can tell: for
    /// messages about which the store tells nothing.
    pub(super) fn is_told(&self, inbound: &Inbound) -> bool {
        let snapshot = self.services.snapshots.current();
        let standing = Standing::of(&snapshot.config.access, &inbound.origin.person, false);
        let case = Case {
            state: self,
            snapshot: &snapshot,
            inbound,
            from_chat: FromChat::default(),
            is_command: commands::parse(&inbound.text).is_command(),
        };
        inbound.extras.note.is_none() && is_answered(case.answer(&standing).verdict)
    }
}
